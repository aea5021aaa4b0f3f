"""Products of matrices and vectors: values against NumPy, and what each function refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle

t = paddle.to_tensor
rng = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return rng.standard_normal(shape)


# --------------------------------------------------------------------------- values
@pytest.mark.parametrize(
    ("x", "y"),
    [((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (3, 3, 2)),
     ((0, 3), (3, 2)), ((2, 0), (0, 3))],
)  # fmt: skip
def test_matmul(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    a, b = normal(*x), normal(*y)
    for out in (paddle.matmul(t(a), t(b)), t(a) @ t(b), t(a).matmul(t(b))):
        assert out.shape == list((a @ b).shape)
        np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-13)


@pytest.mark.parametrize("transpose_x", [False, True])
@pytest.mark.parametrize("transpose_y", [False, True])
def test_matmul_transposes(transpose_x: bool, transpose_y: bool) -> None:
    a, b = normal(2, 3, 4), normal(4, 5)
    x = a.swapaxes(-1, -2) if transpose_x else a
    y = b.T if transpose_y else b
    np.testing.assert_allclose(paddle.matmul(t(x), t(y), transpose_x, transpose_y).numpy(), a @ b, rtol=1e-13)


@pytest.mark.parametrize(
    ("name", "shapes", "wanted"),
    [
        ("mm", [(2, 3), (3, 4)], np.matmul),
        ("mv", [(2, 3), (3,)], np.matmul),
        ("bmm", [(2, 2, 3), (2, 3, 4)], np.matmul),
        ("dot", [(3,), (3,)], np.dot),
        ("dot", [(2, 3), (2, 3)], lambda x, y: (x * y).sum(-1)),
        ("inner", [(2, 3), (4, 3)], np.inner),
        ("inner", [(), (3,)], np.inner),
        ("outer", [(2, 3), (2,)], np.outer),
        ("addmm", [(2, 4), (2, 3), (3, 4)], lambda i, x, y: i + x @ y),
        ("addmm", [(4,), (2, 3), (3, 4)], lambda i, x, y: i + x @ y),
    ],
)
def test_products(name: str, shapes: list[tuple[int, ...]], wanted: Any) -> None:
    values = [normal(*shape) for shape in shapes]
    out = getattr(paddle, name)(*(t(v) for v in values))
    np.testing.assert_allclose(out.numpy(), wanted(*values), rtol=1e-13)


def test_addmm_scales() -> None:
    one = paddle.ones([2, 2])
    assert paddle.addmm(one, one, one, beta=0.5, alpha=2.0).tolist() == [[4.5, 4.5], [4.5, 4.5]]


def test_transposes() -> None:
    x = t(normal(2, 3))
    for out in (paddle.t(x), x.t(), x.T, x.mT):
        np.testing.assert_array_equal(out.numpy(), x.numpy().T)
    assert paddle.t(t([1.0, 2.0])).shape == [2]
    assert t(normal(2, 3, 4)).T.shape == [4, 3, 2]
    assert t(normal(2, 3, 4)).mT.shape == [2, 4, 3]


# --------------------------------------------------------------------------- what is refused
ones = paddle.ones


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paddle.matmul(ones([2, 3]), ones([2, 3])), r"matmul\(\).*\(shapes \[2, 3\], \[2, 3\]\)"),
        (lambda: paddle.matmul(t(1.0), ones([2])), r"matmul\(\): the inputs need at least one dimension each"),
        (lambda: ones([2]) @ 2, r"matmul\(\): the inputs need at least one dimension each"),
        (lambda: paddle.matmul(ones([2]), [1.0, 1.0]), r"matmul\(\): argument \(position 1\) must be Tensor, .* list"),
        (lambda: paddle.bmm(ones([2, 3]), ones([3, 2])), r"bmm\(\): the inputs must be 3-D"),
        (lambda: paddle.bmm(ones([2, 1, 3]), ones([1, 3, 4])), r"bmm\(\).*same batch size.*\[1, 3, 4\]"),
        (lambda: paddle.mv(ones([2, 2, 2]), ones([2])), r"mv\(\): The rank of input X should be 2 and that of Vec 1"),
        (lambda: paddle.mv(ones([2, 2]), ones([2, 2])), r"mv\(\): The rank"),
        (lambda: paddle.addmm(t(1.0), ones([2, 2]), ones([2, 2])), r"addmm\(\): .*input 1-D or 2-D"),
        (lambda: paddle.addmm(ones([2, 2]), ones([2, 2, 2]), ones([2, 2])), r"addmm\(\): x and y must be 2-D"),
        (lambda: paddle.addmm(ones([3, 2]), ones([1, 2]), ones([2, 2])), r"is not broadcastable .*\[3, 2\] .*\[1, 2\]"),
        (lambda: paddle.t(ones([1, 2, 3])), r"t\(\): the input must have at most 2 dimensions"),
        (lambda: ones([1]).mT, r"Tensor.ndim\(1\) is required to be greater than or equal to 2"),
        (
            lambda: t(normal(5, 3)) @ t(normal(2, 3)),
            r"matmul\(\): Dimension mismatch: the sizes 3 and 2 must be equal \(shapes \[5, 3\], \[2, 3\]\)",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("shapes", [([2], [1]), ([1, 2], [2])])
def test_a_dot_product_of_different_shapes_is_refused_as_the_release_does(shapes: Any) -> None:
    with pytest.raises(RuntimeError, match=r"dot\(\): ShapeError"):
        paddle.dot(ones(shapes[0]), ones(shapes[1]))


@pytest.mark.parametrize(
    "call",
    [paddle.matmul, paddle.mm, paddle.dot, lambda x, y: paddle.einsum("i,i", x, y)],
    ids=["matmul", "mm", "dot", "einsum"],
)
def test_the_functions_do_not_promote_as_the_operator_does(call: Any) -> None:
    x, y = t([1.0, 2.0]), t([1.0, 2.0], dtype="float64")
    with pytest.raises(ValueError, match=r"retrieve \(float32\) does not match the type of data \(float64\)"):
        call(x, y)
    assert (x @ y).dtype.name == "float64"


# --------------------------------------------------------------------------- einsum
EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ba", (2, 3)), ("ij->", (2, 3)),
    ("ij->j", (2, 3)), ("i,j->ij", (2,), (3,)), ("i,i", (3,), (3,)), ("...ij,...jk->...ik", (2, 2, 3), (3, 4)),
    ("...j->...", (2, 3)), ("...,...->...", (2,), (3, 1)), ("bij,bjk,k->bi", (2, 3, 2), (2, 2, 3), (3,)),
    ("ii", (3, 3)), ("ii->i", (3, 3)), ("iji->j", (2, 3, 2)), ("iii", (2, 2, 2)), ("ii,i->", (3, 3), (3,)),
    ("...ii->...i", (2, 3, 3)), ("->", ()), (" i j , j -> i ", (2, 3), (3,)),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS], ids=str)
def test_einsum_values_and_gradients(equation: str, shapes: list[tuple[int, ...]]) -> None:
    values = [normal(*shape) for shape in shapes]
    xs = [t(v, stop_gradient=False) for v in values]
    out = paddle.einsum(equation, *xs)
    wanted = np.einsum(equation, *values)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-12, atol=1e-12)
    weight = normal(*wanted.shape)
    found = paddle.grad((out * t(weight)).sum(), xs)
    for k, gradient in enumerate(found):  # linear in each operand: the derivative along one direction is exact
        direction = normal(*shapes[k])
        moved = np.einsum(equation, *(direction if n == k else v for n, v in enumerate(values)))
        np.testing.assert_allclose((gradient.numpy() * direction).sum(), (moved * weight).sum(), rtol=1e-10, atol=1e-12)


def test_einsum_takes_its_operands_as_a_list() -> None:
    assert paddle.einsum("i,i", [t([1.0, 2.0]), t([3.0, 4.0])]).item() == 11


@pytest.mark.parametrize(
    ("equation", "expected"),
    [("i->ii", lambda v: np.diag(v)), ("i->iii", lambda v: np.einsum("ij,jk->ijk", np.diag(v), np.eye(3)))],
)
def test_einsum_to_a_diagonal(equation, expected):
    v = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(paddle.einsum(equation, paddle.to_tensor(v)).numpy(), expected(v))


def test_einsum_to_two_diagonals_in_any_order():
    m = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])
    found = paddle.einsum("ij->jiji", paddle.to_tensor(m)).numpy()
    np.testing.assert_array_equal(found, np.einsum("ij,ia,jb->jiba", m, np.eye(2), np.eye(3)))


@pytest.mark.parametrize("p", [2, -2, "nuc"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_of_singular_values(p, keepdim):
    x = np.random.default_rng(2).standard_normal((2, 4, 3))
    found = paddle.linalg.matrix_norm(paddle.to_tensor(x), p, [-1, 0], keepdim)
    np.testing.assert_allclose(found.numpy(), np.linalg.norm(x, p, (-1, 0), keepdim), rtol=1e-13)


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 2)], r"'ij,jk->ik' is for 2 operands, but got 1"),
        ("ijk->i", [(2, 2)], r"'ijk' does not fit an operand of 2 dimensions"),
        ("ij->k", [(2, 2)], r"the output 'k' of 'ij->k' has an index that no operand has"),
        ("ii->i", [(2, 3)], r"index 'i' should have one size in an operand, .*\[2, 3\]"),
    ],
)
def test_einsum_says_what_does_not_fit(equation: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paddle.einsum(equation, *(ones(list(shape)) for shape in shapes))


def test_a_product_of_bfloat16_is_bfloat16() -> None:
    """NumPy's would be float32, and the backward's products of it and bfloat16 would not fit."""
    x, w = (t(normal(*shape)).astype("bfloat16") for shape in ((2, 3), (3, 4)))
    x.stop_gradient = False
    for out in (paddle.matmul(x, w), x @ w, paddle.mm(x, w), paddle.nn.functional.linear(x, w)):
        assert out.dtype is paddle.bfloat16
    (gradient,) = paddle.grad((x @ w).sum(), [x])
    assert gradient is not None
    assert gradient.dtype is paddle.bfloat16
