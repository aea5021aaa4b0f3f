"""Every row of the table of aten's operations, held against torch's own autograd: two books of rules cannot part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from gradcheck.backends import torch_operations
from gradcheck.backends.aten import ATEN_ROWS
from gradcheck.backends.torch import TorchBackend
from gradcheck.backends.torch_operations import array_of
from gradcheck.case.function import TensorFunction
from gradcheck.checking.tape import Tape

ops = torch.ops.aten
RANDOM = np.random.default_rng(7)
A, B = RANDOM.standard_normal((2, 3, 4))
V = RANDOM.standard_normal(4)
P = np.abs(A) + 0.5
U = np.tanh(A) * 0.9
M = RANDOM.standard_normal((4, 4))
SPD = M @ M.T + 4 * np.eye(4)
T3 = RANDOM.standard_normal((2, 3, 4))
S3 = RANDOM.standard_normal((2, 4, 3))
IMAGE = RANDOM.standard_normal((1, 2, 4, 4))
CUBE = RANDOM.standard_normal((1, 1, 4, 4, 4))
C = A + 1j * B


def of(values: Any) -> Any:
    """A constant of torch."""
    return torch.as_tensor(values)


Sample = tuple[Any, ...]


def each(names: str, array: Any) -> dict[str, Any]:
    """One array for several operations."""
    return dict.fromkeys(names.split(), array)


UNARY = {
    **each("exp sin cos tan atan sinh cosh tanh asinh erf abs neg square expm1 t tril triu sum mean max min prod", A),
    **each("sign floor ceil trunc round sgn sigmoid relu silu gelu elu leaky_relu hardtanh softplus argmax argmin", A),
    **each("clone detach alias lift lift_fresh zero zeros_like ones_like logical_not isnan isfinite isinf", A),
    **each("log log1p log2 log10 sqrt rsqrt reciprocal lgamma digamma", P),
    **each("asin acos atanh erfinv", U),
    **each("_conj real imag view_as_real resolve_conj conj", C),
}
"""An array for each operation of one tensor."""
BINARY = (
    "add sub rsub mul div maximum minimum fmax fmin atan2 logaddexp hypot eq ne lt le gt ge logical_and logical_or "
    "logical_xor remainder floor_divide"
)
SAMPLES: dict[str, Sample] = {
    **{name: (getattr(ops, name), array) for name, array in UNARY.items()},
    **{name: (getattr(ops, name), A, B + 0.01) for name in BINARY.split()},
    "acosh": (ops.acosh, P + 1),
    "pow": (ops.pow, P, B),
    "roll": (lambda x: ops.roll(x, [1], [1]), A),
    "flip": (lambda x: ops.flip(x, [0, 1]), A),
    "addcmul": (lambda x, y: ops.addcmul(x, y, x, value=3), A, B),
    "addcdiv": (lambda x, y: ops.addcdiv(x, x, y), A, P),
    "lerp": (lambda x, y: ops.lerp(x, y, 0.3), A, B),
    "clamp": (lambda x: ops.clamp(x, -0.5, 0.5), A),
    "clamp_min": (lambda x: ops.clamp_min(x, -0.5), A),
    "clamp_max": (lambda x: ops.clamp_max(x, 0.5), A),
    "where": (lambda x, y: ops.where(x > 0, x, y), A, B),
    "masked_fill": (lambda x: ops.masked_fill(x, of(B > 0), 2.0), A),
    "threshold": (lambda x: ops.threshold(x, 0.1, 5.0), A),
    "threshold_backward": (lambda g, x: ops.threshold_backward(g, x, 0.0), A, B),
    "sigmoid_backward": (ops.sigmoid_backward, A, U),
    "tanh_backward": (ops.tanh_backward, A, U),
    "_softmax": (lambda x: ops._softmax(x, 1, False), A),
    "_log_softmax": (lambda x: ops._log_softmax(x, 0, False), A),
    "sum.dim_IntList": (lambda x: ops.sum.dim_IntList(x, [1], True), A),
    "mean.dim": (lambda x: ops.mean.dim(x, [0]), A),
    "amax": (lambda x: ops.amax(x, [1]), A),
    "amin": (lambda x: ops.amin(x, [0], True), A),
    "max.dim": (lambda x: ops.max.dim(x, 1)[0], A),
    "min.dim": (lambda x: ops.min.dim(x, 0, True)[0], A),
    "max.other": (ops.max.other, A, B),
    "min.other": (ops.min.other, A, B),
    "prod.dim_int": (lambda x: ops.prod.dim_int(x, 1), A),
    "var.correction": (lambda x: ops.var.correction(x, [1], correction=1), A),
    "std.correction": (lambda x: ops.std.correction(x, [0], correction=0), A),
    "logsumexp": (lambda x: ops.logsumexp(x, [1]), A),
    "linalg_vector_norm": (lambda x: ops.linalg_vector_norm(x, 2, [1]), A),
    "dist": (lambda x, y: ops.dist(x, y, 2), A, B),
    "cumsum": (lambda x: ops.cumsum(x, 1), A),
    "cumprod": (lambda x: ops.cumprod(x, 1), A),
    "sort": (lambda x: ops.sort(x, 1, True)[0], A),
    "sort.stable": (lambda x: ops.sort.stable(x, stable=True, dim=0)[0], A),
    "topk": (lambda x: ops.topk(x, 2)[0], A),
    "mm": (ops.mm, A, M),
    "bmm": (ops.bmm, T3, S3),
    "mv": (ops.mv, A, V),
    "dot": (ops.dot, V, V + 1),
    "addmm": (lambda x, a, b: ops.addmm(x, a, b, beta=2, alpha=3), B, A, M),
    "baddbmm": (ops.baddbmm, T3, T3, RANDOM.standard_normal((2, 4, 4))),
    "addmv": (ops.addmv, V[:3], A, V),
    "linalg_inv_ex": (lambda x: ops.linalg_inv_ex(x)[0], SPD),
    "linalg_cholesky_ex": (lambda x: ops.linalg_cholesky_ex((x + x.mT) / 2)[0], SPD),
    "view": (lambda x: ops.view(x, [2, 6]), A),
    "_unsafe_view": (lambda x: ops._unsafe_view(x, [2, 6]), A),
    "reshape": (lambda x: ops.reshape(x, [2, 6]), A),
    "view_as": (lambda x: ops.view_as(x, torch.empty(6, 2)), A),
    "transpose": (lambda x: ops.transpose(x, 0, 1), A),
    "permute": (lambda x: ops.permute(x, [2, 0, 1]), T3),
    "unsqueeze": (lambda x: ops.unsqueeze(x, 1), A),
    "squeeze": (lambda x: ops.squeeze(x[:, :1], 1), A),
    "expand": (lambda x: ops.expand(x, [2, -1, 4]), A),
    "select": (lambda x: ops.select(x, 1, -1), A),
    "slice": (lambda x: ops.slice(x, 1, 0, 4, 2), A),
    "cat": (lambda x, y: ops.cat([x, y], 1), A, B),
    "stack": (lambda x, y: ops.stack([x, y], 1), A, B),
    "split": (lambda x: ops.split(x, 3, 1)[1], A),
    "split_with_sizes": (lambda x: ops.split_with_sizes(x, [1, 3], 1)[1], A),
    "unbind": (lambda x: ops.unbind(x, 0)[2], A),
    "diagonal": (lambda x: ops.diagonal(x, 1), M),
    "diag_embed": (lambda x: ops.diag_embed(x), A),
    "repeat": (lambda x: ops.repeat(x, [2, 1]), A),
    "contiguous": (lambda x: ops.contiguous(ops.t(x)), A),
    "_to_copy": (lambda x: ops._to_copy(x, dtype=torch.complex128).real, A),
    "copy": (lambda x, y: (x * 1).copy_(y), A, B),
    "fill": (lambda x: ops.fill(x, 3.0), A),
    "full_like": (lambda x: ops.full_like(x, 3.0), A),
    "index": (lambda x: ops.index(x, [of([0, 2, 0])]), A),
    "index_select": (lambda x: ops.index_select(x, 1, of([0, 2])), A),
    "gather": (lambda x: ops.gather(x, 1, of([[0, 1], [2, 2], [3, 0]])), A),
    "scatter_add": (lambda x, v: ops.scatter_add(x, 1, of([[0, 1, 1, 2]] * 3), v), A, B),
    "scatter.src": (lambda x, v: ops.scatter.src(x, 1, of([[0, 3, 1, 2]] * 3), v), A, B),
    "index_add": (lambda x, v: ops.index_add(x, 0, of([0, 2, 0]), v), A, B),
    "index_put": (lambda x, v: ops.index_put(x, [of([0, 2, 1])], v), A, B),
    "select_backward": (lambda g: ops.select_backward(g, [3, 4], 0, 1), V),
    "slice_backward": (lambda g: ops.slice_backward(g, [3, 8], 1, 0, 8, 2), A),
    "view_as_complex": (ops.view_as_complex, RANDOM.standard_normal((3, 2))),
    "complex": (ops.complex, A, B),
    "max_pool2d_with_indices": (lambda x: ops.max_pool2d_with_indices(x, [2, 2], [1, 1])[0], IMAGE),
    "max_pool3d_with_indices": (lambda x: ops.max_pool3d_with_indices(x, [2, 2, 2])[0], CUBE),
    "native_layer_norm": (lambda x, w, b: ops.native_layer_norm(x, [4], w, b, 1e-5)[0], A, V, V + 1),
    "nll_loss_forward": (lambda x: ops.nll_loss_forward(x, of([0, 1, 3]), None, 1, -100)[0], A),
    "mse_loss": (ops.mse_loss, A, B),
}
"""By row, a function of torch and the arrays that it is differentiated at."""
NEVER_DISPATCHED = {
    "reshape", "view_as", "contiguous", "conj", "real", "imag", "square", "lift", "alias", "isfinite", "resolve_conj",
}  # fmt: skip
"""Rows of operations that some releases compose of others before any mode sees them, and others do not."""
WITHOUT_DERIVATIVE = {"floor_divide"}
"""Steps, for which torch raises in place of giving zeros."""
SEEN_THROUGH = {"detach"}
"""What cuts torch's graph, and not what is computed."""
OTHER_OVERLOADS: dict[str, Sample] = {
    "norm.p": (lambda x: ops.linalg_vector_norm(x, 1, [1]), A),
    "norm.inf": (lambda x: ops.linalg_vector_norm(x, float("inf")), A),
}


def test_every_row_has_a_sample() -> None:
    assert set(ATEN_ROWS) == set(SAMPLES)


def tape_of(function: Callable[..., Any], arrays: Sequence[Any]) -> Tape:
    """A function of torch, recorded."""
    named = {f"x{k}": array for k, array in enumerate(arrays)}
    dtypes = {name: array.dtype.name for name, array in named.items()}
    call = TensorFunction(TorchBackend(), lambda tensors: function(*tensors.values()), named, dtypes)
    reruns = call.problem().reruns
    assert reruns is not None
    recording = reruns.recording(list(arrays), keep_casts=True)
    assert recording is not None
    return Tape(recording)


@pytest.mark.parametrize("row", [*SAMPLES, *OTHER_OVERLOADS])
def test_a_row_is_what_torch_computes(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, *arrays = SAMPLES[row] if row in SAMPLES else OTHER_OVERLOADS[row]
    played: list[Any] = []
    real = torch_operations.play

    def play(counterpart: Any, *given: Any) -> Any:
        shadows = real(counterpart, *given)
        played.append((counterpart, shadows is not None))
        return shadows

    monkeypatch.setattr(torch_operations, "play", play)
    tape = tape_of(function, arrays)
    assert tape.recording.error is None
    assert not tape.recording.leaks
    if row in ATEN_ROWS and row not in NEVER_DISPATCHED and not row.endswith("_like"):
        assert (ATEN_ROWS[row], True) in [(tuple(counterpart or ()), done) for counterpart, done in played]
    leaves = [torch.tensor(array, requires_grad=True) for array in arrays]
    out = function(*leaves)
    if row in SEEN_THROUGH:
        assert tape.recording.ends == [0]
        return
    if row in WITHOUT_DERIVATIVE or not out.requires_grad or not (out.is_floating_point() or out.is_complex()):
        assert all(end < 0 for end in tape.recording.ends)
        return
    cotangent = RANDOM.standard_normal(tuple(out.shape))
    if out.is_complex():
        cotangent = cotangent + 1j * RANDOM.standard_normal(tuple(out.shape))
    theirs = torch.autograd.grad(out, leaves, torch.tensor(cotangent), allow_unused=True)
    for ours, gradient, array in zip(tape.gradient([cotangent]), theirs, arrays, strict=True):
        wanted = np.zeros_like(array) if gradient is None else array_of(gradient)
        np.testing.assert_allclose(ours, wanted, rtol=1e-9, atol=1e-12)
