# paddle.grad of one output of a PyLayer with two
#
# Older releases pass backward an undefined gradient for the output that is left out. It is zero by the documents.
import paddle
class Two(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3
    @staticmethod
    def backward(ctx, da, db):
        return da * 2 + db * 3
x = paddle.to_tensor([1.0], stop_gradient=False)
a, b = Two.apply(x)
print(paddle.grad(a, x)[0].item())
# right: 2.0
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0: SIGSEGV
# 3.3.1: 2.0
