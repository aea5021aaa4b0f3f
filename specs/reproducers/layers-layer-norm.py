"""A Python number is added to a float64 Tensor as the float64 that it is."""

import paddle

epsilon = 1e-5
x = paddle.zeros([1], dtype="float64")
assert (x + epsilon).item() == epsilon, (x + epsilon).item()
