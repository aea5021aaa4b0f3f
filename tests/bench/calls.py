"""What one check costs: Python calls, and evaluations of the user's forward and backward, per layer.

    python tests/bench/calls.py [--only TEXT] [--where]

Both are counted, not timed, so that two runs on one Python and one NumPy agree. Each layer is checked once before, so
that imports and first uses are done. The search for a fix is left out, and its cost is in lines of its own. With
``--where`` the calls of each file are printed too, most first.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

import numpy as np  # noqa: E402

import gradcheck  # noqa: E402
import pylayer  # noqa: E402

pylayer.install_paddle()
import paddle  # noqa: E402
from paddle.autograd import PyLayer  # noqa: E402


class Tanh(PyLayer):
    """tanh in the engine's operations."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y)


class WrongTanh(Tanh):
    """tanh whose derivative lacks the square."""

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return dy * (1 - y)


LABELS = np.random.default_rng(1).integers(0, 10, 16)


class CrossEntropy(PyLayer):
    """Softmax cross-entropy of 16 rows of 10 logits, with a mean."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        labels = paddle.nn.functional.one_hot(paddle.to_tensor(LABELS), 10).astype(x.dtype)
        shifted = x - x.max(axis=-1, keepdim=True)
        log_sum = paddle.log(paddle.exp(shifted).sum(axis=-1, keepdim=True))
        log_probabilities = shifted - log_sum
        ctx.save_for_backward(paddle.exp(log_probabilities), labels)
        return -(labels * log_probabilities).sum(axis=-1).mean()

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        probabilities, labels = ctx.saved_tensor()
        return dy * (probabilities - labels) / labels.shape[0]


class LayerNorm(PyLayer):
    """Layer norm of 4 rows of 8, computed in NumPy."""

    FACTOR = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
        a = x.numpy()
        centred = a - a.mean(axis=-1, keepdims=True)
        scale = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        ctx.normed, ctx.scale, ctx.weight = centred * scale, scale, weight.numpy()
        return paddle.to_tensor(ctx.normed * ctx.weight + bias.numpy())

    @classmethod
    def backward(cls, ctx: Any, dy: Any) -> Any:
        g = dy.numpy()
        inner = g * ctx.weight
        mean = inner.mean(axis=-1, keepdims=True)
        projection = (inner * ctx.normed).mean(axis=-1, keepdims=True)
        dx = ctx.scale * (inner - mean - cls.FACTOR * ctx.normed * projection)
        return paddle.to_tensor(dx), paddle.to_tensor((g * ctx.normed).sum(axis=0)), paddle.to_tensor(g.sum(axis=0))


class WrongLayerNorm(LayerNorm):
    """Layer norm whose gradient has half of the projection."""

    FACTOR = 0.5


class Recurrence(PyLayer):
    """h ← tanh(w h + x[t]) over 40 steps, in NumPy."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        inputs, weight = x.numpy(), w.numpy()
        states = [np.zeros(weight.shape[0])]
        for row in inputs:
            states.append(np.tanh(weight @ states[-1] + row))
        ctx.states, ctx.weight = states, weight
        return paddle.to_tensor(states[-1])

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        steps = len(ctx.states) - 1
        d_inputs, d_weight, g = np.zeros((steps, len(ctx.states[0]))), np.zeros_like(ctx.weight), dy.numpy()
        for t in reversed(range(steps)):
            inner = g * (1 - ctx.states[t + 1] ** 2)
            d_inputs[t] = inner
            d_weight += np.outer(inner, ctx.states[t])
            g = ctx.weight.T @ inner
        return paddle.to_tensor(d_inputs), paddle.to_tensor(d_weight)


class Relu(PyLayer):
    """relu whose derivative at 0 is 0."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return paddle.nn.functional.relu(x)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * (x > 0).astype(dy.dtype)


class Row(NamedTuple):
    """A layer, its inputs and the verdict that its check has to have."""

    name: str
    layer: type
    inputs: tuple[np.ndarray, ...]
    verdict: str


def rows() -> list[Row]:
    """Return the layers that are counted."""
    random = np.random.default_rng(0)
    norm = (random.standard_normal((4, 8)), random.standard_normal(8), random.standard_normal(8))
    with_zeros = random.standard_normal(40)
    with_zeros[3] = 0
    many_zeros = with_zeros.copy()
    many_zeros[:20] = 0
    recurrence = (random.standard_normal((40, 3)), 0.5 * random.standard_normal((3, 3)))
    return [
        Row("tanh of 100, PASS", Tanh, (random.standard_normal(100),), "PASS"),
        Row("tanh of 100, FAIL", WrongTanh, (random.standard_normal(100),), "FAIL"),
        Row("softmax cross-entropy 16x10", CrossEntropy, (random.standard_normal((16, 10)),), "PASS"),
        Row("layer norm in NumPy, PASS", LayerNorm, norm, "PASS"),
        Row("layer norm in NumPy, FAIL", WrongLayerNorm, norm, "FAIL"),
        Row("recurrence of 40 steps in NumPy", Recurrence, recurrence, "PASS"),
        Row("relu with one 0", Relu, (with_zeros,), "KINK"),
        Row("relu with 20 zeros", Relu, (many_zeros,), "KINK"),
    ]


class Cost(NamedTuple):
    """What one check took."""

    calls: int
    forwards: int
    backwards: int
    by_file: Counter[str]


def count(row: Row, effort: Any = "least") -> Cost:
    """Count the Python calls of a check, and those of the layer's methods among them.

    With effort least no fix is looked for.

    Raises:
        AssertionError: the verdict is not the row's: what was counted is another check.
    """

    def check() -> Any:
        return gradcheck.check(row.layer, *row.inputs, effort=effort)

    check()
    by_file = Counter[str]()
    of_layer = Counter[str]()

    def on_event(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            by_file[frame.f_code.co_filename] += 1
            if frame.f_code.co_filename == __file__:
                of_layer[frame.f_code.co_name] += 1

    sys.setprofile(on_event)
    try:
        result = check()
    finally:
        sys.setprofile(None)
    assert result.verdict == row.verdict, f"{row.name}: {result.verdict}"
    return Cost(by_file.total(), of_layer["forward"], of_layer["backward"], by_file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="layers whose name contains this")
    parser.add_argument("--where", action="store_true", help="print the calls of each file as well")
    options = parser.parse_args()
    chosen = [row for row in rows() if options.only in row.name]
    for row in chosen:
        cost = count(row)
        print(f"{row.name:34} {cost.calls:8,} calls  {cost.forwards:3} + {cost.backwards} evaluations", flush=True)
        if options.where:
            for file, calls in cost.by_file.most_common(25):
                print(f"    {calls:8,}  {'/'.join(Path(file).parts[-3:])}")
    for row in [row for row in chosen if row.verdict == "FAIL"]:
        with_fix, without = count(row, "usual").calls, count(row).calls
        print(f"{row.name}, with the search for a fix: {with_fix:,} calls, {with_fix / without:.1f} times")
    before = count(chosen[0]).calls
    classes = [type(f"Another{k}", (Tanh,), {"forward": staticmethod(lambda ctx, x: x)}) for k in range(500)]
    after = count(chosen[0]).calls
    print(f"{chosen[0].name} with {len(classes)} more PyLayer classes: {after / before:.3f} times the calls")


if __name__ == "__main__":
    main()
