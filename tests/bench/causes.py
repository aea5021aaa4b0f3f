"""How often the mistake in a wrong backward is named, at the right line of forward.

    python tests/bench/causes.py [--dtype float32] [--only NAME] [--seed N] [--verbose] [--json FILE]

The layers, their mistakes and the lines at which each may be named are in causes_layers/. For each mistake the result
of ``gradcheck.check`` is one of: named at a right line; explained as a whole without a line, and rightly so (all
entries twice as large, where they are); named wrongly (a line that is none of the right ones, or a statement about the
whole gradient that is not true); explained in a way that is not judged here; not named; or not even found. Backwards
that are nonsense are checked as well: whatever is printed as their cause is wrong.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine"), str(Path(__file__).resolve().parent)]

from causes_layers import (  # noqa: E402
    attention,
    gates,
    losses,
    masks,
    norms,
    plain,
    products,
    recurrent,
    shapes,
    similarities,
)
from causes_layers.cases import Case, Mistake  # noqa: E402
from causes_layers.nonsense import SCALARS, nonsense  # noqa: E402

import gradcheck  # noqa: E402
import pylayer.paddle as paddle  # noqa: E402
from gradcheck.result import Status  # noqa: E402

TOPICS = (plain, norms, attention, recurrent, losses, similarities, products, gates, masks, shapes)
CASES = [case for topic in TOPICS for case in topic.CASES]
LINE, WHOLE, WRONG, OTHER, SILENT, MISSED = OUTCOMES = (
    "right line",
    "right, no line",
    "named wrongly",
    "other words",
    "not named",
    "not found",
)
NO_CAUSES = {"GC110", "GC113", "GC120", "GC121"}
"""Beside the codes from GC130 on: contracts, and statements about the point or the dtype."""
WANTED = {"float64": 80.0, "float32": 70.0}
"""Percent of the mistakes to be named at a right line or rightly as a whole; none may be named wrongly."""
NONSENSES, SCALAR_SEEDS = 3, 12


def inputs(case: Case, seed: int, dtype: str) -> list[Any]:
    """The case's inputs as arrays; floats in a dtype."""
    drawn = [np.asarray(a) for a in case.inputs(np.random.default_rng([seed, 11]))]
    return [a.astype(dtype) if a.dtype.kind == "f" else a for a in drawn]


def checked(layer: type, arrays: Sequence[Any], **options: Any) -> Any:
    """The result of a check; what holds no floats needs no gradient."""
    return gradcheck.check(layer, *(a if a.dtype.kind == "f" else paddle.to_tensor(a) for a in arrays), **options)


def causes(result: Any) -> list[Any]:
    """The diagnoses of a result that are causes."""
    return [d for d in result.diagnosis if d.code < "GC130" and d.code not in NO_CAUSES]


# --------------------------------------------------------------------------- what is true of a whole gradient
@dataclass(frozen=True)
class Gradient:
    """What the right and the broken backward give for one input, for the same cotangents."""

    right: Any
    broken: Any
    cotangent: Any
    """Those of the first output."""

    def equals(self, expected: Any) -> bool:
        scale = max(float(np.abs(self.right).max()), float(np.abs(self.broken).max()))
        return bool(np.shape(expected) == np.shape(self.broken) and np.allclose(expected, self.broken, 0, 1e-9 * scale))

    @property
    def wrong(self) -> bool:
        return not self.equals(self.right)

    def proportional(self) -> bool:
        factor = (self.right * self.broken).sum() / (self.right * self.right).sum()
        return factor != 0 and self.equals(factor * self.right)

    def straight_through(self) -> bool:
        return self.equals(self.cotangent)


TRUE_OF: dict[str, Callable[[Gradient], bool]] = {
    "GC101": Gradient.proportional,
    "GC102": lambda g: g.equals(-g.right),
    "GC103": lambda g: g.right.ndim == 3 and g.equals(np.swapaxes(g.right, 1, 2)),
    "GC108": lambda g: g.equals(0 * g.right),
    "GC112": Gradient.proportional,
    "GC122": Gradient.straight_through,
}
"""By code, what it says of the gradients stacked over several cotangents."""


def gradients(layer: type, arrays: Sequence[Any], count: int = 3) -> tuple[Any, list[Any]]:
    """Some random cotangents of the first output, and the gradients of the floating inputs for them, stacked; None for
    other inputs."""
    starts, found = [], []
    for seed in range(count):
        random = np.random.default_rng(seed)
        leaves = [paddle.to_tensor(a, stop_gradient=a.dtype.kind != "f") for a in arrays]
        outputs = layer.apply(*leaves)
        outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        cotangents = [random.standard_normal(tuple(y.shape)) for y in outputs]
        paddle.autograd.backward(outputs, [paddle.to_tensor(u) for u in cotangents])
        starts.append(cotangents[0])
        found.append([None if t.stop_gradient else np.asarray(t.grad.numpy()) for t in leaves])
    return np.stack(starts), [None if row[0] is None else np.stack(row) for row in zip(*found, strict=True)]


def compared(layer: type, broken: type, arrays: Sequence[Any]) -> dict[str, Gradient]:
    """By the name of the input, its right and broken gradients."""
    names = list(inspect.signature(layer.forward).parameters)[1 : len(arrays) + 1]
    cotangent, right = gradients(layer, arrays)
    rows = zip(names, right, gradients(broken, arrays)[1], strict=True)
    return {name: Gradient(right, wrong, cotangent) for name, right, wrong in rows if right is not None}


# --------------------------------------------------------------------------- judging one result
def judged(case: Case, mistake: Mistake, result: Any, found: dict[str, Gradient]) -> str:
    """The outcome of one check of a layer with a mistake."""
    if result.verdict is not Status.FAIL:
        return MISSED
    said = causes(result)
    here = [at_right_line(case, mistake, d) for d in said if getattr(d, "line", None)]
    whole = [true_as_a_whole(mistake, d, found) for d in said if not getattr(d, "line", None)]
    if not all(here) or False in whole:
        return WRONG
    if here:
        return LINE
    if True in whole:
        return WHOLE
    return OTHER if whole else SILENT


def at_right_line(case: Case, mistake: Mistake, diagnosis: Any) -> bool:
    """Whether the line named is one of the right ones."""
    place = re.fullmatch(r"(.*?):(\d+)(?::\d+)?", str(diagnosis.line))  # file:line, perhaps :column
    if not place:
        return False
    file, number = place.groups()
    own = Path(inspect.getfile(case.layer.forward)).name
    return Path(file).name == own and int(number) in case.lines(mistake)


def true_as_a_whole(mistake: Mistake, diagnosis: Any, found: dict[str, Gradient]) -> bool | None:
    """Whether a cause without a line is true of the inputs that it names; None if that is not known here."""
    named = [found[name] for name in diagnosis.inputs if name in found]
    if not named or not all(g.wrong for g in named):
        return False
    if diagnosis.code in TRUE_OF:
        return all(TRUE_OF[diagnosis.code](g) for g in named)
    return True if diagnosis.code in mistake.whole else None


def told(result: Any) -> str:
    """What a result says of the cause, in one line."""
    parts = [f"{d.code} {getattr(d, 'line', '') or ''} {d.text}".replace("\n", " ") for d in causes(result)]
    return f"{result.verdict}: " + (" | ".join(parts) or "no cause")


# --------------------------------------------------------------------------- the run
def mistakes(cases: Sequence[Case], seed: int, dtype: str, verbose: bool) -> Counter[str]:
    """All mistakes of all layers, counted by outcome."""
    total: Counter[str] = Counter()
    for case in cases:
        counts: Counter[str] = Counter()
        for mistake in case.mistakes:
            broken = case.broken(mistake)
            result = checked(broken, inputs(case, seed, dtype))
            arrays = inputs(case, seed, "float64")
            outcome = judged(case, mistake, result, compared(case.layer, broken, arrays))
            counts[outcome] += 1
            if outcome == WRONG or verbose:
                print(f"  {outcome:15} {case.name}: {mistake.name}   [{mistake.right}] → [{mistake.wrong}]")
                print(f"  {'':15} said      {told(result)}")
                print(f"  {'':15} right at  {'; '.join(f'{n}: {t}' for n, t in sorted(case.lines(mistake).items()))}")
        total += counts
        print(f"{case.name:20} {len(case.mistakes):3}  " + "  ".join(f"{k} {counts[k]}" for k in OUTCOMES if counts[k]))
    return total


def explained(case: Case, seed: int, draws: int, dtype: str) -> tuple[int, int]:
    """Of some nonsense backwards: how many there were, and of how many a cause is printed."""
    count = 0
    for k in range(draws):
        arrays = inputs(case, seed + k, dtype)
        # An edit repairs the nonsense, as the right gradient is a value in its code: that is no cause.
        result = checked(nonsense(case, arrays, 3 * seed + k), arrays, effort="least")
        if causes(result) or result.verdict is not Status.FAIL:
            count += bool(causes(result))
            print(f"  nonsense        {case.name}, seed {seed + k}: {told(result)}")
    return draws, count


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dtype", choices=sorted(WANTED), default="float64")
    parser.add_argument("--only", default="", help="part of the names of the layers to look at")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="also print what was said where it is right")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only.lower() in case.name.lower()]
    scalars = [case for case in SCALARS if options.only.lower() in case.name.lower()]
    counts = mistakes(cases, options.seed, options.dtype, options.verbose)
    tried = [explained(case, options.seed, NONSENSES, options.dtype) for case in cases]
    tried += [explained(case, options.seed, SCALAR_SEEDS, options.dtype) for case in scalars]
    number, nonsenses = sum(counts.values()) or 1, sum(wrong for _, wrong in tried)
    named = 100 * (counts[LINE] + counts[WHOLE]) / number
    print(f"\n{len(cases)} layers, {number} mistakes, {options.dtype}")
    for outcome in OUTCOMES:
        print(f"  {outcome:15} {counts[outcome]:4}  {100 * counts[outcome] / number:5.1f} %")
    print(f"  named rightly   {named:.1f} % (wanted: {WANTED[options.dtype]:.0f} %), wrongly {counts[WRONG]} (0)")
    print(f"  nonsense        {sum(n for n, _ in tried)} backwards, {nonsenses} explained (0)")
    if options.json:
        figures = {"layers": len(cases), "mistakes": number, "outcomes": {name: counts[name] for name in OUTCOMES}}
        figures |= {"dtype": options.dtype, "nonsense": sum(n for n, _ in tried), "explained": nonsenses}
        options.json.write_text(json.dumps(figures), encoding="utf-8")
    return int(named < WANTED[options.dtype] or counts[WRONG] > 0 or nonsenses > 0)


if __name__ == "__main__":
    sys.exit(main())
