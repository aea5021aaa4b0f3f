"""Programs of layers, optimizers, learning-rate schedules and training; see `programs`."""

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
    "Adamax": f"0.125, {BETAS}", "NAdam": f"0.125, {BETAS}, momentum_decay=0.5", "RAdam": f"0.125, {BETAS}", "RAdam rectified": f"0.125, 0.5, 0.875, 2.0 ** -30", "Lamb": f"0.125, 0.0625, {BETAS}", "Adagrad": "0.125", "Adagrad initial": "0.125, initial_accumulator_value=0.5",
    "RMSProp": "0.125, 0.75, 2.0 ** -20", "RMSProp centered": "0.125, 0.75, 2.0 ** -20, centered=True, momentum=0.5", "Adadelta": "0.5, 2.0 ** -20, 0.75", "ASGD": "0.0625", "ASGD batches": "0.0625, 2", "Rprop": "0.125",
    "SGD schedule": "paddle.optimizer.lr.StepDecay(0.25, 1, 0.5)",
    "SGD groups": "0.125",
    "SGD norm single": "0.125, grad_clip=paddle.nn.ClipGradByNorm(1.5)", "SGD global": "0.125, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.5)",
    "SGD value": "0.125, grad_clip=paddle.nn.ClipGradByValue(1.5)",
}  # fmt: skip


def _optimizer(name: str, options: str) -> str:
    parameters = "[{'params': [ps[0]], 'learning_rate': 0.5}, {'params': [ps[1]], 'weight_decay': 0.25}]" if name.endswith("groups") else "ps"
    source = _steps(f"paddle.optimizer.{name.split()[0]}({options}, parameters={parameters})", 7 if "rectified" in name else 3)
    return source.replace("float64", "float32") if name.endswith("single") else source


PROGRAMS: dict[str, str] = {
    **{f"optimizer.{name}": _optimizer(name, options) for name, options in _OPTIMIZERS.items()},
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
    "optimizer.Momentum scaled": (r".* value", "Paddle's CPU kernel leaves rescale_grad out."),
    "optimizer.AdamW ratio": ("error", "Paddle's CPU kernel lacks lr_ratio."),
}
