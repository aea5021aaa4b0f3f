"""Rules 1 to 44: PyLayer, its forward and its backward."""

from __future__ import annotations

from observed.rule import Rule

RULES = [
    Rule(1, "A layer without forward raises when it is applied; a layer without backward raises when gradients are taken.", """
try:
    type("L", (PyLayer,), {}).apply(leaf(1.0))
except NotImplementedError as error:
    print(error)
type("L", (PyLayer,), {"forward": staticmethod(lambda ctx, x: x * 2)}).apply(leaf(1.0)).backward()
""", "The engine raises NotImplementedError for backward too, as the user's exceptions keep their type."),
    Rule(2, "apply is a class method; an instance has it too, but cannot be called.", """
print(Square.apply(leaf(3.0)).item(), Square().apply(leaf(3.0)).item())
Square()(leaf(3.0))
"""),
    Rule(3, "A subclass inherits forward and backward; PyLayer itself cannot be applied.", """
x = leaf(3.0)
type("Sub", (Square,), {}).apply(x).backward()
print(x.grad.item())
PyLayer.apply(x)
"""),
    Rule(4, "The first argument of forward and of backward is the same context object; each apply makes a new one.", """
seen = []
L = layer(lambda ctx, x: (seen.append(ctx), x * 2)[1], lambda ctx, dy: (seen.append(ctx), dy * 2)[1])
L.apply(leaf(1.0)).backward()
L.apply(leaf(1.0))
print(seen[0] is seen[1], seen[0] is seen[2], isinstance(seen[0], paddle.autograd.PyLayerContext))
"""),
    Rule(5, "forward runs with grad mode off; the mode is restored afterwards, even after an exception.", """
def forward(ctx, x):
    print(paddle.is_grad_enabled(), (x * 2).stop_gradient)
    raise KeyError("mine")

try:
    layer(forward, None).apply(leaf(1.0))
except KeyError:
    print(paddle.is_grad_enabled())
"""),
    Rule(6, "If an input needs a gradient, every Tensor output does, even one that was not computed from it.", """
y, z = layer(lambda ctx, x: (x * 2, paddle.ones([1], "int64")), lambda ctx, dy, dz: dy).apply(leaf(1.0))
print(y.stop_gradient, z.stop_gradient, y.is_leaf, y.grad_fn.name())
"""),
    Rule(7, "If no input needs a gradient, or under no_grad, outputs are returned unchanged and backward never runs.", """
y = Square.apply(paddle.ones([1]))
print(y.stop_gradient, y.is_leaf, y.backward())
with paddle.no_grad():
    print(Square.apply(leaf(1.0)).stop_gradient)
"""),
    Rule(8, "Arguments may have any type; a wrong call raises Python's TypeError, and forward's exceptions pass unchanged.", """
layer(lambda ctx, x, y: x, None).apply(leaf(1.0))
"""),
    Rule(9, "Gradients are returned in the order of the call, one per Tensor, and one for a whole list of Tensors.", """
L = layer(lambda ctx, a, b, c: a + 2 * b + 3 * c, lambda ctx, dy: (dy, dy * 3, dy * 2))
a, b, c = leaf(1.0), leaf(1.0), leaf(1.0)
L.apply(a, c=c, b=b).backward()
print(a.grad.item(), b.grad.item(), c.grad.item())
L = layer(lambda ctx, xs: xs[0] + 2 * xs[1], lambda ctx, dy: [dy, dy * 2])
L.apply([a, b]).backward()
print(a.grad.item(), b.grad.item())
"""),
    Rule(10, "Numbers, None, strings, arrays and dicts get no gradient; Tensors in a dict are not tracked.", """
print(layer(lambda ctx, d: d["x"] * 2, None).apply({"x": leaf(1.0)}).stop_gradient)
x = leaf(1.0)
layer(lambda ctx, n, x, s, a: x * n, lambda ctx, dy: dy * 3).apply(3, x, "s", np.ones(1)).backward()
print(x.grad.item())
"""),
    Rule(11, "backward returns gradients only for Tensors, without None for other arguments.", """
layer(lambda ctx, a, n, b: a * b, lambda ctx, dy: (dy, None, dy)).apply(leaf(1.0), 5, leaf(1.0)).backward()
"""),
    Rule(12, "A Tensor that is passed twice has two gradients, which are added.", """
x = leaf(3.0)
layer(lambda ctx, a, b: a * b, lambda ctx, dy: (dy * 10, dy * 1)).apply(x, x).backward()
print(x.grad.item())
"""),
    Rule(13, "forward returns at least one Tensor; other values in the tuple or list are returned unchanged.", """
out = layer(lambda ctx, x: (x * 2, None, 5, "a"), lambda ctx, dy: dy).apply(leaf(1.0))
print(type(out).__name__, out[1:])
layer(lambda ctx, x: None, None).apply(leaf(1.0))
"""),
    Rule(14, "The container of the outputs is kept: a tuple stays a tuple, a list stays a list, even with a single item.", """
for make in (lambda x: (x * 1,), lambda x: [x * 1], lambda x: x * 1):
    print(type(layer(lambda ctx, x: make(x), lambda ctx, dy: dy).apply(leaf(1.0))).__name__)
"""),
    Rule(15, "A dict of Tensors does not count as an output.", """
layer(lambda ctx, x: {"y": x * 2}, None).apply(leaf(1.0))
"""),
    Rule(16, "A list among the outputs becomes one argument of backward, which is a list.", """
seen = []
L = layer(lambda ctx, x: (x * 2, [x * 3]), lambda ctx, a, b: (seen.append(type(b).__name__), a * 2 + b[0] * 3)[1])
x = leaf(1.0)
y, (z,) = L.apply(x)
paddle.autograd.backward([y, z])
print(seen, x.grad.item())
"""),
    Rule(17, "For a Tensor that is returned twice, the sum of the gradients arrives at its last position.", """
def forward(ctx, x):
    y = x * 2
    return y, y

seen = []
L = layer(forward, lambda ctx, a, b: (seen.append([a.item(), b.item()]), a + b)[1])
y, z = L.apply(leaf(1.0))
(y * 3 + z * 5).backward()
print(seen)
"""),
    Rule(18, "An input that is returned unchanged counts as changed in place, which is refused for a leaf that needs a gradient.", """
h = leaf(2.0) * 1
y = layer(lambda ctx, x: x, lambda ctx, dy: dy).apply(h)
print(y is h, h.inplace_version)
layer(lambda ctx, x: x, lambda ctx, dy: dy).apply(leaf(1.0))
"""),
    Rule(19, "If forward changes an input in place and returns it, its version rises by two: for the operation and for the layer.", """
h = leaf(2.0) * 1
y = layer(lambda ctx, x: x.scale_(3.0), lambda ctx, dy: dy * 3).apply(h)
print(y is h, h.inplace_version)
"""),
    Rule(21, "A layer applied inside a forward builds no graph: only the outer backward runs.", """
inner = layer(lambda ctx, x: x * 2, lambda ctx, dy: print("inner"))
x = leaf(1.0)
layer(lambda ctx, x: inner.apply(x), lambda ctx, dy: dy * 7).apply(x).backward()
print(x.grad.item())
"""),
    Rule(22, "apply accepts 0-d Tensors and Tensors without elements.", """
print(Square.apply(paddle.to_tensor(3.0)).shape, Square.apply(paddle.zeros([0, 2])).shape)
"""),
    Rule(23, "backward gets one cotangent per Tensor output.", """
L = layer(lambda ctx, x: (x * 2, 5, x * 3), lambda ctx, *dy: (print(len(dy)), dy[0])[1])
L.apply(leaf(1.0))[0].backward()
"""),
    Rule(24, "An exception inside backward becomes an OSError, whatever its type was.", """
def backward(ctx, dy):
    raise KeyError("mine")

layer(lambda ctx, x: x * 2, backward).apply(leaf(1.0)).backward()
""", "The engine raises the user's own exception, with a note that names the layer and where it was applied."),
    Rule(25, "backward runs once per traversal, after all cotangents have arrived.", """
L = layer(lambda ctx, x: x * 2, lambda ctx, dy: (print("backward", dy.item()), dy * 2)[1])
y = L.apply(leaf(1.0))
(y * 3 + y * 4).backward()
"""),
    Rule(26, "Inside backward grad mode is off, unless gradients are recorded (create_graph).", """
x = leaf(1.0)
y = layer(lambda ctx, x: x * 2, lambda ctx, dy: (print(paddle.is_grad_enabled()), dy * 2)[1]).apply(x)
paddle.grad(y, x)
paddle.grad(y, x, create_graph=True)
"""),
    Rule(27, "backward returns a Tensor or a tuple; a list is refused.", """
layer(lambda ctx, a, b: a * b, lambda ctx, dy: [dy, dy]).apply(leaf(1.0), leaf(1.0)).backward()
print("taken")
""", "The documents allow a list, and the engine accepts it."),
    Rule(28, "Too many gradients are refused, even if the surplus ones are None.", """
layer(lambda ctx, x: x * 2, lambda ctx, dy: (dy, None)).apply(leaf(1.0)).backward()
"""),
    Rule(29, "Too few gradients are accepted if the missing ones are for inputs that need none; otherwise they are refused.", """
L = layer(lambda ctx, a, b: a * b, lambda ctx, dy: dy)
L.apply(leaf(1.0), paddle.ones([1], "float64")).backward()
print("taken")
L.apply(leaf(1.0), leaf(1.0)).backward()
""", "The documents require as many as there are Tensor inputs; the engine refuses both."),
    Rule(30, "For an input that needs no gradient, backward must return None.", """
L = layer(lambda ctx, a, b: a * b, lambda ctx, dy: (dy, dy))
L.apply(leaf(1.0), paddle.ones([1], "float64")).backward()
"""),
    Rule(31, "If a gradient is needed, a number or an array is refused.", """
layer(lambda ctx, x: x * 2, lambda ctx, dy: 2.0).apply(leaf(1.0)).backward()
"""),
    Rule(32, "None is accepted for an input that needs a gradient; the input then has no gradient.", """
x = leaf(1.0)
layer(lambda ctx, x: x * 2, lambda ctx, dy: None).apply(x).backward()
print(x.grad)
""", "The documents say that it must be a Tensor; the engine raises ValueError."),
    Rule(33, "The shape of a gradient is not checked: a leaf accepts any shape.", """
x = leaf(1.0, 2.0)
layer(lambda ctx, x: x.sum(), lambda ctx, dy: dy).apply(x).backward()
print(list(x.grad.shape))
""", "The engine raises ValueError with both shapes."),
    Rule(34, "A leaf's gradient has the dtype that backward returned.", """
x = leaf(1.0)
layer(lambda ctx, x: x * 2, lambda ctx, dy: dy.astype("float32")).apply(x).backward()
print(x.grad.dtype)
""", "The engine casts it to the dtype of the input."),
    Rule(35, "For a list of Tensors backward returns a list.", """
layer(lambda ctx, xs: xs[0] + xs[1], lambda ctx, dy: dy).apply([leaf(1.0), leaf(1.0)]).backward()
"""),
    Rule(36, "Gradients of layers and of operations accumulate in `grad`; an earlier reference to it has the new value.", """
x = leaf(3.0)
Square.apply(x).backward()
handle = x.grad
(x * 10).backward()
print(handle.item(), x.grad.item())
"""),
    Rule(37, "backward of a Tensor with several elements starts from ones, unless a cotangent is given.", """
x = leaf(1.0, 2.0)
Square.apply(x).backward()
print(x.grad.tolist())
x.clear_grad()
Square.apply(x).backward(paddle.to_tensor([10.0, 1.0], dtype="float64"))
print(x.grad.tolist())
"""),
    Rule(38, "A second backward through a layer crashes the process, even with retain_graph. paddle.grad keeps the graph.", """
x = leaf(3.0)
y = Square.apply(x)
print(paddle.grad(y, x)[0].item(), paddle.grad(y, x)[0].item())
y.backward(retain_graph=True)
y.backward()
print(x.grad.item())
""", "With retain_graph the engine runs it; without, it raises RuntimeError naming the layer and the option.", True),
    Rule(39, "Gradients of layers can be differentiated again, to any order.", """
cube = layer(lambda ctx, x: (ctx.save_for_backward(x), x**3)[1], lambda ctx, dy: dy * 3 * ctx.saved_tensor()[0] ** 2)
x = leaf(2.0)
(g,) = paddle.grad(cube.apply(x), x, create_graph=True)
print(g.item(), paddle.grad(g, x)[0].item())
"""),
    Rule(40, "once_differentiable runs backward unrecorded: a second gradient does not find the input.", """
from importlib import import_module

once = paddle.autograd.py_layer.once_differentiable
L = layer(lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], once(lambda ctx, dy: dy * 2 * ctx.saved_tensor()[0]))
x = leaf(3.0)
(g,) = paddle.grad(L.apply(x), x, create_graph=True)
print(g.item())
paddle.grad(g, x)
"""),
    Rule(41, "A hook on an input may replace the gradient; the result of a hook on a layer's output is ignored.", """
x = leaf(1.0)
x.register_hook(lambda g: g * 10)
Square.apply(x).backward()
print(x.grad.item())
x = leaf(1.0)
y = Square.apply(x)
y.register_hook(lambda g: g * 10)
y.backward()
print(x.grad.item())
""", "The engine uses the result of a hook on an output as well."),
    Rule(42, "stop_gradient set on an output cuts the graph.", """
x = leaf(1.0)
y = Square.apply(x)
y.stop_gradient = True
(y * x).backward()
print(x.grad.item())
"""),
    Rule(43, "backward may change its cotangent in place.", """
x = leaf(3.0)
layer(lambda ctx, x: x * 2, lambda ctx, dy: dy.scale_(2.0)).apply(x).backward()
print(x.grad.item())
"""),
    Rule(44, "The context and the saved values are released after backward, or immediately if no gradient is needed.", """
import gc, weakref
kept = []
def forward(ctx, x):
    kept.append(weakref.ref(ctx))
    return x * 2
y = layer(forward, lambda ctx, dy: dy * 2).apply(leaf(1.0))
y.backward()
layer(forward, lambda ctx, dy: dy * 2).apply(paddle.to_tensor([1.0]))
del y
gc.collect()
print([one() is None for one in kept])
"""),
]  # fmt: skip
