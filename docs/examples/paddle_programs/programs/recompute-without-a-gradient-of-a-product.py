# The same PyLayer kills the process where its input was computed
#
# Backward returns None for an input that the product before it waits for.
import paddle
from paddle.distributed.fleet.utils import recompute
class Double(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, dy):
        return None if ctx.saved_tensor()[0].stop_gradient else dy * 2
x = paddle.to_tensor([3.0], stop_gradient=False)
recompute(lambda x: Double.apply(x * 2), x, use_reentrant=False, preserve_rng_state=False).backward()
print(x.grad.item())
# right: 4.0
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: SIGSEGV
