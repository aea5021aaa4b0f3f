"""Changes in place: their versions, what they do to the graph, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from programs.collected import Library, constant, leaf, program

CHANGES: dict[str, Any] = {
    "add_": lambda x: x.add_(x), "cast_": lambda x: x.cast_("float32"), "cumprod_": lambda x: x.cumprod_(0),
    "cumsum_": lambda x: x.cumsum_(0), "flatten_": lambda x: x.flatten_(), "reshape_": lambda x: x.reshape_([4]),
    "scale_": lambda x: x.scale_(2.0), "squeeze_": lambda x: x.squeeze_(), "tanh_": lambda x: x.tanh_(),
    "transpose_": lambda x: x.transpose_([1, 0]), "unsqueeze_": lambda x: x.unsqueeze_(0), "zero_": lambda x: x.zero_(),
    "clip_": lambda x: x.clip_(0.0, 1.0), "fill_": lambda x: x.fill_(2.0), "lerp_": lambda x: x.lerp_(x * 2, 0.5),
    "masked_fill_": lambda x: x.masked_fill_(x > 2, 0.0), "tril_": lambda x: x.tril_(), "t_": lambda x: x.t_(),
    "multiply_": lambda x: x.multiply_(x), "subtract_": lambda x: x.subtract_(x), "uniform_": lambda x: x.uniform_(),
}  # fmt: skip


@program
def changes_are_counted(paddle: Library) -> Any:
    found = []
    for name, change in CHANGES.items():
        x = constant(paddle, [[1.0, 2.0], [3.0, 4.0]])
        change(x)
        change_once = x.inplace_version
        found.append([name, change_once, list(x.shape), str(x.dtype)])
    return found


@program
def changes_are_counted_one_by_one(paddle: Library) -> Any:
    x = constant(paddle, [1.0, 2.0])
    for _ in range(5):
        x.add_(x)
    x[0] = 3.0
    view = x.reshape([2, 1])
    x.cast_("float32")
    return [x.inplace_version, list(view.shape)]


def refusal(paddle: Library, change: Any) -> Any:
    """What is said of a change between forward and backward: from "received" on."""
    x = leaf(paddle, [1.0, 2.0])
    y = x * 2
    z = (y * y).sum()
    change(y)
    try:
        z.backward()
    except RuntimeError as error:
        return "received" + str(error).partition("received")[2].partition("snapshot:")[0]
    return x.grad


@program
def what_is_said_of_a_change(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    y = x * 2
    z = (y * y).sum()
    y.add_(y)
    found = []
    try:
        z.backward()
    except RuntimeError as error:
        found.append("received tensor_version:1 != wrapper_version_snapshot:0" in str(error))
    return found


@program
def what_is_said_of_changes_before_and_after(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    y = x * 2
    y.add_(y)
    y.scale_(2.0)
    z = (y * y).sum()
    y.add_(y)
    try:
        z.backward()
    except RuntimeError as error:
        return "received tensor_version:3 != wrapper_version_snapshot:2" in str(error)


@program
def a_saved_tensor_changed(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    y = x * 2
    z = (y * y).sum()
    y.add_(y)
    z.backward()


@program
def changes_that_harm_nobody(paddle: Library) -> Any:
    x = leaf(paddle, [1.0, 2.0])
    y = x * 2
    z = y + 1
    y.add_(constant(paddle, [1.0, 1.0]))
    (z.sum() + y.sum()).backward()
    return [y.detach(), x.grad]


@program
def a_cast_in_place_of_what_was_saved(paddle: Library) -> Any:
    return refusal(paddle, lambda y: y.cast_("float32"))


@program
def a_chain_of_changes(paddle: Library) -> Any:
    x = leaf(paddle, [0.5, 2.0])
    y = x * 1
    y.exp_().add_(constant(paddle, [1.0, 1.0])).scale_(3.0).sqrt_()
    y.sum().backward()
    return [y.detach(), y.inplace_version, x.grad]


@program
def a_leaf_changed(paddle: Library) -> Any:
    leaf(paddle, [1.0]).add_(constant(paddle, [1.0]))


@program
def a_leaf_changed_without_grad_mode(paddle: Library) -> Any:
    x = leaf(paddle, [1.0])
    with paddle.no_grad():
        x.add_(constant(paddle, [1.0]))
    (x * x).backward()
    return [x.detach(), x.stop_gradient, x.is_leaf, x.grad]


@program
def a_plus_equal_of_a_leaf(paddle: Library) -> Any:
    x = before = leaf(paddle, [1.0])
    x += 1
    x.sum().backward()
    return [x is before, before.grad]


@program
def elements_written(paddle: Library) -> Any:
    x, v = leaf(paddle, [[1.0, 2.0], [3.0, 4.0]]), leaf(paddle, [10.0, 20.0])
    y = x * 1
    y[0] = v * v
    y[1, 1] = 0.0
    (y * y).sum().backward()
    return [y.detach(), x.grad, v.grad]


@program
def views_share_their_memory(paddle: Library) -> Any:
    x = constant(paddle, [1.0, 2.0, 3.0, 4.0])
    bare = x.detach()
    x.add_(x)
    return [bare, x]


@program
def forms_in_place_by_keywords(paddle: Library) -> Any:
    one = paddle.ones([2, 2])
    found = paddle.addmm_(input=one, x=paddle.ones([2, 2]), y=paddle.ones([2, 2]), beta=2.0, alpha=3.0)
    return [found, found is one, paddle.tanh_(x=paddle.ones([2])), paddle.reshape_(x=paddle.ones([2]), shape=[2, 1])]


@program
def set_value_of_another_shape(paddle: Library) -> Any:
    constant(paddle, [1.0]).set_value(np.ones(2))
