"""What backward and grad are given: cotangents of other shapes, arguments of other kinds, NaN and infinities."""

from __future__ import annotations

from typing import Any

from programs.collected import Library, constant, doubled, leaf, program


# --------------------------------------------------------------------------- cotangents
@program
def a_cotangent_of_shape_1_for_a_number(paddle: Library) -> Any:
    x = leaf(paddle, 2.0)
    return float(paddle.grad([paddle.sin(x)], [x], [constant(paddle, [5.0])])[0])


@program
def a_number_as_cotangent_of_shape_1(paddle: Library) -> Any:
    x = leaf(paddle, [2.0])
    paddle.autograd.backward([paddle.sin(x)], [constant(paddle, 5.0)])
    return float(x.grad.sum())


@program
def a_cotangent_with_axes_of_size_1(paddle: Library) -> Any:
    x = leaf(paddle, [[2.0], [1.0]])
    paddle.autograd.backward([paddle.sin(x)], [constant(paddle, [1.0, 10.0])])
    return x.grad.numpy().reshape(-1)


@program
def a_cotangent_of_another_shape_for_backward(paddle: Library) -> Any:
    (leaf(paddle, 2.0) * 2).backward(constant(paddle, [1.0]))


@program
def too_many_cotangents(paddle: Library) -> Any:
    x = leaf(paddle, [2.0])
    return paddle.grad([x * x], [x], [x, x])


@program
def no_cotangents_are_ones(paddle: Library) -> Any:
    x = leaf(paddle, [2.0])
    return paddle.grad([x * x], [x], [])


@program
def cotangents_that_are_numbers(paddle: Library) -> Any:
    x = leaf(paddle, [2.0])
    return paddle.grad([x * x], [x], [3.0])


@program
def backward_of_a_number(paddle: Library) -> Any:
    paddle.autograd.backward(3)


@program
def backward_of_nothing(paddle: Library) -> Any:
    paddle.autograd.backward([])


@program
def backward_of_the_same_twice(paddle: Library) -> Any:
    y = leaf(paddle, [2.0]) * 2
    paddle.autograd.backward([y, y])


@program
def grad_of_none(paddle: Library) -> Any:
    return paddle.grad(None, leaf(paddle, [2.0]))


@program
def grad_of_none_among_outputs(paddle: Library) -> Any:
    return paddle.grad([None], leaf(paddle, [2.0]))


@program
def grad_with_respect_to_nothing(paddle: Library) -> Any:
    return paddle.grad(leaf(paddle, [2.0]) * 2, [])


@program
def a_switch_that_is_no_bool(paddle: Library) -> Any:
    x = leaf(paddle, [2.0])
    return paddle.grad(x * 2, x, create_graph=1)


@program
def only_inputs_false(paddle: Library) -> Any:
    x = leaf(paddle, [2.0])
    return paddle.grad(x * 2, x, only_inputs=False)


@program
def backward_of_what_needs_no_gradient(paddle: Library) -> Any:
    x = constant(paddle, [2.0])
    (x * 2).backward()
    return x.grad


# --------------------------------------------------------------------------- NaN and infinities
def cotangents_of(paddle: Library, function: Any, start: float) -> Any:
    """The gradient of `function` at -1, 0 and 1 for this cotangent."""
    x = leaf(paddle, [-1.0, 0.0, 1.0])
    y = function(x)
    y.backward(constant(paddle, [start] * 3))
    return x.grad


@program
def a_nan_cotangent_passes_relu(paddle: Library) -> Any:
    return cotangents_of(paddle, paddle.nn.functional.relu, float("nan"))


@program
def an_infinite_cotangent_passes_relu(paddle: Library) -> Any:
    return cotangents_of(paddle, paddle.nn.functional.relu, float("inf"))


@program
def a_nan_cotangent_passes_relu6_and_hardtanh(paddle: Library) -> Any:
    f = paddle.nn.functional
    return [cotangents_of(paddle, function, float("nan")) for function in (f.relu6, f.hardtanh, f.leaky_relu, f.elu)]


@program
def relu_of_nan(paddle: Library) -> Any:
    x = leaf(paddle, [float("nan"), 1.0])
    y = paddle.nn.functional.relu(x)
    y.backward()
    return [y, x.grad]


@program
def slopes_at_zero(paddle: Library) -> Any:
    found = []
    for function in (paddle.sqrt, paddle.abs, paddle.sign, lambda x: x**0.5, lambda x: 1 / x, paddle.log):
        x = leaf(paddle, [0.0])
        function(x).backward()
        found.append(x.grad.numpy())
    return found


@program
def a_layer_in_the_middle(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, -2.0])
    y = paddle.exp(doubled(paddle).apply(paddle.sin(x)))
    y.sum().backward()
    return [y.detach(), x.grad]
