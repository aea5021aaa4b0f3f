# set_value of a saved Tensor is not noticed, and the gradient is wrong
#
# The product was 3 · 2, so the gradient is 2 or an error. `add_` in place of `set_value` raises RuntimeError.
import paddle
x, w = paddle.to_tensor([3.0], stop_gradient=False), paddle.to_tensor([2.0])
y = x * w
w.set_value(paddle.to_tensor([10.0]))
y.backward()
print(x.grad.item())
# right: RuntimeError
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: 10.0
