# paddle.grad of the parts of a split fails if they come in another order
import paddle
x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
a, b, c = paddle.split(x, 3)
loss = (a * 1 + b * 2 + c * 3).sum()
print([g.item() for g in paddle.grad(loss, [b, a, c])])
# right: [2.0, 1.0, 3.0]
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: SystemError
