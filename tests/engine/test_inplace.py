"""In-place forms: the memory changes, views see it, gradients stay right, and what cannot be is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle
from pylayer.ops.methods import CHANGES as VERSIONS
from pylayer.ops.methods import IN_PLACE, IN_PLACE_ANEW, IN_PLACE_VIEWS

t = paddle.to_tensor


def leaf(*values: float) -> Any:
    return t(list(values), dtype="float64", stop_gradient=False)


F64 = np.array([0.5, 0.25])
LOGICAL = [n for n in IN_PLACE if n.partition("_")[0] in ("equal", "greater", "less", "logical", "not")]
"""Those whose form with an underscore makes the Tensor bool."""
METHODS = [name for name in IN_PLACE if hasattr(paddle.Tensor, f"{name}_") and name not in LOGICAL]
"""The others have a form with an underscore among the functions alone."""
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **{n: (t(F64),) for n in ("add", "subtract", "multiply", "divide", "remainder", "mod", "floor_divide")},
    **{n: (t(F64),) for n in ("copysign", "floor_mod", "gammainc", "gammaincc", "hypot")},
    **{n: (t(F64),) for n in LOGICAL if n != "logical_not"},
    "pow": (2,), "scale": (2.0, 1.0), "clip": (0.3, 0.6), "lerp": (t(F64), 0.5), "cumprod": (0,), "cast": ("float32",),
    "masked_fill": (t([True, False]), 5.0), "index_add": (t([0]), 0, t(np.array([5.0]))),
    "index_fill": (t([0]), 0, 5.0), "index_put": ((t([0]),), t(np.array([5.0]))),
    "scatter": (t([0]), t(np.array([5.0]))), "put_along_axis": (t([0]), 5.0, 0),
    "fill_diagonal_tensor": (t(F64),),
    "masked_scatter": (t([True, False]), t(F64)), "polygamma": (1,),
    "scatter_add": (0, t([0, 1]), t(F64)),
    "reshape": ([2, 1],), "transpose": ([0],), "unsqueeze": (0,),
}  # fmt: skip
OTHER_INPUTS: dict[str, Any] = {
    **{n: t([6, 3]) for n in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_invert")},
    **{n: t([6, 3]) for n in ("bitwise_left_shift", "bitwise_right_shift")},
    "acosh": t(F64 + 1.5), "fill_diagonal_tensor": t(np.ones((2, 2))), "addmm": t(np.ones((2, 2))),
    "tril": t(np.ones((2, 2))), "triu": t(np.ones((2, 2))),
}  # fmt: skip
OTHER_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **{n: (t([3, 5]),) for n in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{n: (t([3, 5]),) for n in ("bitwise_left_shift", "bitwise_right_shift")},
    "addmm": (t(np.ones((2, 2))), t(np.ones((2, 2)))),
}


def sample(name: str) -> tuple[Any, tuple[Any, ...]]:
    return OTHER_INPUTS.get(name, t(F64)).clone(), OTHER_ARGUMENTS.get(name, ARGUMENTS.get(name, ()))


# --------------------------------------------------------------------------- values, memory
@pytest.mark.parametrize("name", [*METHODS, *LOGICAL, *IN_PLACE_ANEW, *IN_PLACE_VIEWS])
def test_the_result_is_that_of_the_form_without_underscore(name: str) -> None:
    x, arguments = sample(name)
    paddle.seed(1)
    wanted = getattr(x, name)(*arguments)
    paddle.seed(1)
    assert getattr(x, f"{name}_")(*arguments) is x
    assert (x.shape, x.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(x.numpy(), wanted.numpy())


@pytest.mark.parametrize("name", METHODS)
def test_detached_tensors_and_views_see_the_change(name: str) -> None:
    x, arguments = sample(name)
    detached, view = x.detach(), x.reshape([-1])
    getattr(x, f"{name}_")(*arguments)
    np.testing.assert_array_equal(detached.numpy(), x.numpy())
    np.testing.assert_array_equal(view.numpy(), x.numpy().reshape(-1))
    assert x.inplace_version == VERSIONS.get(name, 1)


def test_a_change_through_a_view_reaches_the_tensor() -> None:
    x = paddle.zeros([2, 2])
    x[0].fill_(7.0)
    x[:, 1].add_(t([1.0, 1.0]))
    assert x.tolist() == [[7.0, 8.0], [0.0, 1.0]]


def test_a_reshape_in_place_keeps_the_memory() -> None:
    x = t([1.0, 2.0])
    detached = x.detach()
    x.reshape_([2, 1]).add_(t([[1.0], [1.0]]))
    assert (x.shape, detached.shape, detached.tolist()) == ([2, 1], [2], [2.0, 3.0])


def test_augmented_assignment_makes_a_new_tensor() -> None:
    x = y = t([1.0])
    x += 1
    assert (x.tolist(), y.tolist()) == ([2.0], [1.0])


# --------------------------------------------------------------------------- gradients
NO_GRADIENT = ("bernoulli", "floor_divide", "gammainc", "gammaincc")
DIFFERENTIABLE = [n for n in METHODS if not n.startswith("bitwise") and n not in NO_GRADIENT]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_those_of_the_form_without_underscore(name: str) -> None:
    start, arguments = sample(name)

    def gradient(form: str) -> Any:
        w = start.clone()
        w.stop_gradient = False
        y = getattr(w * 1, form)(*arguments)
        return paddle.grad((y * y).sum(), [w])[0].numpy()

    np.testing.assert_array_equal(gradient(f"{name}_"), gradient(name))


def test_a_chain_of_changes_is_differentiated_in_full() -> None:
    w = leaf(0.5, 2.0)
    y = w * 3
    y.square_().tanh_().exp_()
    u = leaf(0.5, 2.0)
    wanted = paddle.grad(paddle.exp(paddle.tanh(paddle.square(u * 3))).sum(), [u])[0]
    np.testing.assert_allclose(paddle.grad(y.sum(), [w])[0].numpy(), wanted.numpy(), rtol=1e-14)


def test_a_tensor_outside_the_graph_enters_it() -> None:
    w, x = leaf(0.5, 2.0), t(np.array([3.0, 4.0]))
    x.multiply_(w)
    assert (x.stop_gradient, x.is_leaf) == (False, False)
    assert paddle.grad(x.sum(), [w])[0].tolist() == [3.0, 4.0]


@pytest.mark.parametrize("change", [lambda y: y.fill_(2.0), lambda y: y.zero_()], ids=["fill_", "zero_"])
def test_a_filled_tensor_passes_a_gradient_of_zero(change: Any) -> None:
    w = leaf(0.5, 2.0)
    y = w * 3
    change(y)
    y.sum().backward()
    assert w.grad.tolist() == [0.0, 0.0]


def test_an_assigned_element_takes_the_gradient_of_its_place() -> None:
    w, v = leaf(1.0, 2.0, 3.0), leaf(5.0)
    y = w * w
    y[1] = v[0] * 2
    assert [g.tolist() for g in paddle.grad((y * y).sum(), [w, v])] == [[4.0, 0.0, 108.0], [40.0]]


def test_a_saved_tensor_that_was_changed_is_an_error() -> None:
    w = leaf(0.5, 2.0)
    y = w * 3
    z = y * y
    y.add_(t(np.ones(2)))
    with pytest.raises(RuntimeError, match=r"multiply has been modified by an inplace operation.*tensor_version:1"):
        z.sum().backward()


def test_an_operand_that_is_the_tensor_itself_counts_as_changed() -> None:
    y = leaf(0.5, 2.0) * 3
    y.multiply_(y)
    with pytest.raises(RuntimeError, match="multiply has been modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    "make",
    [
        lambda: paddle.to_tensor(np.ones((3, 2)).T),
        lambda: paddle.ones([2, 3])[:, paddle.to_tensor([2, 0, 1])],
        lambda: paddle.index_select(paddle.ones([2, 3]), paddle.to_tensor([2, 0, 1]), 1),
    ],
    ids=["to_tensor", "x[:, i]", "index_select"],
)
def test_a_reshaped_new_tensor_shares_its_memory_whatever_it_was_made_of(make: Any) -> None:
    x = make()
    flat = x.reshape([-1])
    x.zero_()
    np.testing.assert_array_equal(flat.numpy(), np.zeros(6))


READ_IN_BACKWARD: dict[str, Any] = {
    "x[i]": lambda x, i: x[i],
    "x[i, i]": lambda x, i: x[i, i],
    "x[:, i]": lambda x, i: x[:, i],
    "gather": lambda x, i: paddle.gather(x, i),
    "gather_nd": lambda x, i: paddle.gather_nd(x, i),
    "index_select": lambda x, i: paddle.index_select(x, i),
    "index_add": lambda x, i: paddle.index_add(x * 1, i, 0, x),
    "index_put": lambda x, i: paddle.index_put(x, (i,), x[0]),
}


@pytest.mark.parametrize("function", READ_IN_BACKWARD.values(), ids=READ_IN_BACKWARD)
def test_indices_that_are_changed_before_backward_are_an_error(function: Any) -> None:
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    i = paddle.to_tensor([1, 0], "int32")
    out = function(x, i)
    i.scale_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_leaf_assigned_to_itself_stays_one() -> None:
    x = paddle.to_tensor([3.0], stop_gradient=False)
    assert paddle.assign(x, x) is x
    (x * x).backward()
    assert x.grad.item() == 6.0


# --------------------------------------------------------------------------- leaves and grad mode
CHANGES = {
    "add_": lambda x: x.add_(t(np.ones(2))), "fill_": lambda x: x.fill_(1.0), "zero_": lambda x: x.zero_(),
    "setitem_": lambda x: x.__setitem__(0, 1.0), "reshape_": lambda x: x.reshape_([2, 1]),
    "set_": lambda x: x.set_(t(np.ones(2))), "clip_": lambda x: x.clip_(0.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_leaf_that_needs_a_gradient_cannot_be_changed(change: Any) -> None:
    with pytest.raises(ValueError, match=r"Leaf Var \(.*\) that doesn't stop gradient can't use inplace strategy"):
        change(leaf(0.5, 2.0))


@pytest.mark.parametrize(
    "change", [CHANGES[n] for n in CHANGES if n != "set_"], ids=[n for n in CHANGES if n != "set_"]
)
def test_without_grad_mode_it_can_and_stays_a_leaf_that_needs_one(change: Any) -> None:
    w = leaf(0.5, 2.0)
    with paddle.no_grad():
        change(w)
    assert (w.stop_gradient, w.is_leaf) == (False, True)
    (w * w).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * w.numpy())


def test_without_grad_mode_a_result_keeps_its_place_in_the_graph() -> None:
    w = leaf(0.5, 2.0)
    y = w * 3
    with paddle.no_grad():
        y.add_(t(np.ones(2)))
    (y * y).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * y.numpy() * 3)


# --------------------------------------------------------------------------- what does not fit
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: t([1.0, 2.0]).add_(t([[1.0], [2.0]])), ValueError, r"add_\(\): the result has shape .*\[2, 2\]"),
        (lambda: t([1.0]).fill_([3.0]), TypeError, r"'value' must be int or float, but received list"),
        (lambda: t([1.0]).set_(np.ones(1)), ValueError, r"set_\(\): argument 'source' .* must be Tensor, .* ndarray"),
        (lambda: t([1.0]).set_value([1.0]), AssertionError, "must be a Tensor or an array, but got list"),
        (lambda: t([1.0]).set_value(np.ones(1)), AssertionError, "dtype not match.*float32 but load .* float64"),
        (lambda: t([1.0]).set_value(t([1.0, 2.0])), AssertionError, r"Shape not match.*\[1\].* but load .*\[2\]"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_dtype_of_the_result_is_taken_as_the_release_takes_it() -> None:
    wide = t([1.0]).add_(t([0.1], dtype="float64"))
    assert (wide.dtype.name, wide.tolist()) == ("float64", [pytest.approx(1.1)])
    assert t([1, 2]).divide_(t([2, 2])).dtype.name == "float32"
    assert t([3, 2]).scale_(0.5).tolist() == [0, 0]


# --------------------------------------------------------------------------- set_, set_value, detach_
def test_set_shares_the_memory_of_the_source() -> None:
    x, source = t([1.0]), t([[7.0, 8.0]])
    assert x.set_(source) is x
    source.add_(t([[1.0, 1.0]]))
    assert (x.shape, x.tolist()) == ([1, 2], [[8.0, 9.0]])
    assert t(3.0).set_().shape == [0]


def test_set_takes_the_place_of_the_source_in_the_graph() -> None:
    w, v = leaf(1.0), leaf(5.0)
    y = w * 3
    y.set_(v * 2)
    assert [g and g.tolist() for g in paddle.grad(y.sum(), [w, v], allow_unused=True)] == [None, [2.0]]


@pytest.mark.parametrize("value", [np.array([9.0, 9.0]), t(np.array([9.0, 9.0]))], ids=["array", "Tensor"])
def test_set_value_writes_into_a_parameter(value: Any) -> None:
    w = leaf(0.5, 2.0)
    detached = w.detach()
    w.set_value(value)
    assert (w.stop_gradient, w.is_leaf, detached.tolist()) == (False, True, [9.0, 9.0])


def test_detach_in_place_makes_a_leaf() -> None:
    y = leaf(0.5) * 3
    assert y.detach_() is y
    assert (y.is_leaf, y.stop_gradient) == (True, True)


def test_a_freed_tensor_reads_as_nan_and_leaves_views_and_gradients_as_they_are() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    shared, product = y.detach(), y * 3
    y._clear_dataptr()
    assert np.isnan(y.numpy()).all()
    assert shared.tolist() == [1, 4]
    product.sum().backward()
    assert x.grad.tolist() == [6, 12]
