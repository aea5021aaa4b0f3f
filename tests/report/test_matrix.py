"""docs/matrix.md is what `gradcheck matrix` gives, and what backends do is what it says."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from installed import RELEASES, gradcheck, lacking

from gradcheck.backends.base import version_of
from gradcheck.commands import main

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
"""Made by ``gradcheck matrix -b numpy,… --format markdown`` on `COLUMNS`."""
COLUMNS = ",".join(["numpy", *(f"paddle@{release}" for release in RELEASES)])


def matrix(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["matrix", *arguments])


def rows(text: str) -> dict[str, dict[str, object]]:
    return {row["rule"]: row for row in json.loads(text)["rules"]}


def test_the_page_is_what_the_scenarios_pin() -> None:
    assert matrix("--pinned", "-b", COLUMNS, "--format", "markdown").stdout == PAGE.read_text(encoding="utf-8")


def does_what_is_pinned(backend: str, column: str, folder: Path) -> None:
    """Run all bundled scenarios on a backend, and hold what it does with each rule against its column of the page."""
    done = gradcheck("matrix", "-b", backend, "--format", "json", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    pinned = rows(matrix("--pinned", "-b", column, "--format", "json").stdout)
    found = rows(done.stdout.replace(f'"{backend}"', f'"{column}"'))
    assert found == pinned


@pytest.mark.parametrize("backend", ["numpy", "paddle"])
def test_what_is_here_does_what_the_page_says(backend: str, tmp_path: Path) -> None:
    if backend == "paddle" and not version_of(backend):  # `import paddle` may be the engine here
        pytest.skip("not installed: paddle")
    does_what_is_pinned(backend, "numpy" if backend == "numpy" else f"paddle@{version_of(backend)}", tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
def test_each_release_does_what_the_page_says(release: str, tmp_path: Path) -> None:
    if problem := lacking(release):
        pytest.skip(problem)
    does_what_is_pinned(f"paddle@{release}", f"paddle@{release}", tmp_path)


def test_a_rule_tells_what_each_release_does_why_and_where_to_see_it() -> None:
    row = rows(matrix("--pinned", "-b", "numpy,paddle@3.2.2,paddle@3.3.1", "--format", "json").stdout)[
        "materialize-zeros"
    ]
    assert row["cells"] == {"numpy": "as documented", "paddle@3.2.2": "crash", "paddle@3.3.1": "as documented"}
    [note] = row["notes"]
    assert (note["does"], note["backends"]) == ("crash", ["paddle@3.2.2"])
    assert note["reason"].startswith("paddle.grad of one of several outputs of a PyLayer kills the process")
    assert note["reproduce"] == ["gradcheck show backward-rules-grad-of-some-outputs --reproduce"]


def test_the_table_has_what_differs_before_what_does_not() -> None:
    text = matrix("--pinned", "-b", "paddle@3.2.2,paddle@3.3.1").stdout
    headings = ["CRASHES AND OTHER GRADIENTS", "WHERE RELEASES DIFFER", "WHERE EVERY RELEASE", "AS DOCUMENTED"]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert all(len(line) <= 120 for line in text.splitlines())


def test_where_the_engine_is_alone_all_is_as_documented() -> None:
    text = matrix("--pinned", "-b", "numpy").stdout
    assert "AS DOCUMENTED EVERYWHERE" in text
    assert "WHERE" not in text.replace("EVERYWHERE", "")


def test_the_page_of_html_stands_alone(tmp_path: Path) -> None:
    file = tmp_path / "matrix.html"
    assert matrix("--pinned", "-b", COLUMNS, "--html", str(file)).exit_code == 0
    text = file.read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert "second backward through a PyLayer uses freed memory" in text
    assert not any(word in text for word in ("<script", "src=", "<link"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-b", "torch"], "there is no backend 'torch'"),
        (["--pinned", "-b", "paddle@"], "write a release behind the @"),
        (["--pinned", "-b", "numpy", "--html", "/nowhere/x.html"], "--html /nowhere/x.html: No such file"),
    ],
)
def test_what_cannot_be_is_said(arguments: list[str], said: str) -> None:
    done = matrix(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
