# A change in place of a Tensor that a PyLayer saved is not noticed
#
# The square was 3 · 3, so the gradient is 6 or an error. If `z * z` saves the Tensor, the change raises RuntimeError.
import paddle
class Square(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    backward = staticmethod(lambda ctx, dy: dy * 2 * ctx.saved_tensor()[0])
x = paddle.to_tensor([3.0], stop_gradient=False)
z = x * 1
y = Square.apply(z)
z.add_(paddle.to_tensor([10.0]))
y.backward()
print(x.grad.item())
# right: RuntimeError
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: 26.0
