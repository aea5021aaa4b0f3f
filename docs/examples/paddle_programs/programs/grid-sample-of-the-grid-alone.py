# grid_sample with mode="nearest" dies if only the grid needs a gradient
#
# The nearest pixel does not move with the grid, so the gradient is zero.
import paddle
grid = paddle.zeros([1, 1, 1, 2])
grid.stop_gradient = False
y = paddle.nn.functional.grid_sample(paddle.ones([1, 1, 2, 2]), grid, mode="nearest")
y.sum().backward()
print(grid.grad.tolist())
# right: [[[[0.0, 0.0]]]]
# 2.6.2: SIGSEGV
# 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2: [[[[0.0, 0.0]]]]
# 3.3.0, 3.3.1: SIGSEGV
