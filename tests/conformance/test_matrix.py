"""What `gradcheck matrix` shows of releases, and that docs/matrix.md is that."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import html5lib
import pytest
from click.testing import CliRunner, Result

from gradcheck.commands import main
from gradcheck.commands.run_cases import matrix_part
from gradcheck.commands.specs import read_bundled
from gradcheck.conformance.behaviour import Behaviour, result_as_recorded
from gradcheck.conformance.catalogue import load_catalogue
from gradcheck.conformance.matrix_formats import as_html, as_markdown, make_page_part
from gradcheck.conformance.matrix_record import MatrixRecord
from gradcheck.conformance.programs import MOST_LINES, read_programs
from gradcheck.conformance.releases import read_release, with_recorded_deviations
from gradcheck.conformance.table import RuleMatrix, build_matrix
from gradcheck.report.files import render_report
from gradcheck.report.record import Report
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.read import read_bytes
from gradcheck.support.resources import release_paths

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
"""Made by ``gradcheck matrix --recorded --format markdown``."""
RELEASES = [*release_paths()]
NEWEST = f"paddle@{RELEASES[-1]}"


def matrix(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["matrix", *arguments])


def parsed(page: str) -> Any:
    """The page, which is valid."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def recorded(backends: list[str]) -> RuleMatrix:
    """The matrix of releases from their files, beside an engine that does all as expected."""
    cases = with_recorded_deviations(plan(read_bundled(), backends))
    results = []
    for case in cases:
        if case.backend == "numpy":
            results.append(case.result(Status.PASS, ""))
        else:
            path = release_paths()[case.backend.removeprefix("paddle@")]
            results.append(result_as_recorded(case, read_release(path)))
    return build_matrix(load_catalogue(), cases, results, "Run here.")


@pytest.fixture(scope="module")
def everything() -> RuleMatrix:
    return recorded(["numpy", *(f"paddle@{release}" for release in RELEASES)])


@pytest.fixture(scope="module")
def page(everything: RuleMatrix) -> Any:
    return parsed(as_html(everything))


def text_of(part: Any) -> str:
    """What an element shows."""
    return "".join(part.itertext()).strip()


def without_runs(page: str) -> str:
    """A page without the line that says when and where it was run."""
    return re.sub(r"(?m)^.*run on .*\n", "", page.replace("Run here\\.", "run on "))


class TestThePage:
    def test_it_is_what_the_release_files_have(self, everything: RuleMatrix) -> None:
        made = "make it anew: gradcheck matrix --recorded --format markdown > docs/matrix.md"
        assert without_runs(PAGE.read_text(encoding="utf-8")) == without_runs(as_markdown(everything)), made

    def test_it_is_short(self) -> None:
        assert PAGE.read_text(encoding="utf-8").count("\n") <= 250

    def test_its_first_list_has_a_row_for_each_sentence_that_the_newest_release_breaks(
        self, everything: RuleMatrix
    ) -> None:
        _, _, rest = PAGE.read_text(encoding="utf-8").partition("## Which sentences does")
        listed = re.findall(r"(?m)^\| “.*?\(\[`([\w-]+)`\]", rest.partition("\n## ")[0])
        assert listed == [row.anchor for row in everything.broken_by(NEWEST)]
        assert listed

    def test_each_of_these_has_a_program_of_a_few_lines_and_what_it_prints(self, everything: RuleMatrix) -> None:
        programs = read_programs()
        for row in everything.broken_by(NEWEST):
            program = programs[row.rule.id]
            assert program.code.count("\n") < MOST_LINES, row.rule.id
            assert "gradcheck" not in program.code
            assert program.prints[RELEASES[-1]] != program.expected


class TestClasses:
    def test_only_sentences_count_against_a_release(self, everything: RuleMatrix) -> None:
        broken = everything.broken_by(NEWEST)
        assert {row.class_ for row in broken} == {"sentence"}
        others = [row for row in everything.rows if row.class_ != "sentence" and row.cells[NEWEST].deviates]
        assert len(others) > len(broken)

    def test_a_scenario_about_misuse_does_not_break_the_sentence_that_it_cites(self, everything: RuleMatrix) -> None:
        rows = {row.class_: row for row in everything.rows if row.rule.id == "one-gradient-per-tensor-input"}
        assert not rows["sentence"].cells[NEWEST].deviates
        assert rows["wording"].cells[NEWEST].behaviour is Behaviour.HOLDS  # in its own words
        assert rows["wording"].anchor == "one-gradient-per-tensor-input-wording"

    def test_a_decision_shows_in_every_column(self, everything: RuleMatrix) -> None:
        for row in everything.of_class("decided"):
            assert row.cells["numpy"].behaviour is Behaviour.DECIDED, row.rule.id

    def test_what_gradcheck_finds_is_its_own_row(self, everything: RuleMatrix) -> None:
        [row] = [row for row in everything.rows if row.rule.id == "backward-is-the-gradient"]
        assert not any(Path(s.path).parent.name == "checker" for spec in read_bundled() for s in spec.scenarios
                       if s.id in row.scenarios)  # fmt: skip


class TestReleases:
    def test_a_release_that_was_not_run_has_no_column(self) -> None:
        done = matrix("--recorded", "-b", "paddle@3.4.0")
        assert done.exit_code == 2
        assert "paddle 3.4.0 was not run; releases that were run: 2.6.2, 3.0.0" in done.stderr

    def test_a_scenario_that_was_not_run_has_no_cell(self) -> None:
        cases = plan(read_bundled(), [NEWEST])
        file = read_release(release_paths()[RELEASES[-1]])
        forgotten = file.model_copy(update={"holds": (), "holds_set": frozenset()})
        results = [result_as_recorded(case, forgotten) for case in with_recorded_deviations(cases)]
        found = build_matrix(load_catalogue(), with_recorded_deviations(cases), results)
        row = next(row for row in found.rows if row.rule.id == "save-returns-none")
        assert row.cells[NEWEST].behaviour is Behaviour.NOT_RUN
        assert row.cells[NEWEST].of == 0

    def test_changes_are_those_between_each_release_and_the_next(self, everything: RuleMatrix) -> None:
        changes = everything.changes()
        assert [change.newer for change in changes] == [f"paddle@{release}" for release in RELEASES[1:]]
        for change in changes:
            for row in change.by_word["fixed"]:
                assert row.cells[change.older].deviates
                assert not row.cells[change.newer].deviates
            for row in change.by_word["better"]:
                assert row.cells[change.older].quality < row.cells[change.newer].quality
                assert row.cells[change.newer].deviates
            for row in (*change.by_word["worse"], *change.by_word["broken"]):
                assert row.cells[change.older].quality > row.cells[change.newer].quality
        assert any(change.by_word["fixed"] for change in changes)


class TestForms:
    def test_json_is_as_its_schema_says(self) -> None:
        text = matrix("--recorded", "-b", NEWEST, "--format", "json").stdout
        record = MatrixRecord.model_validate_json(text)
        assert record.backends == {NEWEST: RELEASES[-1]}
        broken = [
            rule
            for rule in record.rules
            if rule.class_ == "sentence" and rule.cells[NEWEST].holds < rule.cells[NEWEST].of
        ]
        assert broken
        assert all(rule.program for rule in broken)

    def test_text_fits_into_a_terminal(self) -> None:
        text = matrix("--recorded", "-b", NEWEST).stdout
        assert text.index("SENTENCES OF THE DOCUMENTS") < text.index("WHAT MISUSE DOES")
        assert all(len(line) <= 120 for line in text.splitlines())

    def test_one_run_gives_all_forms_and_a_badge_for_each_column(self, tmp_path: Path, everything: RuleMatrix) -> None:
        forms = {name: tmp_path / f"matrix.{name}" for name in ("html", "markdown", "json")}
        reports = [part for name, file in forms.items() for part in ("--report", f"{name}:{file}")]
        done = matrix("--recorded", "-b", NEWEST, *reports, "--report", f"badges:{tmp_path}")
        assert done.exit_code == 0
        assert all(file.stat().st_size for file in forms.values())
        badge = json.loads((tmp_path / f"paddle-{RELEASES[-1]}.json").read_text())
        sentences, broken = everything.of_class("sentence"), everything.broken_by(NEWEST)
        assert badge["message"] == f"{len(sentences) - len(broken)} of {len(sentences)} sentences"
        assert badge["color"] == "red"

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["-b", "chainer"], "there is no backend 'chainer'"),
            (["--recorded", "-b", NEWEST, "--report", "html:/nowhere/x.html"], "there is no folder /nowhere"),
            (["--recorded", "-b", NEWEST, "--report", "badges:/nowhere"], "there is no folder /nowhere"),
            (["--recorded", "-b", NEWEST, "--report", "pdf:x"], "the formats are html, markdown, json, badges"),
        ],
    )
    def test_what_cannot_be_is_said(self, arguments: list[str], said: str) -> None:
        done = matrix(*arguments)
        assert done.exit_code == 2
        assert said in done.stderr


class TestTheHtmlPage:
    """Each answer is at most two clicks away: a link, a part that opens, or a choice in a list."""

    def test_it_stands_alone(self, everything: RuleMatrix) -> None:
        assert not any(word in as_html(everything) for word in ("src=", "<link"))

    def test_which_sentences_does_the_newest_release_break(self, page: Any, everything: RuleMatrix) -> None:
        [broken] = page.findall(".//ol[@class='broken']")
        links = [item.find("a").get("href").removeprefix("#") for item in broken.findall("li")]
        assert links == [row.anchor for row in everything.broken_by(NEWEST)]
        assert set(links) <= {row.get("id") for row in page.iter("tr")}

    def test_which_sentences_does_a_release_break(self, page: Any, everything: RuleMatrix) -> None:
        release = RELEASES[0]
        [part] = [p for p in page.findall(".//details") if text_of(p.find("summary")).startswith(f"{release} breaks")]
        links = [link.get("href").removeprefix("#") for link in part.findall(".//a")]
        assert links == [row.anchor for row in everything.broken_by(f"paddle@{release}")]

    def test_every_sentence_is_shown_in_the_row_of_its_rule(self, page: Any, everything: RuleMatrix) -> None:
        shown = {row.get("id"): " ".join(text_of(row).split()) for row in page.iter("tr") if row.get("id")}
        for row in everything.rows:
            assert " ".join(row.rule.quote.split()) in shown[row.anchor]

    def test_is_it_tracked(self, everything: RuleMatrix) -> None:
        row = next(row for row in everything.rows if row.notes)
        tracked = row._replace(notes=(row.notes[0]._replace(issue="https://example.org/1"),))
        page = as_html(everything._replace(rows=(tracked,)))
        assert '<a href="https://example.org/1">tracked</a>' in page


class TestTheMatrixOfARun:
    def test_the_page_of_a_run_over_several_backends_has_it_as_a_part(self) -> None:
        backends = ["numpy", NEWEST]
        cases = with_recorded_deviations(plan(read_bundled(), backends))
        file = read_release(release_paths()[RELEASES[-1]])
        results = [
            case.result(Status.PASS, "") if case.backend == "numpy" else result_as_recorded(case, file)
            for case in cases
        ]
        part = make_page_part(cases, results)
        page = parsed(render_report("html", Report(results=tuple(results), cases=tuple(cases), matrix=part)))
        [shown] = page.findall(".//div[@class='matrix']")
        assert len(shown.findall(".//tr[@class='rule']")) == len(recorded(backends).rows)
        assert "uses freed memory" in "".join(shown.itertext())

    def test_a_run_on_one_backend_or_about_no_rule_has_none(self) -> None:
        cases = plan(read_bundled(), ["numpy"])
        assert matrix_part(cases, [case.result(Status.PASS, "") for case in cases]) is None
        spec = b"schema: gradcheck/v1\nscenarios:\n  - {id: own, layer: {op: tanh}, inputs: {x: [2]}}\n"
        own = plan([read_bytes(spec, "a.grad.yaml")], ["numpy", NEWEST])
        assert matrix_part(own, [case.result(Status.PASS, "") for case in own]) is None
