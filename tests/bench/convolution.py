"""conv2d of the usual kinds, forward and backward: the engine, torch, and for 3×3 nine shifted matmuls.

    python tests/bench/convolution.py                       # what this interpreter can import
    python tests/bench/convolution.py --peers OTHER/bin/python

One thread each, a process each, float64 and float32; milliseconds of processor time, medians of `REPEATS`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 15
DTYPES = ("float64", "float32")


class Case(NamedTuple):
    """The shapes of the input and of the filter, and the rest of what conv2d is given."""

    input: tuple[int, ...]
    filter: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    groups: int = 1


CASES = {
    "3×3": Case((32, 16, 32, 32), (16, 16, 3, 3), padding=1),
    "3×3, stride 2": Case((8, 64, 28, 28), (128, 64, 3, 3), stride=2, padding=1),
    "7×7, stride 2": Case((8, 3, 112, 112), (64, 3, 7, 7), stride=2, padding=3),
    "1×1": Case((8, 64, 28, 28), (128, 64, 1, 1)),
    "depthwise 3×3": Case((8, 64, 28, 28), (64, 1, 3, 3), padding=1, groups=64),
}


def ours(case: Case, x: Any, w: Any, g: Any) -> Callable[[], Any]:
    """The engine."""
    sys.path.insert(0, str(ROOT / "engine"))
    import pylayer.paddle as paddle

    def step() -> Any:
        leaves = [paddle.Tensor(a, None, False) for a in (x, w)]
        out = paddle.nn.functional.conv2d(*leaves, stride=case.stride, padding=case.padding, groups=case.groups)
        return [t.array for t in paddle.grad(out, leaves, paddle.Tensor(g))]

    return step


def torch(case: Case, x: Any, w: Any, g: Any) -> Callable[[], Any]:
    """torch, on one thread."""
    import torch

    torch.set_num_threads(1)
    leaves = [torch.tensor(a, requires_grad=True) for a in (x, w)]
    cotangent = torch.tensor(g)
    rest = (None, case.stride, case.padding, 1, case.groups)
    return lambda: torch.autograd.grad(torch.nn.functional.conv2d(*leaves, *rest), leaves, cotangent)


def shifted(case: Case, x: Any, w: Any, g: Any) -> Callable[[], Any] | None:
    """By hand, for one kind alone: one matmul per element of the kernel, forward and twice in backward."""
    if case != CASES["3×3"]:
        return None
    batch, channels, height, width = x.shape
    filters = w.shape[0]
    places = [(i, j) for i in range(3) for j in range(3)]

    def step() -> Any:
        wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
        out = np.zeros((batch, filters, height * width), x.dtype)
        parts = {}
        for i, j in places:
            parts[i, j] = wide[:, :, i : i + height, j : j + width].reshape(batch, channels, -1)
            out += w[:, :, i, j] @ parts[i, j]
        flat, gw, gx = g.reshape(batch, filters, -1), np.empty_like(w), np.zeros_like(wide)
        for i, j in places:
            gw[:, :, i, j] = (flat @ parts[i, j].swapaxes(1, 2)).sum(0)
            gx[:, :, i : i + height, j : j + width] += (w[:, :, i, j].T @ flat).reshape(x.shape)
        return [gx[:, :, 1:-1, 1:-1], gw]

    return step


WAYS = {"pylayer": ours, "torch": torch, "nine shifted matmuls": shifted}


def measured(name: str) -> dict[str, Any]:
    """By case and dtype the milliseconds of one way, and the sums of its gradients."""
    found: dict[str, Any] = {}
    for kind, dtype in itertools.product(CASES, DTYPES):
        r, case = np.random.RandomState(0), CASES[kind]
        sizes = [
            (n + 2 * case.padding - k) // case.stride + 1 for n, k in zip(case.input[2:], case.filter[2:], strict=True)
        ]
        shapes = case.input, case.filter, (case.input[0], case.filter[0], *sizes)
        step = WAYS[name](case, *(r.randn(*shape).astype(dtype) for shape in shapes))
        if step is None:
            continue
        check = [float(np.abs(np.asarray(a)).sum()) for a in step()]
        times = []
        for _ in range(REPEATS):
            started = time.process_time()
            step()
            times.append(time.process_time() - started)
        found[f"{kind:14}{dtype}"] = {"ms": statistics.median(times) * 1e3, "check": check}
    return found


def main() -> None:
    """Measure all ways, each in the first interpreter that can, and print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--way", help=argparse.SUPPRESS)
    arguments.add_argument("--peers", action="append", default=[], help="an interpreter with torch")
    chosen = arguments.parse_args()
    if chosen.way:
        print(json.dumps(measured(chosen.way)))
        return
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    results: dict[str, Any] = {}
    for name in WAYS:
        for python in [sys.executable, *chosen.peers]:
            command = [python, "-W", "ignore", __file__, "--way", name]
            done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                results[name] = json.loads(done.stdout)
                break
        else:
            print(f"{name}: cannot be imported, left out")
    for kind, base in results["pylayer"].items():
        for name, found in results.items():
            if kind in found:
                agree = np.allclose(found[kind]["check"], base["check"], rtol=1e-3)
                ratio = base["ms"] / found[kind]["ms"]
                print(f"{kind}  {name:22}{found[kind]['ms']:8.2f} ms   pylayer / it {ratio:5.2f}   agree {agree}")


if __name__ == "__main__":
    main()
