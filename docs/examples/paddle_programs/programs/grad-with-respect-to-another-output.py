# paddle.grad gives one output of a PyLayer the gradient of the other
#
# The sum depends on `a` alone, so that there is no gradient of `b`: None, as `allow_unused` says.
import paddle
class Two(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3
    @staticmethod
    def backward(ctx, da, db):
        return da * 2 + db * 3
a, b = Two.apply(paddle.to_tensor([1.0], stop_gradient=False))
(db,) = paddle.grad((a * 5).sum(), [b], allow_unused=True)
print(db if db is None else db.tolist())
# right: None
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: [5.0]
