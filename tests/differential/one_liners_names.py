"""Programs of methods, of other spellings, and of names that are one thing in several modules; see `one_liners`."""

from __future__ import annotations

import re

import one_liners_modules
import one_liners_tensor


def _methods() -> dict[str, str]:
    """The programs that call one function on a Tensor, as calls of its method."""
    found: dict[str, str] = {}
    for source in [*one_liners_tensor.PROGRAMS.values(), *one_liners_modules.PROGRAMS.values()]:
        call = re.fullmatch(
            r"paddle\.(?:linalg\.)?(\w+)\((x|y|v|m|d|z|p|i|k|b|s|seq)(?:\.detach\(\))?(?:, (.*))?\)", source
        )
        if call and call[1] not in _NO_METHODS:
            found.setdefault(f"Tensor.{call[1]}", f"{call[2]}.{call[1]}({call[3] or ''})")
    return found


_NO_METHODS = (
    "vector_norm concatenate svdvals matrix_exp randn_like rand_like slice_scatter narrow positive svd eigh".split()
)

_PAIRS = "div eq ge greater gt le lt mul ne sub true_divide".split()

_IN_PLACE = {
    "copysign": "y", "digamma": "", "frac": "", "gammaln": "", "hypot": "y", "i0": "", "lgamma": "", "logit": "0.25", "masked_scatter": "b, y", "polygamma": "1", "sinc": "",
    "floor_mod": "y", "erfinv": "", "scatter_add": "1, i % 3, y",
}  # fmt: skip
_INTEGERS = {
    "bitwise_left_shift": "k",
    "bitwise_right_shift": "k",
    "bitwise_invert": "",
    "less": "k",
}


def _in_place() -> dict[str, str]:
    """The forms with an underscore, as functions and as methods."""
    found = {}
    for start, rows in (("(p / 4)", _IN_PLACE), ("(i * 6)", _INTEGERS)):
        for name, rest in rows.items():
            more = f", {rest}" if rest else ""
            if name != "erfinv":
                found[f"{name}_"] = f"t = {start} * 1; paddle.{name}_(t{more}); out = t"
            found[f"Tensor.{name}_"] = f"t = {start} * 1; t.{name}_({rest}); out = t"
    return found


_SAME = {
    "base.append_backward": "static.append_backward", "base.gradients": "static.gradients", "base.Executor": "static.Executor", "base.default_main_program": "static.default_main_program",
    "base.default_startup_program": "static.default_startup_program", "base.program_guard": "static.program_guard", "base.Variable": "static.Variable",
    "base.get_flags": "get_flags", "base.set_flags": "set_flags", "framework.get_flags": "get_flags", "framework.set_flags": "set_flags",
    "base.framework.Variable": "static.Variable", "base.framework.get_flags": "get_flags", "base.framework.set_flags": "set_flags", "framework.Block": "base.framework.Block",
    "base.dygraph.base.enabled": "base.dygraph.enabled", "base.dygraph.base.enable_dygraph": "base.dygraph.enable_dygraph", "base.dygraph.base.disable_dygraph": "base.dygraph.disable_dygraph",
    "eigvalsh": "linalg.eigvalsh", "cholesky": "linalg.cholesky",
}  # fmt: skip

_CALLED = (
    "base.in_dynamic_or_pir_mode base.in_pir_mode base.is_compiled_with_rocm base.is_compiled_with_cinn base.is_compiled_with_xpu base.core.is_compiled_with_rocm base.core.is_compiled_with_ipu "
    "base.framework.in_dynamic_or_pir_mode base.framework.in_pir_mode framework.in_dynamic_or_pir_mode device.is_compiled_with_rocm device.is_compiled_with_cinn device.is_compiled_with_ipu device.is_compiled_with_xpu is_autocast_enabled base.dygraph.enabled is_compiled_with_cinn is_compiled_with_ipu base.framework.is_compiled_with_cinn base.framework.is_compiled_with_cuda base.framework.is_compiled_with_rocm base.framework.is_compiled_with_xpu"
).split()

DEVICES = "base.core.is_compiled_with_cinn device.is_compiled_with_distribute base.framework.Program base.framework.program_guard base.framework.default_main_program base.framework.default_startup_program framework.Program base.core.Generator is_compiled_with_distribute base.core.is_compiled_with_distribute base.framework.is_compiled_with_distribute base.framework.Operator".split()

PROGRAMS: dict[str, str] = {
    **_methods(), **_in_place(),
    # ------------------------------------------------------------------- methods whose function is called on something else
    "autocast": "with paddle.autocast('cpu'): out = x * 1", "Tensor.increment": "t = paddle.to_tensor([1.5]); t.increment(2.0); out = t",
    "Tensor.fill_diagonal_tensor_": "t = m.detach() * 1; t.fill_diagonal_tensor_(v.detach()); out = t", "Tensor.view_as_complex": "p.reshape([-1, 2]).view_as_complex()",
    "Tensor.erfinv": "(x * 0.98).erfinv()", "Tensor.logit": "(p / 4).logit()", "Tensor.argwhere": "b.argwhere()", "Tensor.heaviside": "paddle.round(x).heaviside(y)",
    "Tensor.bitwise_right_shift": "(i * 100).bitwise_right_shift(i)", "Tensor.bincount": "i.reshape([-1]).bincount()",
    "Tensor.nansum": "paddle.where(b, x, x * float('nan')).nansum(1)", "Tensor.nanmean": "paddle.where(b, x, x * float('nan')).nanmean(1)", "Tensor.nanmedian": "x.nanmedian(1)", "Tensor.nanquantile": "x.nanquantile(0.3)", "Tensor.mode": "paddle.round(seq).mode()[0]",
    "Tensor.polar": "p.polar(x)", "Tensor.slice": "seq.slice([1], [0], [2])", "Tensor.narrow": "seq.narrow(2, 1, 3)", "Tensor.slice_scatter": "seq.slice_scatter(seq[:, :2] * 2, [1], [0], [4], [2])",
    "Tensor.cholesky_solve": "m.cholesky_solve(paddle.linalg.cholesky(d))", "Tensor.qr": "q, r = m.qr()\nout = [q.abs(), r.abs()]", "Tensor.eig": "paddle.abs(m.eig()[0]).sum().detach()",
    "Tensor.eigvals": "paddle.abs(m.eigvals()).sum().detach()", "Tensor.eigvalsh": "(m + m.T).eigvalsh()", "Tensor.atleast_2d": "v.atleast_2d()", "Tensor.atleast_3d": "v.atleast_3d()", "Tensor.view_as": "x.view_as(y.reshape([3, 2]))",
    "Tensor.fill_diagonal_tensor": "m.detach().fill_diagonal_tensor(v.detach())", "Tensor.pin_memory": "callable(paddle.Tensor.pin_memory)", "Tensor.unfold": "seq.unfold(1, 2, 2)", "Tensor.diagonal_scatter": "m.diagonal_scatter(v.detach())", "Tensor.cdist": "callable(paddle.Tensor.cdist)",
    "Tensor.stanh": "callable(paddle.Tensor.stanh)", "Tensor.cummax": "x.cummax(1)[0]", "Tensor.cummin": "x.cummin(1)[0]", "Tensor.diagflat": "v.diagflat()", "Tensor.corrcoef": "m.corrcoef()", "Tensor.cov": "m.cov()",
    # ------------------------------------------------------------------- other spellings
    **{name: f"paddle.{name}(x, y)" for name in _PAIRS}, **{f"Tensor.{name}": f"x.{name}(y)" for name in _PAIRS}, "clamp": "paddle.clamp(x, -0.5, 0.5)", "Tensor.clamp": "x.clamp(-0.5, 0.5)",
    **{f"{name}_": f"t = x * 1; paddle.{name}_(t, y); out = t" for name in ("div", "sub")}, **{f"Tensor.{name}_": f"t = x * 1; t.{name}_(y); out = t" for name in ("div", "mul", "sub")},
    **{f"{name} dim": f"paddle.{name}(x, dim=0)" for name in "sum mean amax amin prod argmax argmin logsumexp cumsum cumprod var squeeze unsqueeze".split()},
    **{f"Tensor.{name} dim": f"x.{name}(dim=1, keepdim=True)" for name in "sum mean amax amin prod logsumexp var".split()}, "Tensor.all dim": "b.all(dim=1)", "Tensor.any dim": "b.any(dim=1, keepdim=True)",
    "median dim": "paddle.median(x, dim=0)[0]", "topk dim": "paddle.topk(x, 2, dim=1)[0]", "chunk dim": "paddle.chunk(input=m, chunks=3, dim=1)", "unbind dim": "paddle.unbind(x, dim=1)", "concat dim": "paddle.concat([x, y], dim=1)", "stack dim": "paddle.stack([x, y], dim=1)", "nn.functional.softmax dim": "F.softmax(x, dim=0)",
    "Tensor.squeeze dim": "seq[:, :1].squeeze(dim=1)", "Tensor.unsqueeze dim": "x.unsqueeze(dim=1)", "Tensor.flatten dims": "seq.flatten(start_dim=1, end_dim=2)", "linalg.norm dim": "paddle.linalg.norm(x, dim=1)", "exp input": "paddle.exp(input=x)", "add other": "paddle.add(input=x, other=y)", "where other": "paddle.where(b, input=x, other=y)",
    "pow exponent": "paddle.pow(input=p, exponent=2.0)", "full size": "paddle.full(size=[2], fill_value=1.5)", "linspace steps": "paddle.linspace(0.0, end=1.0, steps=5)", "eye words": "paddle.eye(n=2, m=3)", "take_along_axis dim": "paddle.take_along_axis(input=x, indices=i % 3, dim=1)",
    "nn.functional.layer_norm eps": "F.layer_norm(input=x, normalized_shape=[3], eps=2.0 ** -12)", "nn.functional.cross_entropy target": "F.cross_entropy(x, target=k[:2])", "sum both raises": "paddle.mean(x, axis=0, dim=0)",
    # ------------------------------------------------------------------- one thing in several modules
    **{path: f"paddle.{path} is paddle.{other}" for path, other in _SAME.items()}, **{path: f"bool(paddle.{path}())" for path in _CALLED}, **{path: f"callable(paddle.{path})" for path in DEVICES},
    "set_rng_state": "s = paddle.get_rng_state(); a = paddle.randn([3]); paddle.set_rng_state(s); out = bool((a == paddle.randn([3])).all())", "nan": "str(paddle.nan)", "pi": "paddle.pi", "e": "paddle.e", "newaxis": "paddle.newaxis",
    "amp.is_bfloat16_supported": "paddle.amp.is_bfloat16_supported() in (True, False)", "base.Scope": "callable(paddle.base.Scope)",
    "base.core.Place": "isinstance(paddle.base.core.Place, type)", "base.enable_dygraph": "paddle.base.enable_dygraph(); out = paddle.in_dynamic_mode()", "base.dygraph.enable_dygraph": "paddle.base.dygraph.enable_dygraph(); out = paddle.in_dynamic_mode()",
    **{f"{base}.disable_dygraph": f"paddle.{base}.disable_dygraph(); out = paddle.in_dynamic_mode(); paddle.disable_static()" for base in ("base", "base.dygraph")}, "base.core.is_compiled_with_custom_device": "paddle.base.core.is_compiled_with_custom_device('a')",
    "base.core.get_all_custom_device_type": "paddle.base.core.get_all_custom_device_type()",
    "base.core.get_available_custom_device": "paddle.base.core.get_available_custom_device()",
    **{f"base.dygraph.{name}": f"isinstance(paddle.base.dygraph.{name}, type)" for name in ("Tracer", "base.Tracer")}, "is_compiled_with_custom_device": "paddle.is_compiled_with_custom_device('a')", "device.is_compiled_with_custom_device": "paddle.device.is_compiled_with_custom_device('a')",
    "base.core.is_compiled_with_dist": "callable(paddle.base.core.is_compiled_with_dist)", "base.core.is_float16_supported": "callable(paddle.base.core.is_float16_supported)", "base.core.is_bfloat16_supported": "callable(paddle.base.core.is_bfloat16_supported)",
    "base.framework.Block": "isinstance(paddle.base.framework.Block, type)", "base.framework.EagerParamBase": "isinstance(paddle.create_parameter([1], 'float32'), paddle.base.framework.EagerParamBase)", "base.framework.use_pir_api": "callable(paddle.base.framework.use_pir_api)", "framework.use_pir_api": "callable(paddle.framework.use_pir_api)",
    "base.unique_name.guard": "with paddle.base.unique_name.guard():\n    out = paddle.base.unique_name.generate('q')",
    "is_empty": "[paddle.is_empty(x), paddle.is_empty(x[:0])]", "Tensor.is_empty": "x.is_empty()", "base.core.supports_bfloat16": "callable(paddle.base.core.supports_bfloat16)", "base.core.op_support_gpu": "paddle.base.core.op_support_gpu('relu')",
    "base.core.DataType": "[paddle.base.core.DataType is paddle.dtype, paddle.base.core.DataType.FLOAT32 is paddle.float32, paddle.base.core.DataType.BOOL is paddle.bool]",
    "base.framework._current_expected_place": "paddle.base.framework._current_expected_place() == paddle.CPUPlace()", "CPUPlace isinstance": "[isinstance(paddle.CPUPlace(), paddle.CPUPlace), isinstance(paddle.CPUPlace(), paddle.CUDAPlace)]",
    "pir_utils.IrGuard": "with paddle.pir_utils.IrGuard(): out = paddle.in_dynamic_mode()",
    "static.Variable isinstance": "[isinstance(x, paddle.static.Variable), isinstance(3, paddle.base.framework.Variable)]",
}  # fmt: skip

DIFFERS: dict[str, tuple[str, str]] = {}
