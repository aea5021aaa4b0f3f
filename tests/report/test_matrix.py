"""docs/matrix.md is what `gradcheck matrix` gives, and what backends do is what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import html5lib
import pytest
from click.testing import CliRunner, Result
from installed import RELEASES, gradcheck, lacking

from gradcheck.backends.base import version_of
from gradcheck.commands import main
from gradcheck.matrix import assumed, matrix_of
from gradcheck.report.files import written
from gradcheck.report.matrix import as_html, as_markdown
from gradcheck.report.record import Report
from gradcheck.resources import bundled_specs
from gradcheck.rules import catalogue
from gradcheck.run.plan import plan
from gradcheck.spec.read import load, read_bytes

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
"""Made by ``gradcheck matrix -b numpy,… --format markdown`` on `COLUMNS`."""
COLUMNS = ",".join(["numpy", *(f"paddle@{release}" for release in RELEASES)])


def matrix(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["matrix", *arguments])


def parsed(page: str) -> Any:
    """The page, which is valid."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


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
    row = rows(matrix("--pinned", "-b", "numpy,paddle@3.2.2,paddle@3.3.1", "--format", "json").stdout)["observed-79"]
    assert row["cells"] == {"numpy": "as documented", "paddle@3.2.2": "crash", "paddle@3.3.1": "other value"}
    [note] = [note for note in row["notes"] if note["does"] == "crash"]
    assert note["backends"] == ["paddle@3.2.2"]
    assert note["reason"].startswith("paddle.grad of one of several outputs of a PyLayer kills the process")
    assert "gradcheck show backward-rules-grad-of-some-outputs --reproduce" in note["reproduce"]


def test_the_table_has_what_differs_before_what_does_not() -> None:
    text = matrix("--pinned", "-b", "paddle@3.2.2,paddle@3.3.1").stdout
    headings = ["CRASHES AND OTHER GRADIENTS", "WHERE RELEASES DIFFER", "WHERE EVERY RELEASE", "AS DOCUMENTED"]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert all(len(line) <= 120 for line in text.splitlines())


def test_the_page_begins_with_what_is_worst_where_and_the_program_that_shows_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    _, _, rest = text.partition("## Crashes and other gradients")
    table, _, _ = rest.partition("\n## ")
    lines = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    kinds = [("crash" if "**crash**" in line[1:-1] else "other gradient", line[-2]) for line in lines]
    newest_first = [(kind, "✓" in last or "raises" in last) for kind, last in kinds]
    assert newest_first == sorted(newest_first)
    for line in lines:
        [(name, anchor)] = re.findall(r"\[([\w-]+)\]\(#([\w-]+)\)", line[-1])
        assert name == anchor
        assert f"\n### {anchor}\n\n```python\n# Paddle " in text


def test_the_words_are_counted_for_every_backend() -> None:
    found = rows(matrix("--pinned", "-b", "numpy,paddle@3.3.1", "--format", "json").stdout)
    text = matrix("--pinned", "-b", "numpy,paddle@3.3.1", "--format", "markdown").stdout
    crashes = sum(row["cells"]["paddle@3.3.1"] == "crash" for row in found.values())
    assert f"| of {len(found)} rules | engine | 3.3.1 |\n" in text
    assert f"| as documented | {len(found)} | " in text
    assert f"| crash | 0 | {crashes} |\n" in text


def test_the_page_of_a_run_over_several_backends_has_the_matrix_as_a_part_of_its_own() -> None:
    specs = load([bundled_specs()])
    backends = ["numpy", "paddle@3.2.2"]
    cases = plan(specs, backends)
    results = [assumed(case) for case in cases]
    page = parsed(written("html", Report(results=tuple(results), cases=tuple(cases))))
    alone = parsed(as_html(matrix_of(catalogue(), cases, results)))
    [part], [whole] = (one.findall(".//div[@class='matrix']") for one in (page, alone))
    assert "".join(part.itertext()).split() == "".join(whole.itertext()).split()
    assert len(part.findall(".//tr[@id]")) == len(matrix_of(catalogue(), cases, results).rows)
    assert "uses freed memory" in "".join(part.itertext())
    links = {one.get("href").removeprefix("#") for one in page.findall(".//nav/a")}
    assert links == {"results", "matrix"}
    assert links <= {one.get("id") for one in page.iter() if one.get("id")}
    assert not any(one.get("hidden") is not None for one in page.findall(".//section"))  # nothing waits for a script
    assert "cases" not in json.loads(written("json", Report(results=tuple(results[:1]), cases=tuple(cases))))


def test_the_page_of_a_run_on_one_backend_or_about_no_rule_has_no_matrix() -> None:
    cases = plan(load([bundled_specs()]), ["numpy"])
    one = Report(results=tuple(map(assumed, cases)), cases=tuple(cases))
    spec = b"schema: gradcheck/v1\nscenarios:\n  - {id: own, layer: {op: tanh}, inputs: {x: [2]}}\n"
    own = plan([read_bytes(spec, "a.grad.yaml")], ["numpy", "paddle@3.2.2"])
    for report in (one, Report(results=tuple(map(assumed, own)), cases=tuple(own))):
        page = parsed(written("html", report))
        assert page.findall(".//div[@class='matrix']") == page.findall(".//nav") == []


def test_where_the_engine_is_alone_all_is_as_documented() -> None:
    text = matrix("--pinned", "-b", "numpy").stdout
    assert "AS DOCUMENTED EVERYWHERE" in text
    assert "WHERE" not in text.replace("EVERYWHERE", "")


def test_the_page_of_html_stands_alone(tmp_path: Path) -> None:
    file = tmp_path / "matrix.html"
    assert matrix("--pinned", "-b", COLUMNS, "--html", str(file)).exit_code == 0
    text = file.read_text(encoding="utf-8")
    parsed(text)
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


def test_policy_of_releases_is_no_failure_of_theirs() -> None:
    backends = ["numpy", "paddle@2.6.2", "paddle@3.3.1"]
    cases = plan(load([bundled_specs()]), backends)
    found = matrix_of(catalogue(), cases, [assumed(case) for case in cases])
    sections = {heading: {row.rule.id for row in members} for heading, members in found.sections()}
    assert "gradient-needed-is-tensor" in sections["Where releases differ on purpose"]
    assert "gradient-needed-is-tensor" not in sections["Where every release goes its own way"]
    row = next(row for row in found.rows if row.rule.id == "gradient-needed-is-tensor")
    assert [str(row.cells[one]) for one in backends] == ["✓", "policy", "policy"]
    assert all(both in row.notes[0].reason for both in ("packages rely on it", "the documents: a forgotten gradient"))
    page = as_markdown(found)
    assert f"({row.rule.id}`)" not in page.split("## Where releases differ on purpose")[0]
    assert "| policy |" in page
    assert "**policy**" not in page
