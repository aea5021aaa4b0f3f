"""Mutation score: right backwards broken in many ways, this checker and torch's gradcheck on the same mathematics.

    python tests/bench/mutants.py [--only NAME] [--json FILE]   # torch is left out where it is not installed

Every layer is a pair of plain functions of arrays, run on NumPy by us and as a torch.autograd.Function by torch. Ours
checks each in four ways: by differences alone; as NumPy code that is recorded; and with the forward in the engine's
operations, whose tape is replayed where rounding is measured, or recorded anew. A mutant whose gradients equal the
right ones at all points tried, for all cotangents tried, is equivalent: listed, not counted. False alarms are counted
over the right layers at many shapes, dtypes and scales.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

import gradcheck  # noqa: E402
import pylayer  # noqa: E402

pylayer.install_paddle()
import paddle  # noqa: E402

from gradcheck.backends.recording import Recording  # noqa: E402
from gradcheck.case.gradient_check import check_gradient  # noqa: E402
from gradcheck.checking.problem import Observation, Problem  # noqa: E402
from gradcheck.result import Status  # noqa: E402

Backward = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Layer:
    """``forward(*x)`` and ``backward(*x, y, g)``, a tuple of gradients; `shapes` of the inputs."""

    name: str
    forward: Callable[..., Any]
    backward: Backward
    shapes: tuple[tuple[int, ...], ...]
    positive: bool = False

    def inputs(self, seed: int, scale: float = 1.0, dtype: str = "float64") -> list[Any]:
        random = np.random.default_rng(seed)
        drawn = [scale * random.standard_normal(s) for s in self.shapes]
        return [np.asarray(np.abs(d) + 0.1 * scale if self.positive else d).astype(dtype) for d in drawn]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * w + b


def layer_norm_vjp(x: Any, w: Any, b: Any, y: Any, g: Any) -> tuple[Any, ...]:
    m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    s = np.sqrt(v + 1e-5)
    h, d = (x - m) / s, g * w
    return (d - d.mean(-1, keepdims=True) - h * (d * h).mean(-1, keepdims=True)) / s, (g * h).sum(0), g.sum(0)


def rms_norm_vjp(x: Any, w: Any, y: Any, g: Any) -> tuple[Any, ...]:
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    d = g * w
    return r * d - x * r**3 * (d * x).mean(-1, keepdims=True), (g * x * r).sum(0)


def swish_vjp(x: Any, y: Any, g: Any) -> tuple[Any, ...]:
    s = sigmoid(x)
    return (g * s * (1 + x * (1 - s)),)


LAYERS = [
    Layer("tanh", np.tanh, lambda x, y, g: (g * (1 - y * y),), ((4, 4),)),
    Layer("exp", np.exp, lambda x, y, g: (g * y,), ((3, 5),)),
    Layer("sigmoid", sigmoid, lambda x, y, g: (g * y * (1 - y),), ((6,),)),
    Layer("swish", lambda x: x * sigmoid(x), swish_vjp, ((4, 4),)),
    Layer("square", np.square, lambda x, y, g: (2 * x * g,), ((4, 4),)),
    Layer("log", np.log, lambda x, y, g: (g / x,), ((5,),), positive=True),
    Layer("mean square", lambda x: np.asarray((x * x).mean()), lambda x, y, g: (g * 2 * x / x.size,), ((4, 4),)),
    Layer("product", lambda a, b: a * b, lambda a, b, y, g: (g * b, g * a), ((4, 4), (4, 4))),
    Layer("quotient", lambda a, b: a / b, lambda a, b, y, g: (g / b, -g * y / b), ((3, 4), (3, 4)), positive=True),
    Layer("bias", lambda x, b: x + b, lambda x, b, y, g: (g * 1.0, g.sum(0)), ((4, 4), (4,))),
    Layer("matmul", lambda a, b: a @ b, lambda a, b, y, g: (g @ b.T, a.T @ g), ((4, 4), (4, 4))),
    Layer(
        "linear", lambda x, w, b: x @ w + b, lambda x, w, b, y, g: (g @ w.T, x.T @ g, g.sum(0)), ((4, 4), (4, 4), (4,))
    ),
    Layer("softmax", softmax, lambda x, y, g: (y * (g - (g * y).sum(-1, keepdims=True)),), ((4, 4),)),
    Layer("layer norm", layer_norm, layer_norm_vjp, ((4, 4), (4,), (4,))),
    Layer(
        "rms norm", lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w, rms_norm_vjp, ((4, 4), (4,))
    ),
    Layer("cumsum", lambda x: np.cumsum(x, 0), lambda x, y, g: (np.cumsum(g[::-1], 0)[::-1],), ((5, 3),)),
    Layer("upper triangle", np.triu, lambda x, y, g: (np.triu(g),), ((4, 4),)),
]  # fmt: skip


def tensor_layer_norm(x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred / paddle.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * w + b


def tensor_softmax(x: Any) -> Any:
    e = paddle.exp(x - x.max(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


ON_TENSORS: dict[str, Callable[..., Any]] = {
    "tanh": paddle.tanh,
    "exp": paddle.exp,
    "sigmoid": lambda x: 1 / (1 + paddle.exp(-x)),
    "swish": lambda x: x * paddle.nn.functional.sigmoid(x),
    "square": paddle.square,
    "log": paddle.log,
    "mean square": lambda x: (x * x).mean(),
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
    "bias": lambda x, b: x + b,
    "matmul": lambda a, b: a @ b,
    "linear": lambda x, w, b: x @ w + b,
    "softmax": tensor_softmax,
    "layer norm": tensor_layer_norm,
    "rms norm": lambda x, w: x / paddle.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w,
    "cumsum": lambda x: paddle.cumsum(x, 0),
    "upper triangle": paddle.triu,
}
"""The forwards in the engine's operations."""


# --------------------------------------------------------------------------- operators
def on_gradients(change: Callable[..., Any]) -> Callable[[Backward], Backward]:
    """A mutation of what backward returns: ``change(gradient, inputs, g)`` for every gradient."""

    def mutate(backward: Backward) -> Backward:
        def mutant(*arguments: Any) -> tuple[Any, ...]:
            inputs, g = arguments[:-2], arguments[-1]
            return tuple(np.asarray(change(d, x, g)) for d, x in zip(backward(*arguments), inputs, strict=True))

        return mutant

    return mutate


def on_cotangent(change: Callable[[Any], Any]) -> Callable[[Backward], Backward]:
    """A mutation of the cotangent that backward sees."""
    return lambda backward: lambda *a: backward(*a[:-1], change(a[-1]))


def on_output(change: Callable[[Any], Any]) -> Callable[[Backward], Backward]:
    """A mutation of the saved output."""
    return lambda backward: lambda *a: backward(*a[:-2], change(a[-2]), a[-1])


def one_dead(d: Any, x: Any, g: Any) -> Any:
    d = np.array(d)
    d.reshape(-1)[d.size // 2] = 0
    return d


def one_input(index: int) -> Callable[[Backward], Backward]:
    """The gradient of one input is that of nothing."""

    def mutate(backward: Backward) -> Backward:
        def mutant(*arguments: Any) -> tuple[Any, ...]:
            found = list(backward(*arguments))
            k = min(index, len(found) - 1)
            found[k] = np.zeros_like(found[k])
            return tuple(found)

        return mutant

    return mutate


def swapped(backward: Backward) -> Backward:
    """The gradients of the first two inputs exchanged, if their shapes allow it."""

    def mutant(*arguments: Any) -> tuple[Any, ...]:
        found = list(backward(*arguments))
        if len(found) > 1 and found[0].shape == found[1].shape:
            found[:2] = found[1::-1]
        return tuple(found)

    return mutant


def stale(backward: Backward) -> Backward:
    """The first input saved is that of a former call: a slightly different one."""
    return lambda *a: backward(a[0] * 1.01, *a[1:])


def writes(backward: Backward) -> Backward:
    """Changes the cotangent in place, after use."""

    def mutant(*arguments: Any) -> tuple[Any, ...]:
        found = backward(*arguments)
        arguments[-1][...] *= 2
        return found

    return mutant


OPERATORS: dict[str, Callable[[Backward], Backward]] = {
    "sign": on_gradients(lambda d, x, g: -d),
    "factor 2": on_gradients(lambda d, x, g: 2 * d),
    "factor 1.001": on_gradients(lambda d, x, g: 1.001 * d),
    "over N": on_gradients(lambda d, x, g: d / d.size),
    "zero": on_gradients(lambda d, x, g: 0 * d),
    "one dead element": on_gradients(one_dead),
    "last slice dead": on_gradients(lambda d, x, g: np.concatenate([d[:-1], 0 * d[-1:]])),
    "transposed": on_gradients(lambda d, x, g: d.T if d.ndim == 2 and d.shape[0] == d.shape[1] else d),
    "rolled": on_gradients(lambda d, x, g: np.roll(d, 1, -1)),
    "flipped": on_gradients(lambda d, x, g: np.flip(d, 0)),
    "plus a constant": on_gradients(lambda d, x, g: d + 1e-3),
    "times x": on_gradients(lambda d, x, g: d * x),
    "missing term": on_gradients(lambda d, x, g: d - (g if g.shape == d.shape else 0.1 * d)),
    "mean for sum": on_gradients(lambda d, x, g: d / g.shape[0] if d.ndim < g.ndim else d * 0.5),
    "one slice for a sum": on_gradients(lambda d, x, g: g[0] * 1.0 if g.ndim == d.ndim + 1 else d[::-1]),
    "first input dropped": one_input(0),
    "last input dropped": one_input(9),
    "swapped inputs": swapped,
    "max(g, 0)": on_cotangent(lambda g: np.maximum(g, 0)),
    "g · g": on_cotangent(lambda g: g * g),
    "|g|": on_cotangent(np.abs),
    "clip(g)": on_cotangent(lambda g: np.clip(g, -1, 1)),
    "g ignored": on_cotangent(np.ones_like),
    "saved output rounded": on_output(lambda y: np.round(y, 2)),
    "stale input": stale,
    "in place on g": writes,
}


# --------------------------------------------------------------------------- the two checkers
def problem(layer: Layer, backward: Backward, inputs: list[Any]) -> Problem:
    """The layer for our checker."""

    def vjp(x: Any, cotangents: Any) -> list[Any]:
        return [np.asarray(d) for d in backward(*x, np.asarray(layer.forward(*x)), np.array(cotangents[0]))]

    def observe(cotangents: Any) -> Observation:
        given = np.array(cotangents[0])
        before = given.copy()
        backward(*inputs, np.asarray(layer.forward(*inputs)), given)
        return Observation(changed_by_backward=() if (given == before).all() else ("the incoming gradient",))

    return Problem(
        names=[f"x{k}" for k in range(len(inputs))],
        inputs=inputs,
        differentiable=[True] * len(inputs),
        output_names=["out"],
        forward=lambda x: [np.asarray(layer.forward(*x))],
        vjp=vjp,
        observe=observe,
    )


def ours(layer: Layer, backward: Backward, inputs: list[Any]) -> bool:
    """Whether our checker accepts."""
    return check_gradient(problem(layer, backward, inputs)).verdict in (Status.PASS, Status.KINK)


def accepted(function: Any, inputs: list[Any], **options: Any) -> bool:
    """Whether ``gradcheck.check`` accepts."""
    return gradcheck.check(function, *inputs, **options).verdict in ("PASS", "KINK")


def as_numpy(layer: Layer, backward: Backward, inputs: list[Any]) -> bool:
    """Whether our checker accepts the layer as functions of arrays, which are recorded."""

    def whole(*arguments: Any) -> tuple[Any, ...]:
        *x, g = arguments
        return backward(*x, layer.forward(*x), g)

    return accepted(layer.forward, inputs, backward=whole)


def on_tape(layer: Layer, backward: Backward, inputs: list[Any]) -> bool:
    """Whether our checker accepts the layer with its forward in the engine's operations."""

    class OnTensors(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            y = ON_TENSORS[layer.name](*x)
            ctx.save_for_backward(*x, y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            g = dy.numpy()
            found = backward(*(t.numpy() for t in ctx.saved_tensor()), g)
            if type(g) is np.ndarray and not np.array_equal(g, dy.array):
                dy.array[...] = g  # what it writes into, NumPy code has as a copy
            return tuple(map(paddle.to_tensor, found))

    return accepted(OnTensors, inputs)


def recorded_anew(layer: Layer, backward: Backward, inputs: list[Any]) -> bool:
    """The same, where no tape is replayed."""
    replays = Recording.replays
    Recording.replays = False  # type: ignore[assignment]
    try:
        return on_tape(layer, backward, inputs)
    finally:
        Recording.replays = replays  # type: ignore[method-assign]


def torch_slow(layer: Layer, backward: Backward, inputs: list[Any]) -> bool:
    """Whether torch.autograd.gradcheck accepts, with its defaults."""
    import torch

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            y = torch.from_numpy(np.asarray(layer.forward(*(t.detach().numpy() for t in x))))
            ctx.save_for_backward(y, *x)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, *x = ctx.saved_tensors
            found = backward(*(t.numpy() for t in x), y.numpy(), g.numpy())
            return tuple(
                torch.from_numpy(np.ascontiguousarray(d)).reshape(t.shape) for d, t in zip(found, x, strict=True)
            )

    try:
        return torch.autograd.gradcheck(Function.apply, [torch.tensor(x, requires_grad=True) for x in inputs])
    except (RuntimeError, ValueError):
        return False


def equivalent(layer: Layer, mutant: Backward) -> bool:
    """Whether a mutant gives the right gradients at several points, for signed and large cotangents."""
    for seed in range(4):
        inputs = layer.inputs(seed)
        y = np.asarray(layer.forward(*inputs))
        for size in (1.0, 50.0):
            g = np.asarray(size * np.random.default_rng(seed).standard_normal(y.shape))
            given = g.copy()
            right, found = layer.backward(*inputs, y, g.copy()), mutant(*inputs, y, given)
            if not (given == g).all():
                return False
            if any(
                np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=1e-9, atol=0)
                for a, b in zip(right, found, strict=True)
            ):
                return False
    return True


def right_cases(layers: Sequence[Layer]) -> Iterator[tuple[Layer, list[Any]]]:
    """Yield right layers at shapes, dtypes and scales."""
    for layer in layers:
        for seed in range(4):
            for scale in (1e-3, 0.3, 1.0, 10.0):
                for dtype in ("float64", "float32"):
                    yield layer, layer.inputs(seed, scale, dtype)


def main() -> None:
    """Break every layer with every operator, and count."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments.add_argument("--only", default="", help="layers whose names hold this text")
    chosen = arguments.parse_args()
    layers = [layer for layer in LAYERS if chosen.only in layer.name]
    np.seterr(all="ignore")
    checkers: dict[str, Callable[..., bool]] = {
        "ours": ours,
        "ours, on recorded NumPy": as_numpy,
        "ours, on a tape": on_tape,
        "ours, on a tape without replay": recorded_anew,
    }
    if importlib.util.find_spec("torch"):
        checkers["torch gradcheck"] = torch_slow
    caught: Counter[str] = Counter()
    mutants, equivalents = 0, []
    for layer in layers:
        for name, operator in OPERATORS.items():
            mutant = operator(layer.backward)
            if equivalent(layer, mutant):
                equivalents.append(f"{layer.name}: {name}")
                continue
            mutants += 1
            for checker, accepts in checkers.items():
                if accepts(layer, mutant, layer.inputs(7)):
                    print(f"  missed by {checker}: {layer.name}, {name}")
                else:
                    caught[checker] += 1
    print(f"{len(layers)} layers, {len(OPERATORS)} operators, {mutants} mutants, {len(equivalents)} equivalent:")
    print("  equal to the right backward at every point and cotangent tried: " + "; ".join(equivalents))
    for checker in checkers:
        print(f"{checker}: {caught[checker]} of {mutants} caught, {100 * caught[checker] / mutants:.1f} %")
    cases, alarmed = list(right_cases(layers)), {}
    for checker, accepts in checkers.items():
        alarms = [(layer, inputs) for layer, inputs in cases if not accepts(layer, layer.backward, inputs)]
        alarmed[checker] = len(alarms)
        print(f"{checker}: {len(alarms)} false alarms in {len(cases)} right cases")
        for layer, inputs in alarms[:20] if checker.startswith("ours") else []:
            print(f"  {layer.name} {inputs[0].dtype} of size {abs(inputs[0]).max():.2g}")
    if chosen.json:
        figures = {"layers": len(layers), "operators": len(OPERATORS), "equivalent": len(equivalents)}
        figures |= {"mutants": mutants, "caught": dict(caught), "right": len(cases), "alarms": alarmed}
        chosen.json.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
