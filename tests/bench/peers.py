"""The same layers in torch, JAX, HIPS autograd and NumPy, by gradcheck and by each framework's own checker.

Eight layers, each right and with four mistakes, in double and single precision, at the checkers' defaults; then the
time of a right one of torch beside torch's fast mode. Needs torch, JAX and HIPS autograd in one environment; some two
minutes. ``--speed`` only times them; ``--json FILE`` writes the figures into a file.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import autograd
import jax
import numpy as np
import torch
from autograd.test_util import check_grads as check_hips
from jax.test_util import check_grads as check_jax

import gradcheck


class Layer(NamedTuple):
    """A forward and its backward, in operations that all frameworks have as ``xp``, and mistakes of the backward."""

    arguments: str
    forward: str
    backward: str
    shapes: tuple[tuple[int, ...], ...]
    mistakes: dict[str, str]
    """A part of the backward → what stands in its place."""


ROW = "axis=-1, keepdims=True"
LAYERS = {
    "tanh": Layer("x, w", "y = xp.tanh(x) * w", "t = xp.tanh(x)\nreturn g * w * (1 - t * t), g * t", ((3, 4), (3, 4)),
                  {"(1 - t * t)": "(1 - t)", "g * w": "g", "g * t": "g * x", "return g": "return -g"}),
    "softplus": Layer("x", "y = xp.log1p(xp.exp(x))", "return (g / (1 + xp.exp(-x)),)", ((3, 4),),
                      {"xp.exp(-x)": "xp.exp(x)", "1 + ": "2 + ", "g /": "1 /", "(g": "(-g"}),
    "silu": Layer("x", "y = x / (1 + xp.exp(-x))", "s = 1 / (1 + xp.exp(-x))\nreturn (g * (s + x * s * (1 - s)),)",
                  ((3, 4),),
                  {" + x * s * (1 - s)": "", "s + x * s": "s + s", "(1 - s)": "(1 + s)", "g * (": "g * g * ("}),
    "softmax": Layer("x", f"e = xp.exp(x)\n    y = e / xp.sum(e, {ROW})", f"return (y * (g - xp.sum(g * y, {ROW})),)",
                     ((3, 4),),
                     {f" - xp.sum(g * y, {ROW})": "", "g * y,": "g,", "y * (g": "(g", "g - ": "g + "}),
    "logsumexp": Layer("x", f"y = xp.log(xp.sum(xp.exp(x), {ROW}))", "return (g * xp.exp(x - y),)", ((3, 4),),
                       {"x - y": "x", "g * ": "", "xp.exp(x - y)": "(x - y)", "(g": "(2 * g"}),
    "rms norm": Layer("x, w", f"s = xp.sqrt(xp.sum(x * x, {ROW}) / 4 + 1e-3)\n    y = x / s * w",
                      f"s = xp.sqrt(xp.sum(x * x, {ROW}) / 4 + 1e-3)\nd = g * w\n"
                      f"return d / s - x * xp.sum(d * x, {ROW}) / 4 / s**3, xp.sum(g * x / s, axis=0)", ((3, 4), (4,)),
                      {f" - x * xp.sum(d * x, {ROW}) / 4 / s**3": "", " / 4 / s**3": " / s**3", "d = g * w": "d = g",
                       "xp.sum(g * x / s": "xp.sum(g * x"}),
    "dense": Layer("x, w", "y = xp.tanh(xp.matmul(x, w))",
                   "d = g * (1 - y * y)\nreturn xp.matmul(d, w.T), xp.matmul(x.T, d)",
                   ((3, 4), (4, 4)), {" * (1 - y * y)": "", "w.T": "w", "x.T, d": "x.T, g", "1 - y * y": "1 - y"}),
    "gaussian": Layer("x, c", f"y = xp.exp(-xp.sum((x - c) ** 2, {ROW}))", "d = -2 * g * y * (x - c)\nreturn d, -d",
                      ((3, 4), (3, 4)), {"-d": "d", "-2 *": "-", " * y": "", "(x - c)": "x"}),
}  # fmt: skip
HEADS = {"torch": "import torch as xp", "jax": "import jax.numpy as xp", "HIPS autograd": "import autograd.numpy as xp",
         "NumPy": "import numpy as xp"}  # fmt: skip


class Variant(NamedTuple):
    """The functions of a layer in one framework."""

    layer: Any
    backward: Callable[..., Any]
    """For NumPy, where it is not the layer's own."""


def made(layer: Layer, framework: str, backward: str, name: str) -> Variant:
    """A layer in a framework, in a module of its own, of which lines can be shown."""
    indented = "\n    ".join(backward.splitlines())
    forward = f"def forward({layer.arguments}):\n    {layer.forward}\n    return y\n"
    source = f"{HEADS[framework]}\n\n\n{forward}\n\ndef backward({layer.arguments}, y, g):\n    {indented}\n"
    Path(sys.path[0], f"{name}.py").write_text(source)
    module = import_module(name)
    return WRAPPERS[framework](module.forward, module.backward, len(layer.shapes))


def in_torch(forward: Any, backward: Any, count: int) -> Variant:
    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            y = forward(*inputs)
            ctx.save_for_backward(*inputs, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(*ctx.saved_tensors, g)

    return Variant(Own, backward)


def in_jax(forward: Any, backward: Any, count: int) -> Variant:
    own = jax.custom_vjp(forward)
    own.defvjp(lambda *xs: ((y := forward(*xs)), (*xs, y)), lambda saved, g: tuple(backward(*saved, g)))
    return Variant(own, backward)


def in_hips(forward: Any, backward: Any, count: int) -> Variant:
    def vjp(number: int) -> Any:
        return lambda y, *xs: lambda g: backward(*xs, y, g)[number]

    own = autograd.extend.primitive(forward)
    autograd.extend.defvjp(own, *map(vjp, range(count)))
    return Variant(own, backward)


def in_numpy(forward: Any, backward: Any, count: int) -> Variant:
    return Variant(forward, lambda *given: backward(*given[:-1], forward(*given[:-1]), given[-1]))


WRAPPERS = {"torch": in_torch, "jax": in_jax, "HIPS autograd": in_hips, "NumPy": in_numpy}


# ------------------------------------------------------------------------------------------- the checkers
def by_gradcheck(framework: str, own: Variant, inputs: Sequence[Any]) -> tuple[bool, bool]:
    """Whether it passes, and whether a line is named."""
    options = {"backward": own.backward} if framework == "NumPy" else {}
    result = gradcheck.check(own.layer, *inputs, **options)
    return result.verdict.green, any(cause.source_line for cause in result.diagnosis)


def by_torch(own: Variant, inputs: Sequence[Any]) -> None:
    torch.autograd.gradcheck(own.layer.apply, tuple(torch.tensor(a, requires_grad=True) for a in inputs))


def by_jax(own: Variant, inputs: Sequence[Any]) -> None:
    check_jax(own.layer, inputs, order=1, modes=["rev"])


def by_hips(own: Variant, inputs: Sequence[Any]) -> None:
    check_hips(own.layer, modes=["rev"], order=1)(*inputs)


PEERS: dict[str, tuple[str, Callable[[Variant, Sequence[Any]], None]]] = {
    "torch": ("`torch.autograd.gradcheck`", by_torch),
    "jax": ("`jax.test_util.check_grads`", by_jax),
    "HIPS autograd": ("`autograd.test_util.check_grads`", by_hips),
}


def accepts(check: Callable[[Variant, Sequence[Any]], None], own: Variant, inputs: Sequence[Any]) -> bool:
    """Whether a framework's own checker raises nothing."""
    try:
        check(own, inputs)
    except (AssertionError, RuntimeError):  # GradcheckError is a RuntimeError
        return False
    return True


def backwards(layer: Layer) -> Iterator[tuple[str, str]]:
    """The right backward and the wrong ones, each with what is right of it."""
    yield "right", layer.backward
    for old, new in layer.mistakes.items():
        assert old in layer.backward, old
        yield "wrong", layer.backward.replace(old, new, 1)


def measured(framework: str) -> dict[str, Counter[tuple[str, str]]]:
    """Of each checker: how many right layers it accepts and wrong ones it refuses, by dtype."""
    counts: dict[str, Counter[tuple[str, str]]] = {"gradcheck": Counter()}
    for number, (name, layer) in enumerate(LAYERS.items()):
        random = np.random.default_rng(number)
        inputs = [random.standard_normal(shape) for shape in layer.shapes]
        for k, (kind, backward) in enumerate(backwards(layer)):
            own = made(layer, framework, backward, f"{framework.split()[0].lower()}_{name.replace(' ', '_')}_{k}")
            for dtype in ("float64", "float32"):
                given = [a.astype(dtype) for a in inputs]
                passed, has_line = by_gradcheck(framework, own, given)
                counts["gradcheck"][kind, dtype] += passed == (kind == "right")
                counts["gradcheck"]["line", dtype] += has_line and kind == "wrong"
                if framework in PEERS:
                    peer, check = PEERS[framework]
                    row = counts.setdefault(peer, Counter())
                    row[kind, dtype] += accepts(check, own, given) == (kind == "right")
    return counts


# ------------------------------------------------------------------------------------------- how long they take
ROUNDS = 40
"""Rounds in which both checkers run in turn."""


def seconds(call: Callable[[], object]) -> float:
    """The CPU time of one call, which says the same where others use the machine as well."""
    start = time.process_time()
    call()
    return time.process_time() - start


def times_fast_mode(name: str, layer: Layer) -> float:
    """How many times as long as torch's fast mode a check of a right layer takes, in float64: the ratio of medians."""
    random = np.random.default_rng(0)
    inputs = [torch.tensor(random.standard_normal(shape), requires_grad=True) for shape in layer.shapes]
    own = made(layer, "torch", layer.backward, f"timed_{name.replace(' ', '_')}").layer

    def fast() -> None:
        torch.autograd.gradcheck(own.apply, inputs, fast_mode=True)

    rounds = [(seconds(lambda: gradcheck.check(own, *inputs)), seconds(fast)) for _ in range(ROUNDS)]
    ours, theirs = map(statistics.median, zip(*rounds, strict=True))
    return ours / theirs


def speed() -> dict[str, float]:
    """`times_fast_mode` of each layer, in one thread: torch's wait for each other busily."""
    torch.set_num_threads(1)
    ratios = {name: round(times_fast_mode(name, layer), 2) for name, layer in LAYERS.items()}
    print("times torch's fast mode:", ratios, "median", statistics.median(ratios.values()), flush=True)
    return ratios


def figures() -> dict[str, Any]:
    """What is counted, of each checker in each framework, and how many layers and mistakes there are."""
    wrong = sum(len(layer.mistakes) for layer in LAYERS.values())
    checkers: dict[str, dict[str, list[int]]] = {}
    for framework in HEADS:
        for checker, row in measured(framework).items():
            label = f"{framework}: {checker}"
            checkers[label] = {
                kind: [row[kind, dtype] for dtype in ("float64", "float32")] for kind in ("right", "wrong", "line")
            }
            print(label, checkers[label], flush=True)
    return {"layers": len(LAYERS), "mistakes": wrong, "checkers": checkers, "speed": speed()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments.add_argument("--speed", action="store_true", help="time the right layers of torch, and nothing else")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        found = speed() if options.speed else figures()
    if options.json:
        options.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
