# static_pylayer within while_loop kills the process when gradients are taken
#
# Three steps double x, so the gradient is 8.
import numpy as np, paddle
from paddle.static.nn import static_pylayer, while_loop
paddle.enable_static()
x = paddle.static.data("x", [1], "float32")
x.stop_gradient = False
double = lambda i, y: [i + 1, static_pylayer(lambda y: y * 2, [y], lambda dy: dy * 2)]
_, y = while_loop(lambda i, y: (i < 3).all(), double, [paddle.zeros([1], "int64"), x])
(dx,) = paddle.static.gradients(y, x)
print(paddle.static.Executor().run(feed={"x": np.ones(1, "float32")}, fetch_list=[dx])[0].item())
# right: 8.0
# 2.6.2: 8.0
# 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: SIGABRT
