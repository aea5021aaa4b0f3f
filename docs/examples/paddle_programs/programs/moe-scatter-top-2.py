# MoEScatter loses gradients where a row goes to two experts
#
# Backward puts the rows of the gradient back with `paddle.scatter(…, overwrite=True)`, so only one gradient of a row
# that several experts get is kept. Row 0 goes to two experts here, so its gradient is 1 + 1.
import paddle
from paddle.incubate.distributed.models.moe.moe_layer import MoEScatter
x = paddle.ones([2, 1])
x.stop_gradient = False
rows = paddle.to_tensor([0, 1, 0])
count = paddle.to_tensor([3])
MoEScatter.apply(x, rows, count, count, 2, 1).sum().backward()
print(x.grad.tolist())
# right: [[2.0], [1.0]]
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: [[1.0], [1.0]]
