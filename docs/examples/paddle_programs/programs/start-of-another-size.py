# A start of backward with too many elements is taken
#
# Two outputs have five cotangents: the last three are dropped. `Tensor.backward` raises AssertionError.
import paddle
x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
paddle.autograd.backward([x * x], [paddle.ones([5])])
print(x.grad.tolist())
# right: AssertionError
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: [2.0, 4.0]
