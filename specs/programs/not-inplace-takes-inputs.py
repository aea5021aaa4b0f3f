import paddle
class Same(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_not_inplace(x, y)
        return x, y
    @staticmethod
    def backward(ctx, dx, dy):
        return dx * 2, dy * 3
x, y = (paddle.to_tensor([value], stop_gradient=False) for value in (1.0, 5.0))
paddle.add_n(Same.apply(x, y)).backward()
print(x.grad is None, y.grad is None)
# documents: False False
# 3.3.1: True True
