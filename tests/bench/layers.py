"""Everyday layers in NumPy and in Paddle operations, right and with ten mistakes each: how often the verdict is right.

    python tests/bench/layers.py [--seeds N] [--style numpy|paddle] [--only NAME] [--dtype float64|float32]

Asked: of the right ones none FAILs and at most 0.5 % are INCONCLUSIVE; of the broken ones that rounding cannot hide
none is green.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from everyday import activations, algebra, losses, norms, sequences, structure  # noqa: E402
from everyday.definition import Layer, Mutation  # noqa: E402
from everyday.mutations import mutants  # noqa: E402

import gradcheck  # noqa: E402
import pylayer.paddle as paddle  # noqa: E402

LAYERS = [layer for module in (activations, norms, losses, sequences, structure, algebra) for layer in module.LAYERS]
DTYPES = ("float64", "float32")


def judged(layer: Layer, inputs: list[Any], seed: int, mutation: Mutation | None = None) -> tuple[str, float]:
    """The verdict, and the seconds it took."""
    made = layer.py_layer(mutation)
    arguments = [x.copy() if x.dtype.kind in "fc" else paddle.to_tensor(x) for x in inputs]  # labels need no gradient
    started = time.perf_counter()
    try:
        verdict = str(gradcheck.check(made, *arguments, seed=seed).verdict)
    except Exception as error:  # a crash is a finding, not the end of the others
        verdict = f"raised {type(error).__name__}"
        print(f"    {layer.name}: {type(error).__name__}: {error}")
    return verdict, time.perf_counter() - started


def judge(layer: Layer, number: int, seed: int, dtype: str, right: Counter[str], broken: Counter[str]) -> list[float]:
    """Count the verdicts on a layer and its mutants at one point, print wrong ones, give the ratios of the seconds."""
    inputs = layer.drawn(seed, dtype)
    verdict, passing = judged(layer, inputs, seed)
    right[verdict] += 1
    where = f"{layer.name} ({layer.style}), seed {seed}, {dtype}"
    if verdict not in ("PASS", "KINK"):
        print(f"    {verdict} of the right backward: {where}")
    ratios = []
    for name, mutation in mutants(layer, number, inputs):
        verdict, seconds = judged(layer, inputs, seed, mutation)
        broken[verdict] += 1
        if verdict == "FAIL":
            ratios.append(seconds / passing)
        else:
            print(f"    {verdict} of '{name}': {where}")
    return ratios


def told(counts: Counter[str]) -> str:
    total = sum(counts.values())
    each = ", ".join(f"{n} {verdict} ({100 * n / total:.2f} %)" for verdict, n in counts.most_common())
    return f"{total}: {each}"


def main() -> None:
    """Judge every layer at every seed and dtype, and count."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seeds", type=int, default=1)
    arguments.add_argument("--style", choices=["numpy", "paddle"], default=None)
    arguments.add_argument("--only", default=None, help="layers whose names hold this text")
    arguments.add_argument("--dtype", choices=DTYPES, default=None)
    chosen = arguments.parse_args()
    np.seterr(all="ignore")
    total_right: Counter[str] = Counter()
    total_broken: Counter[str] = Counter()
    ratios: list[float] = []
    started, count = time.perf_counter(), 0
    for number, layer in enumerate(LAYERS):
        if (chosen.style or layer.style) != layer.style or (chosen.only or "") not in layer.name:
            continue
        count += 1
        right: Counter[str] = Counter()
        broken: Counter[str] = Counter()
        found: list[float] = []
        for seed in range(chosen.seeds):
            for dtype in (chosen.dtype,) if chosen.dtype else DTYPES:
                found += judge(layer, number, seed, dtype, right, broken)
        cost = f"×{median(found):.1f}" if found else ""
        print(f"{layer.name:34} {layer.style:7} right {dict(right)}  broken {dict(broken)}  {cost}", flush=True)
        total_right += right
        total_broken += broken
        ratios += found
    print(f"{count} layers in {time.perf_counter() - started:.0f} s")
    print(f"right   {told(total_right)}")
    print(f"broken  {told(total_broken)}")
    if ratios:
        print(f"seconds failing / passing: {median(ratios):.1f} in the median, {max(ratios):.0f} at worst")


if __name__ == "__main__":
    main()
