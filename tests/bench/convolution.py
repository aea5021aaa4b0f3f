"""conv2d of 32×16×32×32 with 16 filters of 3×3, forward and backward: the engine, torch, and nine shifted matmuls.

    python tests/bench/convolution.py                       # what this interpreter can import
    python tests/bench/convolution.py --peers OTHER/bin/python

One thread each, a process each, float64 and float32; milliseconds, medians of `REPEATS`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 15
SHAPE, FILTERS = (32, 16, 32, 32), 16
DTYPES = ("float64", "float32")


def ours(x: Any, w: Any, g: Any) -> Callable[[], Any]:
    """The engine."""
    sys.path.insert(0, str(ROOT / "engine"))
    import pylayer.paddle as paddle

    def step() -> Any:
        leaves = [paddle.Tensor(a, None, False) for a in (x, w)]
        out = paddle.nn.functional.conv2d(*leaves, padding=1)
        return [t.array for t in paddle.grad(out, leaves, paddle.Tensor(g))]

    return step


def torch(x: Any, w: Any, g: Any) -> Callable[[], Any]:
    """torch, on one thread."""
    import torch

    torch.set_num_threads(1)
    leaves = [torch.tensor(a, requires_grad=True) for a in (x, w)]
    cotangent = torch.tensor(g)
    return lambda: torch.autograd.grad(torch.nn.functional.conv2d(*leaves, padding=1), leaves, cotangent)


def shifted(x: Any, w: Any, g: Any) -> Callable[[], Any]:
    """By hand: one matmul per element of the kernel, forward and twice in backward."""
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
    """The milliseconds of one way, and the sums of its gradients."""
    found: dict[str, Any] = {}
    for dtype in DTYPES:
        r = np.random.RandomState(0)
        x, g = r.randn(*SHAPE).astype(dtype), r.randn(SHAPE[0], FILTERS, *SHAPE[2:]).astype(dtype)
        step = WAYS[name](x, r.randn(FILTERS, SHAPE[1], 3, 3).astype(dtype), g)
        found[f"{dtype} check"] = [float(np.abs(np.asarray(a)).sum()) for a in step()]
        times = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            step()
            times.append(time.perf_counter() - started)
        found[dtype] = statistics.median(times) * 1e3
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
    base = results["pylayer"]
    for dtype in DTYPES:
        for name, found in results.items():
            agree = np.allclose(found[f"{dtype} check"], base[f"{dtype} check"], rtol=1e-3)
            ratio = base[dtype] / found[dtype]
            print(f"{dtype}  {name:22}{found[dtype]:8.2f} ms   pylayer / it {ratio:5.2f}   agree {agree}")


if __name__ == "__main__":
    main()
