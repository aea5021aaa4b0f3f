"""Results for tests of reports: a case of each kind, and text that breaks out of reports."""

from __future__ import annotations

import math
from typing import Any

from gradcheck.case.case import Case
from gradcheck.report.record import Report
from gradcheck.result import Diagnosis, GradientSummary, Result, Status, StepScan, WrongEntry
from gradcheck.spec.model import Scenario, Source

NASTY = (
    "[red]x[/red] %0A::error::y\n::warning::z ]]> <script>alert(1)</script> ``` | <!-- \x1b[2J \x00 \u202e @me &amp;"
)
"""What a layer may say, and be called."""


def wrong(k: int = 0, numeric: float = 3.0, error_bound: float = 1e-12) -> WrongEntry:
    return WrongEntry(
        input="x",
        index=(k,),
        output="out",
        output_index=(k,),
        analytic=2.0,
        numeric=numeric,
        error_bound=error_bound,
    )


SCAN = StepScan(
    input="x", index=(0,), output="out", output_index=(0,), analytic=2.0,
    steps=(1e-8, 1e-6, 1e-4, 1e-2), differences=(3.0 + 1e-8, 3.0 - 1e-10, 3.0 + 1e-12, 3.001),
    rounding=(1e-7, 1e-9, 1e-11, 1e-13), chosen=1e-4, value=3.0, error_bound=1e-11,
)  # fmt: skip
CAUSE = Diagnosis(
    code="GC102",
    text="backward has the wrong sign",
    line="layers/own.py:7",
    source_line="    y = a - b",
    column=8,
    end_column=13,
    operation="subtract",
    detail="its share has the wrong sign",
)


def result(id: str, status: Status, message: str = "", **fields: Any) -> Result:
    known = {
        "scenario": id,
        "backend": "numpy",
        "path": "specs/a.grad.yaml",
        "line": 12,
        "column": 5,
    }
    return Result(
        **{
            "name": f"{id}@numpy",
            "status": status,
            "message": message,
            "seconds": 0.25,
            **known,
            **fields,
        }
    )


def gradient(**fields: Any) -> GradientSummary:
    return GradientSummary(**{"verdict": Status.FAIL, "wrong_counts": {"x": (7, 9)}, "worst_error": 1e9, **fields})


def of_one_cause(count: int) -> list[Result]:
    """Failures that a diagnosis puts down to one line of a layer."""
    found = gradient(wrong=(wrong(), wrong(1)), diagnosis=(CAUSE,))
    return [result(f"wrong-{k}", Status.FAIL, f"message {k}", gradient=found) for k in range(count)]


def scenario(id: str, title: str, tags: tuple[str, ...] = (), **source: str) -> Case:
    """The case of a result of that id."""
    told = {"title": title, "tags": tags, "source": Source(**{"document": "a document", **source})}
    return Case(scenario=Scenario(id="a").model_copy(update={"id": id, **told}), backend="numpy")


RESULTS = (
    result("good", Status.PASS),
    result("wrong", Status.FAIL, "gradient of x: 7 of 9 entries wrong", output="said\n",
           gradient=gradient(wrong=tuple(wrong(k) for k in range(7)), diagnosis=(CAUSE,),
                             scan=SCAN)),
    result("infinite", Status.FAIL, "no number",
           gradient=gradient(wrong=(wrong(numeric=math.inf), wrong(1, math.nan, math.inf)))),
    result("known", Status.XFAIL, "the release differs"),
    result("left-out", Status.SKIP, "no such backend"),
    result("crashed", Status.CRASH, "the process was killed by SIGSEGV", path="other.grad.yaml"),
    result("nasty", Status.ERROR, NASTY, details=(NASTY,), output=NASTY,
           path=f"{NASTY.partition(chr(10))[0]}.yaml", name=NASTY),
    result("excused", Status.XFAIL, NASTY, name=f"{NASTY} again", path="other.grad.yaml"),
)  # fmt: skip
REPORT = Report(results=RESULTS, command=("run", NASTY), seeds=(3,), started="2026-01-02T03:04:05Z", seconds=1.5)
BAD = [one for one in RESULTS if not one.status.green]
