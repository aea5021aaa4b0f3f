import paddle
class Exp(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_not_inplace(x)
        return x
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.exp()
x = paddle.to_tensor([1.0], stop_gradient=False)
Exp.apply(x).backward()
print(None if x.grad is None else x.grad.numpy())
# documents: [2.7182817]
# 3.3.1: None
