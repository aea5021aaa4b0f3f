# no_grad around a generator stays in force in the loop that it feeds
#
# `no_grad` is for what the generator computes. The product outside of it loses its gradient in silence.
import paddle
@paddle.no_grad()
def factors():
    yield 2.0
x = paddle.to_tensor([1.0], stop_gradient=False)
for factor in factors():
    y = x * factor
print(y.stop_gradient)
# right: False
# 2.6.2, 3.0.0, 3.1.0, 3.1.1, 3.2.0, 3.2.1, 3.2.2, 3.3.0, 3.3.1: True
