"""Programs of `paddle`'s smaller modules, of Tensor's conversions, and of what surrounds layers; see `one_liners`."""

from __future__ import annotations

_FFT = "fft ifft rfft irfft hfft ihfft"
_MIRRORED = ("irfft", "hfft")

RECOMPUTED = """
recompute = paddle.distributed.fleet.utils.recompute
layer = paddle.nn.Linear(3, 3)
layer.weight.set_value((np.arange(9).reshape(3, 3) / 8).astype("float32"))
"""

LINES = """
class Cube(paddle.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g * 3 * x * x
"""


def _fft() -> dict[str, str]:
    found = {}
    for name in _FFT.split():
        source = "z" if name in ("fft", "ifft", *_MIRRORED) else "x"
        found[f"fft.{name}"] = f"paddle.fft.{name}({source})"
        found[f"fft.{name} sized"] = f"paddle.fft.{name}({source}, 5, 0, 'ortho')"
        found[f"fft.{name} forward"] = f"paddle.fft.{name}({source}, 2, norm='forward')"
        found[f"fft.{name}2"] = f"paddle.fft.{name}2({source})"
        found[f"fft.{name}n"] = f"paddle.fft.{name}n({source}, [3, 4], norm='ortho')"
    return found


PROGRAMS: dict[str, str] = {
    **_fft(),
    "fft.fft real": "paddle.fft.fft(x)", "fft.fft single": "paddle.fft.fft(f)", "fft.fft raises": "paddle.fft.fft(x, norm='other')",
    "fft.fftfreq": "paddle.fft.fftfreq(5, 0.5)", "fft.rfftfreq": "paddle.fft.rfftfreq(6, dtype='float64')", "fft.fftshift": "paddle.fft.fftshift(x)", "fft.ifftshift": "paddle.fft.ifftshift(seq, [1, 2])",
    # ------------------------------------------------------------------- graphs
    **{f"geometric.segment_{kind}": f"paddle.geometric.segment_{kind}(m, paddle.to_tensor([0, 0, 2], 'int32'))" for kind in ("sum", "mean", "min", "max")},
    **{f"incubate.segment_{kind}": f"paddle.incubate.segment_{kind}(m, paddle.to_tensor([0, 1, 1], 'int32'))" for kind in ("sum", "mean", "min", "max")},
    **{f"geometric.send_u_recv {kind}": f"paddle.geometric.send_u_recv(m, paddle.to_tensor([0, 1, 2, 0]), paddle.to_tensor([1, 2, 1, 1]), '{kind}')" for kind in ("sum", "mean", "min", "max")},
    "geometric.send_u_recv": "paddle.geometric.send_u_recv(m, k, k, 'sum', 5)",
    "geometric.send_ue_recv": "paddle.geometric.send_ue_recv(m, m * 2, k, paddle.to_tensor([1, 1, 0]), 'mul', 'sum')", "geometric.send_uv": "paddle.geometric.send_uv(m, m * m, k, paddle.to_tensor([0, 1, 2]), 'add')",
    # ------------------------------------------------------------------- derivatives








    "autograd.Function": LINES + "h = Cube.apply(x)\nh.sum().backward()\nout = [h.detach(), x.grad.detach(), paddle.autograd.Function is paddle.autograd.PyLayer]",
    # ------------------------------------------------------------------- around layers
    "distributed.fleet.utils.recompute": RECOMPUTED + "f.stop_gradient = False\nh = recompute(lambda t: paddle.tanh(layer(t)), f)\nh.sum().backward()\nout = [h.detach(), f.grad, layer.weight.grad]",
    "distributed.fleet.recompute.recompute": RECOMPUTED + "out = recompute(lambda a, b, n: [paddle.sin(a) * b, a + n], x, y, 2.0)",
    "distributed.fleet.utils.recompute random": RECOMPUTED + "h = recompute(lambda t: F.dropout(t, 0.5), x)\nh.sum().backward()\nout = bool(((h != 0) == (x.grad != 0)).all())",
    "jit.to_static": "g = paddle.jit.to_static(lambda a: paddle.sin(a) * 2)\nout = g(x)",
    "jit.not_to_static": "paddle.jit.not_to_static(lambda a: a * 2)(x)",







    "amp.auto_cast": "with paddle.amp.auto_cast():\n    out = [m @ m, paddle.amp.is_autocast_enabled()]", "amp.auto_cast level raises": "with paddle.amp.auto_cast(level='O5'):\n    out = 1",
    "amp.auto_cast dtype raises": "with paddle.amp.auto_cast(dtype='float64'):\n    out = 1", "amp.auto_cast not enabled": "with paddle.amp.auto_cast(False, None, None, 'o2', 'BFLOAT16', use_promote=False):\n    out = m @ m",
    "amp.auto_cast of a dtype": "with paddle.amp.auto_cast(dtype=paddle.bfloat16):\n    out = m @ m", "amp.autocast": "with paddle.amp.autocast('gpu', paddle.bfloat16, True, cache_enabled=False):\n    out = [m @ m, paddle.amp.is_autocast_enabled()]",
    "amp.autocast of no device": "with paddle.amp.autocast(None, enabled=False, dtype='bfloat16'):\n    out = m @ m", "amp.autocast without a device raises": "with paddle.amp.autocast():\n    out = 1",
    "amp.autocast dtype raises": "with paddle.amp.autocast('cpu', 'float64'):\n    out = 1", "amp.autocast level raises": "with paddle.amp.autocast('cpu', level='O1'):\n    out = 1",
    "amp.get_autocast_dtype": "with paddle.amp.autocast('cpu', 'bfloat16'):\n    out = [paddle.amp.get_autocast_dtype(), paddle.amp.get_autocast_dtype('gpu'), paddle.get_autocast_dtype()]", "get_autocast_dtype": "paddle.get_autocast_dtype('cpu')", "get_autocast_cpu_dtype": "paddle.get_autocast_cpu_dtype()", "get_autocast_gpu_dtype": "paddle.get_autocast_gpu_dtype()", "amp.get_autocast_cpu_dtype": "paddle.amp.get_autocast_cpu_dtype()", "amp.get_autocast_gpu_dtype": "paddle.amp.get_autocast_gpu_dtype()",
    "amp.decorate": "l = paddle.nn.Linear(2, 2); out = paddle.amp.decorate(l, level='O1') is l", "amp.is_float16_supported": "paddle.amp.is_float16_supported()",
    "amp.GradScaler": "s = paddle.amp.GradScaler(); l = s.scale((x * x).sum()); out = [l, s.is_enable()]",
    "amp.is_autocast_enabled": "paddle.is_autocast_enabled()",




    # ------------------------------------------------------------------- clipping and vectors
    # ------------------------------------------------------------------- the process
    "base.core.is_compiled_with_cuda": "paddle.base.core.is_compiled_with_cuda()", "base.core.is_compiled_with_xpu": "paddle.base.core.is_compiled_with_xpu()",
    "base.in_dygraph_mode": "paddle.base.in_dygraph_mode()", "base.framework.in_dygraph_mode": "paddle.base.framework.in_dygraph_mode()", "framework.in_dynamic_mode": "paddle.framework.in_dynamic_mode()", "framework.in_pir_mode": "paddle.framework.in_pir_mode()",
    "base.unique_name.generate": "with paddle.base.unique_name.guard():\n    out = [paddle.base.unique_name.generate('a'), paddle.base.unique_name.generate('a'), paddle.base.unique_name.generate('b')]",
    "set_flags": "paddle.set_flags({'FLAGS_check_nan_inf': False}); out = None", "get_flags": "paddle.set_flags({'FLAGS_benchmark': False}); out = bool(paddle.get_flags('FLAGS_benchmark')['FLAGS_benchmark'])",
    "base.Program": "isinstance(paddle.base.Program(), paddle.static.Program)",
    "finfo": "[repr(paddle.finfo('float64')), paddle.finfo(paddle.float32).eps, paddle.finfo('float16').max, paddle.finfo('complex64').bits]", "iinfo": "[repr(paddle.iinfo('int32')), paddle.iinfo('uint8').max]",
    "inf": "[paddle.inf, paddle.pi, paddle.e, paddle.newaxis]", "get_rng_state": "s = paddle.get_rng_state(); a = paddle.rand([3]); paddle.set_rng_state(s); out = bool((a == paddle.rand([3])).all())",
    "Generator": "g = paddle.Generator(); g.manual_seed(5); out = g.initial_seed()", "randn_like": "paddle.randn_like(x).shape", "rand_like": "[paddle.rand_like(x).shape, bool((paddle.rand_like(x) < 1).all())]",
    "framework._dygraph_tracer": "t = paddle.framework._dygraph_tracer()\nt._has_grad = False\ny = x * 2\nt._has_grad = True\nout = [y, x * 3]",
    "framework._dygraph_tracer in no_grad": "with paddle.no_grad():\n    t = paddle.framework._dygraph_tracer()\n    was = t._has_grad\n    t._has_grad = True\n    out = [x * 3, was]",
    "device.get_device": "paddle.device.get_device()", "device.get_all_custom_device_type": "paddle.device.get_all_custom_device_type()", "device.get_available_custom_device": "paddle.device.get_available_custom_device()", "device.is_compiled_with_cuda": "paddle.device.is_compiled_with_cuda()",
    # ------------------------------------------------------------------- conversions of Tensors
    **{f"Tensor.{name}": f"(x * 3).{name}()" for name in "float half bfloat16 double bool cfloat cdouble".split()},
    **{f"Tensor.{name}": f"(x.detach() * 3).{name}()" for name in "int long char short byte".split()},
    "Tensor.float same": "out = x.double() is x", "Tensor.new_zeros": "x.new_zeros([2, 2])", "Tensor.new_ones": "x.new_ones([2], dtype='int32')", "Tensor.new_full": "x.new_full([2, 1], 3.0)", "Tensor.new_full wanted": "x.new_full([2], 3.0, requires_grad=True)",
    "Tensor.new_empty": "x.new_empty([2, 3]).shape", "Tensor.apply": "x.detach().apply(lambda t: t * 2)", "Tensor.apply raises": "x.apply(lambda t: t * 2)", "Tensor.apply_": "t = x.detach() * 1; t.apply_(lambda a: a * 3); out = t",
    "Tensor.data": "[x.data, x.data.stop_gradient]", "Tensor.data set": "t = x.detach() * 1; t.data = y.detach(); out = t", "Tensor.requires_grad": "[x.requires_grad, k.requires_grad]", "Tensor.requires_grad_": "t = x.detach(); t.requires_grad_(); out = t.stop_gradient",
    "Tensor.itemsize": "[x.itemsize, f.itemsize]", "Tensor.strides": "[list(x.strides), list(seq.transpose([2, 0, 1]).strides)]", "Tensor.get_strides": "list(x.get_strides())", "Tensor.is_cuda": "x.is_cuda", "Tensor._is_shared_buffer_with": "[x._is_shared_buffer_with(x.detach()), x._is_shared_buffer_with(y)]",
    "Tensor._share_buffer_to": "t = paddle.zeros([1], 'float64'); x._share_buffer_to(t); out = t", "Tensor._register_backward_hook": "seen = []; x._register_backward_hook(lambda: seen.append(1)); (x * 2).sum().backward(); out = len(seen)",
    "Tensor._is_initialized": "x._is_initialized()", "Tensor._numel": "x._numel()", "Tensor._inplace_version": "x._inplace_version()", "Tensor._grad_ivar": "(x * 2).sum().backward(); out = x._grad_ivar()",
    "special.softmax": "paddle.special.softmax(x)", "special.expm1": "paddle.special.expm1(x)", "special.logsumexp": "paddle.special.logsumexp(x, 1)",
    # ------------------------------------------------------------------- factors of matrices; signs are each library's own
    "linalg.svd": "u, s, vh = paddle.linalg.svd(m)\nout = [s, (u * s) @ vh, u.abs().detach()]", "linalg.svd tall": "u, s, vh = paddle.linalg.svd(x.T)\nout = [s, u.abs(), vh.abs()]",
    "linalg.svd wide": "u, s, vh = paddle.linalg.svd(x)\nout = [s, u.abs(), vh.abs()]", "linalg.svd full": "[t.abs() for t in paddle.linalg.svd(x.detach(), full_matrices=True)][:2]", "linalg.svdvals": "paddle.linalg.svdvals(seq[0])",
    "linalg.qr": "q, r = paddle.linalg.qr(m)\nout = [q.abs(), r.abs()]", "linalg.qr tall": "q, r = paddle.linalg.qr(x.T)\nout = [q.abs(), r.abs()]", "linalg.qr wide": "q, r = paddle.linalg.qr(x)\nout = [q.abs(), r.abs()]",
    "linalg.qr r": "paddle.linalg.qr(m, 'r').abs().detach()", "linalg.qr complete": "[t.abs() for t in paddle.linalg.qr(x.T.detach(), 'complete')]", "linalg.qr raises": "paddle.linalg.qr(m, 'other')",
    "linalg.eigh": "w, q = paddle.linalg.eigh((m + m.T) / 2)\nout = [w, q.abs()]", "linalg.eigvalsh": "paddle.linalg.eigvalsh((m + m.T) / 2)", "linalg.eigh raises": "paddle.linalg.eigh(m, 'X')",
    "linalg.eig": "w, q = paddle.linalg.eig(m)\nout = [paddle.sort(paddle.abs(w)), paddle.abs(m.astype('complex128') @ q - q * w).max() < 1e-12]", "linalg.eigvals": "paddle.abs(paddle.linalg.eigvals(m)).sum().detach()",
    "linalg.pinv": "paddle.linalg.pinv(x)",
    "linalg.cholesky_solve": "paddle.linalg.cholesky_solve(m, paddle.linalg.cholesky(d))", "linalg.cholesky_solve upper": "paddle.linalg.cholesky_solve(m, paddle.linalg.cholesky(d, upper=True), upper=True)",
    "linalg.matrix_exp": "paddle.linalg.matrix_exp(m)", "linalg.matrix_exp large": "paddle.linalg.matrix_exp(m * 4).detach()",
}  # fmt: skip

DIFFERS: dict[str, tuple[str, str]] = {}
