"""The report in a pipe: one line per result, failures as indented blocks, the summary."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gradcheck.report import plain
from gradcheck.report.plain import PlainScreen, result_line
from gradcheck.report.result_text import (
    again,
    failure_block,
    gradient_lines,
    summary,
    wrap_line,
)
from gradcheck.report.wrong_entries import worst_first
from gradcheck.result import Diagnosis, GradientSummary, Result, Status, StepScan, WrongEntry
from gradcheck.support.display_paths import shown_path
from gradcheck.support.resources import bundled_specs


def make_result(status: Status = Status.PASS, **fields) -> Result:
    known = {
        "name": "lstm-cell@numpy",
        "scenario": "lstm-cell",
        "backend": "numpy",
        "line": 12,
        "column": 5,
    }
    path = str(bundled_specs() / "rnn.grad.yaml")
    return Result(**{**known, "path": path, "status": status, "seconds": 0.412, **fields})


def wrong(analytic: float, numeric: float, index=(1, 2), bound=5e-13, output="out", output_index=()) -> WrongEntry:
    return WrongEntry(
        input="W_hh",
        index=index,
        output=output,
        output_index=output_index,
        analytic=analytic,
        numeric=numeric,
        error_bound=bound,
    )


FAILED = make_result(
    Status.FAIL,
    message="gradient of W_hh: 7 of 48 entries wrong; x, b right",
    gradient=GradientSummary(
        verdict=Status.FAIL,
        wrong=(wrong(1.0, 1.0001, (0, 0)), wrong(0.41278311, 0.39990127), wrong(3.0, 2.0, (3, 3))),
        wrong_counts={"W_hh": (7, 48), "x": (0, 6)},
        worst_error=1e9,
    ),
)


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (make_result(), "PASS lstm-cell@numpy specs/rnn.grad.yaml:12:5 0.41s"),
        (
            make_result(Status.SKIP, message="no\n such\tday"),
            "SKIP lstm-cell@numpy specs/rnn.grad.yaml:12:5 no such day 0.41s",
        ),
        (
            make_result(Status.ERROR, message="[red]\x1b[2J" + "x" * 500),
            "ERROR lstm-cell@numpy specs/rnn.grad.yaml:12:5 [red]\\x1b[2J" + "x" * 500 + " 0.41s",
        ),
        (
            FAILED,
            "FAIL lstm-cell@numpy specs/rnn.grad.yaml:12:5 W_hh[3,3] rel=3.3e-01 bound=5e-13 0.41s",
        ),
    ],
)
def test_a_result_is_one_line_whatever_its_length(result, line):
    assert result_line(result) == line


def test_marks_of_a_verdict_stand_before_the_time():
    marked = GradientSummary(verdict=Status.KINK, marks=("by the tape", "next to a kink"))
    line = "KINK lstm-cell@numpy specs/rnn.grad.yaml:12:5 [by the tape, next to a kink] 0.41s"
    assert result_line(make_result(Status.KINK, gradient=marked)) == line


def test_the_headline_says_where_it_was_found():
    found = GradientSummary(verdict=Status.FAIL, wrong_counts={"x": (1, 2)}, where="point 2 of 3, float32")
    assert found.headline() == "gradient of x: 1 of 2 entries wrong (at point 2 of 3, float32)"


def test_a_scalar_has_no_index_and_a_nan_counts_as_the_worst():
    entries = (wrong(5.0, 1.0, ()), wrong(math.nan, 1.0, ()))
    result = make_result(Status.FAIL, gradient=GradientSummary(verdict=Status.FAIL, wrong=entries))
    assert " W_hh rel=inf bound=5e-13 " in result_line(result)


def test_a_failure_shows_the_wrong_entries_worst_first():
    assert failure_block(FAILED, "--seed 3") == [
        "gradient of W_hh: 7 of 48 entries wrong; x, b right",
        "                       analytic    numeric ± bound     rel. error",
        "  d out / d W_hh[3,3]  3           2 ± 5e-13           3.3e-01  ◀ worst: off by 1",
        "  d out / d W_hh[1,2]  0.41278311  0.39990127 ± 5e-13  3.1e-02",
        "  d out / d W_hh[0,0]  1           1.0001 ± 5e-13      1.0e-04",
        "  … and 4 more",
        "again: gradcheck run lstm-cell@numpy --seed 3 -v",
    ]


def test_the_worst_is_that_by_the_size_of_its_error_which_is_said():
    tiny, large = wrong(1e-30, -1e-30, (0, 0)), wrong(1.75, 1.5)
    _, first, second = gradient_lines(GradientSummary(verdict=Status.FAIL, wrong=(tiny, large)))
    assert first.endswith("  ◀ worst: off by 0.25")
    assert second.endswith("2.0e+00")


def test_first_come_the_entries_that_carry_most_of_the_error():
    tiny, large = wrong(1e-30, -1e-30, (0, 0)), wrong(1.5, 1.0)
    assert tiny.relative_error > large.relative_error
    assert worst_first([tiny, large]) == [large, tiny]


def test_an_element_that_is_wrong_in_several_entries_is_one():
    twice = tuple(wrong(3.0, 2.0, (0, 0), output_index=(k,)) for k in range(2))
    summary = GradientSummary(verdict=Status.FAIL, wrong=twice, wrong_counts={"W_hh": (2, 48)}, exhaustive=False)
    assert gradient_lines(summary)[-1] == "  … and at least 1 more"


def test_a_failure_without_a_single_wrong_entry_says_so():
    found = GradientSummary(verdict=Status.FAIL, wrong_counts={"x": (0, 6)})
    assert found.headline() == (
        "the gradient is wrong along a random direction; no single entry is outside of its error bound"
    )


def test_whole_slices_are_said_as_such():
    found = GradientSummary(
        verdict=Status.FAIL,
        wrong_counts={"w": (4, 12), "x": (6, 18), "b": (0, 3)},
        patterns=("all of x[:, 3]",),
    )
    assert found.headline() == (
        "gradient of w: 4 of 12 entries wrong; x: 6 of 18 entries wrong (all of x[:, 3]); b right"
    )


CAUSE = Diagnosis(
    code="GC117",
    text="backward ignores how the output depends on m, as if it were a constant",
    line="{folder}/layers/norm.py:5",
    source_line="    m = x.mean(-1, keepdim=True)",
    column=8,
    end_column=14,
    detail="its share of the gradient is missing: factor 0",
)


def test_a_cause_shows_its_line_with_a_caret(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cause = CAUSE.model_copy(update={"line": CAUSE.line.format(folder=tmp_path)})
    assert gradient_lines(GradientSummary(verdict=Status.FAIL, diagnosis=(cause,))) == [
        "likely: backward ignores how the output depends on m, as if it were a constant",
        "  layers/norm.py:5 │ m = x.mean(-1, keepdim=True)",
        "                   │     ^^^^^^ its share of the gradient is missing: factor 0",
        "why: gradcheck explain GC117",
    ]


def test_of_a_file_elsewhere_the_name_is_shown(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    cause = CAUSE.model_copy(update={"line": CAUSE.line.format(folder=tmp_path)})
    assert gradient_lines(GradientSummary(verdict=Status.FAIL, diagnosis=(cause,)))[1].startswith("  norm.py:5 │ m = ")


def test_on_a_narrow_screen_the_place_has_a_line_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = {
        "line": f"{tmp_path}/a_long_name.py:5",
        "source_line": "  m = x.mean(-1) + b",
        "column": 6,
        "detail": "why",
    }
    cause = CAUSE.model_copy(update={**place, "end_column": 16})
    lines = gradient_lines(GradientSummary(verdict=Status.FAIL, diagnosis=(cause,)), width=36)
    assert lines[-4:-1] == [
        "  a_long_name.py:5",
        "  │ m = x.mean(-1) + b",
        "  │     ^^^^^^^^^^ why",
    ]


@pytest.mark.parametrize("width", [50, 60, 80])
@pytest.mark.parametrize("marked", ["long_name(of_a_function)", "x.mean(-1)", "a"])
def test_of_a_long_line_the_part_that_is_marked_is_shown(marked, width, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for before, after in [("", " + b" * 40), ("b + " * 40, ""), ("b + " * 20, " + b" * 20)]:
        source = f"  y = {before}{marked}{after}"
        column = source.index(marked)
        place = {
            "line": f"{tmp_path}/n.py:5",
            "source_line": source,
            "column": column,
            "detail": "why",
        }
        cause = CAUSE.model_copy(update={**place, "end_column": column + len(marked)})
        _, shown, carets, _ = gradient_lines(GradientSummary(verdict=Status.FAIL, diagnosis=(cause,)), width=width)
        assert len(shown) <= width
        assert shown[carets.index("^") : carets.rindex("^") + 1] == marked


def test_what_the_message_says_is_not_said_again_as_a_cause():
    broken = Diagnosis.of("GC134", "backward writes into the incoming gradient")
    found = GradientSummary(verdict=Status.FAIL, diagnosis=(broken,))
    block = failure_block(make_result(Status.FAIL, message=found.headline(), gradient=found))
    assert block[:2] == [
        "backward writes into the incoming gradient",
        "why: gradcheck explain GC134",
    ]
    block = failure_block(make_result(Status.FAIL, message="forward ran 1 times, expected 2", gradient=found))
    assert block[1] == "broken: backward writes into the incoming gradient"


@pytest.mark.parametrize("width", [30, 60, 80])
def test_a_long_line_is_cut_between_words_and_its_rest_indented(width):
    detail = "its share of the gradient is missing: factor 0, and more of that kind"
    line = f"  layers/norm.py:5 │     ^^^^^^ {detail}"
    parts = wrap_line(line, width)
    assert max(map(len, parts)) <= width
    assert [word for part in parts for word in part.replace("│", "").split()] == line.replace("│", "").split()
    if width >= 60:
        assert all(part.index("│") == line.index("│") for part in parts)
        assert all(part[:25].strip("│ ") in ("", "layers/norm.py:5") for part in parts)


def test_a_crash_shows_the_end_of_what_was_printed():
    printed = "".join(f"line {k}\n" for k in range(100)) + "\x1b]0;title\x07\n"
    block = failure_block(make_result(Status.CRASH, message="was killed", output=printed))
    assert block[:2] == ["was killed", "last output:"]
    assert block[-3:-1] == ["  line 99", "  \\x1b]0;title\\x07"]
    assert len(block) < 25


def test_a_case_of_another_file_is_run_again_from_that_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = make_result(path=str(tmp_path / "my specs" / "a.grad.yaml"), name="a/dtype=float32@numpy")
    assert again(result, "") == "gradcheck run 'my specs/a.grad.yaml' a/dtype=float32@numpy -v"


def test_a_folder_called_specs_is_not_taken_for_the_bundled_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = make_result(path=str(tmp_path / "specs" / "a.grad.yaml"), name="a@numpy")
    assert again(own, "") == "gradcheck run specs/a.grad.yaml a@numpy -v"
    assert again(make_result(name="a@numpy"), "") == "gradcheck run a@numpy -v"


def test_paths_are_shown_as_briefly_as_possible(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert shown_path(str(bundled_specs() / "sub" / "a.grad.yaml")) == "specs/sub/a.grad.yaml"
    assert shown_path(str(tmp_path / "here" / "a.grad.yaml")) == "a.grad.yaml"
    assert shown_path("a.grad.yaml") == "a.grad.yaml"
    assert shown_path("/a") == "/a"
    assert shown_path("a\x1b[2J.grad.yaml") == "a\\x1b[2J.grad.yaml"


def test_the_summary_names_failures_first_and_counts_everything():
    results = [make_result(status) for status in [Status.PASS, Status.PASS, Status.SKIP, Status.TIMEOUT, Status.FAIL]]
    assert summary(results, 12.34) == "1 FAIL, 1 TIMEOUT, 2 PASS, 1 SKIP in 12.3 s"
    assert summary(results[:1], 1, not_run=4) == "1 PASS in 1.0 s; stopped before the end, 4 without a result"
    assert summary([], 0, not_run=2) == "no results in 0.0 s; stopped before the end, 2 without a result"


@pytest.mark.parametrize("status", Status)
def test_every_status_is_counted(status):
    assert summary([make_result(status)], 1) == f"1 {status} in 1.0 s"


def shown(capsys, *results: Result, **options) -> str:
    screen = PlainScreen(**options)
    for result in results:
        screen.show(result)
    screen.finish(results, 1.0, 0)
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_only_the_line_of_a_result_begins_with_its_status(capsys):
    output = shown(capsys, make_result(), FAILED)
    assert [line for line in output.splitlines() if line.startswith("FAIL")] == [result_line(FAILED)]
    assert "\n    again: gradcheck run lstm-cell@numpy -v\n" in output
    assert output.endswith("\n1 FAIL, 1 PASS in 1.0 s\n")


def test_what_the_line_says_the_block_does_not_repeat(capsys):
    assert shown(capsys, make_result(Status.CRASH, message="was killed")).count("was killed") == 1


def test_of_one_cause_the_first_has_the_block_and_each_its_line(capsys):
    cause = Diagnosis(code="GC102", text="backward has the wrong sign", line="/x/own.py:7")
    found = GradientSummary(verdict=Status.FAIL, wrong=(wrong(3.0, 2.0),), diagnosis=(cause,))
    failed = [make_result(Status.FAIL, name=f"a{k}@numpy", gradient=found) for k in range(3)]
    output = shown(capsys, *failed)
    assert output.count("likely: backward has the wrong sign") == 1
    assert [line.split()[1] for line in output.splitlines() if line.startswith("FAIL ")] == [one.name for one in failed]
    assert output.endswith("    same cause as a0@numpy\n    again: gradcheck run a2@numpy -v\n3 FAIL in 1.0 s\n")
    assert shown(capsys, *failed, verbose=True).count("likely: backward has the wrong sign") == 3


def test_nothing_in_a_name_or_message_begins_a_line_or_steers_the_terminal(capsys):
    nasty = "PASS x\nPASS y\r\x1b[2J\u202e]]>"
    screen = PlainScreen(verbose=True)
    screen.show(make_result(Status.ERROR, name=nasty, message=nasty, details=(nasty,), output=nasty))
    screen.show(make_result(Status.XFAIL, name=nasty, message=nasty, details=(nasty,)))
    output = capsys.readouterr().out
    assert not {"\x1b", "\r", "\u202e"} & set(output)
    starts = [line.split()[0] for line in output.splitlines() if not line.startswith("    ")]
    assert starts == ["ERROR", "XFAIL"]


def test_quiet_shows_failures_and_the_summary_only(capsys):
    output = shown(capsys, make_result(), make_result(Status.SKIP), FAILED, quiet=True)
    assert output.startswith("FAIL ")
    assert "PASS lstm" not in output
    assert output.endswith("\n1 FAIL, 1 PASS, 1 SKIP in 1.0 s\n")


def test_verbose_shows_the_details_of_what_is_as_expected_too(capsys):
    result = make_result(Status.XFAIL, message="known", details=("x.grad is\nNone",))
    assert "x.grad" not in shown(capsys, result)
    assert "\n    x.grad is None\n" in shown(capsys, result, verbose=True)


def test_verbose_shows_the_steps_of_the_worst_entry(capsys):
    scan = StepScan(
        input="x", index=(0,), output="out", output_index=(), analytic=2.0, steps=(1e-6, 1e-4),
        differences=(3.0, 3.5), rounding=(1e-9, 1e-11), chosen=1e-4, value=3.25, error_bound=1e-11,
    )  # fmt: skip
    result = make_result(Status.FAIL, gradient=GradientSummary(verdict=Status.FAIL, scan=scan))
    PlainScreen().show(result)
    assert "central differences" not in capsys.readouterr().out
    PlainScreen(verbose=True).show(result)
    assert (
        "    d out / d x[0] by central differences:\n"
        "      step     difference      rounding\n"
        "      1.0e-06  3               ± 1e-09\n"
        "      1.0e-04  3.5             ± 1e-11  ◀ chosen\n"
        "      extrapolated from there: 3.25 ± 1e-11\n"
    ) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "code"),
    [(Status.PASS, "\x1b[32mPASS\x1b[0m "), (Status.FAIL, "\x1b[31m\x1b[1mFAIL\x1b[0m ")],
)
def test_colour_is_only_where_it_is_asked_for(capsys, status, code):
    assert shown(capsys, make_result(status), color=True).startswith(code)
    assert "\x1b" not in shown(capsys, make_result(status), color=False)


def test_a_long_run_gives_signs_of_life_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr(plain, "HEARTBEAT", 0.01)
    screen = PlainScreen()
    output = ""
    with screen.running("", 7):
        screen.count(make_result())
        while "1 of 7" not in output:
            captured = capsys.readouterr()
            output += captured.err
            assert captured.out == ""
    assert "gradcheck: 1 of 7 cases done after 0 s\n" in output


def test_a_sign_of_life_names_the_cases_that_run(capsys, monkeypatch):
    monkeypatch.setattr(plain, "HEARTBEAT", 0.01)
    output = ""
    with PlainScreen().running("", 2, at_work=lambda: ["slow@numpy", "other@numpy"]):
        while "running" not in output:
            output += capsys.readouterr().err
    assert "gradcheck: 0 of 2 cases done after 0 s; running: slow@numpy, other@numpy\n" in output


def test_reports_import_neither_numpy_nor_a_backend():
    import subprocess
    import sys

    program = (
        "import sys, gradcheck.report.plain, gradcheck.report.console, gradcheck.report.files\n"
        "import gradcheck.commands.run_cases\n"
        "print(sorted({'numpy', 'pylayer', 'paddle', 'cupy'} & set(sys.modules)))"
    )
    paths = [path for path in sys.path if path]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {[root, *paths]!r}\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
