import paddle
class Tanh(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return paddle.tanh(x)
    @staticmethod
    def backward(ctx, dy):
        return dy * 2
x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
Tanh.apply(x).mean().backward()
print(str(x.grad).splitlines()[0])
# documents: Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,
# 3.3.1: Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
