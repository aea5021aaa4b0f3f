# A gradient of another shape than its input is taken
#
# Where x has a gradient of its own shape already, adding this one raises RuntimeError, which names no layer.
import paddle
class Double(paddle.autograd.PyLayer):
    forward = staticmethod(lambda ctx, x: x * 2)
    backward = staticmethod(lambda ctx, dy: paddle.ones([4]))
x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
Double.apply(x).sum().backward()
print(list(x.grad.shape))
# right: ValueError
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: [4]
