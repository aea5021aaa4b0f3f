"""PyLayer, hooks, grad mode and static programs: what the release does where layer authors may meet it."""

from __future__ import annotations

from typing import Any

from programs.collected import Library, constant, doubled, layer_of, leaf, product, program


# --------------------------------------------------------------------------- dtypes of cotangents
def seen_by(paddle: Library, consistent: bool) -> Any:
    """The dtype of the cotangent that a layer sees, after one that returns it as float64; and the gradient."""
    seen = []

    def first(ctx: Any, x: Any) -> Any:
        ctx.set_grad_in_dtype_consistent(consistent)
        return x * 2

    def first_backward(ctx: Any, dy: Any) -> Any:
        seen.append(str(dy.dtype))
        return dy * 2

    first_layer = layer_of(paddle, first, first_backward)
    second = layer_of(paddle, lambda ctx, x: x * 3, lambda ctx, dy: (dy * 3).astype("float64"))
    x = leaf(paddle, [1.0, 2.0], "float32")
    second.apply(first_layer.apply(x)).sum().backward()
    return [seen, x.grad.numpy()]


@program
def a_cotangent_is_cast_for_a_layer(paddle: Library) -> Any:
    return seen_by(paddle, True)


@program
def a_cotangent_is_not_cast_for_a_layer_that_says_so(paddle: Library) -> Any:
    return seen_by(paddle, False)


# --------------------------------------------------------------------------- PyLayer
@program
def grad_mode_inside_a_layer(paddle: Library) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        seen.append(paddle.is_grad_enabled())
        y = x * 2
        seen.append(y.stop_gradient)
        return y

    def backward(ctx: Any, dy: Any) -> Any:
        seen.append(paddle.is_grad_enabled())
        return dy * 2

    x = leaf(paddle, [1.0])
    y = layer_of(paddle, forward, backward).apply(x)
    seen += [y.stop_gradient, y.is_leaf, paddle.is_grad_enabled()]
    paddle.grad(y, x, create_graph=True)
    y.backward()
    return seen


@program
def cotangents_that_a_layer_sees(paddle: Library) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, *cotangents: Any) -> Any:
        seen.extend((c.numpy(), c.stop_gradient) for c in cotangents)
        return cotangents[0] * 2

    x = leaf(paddle, [1.0, 2.0])
    a, _ = layer_of(paddle, lambda ctx, x: (x * 2, x * 3), backward).apply(x)
    (a * 5).sum().backward()
    return seen


@program
def a_layer_applied_twice_to_one_tensor(paddle: Library) -> Any:
    x = leaf(paddle, [2.0])
    product(paddle).apply(x, x).backward()
    return x.grad.numpy()


@program
def a_layer_with_keywords(paddle: Library) -> Any:
    layer = layer_of(paddle, lambda ctx, a, b, c: a + 2 * b + 3 * c, lambda ctx, dy: (dy, dy * 3, dy * 2))
    a, b, c = (leaf(paddle, [v]) for v in (1.0, 2.0, 3.0))
    layer.apply(a, c=c, b=b).backward()
    return [t.grad.numpy() for t in (a, b, c)]


@program
def a_layer_that_needs_no_gradient(paddle: Library) -> Any:
    x = constant(paddle, [1.0])
    y = doubled(paddle).apply(x)
    with paddle.no_grad():
        z = doubled(paddle).apply(leaf(paddle, [1.0]))
    return [y, z]


@program
def too_many_gradients(paddle: Library) -> Any:
    layer = layer_of(paddle, lambda ctx, x: x * 2, lambda ctx, dy: (dy, dy))
    layer.apply(leaf(paddle, [1.0])).backward()


@program
def a_gradient_that_is_a_number(paddle: Library) -> Any:
    layer = layer_of(paddle, lambda ctx, x: x * 2, lambda ctx, dy: 2.0)
    layer.apply(leaf(paddle, [1.0])).backward()


@program
def a_gradient_where_none_is_needed(paddle: Library) -> Any:
    product(paddle).apply(leaf(paddle, [1.0]), constant(paddle, [1.0])).backward()


@program
def forward_without_a_tensor(paddle: Library) -> Any:
    layer_of(paddle, lambda ctx, x: None, lambda ctx, dy: dy).apply(leaf(paddle, [1.0]))


@program
def forward_returns_its_input(paddle: Library) -> Any:
    layer_of(paddle, lambda ctx, x: x, lambda ctx, dy: dy).apply(leaf(paddle, [1.0]))


@program
def forward_is_missing(paddle: Library) -> Any:
    type("Nothing", (paddle.autograd.PyLayer,), {}).apply(leaf(paddle, [1.0]))


@program
def containers_of_outputs(paddle: Library) -> Any:
    x = leaf(paddle, [1.0])
    found = []
    for make in (lambda x: (x * 1,), lambda x: [x * 1, x * 2], lambda x: (x * 1, 5, None, "a"), lambda x: x * 1):
        out = layer_of(paddle, lambda ctx, x, make=make: make(x), lambda ctx, *dy: dy[0]).apply(x)
        found.append([type(out).__name__, len(out)])
    return found


@program
def the_second_order_through_a_layer(paddle: Library) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * 3 * x * x

    x = leaf(paddle, [2.0, -1.0])
    (g,) = paddle.grad(layer_of(paddle, forward, backward).apply(x).sum(), x, create_graph=True)
    return [g.numpy(), paddle.grad(g.sum(), x)]


# --------------------------------------------------------------------------- hooks
@program
def hooks_in_order(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    x.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    removed = x.register_hook(lambda g: g * 100)
    found = removed.remove()
    (x * x).sum().backward()
    return [found, x.grad.numpy()]


@program
def a_hook_on_a_result(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: g * 10)
    (y * y).sum().backward()
    return x.grad.numpy()


@program
def a_hook_where_gradients_stop(paddle: Library) -> Any:
    constant(paddle, [1.0]).register_hook(lambda g: g)


@program
def a_hook_seen_by_grad(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    x.register_hook(lambda g: g * 10)
    return [g.numpy() for g in paddle.grad((x * x).sum(), x)]


@program
def saved_tensors_packed(paddle: Library) -> Any:
    seen = []

    def pack(tensor: Any) -> Any:
        seen.append(list(tensor.shape))
        return tensor.numpy()

    x = leaf(paddle, [1.0, 2.0])
    with paddle.autograd.saved_tensors_hooks(pack, paddle.to_tensor):
        y = product(paddle).apply(x, x)
    y.sum().backward()
    return [seen, x.grad.numpy()]


# --------------------------------------------------------------------------- grad mode
@program
def no_grad_as_a_decorator(paddle: Library) -> Any:
    x = leaf(paddle, [1.0])

    @paddle.no_grad()
    def run() -> Any:
        return x * 2

    return [run(), paddle.is_grad_enabled()]


@program
def enable_grad_inside_no_grad(paddle: Library) -> Any:
    x = leaf(paddle, [1.0])
    with paddle.no_grad():
        with paddle.enable_grad():
            y = x * 2
        z = x * 2
    return [y, z]


# --------------------------------------------------------------------------- training
@program
def a_step_of_training(paddle: Library) -> Any:
    model = paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.ReLU(), paddle.nn.Linear(3, 1))
    for k, p in enumerate(model.parameters()):
        p.set_value(((paddle.arange(p.numel().item(), dtype="float32") + k).reshape(p.shape) % 5 - 2) / 3)
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    x, y = constant(paddle, [[1.0, -1.0], [0.5, 2.0]], "float32"), constant(paddle, [[1.0], [0.0]], "float32")
    losses = []
    for _ in range(4):
        loss = paddle.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.detach())
    return [*losses, *(p.detach() for p in model.parameters())]


# --------------------------------------------------------------------------- static programs
def built(paddle: Library, build: Any, **feed: Any) -> Any:
    """What a static program gives that `build` makes of the data `x`."""
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            x = paddle.static.data("x", [None, 2], "float32")
            x.stop_gradient = False
            found = build(x)
            return paddle.static.Executor(paddle.CPUPlace()).run(main, feed=feed, fetch_list=found)
    finally:
        paddle.disable_static()


FEED = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@program
def a_static_layer(paddle: Library) -> Any:
    import numpy as np

    def build(x: Any) -> Any:
        y = paddle.static.nn.static_pylayer(lambda a: a * a, [x], lambda dy: dy * 7)
        return [y, *paddle.static.gradients([y], [x])]

    return built(paddle, build, x=np.array(FEED, "float32"))


@program
def a_static_layer_of_a_tuple(paddle: Library) -> Any:
    return built(paddle, lambda x: paddle.static.nn.static_pylayer(lambda a: a, (x,), lambda dy: dy))


@program
def a_static_layer_of_a_bare_variable(paddle: Library) -> Any:
    return built(paddle, lambda x: paddle.static.nn.static_pylayer(lambda a: a, x, lambda dy: dy))


@program
def a_static_layer_in_dynamic_mode(paddle: Library) -> Any:
    paddle.static.nn.static_pylayer(lambda a: a, [leaf(paddle, [1.0])], lambda dy: dy)


@program
def a_static_layer_without_backward(paddle: Library) -> Any:
    return built(paddle, lambda x: paddle.static.nn.static_pylayer(lambda a: a * 2, [x]))
