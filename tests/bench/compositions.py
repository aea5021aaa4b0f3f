"""Random compositions of elementary functions at |x| from 1e-6 to 1e4: how often verdicts and error bars are right.

    python tests/bench/compositions.py [--count 2000] [--seed N]     (needs mpmath)

The truth is computed with 60 digits. Each function is checked with its right backward, and with wrong ones.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine"), str(ROOT / "tests" / "checking")]

from scans import look  # noqa: E402

from gradcheck.case.gradient_check import check_gradient  # noqa: E402
from gradcheck.checking.problem import Problem  # noqa: E402
from gradcheck.result import Status  # noqa: E402

mpmath.mp.dps = 60


@dataclass(frozen=True)
class Elementary:
    """A function on arrays, its derivative on arrays, and the function in high precision."""

    name: str
    function: Callable[[Any], Any]
    derivative: Callable[[Any], Any]
    exact: Callable[[Any], Any]


TABLE = [
    Elementary("sin", np.sin, np.cos, mpmath.sin),
    Elementary("cos", np.cos, lambda x: -np.sin(x), mpmath.cos),
    Elementary("exp", np.exp, np.exp, mpmath.exp),
    Elementary("tanh", np.tanh, lambda x: 1 / np.cosh(x) ** 2, mpmath.tanh),
    Elementary("atan", np.arctan, lambda x: 1 / (1 + x * x), mpmath.atan),
    Elementary("asinh", np.arcsinh, lambda x: 1 / np.sqrt(1 + x * x), mpmath.asinh),
    Elementary("log1p(x²)", lambda x: np.log1p(x * x), lambda x: 2 * x / (1 + x * x), lambda x: mpmath.log1p(x * x)),
    Elementary("x²", lambda x: x * x, lambda x: 2 * x, lambda x: x * x),
    Elementary("x³", lambda x: x * x * x, lambda x: 3 * x * x, lambda x: x**3),
    Elementary(
        "√(1+x²)", lambda x: np.sqrt(1 + x * x), lambda x: x / np.sqrt(1 + x * x), lambda x: mpmath.sqrt(1 + x * x)
    ),
    Elementary("1/(1+x²)", lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2, lambda x: 1 / (1 + x * x)),
    Elementary("x+1", lambda x: x + 1, lambda x: np.ones_like(x), lambda x: x + 1),
    Elementary("3x", lambda x: 3 * x, lambda x: np.full_like(x, 3.0), lambda x: 3 * x),
    Elementary("expm1", np.expm1, np.exp, mpmath.expm1),
    Elementary("log|x|", lambda x: np.log(np.abs(x)), lambda x: 1 / x, lambda x: mpmath.log(abs(x))),
    Elementary("1/x", lambda x: 1 / x, lambda x: -1 / (x * x), lambda x: 1 / x),
    Elementary(
        "√|x|",
        lambda x: np.sqrt(np.abs(x)),
        lambda x: 0.5 * np.sign(x) / np.sqrt(np.abs(x)),
        lambda x: mpmath.sqrt(abs(x)),
    ),
]  # fmt: skip


@dataclass
class Composition:
    """Elementary functions one after the other."""

    parts: list[Elementary]

    @property
    def name(self) -> str:
        text = "x"
        for part in self.parts:
            text = f"{part.name}({text})"
        return text

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part.function(x)
        return x

    def gradient(self, x: Any) -> Any:
        total = np.ones_like(x)
        for part in self.parts:
            total = total * part.derivative(x)
            x = part.function(x)
        return total

    def exact_gradient(self, x: float) -> Any:
        def f(t: Any) -> Any:
            for part in self.parts:
                t = part.exact(t)
            return t

        return mpmath.diff(f, mpmath.mpf(x), h=mpmath.mpf(10) ** -20 * max(abs(x), mpmath.mpf(10) ** -10))


def problem(forward: Callable[[Any], Any], backward: Callable[[Any, Any], Any], x: Any) -> Problem:
    """A function of one array with a backward of x and the cotangent."""
    return Problem(
        ["x"], [x], [True], ["out"], lambda v: [np.asarray(forward(v[0]))], lambda v, c: [backward(v[0], c[0])]
    )


def judge(function: Composition, x: float, truth: float, factor: float, seed: int, counts: Counter[str]) -> None:
    """Check one composition at one point: its bar, the right backward in both precisions, and a wrong one."""
    array, where = np.array([x]), f"{function.name} at {x!r}: truth {truth!r}"
    found = look(function.forward, array, seed=seed)
    numeric, bar = float(found.value[0]), float(found.bar[0])
    if np.isfinite(bar) and abs(numeric - truth) > bar:
        counts["bar too small"] += 1
        print(f"bar too small: {numeric!r} ± {bar:.1e}, {where}")

    def right(v: Any, g: Any) -> Any:
        return g * np.where(v == x, truth, function.gradient(v))

    backwards = {
        "right backward": right,
        "right backward in float64": lambda v, g: g * function.gradient(v),
        "wrong backward": lambda v, g: right(v, g) * factor,
    }
    if not abs(function.gradient(array)[0] - truth) <= 1e-6 * abs(truth):  # it overflows on the way
        del backwards["right backward in float64"]
    for name, backward in backwards.items():
        verdict = check_gradient(problem(function.forward, backward, array), seed=seed).verdict
        if not (truth == 0 and name == "wrong backward"):
            counts[f"{name}: {verdict}"] += 1
            green = verdict in (Status.PASS, Status.KINK)
            if green if name == "wrong backward" else verdict is Status.FAIL:
                print(
                    f"{verdict} of a {name}{f' (factor {factor:g})' * (name == 'wrong backward')}: {where} ± {bar:.1e}"
                )


def main() -> None:
    """Draw, check, count, and print what was not right."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--count", type=int, default=2000)
    arguments.add_argument("--seed", type=int, default=None)
    chosen = arguments.parse_args()
    seed = secrets.randbelow(2**31) if chosen.seed is None else chosen.seed
    random = np.random.default_rng(seed)
    np.seterr(all="ignore")
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    done = 0
    while done < chosen.count:
        function = Composition(list(random.choice(np.array(TABLE, dtype=object), random.integers(1, 5))))
        x = float(random.choice([-1, 1]) * 10 ** random.uniform(-6, 4))
        factor = float(random.choice([2.0, -1.0, 0.0, 1.02, 1e6, 0.5]))
        array = np.array([x])
        value, gradient = function.forward(array), function.gradient(array)
        truth = float(function.exact_gradient(x)) if np.isfinite(value + gradient).all() else np.inf
        if np.isfinite(truth):
            done += 1
            judge(function, x, truth, factor, done, counts)
    print(f"seed {seed}, {done} compositions in {time.perf_counter() - started:.0f} s")
    for name, count in sorted(counts.items()):
        print(f"  {name:32} {count:6}  {100 * count / done:.2f} %")


if __name__ == "__main__":
    main()
