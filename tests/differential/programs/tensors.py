"""Tensors: their flags, shapes, copies and memory."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from programs.collected import Library, constant, leaf, program


# --------------------------------------------------------------------------- shapes
@program
def a_shape_as_text(paddle: Library) -> Any:
    shape = paddle.ones([2, 3]).shape
    return [str(shape), repr(shape), f"{shape}", str(shape[:1]), str(paddle.ones([]).shape)]


@program
def a_shape_joined_to_lists_and_tuples(paddle: Library) -> Any:
    shape = paddle.ones([2, 3]).shape
    return [repr(shape + [1]), repr([1] + shape), repr((1,) + shape), repr(shape + (1,)), repr(shape * 2)]  # noqa: RUF005


@program
def a_shape_compared(paddle: Library) -> Any:
    shape = paddle.ones([2, 3]).shape
    return [shape == [2, 3], shape == (2, 3), shape == [2, 3], shape != (2, 3), isinstance(shape, list)]


@program
def a_shape_is_no_key(paddle: Library) -> Any:
    return hash(paddle.ones([2]).shape)


@program
def a_shape_unpacked(paddle: Library) -> Any:
    b, *rest = paddle.ones([2, 3, 4]).shape
    return [b, rest, paddle.zeros([b, -1 + rest[0]]).shape, np.prod(paddle.ones([2, 3]).shape)]


# --------------------------------------------------------------------------- flags
@program
def stop_gradient_none(paddle: Library) -> Any:
    x = constant(paddle, [1.0])
    x.stop_gradient = None
    return [x.stop_gradient, paddle.to_tensor([1.0], stop_gradient=None).stop_gradient]


@program
def stop_gradient_of_a_number(paddle: Library) -> Any:
    leaf(paddle, [1.0]).stop_gradient = 1


@program
def stop_gradient_cuts_a_graph(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    h = x * x
    h.stop_gradient = True
    (h * x).sum().backward()
    return x.grad


@program
def a_parameter_persists(paddle: Library) -> Any:
    weight = paddle.nn.Linear(2, 1).weight
    found = [weight.persistable, paddle.ones([1]).persistable, weight.stop_gradient, weight.trainable]
    weight.persistable = False
    return [*found, weight.persistable]


@program
def a_parameter_frozen(paddle: Library) -> Any:
    made = paddle.nn.Linear(2, 1)
    made.weight.stop_gradient = True
    made(paddle.ones([3, 2])).sum().backward()
    return [made.weight.trainable, made.weight.grad, made.bias.grad]


@program
def positions_need_a_gradient(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0, 3.0])
    found = [paddle.topk(x, 2), paddle.argsort(x), paddle.kthvalue(x, 1), paddle.count_nonzero(x)]
    return [*found, paddle.argmax(x), paddle.nonzero(x)]


@program
def positions_used_as_numbers(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0, 3.0])
    (paddle.argsort(x).astype("float64") * x).sum().backward()
    return x.grad


@program
def comparisons_need_no_gradient(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0])
    return [x > 1, x == x, paddle.isnan(x), paddle.floor(x), x.astype("int64"), x.detach()]


@program
def flags_of_gradients(paddle: Library) -> Any:
    x = leaf(paddle, [2.0, 1.0])
    h = x * x
    h.retain_grads()
    seen = []
    x.register_hook(lambda g: seen.append(g.stop_gradient))
    h.register_hook(lambda g: seen.append(g.stop_gradient))
    (h * x).sum().backward()
    return [x.grad, h.grad, seen, paddle.grad(x * x, x)]


# --------------------------------------------------------------------------- copies
@program
def a_layer_copied(paddle: Library) -> Any:
    made = paddle.nn.Linear(2, 1)
    made.weight.set_value(np.array([[1.0], [2.0]], "float32"))
    other = copy.deepcopy(made)
    made.weight.set_value(np.zeros((2, 1), "float32"))
    other(paddle.ones([1, 2])).sum().backward()
    same_name = other.weight.name == made.weight.name
    return [other.weight.detach(), other.weight.stop_gradient, other.weight.grad, made.weight.grad, same_name]


@program
def a_sequential_copied(paddle: Library) -> Any:
    made = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.Tanh())
    other = copy.deepcopy(made)
    x = paddle.ones([1, 2])
    return [bool((made(x) == other(x)).all()), other[0].weight is made[0].weight, len(other.parameters())]


@program
def a_result_copied(paddle: Library) -> Any:
    x = leaf(paddle, [1.0])
    return [copy.deepcopy(x * 2), copy.deepcopy(x), copy.deepcopy(constant(paddle, [1.0]))]


@program
def clone_detach_and_numpy(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    copied, bare, array = x.clone(), x.detach(), x.numpy()
    array[0] = 7
    (copied * 3).sum().backward()
    return [x.grad, bare, x.numpy(), copied.is_leaf]


# --------------------------------------------------------------------------- assign
@program
def assign_to_another_shape(paddle: Library) -> Any:
    x, y = leaf(paddle, [1.0, 2.0]), paddle.ones([3], "float64")
    found = paddle.assign(x * 2, y)
    y.sum().backward()
    return [found is y, list(y.shape), y.inplace_version, x.grad]


@program
def assign_to_another_dtype(paddle: Library) -> Any:
    y = paddle.ones([2], "float64")
    paddle.assign(paddle.zeros([2], "float32"), y)
    return y


@program
def assign_to_a_leaf(paddle: Library) -> Any:
    y = leaf(paddle, [1.0, 2.0])
    return paddle.assign(paddle.zeros([2], "float64"), y).stop_gradient


@program
def assign_an_array(paddle: Library) -> Any:
    return [paddle.assign(np.array([1.0, 2.0])), paddle.assign([1, 2]), paddle.assign(2.5)]


# --------------------------------------------------------------------------- dtypes
@program
def dtypes_that_go_together(paddle: Library) -> Any:
    f, d, i = paddle.ones([1]), paddle.ones([1], "float64"), paddle.ones([1], "int64")
    return [f + d, f * 2, i * 2, i * 2.5, i / 2, d * np.float32(2), f * np.float64(2), f + True]


@program
def dtypes_that_do_not(paddle: Library) -> Any:
    return paddle.ones([1], "int64") + paddle.ones([1])


@program
def a_cast_there_and_back(paddle: Library) -> Any:
    x = leaf(paddle, [1.5, 2.5])
    y = (x.astype("float32") * 2).astype("float64")
    y.sum().backward()
    return [y.detach(), x.grad]


@program
def integers_reduced(paddle: Library) -> Any:
    x = constant(paddle, [[1, 2], [3, 4]], "int32")
    return [x.sum(), x.mean(), x.max(), x.prod(), (x > 1).sum(), x.astype("bool").any()]
