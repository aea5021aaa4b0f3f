"""The report on a terminal: a table of files and of the cases that did not pass, a panel per failure."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from gradcheck.report.console import RichScreen
from gradcheck.result import Diagnosis, GradientSummary, Result, Status, WrongEntry


def make_result(name: str, status: Status = Status.PASS, path: str = "/x/a.grad.yaml", **fields) -> Result:
    known = {"scenario": name, "backend": "numpy", "line": 3, "column": 5, "seconds": 0.25}
    return Result(**{**known, "name": f"{name}@numpy", "status": status, "path": path, **fields})


def screen_of(*results: Result, width: int = 100, not_run: int = 0, color: bool = False, **options) -> str:
    output = io.StringIO()
    console = Console(file=output, width=width, force_terminal=color, color_system="standard" if color else None)
    screen = RichScreen(console, Console(file=io.StringIO()), **options)
    with screen.running("the header", len(results)):
        for result in results:
            screen.count(result)
            screen.show(result)
    screen.finish(results, 2.0, not_run)
    return "\n".join(line.rstrip() for line in output.getvalue().replace("\N{NO-BREAK SPACE}", " ").splitlines())


def passed(ratio: float) -> GradientSummary:
    return GradientSummary(verdict=Status.PASS, worst_error=ratio)


RESULTS = [
    make_result("one", gradient=passed(0.25)),
    make_result("two", gradient=passed(0.031)),
    make_result("differs", gradient=GradientSummary(verdict=Status.FAIL, worst_error=1e13)),
    make_result("known", Status.XFAIL, message="3.3.1 leaves [x] None"),
    make_result("other", Status.SKIP, path="/x/b.grad.yaml", message="not installed"),
]


def test_passing_rows_are_folded_into_a_row_per_file():
    assert screen_of(*RESULTS) == (
        "the header\n"
        "scenario                   status           worst error / bound  seconds\n"
        "/x/a.grad.yaml             3 PASS, 1 XFAIL                 0.25     1.00\n"
        "  known@numpy              XFAIL                                    0.25\n"
        "    3.3.1 leaves [x] None\n"
        "/x/b.grad.yaml             1 SKIP                                   0.25\n"
        "  other@numpy              SKIP                                     0.25\n"
        "    not installed\n"
        "3 PASS, 1 SKIP, 1 XFAIL in 2.0 s"
    )


KINDS = [
    make_result("right", gradient=passed(0.25)),
    make_result(
        "a-scenario-with-a-name-that-no-narrow-screen-has-room-for-in-one-line",
        Status.FAIL,
        message="wrong",
    ),
    make_result(
        "unclear",
        Status.INCONCLUSIVE,
        message="the bar is too wide to tell, so nothing could be verified",
    ),
    make_result("crashed", Status.CRASH, message="the process was killed by SIGSEGV, at line 12 of the spec"),
    make_result("slow/dtype=float32", Status.TIMEOUT, message="ran longer than 1 s and was stopped"),
    make_result(
        "left-out",
        Status.SKIP,
        message="it takes a machine that is not here, and nobody knows when it comes",
    ),
    make_result(
        "known",
        Status.XFAIL,
        message="the release differs in what it does here, and will go on to do so",
    ),
    make_result("at-the-corner", Status.KINK, message="not differentiable", gradient=passed(0.5)),
]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_table_keeps_what_belongs_together_at_any_width(width):
    lines = screen_of(*KINDS, width=width).splitlines()
    rows = lines[1 : next(number for number, line in enumerate(lines) if line.startswith("╭"))]
    head, indents = rows[0], [len(line) - len(line.lstrip(" ")) for line in rows]
    status = head.index("status")
    for one in KINDS[1:]:
        at = next(number for number, line in enumerate(rows) if line.lstrip().startswith(one.name[: width // 3]))
        row = rows[at]
        assert row.index(str(one.status)) == status, row  # statuses stand below one another
        assert row.endswith("0.25")
        names = [line[:status].strip() for line in rows[at:]]
        assert "".join(names).startswith(one.name)  # a name goes on in the next line, and loses nothing
        message = next(number for number in range(at + 1, len(rows)) if indents[number] == 4)  # below the name
        if one.status.green:
            assert " ".join(line.strip() for line in rows[message:]).startswith(one.message)
        else:
            assert one.message.startswith(rows[message].strip().removesuffix("…"))  # its panel has the rest
    for count in (
        "1 FAIL",
        "1 INCONCLUSIVE",
        "1 CRASH",
        "1 TIMEOUT",
        "1 PASS",
        "1 KINK",
        "1 SKIP",
        "1 XFAIL",
    ):
        assert any(re.search(rf"{count}(,|\s|$)", line) for line in rows), count  # a count is never split


def test_verbose_shows_every_row():
    output = screen_of(*RESULTS, verbose=True)
    assert "  one@numpy                PASS                            0.25     0.25\n" in output
    assert "  two@numpy                PASS                           0.031     0.25\n" in output


def test_a_failure_has_a_panel_with_what_is_needed_to_act():
    entry = WrongEntry(
        input="w", index=(1, 2), output="out", output_index=(), analytic=1.0, numeric=2.0, error_bound=1e-12
    )
    failed = make_result(
        "bad",
        Status.FAIL,
        message="gradient of w: 1 of 6 entries wrong",
        gradient=GradientSummary(verdict=Status.FAIL, wrong=(entry,), wrong_counts={"w": (1, 6)}, worst_error=1e12),
    )
    output = screen_of(failed, again_options="--seed 1")
    assert "╭─ FAIL bad@numpy · /x/a.grad.yaml:3:5 ─" in output
    assert "│ gradient of w: 1 of 6 entries wrong " in output
    assert "│   d out / d w[1,2]  1         2 ± 1e-12        5.0e-01  ◀ worst: off by 1 " in output
    assert "│ again: gradcheck run /x/a.grad.yaml bad@numpy --seed 1 -v " in output
    assert output.endswith("1 FAIL in 2.0 s")


def test_on_a_narrow_screen_an_entry_has_lines_of_its_own():
    entry = WrongEntry(
        input="weight",
        index=(11, 2),
        output="out",
        output_index=(11, 3),
        analytic=1 / 3,
        numeric=-2 / 3,
        error_bound=1e-12,
    )
    found = GradientSummary(verdict=Status.FAIL, wrong=(entry,), wrong_counts={"weight": (1, 6)})
    output = screen_of(make_result("bad", Status.FAIL, message=found.headline(), gradient=found), width=60)
    lines = [line.strip("│ ") for line in output.splitlines()]
    start = lines.index("d out[11,3] / d weight[11,2]")
    assert lines[start + 1 : start + 3] == [
        "analytic 0.33333333",
        "numeric -0.66666667 ± 1e-12, rel. error 1.5e+00",
    ]


def test_values_that_agree_to_the_usual_digits_are_shown_whole():
    entry = WrongEntry(
        input="x", index=(), output="out", output_index=(), analytic=1.0, numeric=1 - 2e-9, error_bound=4e-15
    )
    found = GradientSummary(verdict=Status.FAIL, wrong=(entry,), wrong_counts={"x": (1, 1)})
    output = screen_of(make_result("bad", Status.FAIL, message=found.headline(), gradient=found))
    assert "d out / d x  1         0.99999999799999995 ± 4e-15" in output


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_panel_cuts_lines_between_words(width):
    message = "nothing could be verified here " * 20
    output = screen_of(make_result("bad", Status.INCONCLUSIVE, message=message), width=width, quiet=True)
    panel = [line.strip("│ ") for line in output.splitlines() if line.startswith("│")]
    assert " ".join(panel).startswith(message.strip())
    assert max(map(len, output.splitlines())) <= width


def test_marks_of_a_verdict_stand_beside_the_status():
    marked = GradientSummary(verdict=Status.FAIL, marks=("by the tape",))
    output = screen_of(make_result("bad", Status.FAIL, gradient=marked))
    assert any(row.split()[:5] == ["bad@numpy", "FAIL", "[by", "the", "tape]"] for row in output.splitlines())
    assert "╭─ FAIL [by the tape] bad@numpy" in output


def of_one_cause(count: int, line: str = "/x/ffn.py:12") -> list[Result]:
    """Failures that a diagnosis puts down to one line of a layer."""
    found = GradientSummary(verdict=Status.FAIL, diagnosis=(Diagnosis(code="GC102", text="wrong sign", line=line),))
    return [make_result(f"wrong-{k}", Status.FAIL, message=f"message {k}", gradient=found) for k in range(count)]


@pytest.mark.parametrize("width", [60, 120])
def test_failures_of_one_cause_are_one_panel_and_a_line_that_names_the_others(width):
    elsewhere = make_result(
        "other",
        Status.FAIL,
        message="of its own",
        gradient=of_one_cause(1, "/x/b.py:3")[0].gradient,
    )
    first, *others = of_one_cause(30)
    lines = screen_of(first, elsewhere, *others, width=width, quiet=True).splitlines()
    titles = [line.split()[2] for line in lines if line.startswith("╭")]
    assert titles == ["wrong-0@numpy", "other@numpy"]
    (line,) = [line.strip("│ ") for line in lines if "more with this cause" in line]
    assert line.startswith("and 29 more with this cause: wrong-1@numpy, ")
    assert line.endswith("@numpy, …")  # whole names, as many as one line has room for
    assert lines[-1] == "31 FAIL in 2.0 s"


def test_two_of_one_cause_are_both_named():
    assert "│ and 1 more with this cause: wrong-1@numpy " in screen_of(*of_one_cause(2))


def test_verbose_shows_a_panel_for_each_failure():
    output = screen_of(*of_one_cause(3), verbose=True)
    assert [output.count(f"╭─ FAIL wrong-{k}@numpy") for k in range(3)] == [1, 1, 1]
    assert "with this cause" not in output


def test_an_error_in_the_same_words_is_one_cause_and_a_crash_is_not():
    errors = [make_result(f"e{k}", Status.ERROR, message="NameError: name 'y', line 28 of the spec") for k in range(3)]
    crashes = [make_result(f"c{k}", Status.CRASH, message="the process was killed by SIGSEGV") for k in range(2)]
    other = make_result("elsewhere", Status.ERROR, path="/x/b.grad.yaml", message=errors[0].message)
    output = screen_of(*errors, *crashes, other, quiet=True)
    titles = [line.split()[2] for line in output.splitlines() if line.startswith("╭")]
    assert titles == ["e0@numpy", "c0@numpy", "c1@numpy", "elsewhere@numpy"]
    assert "and 2 more with this cause: e1@numpy, e2@numpy" in output


@pytest.mark.parametrize("width", [60, 120, 200])
def test_the_message_of_a_failure_is_one_line_below_its_row(width):
    output = screen_of(make_result("bad", Status.FAIL, message="why " * 200), width=width)
    (note,) = [line for line in output.splitlines() if line.startswith("    why")]
    assert note.endswith("…")
    assert output.count("why") > 200  # the panel has it whole


def progress_frames(width: int, total: int = 728) -> dict[int, str]:
    """What the progress shows by the number of results, while some cases with long names run: the first and last, and
    where the number gets a digit more."""
    screen = RichScreen(Console(file=io.StringIO()), Console(file=io.StringIO(), width=width, force_terminal=True))
    screen.task = screen.progress.add_task("", total=total)
    shown = {*range(1, 15), *range(95, 105), *range(total - 10, total + 1)}
    frames = {}
    for done in range(total):
        screen.current.names = lambda done=done: ["a-case-with-a-long-name@numpy"] * (done % 5)
        screen.count(make_result("one", Status.FAIL if done % 9 == 8 else Status.PASS))
        if done + 1 in shown:
            output = io.StringIO()
            Console(file=output, width=width, color_system=None).print(screen.progress.get_renderable())
            frames[done + 1] = output.getvalue().rstrip("\n")
    return frames


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_count_comes_first_and_is_never_cut_and_the_bar_keeps_its_width(width):
    frames = progress_frames(width)
    for done, frame in frames.items():
        assert frame.startswith(f"{done:3}/728 ")
        assert len(frame) <= width  # one line
    times = {re.search(r"\d:\d\d:\d\d", frame).start() for frame in frames.values()}
    assert times == {33 if width >= 80 else 8}  # a bar of 24 columns stands before it, or none


def test_the_bar_says_neither_good_nor_bad():
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="truecolor")
    screen = RichScreen(Console(file=io.StringIO()), console)
    screen.task = screen.progress.add_task("", total=2)
    screen.count(make_result("one"))
    console.print(screen.progress.get_renderable())
    bar = console.file.getvalue().partition("━")[0]
    assert bar.endswith("\x1b[39m")  # the terminal's own colour


def test_quiet_shows_panels_and_the_summary_only():
    output = screen_of(*RESULTS, make_result("bad", Status.ERROR, message="oh"), quiet=True)
    assert output.startswith("╭─ ERROR bad@numpy ")
    assert output.endswith("1 ERROR, 3 PASS, 1 SKIP, 1 XFAIL in 2.0 s")


def test_nothing_is_read_as_markup_and_nothing_can_steer_the_terminal():
    evil = "[bold red]x[/] [link=http://e]y[/link] :smile: \x1b[2J\r\u202e"
    output = screen_of(
        make_result(
            "bad",
            Status.ERROR,
            path="/x/[red]a.grad.yaml",
            message=evil,
            details=(evil,),
            output=evil,
        ),
        make_result("skip", Status.SKIP, message=evil),
    )
    shown = "[bold red]x[/] [link=http://e]y[/link] :smile: \\x1b[2J"
    assert output.count(shown) == 5
    assert "/x/[red]a.grad.yaml" in output
    assert not {"\x1b", "\r", "\u202e"} & set(output)


@pytest.mark.parametrize("width", [40, 60, 200])
def test_nothing_is_cut_off_at_any_width(width):
    name = "a-scenario-with-a-very-long-name-that-does-not-fit-on-a-narrow-screen"
    output = screen_of(make_result(name, Status.CRASH, message="why " * 40), width=width)
    assert max(map(len, output.splitlines())) <= width
    letters = "".join(character for character in output if character.isalnum() or character == "-")
    assert letters.count("why") >= 40
    assert letters.count(f"{name}numpy") >= 2  # in the panel, and in the command that runs it again


def test_a_run_that_was_stopped_says_so():
    assert screen_of(*RESULTS[:1], not_run=3).endswith("1 PASS in 2.0 s; stopped before the end, 3 without a result")
    assert screen_of(not_run=3).endswith("no results in 2.0 s; stopped before the end, 3 without a result")


def test_without_a_colour_system_there_is_no_escape_sequence():
    failed = make_result("bad", Status.FAIL, message="m")
    assert "\x1b" not in screen_of(failed)
    assert "\x1b[1;31mFAIL" in screen_of(failed, color=True)
