"""The findings in released packages: what is kept of them here fits together. `run.py` itself needs a package index."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from installed import gradcheck
from pages import ROOT

from gradcheck.result import element

FOLDER = ROOT / "docs/examples/findings"
ENDS = (("output", "output_index"), ("input", "index"))
"""The keys of a wrong entry that name its place."""


def findings() -> Any:
    """The specs and the words of the findings."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.yaml")}
    read = {name: yaml.load(text, yaml.CSafeLoader) for name, text in texts.items()}
    return read["released.grad"]["scenarios"], read["fixed.grad"]["scenarios"], read["findings"]


def test_every_finding_has_a_scenario_and_stands_on_the_page() -> None:
    released, fixed, words = findings()
    tagged = {scenario["id"] for scenario in released if "finding" in scenario.get("tags", [])}
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert set(words) <= tagged
    assert {scenario["id"].removeprefix("fixed-") for scenario in fixed} <= tagged
    assert all(f"## {finding['title']}\n" in page for finding in words.values())


DESCRIBED = FOLDER / "described.grad.yaml"
PAGE = ROOT / "docs/findings.md"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the tool says of layers with the mistakes that the page tells of, on the engine, by the finding's id."""
    report = tmp_path_factory.mktemp("findings") / "described.json"
    done = gradcheck("run", DESCRIBED, "--allow-code", "-q", "--report", f"json:{report}", folder=report.parent)
    assert done.returncode == 1, done.stderr
    results = json.loads(report.read_text(encoding="utf-8"))["results"]
    return {result["scenario"].removeprefix("described-"): result for result in results}


def told(name: str) -> tuple[str, str, str]:
    """Of a finding on the page: the status, the headline, and the worst entry if there is a table."""
    box = re.search(
        rf"^╭─ (\w+) {name}@.*\n│ (.*?) *│\n(?:│ +analytic.*\n│ +(d .*?)  )?", PAGE.read_text(encoding="utf-8"), re.M
    )
    line = re.search(rf"^([A-Z]+) {name}: (.*)$", PAGE.read_text(encoding="utf-8"), re.M)
    if box is not None:
        return box[1], box[2], box[3] or ""
    assert line is not None
    return line[1], line[2], ""


OF_PADDLE = {"paddle-grad-of-some-outputs", "nlp-reshard", "nlp-column-lora"}
"""What Paddle's own functions make of a call, which differs between its releases."""


def test_every_finding_but_of_paddle_s_own_functions_is_described_in_a_layer_without_paddle(found: Any) -> None:
    words = findings()[2]
    assert {*found} == {*words} - OF_PADDLE


@pytest.mark.parametrize("name", [name for name in findings()[2] if name not in OF_PADDLE])
def test_the_page_says_what_the_tool_says(found: Any, name: str) -> None:
    status, headline, worst = told(name)
    result = found[name]
    assert result["status"] == status
    # of what a library's own words end in, the documents settle the beginning or the end alone
    ours, theirs = (text.partition("object has")[2] or text for text in (result["message"], headline))
    if [d["code"] for d in (result["gradient"] or {"diagnosis": []})["diagnosis"]] == ["GC113"]:
        # how many entries round, and by how much, is another matter in another library's kernels
        ours, theirs, worst = ours.partition(":")[0], theirs.partition(":")[0], ""
    if "of shape" in theirs:  # the engine's own words say where it was applied, too
        ours, theirs = (str(re.findall(r"\[[\d, ]+\]", text)) for text in (ours, theirs))
    assert ours.startswith(theirs.rstrip("."))
    if worst:
        entry = max(result["gradient"]["wrong"], key=lambda one: abs(one["analytic"] - one["numeric"]))
        places = [element(entry[which], tuple(entry[index])) for which, index in ENDS]
        assert worst == "d {} / d {}".format(*places)


def test_the_program_writes_no_page_of_what_is_found_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    page = pytest.importorskip("page")
    passes = {name: {"status": "PASS", "scenario": name, "message": ""} for name in findings()[2]}
    with pytest.raises(LookupError, match="is found no more"):
        page.page({"3.3.1": passes}, "", {})


def test_the_findings_hold_no_path_of_the_machine_they_were_made_on() -> None:
    assert not re.search(r"/(home|root|tmp|Users)/", (ROOT / "docs/findings.md").read_text(encoding="utf-8"))


SOURCE = """
import no_such_package
from .near import it
from paddlenlp.far import other
BASE = 2
class Layer(no_such_package.Layer): ...
class Own:
    two = BASE
    three = it + other
    @staticmethod
    def four():
        from .near import it
        return it + 3
raise SystemExit
"""


def test_of_a_released_file_what_a_layer_needs_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file, source in (("layers", SOURCE), ("near", "it = 1"), ("far", "import no_such_package\nother = 2")):
        (tmp_path / "paddlenlp").mkdir(exist_ok=True)
        (tmp_path / f"paddlenlp/{file}.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if type(finder).__name__ != "Packages"])
    for name in [name for name in sys.modules if name.partition(".")[0] == "paddlenlp"]:
        monkeypatch.delitem(sys.modules, name)
    released = released_module()
    monkeypatch.setattr(released, "PACKAGES", tmp_path)
    monkeypatch.setattr(released, "FILES", dict.fromkeys(("Own", "Layer"), "paddlenlp/layers.py"))
    own = released.Own
    assert (own.two, own.three, own.four()) == (2, 3, 4)
    with pytest.raises(NameError):
        _ = released.Layer
    for name in [name for name in sys.modules if name.partition(".")[0] == "paddlenlp"]:
        del sys.modules[name]


def released_module() -> Any:
    """The module that takes layers out of released packages."""
    path = ROOT / "docs/examples/findings/released.py"
    spec = importlib.util.spec_from_file_location("released", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
