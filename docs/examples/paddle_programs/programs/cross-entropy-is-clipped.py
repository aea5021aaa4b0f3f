# The loss of cross_entropy is never above 64
#
# The probability of class 1 is exp(-100), so the loss is 100.
import paddle
x = paddle.to_tensor([[100.0, 0.0]])
loss = paddle.nn.functional.cross_entropy(x, paddle.to_tensor([1]))
print(loss.item())
# right: 100.0
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: 64.0
