# MoEScatter computes gradients of float64 in float32
#
# Backward casts the gradient to float32 and back, so that a float64 gradient has seven digits.
import paddle
from paddle.incubate.distributed.models.moe.moe_layer import MoEScatter
x = paddle.ones([1, 1], "float64")
x.stop_gradient = False
count = paddle.to_tensor([1])
y = MoEScatter.apply(x, paddle.to_tensor([0]), count, count, 1, 1)
(y * 0.1).sum().backward()
print(x.grad.item())
# right: 0.1
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: 0.10000000149011612
