"""Rules 72 to 86: Tensors and gradients."""

from __future__ import annotations

from observed.rule import Rule

RULES = [
    Rule(72, "Numbers become float32 or int64, arrays keep their dtype; a shape is a paddle.Size, which is a list.", """
made = [paddle.to_tensor(v) for v in (1.5, 2, True, np.float64(1), np.ones(1))]
print([str(t.dtype) for t in made], made[0].stop_gradient)
print(paddle.ones([2, 3]).shape, paddle.ones([2, 3]).shape == [2, 3])
"""),
    Rule(73, "seed makes random numbers reproducible.", """
paddle.seed(1)
a = paddle.randn([3])
paddle.seed(1)
print(bool((a == paddle.randn([3])).all()))
"""),
    Rule(74, "The text of a printed Tensor.", """
print(paddle.to_tensor([[1.0, 2.0], [3.0, 4.5]]))
"""),
    Rule(75, "detach shares memory and is a leaf; clone is a copy in the graph; a cast is differentiated.", """
x = leaf(1.5)
print(x.detach().stop_gradient, x.clone().stop_gradient, (x > 1).stop_gradient, x.astype("int64").stop_gradient)
x.astype("float32").backward()
print(x.grad.dtype)
"""),
    Rule(76, "Floating Tensors of two dtypes are cast to the wider one; integers with floating Tensors are refused.", """
f, d, i = paddle.ones([1]), paddle.ones([1], "float64"), paddle.ones([1], "int64")
print((f + d).dtype, (i * 2.5).dtype, (i / 2).dtype, (d * 2).dtype)
i + f
"""),
    Rule(77, "A mean of integers is an integer; sums of bools are int64; functions accept only Tensors.", """
i = paddle.to_tensor([1, 2])
print(i.mean().item(), (i > 1).sum().dtype, paddle.tanh(i).dtype, i.sum().shape)
paddle.tanh([1.0])
"""),
    Rule(78, "backward of a Tensor with stop_gradient True does nothing; a cotangent is a Tensor of the same shape.", """
print(paddle.ones([1]).backward())
(leaf(1.0) * 2).backward(paddle.ones([2], "float64"))
"""),
    Rule(79, "paddle.grad returns a list and does not change grad; an unused input is refused, or gives None if allowed.", """
x, other = leaf(3.0), leaf(1.0)
print(paddle.grad(x * x, [x])[0].item(), x.grad, paddle.grad(x * x, [other], allow_unused=True))
paddle.grad(x * x, [x, other])
"""),
    Rule(80, "clear_grad sets the gradient to zeros, clear_gradient(False) sets it to None.", """
x = leaf(3.0)
(x * x).backward()
x.clear_grad()
print(x.grad.tolist())
x.clear_gradient(False)
print(x.grad)
"""),
    Rule(81, "no_grad is a context manager, and a decorator with parentheses.", """
x = leaf(1.0)
with paddle.no_grad():
    print(paddle.is_grad_enabled(), (x * 2).stop_gradient)
print(paddle.no_grad()(lambda: (x * 2).stop_gradient)(), paddle.is_grad_enabled())
"""),
    Rule(82, "stop_gradient takes a bool; set on a result it cuts the graph.", """
x = leaf(1.0)
y = x * 2
y.stop_gradient = True
print((y * 3).stop_gradient)
x.stop_gradient = 1
"""),
    Rule(83, "A leaf that needs a gradient is not changed in place; += makes a new Tensor.", """
x = before = leaf(1.0)
x += 1
print(x is before)
before.add_(paddle.ones([1], "float64"))
"""),
    Rule(84, "== compares element by element; bool needs one element.", """
x = leaf(1.0, 2.0)
print((x == x).tolist(), x == None, bool(leaf(0.0)))
bool(x)
"""),
    Rule(85, "Hooks run in the order of registration, each on the result of the previous one.", """
x = leaf(1.0)
x.register_hook(lambda g: g * 10)
x.register_hook(lambda g: g + 1)
(x * 2).backward()
print(x.grad.item())
paddle.ones([1]).register_hook(lambda g: g)
"""),
    Rule(86, "Gradients at kinks: 0 for relu, abs and sign, infinite for sqrt, half each for equal arguments of maximum.", """
def slope(function):
    x = leaf(0.0)
    function(x).backward()
    return x.grad.item()

print(slope(paddle.nn.functional.relu), slope(paddle.abs), slope(paddle.sign), slope(paddle.sqrt))
print(slope(lambda x: paddle.maximum(x, paddle.zeros_like(x))), slope(lambda x: x**0.5), slope(lambda x: x**2))
leaf(1.0, 2.0) + leaf(1.0, 2.0, 3.0)
"""),
    Rule(87, "paddle.grad of some inputs of a PyLayer: backward must return None for the others, as if they had stop_gradient True.", """
def of_both(ctx, dy):
    x, y = ctx.saved_tensor()
    return dy * y, dy * x

def of_first(ctx, dy):
    return dy * ctx.saved_tensor()[1], None

def product(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x * y

x, y = leaf(3.0), leaf(5.0)
print(paddle.grad(layer(product, of_first).apply(x, y), [x])[0].item())
print([g.item() for g in paddle.grad(layer(product, of_both).apply(x, y), [x, y])])
print(paddle.grad(layer(product, of_both).apply(x, y * x), [x])[0].item())
paddle.grad(layer(product, of_both).apply(x, y), [x])
"""),
]  # fmt: skip
