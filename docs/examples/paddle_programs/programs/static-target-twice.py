# A target that is given twice counts once in a program
#
# The target is y + y, whose gradient is 4x. Without `enable_static`, `paddle.grad([y, y], x)` raises RuntimeError.
import numpy as np, paddle
paddle.enable_static()
x = paddle.static.data("x", [2], "float32")
x.stop_gradient = False
y = x * x
(dx,) = paddle.static.gradients([y, y], x)
feed = {"x": np.array([1.0, 2.0], "float32")}
print(paddle.static.Executor().run(feed=feed, fetch_list=[dx])[0].tolist())
# right: [4.0, 8.0]
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: [2.0, 4.0]
