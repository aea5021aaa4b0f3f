# log_softmax is never below -64, and its gradient does not know
#
# The logarithm of exp(-100) / (1 + exp(-100)) is -100 in both dtypes. A constant would have the gradient 0.
import paddle
x = paddle.to_tensor([100.0, 0.0], dtype="float64", stop_gradient=False)
y = paddle.nn.functional.log_softmax(x)
y[1].backward()
print(y.tolist(), x.grad.tolist())
# right: [0.0, -100.0] [-1.0, 1.0]
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: [0.0, -64.0] [-1.0, 1.0]
