"""The findings in released packages: what is kept of them here fits together. `run.py` itself needs a package index."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import ROOT


def findings() -> Any:
    """The specs and the words of the findings."""
    folder = ROOT / "docs/examples/findings"
    read = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in folder.glob("*.yaml")}
    return read["released.grad"]["scenarios"], read["mended.grad"]["scenarios"], read["findings"]


def test_every_finding_has_a_scenario_and_stands_on_the_page() -> None:
    released, mended, words = findings()
    tagged = {scenario["id"] for scenario in released if "finding" in scenario.get("tags", [])}
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert set(words) <= tagged
    assert {scenario["id"].removeprefix("mended-") for scenario in mended} <= tagged
    assert all(f"## {finding['title']}\n" in page for finding in words.values())


def test_the_findings_hold_no_path_of_the_machine_they_were_made_on() -> None:
    assert not re.search(r"/(home|root|tmp|Users)/", (ROOT / "docs/findings.md").read_text(encoding="utf-8"))


def test_what_ends_a_statement_of_a_released_file_leaves_the_rest(tmp_path: Path) -> None:
    source = "import no_such_package\nfrom ..near import it\nBASE = 2\n"
    source += "class Layer(no_such_package.Layer): ...\nclass Own:\n    two = BASE\n"
    (tmp_path / "layers.py").write_text(source, encoding="utf-8")
    assert released().layer(tmp_path / "layers.py", "Own").two == 2
    with pytest.raises(NameError):
        released().layer(tmp_path / "layers.py", "Layer")


def released() -> Any:
    """The module that takes layers out of released packages."""
    path = ROOT / "docs/examples/findings/released.py"
    spec = importlib.util.spec_from_file_location("released", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
