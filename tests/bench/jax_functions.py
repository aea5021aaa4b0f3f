"""The functions of tests/backends/jax/functions.py by gradcheck and by `jax.test_util.check_grads`.

Each of them right, and with five mistakes, in double and single precision: verdicts, lines named, and seconds of this
process. Needs JAX. ``--only NAME`` checks one of them, ``--checker NAME`` runs one of the two, ``--json FILE`` writes
the figures into a file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from jax.test_util import check_grads

sys.path.append(str(Path(__file__).parents[1] / "backends" / "jax"))

from functions import FUNCTIONS, made

import gradcheck


def by_gradcheck(function: Any, inputs: Any) -> tuple[str, str]:
    """The verdict, and the line that is named."""
    result = gradcheck.check(function, *inputs)
    return result.verdict.name, next((cause.source_line for cause in result.diagnosis), "")


def by_jax(function: Any, inputs: Any) -> tuple[str, str]:
    """PASS or FAIL of JAX's own checker, of the arguments that have a gradient, with its defaults."""
    places = [k for k, x in enumerate(inputs) if all(leaf.dtype.kind == "f" for leaf in jax.tree.leaves(x))]

    def of_floats(*given: Any) -> Any:
        values = list(inputs)
        for k, value in zip(places, given, strict=True):
            values[k] = value
        return function(*values)

    try:
        check_grads(jax.jit(of_floats), [inputs[k] for k in places], order=1, modes=["rev"])
    except AssertionError:
        return "FAIL", ""
    return "PASS", ""


CHECKERS: dict[str, Callable[[Any, Any], tuple[str, str]]] = {"gradcheck": by_gradcheck, "check_grads": by_jax}


def measured(name: str, dtype: str, checkers: Sequence[str]) -> dict[str, Counter[str]]:
    """The counts of each checker for one function in a dtype."""
    row, counts = FUNCTIONS[name], {checker: Counter[str]() for checker in checkers}
    inputs = jax.tree.map(lambda a: a.astype(dtype) if a.dtype.kind == "f" else a, row.inputs)
    cases = [("PASS", row.right, ""), *(("FAIL", backward, line) for backward, line in row.wrong.values())]
    for wanted, backward, line in cases:
        for checker in checkers:
            started = time.process_time()
            verdict, named = CHECKERS[checker](made(row.primal, backward), inputs)
            count = counts[checker]
            count["seconds"] += time.process_time() - started  # type: ignore[assignment]
            count["checks"] += 1
            count[f"{wanted} as {verdict}"] += 1
            if wanted == "FAIL" and line:
                count["about a line"] += 1
                count["line named"] += any(part in named for part in line.split(" | ")) and bool(named)
                count["another line named"] += bool(named) and not any(part in named for part in line.split(" | "))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=FUNCTIONS)
    parser.add_argument("--checker", choices=CHECKERS)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    figures: dict[str, dict[str, Counter[str]]] = {}
    checkers = [options.checker] if options.checker else [*CHECKERS]
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    for dtype in ("float64", "float32"):
        figures[dtype] = total = {checker: Counter[str]() for checker in checkers}
        for name in [options.only] if options.only else FUNCTIONS:
            for checker, count in measured(name, dtype, checkers).items():
                total[checker].update(count)
        for checker, count in total.items():
            seconds = count["seconds"] / count["checks"]
            print(f"{dtype} {checker}: {dict(count)}, {seconds:.2f} s of CPU a check", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
