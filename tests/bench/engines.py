"""The engine beside other autograd engines and hand-written NumPy, on the same workloads in one run.

    python tests/bench/engines.py                          # every engine this interpreter can import
    python tests/bench/engines.py --only pylayer           # one of them, beside hand-written NumPy
    python tests/bench/engines.py --peers OTHER/bin/python # those that only another environment has, too

Each engine is measured in a process of its own with the same inputs and two threads. The rounds go through all engines
in turn, so that what else the machine does hits all alike. All arrays are float64.

    chain   1000 small operations on 10 elements, forward and backward; microseconds per operation
    mlp     256-512-512-10 on a batch of 64, tanh, squared error; milliseconds
    big     ten elementwise operations on 1e6 elements; milliseconds
    deep    100,000 additions, forward and backward; seconds
    drop    the same graph dropped without a backward; seconds
    peak    growth of the resident memory in one `big`; MiB
    gc      what the cyclic garbage collector finds after a chain's backward; objects
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CHAIN, DEEP, BIG = 1000, 100_000, 1_000_000


# --------------------------------------------------------------------------- workloads, written once
def chain(e: Any, h: Any, w: Any, b: Any) -> Any:
    """tanh, times w, plus b, in turn."""
    tanh = e.tanh
    for i in range(CHAIN):
        k = i % 3
        h = tanh(h) if k == 0 else h * w if k == 1 else h + b
    return e.sum(h)


def mlp(e: Any, X: Any, Y: Any, W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any) -> Any:
    """Two hidden layers and a squared error."""
    a = e.tanh(X @ W1 + b1)
    a = e.tanh(a @ W2 + b2)
    d = a @ W3 + b3 - Y
    return e.sum(d * d)


def big(e: Any, x: Any) -> Any:
    """Ten elementwise operations."""
    y = e.exp(e.tanh(x) * x + x) - x
    y = (e.tanh(y * y) + x) * x
    return e.sum(e.tanh(y))


def deep(e: Any, h: Any, b: Any) -> Any:
    """A chain of additions."""
    for _ in range(DEEP):
        h = h + b
    return e.sum(h)


def inputs() -> dict[Callable[..., Any], tuple[list[Any], list[Any]]]:
    """Per workload, the arrays a gradient is taken for and the constants before them."""
    r = np.random.RandomState(0)
    sizes = [256, 512, 512, 10]
    layers = [a for i, o in itertools.pairwise(sizes) for a in (r.randn(i, o) / i**0.5, np.zeros(o))]
    h, w, b = r.randn(10), r.uniform(0.9, 1.1, 10), r.uniform(-0.1, 0.1, 10)
    return {
        chain: ([h, w, b], []),
        mlp: (layers, [r.randn(64, 256), r.randn(64, 10)]),
        big: ([r.randn(BIG) * 0.5], []),
        deep: ([h, b], []),
    }


# --------------------------------------------------------------------------- engines
class Engine:
    """An engine with a tape: `leaf` makes its tensors, `gradients` runs its backward."""

    def step(self, workload: Callable[..., Any], arrays: list[Any], constants: list[Any]) -> list[Any]:
        """Forward and backward; the gradients as arrays."""
        leaves = [self.leaf(a, True) for a in arrays]
        return self.gradients(workload(self, *[self.leaf(c, False) for c in constants], *leaves), leaves)

    def forward(self, workload: Callable[..., Any], arrays: list[Any]) -> Any:
        """The loss alone, with its graph."""
        return workload(self, *[self.leaf(a, True) for a in arrays])

    def leaf(self, array: Any, needs_gradient: bool) -> Any:
        raise NotImplementedError

    def gradients(self, loss: Any, leaves: list[Any]) -> list[Any]:
        loss.backward()
        return [leaf.grad for leaf in leaves]

    def sum(self, x: Any) -> Any:
        return x.sum()


class Ours(Engine):
    def __init__(self) -> None:
        sys.path.insert(0, str(ROOT / "engine"))
        import pylayer.paddle as paddle

        self.paddle, self.version = paddle, "this checkout"
        self.tanh, self.exp = paddle.tanh, paddle.exp
        self.tensor = paddle.Tensor

    def leaf(self, array: Any, needs_gradient: bool) -> Any:
        return self.tensor(array, None, not needs_gradient)

    def gradients(self, loss: Any, leaves: list[Any]) -> list[Any]:
        loss.backward()
        return [leaf.grad.array for leaf in leaves]


class Torch(Engine):
    def __init__(self) -> None:
        import torch

        torch.set_num_threads(2)
        self.torch, self.version = torch, torch.__version__
        self.tanh, self.exp = torch.tanh, torch.exp

    def leaf(self, array: Any, needs_gradient: bool) -> Any:
        return self.torch.from_numpy(array).requires_grad_(needs_gradient)


class Paddle(Engine):
    """Leaves are kept from run to run: making one copies it, which is no part of the workload."""

    def __init__(self) -> None:
        import paddle

        paddle.set_device("cpu")
        self.paddle, self.version, self.leaves = paddle, paddle.__version__, {}
        self.tanh, self.exp = paddle.tanh, paddle.exp

    def leaf(self, array: Any, needs_gradient: bool) -> Any:
        key = id(array), needs_gradient
        if key not in self.leaves:
            self.leaves[key] = array, self.paddle.to_tensor(array, stop_gradient=not needs_gradient)
        return self.leaves[key][1]

    def gradients(self, loss: Any, leaves: list[Any]) -> list[Any]:
        loss.backward()
        found = [leaf.grad.numpy().copy() for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
        return found


class MyGrad(Engine):
    def __init__(self) -> None:
        import mygrad

        self.mygrad, self.version = mygrad, mygrad.__version__
        self.tanh, self.exp = mygrad.tanh, mygrad.exp

    def leaf(self, array: Any, needs_gradient: bool) -> Any:
        return self.mygrad.tensor(array, copy=False, constant=not needs_gradient)


class Autograd(Engine):
    def __init__(self) -> None:
        from importlib.metadata import version

        import autograd
        import autograd.numpy

        self.autograd, self.version = autograd, version("autograd")
        self.tanh, self.exp = autograd.numpy.tanh, autograd.numpy.exp
        self.sum = autograd.numpy.sum

    def step(self, workload: Callable[..., Any], arrays: list[Any], constants: list[Any]) -> list[Any]:
        def loss(*leaves: Any) -> Any:
            return workload(self, *constants, *leaves)

        return list(self.autograd.value_and_grad(loss, argnum=tuple(range(len(arrays))))(*arrays)[1])


class RawNumpy(Engine):
    """Hand-written forward and backward without any graph: what an engine cannot beat by much."""

    def __init__(self) -> None:
        self.version = np.__version__

    def step(self, workload: Callable[..., Any], arrays: list[Any], constants: list[Any]) -> list[Any]:
        by_hand = {chain: self.chain, mlp: self.mlp, big: self.big, deep: self.deep}
        return by_hand[workload](*constants, *arrays)

    def chain(self, h: Any, w: Any, b: Any) -> list[Any]:
        saved: list[Any] = []
        for i in range(CHAIN):
            k = i % 3
            if k == 0:
                h = np.tanh(h)
                saved.append(h)
            elif k == 1:
                saved.append(h)
                h = h * w
            else:
                h = h + b
        h.sum()
        g, gw, gb = np.ones_like(h), np.zeros_like(w), np.zeros_like(b)
        for i in range(CHAIN - 1, -1, -1):
            k = i % 3
            if k == 0:
                y = saved.pop()
                g = g * (1.0 - y * y)
            elif k == 1:
                gw += g * saved.pop()
                g = g * w
            else:
                gb += g
        return [g, gw, gb]

    def mlp(self, X: Any, Y: Any, W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any) -> list[Any]:
        a1 = np.tanh(X @ W1 + b1)
        a2 = np.tanh(a1 @ W2 + b2)
        d = a2 @ W3 + b3 - Y
        (d * d).sum()
        g = 2 * d
        gW3, gb3 = a2.T @ g, g.sum(0)
        g = (g @ W3.T) * (1 - a2 * a2)
        gW2, gb2 = a1.T @ g, g.sum(0)
        g = (g @ W2.T) * (1 - a1 * a1)
        return [X.T @ g, g.sum(0), gW2, gb2, gW3, gb3]

    def big(self, x: Any) -> list[Any]:
        y1 = np.tanh(x)
        y4 = np.exp(y1 * x + x)
        y5 = y4 - x
        y7 = np.tanh(y5 * y5)
        y8 = y7 + x
        y10 = np.tanh(y8 * x)
        y10.sum()
        g = 1.0 - y10 * y10
        del y10
        gx = g * y8
        del y8
        g = g * x
        gx += g
        g = g * (1.0 - y7 * y7)
        del y7
        g = g * (2.0 * y5)
        del y5
        gx -= g
        g = g * y4
        del y4
        gx += g
        gx += g * y1
        g = g * x
        gx += g * (1.0 - y1 * y1)
        return [gx]

    def deep(self, h: Any, b: Any) -> list[Any]:
        for _ in range(DEEP):
            h = h + b
        h.sum()
        g, gb = np.ones_like(h), np.zeros_like(b)
        for _ in range(DEEP):
            gb += g
        return [g, gb]


ENGINES = {
    "raw NumPy": RawNumpy, "pylayer": Ours, "torch": Torch, "Paddle": Paddle, "mygrad": MyGrad,
    "HIPS autograd": Autograd,
}  # fmt: skip


# --------------------------------------------------------------------------- one engine, in this process
def seconds(run: Callable[[], Any]) -> float:
    gc.collect()
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def measured(name: str, what: str) -> dict[str, Any]:
    """One measurement of one engine."""
    engine, work = ENGINES[name](), inputs()
    found: dict[str, Any] = {"version": engine.version}
    engine.step(chain, *work[chain])
    if what == "times":
        gradients = [g for w in (chain, mlp, big) for g in engine.step(w, *work[w])]
        found["check"] = [float(np.abs(np.asarray(g)).sum()) for g in gradients]
        for workload, repeats in ((chain, 30), (mlp, 20), (big, 7)):
            runs = [seconds(lambda w=workload: engine.step(w, *work[w])) for _ in range(repeats)]  # type: ignore[misc]
            found[workload.__name__] = statistics.median(runs)
    elif what == "deep":
        found["deep"] = seconds(lambda: engine.step(deep, *work[deep]))
    elif what == "drop":
        if isinstance(engine, (RawNumpy, Autograd)):  # they hand out no graph
            return found
        held = [engine.forward(deep, work[deep][0])]
        found["drop"] = seconds(held.clear)
    elif what == "peak":
        engine.step(big, [work[big][0][0][:1000].copy()], [])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        engine.step(big, *work[big])
        found["peak"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    elif what == "gc":
        gc.collect()
        gc.disable()
        engine.step(chain, *work[chain])
        found["gc"] = gc.collect()
    return found


# --------------------------------------------------------------------------- all engines, in turn
def spawned(python: str, name: str, what: str) -> dict[str, Any]:
    """`measured` in a process of its own; a crash is reported by its name."""
    command = [python, "-W", "ignore", __file__, "--engine", name, "--what", what]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    try:
        done = subprocess.run(
            command, env=os.environ | threads, capture_output=True, text=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        return {what: "over 300 s"}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    if done.returncode < 0:
        return {what: signal.Signals(-done.returncode).name}
    return {what: (done.stderr.strip().splitlines() or ["failed"])[-1][:60]}


def interpreter_of(name: str, pythons: list[str]) -> str | None:
    """The first interpreter that can import an engine."""
    module = {"raw NumPy": "numpy", "pylayer": "ml_dtypes", "HIPS autograd": "autograd"}.get(name, name.lower())
    for python in pythons:
        code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
        if subprocess.run([python, "-c", code], check=False).returncode == 0:
            return python
    return None


def main() -> None:
    """Measure, and print a table of medians and one of ratios to hand-written NumPy."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--engine", help=argparse.SUPPRESS)
    arguments.add_argument("--what", help=argparse.SUPPRESS)
    arguments.add_argument("--peers", action="append", default=[], help="an interpreter with further engines")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", default="", help="engines whose names hold this text")
    arguments.add_argument("--json", type=Path, help="also write the figures to this file")
    chosen = arguments.parse_args()
    if chosen.engine:
        print(json.dumps(measured(chosen.engine, chosen.what)))
        return
    names = [name for name in ENGINES if name == "raw NumPy" or chosen.only in name]  # ratios are to raw NumPy
    pythons = {name: interpreter_of(name, [sys.executable, *chosen.peers]) for name in names}
    for name in [n for n, python in pythons.items() if python is None]:
        print(f"{name}: not installed, left out")
        del pythons[name]
    rounds = [{n: spawned(str(p), n, "times") for n, p in pythons.items()} for _ in range(chosen.rounds)]
    extra = {n: {w: spawned(str(p), n, w).get(w) for w in ("deep", "drop", "peak", "gc")} for n, p in pythons.items()}
    medians = {
        n: {w: statistics.median(r[n][w] for r in rounds) for w in ("chain", "mlp", "big")}
        for n in pythons
        if all("check" in r[n] for r in rounds)
    }
    base = rounds[0]["raw NumPy"]["check"]
    row = "{:15}{:16}{:>12}{:>9}{:>9}{:>10}{:>10}{:>10}{:>8}  {}".format
    print(row("engine", "version", "chain µs/op", "mlp ms", "big ms", "peak MiB", "deep s", "drop s", "gc", "agree"))
    for name, times in medians.items():
        scaled = [f"{times['chain'] / CHAIN * 1e6:.2f}", f"{times['mlp'] * 1e3:.2f}", f"{times['big'] * 1e3:.1f}"]
        deep_, drop, peak, left = [
            f"{v:.2f}" if isinstance(v, float) else "-" if v is None else str(v)[:9] for v in extra[name].values()
        ]
        agree = np.allclose(base, rounds[0][name]["check"], rtol=1e-9)
        print(row(name, rounds[0][name]["version"][:15], *scaled, peak, deep_, drop, left, agree))
    if chosen.json:
        versions = {n: rounds[0][n]["version"] for n in medians}
        seconds_of = {n: {w: [r[n][w] for r in rounds] for w in ("chain", "mlp", "big")} for n in medians}
        figures = {"versions": versions, "seconds": seconds_of, "extra": {n: extra[n] for n in medians}}
        chosen.json.write_text(json.dumps(figures), encoding="utf-8")
    print("\npylayer's ratio to each (median of the rounds' own ratios):")
    for name in [n for n in medians if n != "pylayer"]:
        ratios = [statistics.median(r["pylayer"][w] / r[name][w] for r in rounds) for w in ("chain", "mlp", "big")]
        print(f"  {name:15}" + "  ".join(f"{w} {q:.2f}" for w, q in zip(("chain", "mlp", "big"), ratios, strict=True)))


if __name__ == "__main__":
    main()
