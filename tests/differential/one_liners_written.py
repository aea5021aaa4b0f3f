"""Programs of what layer files by others use beside the common names: initializers and small
functions; see `one_liners`."""

from __future__ import annotations

_LAYER = """
layer = paddle.nn.{layer}.to(dtype="{dtype}")
layer.weight.set_value(np.cos(np.arange(layer.weight.size)).reshape(layer.weight.shape).astype("{dtype}"))
"""

_KINDS = """
made = {"parameter": lambda: paddle.create_parameter([1], "float32"), "layer": lambda: paddle.nn.Linear(1, 1),
    "tensor": lambda: paddle.ones([1]), "none": lambda: None, "number": lambda: 3}
out = []
for first in made:
    for then in made:
        layer = paddle.nn.Layer()
        try:
            layer.x = made[first]()
            layer.x = made[then]()
        except TypeError as error:
            out.append("TypeError")
        out.append([first, then, "x" in layer._parameters, "x" in layer._sub_layers, "x" in layer._buffers, "x" in vars(layer)])
"""

PROGRAMS: dict[str, str] = {
    # ------------------------------------------------------------------- attributes of layers
    "nn.Layer kinds": _KINDS,
    "nn.Layer tensors": "layer = paddle.nn.Linear(2, 2); layer.t = paddle.ones([2]); layer.register_buffer('u', paddle.ones([1]))\nout = [[n for n, _ in layer.named_buffers()], list(layer.state_dict())]\ndel layer.t\nout.append([hasattr(layer, 't'), list(layer._buffers)])",
    "Tensor.set_value strides": "a = paddle.to_tensor(np.arange(6.0).reshape(2, 3)); b = a[:, 0]; c = a.transpose([1, 0]); b.set_value(np.full(2, 7.0)); out = [a, b, b.strides]; c.set_value(np.full((3, 2), 8.0)); out += [a, c, c.strides]",
    "Tensor.set_value strides of a Tensor": "a = paddle.to_tensor(np.arange(6.0).reshape(2, 3)); b = a[:, 0]; b.set_value(paddle.full([2], 7.0, 'float64')); out = [a, b, b.strides]",
    "Tensor.__div__ None raises": "x.__div__(None)", "Tensor.__rdiv__ None raises": "x.__rdiv__(None)",
    # ------------------------------------------------------------------- first values
    **{f"nn.initializer.{name}": f"made = paddle.create_parameter([300, 400], 'float64', default_initializer=paddle.nn.initializer.{name}({options}))\nout = [round(abs(float(made.std()) / {std} - 1), 1), float(made.min()) >= {low}, float(made.max()) <= {high}]" for name, options, std, low, high in (
        ("XavierUniform", "fan_in=20, gain=2.0", "2 * (2 / 420) ** 0.5", "-2 * (6 / 420) ** 0.5", "2 * (6 / 420) ** 0.5"), ("XavierNormal", "fan_out=10", "(2 / 310) ** 0.5", -1, 1),
    )},
    # ------------------------------------------------------------------- small ones
    "increment": "t = paddle.to_tensor([1.5]); r = paddle.increment(t, 2.0); out = [r, r is t, t.inplace_version]", "increment integer": "paddle.increment(k[1:2] + 1, 2.7)", "increment raises": "paddle.increment(paddle.ones([2]))",
    "increment result": "t = v[:1] * v[:1]; r = paddle.increment(t); out = [r]", "increment leaf": "t = paddle.to_tensor([1.5], stop_gradient=False); r = paddle.increment(t); r.backward(); out = [r.detach(), t.grad, r is t]",
    "tensor": "[paddle.tensor.matmul(x, m), paddle.tensor.transpose(x, [1, 0]), paddle.tensor.gather(x, k[:1], axis=1), paddle.tensor.triu(m), paddle.tensor.qr(m.detach())[1].abs(), paddle.tensor.normal(shape=[2]).shape]",
    **{name: f"paddle.{name}()" for name in ("distributed.get_rank", "distributed.get_world_size", "distributed.is_initialized", "is_compiled_with_xpu", "is_compiled_with_rocm")},
    **{name: f"str(paddle.zeros([1], paddle.{name}).dtype)" for name in ("half", "float", "double", "short", "int", "long", "cfloat", "cdouble")},
    # ------------------------------------------------------------------- what Paddle's own tests of autograd ask
    **{f"{name} unused output {how}": f"first, second = paddle.{name}(h := x * 1, 2); {run}" for name in ("split", "chunk") for how, run in (
        ("hooked", "seen = []; second.register_hook(lambda g: seen.append(g.tolist())); first.sum().backward(); out = seen"),
        ("retained", "second.retain_grads(); first.sum().backward(); out = second.grad.tolist()"),
        ("wanted", "out = paddle.grad(first.sum(), [second, x])"),
    )},
    "unbind unused output hooked": "first, second = paddle.unbind(x); seen = []; second.register_hook(lambda g: seen.append(g.tolist())); first.sum().backward(); out = seen",
    "linalg.svd unused output wanted": "u, s, v = paddle.linalg.svd(m); out = paddle.grad(s.sum(), [u, m], allow_unused=True)",
    "Tensor.retain_grads twice": "h = v * v; h.retain_grads(); (h * w).sum().backward(retain_graph=True); (h * w).sum().backward(retain_graph=True); out = h.grad",
    "Tensor._register_backward_hook result raises": "(x * 2)._register_backward_hook(lambda: None)", "Tensor._register_backward_hook constant raises": "k._register_backward_hook(lambda: None)",
    "base.core.eager._add_backward_final_hook": "seen = []; paddle.base.core.eager._add_backward_final_hook(lambda: seen.append(1)); (x * y).sum().backward(); (x * y).sum().backward(); out = seen",
    "base.core.eager.Tensor": "[isinstance(x, paddle.base.core.eager.Tensor), issubclass(paddle.autograd.PyLayer, paddle.base.core.eager.PyLayer)]",
    "Tensor.cumprod_ saved": "h = x ** 2; h.cumprod_(0); out = h ** 2", "Tensor.cumsum_ saved": "h = x ** 2; h.cumsum_(1); out = h ** 2",
    "Tensor.cumprod_ before": "h = x ** 2; q = h ** 2; h.cumprod_(0); out = q", **{f"Tensor.fill_diagonal_ {kind}": f"h = {of} * 1; r = h.fill_diagonal_({options}); out = [h, r is h]" for kind, of, options in (
        ("square", "m", "2.0"), ("wide", "x", "2.0"), ("tall", "x.T", "2.0"), ("offset", "x", "2.0, 1"), ("below", "seq[0]", "0.5, -2"), ("wrapped", "seq[0].T", "2.0, 0, True"), ("wrapped offset", "seq[0].T", "2.0, 1, True"), ("cube", "vol[0, :, :2, :2, 0].reshape([2, 2, 2])", "3.0"),
    )},
    "Tensor.fill_diagonal_ leaf raises": "m.fill_diagonal_(2.0)",





    "optimizer.SGD minimize": "p_ = paddle.create_parameter([2], 'float64', default_initializer=paddle.nn.initializer.Constant(3.0))\nq = paddle.create_parameter([1], 'float64')\no = paddle.optimizer.SGD(0.5, [p_, q])\nloss = (p_ * p_).sum(); loss.backward()\nfound = o.minimize(loss)\nout = [found[0], [(a is p_, b.detach()) for a, b in found[1]], p_.detach()]",
    **{f"grad of itself {kind}": f"h = {h}; c = paddle.ones_like(v); c.stop_gradient = {stops}\nr = paddle.grad(h, [h], [c], create_graph={recorded})[0]\nout = [r is c, r.is_leaf, r.stop_gradient, r.detach()]" for kind, h, stops, recorded in (
        ("result", "v * 2", False, True), ("leaf", "v", False, True), ("constant", "v * 2", True, True), ("unrecorded", "v * 2", False, False),
    )},
    "grad of itself again": "h = v * 2; c = paddle.ones_like(v); c.stop_gradient = False; r = paddle.grad(h, [h], [c], create_graph=True)[0]; out = paddle.grad((r * r).sum(), [c])",
    **{f"grad twice of {y}": f"c = paddle.to_tensor([2.0, 3.0, 4.0], 'float64')\nh = paddle.grad({y}, v, create_graph=True)[0]; h.sum().backward(); out = [v.grad, w.grad, m.grad]" for y in (
        "v * w", "w * v", "v * c", "v * s", "v * 2", "v * 2.5", "v * True", "v / w", "w / v", "v / c", "v / 2", "v / w * 2", "v + w", "v - c", "v @ w", "m @ v", "v * v", "v * w * w", "v * w[0]", "x * v", "x / v", "v.sum() * w", "v.tanh() * w",
        "paddle.maximum(v, w)", "paddle.minimum(v, w)", "paddle.outer(v, w)", "paddle.where(v > 0.3, v * w, w)", "paddle.concat([v * w, w])", "paddle.bmm(m[None], v.reshape([1, 3, 1]))", "paddle.bmm(v.reshape([1, 1, 3]), c.reshape([1, 3, 1]))", "paddle.matmul(m, v)", "F.linear(v[None], m)", "F.relu(v) * w",
    )},
    "grad twice of v * w with an infinite cotangent": "h = paddle.grad(v * w, v, create_graph=True)[0]; (h * float('inf')).sum().backward(); out = v.grad",
    "grad twice of v * w, both": "h = paddle.grad(v * w, [v, w], create_graph=True)[1]; h.sum().backward(); out = [v.grad, w.grad]",
    "grad twice of v * w, again": "h = paddle.grad(v * w, v, create_graph=True)[0]; out = paddle.grad(h, [v, w], allow_unused=True)",
    **{f"grad thrice of {y}": f"h = paddle.grad({y}, v, create_graph=True)[0]; h = paddle.grad(h, v, create_graph=True)[0]; h.sum().backward(); out = [h.stop_gradient, v.grad, w.grad]" for y in ("v * w", "v * v", "v * v * v", "v * v * w", "v * w * w", "v.exp() * w")},


}  # fmt: skip

DIFFERS: dict[str, tuple[str, str]] = {
    "grad thrice of v * v": (r"out\[1\].*|gradient .*", "Zeros for nothing: a recorded gradient is a product like any other here, in Paddle an operation of its own."),
}  # fmt: skip
