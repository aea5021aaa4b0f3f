"""The bench of torch: thirty Functions and their mistakes, held by gradcheck and by torch's own checker beside it.

Run it from the root of the repository: ``python tests/backends/torch/fresh.py`` (some minutes); ``--show`` prints what
is said of each mistake.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import textwrap
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.autograd import Function

import gradcheck
from gradcheck.report.check_result import CheckResult
from gradcheck.result import Status

if __package__:
    from .fresh_functions import INPUTS, MISTAKES
else:
    from fresh_functions import INPUTS, MISTAKES  # type: ignore[import-not-found, no-redef]

HEAD = "import torch\nfrom torch.autograd import Function\n\n\n"
DTYPES = ("float64", "float32")


class Variant(NamedTuple):
    """A Function, or one of its mistakes."""

    name: str
    layer: Any
    inputs: tuple[np.ndarray[Any, Any], ...]
    line: str
    """A part of the line of the forward whose derivative is wrong; empty for a right Function."""


def loaded(name: str, source: str, folder: Path) -> Any:
    """The class of some source, from a file of its own."""
    file = folder / f"{name}.py"
    file.write_text(HEAD + source)
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return next(v for v in vars(module).values() if inspect.isclass(v) and v.__module__ == name)


def variants(function: type[Function], folder: Path) -> Iterator[Variant]:
    """A Function and its mistakes."""
    source, inputs = textwrap.dedent(inspect.getsource(function)), INPUTS[function]
    yield Variant(function.__name__, loaded(f"{function.__name__}_right", source, folder), inputs, "")
    start = source.index("def backward")
    for number, (old, new, line) in enumerate(MISTAKES[function], 1):
        changed = source[:start] + source[start:].replace(old, new)
        assert changed != source, (function.__name__, old)
        name = f"{function.__name__}_{number}"
        yield Variant(name, loaded(name, changed, folder), inputs, line)


def names_line(result: CheckResult, line: str) -> bool:
    """Whether a cause is on the line that is wrong."""
    return any(part in cause.source_line for cause in result.diagnosis for part in line.split("|"))


def by_torch(layer: Any, arrays: list[np.ndarray[Any, Any]]) -> str:
    """What torch's own checker says."""
    try:
        torch.autograd.gradcheck(layer.apply, tuple(torch.tensor(a, requires_grad=True) for a in arrays))
    except Exception as error:
        return type(error).__name__
    return "PASS"


def main() -> None:
    warnings.simplefilter("ignore")
    counts, lines, seconds = Counter[tuple[str, ...]](), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for function in INPUTS:
            for variant in variants(function, Path(folder)):
                for dtype in DTYPES:
                    arrays, kind = [a.astype(dtype) for a in variant.inputs], "mistake" if variant.line else "right"
                    began = time.perf_counter()
                    result = gradcheck.check(variant.layer, *arrays)
                    seconds["ours", kind] += time.perf_counter() - began
                    began = time.perf_counter()
                    theirs = by_torch(variant.layer, arrays)
                    seconds["torch", kind] += time.perf_counter() - began
                    counts[dtype, kind, "gradcheck", result.verdict.name] += 1
                    counts[dtype, kind, "torch", theirs] += 1
                    wanted = Status.FAIL if variant.line else Status.PASS
                    hit = result.verdict is wanted and (not variant.line or names_line(result, variant.line))
                    lines[dtype, kind] += hit
                    if "--show" in sys.argv or result.verdict is not wanted or not hit:
                        causes = [f"{d.code} {d.text} │ {d.source_line.strip()}" for d in result.diagnosis]
                        print("ok " if hit else "NOT", variant.name, dtype, result.verdict.name, result.why, causes)
    for key, count in sorted(counts.items()):
        print(*key, count)
    for key, count in sorted(lines.items()):
        print(*key, "with the verdict, and the line of a mistake:", count)
    for key, total in sorted(seconds.items()):
        print(*key, f"{total:.1f} s")


if __name__ == "__main__":
    main()
