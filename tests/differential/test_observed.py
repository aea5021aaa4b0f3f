"""docs/observed.md: every rule holds on the release, and on the engine but for what the rule itself says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from observed.page import PAGE, RULES, page
from observed.rule import Rule, printed

import pylayer.paddle as engine

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_release_prints(real: Any) -> None:
    assert page(real) == PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", [r for r in RULES if not r.crashes], ids=lambda rule: str(rule.number))
def test_the_engine_does_the_same_unless_the_rule_says_otherwise(real: Any, rule: Rule) -> None:
    assert (printed(engine, rule.program) != printed(real, rule.program)) == bool(rule.engine)


CRASH = """
import sys
sys.path[:0] = {paths!r}
import paddle
from observed.page import RULES
from observed.rule import printed
printed(paddle, next(rule for rule in RULES if rule.number == {number}).program)
"""


@pytest.mark.parametrize("rule", [r for r in RULES if r.crashes], ids=lambda rule: str(rule.number))
def test_what_ends_the_process_of_the_release_does_not_end_the_engines(real: Any, rule: Rule) -> None:
    code = CRASH.format(paths=[str(Path(__file__).parent), str(ROOT / "engine")], number=rule.number)
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False).returncode < 0
    assert printed(engine, rule.program)


def test_every_rule_that_is_cited_is_on_the_page() -> None:
    files = [f for folder in ("engine", "specs", "gradcheck", "docs") for f in (ROOT / folder).rglob("*.[pym][yadm]*")]
    cited = {
        int(number)
        for file in files
        if file != PAGE and file.suffix in (".py", ".yaml", ".md")
        for found in re.findall(r"observed rules? (\d+(?:(?:, | and |, and )\d+)*)", file.read_text(encoding="utf-8"))
        for number in re.findall(r"\d+", found)
    }
    assert len(cited) > 40
    assert cited <= {rule.number for rule in RULES}
