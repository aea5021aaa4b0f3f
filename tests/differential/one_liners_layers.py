"""Programs of layers, optimizers and training; see `one_liners`."""

from __future__ import annotations


def _steps(made: str, steps: int = 3) -> str:
    """Two parameters after some steps of an optimizer."""
    return f"""
ps = [paddle.create_parameter([3], "float64", default_initializer=paddle.nn.initializer.Assign(np.array(a))) for a in ([1.0, -2.0, 0.5], [0.25, 4.0, -1.0])]
o = {made}
for k in range({steps}):
    loss = (ps[0] * paddle.to_tensor([1.0, -2.0, 3.0], "float64")).sum() * (k + 1) + (ps[1] * ps[1] * ps[0]).sum()
    loss.backward()
    o.step()
    o.clear_grad()
out = [p.detach() for p in ps] + [o.get_lr()]
"""


_OPTIMIZERS = {
    "SGD": "learning_rate=0.125", "SGD decay": "0.125, weight_decay=0.5",
    "Momentum": "0.0625, 0.875", "Momentum nesterov": "0.0625, 0.5, use_nesterov=True, weight_decay=0.25", "Momentum scaled": "0.0625, 0.5, rescale_grad=0.5",
    "Adam": "0.125", "Adam amsgrad": "0.125, 0.5, 0.75, amsgrad=True", "Adam decay": "0.125, weight_decay=paddle.regularizer.L2Decay(0.25)",
    "SGD groups": "0.125",
}  # fmt: skip


def _optimizer(name: str, options: str) -> str:
    parameters = (
        "[{'params': [ps[0]], 'learning_rate': 0.5}, {'params': [ps[1]], 'weight_decay': 0.25}]"
        if name.endswith("groups")
        else "ps"
    )
    source = _steps(f"paddle.optimizer.{name.split()[0]}({options}, parameters={parameters})")
    return source.replace("float64", "float32") if name.endswith("single") else source


def _layer(made: str, inputs: str) -> str:
    """What a layer gives, in double precision and with parameters that are set; its repr and its state's shapes."""
    return f"""
l = paddle.nn.{made}
l.to(dtype="float64")
for p_ in l.parameters():
    p_.set_value(((np.arange(p_.size).reshape(p_.shape) * 7 % 5 + 1) / 4).astype("float64"))
l.eval()
h = l({inputs})
out = [h, repr(l), [f"{{n}} {{list(t.shape)}} {{t.stop_gradient}}" for n, t in l.state_dict().items()], [t.shape for t in l.parameters()]]
"""


_LAYERS = {
    "Conv1D(4, 6, 3, padding=1)": "seq", "Conv2D(4, 2, 3, padding=1, groups=2)": "img", "Conv2D(4, 2, [3, 2], 2, 1, padding_mode='reflect') reflect": "img", "Conv3D(2, 2, 2, bias_attr=False)": "vol",
    "Conv2D(4, 2, 3, bias=False) plain": "img", "GroupNorm(2, 4, affine=False) plain": "img",
    "BatchNorm1D(4)": "seq", "BatchNorm1D(3) matrix": "x", "BatchNorm2D(4)": "img", "BatchNorm3D(2)": "vol", "GroupNorm(2, 4)": "img",
}  # fmt: skip


def _name(made: str) -> str:
    return made.partition("(")[0] + made.rpartition(")")[2]


PROGRAMS: dict[str, str] = {
    **{f"nn.{_name(made)}": _layer(made.rpartition(")")[0] + ")", inputs) for made, inputs in _LAYERS.items()},
    "nn.BatchNorm2D training": "l = paddle.nn.BatchNorm2D(4)\nh = l(img.astype('float32').detach())\nout = [h.shape, l._mean.shape, l.training]",
    "nn.ParameterDict": "l = paddle.nn.ParameterDict({'a': paddle.create_parameter([2], 'float32')}); out = [len(l), list(l), [n for n, _ in l.named_parameters()], list(l['a'].shape)]",
    "nn.Conv2D raises": "paddle.nn.Conv2D(3, 4, 3, groups=2)",
    **{f"optimizer.{name}": _optimizer(name, options) for name, options in _OPTIMIZERS.items()},
    "optimizer.Optimizer": "issubclass(paddle.optimizer.Adam, paddle.optimizer.Optimizer)",
    "optimizer.SGD set_lr": "o = paddle.optimizer.SGD(0.5, [v]); o.set_lr(0.25); out = o.get_lr()",
    "optimizer.SGD parameters raises": "paddle.optimizer.SGD(0.5, v)",
    "regularizer.L2Decay": "str(paddle.regularizer.L2Decay(0.5))",
}  # fmt: skip

DIFFERS: dict[str, tuple[str, str]] = {
    "nn.GroupNorm plain": (
        r"gradient 10 value",
        "Paddle's gradient is wrong without a weight: it does not sum to 0 over a group.",
    ),
    "optimizer.Momentum scaled": (r".* value", "Paddle's CPU kernel leaves rescale_grad out."),
}
