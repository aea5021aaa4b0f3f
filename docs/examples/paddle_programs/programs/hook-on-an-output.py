# A hook on the output of a PyLayer is registered and never called
#
# A hook on the output of an operation is called: with `y = x * 2` the program prints 20.0.
import paddle
class Double(paddle.autograd.PyLayer):
    forward = staticmethod(lambda ctx, x: x * 2)
    backward = staticmethod(lambda ctx, dy: dy * 2)
x = paddle.to_tensor([1.0], stop_gradient=False)
y = Double.apply(x)
y.register_hook(lambda g: g * 10)
y.backward()
print(x.grad.item())
# right: 20.0
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: 2.0
