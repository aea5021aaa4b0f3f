import paddle
class Same(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_not_inplace(x)
        return x
    @staticmethod
    def backward(ctx, dy):
        return dy * 2
x = paddle.to_tensor([1.0], stop_gradient=False)
Same.apply(x * 3).backward()
print(None if x.grad is None else x.grad.numpy())
# documents: [6.]
# 3.3.1: None
