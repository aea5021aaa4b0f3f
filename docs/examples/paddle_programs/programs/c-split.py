# The gradient of _c_split is joined along the wrong axis
#
# Each rank gets two of four columns. Backward gathers the parts below one another, so that the gradient has another
# shape than the input. Two kernels are put in, which Paddle has for GPUs alone: the split itself, which is not at
# fault, and the gathering of Tensors, as it is on GPUs and in `all_gather_into_tensor`.
import paddle, paddle.distributed as dist
from paddle.distributed.fleet.layers.mpu import mp_ops
def rank():
    group = dist.init_parallel_env() or dist.get_group()
    gather = lambda self, out, x: self.all_gather_into_tensor(out, x, True).wait()
    type(group.process_group).all_gather_into_tensor_on_calc_stream = gather
    split = lambda x, *_: x.chunk(2, -1)[group.rank].clone()
    mp_ops._C_ops.c_split = mp_ops._legacy_C_ops.c_split = split
    x = paddle.to_tensor([[1.0, 2.0, 3.0, 4.0]], stop_gradient=False)
    (mp_ops._c_split(x, group) ** 2).sum().backward()
    if group.rank == 0: print(x.grad.tolist())
if __name__ == "__main__":
    dist.spawn(rank, nprocs=2, backend="gloo")
# right: [[2.0, 4.0, 6.0, 8.0]]
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: [[2.0, 4.0], [6.0, 8.0]]
