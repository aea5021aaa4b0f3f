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
y = Same.apply(x)
print(y is x, y.is_leaf, y.grad_fn is None)
# documents: False False False
# 3.3.1: False True True
