"""Rules 45 to 71: the context, and static programs."""

from __future__ import annotations

from observed.rule import Rule

RULES = [
    Rule(45, "save_for_backward may be called again; the last call counts.", """
def forward(ctx, x):
    ctx.save_for_backward(x)
    ctx.save_for_backward(x * 10)
    return x * 2

x = leaf(1.0)
layer(forward, lambda ctx, dy: ctx.saved_tensor()[0]).apply(x).backward()
print(x.grad.item())
""", "The documents say at most once, and only in forward: the engine raises RuntimeError."),
    Rule(46, "saved_tensor returns the saved tuple with the same Tensor objects; None if nothing was saved.", """
def backward(ctx, dy):
    found = ctx.saved_tensor()
    print(type(found).__name__, found[0] is x)
    return dy

x = leaf(1.0)
layer(lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], backward).apply(x).backward()
layer(lambda ctx, x: x * 2, lambda ctx, dy: (print(ctx.saved_tensor()), dy)[1]).apply(x).backward()
"""),
    Rule(47, "An in-place change of a Tensor that a layer saved is not detected.", """
x = leaf(3.0) * 1
y = Square.apply(x)
x.add_(paddle.to_tensor([10.0], dtype="float64"))
y.backward()
print("taken")
""", "The engine raises RuntimeError, as for operations."),
    Rule(48, "container holds the saved values and may be set; any attribute may be set.", """
def forward(ctx, x):
    ctx.container = (x * 5,)
    ctx.scale = 2
    return x * 2

x = leaf(1.0)
layer(forward, lambda ctx, dy: dy * ctx.scale * ctx.saved_tensor()[0]).apply(x).backward()
print(x.grad.item())
"""),
    Rule(49, "mark_not_inplace lets forward return its input; the output is a leaf without a graph.", """
def forward(ctx, x):
    ctx.mark_not_inplace(x)
    return x

x = leaf(3.0)
h = x * 2
y = layer(forward, lambda ctx, dy: dy * 10).apply(h)
y.sum().backward()
print(y is h, x.grad)
""", "The documents' example has a gradient: in the engine the new Tensor continues the graph."),
    Rule(50, "A marked output needs no gradient; backward gets zeros of its shape and dtype for it.", """
def forward(ctx, x):
    i = (x > 0).astype("int64")
    ctx.mark_non_differentiable(i)
    return x * 2, i

y, i = layer(forward, lambda ctx, dy, di: (print(di.dtype, di.tolist()), dy)[1]).apply(leaf(1.0))
print(i.stop_gradient)
y.backward()
"""),
    Rule(51, "set_materialize_grads(False) gives None for an unused output; it accepts only a bool.", """
def forward(ctx, x):
    ctx.set_materialize_grads(False)
    return x * 2, x * 3

layer(forward, lambda ctx, a, b: (print(b), a)[1]).apply(leaf(1.0))[0].backward()
layer(lambda ctx, x: ctx.set_materialize_grads(1), None).apply(leaf(1.0))
"""),
    Rule(52, "Cotangents are cast to the dtype of the outputs unless set_grad_in_dtype_consistent(False).", """
def run(consistent):
    def forward(ctx, x):
        ctx.set_grad_in_dtype_consistent(consistent)
        return x * 2

    first = layer(forward, lambda ctx, dy: (print(dy.dtype), dy * 2)[1])
    second = layer(lambda ctx, x: x * 3, lambda ctx, dy: dy.astype("float32"))
    second.apply(first.apply(leaf(1.0))).backward()

run(True)
run(False)
"""),
    Rule(53, "saved_tensors_hooks pack each Tensor when it is saved and unpack it when it is read.", """
seen = []
with paddle.autograd.saved_tensors_hooks(lambda t: (seen.append("pack"), t)[1], lambda t: (seen.append("unpack"), t)[1]):
    y = Square.apply(leaf(3.0))
y.backward()
print(seen)
"""),
    Rule(55, "static_pylayer works only in static mode.", """
paddle.static.nn.static_pylayer(lambda x: x, [leaf(1.0)], lambda dy: dy)
"""),
    Rule(56, "static_pylayer's inputs are a list; a tuple or a Variable is refused.", """
build(lambda x: pylayer(lambda a: a * 2, (x,), lambda dy: dy))
"""),
    Rule(57, "static_pylayer's functions must be callable.", """
build(lambda x: pylayer(3, [x], lambda dy: dy))
"""),
    Rule(58, "Without a backward_fn no input may need a gradient.", """
build(lambda x: pylayer(lambda a: a * 2, [x]))
"""),
    Rule(59, "static_pylayer returns the outputs of forward_fn, flattened to a list.", """
def make(x):
    out = pylayer(lambda a: (a * 2, [a * 3, a * 4]), [x], lambda *dy: dy[0])
    print(type(out).__name__, len(out))
    return list(out)[:1]

build(make)
""", "The engine keeps the structure, as the document says."),
    Rule(60, "forward_fn runs once while the program is built, backward_fn once per call of gradients.", """
def make(x):
    y = pylayer(lambda a: (print("forward"), a * 2)[1], [x], lambda dy: (print("backward"), dy * 2)[1])
    print("built")
    return gradients([y], [x])

build(make)
"""),
    Rule(61, "backward_fn returns as many gradients as there are inputs.", """
build(lambda x: gradients([pylayer(lambda a: a * 2, [x], lambda dy: (dy, dy))], [x]))
"""),
    Rule(62, "A gradient of another dtype or shape than its input is refused.", """
build(lambda x: gradients([pylayer(lambda a: a * 2, [x], lambda dy: dy.astype("float64"))], [x]))
"""),
    Rule(63, "An unused output reaches backward_fn as zeros.", """
def make(x):
    y, _ = pylayer(lambda a: (a * 2, a * 3), [x], lambda a, b: a * 2 + b * 100 + 1000)
    return gradients([y], [x])

print(build(make)[0][0].tolist())
"""),
    Rule(64, "None for an input that needs a gradient is refused.", """
def make(x):
    w = paddle.static.data("w", [2], "float32")
    w.stop_gradient = False
    return gradients([pylayer(lambda a, b: a * b, [x, w], lambda dy: (None, dy.sum(0)))], [x])

build(make)
"""),
    Rule(65, "backward_fn may use a Variable from outside.", """
print(build(lambda x: gradients([pylayer(lambda a: a * a, [x], lambda dy: dy * 2 * x)], [x]))[0][0].tolist())
"""),
    Rule(66, "Layers in a chain are differentiated one by one.", """
def make(x):
    y = pylayer(lambda a: a * 2, [x], lambda dy: dy * 30)
    return gradients([pylayer(lambda a: a * 2, [y], lambda dy: dy * 50)], [x])

print(build(make)[0][0].tolist())
"""),
    Rule(68, "In static mode outputs need a gradient if one of the inputs does.", """
def make(x):
    y = pylayer(lambda t: t * 2, [x], lambda dy: dy * 2)
    x.stop_gradient = True
    z = pylayer(lambda t: t * 2, [x], lambda dy: dy * 2)
    print(y.stop_gradient, z.stop_gradient)
    return [y]

build(make)
"""),
    Rule(69, "static.data has stop_gradient True; None and -1 are sizes that are known in the run.", """
paddle.enable_static()
x = paddle.static.data("x", [None, 2], "float32")
print(x.stop_gradient, list(x.shape))
paddle.static.data("y", [1], "floaty")
"""),
    Rule(70, "Executor.run takes a dict of feeds, ignores unknown names, and refuses a wrong dtype.", """
print(build(lambda x: [x * 2], np.ones((1, 2), "float32"))[0].tolist())
build(lambda x: [x * 2], np.ones((1, 2), "int64"))
"""),
    Rule(71, "static.gradients returns a list, with None for inputs that the targets do not depend on.", """
def make(x):
    print(gradients(x * 2, x * 3))
    return gradients(x * 2, x)

print(build(make)[0][0].tolist())
"""),
    Rule(54, "In backward, the context's name is that of the node.", """
def backward(ctx, dy):
    print(ctx.name())
    return dy
layer(lambda ctx, x: x * 2, backward).apply(leaf(1.0)).backward()
"""),
]  # fmt: skip
