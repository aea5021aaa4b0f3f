"""What a case leaves behind reaches no other: reports are the same in whatever order and company cases run."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from warm import python

ROOT = Path(__file__).parents[2]

SEEN = """\
import gc, locale, os, random, sys, threading, warnings
seen = [
    os.getcwd(), os.environ.get("LEFT"), len(warnings.filters), random.random(), float(np.random.rand()),
    threading.active_count(), np.tri is None, np.geterr(), paddle.get_default_dtype(), float(paddle.rand([1])),
    sorted(one.__name__ for one in PyLayer.__subclasses__()), paddle.to_tensor([1.0]).name, "left" in sys.modules,
    gc.isenabled(), sys.getrecursionlimit(), sys.gettrace() is None,
]
"""
"""What a case sees before it leaves anything."""
LEFT = [
    "class Left(PyLayer): pass",
    "os.environ['LEFT'] = 'over'",
    "os.chdir('/')",
    "warnings.simplefilter('error'); warnings.filters.append(warnings.filters[0])",
    "random.seed(1); np.random.seed(1); paddle.seed(1)",
    "threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "def left():\n    try: yield\n    finally: os.environ['LEFT'] = 'late'\nkept = left()\nnext(kept)",
    "np.tri = None",
    "paddle.set_default_dtype('float64'); np.seterr(all='ignore')",
    "sys.modules['left'] = sys; gc.disable(); sys.setrecursionlimit(5000)",
    "paddle.tanh = paddle.exp; paddle.Tensor.__add__ = paddle.Tensor.__sub__",
]
"""What it leaves then."""


def spec(count: int, *, backwards: bool = False) -> str:
    """A spec file of `count` cases that leave something each; each is an ERROR whose message tells what it saw."""
    cases = [
        f"  - id: leaves-{k}\n    title: t\n    script: |\n"
        + indent(f"{SEEN}{LEFT[k % len(LEFT)]}\nraise RuntimeError(repr(seen))\n", "      ")
        for k in range(count)
    ]
    head = "schema: gradcheck/v1\ndefaults: {source: {document: SECURITY.md}}\nscenarios:\n"
    return head + "".join(reversed(cases) if backwards else cases)


def run(folder: Path, *options: str) -> dict[str, Any]:
    """The report of a run by name, but for what depends on the time and on the place in the file."""
    command = (ROOT / "cli.py", "run", "a.grad.yaml", "--allow-code", "-q", *options, "--report", "json:report.json")
    process = python(*command, folder=folder)
    assert process.returncode == 1, process.stderr
    report = json.loads((folder / "report.json").read_text())["results"]
    changing = ("seconds", "line", "column")
    # The message ends with a line of the spec.
    return {
        one["name"]: {k: str(v).partition(" (line ")[0] for k, v in one.items() if k not in changing} for one in report
    }


def all_see_the_same(report: dict[str, Any], count: int) -> bool:
    """Whether the report has `count` cases, each of which ran to its end and saw what the others saw."""
    statuses, messages = ({one[key] for one in report.values()} for key in ("status", "message"))
    return len(report) == count and statuses == {"ERROR"} and len(messages) == 1


def test_no_case_sees_what_another_left(tmp_path: Path) -> None:
    count = 2 * len(LEFT)
    (tmp_path / "a.grad.yaml").write_text(spec(count))
    assert all_see_the_same(run(tmp_path, "-j", "1"), count)


@pytest.mark.long
def test_the_report_of_300_cases_depends_on_nothing_but_them(tmp_path: Path) -> None:
    (tmp_path / "a.grad.yaml").write_text(spec(300))
    alone = run(tmp_path, "-j", "1")
    assert all_see_the_same(alone, 300)
    assert run(tmp_path, "-j", "2") == alone
    assert run(tmp_path, "-j", "7") == alone
    assert run(tmp_path, "--shard", "1/2") | run(tmp_path, "--shard", "2/2") == alone
    run(tmp_path, "--max-fail", "100")
    assert run(tmp_path, "--resume") == alone
    (tmp_path / "a.grad.yaml").write_text(spec(300, backwards=True))
    assert run(tmp_path, "-j", "2") == alone
