"""Static programs beside dynamic mode: the same chain of operations, forward and backward, in one run.

    python tests/bench/static.py

    time    1000 operations on 10 elements, microseconds per operation, and static over dynamic
    peak    300 operations on 100,000 elements, the most memory that arrays held at once (MiB)

A program is built once with known sizes and once with sizes given as None. The rounds alternate, so that what else the
machine does hits all alike.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "engine"))

import pylayer.paddle as paddle

Run = Callable[[], Any]


def chain(h: Any, w: Any, b: Any, count: int) -> Any:
    """tanh, times w, plus b, in turn; summed up."""
    for i in range(count):
        k = i % 3
        h = paddle.tanh(h) if k == 0 else h * w if k == 1 else h + b
    return h.sum()


def dynamic(arrays: list[np.ndarray[Any, Any]], count: int) -> Run:
    """The chain and its gradients in dynamic mode."""
    tensors = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]

    def run() -> Any:
        return [g.numpy() for g in paddle.grad(chain(*tensors, count), tensors)]

    return run


def static(arrays: list[np.ndarray[Any, Any]], count: int, shape: list[int | None]) -> Run:
    """The chain and its gradients as a program."""
    paddle.enable_static()
    try:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            data = [paddle.static.data(name, shape, "float64") for name in "hwb"]
            for variable in data:
                variable.stop_gradient = False
            gradients = paddle.static.gradients(chain(*data, count), data)
    finally:
        paddle.disable_static()
    executor, feed = paddle.static.Executor(), dict(zip("hwb", arrays, strict=True))
    return lambda: executor.run(program, feed=feed, fetch_list=gradients)


def seconds(run: Run) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def peak(run: Run) -> float:
    """The most memory held at once during a call, in MiB."""
    run()
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def main(count: int = 1000, rounds: int = 40) -> None:
    """Measure and print."""
    random = np.random.default_rng(0)
    small = [random.normal(size=10) for _ in range(3)]
    runs = {
        "dynamic": dynamic(small, count),
        "static [10]": static(small, count, [10]),
        "static [None]": static(small, count, [None]),
    }
    results = [run() for run in runs.values()]
    assert all(np.array_equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds(run))
    base = statistics.median(times["dynamic"])
    for name, measured in times.items():
        median = statistics.median(measured)
        print(f"time {name:14} {median / count * 1e6:6.2f} µs per operation   {median / base:5.2f} × dynamic")
    large = [random.normal(size=100_000) for _ in range(3)]
    for name, run in (("dynamic", dynamic(large, 300)), ("static [None]", static(large, 300, [None]))):
        print(f"peak {name:14} {peak(run):9.4f} MiB")


if __name__ == "__main__":
    main()
