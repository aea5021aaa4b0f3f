# static_pylayer refuses one Variable as two inputs
#
# Both gradients are those of x, and add up.
import numpy as np, paddle
paddle.enable_static()
x = paddle.static.data("x", [1], "float32")
x.stop_gradient = False
y = paddle.static.nn.static_pylayer(lambda a, b: a + b, [x, x], lambda dy: (dy, dy))
(dx,) = paddle.static.gradients(y, x)
print(paddle.static.Executor().run(feed={"x": np.ones(1, "float32")}, fetch_list=[dx])[0].item())
# right: 2.0
# 2.6.2: 2.0
# 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: ValueError
