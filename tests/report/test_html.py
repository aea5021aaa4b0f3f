"""The page: its content in order. How it works in a browser is in `test_browser.py`."""

from __future__ import annotations

import math
import re
from typing import Any

import html5lib
import pytest
from reports import NASTY, REPORT, RESULTS, SCAN, gradient, of_one_cause, result, scenario, wrong

from gradcheck.report.files import render_report
from gradcheck.report.record import Report
from gradcheck.result import Status


def parsed(report: Report) -> Any:
    """The page, which is valid."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(render_report("html", report))


def text(element: Any) -> str:
    return " ".join(" ".join(element.itertext()).split()).replace(" ,", ",")


def cases(element: Any) -> list[Any]:
    return element.findall(".//ul[@class='cases']/li")


def failures(*results: Any, cases: tuple[Any, ...] = ()) -> Any:
    return parsed(Report(results=results, cases=cases)).find(".//div[@id='failures']")


# --------------------------------------------------------------------------- overview
def test_the_page_is_valid_holds_every_case_once_and_failures_come_first() -> None:
    page = parsed(REPORT)
    found = [item.get("data-status") for item in cases(page)]
    assert sorted(found) == sorted(one.status for one in RESULTS)
    green = [Status(status).green for status in found]
    assert green == sorted(green)
    assert len({item.get("id") for item in cases(page)}) == len(RESULTS)
    assert len(page.findall(".//script")) == 1


def test_what_is_as_expected_is_folded_per_file_with_its_counts() -> None:
    folded = parsed(REPORT).findall(".//div[@id='green']//details")
    assert [text(one.find("summary")) for one in folded] == [
        "specs/a.grad.yaml 1 PASS, 1 SKIP, 1 XFAIL",
        "other.grad.yaml 1 XFAIL",
    ]
    assert all(one.get("open") is None for one in folded)
    assert [len(cases(one)) for one in folded] == [3, 1]


def test_there_is_a_part_of_the_bar_for_each_status_in_proportion_to_its_count() -> None:
    report = Report(results=(*of_one_cause(3), result("good", Status.PASS)))
    parts = parsed(report).findall(".//div[@class='counts']/button")
    assert [(text(part), part.get("style")) for part in parts] == [
        ("3 FAIL", "flex-grow: 3"),
        ("1 PASS", "flex-grow: 1"),
    ]


def test_failures_of_one_cause_have_one_heading_and_all_but_the_first_are_folded() -> None:
    alone = result("alone", Status.FAIL, "of its own")
    many, single = failures(alone, *of_one_cause(30)).findall("section")  # the largest group first
    assert text(many.find("h2")) == "30 cases, one cause: backward has the wrong sign · layers/own.py:7"
    first, *others = cases(many)
    assert others == cases(many.find("details"))
    assert text(many.find("details/summary")) == "29 more with this cause"
    assert first.find("details").get("open") is not None
    assert single.find("h2") is None
    assert text(single).startswith("FAIL alone@numpy of its own")


# --------------------------------------------------------------------------- a case
def test_a_case_opens_with_the_cause_and_the_line_then_come_the_numbers_and_plots_are_folded() -> None:
    (item,) = cases(failures(next(one for one in RESULTS if one.name == "wrong@numpy")))
    assert text(item.find("details/summary")).startswith("FAIL wrong@numpy gradient of x: 7 of 9 entries wrong")
    body = list(item.find("details/div"))
    assert text(body[0]) == "likely: backward has the wrong sign"
    assert text(body[1]) == "layers/own.py:7 y = a - b its share has the wrong sign"
    assert text(body[1].find(".//mark")) == "a - b"
    assert text(body.pop(2)) == "last output: said"
    assert [one.tag for one in body[2:]] == ["table", "details", "dl", "details"]
    assert len(body[2].findall("tbody/tr")) == 5
    assert len(body[3].findall(".//tbody/tr")) == 2  # the rest of the seven
    assert [text(one) for one in body[2].find("tbody/tr")] == [
        "d out[0] / d x[0]",
        "2",
        "3",
        "1e-12",
        "1.0e+00",
        "3.3e-01",
    ]
    assert "again gradcheck run wrong@numpy -v" in text(body[4])
    assert "gradcheck explain GC102" in text(body[4])
    assert body[5].get("open") is None
    assert len([one for one in body[5].iter() if str(one.tag).endswith("svg")]) == 2


def test_a_row_that_is_folded_says_the_cause_and_its_line() -> None:
    said = "gradient of x: 7 of 9 entries wrong · backward has the wrong sign · layers/own.py:7"
    rows = [text(row) for row in parsed(REPORT).iter("summary")]
    assert [row for row in rows if row.startswith(f"FAIL wrong@numpy {said} ")]


def test_a_case_tells_its_title_its_source_and_its_tags() -> None:
    found = scenario(
        "wrong",
        title="Signs",
        document="The paper",
        section="2.1",
        quote="it falls",
        tags=("one", "two"),
    )
    (item,) = cases(failures(result("wrong", Status.FAIL, "m"), cases=(found,)))
    facts = text(item.find(".//dl"))
    assert "specs/a.grad.yaml:12:5 · Signs" in facts
    assert "source The paper, 2.1: “it falls”" in facts
    assert "tags one, two" in facts
    assert item.get("data-tags") == "one two"


def test_a_case_says_what_it_printed_and_why_it_cannot_be_told() -> None:
    crashed = result("crashed", Status.CRASH, "killed", output="the last words\n")
    unclear = result(
        "unclear",
        Status.INCONCLUSIVE,
        "m",
        gradient=gradient().model_copy(update={"why": "too noisy"}),
    )
    first, second = cases(failures(crashed, unclear))
    assert "the last words" in text(first.find(".//pre"))
    assert text(second.find(".//pre")) == "too noisy"


def test_nothing_in_a_spec_or_of_a_layer_becomes_a_part_of_the_page() -> None:
    named = scenario("nasty", title=NASTY, document=NASTY, quote=NASTY, url='https://e.org/"onclick="alert(1)')
    found = result("nasty", Status.ERROR, NASTY, details=(NASTY,), output=NASTY, path=f"{NASTY}.yaml")
    page = parsed(Report(results=(found,), cases=(named,), command=("run", NASTY)))
    assert len(page.findall(".//script")) == 1
    assert all(not name.startswith("on") for one in page.iter() for name in one.attrib)
    assert text(page).count("<script>alert(1)</script>") >= 6


def test_the_page_needs_no_network() -> None:
    page = parsed(REPORT)
    loading = {"src", "srcset", "href", "data", "action", "poster"}
    assert {one.tag for one in page.iter() if loading & {*one.attrib}} <= {"a"}  # which a reader follows, or not
    assert re.search(r"url\(|@import", render_report("html", REPORT)) is None


# --------------------------------------------------------------------------- plots
def cells(**fields: Any) -> dict[str, Any]:
    """The cells of the heat map by what they say."""
    page = failures(result("w", Status.FAIL, "m", gradient=gradient(**fields)))
    return {text(one): one for one in page.iter() if str(one.tag).endswith("rect")}


def test_the_heat_map_is_darker_where_the_error_is_larger() -> None:
    found = cells(wrong=(wrong(0, 2.0 + 1e-10), wrong(1, 2.0 + 1e-6), wrong(2, math.inf)))
    shades = [re.search(r", ([\d.]+)\)", found[name].get("style")) for name in sorted(found) if "analytic" in name]
    assert 0 < float(shades[0][1]) < float(shades[1][1]) < float(shades[2][1]) == 1.0


def test_the_heat_map_shows_right_entries_too_as_far_as_they_are_known_to_be() -> None:
    found = cells(wrong=(wrong(1), wrong(3)), wrong_counts={"x": (2, 6)})
    across = [f"d out[{k}] / d x[{n}]: right" for k in range(4) for n in (0, 2, 4, 5)]
    assert {name for name, one in found.items() if one.get("class") == "right"} == {*across}
    assert found["d out[0] / d x[1]: not among the listed wrong entries"].get("class") is None
    assert len(found) == 4 * 6
    partly = cells(wrong=(wrong(1), wrong(3)), wrong_counts={"x": (5, 6)})  # three are wrong that are not listed
    assert all(one.get("class") is None for one in partly.values())


def test_the_heat_map_has_the_indices_along_its_sides() -> None:
    page = failures(
        result(
            "w",
            Status.FAIL,
            "m",
            gradient=gradient(wrong=(wrong(0), wrong(2)), wrong_counts={"x": (2, 4)}),
        )
    )
    (drawn,) = [one for one in page.iter() if one.get("class") == "map"]
    labels = [(text(one), "rotate" in one.get("transform", "")) for one in drawn if str(one.tag).endswith("text")]
    assert labels == [*((str(k), True) for k in range(4)), *((str(k), False) for k in range(3))]


def test_of_many_entries_the_heat_map_shows_those_that_are_wrong() -> None:
    found = cells(wrong=(wrong(7), wrong(10**6)), wrong_counts={"x": (2, 10**7)})
    assert {re.search(r"x\[(\d+)\]", name)[1] for name in found} == {"7", str(10**6)}


def test_the_step_plot_has_a_point_for_each_step_and_shows_what_was_chosen() -> None:
    page = parsed(REPORT)
    (drawn,) = [one for one in page.iter() if "plot" in one.get("class", "").split()]
    assert "taken: 3 ± 1e-11, from the step 1.0e-04; backward: 2, off by 1.0e+00" in drawn.get("aria-label")
    points = [one for one in drawn.iter() if str(one.tag).endswith("circle")]
    assert [point[0].text for point in points] == [
        "step 1.0e-08: off by 1.0e-08",
        "step 1.0e-06: off by 1.0e-10",
        "step 1.0e-04: off by 1.0e-12",
        "step 1.0e-02: off by 1.0e-03",
    ]
    across = [float(point.get("cx")) for point in points]
    assert across == sorted(across)
    heights = [-float(point.get("cy")) for point in points]
    assert heights[2] < heights[1] < heights[0] < heights[3]
    (chosen,) = [one for one in drawn.iter() if one.get("class") == "chosen"]
    assert chosen.get("d").startswith(f"M{across[2]} ")


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, 3.0, 1e-320])
def test_a_plot_is_drawn_of_whatever_was_scanned(value: float) -> None:
    odd = SCAN.model_copy(update={"differences": (value,) * 4, "analytic": value, "value": 3.0, "error_bound": 0.0})
    assert failures(result("w", Status.FAIL, "m", gradient=gradient(wrong=(wrong(),), scan=odd))) is not None
