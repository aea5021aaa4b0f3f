"""Programs of `paddle`'s functions and of Tensor's methods; see `one_liners`."""

from __future__ import annotations

_UNARY = {
    "x": "digamma i0 i0e i1 i1e frac positive negative deg2rad rad2deg stanh sinc sgn angle signbit isneginf isposinf isreal",
    "p": "lgamma gammaln digamma polygamma,1 polygamma,2",
    "x * 0.98": "erfinv",
    "(p / 4)": "logit",
    "z": "sgn angle isreal",
    "i": "positive negative deg2rad rad2deg isreal",
}  # fmt: skip


def _unary() -> dict[str, str]:
    found = {}
    for argument, names in _UNARY.items():
        for name in names.split():
            function, _, more = name.partition(",")
            found[f"{function} of {argument}{' ' + more if more else ''}"] = (
                f"paddle.{function}({argument}{', ' + more if more else ''})"
            )
    return found


PROGRAMS: dict[str, str] = {
    **_unary(),
    # ------------------------------------------------------------------- NumPy's functions, which call methods
    "np.std raises": "np.std(x)",
    **{f"np.{call}": f"np.{call}" for call in (
        "sum(x)", "sum(x, 1)", "sum(x, dtype='float32')", "mean(x)", "mean(x, axis=0)", "prod(x, 0)", "cumsum(x, 1)", "any(b)", "all(b, axis=0)",
        "clip(x, -0.5, 0.5)", "round(x)", "argmax(x)", "argmin(x, axis=1)",
    )},
    "float16 and bfloat16": "x.detach().astype('float16') * y.detach().astype('bfloat16')", "bfloat16 and float16": "x.detach().astype('bfloat16') + y.detach().astype('float16')",
    # ------------------------------------------------------------------- forms that torch has
    **{f"torch's {call}": call for call in (
        "x.transpose(0, 1)", "seq.transpose(0, 2, 1)", "seq.transpose(1, 2)", "seq.transpose(dim0=0, dim1=2)", "seq.transpose([0, 2, 1])", "paddle.transpose(seq, 0, -1)",
        "seq.index_select(1, k[:2])", "paddle.index_select(seq, -1, k)", "seq.index_select(k[:2], 1)", "x.index_add(1, k, y)", "x.index_add(dim=1, index=k, source=y)", "x.gather(1, i % 3)",
        "x.view(3, 2)", "x.view(-1)", "x.view(size=[6])", "x.new_zeros(2, 3)", "x.new_ones(5)", "paddle.zeros(2, 3)", "paddle.ones(2, 1, 3, dtype='float64')", "paddle.ones(size=[2])",
        "paddle.cat([x, y], dim=1)", "paddle.concatenate([x, y], axis=0)", "F.logsigmoid(x)", "x.to('cpu')", "x.to('cpu', 'float32')", "x.to(device='cpu')", "x.to(i)", "x.to('float32')",
    )},
    "torch's index_select raises": "paddle.index_select(x, 1)", "torch's empty": "paddle.empty(2, 3).shape",
    # ------------------------------------------------------------------- special functions
    "i0 large": "paddle.i0(x * 60)", "i1e large": "paddle.i1e(x * 60)", "i1 zero": "paddle.i1(x * 0)",
    "lgamma negative": "paddle.lgamma(x * 3)", "digamma negative": "paddle.digamma(x * 3)", "logit eps": "paddle.logit(x, 0.1)",
    "erfinv edges": "paddle.erfinv(paddle.to_tensor([-1.0, 0.0, 1.0, 1.5], 'float64'))",
    "polygamma raises": "paddle.polygamma(p, -1)",
    # ------------------------------------------------------------------- arithmetic
    "copysign": "paddle.copysign(x, y)", "copysign number": "paddle.copysign(x, -2.0)", "hypot": "paddle.hypot(x, y)", "hypot raises": "paddle.hypot(x, 2.0)",
    "heaviside": "paddle.heaviside(paddle.round(x), y)", "logaddexp": "paddle.logaddexp(x, y * 20)",
    "bitwise_left_shift": "paddle.bitwise_left_shift(i, i)", "bitwise_right_shift": "paddle.bitwise_right_shift(i * 100 - 250, i)",
    "bitwise_right_shift logical": "paddle.bitwise_right_shift(i * 100 - 250, i, is_arithmetic=False)", "bitwise_invert": "paddle.bitwise_invert(i)",
    "less": "paddle.less(x, y)",
    # ------------------------------------------------------------------- what the release's own examples do
    "as_tensor": "paddle.as_tensor([1.0, 2.0], dtype='float64', device=paddle.CPUPlace())", "asarray": "paddle.asarray([1, 2], dtype='float32')", "from_numpy": "paddle.from_numpy(np.arange(3.0))",
    "tensor called": "t = paddle.tensor([1.0, 2.0], dtype='float64', device='cpu', requires_grad=True, pin_memory=False); out = [t, paddle.tensor(t)]",
    **{f"{n} device": f"t = paddle.{n}({a}device='cpu', requires_grad=True); out = [t.stop_gradient, t.shape]" for n, a in (("ones", "2, 3, "), ("zeros", "[2], "), ("empty", "2, 1, "), ("rand", "2, 2, "), ("randn", "[2], "), ("full", "[2], 1.0, "), ("linspace", "0, 1, 3, "), ("arange", "3.0, "), ("eye", "2, "), ("zeros_like", "x, "), ("full_like", "x, 1.0, "))},
    "Tensor.new_ones apart": "[x.new_ones(3, 2), x.new_zeros(2), x.new_empty([2, 2]).shape, x.new_full([2], 3)]",
    "Tensor.to unknown raises": "out = x.to('float32', dtpye='float64')",
    "Tensor.to": "[x.to('cpu') is x, x.to('cpu', 'float32'), x.to(paddle.CPUPlace(), paddle.float16, True), x.to(other=i), x.to('float32', False), x.to(device='cpu', dtype='int32'), x.to('float64') is x]",
    "Tensor.clear_grad 0-d": "t = paddle.to_tensor(5.0, stop_gradient=False)\nfor k in range(2): (t ** 4.0).backward()\nt.clear_grad(); a = [t.grad.shape, t.grad.item(), t.grad.stop_gradient]; (t ** 2).backward(paddle.to_tensor(2.0)); out = [*a, t.grad]",
    "Tensor.grad set": "t = paddle.to_tensor([1.0, 2.0], stop_gradient=False); (t ** 2).sum().backward(); t.grad = paddle.to_tensor([3.0, 4.0]); a = t.grad.stop_gradient; u = paddle.to_tensor([1.0], stop_gradient=False); u.grad = paddle.to_tensor([3.0]); out = [a, t.grad, u.grad.stop_gradient]",
    "mean dtype": "[paddle.mean(x, dtype='float32'), paddle.mean(x, axis=-1, dtype='float32'), i.mean(dtype='float64')]",
    **{f"median {n} {k}": f"n = paddle.to_tensor([[1, np.nan, 3, np.nan], [1, 2, 3, 4], [np.nan, 1, 2, 3]], 'float64'); out = paddle.{n}" for n, k in (("median(n, 1)", "a"), ("median(n, axis=1, keepdim=True, mode='min')", "b"), ("median(n)", "c"), ("nanmedian(n, 1, mode='min')", "d"), ("nanmedian(n, [1], True, 'min')", "e"), ("nanmedian(n, mode='min')", "f"))},
    "nanmedian nothing": "paddle.nanmedian(paddle.to_tensor([[np.nan, np.nan], [1.0, np.nan]]), 1, mode='min')", "digamma at poles": "paddle.digamma(paddle.to_tensor([0.0, -0.0, -1.0, 2.0], 'float64'))",
    **{f"linalg.vector_norm {p} {axis}": f"paddle.linalg.vector_norm(seq, {p}, {axis}, True)" for p in ("0.0", "1", "2.0", "3.0", "float('-inf')") for axis in ("[0, 1]", "None", "1")}, "linalg.vector_norm dtype": "paddle.linalg.vector_norm(x.detach(), 2.0, dtype='float32')", "linalg.vector_norm raises": "out = paddle.linalg.vector_norm(x=x, p='fro', axis=[0, 1])",
    "put_along_axis mean of integers": "paddle.put_along_axis(paddle.to_tensor([[10, 30, 20]]), paddle.to_tensor([[0, 0]]), paddle.to_tensor([[1, 3]]), 1, 'mean', True, False)",

    "trunc words": "[paddle.trunc(input=x), paddle.true_divide(input=x, other=y), paddle.view_as_complex(input=paddle.ones([2, 2])), paddle.view_as_real(input=z)]", "set_default_dtype words": "paddle.set_default_dtype(d='float64'); out = paddle.ones([1]); paddle.set_default_dtype('float32')",
    "broadcast_shapes": "paddle.broadcast_shapes([2, 1], [3])", "Tensor.repeat": "[x.repeat(2, 1), x.repeat([2, 1])]", "Tensor.split_with_sizes": "paddle.arange(5.0).split_with_sizes([2, 3])", "Tensor.stride": "[x.stride(), x.T.contiguous().stride(0)]",
    "Tensor.random_": "t = paddle.ones([50]).random_(2, 5); out = [bool(((t >= 2) & (t < 5)).all()), t.shape]",
    **{f"autograd.saved_tensors_hooks of {e}": f"log = []\nwith paddle.autograd.saved_tensors_hooks(lambda t: log.append(['p', t.stop_gradient, t.tolist()]) or t, lambda t: log.append(['u', t.tolist()]) or t):\n    h = {e}\nh.sum().backward(); out = [log, v.grad, w.grad]" for e in ("v * w", "m @ v", "v.exp() * w", "paddle.maximum(v, w)", "paddle.where(v > w, v, w)", "paddle.atan2(v, w)", "v.norm() * w")},
    "floor_mod": "paddle.floor_mod(x, p)", "polar": "paddle.polar(p, x)",
    # ------------------------------------------------------------------- along an axis
    "cummax": "paddle.cummax(x)", "cummax axis": "paddle.cummax(seq, 1)", "cummax ties": "paddle.cummax(paddle.round(seq * 2), -1, 'int32')", "cummin": "paddle.cummin(x, 1)",
    "logcumsumexp": "paddle.logcumsumexp(x)", "logcumsumexp axis": "paddle.logcumsumexp(seq * 30, 1)", "diff": "paddle.diff(x)", "diff more": "paddle.diff(seq, 2, 1)",
    "diff joined": "paddle.diff(x, prepend=y, append=p)", "diff bools": "paddle.diff(b)",
    "trapezoid": "paddle.trapezoid(x)", "trapezoid steps": "paddle.trapezoid(x, dx=0.5, axis=0)", "trapezoid points": "paddle.trapezoid(x, v)", "trapezoid both": "paddle.trapezoid(x, y)",
    "cumulative_trapezoid": "paddle.cumulative_trapezoid(seq, axis=1)", "cumulative_trapezoid points": "paddle.cumulative_trapezoid(x, v)",
    # ------------------------------------------------------------------- put together, taken apart
    "dstack": "paddle.dstack([x, y])", "column_stack": "paddle.column_stack([v, w])", "row_stack": "paddle.row_stack([v, w])", "cat": "paddle.cat([x, y], 1)", "concatenate": "paddle.concatenate([x, y])",
    "atleast_1d": "paddle.atleast_1d(s)", "atleast_2d": "paddle.atleast_2d(v, s)", "atleast_3d": "paddle.atleast_3d(x, v, s)",
    "hsplit": "paddle.hsplit(x, 3)", "vsplit": "paddle.vsplit(m, [1])", "dsplit": "paddle.dsplit(seq, [2, 5])", "vsplit raises": "paddle.vsplit(v, 3)",
    "slice": "paddle.slice(seq, [1, 2], [0, -3], [2, 100])", "strided_slice": "paddle.strided_slice(seq, [1, 2], [0, 5], [4, 1], [2, -2])",
    "narrow": "paddle.narrow(seq, 2, 1, 3)", "unfold": "paddle.unfold(v, 0, 2, 1)", "unfold axis": "paddle.unfold(seq, 1, 2, 2)",
    "rot90": "paddle.rot90(x)", "rot90 back": "paddle.rot90(seq, -1, [0, 2])", "rot90 half": "paddle.rot90(x, 2)", "reverse": "paddle.reverse(x, [0])",
    "permute": "paddle.permute(seq, [2, 0, 1])", "swapdims": "paddle.swapdims(seq, 0, 2)", "ravel": "paddle.ravel(x)", "view_as": "paddle.view_as(x, y.reshape([3, 2]))",
    "msort": "paddle.msort(seq)", "argwhere": "paddle.argwhere(b)", "view_as_real": "paddle.view_as_real(z)", "view_as_complex": "paddle.view_as_complex(x.reshape([3, 2]))",
    "select_scatter": "paddle.select_scatter(x, v, 0, 1)", "slice_scatter": "paddle.slice_scatter(seq, seq[:, :2, :2] * 2, [1, 2], [0, 1], [4, 6], [2, 3])",
    "diagonal_scatter": "paddle.diagonal_scatter(m, v)", "diagonal_scatter offset": "paddle.diagonal_scatter(x, v[:2], 1)", "diagflat": "paddle.diagflat(x, 1)",
    "masked_scatter": "paddle.masked_scatter(x, b, y)", "masked_scatter rows": "paddle.masked_scatter(x, b[0], y)", "scatter_add": "paddle.scatter_add(x, 1, i % 3, y)",
    **{f"scatter_reduce {kind}": f"paddle.scatter_reduce(x, 1, i % 3, y, '{kind}')" for kind in ("sum", "prod", "mean", "amin", "amax")},
    "reduce_as": "paddle.reduce_as(x, v)", "take_along_dim": "paddle.take_along_dim(x, i % 3, 1)",
    # ------------------------------------------------------------------- statistics
    "nansum": "paddle.nansum(paddle.where(b, x, x * float('nan')), 1)", "nanmean": "paddle.nanmean(paddle.where(b, x, x * float('nan')), 1)",
    "nanmedian": "paddle.nanmedian(paddle.where(b, x, paddle.full_like(x, float('nan'))), 1)", "quantile": "paddle.quantile(x, 0.3)",
    "quantile several": "paddle.quantile(seq, [0.25, 0.6], axis=1)", **{f"quantile {kind}": f"paddle.quantile(seq, 0.4, axis=[1, 2], keepdim=True, interpolation='{kind}')" for kind in ("lower", "higher", "nearest", "midpoint")},
    "nanquantile": "paddle.nanquantile(paddle.where(b, x, paddle.full_like(x, float('nan'))), 0.3, axis=1)", "mode": "paddle.mode(paddle.round(seq))", "mode kept": "paddle.mode(paddle.round(seq), 1, True)",
    "linalg.cov": "paddle.linalg.cov(x)", "linalg.cov columns": "paddle.linalg.cov(x, rowvar=False, ddof=False)", "linalg.corrcoef": "paddle.linalg.corrcoef(m)",
    "linalg.cov weights": "paddle.linalg.cov(m, fweights=k + 1, aweights=paddle.abs(v).detach())",
    "cross": "paddle.cross(x, y)", "cross axis": "paddle.cross(m, m * m, axis=0)", "linalg.cross": "paddle.linalg.cross(m, m * 2 + v)", "tensordot": "paddle.tensordot(x, y)",
    "tensordot axes": "paddle.tensordot(seq, img, [[0, 1], [0, 1]])", "tensordot one": "paddle.tensordot(m, x, [[0], [1]])", "dist": "paddle.dist(x, y)", "dist one": "paddle.dist(x, v, 1)", "dist infinity": "paddle.dist(x, y, float('inf'))",
    "cdist": "paddle.cdist(x, m)", "cdist three": "paddle.cdist(x, m, 3.0)",
    "bincount": "paddle.bincount(i.reshape([-1]))", "bincount weights": "paddle.bincount(k, v.detach(), minlength=5)", "histogram": "paddle.histogram(x, 4)", "histogram between": "paddle.histogram(x, 4, -0.5, 0.5)",
    "histogram density": "paddle.histogram(x, 4, density=True)", "isin": "paddle.isin(i, k)", "isin not": "paddle.isin(i, k, invert=True)",
}  # fmt: skip

POSITIONS = "An integer result has no gradient; Paddle marks it as if it had."

DIFFERS: dict[str, tuple[str, str]] = {
    "linalg.vector_norm 0.0 [0, 1]": (r"gradient .*", "A number of elements has a gradient of zeros; over several axes Paddle hands its cotangent on."),
    **{f"linalg.vector_norm 3.0 {axis}": (r".* value", "Paddle's p-norm adds epsilon.") for axis in ("[0, 1]", "None", "1")},
    "stanh of x": (r".* value", "Paddle holds its constants in single precision."),
    "erfinv edges": ("out value", "Paddle gives infinity beyond 1; there is no such number."),
    **dict.fromkeys(("cummax", "cummax axis", "cummax ties", "cummin", "mode", "mode kept"), (r"out\[1\] (stop_gradient|is_leaf|repr)", POSITIONS)),
    "unfold": ("gradient 2 value", "Paddle loses the gradients of elements that are in several windows."),
    **dict.fromkeys(("diagonal_scatter", "diagonal_scatter offset"), ("gradient 2 .*", "Paddle gives what is written along the diagonal no gradient.")),
    **dict.fromkeys(("cdist three",), (".* value", "Paddle takes powers in single precision.")),
}  # fmt: skip
