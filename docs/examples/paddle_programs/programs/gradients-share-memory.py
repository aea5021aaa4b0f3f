# A Tensor that backward returns twice is the gradient of both inputs
#
# Clipping the gradient of x in place clips that of w as well.
import paddle
class Sum(paddle.autograd.PyLayer):
    forward = staticmethod(lambda ctx, x, w: x + w)
    backward = staticmethod(lambda ctx, dy: (dy, dy))
x, w = paddle.ones([1]), paddle.ones([1])
x.stop_gradient = w.stop_gradient = False
Sum.apply(x, w).backward()
with paddle.no_grad():
    x.grad.scale_(0.5)
print(x.grad.item(), w.grad.item())
# right: 0.5 1.0
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: 0.5 0.5
