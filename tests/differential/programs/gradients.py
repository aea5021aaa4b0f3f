"""backward and grad: what is kept, what is recorded, and with respect to what."""

from __future__ import annotations

from typing import Any

from programs.collected import Library, constant, leaf, product, program


# --------------------------------------------------------------------------- what is kept
@program
def grad_keeps_the_graph_for_backward(paddle: Library) -> Any:
    x = leaf(paddle, 2.0)
    y = x * x
    return [paddle.grad(y, x), y.backward(), x.grad]


@program
def grad_twice(paddle: Library) -> Any:
    x = leaf(paddle, 2.0)
    y = x * x
    return [paddle.grad(y, x), paddle.grad(y, x)]


@program
def grad_keeps_the_graph_even_when_told_not_to(paddle: Library) -> Any:
    x = leaf(paddle, 2.0)
    y = x * x
    return [paddle.grad(y, x, retain_graph=False), paddle.grad(y, x), y.backward(), x.grad]


@program
def grad_of_a_result_and_backward_of_another(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 3.0])
    h = x * x
    y, z = h * h, h * 3
    return [paddle.grad(y.sum(), h), z.sum().backward(), x.grad]


@program
def grad_through_a_layer_then_backward(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 3.0])
    y = product(paddle).apply(x, x)
    (g,) = paddle.grad(y, x)
    y.sum().backward()
    return [g, x.grad.numpy()]


@program
def backward_after_backward_kept(paddle: Library) -> Any:
    x = leaf(paddle, 2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def backward_twice(paddle: Library) -> Any:
    x = leaf(paddle, 2.0)
    y = x * x
    y.backward()
    y.backward()


@program
def gradients_add_up_and_are_cleared(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    found = []
    for _ in range(2):
        (x * x).sum().backward()
        found.append(x.grad.numpy())
    x.clear_grad()
    found.append(x.grad.numpy())
    x.clear_gradient(False)
    return [*found, x.grad]


# --------------------------------------------------------------------------- recorded gradients
@program
def the_gradient_of_a_linear_function_is_part_of_a_graph(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0])
    (dx,) = paddle.grad(3 * x, x, create_graph=True)
    return [dx, dx.sum().backward(), x.grad]


@program
def the_gradient_of_a_linear_function_has_none(paddle: Library) -> Any:
    x = leaf(paddle, 2.0)
    (dx,) = paddle.grad(3 * x, x, create_graph=True)
    return paddle.grad(dx, x, allow_unused=True)


@program
def the_gradient_of_a_linear_function_may_not_be_asked_for(paddle: Library) -> Any:
    x = leaf(paddle, 2.0)
    (dx,) = paddle.grad(3 * x, x, create_graph=True)
    return paddle.grad(dx, x)


@program
def recorded_gradients_of_a_leaf_itself(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0])
    return paddle.grad(x, x, create_graph=True)


@program
def recorded_gradients_of_a_relu(paddle: Library) -> Any:
    x = leaf(paddle, [-2.0, 1.0])
    return paddle.grad(paddle.nn.functional.relu(x), x, create_graph=True)


@program
def recorded_gradients_from_a_given_cotangent(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0])
    start = constant(paddle, [1.0, 10.0])
    return paddle.grad(x * x, x, start, create_graph=True)


@program
def a_cotangent_that_is_differentiated(paddle: Library) -> Any:
    x, v = leaf(paddle, [2.0, 1.0]), leaf(paddle, [1.0, 10.0])
    (g,) = paddle.grad(x * x, x, v, create_graph=True)
    return paddle.grad(g.sum(), [x, v])


@program
def third_order(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, -1.0])
    y, found = x * x * x * x, []
    for _ in range(3):
        (y,) = paddle.grad(y.sum(), x, create_graph=True)
        found.append(y.numpy())
    return found


@program
def a_gradient_penalty(paddle: Library) -> Any:
    x, w = leaf(paddle, [[1.0, -2.0]]), leaf(paddle, [[0.5], [1.5]])
    y = paddle.tanh(paddle.matmul(x, w))
    (g,) = paddle.grad(y, x, create_graph=True)
    loss = ((g**2).sum() - 1) ** 2
    loss.backward()
    return [loss.numpy(), w.grad, x.grad]


@program
def a_hessian_vector_product(paddle: Library) -> Any:
    x, v = leaf(paddle, [1.0, 2.0, 3.0]), constant(paddle, [1.0, 0.0, -1.0])
    (g,) = paddle.grad((x**3).sum() + (x[0] * x[1] * x[2]), x, create_graph=True)
    return paddle.grad((g * v).sum(), x)


# --------------------------------------------------------------------------- which inputs
@program
def an_input_that_no_output_depends_on(paddle: Library) -> Any:
    x, other = leaf(paddle, 2.0), leaf(paddle, 1.0)
    return paddle.grad(x * x, [x, other])


@program
def an_input_that_no_output_depends_on_allowed(paddle: Library) -> Any:
    x, other = leaf(paddle, 2.0), leaf(paddle, 1.0)
    return paddle.grad(x * x, [x, other], allow_unused=True)


@program
def nothing_flows_through_no_grad_vars(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0])
    a = x * x
    return paddle.grad(a * x, x, no_grad_vars=[a])


@program
def a_layer_gives_no_gradient_to_no_grad_vars(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0])
    a = x * 2
    return paddle.grad(product(paddle).apply(a, x), x, no_grad_vars=[a])


@program
def a_layer_that_returns_none_for_no_grad_vars(paddle: Library) -> Any:
    class FirstOnly(product(paddle)):  # type: ignore[misc]
        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * ctx.saved_tensor()[1], None

    x = leaf(paddle, [2.0, 1.0])
    a = x * 2
    return paddle.grad(FirstOnly.apply(x, a), x, no_grad_vars=[a])


@program
def the_output_among_no_grad_vars(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0])
    y = x * x
    return paddle.grad(y, x, no_grad_vars=[y])


@program
def several_outputs_and_inputs(paddle: Library) -> Any:
    x, y = leaf(paddle, [2.0, 1.0]), leaf(paddle, [3.0, 5.0])
    return paddle.grad([x * y, x + y], [x, y], [constant(paddle, [1.0, 2.0]), None])


@program
def grad_of_an_output_given_twice(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    y = x * 2
    return paddle.grad([y, y], x)


@program
def grad_for_an_input_given_twice(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    return paddle.grad(x * 2, [x, x])


@program
def gradients_that_are_the_same_are_two_tensors(paddle: Library) -> Any:
    x, y, g = leaf(paddle, [1.0, 2.0]), leaf(paddle, [3.0, 4.0]), leaf(paddle, [0.5, 0.25])
    dx, dy = paddle.grad(x + y, [x, y], g, create_graph=True)
    return [dx, dy, dx is dy, *paddle.grad([dx, dy], g)]
