import paddle
class Product(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        return x * y
    @staticmethod
    def backward(ctx, dy):
        return [dy * 2, dy * 3]
x, y = (paddle.to_tensor(value, stop_gradient=False) for value in (3.0, 2.0))
Product.apply(x, y).backward()
print(x.grad.item(), y.grad.item())
# documents: 2.0 3.0
# 3.3.1: ValueError
