"""Reports in files: another reader reads each, and no name or message breaks out of it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from reports import BAD, CAUSE, REPORT, RESULTS, SCAN, gradient, result, wrong
from sarif_pydantic import Sarif

from gradcheck.report.files import FORMATS, render_report
from gradcheck.report.record import Report
from gradcheck.result import Status
from gradcheck.support.resources import read_packaged


def test_every_format_writes_an_empty_run_too() -> None:
    for name in FORMATS:
        assert isinstance(render_report(name, Report()), str)


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_lets_a_control_character_or_a_direction_through(name: str) -> None:
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", render_report(name, REPORT)) is None


# --------------------------------------------------------------------------- JSON
def refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def test_the_json_report_keeps_its_schema_and_gives_everything_back() -> None:
    found = json.loads(render_report("json", REPORT), parse_constant=refuse)
    schema = json.loads(read_packaged("schemas/report.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    assert repr(Report.model_validate(found)) == repr(REPORT)
    assert found["format"] == "gradcheck-report/2"
    assert {"numpy"} <= set(found["versions"])


def test_the_lines_are_the_report_without_results_and_then_the_results() -> None:
    first, *others = [json.loads(line, parse_constant=refuse) for line in render_report("jsonl", REPORT).splitlines()]
    whole = json.loads(render_report("json", REPORT))
    assert others == whole.pop("results")
    assert first == whole


# --------------------------------------------------------------------------- JUnit
def test_junit_has_a_suite_for_each_file_and_a_test_for_each_case(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(render_report("junit", REPORT), encoding="utf-8")
    xml = JUnitXml.fromfile(str(tmp_path / "r.xml"))
    suites = list(xml)
    assert [suite.tests for suite in suites] == [5, 1, 1, 1]
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (8, 2, 2, 3)
    kinds = {case.name: [type(one) for one in case.result] for suite in suites for case in suite}
    assert kinds["good@numpy"] == []
    assert kinds["wrong@numpy"] == [Failure]
    assert kinds["crashed@numpy"] == [Error]
    assert kinds["known@numpy"] == [Skipped]
    one = next(case for case in suites[0] if case.name == "wrong@numpy")
    assert one.classname == "specs.a"
    assert "likely: backward has the wrong sign" in one.result[0].text
    assert one.system_out == "said\n"


# --------------------------------------------------------------------------- GitHub
def test_each_failure_is_one_annotation_and_nothing_in_it_is_another() -> None:
    lines = render_report("github", REPORT).splitlines()
    assert len(lines) == len(BAD)
    pattern = r"::error file=[^:,]*,line=(\d+),col=(\d+),title=[^:,]*::(?:[^\r\n%]|%25|%0A|%0D)*"
    places = [re.fullmatch(pattern, line) for line in lines]
    assert {place.groups() for place in places if place} == {("12", "5"), ("7", "9")}
    assert all(places)


def test_an_annotation_stands_at_the_line_of_the_layer_that_is_to_blame() -> None:
    (line,) = [one for one in render_report("github", REPORT).splitlines() if "title=FAIL wrong@numpy" in one]
    assert line.startswith("::error file=layers/own.py,line=7,col=9,")
    assert "scenario: specs/a.grad.yaml:12:5" in line.replace("%3A", ":")


def test_failures_of_one_cause_are_one_annotation() -> None:
    caused = next(one for one in RESULTS if one.name == "wrong@numpy").gradient
    many = tuple(result(f"f{k}", Status.FAIL, "m", gradient=caused) for k in range(30))
    lines = render_report("github", Report(results=many)).splitlines()
    assert len(lines) == 1
    assert "and 29 more with this cause: f1@numpy, f2@numpy, " in lines[0]


def test_the_annotation_of_a_cause_is_of_its_first_failure_which_has_the_fix() -> None:
    caused = next(one for one in RESULTS if one.name == "wrong@numpy").gradient
    worse = caused.model_copy(update={"worst_error": 1e9})
    both = (result("first", Status.FAIL, "m", gradient=caused), result("worse", Status.FAIL, "m", gradient=worse))
    (line,) = render_report("github", Report(results=both)).splitlines()
    assert "title=FAIL first@numpy::" in line
    assert "and 1 more with this cause: worse@numpy" in line


@pytest.mark.parametrize("format", ["sarif", "markdown", "github"])
def test_failures_of_one_cause_are_told_once_and_counted(format: str) -> None:
    caused = next(one for one in RESULTS if one.name == "wrong@numpy").gradient
    many = tuple(result(f"f{k}", Status.FAIL, f"message {k}", gradient=caused) for k in range(30))
    text = render_report(format, Report(results=many))
    assert text.count("likely: backward has the wrong sign") == 1
    assert text.count("and 29 more with this cause: f1@numpy, f2@numpy, ") == 1
    if format == "sarif":
        assert [one["occurrenceCount"] for one in json.loads(text)["runs"][0]["results"]] == [30]


def test_github_is_given_as_many_as_it_shows_and_the_worst_first() -> None:
    many = tuple(
        result(
            f"f{k}",
            Status.FAIL,
            "m",
            gradient=gradient().model_copy(update={"worst_error": float(k), "diagnosis": ()}),
        )
        for k in range(25)
    )
    lines = render_report("github", Report(results=many)).splitlines()
    assert len(lines) == 11
    assert "title=FAIL f24@numpy" in lines[0]
    assert lines[-1] == "::notice title=gradcheck::and 15 more, in the log and in the summary"


# --------------------------------------------------------------------------- markdown
def test_markdown_has_the_counts_and_a_fence_that_nothing_closes() -> None:
    text = render_report("markdown", REPORT)
    assert text.startswith("## gradcheck: 2 FAIL, 1 ERROR, 1 CRASH, 1 PASS, 1 SKIP, 2 XFAIL in 1.5 s\n")
    assert "| specs/a.grad.yaml | 2 |" in text.replace("\\.", ".").replace("| file | FAIL", "")
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "<script>" not in outside
    assert "::error" not in outside.replace("\\", "") or "\\:\\:" in outside
    assert outside.count("```") == 0 or "\\`" in outside
    assert "@me" not in outside.replace("\\@", "")


# --------------------------------------------------------------------------- SARIF
def test_sarif_names_the_rule_and_the_line_of_the_layer() -> None:
    raw = json.loads(render_report("sarif", REPORT), parse_constant=refuse)
    run = Sarif.model_validate(raw).runs[0]
    assert len(run.results) == len(BAD)
    first = run.results[0]
    assert (first.rule_id, first.level) == ("GC102", "error")
    assert [rule.id for rule in run.tool.driver.rules] == ["GC102", "gradcheck"]
    main, scenario = (
        first.locations[0].physical_location,
        first.related_locations[0].physical_location,
    )
    assert (main.artifact_location.uri, main.region.start_line, main.region.start_column) == (
        "layers/own.py",
        7,
        9,
    )
    assert (scenario.artifact_location.uri, scenario.region.start_line) == ("specs/a.grad.yaml", 12)
    assert run.results[1].locations[0].physical_location.region.start_line == 12


FAR = [0.0, 5e-324, 1e-300, 1.7e308, math.inf, math.nan]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("far", FAR)
def test_numbers_at_the_ends_of_their_range_are_drawn(format: str, far: float) -> None:
    scan = SCAN.model_copy(update={
        "steps": (5e-324, 1.7e308), "differences": (-far, far), "rounding": (far, 0.0),
        "chosen": 1.7e308, "value": far, "error_bound": far, "analytic": -far,
    })  # fmt: skip
    entries = tuple(wrong(k, numeric, far) for k, numeric in enumerate([far, -far, 0.0]))
    one = result("far", Status.FAIL, "far", gradient=gradient(wrong=entries, scan=scan))
    assert "far" in render_report(format, Report(results=(one,)))


@pytest.mark.parametrize("columns", [(0, 0), (3, 1), (0, 2**53), (2**53, 2**53)])
def test_a_part_of_a_line_that_is_not_in_it_is_marked_at_its_end_at_most(
    columns: tuple[int, int],
) -> None:
    cause = CAUSE.model_copy(update={"column": columns[0], "end_column": columns[1]})
    one = result("odd", Status.FAIL, "odd", gradient=gradient(diagnosis=(cause,)))
    for format in FORMATS:
        assert len(render_report(format, Report(results=(one,)))) < 100_000
