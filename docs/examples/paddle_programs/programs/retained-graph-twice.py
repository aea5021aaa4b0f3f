# A second backward through a saved Tensor kills the process
#
# The first one retains the graph, so the second one adds 6 once more.
import paddle
class Square(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    backward = staticmethod(lambda ctx, dy: dy * 2 * ctx.saved_tensor()[0])
x = paddle.to_tensor([3.0], stop_gradient=False)
y = Square.apply(x)
y.backward(retain_graph=True)
y.backward()
print(x.grad.item())
# right: 12.0
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: SIGSEGV
