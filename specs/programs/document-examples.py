import paddle
class Exp(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_not_inplace(x)
        return x
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.exp()
x = paddle.ones([1]); x.stop_gradient = False
Exp.apply(x).backward()
print(x.grad)
