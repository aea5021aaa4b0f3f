# paddle.grad gives one part of a Tensor the gradient of the other
#
# It is so for every operation with several outputs: unbind here, topk and qr as well.
import paddle
a, b = paddle.unbind(paddle.to_tensor([1.0, 2.0], stop_gradient=False))
(db,) = paddle.grad(a * 5, [b], allow_unused=True)
print(db if db is None else db.tolist())
# right: None
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: 5.0
