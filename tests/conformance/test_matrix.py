"""docs/matrix.md is what `gradcheck matrix` gives, and what backends do is what it says."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import html5lib
import pytest
from click.testing import CliRunner, Result
from installed import RELEASES, gradcheck, lacking, variables
from warm import python

from gradcheck.backends.base import version_of
from gradcheck.commands import main
from gradcheck.commands import matrix as matrix_command
from gradcheck.conformance.behaviour import ORDER, Behaviour, result_as_pinned
from gradcheck.conformance.catalogue import load_catalogue
from gradcheck.conformance.matrix_formats import as_html, as_markdown, make_page_part
from gradcheck.conformance.table import RuleMatrix, build_matrix
from gradcheck.report.files import rendered
from gradcheck.report.record import Report
from gradcheck.run.plan import plan
from gradcheck.spec.read import load, read_bytes
from gradcheck.support.resources import bundled_specs

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
"""Made by ``gradcheck matrix -b COLUMNS --format markdown``, which runs everything."""
MENDED = "observed-54"
"""A rule that 3.2.2 breaks and 3.3.1 keeps."""
COLUMNS = ",".join(["numpy", *(f"paddle@{release}" for release in RELEASES)])


read_bundled = functools.cache(lambda: load([bundled_specs()]))
"""The bundled specs, which nothing here changes: to read them takes longer than what is tested."""


@pytest.fixture(autouse=True, scope="module")
def _bundled_specs_are_read_once() -> Iterator[None]:
    with mock.patch.object(matrix_command, "read_bundled", read_bundled):
        yield


def matrix(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["matrix", *arguments])


def parsed(page: str) -> Any:
    """The page, which is valid."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def rows(text: str) -> dict[str, dict[str, object]]:
    return {row["rule"]: row for row in json.loads(text)["rules"]}


def test_the_page_is_what_the_scenarios_pin() -> None:
    pinned, page = (
        matrix("--pinned", "-b", COLUMNS, "--format", "markdown").stdout,
        PAGE.read_text(encoding="utf-8"),
    )
    made = re.compile(r"\n(Nothing was run for this page|Run on 20\d\d\\-\d\d\\-\d\d with gradcheck).*\n")
    assert made.sub("", page) == made.sub("", pinned)
    assert made.search(page)


IN_ONE_PROCESS = """
import sys
from passing import InThisProcess
from gradcheck.commands import main, matrix
matrix.make_executor = InThisProcess
main(sys.argv[1:])
"""


def does_what_is_pinned(backend: str, column: str, folder: Path) -> None:
    """Run all bundled scenarios on a backend, and hold what it does with each rule against its column of the page.

    On the engine in one process, for the time: `gradcheck run --bundled` of .ci/run gives each its own.
    """
    arguments = ("matrix", "-b", backend, "--report", "json:matrix.json")
    if backend == "numpy":
        done = python("-c", IN_ONE_PROCESS, *arguments, folder=folder, env=variables())
    else:
        done = gradcheck(*arguments, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (folder / "matrix.json").read_text(encoding="utf-8")
    pinned = rows(matrix("--pinned", "-b", column, "--format", "json").stdout)
    found = rows(text.replace(f'"{backend}"', f'"{column}"'))
    assert "Run on 20" in json.loads(text)["made"]
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
    row = rows(matrix("--pinned", "-b", "numpy,paddle@3.2.2,paddle@3.3.1", "--format", "json").stdout)[MENDED]
    told = {backend: cell["does"] for backend, cell in row["cells"].items()}
    assert told == {
        "numpy": "as documented",
        "paddle@3.2.2": "value",
        "paddle@3.3.1": "as documented",
    }
    [note] = row["notes"]
    assert (note["first_seen"], note["mended_in"]) == ("3.2.2", "3.3.1")
    assert (note["does"], note["backends"], bool(note["reason"])) == (
        "value",
        ["paddle@3.2.2"],
        True,
    )
    assert note["reproduce"] == [f"gradcheck show {scenario} --reproduce" for scenario in note["scenarios"]]


def test_the_table_has_what_differs_before_what_does_not() -> None:
    text = matrix("--pinned", "-b", "paddle@3.2.2,paddle@3.3.1").stdout
    headings = [
        "CRASHES AND OTHER",
        "THE RULES OF THE",
        "OBSERVATIONS",
        "WHERE RELEASES DIFFER",
        "AS DOCUMENTED",
    ]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert all(len(line) <= 120 for line in text.splitlines())


def test_the_page_begins_with_what_is_worst_where_and_the_program_that_shows_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    _, _, rest = text.partition("## Crashes and other gradients")
    table, _, _ = rest.partition("\n## ")
    lines = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    kinds = [("crash" if "**crash**" in line[1:-1] else "gradient", line[-2]) for line in lines]
    newest_first = [(kind, "✓" in last or "raises" in last) for kind, last in kinds]
    assert newest_first == sorted(newest_first)
    for line in lines:
        [(name, anchor)] = re.findall(r"\[([\w-]+)\]\(#([\w-]+)\)", line[-1])
        assert name == anchor
        assert f"\n### {anchor}\n\n```python\n# Paddle " in text


def test_the_words_are_counted_for_every_backend() -> None:
    found = rows(matrix("--pinned", "-b", "numpy,paddle@3.3.1", "--format", "json").stdout)
    text = matrix("--pinned", "-b", "numpy,paddle@3.3.1", "--format", "markdown").stdout
    for kind, heading in (
        ("document", "The rules of the documents"),
        ("observation", "Observations where documents"),
    ):
        rules = [row for row in found.values() if row["kind"] == kind]
        crashes = sum(row["cells"]["paddle@3.3.1"]["does"] == "crash" for row in rules)
        _, _, table = text.partition(f"| {heading}")
        assert table.partition("| ---")[0].endswith(f": {len(rules)} | engine | 3.3.1 |\n")
        assert f"| as documented | {len(rules)} | " in table.partition("\n\n")[0]
        assert f"| crash | 0 | {crashes} |\n" in table.partition("\n\n")[0] + "\n"


def test_the_page_of_a_run_over_several_backends_has_the_matrix_as_a_part_of_its_own() -> None:
    specs = read_bundled()
    backends = ["numpy", "paddle@3.2.2"]
    cases = plan(specs, backends)
    results = [result_as_pinned(case) for case in cases]
    matrix = make_page_part(cases, results)
    page = parsed(rendered("html", Report(results=tuple(results), cases=tuple(cases), matrix=matrix)))
    alone = parsed(as_html(build_matrix(load_catalogue(), cases, results, "")))
    [part], [whole] = (one.findall(".//div[@class='matrix']") for one in (page, alone))
    assert "".join(part.itertext()).split() == "".join(whole.itertext()).split()
    assert len(part.findall(".//tr[@class='rule']")) == len(build_matrix(load_catalogue(), cases, results).rows)
    assert "uses freed memory" in "".join(part.itertext())
    links = {one.get("href").removeprefix("#") for one in page.findall(".//nav/a")}
    assert links == {"results", "matrix"}
    assert links <= {one.get("id") for one in page.iter() if one.get("id")}
    assert not any(one.get("hidden") is not None for one in page.findall(".//section"))  # nothing waits for a script
    assert "cases" not in json.loads(
        rendered("json", Report(results=tuple(results[:1]), cases=tuple(cases), matrix=matrix))
    )


def test_the_page_of_a_run_on_one_backend_or_about_no_rule_has_no_matrix() -> None:
    cases = plan(read_bundled(), ["numpy"])
    assert make_page_part(cases, [*map(result_as_pinned, cases)]) is None
    spec = b"schema: gradcheck/v1\nscenarios:\n  - {id: own, layer: {op: tanh}, inputs: {x: [2]}}\n"
    own = plan([read_bytes(spec, "a.grad.yaml")], ["numpy", "paddle@3.2.2"])
    assert make_page_part(own, [*map(result_as_pinned, own)]) is None
    page = parsed(rendered("html", Report(results=tuple(map(result_as_pinned, own)), cases=tuple(own))))
    assert page.findall(".//div[@class='matrix']") == page.findall(".//nav") == []


def test_where_the_engine_is_alone_all_is_as_documented() -> None:
    text = matrix("--pinned", "-b", "numpy").stdout
    assert "AS DOCUMENTED EVERYWHERE" in text
    assert "WHERE" not in text.replace("EVERYWHERE", "")


def test_the_page_of_html_stands_alone(tmp_path: Path) -> None:
    file = tmp_path / "matrix.html"
    assert matrix("--pinned", "-b", COLUMNS, "--report", f"html:{file}").exit_code == 0
    text = file.read_text(encoding="utf-8")
    parsed(text)
    assert "second backward through a PyLayer uses freed memory" in text
    assert not any(word in text for word in ("src=", "<link"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-b", "torch"], "there is no backend 'torch'"),
        (["--pinned", "-b", "paddle@"], "write a release behind the @"),
        (
            ["--pinned", "-b", "numpy", "--report", "html:/nowhere/x.html"],
            "there is no folder /nowhere",
        ),
        (["--pinned", "-b", "numpy", "--report", "badges:/nowhere"], "there is no folder /nowhere"),
        (
            ["--pinned", "-b", "numpy", "--report", "pdf:x"],
            "the formats are html, markdown, json, badges",
        ),
    ],
)
def test_what_cannot_be_is_said(arguments: list[str], said: str) -> None:
    done = matrix(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_policy_of_releases_is_no_failure_of_theirs() -> None:
    backends = ["numpy", "paddle@2.6.2", "paddle@3.3.1"]
    cases = plan(read_bundled(), backends)
    found = build_matrix(load_catalogue(), cases, [result_as_pinned(case) for case in cases])
    sections = {heading: {row.rule.id for row in members} for heading, members in found.sections()}
    assert "gradient-needed-is-tensor" in sections["Where releases differ on purpose"]
    assert "gradient-needed-is-tensor" not in sections["The rules of the documents"]
    row = next(row for row in found.rows if row.rule.id == "gradient-needed-is-tensor")
    assert [str(row.cells[one]) for one in backends] == ["✓", "policy", "policy"]
    assert all(both in row.notes[0].reason for both in ("packages rely on it", "the documents: a forgotten gradient"))
    page = as_markdown(found)
    assert f"({row.rule.id}`)" not in page.split("## Where releases differ on purpose")[0]
    assert "| policy |" in page
    assert "**policy**" not in page


@pytest.fixture(scope="module")
def everything() -> RuleMatrix:
    """All releases, as they are pinned."""
    backends = COLUMNS.split(",")
    cases = plan(read_bundled(), backends)
    return build_matrix(load_catalogue(), cases, [result_as_pinned(case) for case in cases])


@pytest.fixture(scope="module")
def page(everything: RuleMatrix) -> Any:
    programs = {note.scenarios[0]: "print(1)" for row in everything.rows for note in row.notes}
    return parsed(as_html(everything, programs))


class TestWhatAMaintainerAsks:
    """Each answer is at most two clicks away: a link, a part that opens, or a choice in a list."""

    def test_which_rules_does_a_release_break(self, page: Any, everything: RuleMatrix) -> None:
        [part] = [one for one in page.findall(".//details") if text_of(one.find("summary")).startswith("3.2.2 breaks")]
        links = [one.get("href").removeprefix("#") for one in part.findall(".//a")]
        assert links == [row.rule.id for row in everything.broken_by("paddle@3.2.2")]
        assert set(links) <= {one.get("id") for one in page.iter("tr")}

    def test_what_changed_in_a_release(self, page: Any) -> None:
        [part] = [one for one in page.findall(".//details") if "From 3.2.2 to 3.3.1" in text_of(one.find("summary"))]
        assert MENDED in text_of(part.findall("p")[0])
        assert text_of(part.findall("p")[0]).startswith("mended: ")

    def test_show_me_a_program(self, page: Any) -> None:
        row = next(one for one in page.iter("tr") if one.get("id") == MENDED)
        [link] = {one.get("href") for one in row.iter("a") if "program-" in one.get("href")}
        assert any(
            one.get("id") == link.removeprefix("#") and one.find("pre") is not None for one in page.iter("details")
        )

    def test_is_it_tracked(self, everything: RuleMatrix) -> None:
        row = next(row for row in everything.rows if row.notes)
        tracked = row._replace(notes=(row.notes[0]._replace(issue="https://example.org/1"),))
        page = as_html(everything._replace(rows=(tracked,)))
        assert '<a href="https://example.org/1">tracked</a>' in page

    def test_which_sentence_says_so(self, page: Any, everything: RuleMatrix) -> None:
        for row in everything.rows:
            shown = next(one for one in page.iter("tr") if one.get("id") == row.rule.id)
            assert " ".join(row.rule.quote.split()) in " ".join(text_of(shown.find(".//blockquote")).split())

    def test_the_results_of_each_scenario_are_below_their_rule(self, page: Any, everything: RuleMatrix) -> None:
        row = next(one for one in everything.rows if one.rule.id == "observed-79")
        shown = next(one for one in page.iter("tr") if one.get("id") == row.rule.id)
        inner = {text_of(line.find("td")): line for line in shown.findall(".//table/tbody/tr")}
        assert set(inner) == set(row.scenarios)
        cells = [text_of(cell) for cell in inner["backward-rules-grad-of-some-outputs"].findall("td")[1:]]
        assert cells == ["✓", "crash", "crash", "crash", "crash", "✓"]


def text_of(part: Any) -> str:
    """What an element shows."""
    return "".join(part.itertext()).strip()


def test_a_cell_counts_the_scenarios_that_are_as_documented(everything: RuleMatrix) -> None:
    row = next(row for row in everything.rows if row.rule.id == "observed-79")
    cell = row.cells["paddle@3.2.2"]
    broken = [id for id in row.scenarios if everything.scenarios[id]["paddle@3.2.2"] is not Behaviour.HOLDS]
    assert (cell.holds, cell.of) == (len(row.scenarios) - len(broken), len(row.scenarios))
    assert str(cell) == f"crash {cell.holds}/{cell.of}"


def test_documents_and_observations_are_two_tables(everything: RuleMatrix) -> None:
    sections = dict(everything.sections())
    assert all(row.document.url for row in sections["The rules of the documents"])
    assert not any(row.document.url for row in sections["Observations where documents are silent"])


def test_what_is_worst_comes_first(everything: RuleMatrix) -> None:
    for heading, members in everything.sections()[:2]:
        worst = [min(ORDER.index(cell.behaviour) for cell in row.cells.values()) for row in members]
        assert worst == sorted(worst), heading


def test_changes_are_those_between_each_release_and_the_next(everything: RuleMatrix) -> None:
    for change in everything.changes():
        assert all(row.cells[change.older].fails and not row.cells[change.newer].fails for row in change.fixed)
        assert all(row.cells[change.newer].fails and not row.cells[change.older].fails for row in change.broken)


def test_the_index_has_every_sentence_of_the_documents_in_their_order(
    everything: RuleMatrix,
) -> None:
    _, _, part = as_markdown(everything).partition("## Index by page and section")
    part, _, _ = part.partition("\n`gradcheck show RULE`")
    listed = re.findall(r"\| \[([\w-]+)\]\(#\1\) \|", part)
    assert listed == [row.rule.id for row in everything.rows if not row.document.is_observation]


def test_one_run_gives_all_forms_and_a_badge_for_each_column(tmp_path: Path) -> None:
    forms = {name: tmp_path / f"matrix.{name}" for name in ("html", "markdown", "json")}
    reports = [part for name, file in forms.items() for part in ("--report", f"{name}:{file}")]
    done = matrix("--pinned", "-b", "numpy,paddle@3.3.1", *reports, "--report", f"badges:{tmp_path}")
    assert done.exit_code == 0
    assert all(file.stat().st_size for file in forms.values())
    badge = json.loads((tmp_path / "paddle-3.3.1.json").read_text())
    cells = [
        row["cells"]["paddle@3.3.1"] for row in rows(forms["json"].read_text()).values() if row["kind"] == "document"
    ]
    kept = sum(cell["does"] in ("as documented", "policy") for cell in cells)
    assert badge == {
        "schemaVersion": 1,
        "label": "PyLayer, paddle 3.3.1",
        "message": f"{kept} of {len(cells)} rules",
        "color": "red",
    }
    assert json.loads((tmp_path / "numpy.json").read_text())["color"] == "brightgreen"
