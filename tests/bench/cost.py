"""What a failing check costs beside its passing twin, and ours beside torch's gradcheck: ratios of median seconds.

    python tests/bench/cost.py [--rounds 5] [--only TEXT]      # torch is left out where it is not installed

Asked: failing / passing at most 20; one wrong entry of 1,000,000 under 4 s; mode full of a cross-entropy of 16 × 50 at
most 1 × torch slow; tanh of 5,000 elements at most 2 × torch fast, interleaved and each in a loop of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import gradcheckers  # noqa: E402
import numpy as np  # noqa: E402
from everyday.definition import paddle_layer  # noqa: E402
from everyday.norms import layer_norm, layer_norm_vjp  # noqa: E402
from everyday.sequences import attention, attention_vjp, cell, lstm, lstm_vjp  # noqa: E402

import gradcheck  # noqa: E402
import pylayer.paddle as paddle  # noqa: E402

F: Any = paddle.nn.functional
RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, 50, 16)
MILLION = 1_000_000
Run = Callable[[], Any]


# --------------------------------------------------------------------------- layers, right and wrong
def without_row_sum(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
    p = F.softmax(q @ k.transpose([0, 2, 1]) / np.sqrt(q.shape[-1]), axis=-1)
    ds = p * (g @ v.transpose([0, 2, 1])) / float(np.sqrt(q.shape[-1]))
    return ds @ k, ds.transpose([0, 2, 1]) @ q, p.transpose([0, 2, 1]) @ g


def detached(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
    """Right, and says nothing of how the gradient depends on x."""
    return layer_norm_vjp(x.detach(), w, b, y, g)


def tanh_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (1 - y * y)


def one_entry(x: Any, y: Any, g: Any) -> Any:
    d = tanh_vjp(x, y, g).numpy().copy()
    d[777_777] *= 1.1
    return paddle.to_tensor(d)


def cross_entropy(x: Any) -> Any:
    return -F.log_softmax(x, axis=-1)[np.arange(16), LABELS].mean()


def cross_entropy_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (F.softmax(x, axis=-1) - paddle.to_tensor(np.eye(50)[LABELS])) / 16


@dataclass(frozen=True)
class Twins:
    """A layer with its right backward and with wrong ones, by name."""

    name: str
    forward: Callable[..., Any]
    right: Callable[..., Any]
    wrong: dict[str, Callable[..., Any]]
    inputs: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    rounds: int | None = None

    def run(self, backward: Callable[..., Any]) -> Run:
        layer = paddle_layer(self.forward, backward)
        return lambda: gradcheck.check(layer, *self.inputs, **self.options)


TWINS = [
    Twins("LSTM (4, 8, 8)", lstm, lstm_vjp, {
        "second output forgotten": lambda *a: lstm_vjp(*a[:-1], (a[-1][0], 0 * a[-1][1])),
        "x for h": lambda x, h, *a: lstm_vjp(x, x, *a),
        "sign of the bias": lambda *a: (*lstm_vjp(*a)[:-1], -lstm_vjp(*a)[-1]),
    }, cell(RANDOM)),
    Twins("attention of 300", attention, attention_vjp, {
        "no row sum": without_row_sum,
        "k for q": lambda q, k, *a: attention_vjp(k, q, *a),
        "one row of v": lambda *a: (*attention_vjp(*a)[:2], attention_vjp(*a)[2] * paddle.to_tensor(
            np.where(np.arange(10) == 3, 1.01, 1.0)[:, None])),
    }, [*RANDOM.standard_normal((3, 1, 10, 10))]),
    Twins("layer norm, order 2", layer_norm, layer_norm_vjp, {
        "detached": detached,
        "first order wrong": lambda *a: (2 * layer_norm_vjp(*a)[0], *layer_norm_vjp(*a)[1:]),
    }, [RANDOM.standard_normal((8, 16)), RANDOM.standard_normal(16), RANDOM.standard_normal(16)], {"order": 2}),
    Twins("tanh of 1,000,000", paddle.tanh, tanh_vjp, {"one entry": one_entry}, [RANDOM.standard_normal(MILLION)],
          rounds=1),
]  # fmt: skip


# --------------------------------------------------------------------------- torch
def torch_checks() -> dict[str, Run]:
    """Slow mode of the cross-entropy and fast mode of tanh; nothing where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    torch.set_num_threads(1)
    labels = torch.as_tensor(LABELS)

    class CrossEntropy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return -torch.log_softmax(x, -1)[torch.arange(16), labels].mean()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (torch.softmax(x, -1) - torch.nn.functional.one_hot(labels, 50)) / 16

    logits = torch.tensor(LOGITS, requires_grad=True)
    return {
        "slow": lambda: torch.autograd.gradcheck(CrossEntropy.apply, (logits,)),
        "fast": gradcheckers.torch(fast=True)(TANH),
    }


LOGITS = RANDOM.standard_normal((16, 50))
TANH = ("tanh", 5000)


# --------------------------------------------------------------------------- seconds
def seconds(run: Run) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def interleaved(runs: list[Run], rounds: int) -> list[float]:
    """The median seconds of each, all in turn, after one round that does not count."""
    timed = [[seconds(run) for run in runs] for _ in range(rounds + 1)]
    return [median(column) for column in zip(*timed[1:], strict=True)]


def alone(runs: list[Run], rounds: int) -> list[float]:
    """The median seconds of each in a loop of its own."""
    return [interleaved([run], rounds)[0] for run in runs]


def twins(pair: Twins, rounds: int) -> None:
    right = gradcheck.check(paddle_layer(pair.forward, pair.right), *pair.inputs, **pair.options)
    names = list(pair.wrong)
    times = interleaved([pair.run(b) for b in (pair.right, *pair.wrong.values())], pair.rounds or rounds)
    print(f"{pair.name}: passing ({right.verdict}) {times[0]:.4f} s, {right.evaluations} evaluations")
    for name, time_of in zip(names, times[1:], strict=True):
        found = pair.run(pair.wrong[name])()
        print(f"    {name} ({found.verdict}): {time_of:.4f} s, {time_of / times[0]:.1f} × passing, "
              f"{found.evaluations} evaluations")  # fmt: skip


def beside_torch(rounds: int) -> None:
    theirs = torch_checks()
    entropy, tanh = paddle_layer(cross_entropy, cross_entropy_vjp), paddle_layer(paddle.tanh, tanh_vjp)
    (x,) = gradcheckers.data(TANH)
    cases = {
        "cross-entropy 16 × 50, mode full / torch slow": (
            lambda: gradcheck.check(entropy, LOGITS, mode="full"), theirs.get("slow"), rounds),
        "tanh 5,000, auto / torch fast": (lambda: gradcheck.check(tanh, x), theirs.get("fast"), 20 * rounds),
    }  # fmt: skip
    for name, (ours, other, count) in cases.items():
        print(f"{name}: {ours().verdict}")
        if other is None:
            print(f"    ours alone {alone([ours], count)[0]:.4f} s; torch is not installed")
            continue
        for how, measure in (("interleaved", interleaved), ("each in a loop of its own", alone)):
            mine, peer = measure([ours, other], count)
            print(f"    {how}: {mine / peer:.2f} × ({mine:.4f} s, {peer:.4f} s)")


def main() -> None:
    """Measure, and print the ratios."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--only", default="", help="of the twins those whose names hold this text; 'torch': none")
    chosen = arguments.parse_args()
    for pair in TWINS:
        if chosen.only in pair.name:
            twins(pair, chosen.rounds)
    if chosen.only in ("", "torch"):
        beside_torch(chosen.rounds)


if __name__ == "__main__":
    main()
