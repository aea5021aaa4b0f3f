"""The system's clock may be set while a run goes on: no report says that it took less than no time."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from gradcheck.commands import run_cases

SPEC = """\
schema: gradcheck/v1
defaults: {source: {document: own}}
scenarios:
  - {id: one, title: t, script: 'x = 1'}
"""


class Clock:
    """A clock that is set by `step` each time that somebody reads it."""

    def __init__(self, step: timedelta) -> None:
        self.step, self.moment = step, datetime(2030, 1, 1, tzinfo=UTC)

    def now(self, zone: object) -> datetime:
        self.moment += self.step
        return self.moment


@pytest.mark.parametrize("step", [timedelta(hours=-1), timedelta(hours=1), timedelta(days=-400)])
def test_a_clock_that_is_set_changes_no_duration(folder, gradcheck, monkeypatch, step):
    (folder / "a.grad.yaml").write_text(SPEC)
    monkeypatch.setattr(run_cases, "datetime", Clock(step))
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--report", "json:a.json", "--report", "html:a.html")
    assert done.code == 0
    report = json.loads((folder / "a.json").read_text())
    assert 0 <= report["seconds"] < 600
    assert report["started"].startswith(str((datetime(2030, 1, 1, tzinfo=UTC) + step).year))
    assert not re.search(r"-\d[\d,.]* s\b|3600", (folder / "a.html").read_text())
