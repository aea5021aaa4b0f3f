"""A check of what runs on a device: arrays come to the host to be checked, never by themselves.

The stand-in for a device raises wherever one of its arrays meets NumPy; `tests/gpu` asks a real one.
"""

from __future__ import annotations

from contextvars import copy_context
from pathlib import Path

import pytest
from device_array import plug_in

from gradcheck.case.case import Case
from gradcheck.case.execute import execute
from gradcheck.commands.specs import read_bundled
from gradcheck.result import Status
from gradcheck.run.plan import plan

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("process_as_before")]

FILES = ("numerics", "layers-by-design", "examples-static", "double-grad", "worlds", "layers")


def of_a_kind(case: Case) -> bool:
    """Whether a bundled case checks a gradient, on two ranks at most, and in one dtype of layers."""
    return case.expect.gradient != "unchecked" and not any(
        part in case.name for part in ("world=3", "world=4", "world=8", "dtype=float32", "-batch")
    )


CASES = [
    case
    for case in plan(read_bundled(), ["cupy"])
    if Path(case.scenario.path).name.removesuffix(".grad.yaml") in FILES and of_a_kind(case)
]


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bundled_case_does_as_on_the_host(case: Case) -> None:
    """Verdicts, values, wrong entries and the codes of causes, as the scenario says."""
    result = copy_context().run(execute, case)  # the device is that of a context
    assert result.status in (Status.PASS, Status.KINK), result.message
