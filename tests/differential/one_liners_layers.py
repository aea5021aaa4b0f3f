"""Programs of layers, optimizers, learning-rate schedules and training; see `one_liners`."""

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


def _fitted(options: str, steps: int = 2) -> str:
    """What L-BFGS makes of a curved valley (Rosenbrock's function) and a bowl, from the start on."""
    return f"""
ps = [paddle.create_parameter([2], "float64", default_initializer=paddle.nn.initializer.Assign(np.array(a))) for a in ([-1.5, 2.0], [0.25, 4.0])]
o = paddle.optimizer.LBFGS({options}parameters=ps)
seen = []
def closure():
    o.clear_grad()
    a, b = ps
    loss = ((1 - a[0]) ** 2 + 10 * (a[1] - a[0] * a[0]) ** 2) + (b * b * paddle.to_tensor([1.0, 3.0], "float64")).sum() + (a[1] - b[0]) ** 2
    loss.backward()
    seen.append(float(loss))
    return loss
out = [o.step(closure).detach() for _ in range({steps})] + [p.detach() for p in ps] + [len(seen), o.state_dict()["state"]["n_iter"], o.state_dict()["state"]["func_evals"], sorted(set(o.state_dict()["state"]) - {{'al'}}), o.get_lr()]
"""


def _rates(made: str, steps: int = 12) -> str:
    """The rates that a schedule goes through."""
    return f"s = paddle.optimizer.lr.{made}\nout = []\nfor k in range({steps}):\n    out.append(float(s()))\n    s.step()\nout.append(sorted(s.state_dict()))"


BETAS = "0.5, 0.75, 2.0 ** -30"
"""Numbers that single precision holds: Paddle computes with some of them so."""

_OPTIMIZERS = {
    "SGD": "learning_rate=0.125", "SGD decay": "0.125, weight_decay=0.5",
    "Momentum": "0.0625, 0.875", "Momentum nesterov": "0.0625, 0.5, use_nesterov=True, weight_decay=0.25", "Momentum scaled": "0.0625, 0.5, rescale_grad=0.5",
    "Adam": "0.125", "Adam amsgrad": "0.125, 0.5, 0.75, amsgrad=True", "Adam decay": "0.125, weight_decay=paddle.regularizer.L1Decay(0.25)",
    "AdamW": "0.125, weight_decay=0.25", "AdamW ratio": "0.125, lr_ratio=lambda p: 0.5, apply_decay_param_fun=lambda n: False",
    "Adamax": f"0.125, {BETAS}", "NAdam": f"0.125, {BETAS}, momentum_decay=0.5", "RAdam": f"0.125, {BETAS}", "RAdam rectified": "0.125, 0.5, 0.875, 2.0 ** -30", "Lamb": f"0.125, 0.0625, {BETAS}", "Adagrad": "0.125", "Adagrad initial": "0.125, initial_accumulator_value=0.5",
    "RMSProp": "0.125, 0.75, 2.0 ** -20", "RMSProp centered": "0.125, 0.75, 2.0 ** -20, centered=True, momentum=0.5", "Adadelta": "0.5, 2.0 ** -20, 0.75", "ASGD": "0.0625", "ASGD batches": "0.0625, 2", "Rprop": "0.125",
    "SGD schedule": "paddle.optimizer.lr.StepDecay(0.25, 1, 0.5)",
    "SGD groups": "0.125",
    "SGD norm single": "0.125, grad_clip=paddle.nn.ClipGradByNorm(1.5)", "SGD global": "0.125, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.5)",
    "SGD value": "0.125, grad_clip=paddle.nn.ClipGradByValue(1.5)",
}  # fmt: skip


def _optimizer(name: str, options: str) -> str:
    parameters = (
        "[{'params': [ps[0]], 'learning_rate': 0.5}, {'params': [ps[1]], 'weight_decay': 0.25}]"
        if name.endswith("groups")
        else "ps"
    )
    source = _steps(
        f"paddle.optimizer.{name.split()[0]}({options}, parameters={parameters})", 7 if "rectified" in name else 3
    )
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


_PM = "b.astype('float64') * 2 - 1"
_LAYERS = {
    "Conv1D(4, 6, 3, padding=1)": "seq", "Conv2D(4, 2, 3, padding=1, groups=2)": "img", "Conv2D(4, 2, [3, 2], 2, 1, padding_mode='reflect') reflect": "img", "Conv3D(2, 2, 2, bias_attr=False)": "vol",
    "Conv1DTranspose(4, 2, 3, 2)": "seq", "Conv2DTranspose(4, 2, 3, stride=2, output_padding=1)": "img", "Conv3DTranspose(2, 1, 2)": "vol",
    "Conv2D(4, 2, 3, bias=False) plain": "img", "GroupNorm(2, 4, affine=False) plain": "img", "MaxPool1D(2)": "seq", "MaxPool2D(2, 1)": "img", "MaxPool3D(2)": "vol", "AvgPool1D(2)": "seq", "AvgPool2D(2, 1)": "img", "AvgPool3D(2)": "vol", "LPPool1D(2, 2)": "seq.abs() + 0.25", "LPPool2D(2, 2)": "img.abs() + 0.25",
    "MaxUnPool1D(2)": "*F.max_pool1d(seq, 2, return_mask=True)", "MaxUnPool2D(2, output_size=[6, 5])": "*F.max_pool2d(img, 2, return_mask=True)", "MaxUnPool3D(2)": "*F.max_pool3d(vol[:, :, :4, :4, :4], 2, return_mask=True)",
    "AdaptiveAvgPool1D(1)": "seq", "AdaptiveAvgPool2D(1)": "img", "AdaptiveAvgPool3D(1)": "vol", "AdaptiveMaxPool1D(3)": "seq", "AdaptiveMaxPool2D(3)": "img", "AdaptiveMaxPool3D(2)": "vol",
    "BatchNorm1D(4)": "seq", "BatchNorm1D(3) matrix": "x", "BatchNorm2D(4)": "img", "BatchNorm3D(2)": "vol", "SyncBatchNorm(4)": "img", "GroupNorm(2, 4)": "img", "InstanceNorm1D(4)": "seq", "InstanceNorm2D(4)": "img", "InstanceNorm3D(2)": "vol", "LocalResponseNorm(3)": "img",
    "Pad1D([1, 2])": "seq", "Pad2D([1, 2, 0, 1], mode='reflect')": "img", "Pad2D(1) all": "img", "Pad3D([1, 2, 0, 1, 1, 1])": "vol", "ZeroPad1D([1, 2])": "seq", "ZeroPad2D([1, 2, 0, 1])": "img", "ZeroPad3D([1, 2, 0, 1, 1, 1])": "vol",
    "Upsample(scale_factor=2)": "img", "PixelShuffle(2)": "img", "PixelUnshuffle(2)": "img[:, :, :, :4]", "ChannelShuffle(2)": "img", "Unfold(3)": "img", "Fold([6, 5], 2)": "F.unfold(img, 2)", "Unflatten(1, [2, 2])": "seq", "Bilinear(3, 3, 4)": "x, y",
    "CELU(1.5)": "x", "GLU()": "seq.transpose([0, 2, 1])", "Hardshrink()": "x", "Hardsigmoid()": "x * 4", "Hardswish()": "x * 4", "Hardtanh(-0.5, 0.5)": "x", "LogSigmoid()": "x", "Maxout(2)": "img", "Mish()": "x", "ReLU6()": "x * 9", "SELU()": "x", "Softshrink()": "x", "Softsign()": "x", "Swish()": "x",
    "Tanhshrink()": "x", "ThresholdedReLU()": "p", "PReLU()": "x", "RReLU(0.25, 0.75)": "x", "Softmax2D()": "img", "CosineSimilarity()": "x, y", "PairwiseDistance()": "x, y", "AlphaDropout()": "x", "Dropout2D()": "img", "Dropout3D()": "vol",
    "BCELoss()": "F.sigmoid(x), b.astype('float64')", "KLDivLoss()": "x, p.detach()", "NLLLoss()": "x, k[:2]", "SmoothL1Loss()": "x, y.detach()", "MarginRankingLoss()": f"x, y, {_PM}", "HingeEmbeddingLoss()": f"x, {_PM}", "CosineEmbeddingLoss(reduction='sum')": "x, y, paddle.to_tensor([1, -1])",
    "TripletMarginLoss()": "x, y, p", "TripletMarginWithDistanceLoss()": "x, y, p", "PoissonNLLLoss()": "x, p.detach()", "GaussianNLLLoss()": "x, y.detach(), p.detach()", "SoftMarginLoss()": f"x, {_PM}", "MultiLabelSoftMarginLoss()": "x, b.astype('float64')", "MultiMarginLoss()": "x, k[:2]",
}  # fmt: skip


def _name(made: str) -> str:
    return made.partition("(")[0] + made.rpartition(")")[2]


PROGRAMS: dict[str, str] = {
    **{f"nn.{_name(made)}": _layer(made.rpartition(")")[0] + ")", inputs) for made, inputs in _LAYERS.items()},
    "nn.BatchNorm2D training": "l = paddle.nn.BatchNorm2D(4)\nh = l(img.astype('float32').detach())\nout = [h.shape, l._mean.shape, l.training]",
    "nn.LayerDict": "l = paddle.nn.LayerDict({'a': paddle.nn.Tanh()}); l['b'] = paddle.nn.ReLU(); out = [repr(l), len(l), list(l.keys()), 'a' in l, [k for k, _ in l.items()], type(l.pop('a')).__name__, len(l)]",
    "nn.ParameterDict": "l = paddle.nn.ParameterDict({'a': paddle.create_parameter([2], 'float32')}); out = [len(l), list(l), [n for n, _ in l.named_parameters()], list(l['a'].shape)]",
    "nn.Conv2D raises": "paddle.nn.Conv2D(3, 4, 3, groups=2)",
    "nn.ClipGradByNorm": "g = paddle.nn.ClipGradByNorm(0.5)([(f, f * 2)])[0][1]; out = g.detach()", "nn.ClipGradByGlobalNorm": "g = paddle.nn.ClipGradByGlobalNorm(0.5)([(f, f * 2), (f, f)]); out = [t.detach() for _, t in g]",
    "nn.ClipGradByValue": "g = paddle.nn.ClipGradByValue(0.5)([(f, f * 2)])[0][1]; out = g.detach()",
    **{f"optimizer.{name}": _optimizer(name, options) for name, options in _OPTIMIZERS.items()},
    "optimizer.LBFGS": _fitted("0.125, max_iter=4, "), "optimizer.LBFGS search": _fitted("max_iter=6, line_search_fn='strong_wolfe', ", 3), "optimizer.LBFGS short": _fitted("0.25, max_iter=8, history_size=2, ", 1), "optimizer.LBFGS evaluations": _fitted("0.125, max_iter=9, max_eval=3, "),
    "optimizer.LBFGS done": _fitted("1.0, 100, tolerance_grad=1e-3, line_search_fn='strong_wolfe', ", 2), "optimizer.LBFGS unchanged": _fitted("0.125, tolerance_change=1e-2, "), "optimizer.LBFGS far": _fitted("64.0, 3, line_search_fn='strong_wolfe', ", 1),
    "optimizer.LBFGS search raises": _fitted("line_search_fn='other', "), "optimizer.LBFGS minimize raises": "paddle.optimizer.LBFGS(parameters=[v]).minimize((v * v).sum())", "optimizer.LBFGS without raises": "o = paddle.optimizer.LBFGS(parameters=[v]); o.step()", "optimizer.LBFGS parameters raises": "paddle.optimizer.LBFGS(parameters=v)",
    "optimizer.Optimizer": "issubclass(paddle.optimizer.Adam, paddle.optimizer.Optimizer)",
    **{f"optimizer.lr.{made.partition('(')[0]}{tail}": _rates(made) for made, tail in {
        "NoamDecay(16, 4)": "", "PiecewiseDecay([3, 6], [0.5, 0.25, 0.125])": "", "NaturalExpDecay(0.5, 0.1)": "", "InverseTimeDecay(0.5, 0.1)": "",
        "PolynomialDecay(0.5, 5)": "", "PolynomialDecay(0.5, 5, 0.125, 2.0, True)": " cycle", "LinearWarmup(0.5, 4, 0.0, 0.5)": "",
        "LinearWarmup(paddle.optimizer.lr.ExponentialDecay(0.5, 0.9), 4, 0.0, 0.5)": " schedule", "ExponentialDecay(0.5, 0.9)": "",
        "MultiStepDecay(0.5, [2, 5])": "", "StepDecay(0.5, 3)": "", "LambdaDecay(0.5, lambda e: 0.95 ** e)": "", "MultiplicativeDecay(0.5, lambda e: 0.95)": "",
        "CosineAnnealingDecay(0.5, 5, 0.1)": "", "OneCycleLR(0.5, 20)": "", "OneCycleLR(0.5, 12, anneal_strategy='linear', three_phase=True)": " three",
        "CyclicLR(0.125, 0.5, 3, 2)": "", "CyclicLR(0.125, 0.5, 3, mode='triangular2')": " halves", "CyclicLR(0.125, 0.5, 3, mode='exp_range', exp_gamma=0.9)": " exponential",
        "LinearLR(0.5, 5)": "", "CosineAnnealingWarmRestarts(0.5, 3)": "", "CosineAnnealingWarmRestarts(0.5, 2, 2, 0.1)": " longer",
    }.items()},
    "optimizer.lr.ReduceOnPlateau": "s = paddle.optimizer.lr.ReduceOnPlateau(0.5, patience=1, factor=0.5, cooldown=1)\nout = []\nfor m in [1.0, 0.9, 0.95, 0.95, 0.95, 0.95, 0.95, 0.8, 0.9]:\n    s.step(paddle.to_tensor(m))\n    out.append(s())",
    "optimizer.lr.LRScheduler": "class S(paddle.optimizer.lr.LRScheduler):\n    def get_lr(self):\n        return self.base_lr / (self.last_epoch + 1)\ns = S(0.5); s.step(); s.step(5)\nt = S(0.25); t.set_state_dict(s.state_dict())\nout = [s(), t(), t.last_epoch]",
    "optimizer.SGD set_lr": "o = paddle.optimizer.SGD(0.5, [v]); o.set_lr(0.25); out = o.get_lr()",
    "optimizer.SGD set_lr raises": "o = paddle.optimizer.SGD(paddle.optimizer.lr.StepDecay(0.5, 1), [v]); o.set_lr(0.25)",
    "optimizer.SGD parameters raises": "paddle.optimizer.SGD(0.5, v)",
    "regularizer.L1Decay": "str(paddle.regularizer.L1Decay(0.5))", "regularizer.L2Decay": "str(paddle.regularizer.L2Decay(0.5))",
}  # fmt: skip

DIFFERS: dict[str, tuple[str, str]] = {
    "nn.GroupNorm plain": (
        r"gradient 10 value",
        "Paddle's gradient is wrong without a weight: it does not sum to 0 over a group.",
    ),
    "nn.SyncBatchNorm": ("error", "Paddle's CPU build has no kernel."),
    **{
        f"nn.{name}": (r".* value|out\[1\] object", "Paddle computes in single precision; LPPool's repr shows a float.")
        for name in (
            "LPPool1D",
            "LPPool2D",
            "AdaptiveAvgPool1D",
            "AdaptiveAvgPool2D",
            "AdaptiveAvgPool3D",
            "Hardsigmoid",
            "SELU",
            "MultiMarginLoss",
        )
    },
    "optimizer.Momentum scaled": (r".* value", "Paddle's CPU kernel leaves rescale_grad out."),
    "optimizer.AdamW ratio": ("error", "Paddle's CPU kernel lacks lr_ratio."),
}
