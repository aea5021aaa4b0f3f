"""Programs of gradients of some inputs, of static mode, and of what Tensors say of themselves; see `one_liners`."""

from __future__ import annotations

_TWO = "class Two(paddle.autograd.PyLayer):\n    @staticmethod\n    def forward(ctx, a, b):\n        ctx.save_for_backward(a, b)\n        return a * b\n    @staticmethod\n    def backward(ctx, g):\n        a, b = ctx.saved_tensor()\n        return g * b, g * a\n"
_BUILT = (
    "with paddle.pir_utils.IrGuard(), paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):\n"
)
_P = "p = paddle.static.create_parameter([2], 'float64', default_initializer=paddle.nn.initializer.Constant(3.0))\n"
_D = "d = paddle.static.data('d', [2], 'float64')\nd.stop_gradient = False\n"
_PAIRS = "out = [pair[1] is None for pair in pairs]"


def _built(*lines: str) -> str:
    """A program of static mode."""
    return _BUILT + "".join(f"    {line}\n" for text in lines for line in text.splitlines())


def _run(fetched: str, *lines: str) -> str:
    """One that runs; what is fetched as lists."""
    return _built(
        *lines, "run = paddle.static.Executor()", "run.run(paddle.static.default_startup_program())",
        f"out = [np.asarray(a).tolist() for a in run.run(feed={{'d': np.array([2.0, 5.0])}}, fetch_list={fetched})]",
    )  # fmt: skip


_NAMES = {
    "x * y": "multiply", "x + y": "add", "x - y": "subtract", "x / y": "divide", "x ** 2": "power", "-x": "neg", "x @ m": "matmul", "x.T": "transpose", "x[0]": "getitem", "paddle.tanh(x)": "tanh",
    "paddle.exp(x)": "exp", "x.sum()": "sum", "x.mean()": "mean", "x.max()": "max", "x.reshape([3, 2])": "reshape", "x.clone()": "clone", "x.astype('float32')": "cast", "F.relu(x)": "relu",
    "F.softmax(x)": "softmax", "F.sigmoid(x)": "sigmoid", "paddle.concat([x, y])": "concat", "paddle.stack([x, y])": "stack", "paddle.where(b, x, y)": "where", "x.cumsum()": "cumsum", "x.tile([2, 1])": "tile", "x.expand([4, 2, 3])": "expand", "x.abs()": "abs",
    "p.sqrt()": "sqrt", "p.log()": "log", "paddle.square(x)": "square", "x.clip(-0.5, 0.5)": "clip", "paddle.bmm(seq, seq.transpose([0, 2, 1]))": "bmm", "paddle.einsum('ij,jk->ik', x, m)": "einsum",
}  # fmt: skip

PROGRAMS: dict[str, str] = {
    # ------------------------------------------------------------------- paddle.grad of some inputs of a layer
    "grad of some inputs both": f"{_TWO}out = paddle.grad(Two.apply(v, w).sum(), [v, w])", "grad of some inputs through": f"{_TWO}out = paddle.grad(Two.apply(v, w * v).sum(), [v])",
    **{f"grad of some inputs {n} raises": f"{_TWO}out = paddle.grad(Two.apply({arguments}).sum(), [{of}])" for n, (arguments, of) in enumerate((("v, w", "v"), ("v, w", "w"), ("v * 2, w", "v"), ("v, w * 2", "v")))},
    "grad of some inputs recomputed raises": "out = paddle.distributed.fleet.recompute.recompute(lambda a, bc: a * bc[0] + bc[1], v, (w, w)); out = paddle.grad(out.sum(), [v])",
    "distributed.fleet.recompute.recompute tuple": "r = paddle.distributed.fleet.recompute.recompute(lambda a, bc: a * bc[0] + bc[1], v, (w, w)); r.sum().backward(); out = [v.grad, w.grad]",
    # ------------------------------------------------------------------- programs
    "static.gradients parameter": _run("[g, p]", _P, "g = paddle.static.gradients((p * p).sum(), p)[0]"), "static.gradients constant": _run("g", "c = paddle.full([2], 3.0, 'float64')\nc.stop_gradient = False\ng = paddle.static.gradients((c * c).sum(), [c])"),
    "static.gradients second": _run("h", _D, "g = paddle.static.gradients((d * d * d).sum(), d)\nh = paddle.static.gradients(g, d)"), "static.Executor fetches in a tuple": _run("[(d, d * 2)]", _D), "static.Executor fetches one": _run("d * 2", _D),
    "static.data twice": _run("[d * 2, e * 3, *g]", _D, "e = paddle.static.data('d', [2], 'float64')\ne.stop_gradient = False\ng = paddle.static.gradients((d * e).sum(), [d, e])"),
    "static.Executor fetches in nested lists": _run("[d, [d * 2, [d * 3]]]", _D),
    "static.append_backward": _run("[pair[1] for pair in paddle.static.append_backward((p * p).sum())]", _P), "static.append_backward listed": _built(_P, _D, "pairs = paddle.static.append_backward((d * d).sum(), [p, d])", _PAIRS),
    **{f"static.append_backward {kind}": _built(_P, "q = paddle.static.create_parameter([2], 'float64')", f"pairs = paddle.static.append_backward({loss}.sum(){more})", _PAIRS) for kind, loss, more in (
        ("unused", "(p * p)", ""), ("both", "(p * q)", ""), ("barred", "(p * q)", ", no_grad_set={q}"), ("without", "(p * q)", ", [p]"),
    )},
    "static.append_backward stopped": _built(_P, "q = paddle.static.create_parameter([2], 'float64')\nq.stop_gradient = True\npairs = paddle.static.append_backward((p * q).sum())", _PAIRS),
    "static.append_backward order": _run("[pair[1] for pair in paddle.static.append_backward((q * q * p).sum())]", _P, "q = paddle.static.create_parameter([2], 'float64', default_initializer=paddle.nn.initializer.Constant(2.0))"),
    "static.setitem": _run("[h, k, r]", _D, "h = d * 2\nk = h * 1\nr = paddle.static.setitem(h, 0, 7.0)"), "static.setitem of an index": _run("[h, k, h * 2]", _D, "h = d * 2\nk = h * 1\nh[0] = d[1]"), "static.setitem of data": _run("[d, *g]", _D, "d[0] = 7.0\ng = paddle.static.gradients((d * d).sum(), d)"),
    "static.setitem gradient": _run("g", _D, "h = d * 2\nh[0] = d[1]\ng = paddle.static.gradients((h * h).sum(), d)"), "static.setitem own gradient": _run("[h, *g]", _D, "h = d * 2\nh[0] = d[1]\ng = paddle.static.gradients((h * h).sum(), h)"), "Tensor.__iadd__ static": _run("[h, k]", _D, "h = d * 2\nk = h\nh += d"),

    "grad static raises": _built(_D, "paddle.grad((d * d).sum(), d)"),
    # ------------------------------------------------------------------- operations
    "einsum diagonal": "paddle.einsum('i->ii', v)", **{f"scatter {kind}": f"paddle.scatter({x}, paddle.to_tensor(1), {updates}{more})" for kind, x, updates, more in (("one row", "x", "v", ""), ("one row added", "x", "v", ", overwrite=False"), ("one row of numbers", "v", "s", ""), ("one row raises", "x", "v[None]", ""))},
    "scatter_ one row": "t = x * 1; t.scatter_(paddle.to_tensor(1), v); out = t", "logcumsumexp scalar": "paddle.logcumsumexp(s)", "logcumsumexp scalar axis": "paddle.logcumsumexp(s, 0)",
    **{f"linalg.matrix_norm {p}": f"paddle.linalg.matrix_norm(m, {p!r})" for p in (2, -2, "nuc")}, "linalg.matrix_norm batch": "paddle.linalg.matrix_norm(seq, 2, axis=[1, 2], keepdim=True)", "norm of matrices": "paddle.norm(m, p=2, axis=[-2, -1])", "linalg.norm plain": "paddle.linalg.norm(m, 2)",
    **{f"nn.functional.normalize zero {p}": f"h = paddle.to_tensor([[0.0, 0.0], [3.0, 4.0]], 'float64', stop_gradient=False); r = F.normalize(h, p={p}); r.sum().backward(); out = [r.detach(), h.grad]" for p in (1, 2)},
    **{name: f"paddle.{name}(p.detach(), p * 2)" for name in ("gammainc", "gammaincc")}, **{f"Tensor.{name}": f"p.detach().{name}(p * 2)" for name in ("gammainc", "gammaincc")}, "gammainc both": "paddle.gammainc(p, p * 2)", "gammainc float32": "paddle.gammainc(f * f, f * f)",
    **{f"{name}_": f"t = p.detach() * 2; r = paddle.{name}_(t, p.detach()); out = [t, r is t]" for name in ("gammainc", "gammaincc")}, **{f"Tensor.{name}_": f"t = p.detach() * 2; r = t.{name}_(p.detach()); out = [t, r is t]" for name in ("gammainc", "gammaincc")},
    "gammainc far": "a, c = paddle.meshgrid(paddle.to_tensor([1e-10, 1e-3, 0.3, 1.0, 1.7, 5.0, 30.0, 200.0], 'float64'), paddle.to_tensor([1e-12, 1e-3, 0.1, 0.9, 1.0, 1.1, 4.0, 33.0, 190.0, 1e4], 'float64')); out = [paddle.gammainc(a, c), paddle.gammaincc(a, c)]",
    "gammainc edges": "a = paddle.to_tensor([0.0, 1.0, 1.0, 2.0], 'float64'); c = paddle.to_tensor([1.0, 0.0, float('inf'), 0.0], 'float64'); out = [paddle.gammainc(a, c), paddle.gammaincc(a, c)]",
    "gammainc slope at 0": "t = paddle.to_tensor([0.0, 0.0, 0.0], 'float64', stop_gradient=False); paddle.gammainc(paddle.to_tensor([0.5, 1.0, 2.0], 'float64'), t).sum().backward(); out = t.grad", **{f"gammainc {a} {b} raises": f"paddle.gammainc(paddle.to_tensor([{a}]), paddle.to_tensor([{b}]))" for a, b in ((-1.0, 1.0), (1.0, -1.0))},
    # ------------------------------------------------------------------- what Tensors say of themselves
    "Tensor.size called": "[x.size(), x.size(1), x.size(-1), x.size == 6, x.size + 1, s.size(), isinstance(x.size, int), type(x.size).__name__]", "Tensor.size raises": "x.size(2)", "Tensor.numpy force": "[x.numpy(False).tolist(), x.numpy(True).tolist(), x.numpy(force=False).tolist()]",
    "Tensor lists": "t = paddle.Tensor([[1, 2], [3, 4]]); out = [t, t.is_leaf, t.stop_gradient, paddle.Tensor((1.5, True)), paddle.Tensor([]), paddle.Tensor([1j]).dtype is paddle.float32]", "Tensor sizes": "[paddle.Tensor(2).shape, paddle.Tensor(2, 3).shape, paddle.Tensor(2, 3, 4, 5).shape, str(paddle.Tensor(0).dtype)]",
    "Tensor array": "[paddle.Tensor(x.numpy()), paddle.Tensor(i.numpy()), paddle.Tensor(paddle.ones([2], 'int32')), paddle.Tensor([paddle.ones([2]), paddle.zeros([2])])]", "Tensor of a Tensor": "s = paddle.ones([2]); t = paddle.Tensor(s); t[0] = 7.0; out = [s, t.stop_gradient]", "Tensor number raises": "paddle.Tensor(1.5)",
    "Tensor text raises": "paddle.Tensor('a')", "Tensor bool raises": "paddle.Tensor(True)", "Tensor negative raises": "paddle.Tensor(-1)", "Tensor ragged raises": "paddle.Tensor([[1], [1, 2]])", "Tensor words raises": "paddle.Tensor(['a'])", "Tensor nothing raises": "paddle.Tensor(None)", "Tensor scalar raises": "paddle.Tensor(x.numpy()[0, 0])",
    "Tensor": "t = paddle.Tensor(); out = [t.shape, str(t.dtype), t.stop_gradient, t.is_leaf, t.numpy().tolist(), repr(t)]",
    "Tensor.hypot_ versions": "t = p * 1; t.hypot_(y); out = t.inplace_version",
    **{f"grad_fn of {name}": f"({source}).grad_fn.name()" for source, name in _NAMES.items()}, "grad_fn of a layer": f"{_TWO}out = Two.apply(v, w).grad_fn.name()", "grad_fn of add_": "t = x * 1; t.add_(y); out = t.grad_fn.name()", "grad_fn of setitem": "t = x * 1; t[0] = 1.0; out = t.grad_fn.name()",
    "grad_fn of layer_norm": "F.layer_norm(x, [3]).grad_fn.name()", "grad_fn of x + 1": "(x + 1).grad_fn.name()",
}  # fmt: skip

DIFFERS: dict[str, tuple[str, str]] = {
    "static.setitem gradient": (r"out.*", "Paddle's gradient passes over what was set: of h[0] = d[1] it gives d[0] all, and d[1] nothing."),
    "static.Executor fetches in nested lists": ("error", "The engine takes lists in lists, whatever their depth; Paddle those of Variables alone."),
    "gammainc edges": (r"out\[[01]\] value", "Q(0, y) is 0, as the limit is, and Q(x, inf) too; Paddle gives 1 and NaN."),
    "grad_fn of layer_norm": ("out .*", "What is composed of several operations has the name of the last one."),
    "grad_fn of x + 1": ("out .*", "Paddle scales for a number; the engine adds."),
}  # fmt: skip
