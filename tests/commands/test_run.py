"""``gradcheck run``: exit codes, selection, screens, and an end without a trace."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent

import pytest
from warm import python

from gradcheck.commands import run_cases
from gradcheck.conformance.suite import suite_version
from gradcheck.run.runner import Runner

ROOT = Path(__file__).parents[2]

GOOD = """\
  - id: good
    title: A right answer
    source: {document: d}
    tags: [right]
    script: |
      answer = 6 * 7
    expect: {values: {answer: 42}}
"""
BAD = GOOD.replace("good", "bad").replace("6 * 7", "6 * 8").replace("right", "wrong")
OP = """\
  - id: op
    title: No code but ours
    source: {document: d}
    layer: {op: tanh}
    inputs: {x: {shape: [2]}}
"""


def summary_of(done) -> str:
    return re.sub(r" in \d+\.\d s", "", done.out.splitlines()[-1])


def test_all_as_expected_is_0_and_one_line_each(spec, gradcheck):
    spec(GOOD, OP)
    code, out, err = gradcheck("run", "a.grad.yaml", "--allow-code")
    assert (code, err) == (0, "")
    assert re.fullmatch(
        r"PASS good@numpy a\.grad\.yaml:3:5 \d+\.\d\ds\n"
        r"PASS op@numpy a\.grad\.yaml:10:5 \d+\.\d\ds\n"
        r"2 PASS in \d+\.\d s\n",
        out,
    )


def test_a_failure_is_1_with_a_block_that_tells_how_to_run_it_again(spec, gradcheck):
    spec(GOOD, BAD)
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--seed", "5")
    assert done.code == 1
    assert "\nFAIL bad@numpy a.grad.yaml:10:5 answer: " in done.out
    again = re.search(r"^    again: gradcheck (.*)$", done.out, re.MULTILINE)[1]
    assert again == "run a.grad.yaml bad@numpy --seed 5 --allow-code -v"
    assert summary_of(done) == "1 FAIL, 1 PASS"
    repeated = gradcheck(*again.split())
    assert (repeated.code, summary_of(repeated)) == (1, "1 FAIL")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import os; os._exit(0)", "CRASH"),
        ("while True: pass", "TIMEOUT"),
        ("1 / 0", "ERROR"),
        ("raise SystemExit", "ERROR"),
    ],
)
def test_a_case_that_breaks_costs_that_case_alone(spec, gradcheck, code, status):
    spec(BAD.replace("6 * 8", f"0\n      {code}"), GOOD)
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--timeout", "1.5")
    assert (done.code, summary_of(done)) == (1, f"1 {status}, 1 PASS")
    assert done.out.startswith(f"{status} bad@numpy a.grad.yaml:3:5 ")


SLOW = """\
  - id: slow
    title: A wrong gradient that takes long to name
    source: {document: d}
    layer: |
      import time
      import numpy as np
      class Slow(PyLayer):
          @staticmethod
          def forward(ctx, x):
              time.sleep(0.02)
              return paddle.to_tensor(np.cumsum(x.numpy()))
          @staticmethod
          def backward(ctx, dy):
              return 1.5 * dy
    inputs: {x: {shape: [1000]}}
"""


def test_a_wrong_gradient_fails_in_time_however_long_naming_would_take(spec, gradcheck):
    spec(SLOW)
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--effort", "full", "--timeout", "8")
    assert (done.code, summary_of(done)) == (1, "1 FAIL")


def test_results_come_in_the_order_of_the_file_for_any_number_of_jobs(spec, gradcheck):
    spec(*(GOOD.replace("good", f"good-{k}") for k in range(8)))
    for jobs in ("1", "2"):
        done = gradcheck("run", "a.grad.yaml", "--allow-code", "-j", jobs)
        assert re.findall(r"good-\d", done.out) == [f"good-{k}" for k in range(8)]


def test_the_bundled_specs_run_where_they_are_asked_for(spec, gradcheck, folder, monkeypatch):
    spec(BAD)
    spec(GOOD, name="bundle/documents/b.grad.yaml")
    for module in ("support.resources", "commands.permission", "support.display_paths"):
        monkeypatch.setattr(f"gradcheck.{module}.bundled_specs", lambda: folder / "bundle")
    # the digest of these files is not that of the suite: another test would get it from the cache
    monkeypatch.setattr("gradcheck.conformance.suite.suite_version", suite_version.__wrapped__)
    done = gradcheck("run", "--bundled")
    assert (done.code, done.out.split()[:3]) == (0, ["PASS", "good@numpy", "specs/documents/b.grad.yaml:3:5"])


# ----------------------------------------------------------------------------------------- order
ONCE = """\
  - id: once
    title: A gradient that is right, and that cannot be differentiated again
    source: {document: d}
    layer: |
      class Once(PyLayer):
          @staticmethod
          def forward(ctx, x):
              ctx.save_for_backward(x)
              return x * x

          @staticmethod
          def backward(ctx, dy):
              x, = ctx.saved_tensor()
              return dy * 2 * x.detach()
    inputs: {x: {shape: [2]}}
"""


def test_the_second_order_is_checked_of_every_gradient_that_is_to_match(spec, gradcheck):
    spec(ONCE, GOOD)
    assert gradcheck("run", "a.grad.yaml", "--allow-code").code == 0
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--order", "2")
    assert (done.code, summary_of(done)) == (1, "1 FAIL, 1 PASS")
    assert "the first derivative is right, the derivative of the gradient is not" in done.out
    assert "again: gradcheck run a.grad.yaml once@numpy --order 2 --allow-code -v" in done.out


# -------------------------------------------------------------------------------------- selection
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["nope"],
            2,
            "gradcheck: no file, folder or scenario is called 'nope'; "
            "`gradcheck list` lists all, with tags and files\n",
        ),
        (["goood"], 2, "gradcheck: no file, folder or scenario is called 'goood'; did you mean good?\n"),
        (["nope.grad.yaml"], 2, "nope.grad.yaml: error: there is no such file or folder\n"),
        (["-k", "goood"], 5, "gradcheck: nothing is selected: no case has 'goood' in its name; did you mean good?\n"),
        (["-k", "not good"], 5, "gradcheck: nothing is selected\n"),
        (["-t", "nothing"], 2, "gradcheck: -t 'nothing': no scenario has the tag 'nothing'; "),
        (["test_own.py"], 2, "gradcheck: test_own.py is not a spec file or id; `gradcheck check test_own:LAYER`"),
        (["-k", "a and"], 2, "gradcheck: -k 'a and': combine words with"),
        (["-k", ""], 2, "gradcheck: an empty argument follows -k: is a shell variable unset?"),
        (["-b", "nunpy"], 2, "gradcheck: there is no backend 'nunpy'; did you mean numpy?\n"),
        (["-j", "0"], 2, "gradcheck: -j 0: write a number from 1 on, or auto\n"),
        (["-j", "many"], 2, "gradcheck: -j many: write a number from 1 on, or auto\n"),
        (
            ["--report", "xml:x"],
            2,
            "gradcheck: --report xml:x: write FORMAT:PATH, such as json:results.json; the formats are json, jsonl, "
            "junit, github, markdown, sarif, html\n",
        ),
        (["--report", "json:"], 2, "gradcheck: --report json:: write FORMAT:PATH"),
        (["--report", "json:x", "--report", "junit:x"], 2, "gradcheck: --report json:x: another report is written"),
        (
            ["--report", "json:no/x.json"],
            2,
            "/no: make it first\n",
        ),
        (["--report", "json:."], 2, "gradcheck: --report json:.: . is a folder: name a file in it\n"),
        (
            ["own.layers:Tanh"],
            2,
            "gradcheck: own.layers:Tanh is not a spec file or id; `gradcheck check own.layers:Tanh`",
        ),
        (["--max-fail", "0"], 2, "Invalid value for '--max-fail'"),
        (["--timeout", "0"], 2, "Invalid value for '--timeout'"),
        (["--seed", "-1"], 2, "Invalid value for '--seed'"),
        (["--shard", "3/2"], 2, "gradcheck: --shard 3/2: write I/N, such as 1/4 to 4/4\n"),
        (["--shard", "0/2"], 2, "gradcheck: --shard 0/2: write I/N"),
        (["--memory", "much"], 2, "gradcheck: --memory 'much' is not a size: write one of at least 1M, such as 512M"),
        (["--executor", "cloud"], 2, "gradcheck: --executor cloud: write local, or dask:ADDRESS"),
        (["--resume"], 2, "gradcheck: no last run is recorded in this folder (.gradcheck/last.jsonl): "),
        (["--lf"], 2, "gradcheck: no last run is recorded in this folder"),
        (["--lf", "--resume"], 2, "gradcheck: --lf runs failed cases again, and --resume keeps their results"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(spec, gradcheck, arguments, code, message):
    spec(GOOD)
    done = gradcheck("run", "a.grad.yaml", "--allow-code", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("paddle.ones([2]).unsqeeze(0)", "; did you mean unsqueeze()?"), ("'a'.uper()", "; did you mean upper()?"),
     ("paddle.tahn", "Did you mean paddle.tan"), ("'a'.zzzzzz", "has no attribute 'zzzzzz' (line")],
)  # fmt: skip
def test_an_attribute_that_is_misspelled_brings_up_the_one_that_is_there(spec, gradcheck, asked, meant):
    spec(GOOD.replace("6 * 7", asked))
    said = gradcheck("run", "a.grad.yaml", "--allow-code").out
    assert meant in said
    assert said.lower().count("did you mean") == ("mean" in meant)


@pytest.mark.parametrize("asked", ["len('a'.upper)", "paddle.ones([2]).abs[0]"])
def test_a_method_that_is_not_called_brings_up_the_call(spec, gradcheck, asked):
    spec(GOOD.replace("6 * 7", asked))
    assert "; is the () of a call missing? (line" in gradcheck("run", "a.grad.yaml", "--allow-code").out


def test_a_file_that_is_not_there_was_looked_for_somewhere(gradcheck, folder):
    assert f"it was looked for in {folder.absolute()}" in gradcheck("run", "nope.grad.yaml").err


@pytest.mark.parametrize(
    ("place", "word", "meant"),
    [("own", "specs", "../specs"), ("own", "specs/a.grad.yaml", "../specs/a.grad.yaml"),
     (".", "a.grad.yaml", "specs/a.grad.yaml"), ("specs", "specs/a.grad.yaml", "a.grad.yaml"),
     ("own", "own/specs", "")],
)  # fmt: skip
def test_a_path_that_starts_in_another_folder_of_the_project_brings_up_the_right_one(
    spec, gradcheck, folder, monkeypatch, place, word, meant
):
    spec(GOOD, name="specs/a.grad.yaml")
    (folder / "pyproject.toml").touch()
    (folder / "own").mkdir()
    monkeypatch.chdir(folder / place)
    done = gradcheck("run", word)
    assert done.code == 2
    assert re.findall("did you mean '?([^'?]+)", done.err) == [meant] * bool(meant)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [("GRADCHECK_ALLOWCODE", "GRADCHECK_ALLOW_CODE"), ("GRADCHECK_ENVIRONMENT", "GRADCHECK_ENVIRONMENTS"),
     ("GRADCHECK_ALLOW_CODE", ""), ("GRADCHECK_TOKEN", "")],
)  # fmt: skip
def test_a_variable_that_is_misspelled_brings_up_the_one_that_is_read(spec, gradcheck, monkeypatch, variable, meant):
    spec(GOOD)
    monkeypatch.setenv(variable, "1")
    err = gradcheck("list").err
    assert err == (f"gradcheck: {variable} is not read; did you mean {meant}?\n" if meant else "")


def test_a_shard_without_cases_says_so(spec, gradcheck):
    spec(GOOD)
    done = [gradcheck("run", "a.grad.yaml", "--allow-code", "--shard", f"{k}/2") for k in (1, 2)]
    assert sorted(one.code for one in done) == [0, 5]
    (empty,) = [(k, one.err) for k, one in enumerate(done, 1) if one.code]
    assert empty[1] == f"gradcheck: nothing is selected, in shard {empty[0]}/2\n"


def test_a_way_to_start_cases_that_there_is_not(spec, gradcheck, monkeypatch):
    spec(GOOD)
    monkeypatch.setattr("gradcheck.commands.run_cases.START", "spwan")
    done = gradcheck("run", "a.grad.yaml", "--allow-code")
    assert (done.code, done.err) == (2, "gradcheck: GRADCHECK_START=spwan: write fork or spawn, or remove it\n")


def test_mistakes_in_specs_are_shown_and_nothing_runs(spec, gradcheck):
    spec(GOOD.replace("title", "titel"))
    done = gradcheck("run", "a.grad.yaml", "--allow-code")
    assert (done.code, done.out) == (2, "")
    assert "a.grad.yaml:4:5: error: unknown key 'titel' in a scenario\n" in done.err


def test_ids_select_among_the_files_that_are_named(spec, gradcheck):
    spec(GOOD, BAD)
    assert gradcheck("run", "a.grad.yaml", "good", "--allow-code").code == 0
    assert gradcheck("run", "a.grad.yaml", "bad@numpy", "--allow-code").code == 1


def test_a_case_name_names_its_backend(spec, gradcheck):
    spec(OP)
    done = gradcheck("run", "a.grad.yaml", "op@paddle")
    assert re.match(r"(SKIP|UNSUPPORTED) op@paddle ", done.out)


# --------------------------------------------------------------------------------------- backends
@pytest.mark.skipif(find_spec("cupy") is not None, reason="cupy is installed")
def test_a_missing_backend_that_is_asked_for_is_an_error_with_the_way_to_get_it(spec, gradcheck):
    spec(OP)
    done = gradcheck("run", "a.grad.yaml", "-b", "numpy,cupy")
    assert (done.code, done.out) == (2, "")
    assert done.err == "gradcheck: backend cupy: not installed: cupy; pip install cupy-cuda12x\n"


@pytest.mark.skipif(find_spec("cupy") is not None, reason="cupy is installed")
def test_a_missing_backend_of_the_configuration_is_a_skip_that_is_counted_and_shown(spec, gradcheck, folder):
    spec(OP)
    (folder / "pyproject.toml").write_text('[tool.gradcheck]\nbackends = ["numpy", "cupy"]\n')
    done = gradcheck("run", "a.grad.yaml")
    assert (done.code, summary_of(done)) == (0, "1 PASS, 1 SKIP")
    assert "SKIP op@cupy a.grad.yaml:3:5 not installed: cupy; pip install cupy-cuda12x 0.00s" in done.out
    (folder / "pyproject.toml").write_text('[tool.gradcheck]\nbackends = ["cupy"]\n')
    said = "gradcheck: nothing was run: not installed: cupy; pip install cupy-cuda12x\n"
    for options in ([], ["-q"], ["--format", "rich"], ["--format", "rich", "-q"]):
        done = gradcheck("run", "a.grad.yaml", *options)
        assert (done.code, summary_of(done)) == (5, "1 SKIP")
        assert done.err.endswith(said)


def test_the_engine_itself_cannot_be_skipped(spec, gradcheck, monkeypatch):
    spec(OP)
    monkeypatch.setattr("gradcheck.backends.base.is_installed", lambda module: False)
    done = gradcheck("run", "a.grad.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("gradcheck: backend numpy: not installed: numpy, pylayer")


# --------------------------------------------------------------------------------- early endings
@pytest.mark.parametrize(("arguments", "shown"), [(["-x"], 2), (["--max-fail", "2"], 3), (["--max-fail", "9"], 4)])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_stops_at_the_same_failure_for_any_number_of_jobs(spec, gradcheck, arguments, shown, jobs):
    spec(GOOD, *(BAD.replace("bad", f"bad-{k}") for k in range(3)))
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "-j", jobs, *arguments)
    assert done.code == 1
    assert re.findall(r"^(?:PASS|FAIL) (\S+)@", done.out, re.MULTILINE) == ["good", "bad-0", "bad-1", "bad-2"][:shown]
    assert summary_of(done).endswith(f"; stopped before the end, {4 - shown} without a result" if shown < 4 else "PASS")


def test_ctrl_c_reports_what_had_finished_and_leaves_no_process(spec, folder):
    """Two workers: one hangs in the first case, the other is done with the second when it begins the third."""
    waits = "import os, time\nopen(f'{os.getpid()}.pid', 'w').close()\ntime.sleep(1000)\n"
    hang = GOOD.replace("      answer = 6 * 7\n", indent(f"answer = 0\n{waits}", "      "))
    spec(hang.replace("good", "hang-1"), GOOD, hang.replace("good", "hang-2"))
    command = [sys.executable, str(ROOT / "cli.py"), "run", "--allow-code", "-j", "2", "a.grad.yaml"]
    with subprocess.Popen(
        [*command, "--report", "json:r.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + 60
        while len(files := list(folder.glob("*.pid"))) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, err) == (130, "gradcheck: finished results are kept; --resume continues\n")
    assert re.fullmatch(r"PASS good@numpy .*\n1 PASS in .* s; stopped before the end, 2 without a result\n", out)
    assert [result["name"] for result in json.loads((folder / "r.json").read_text())["results"]] == ["good@numpy"]
    assert len((folder / ".gradcheck" / "last.jsonl").read_text().splitlines()) == 1
    assert len(files) == 2
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.stem), 0)


def test_a_bug_of_ours_leaves_a_report_and_exits_with_3(spec, gradcheck, folder, monkeypatch):
    spec(OP)
    ours = "execute.__code__ = execute.__code__.replace(co_filename='<string>')\n"  # a file here is the user's
    (folder / "broken.py").write_text(f"def execute(case):\n    raise LookupError('ours')\n{ours}")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(run_cases, "Runner", functools.partial(Runner, execute="broken:execute"))
    done = gradcheck("run", "a.grad.yaml")
    assert done.code == 3
    assert done.out.startswith("ERROR op@numpy a.grad.yaml:3:5 bug in gradcheck: LookupError: ours ")
    path = folder / re.search(r"report it with the file (\S+)\n$", done.err)[1]
    assert path.parent == folder / ".gradcheck"
    report = path.read_text()
    assert "op@numpy\nTraceback (most recent call last):\n" in report
    assert "LookupError: ours\n" in report


# ---------------------------------------------------------------------------------------- screens
def test_a_json_report_has_every_result(spec, gradcheck, folder):
    spec(GOOD, BAD)
    assert gradcheck("run", "a.grad.yaml", "--allow-code", "--report", "json:out.json").code == 1
    results = json.loads((folder / "out.json").read_text())["results"]
    assert [(result["name"], result["status"]) for result in results] == [("good@numpy", "PASS"), ("bad@numpy", "FAIL")]


def test_a_report_that_cannot_be_written_is_said(spec, gradcheck):
    spec(OP)
    done = gradcheck("run", "a.grad.yaml", "--report", "json:/dev/full")
    assert (done.code, summary_of(done)) == (2, "1 PASS")
    assert done.err == "gradcheck: --report json:/dev/full: No space left on device\n"


def test_rich_shows_a_header_a_table_and_panels(spec, gradcheck):
    spec(GOOD, BAD)
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--format", "rich", "--seed", "3")
    assert done.code == 1
    assert re.match(r"gradcheck \S+ · Python \S+ · numpy \S+ ", done.out)
    assert "seed 3" in done.out
    assert re.search(r"^a\.grad\.yaml +1\s+FAIL, 1\s+PASS", done.out, re.MULTILINE)
    assert "╭─ FAIL bad@numpy · a.grad.yaml:10:5 ─" in done.out
    assert "good@numpy" not in done.out
    assert "good@numpy" in gradcheck("run", "a.grad.yaml", "--allow-code", "--format", "rich", "-v").out


@pytest.mark.parametrize("layout", ["plain", "rich"])
@pytest.mark.parametrize(
    ("arguments", "environment", "colored"),
    [
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colours_are_as_asked_for(spec, gradcheck, passing, monkeypatch, layout, arguments, environment, colored):
    spec(OP)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = gradcheck("run", "a.grad.yaml", "--format", layout, *arguments)
    assert ("\x1b[" in done.out) is colored
    assert done.code == 0


@pytest.mark.parametrize(("environment", "rich"), [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False)])
def test_a_terminal_gets_the_table_and_a_progress_bar(spec, folder, environment, rich):
    import pty

    spec(OP)
    ours, theirs = pty.openpty()
    command = [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml"]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env={**os.environ, **environment}) as process:
        os.close(theirs)
        output = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            output += chunk
            if not chunk:
                break
        os.close(ours)
    assert process.returncode == 0
    assert (b"worst error / bound" in output) is rich
    assert (b"PASS op@numpy" in output) is not rich
    assert (b"\x1b[" in output) is rich
    assert (b"0/1" in output) is rich


def test_lines_are_not_cut_at_the_width_of_a_terminal(spec, gradcheck, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    spec(GOOD.replace("6 * 7", f"0; raise ValueError('{'x' * 300}')"))
    assert "x" * 300 in gradcheck("run", "a.grad.yaml", "--allow-code").out.splitlines()[0]


def test_a_terminal_without_the_characters_gets_escapes(spec):
    spec(BAD.replace("6 * 8", "0; raise ValueError('日本')"))
    command = [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml", "--allow-code", "--format", "rich"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert "\\u65e5" in done.stdout
    assert "+- ERROR bad@numpy - a.grad.yaml:3:5 -" in done.stdout  # and ours their likeness
    assert done.stderr == ""


@pytest.mark.parametrize("layout", ["plain", "rich"])
def test_on_github_nothing_a_layer_says_is_a_workflow_command(spec, folder, layout):
    """Neither what it prints and raises, nor a reason in the spec; elsewhere it stays as it is."""
    said = "print('::error::printed'); raise ValueError('a\\n::warning::raised\\n ##[add-mask]masked')"
    known = BAD.replace("bad", "known")
    reason = "    backends: {numpy: {xfail: {reason: '::notice::expected ##[group]x'}}}\n"
    spec(GOOD.replace("6 * 7", f"0; {said}"), known + reason)
    command = (ROOT / "cli.py", "run", "a.grad.yaml", "--allow-code", "-v", "--format", layout)
    done = python(*command, env={**os.environ, "GITHUB_ACTIONS": "true", "COLUMNS": "100"})
    lines = (done.stdout + done.stderr).splitlines()
    ours = [line for line in lines if line.startswith("::error file=a.grad.yaml,")]
    assert not [line for line in lines if line not in ours and line.lstrip().startswith("::")]
    assert not [line for line in lines if "##[" in line]
    for word in ("error::printed", "warning::raised", "\\x5badd-mask]masked", "notice:"):
        assert word in done.stdout
    elsewhere = python(*command, env={**os.environ, "GITHUB_ACTIONS": "", "COLUMNS": "100"})
    assert "::error::printed" in elsewhere.stdout
    assert "\\x3a" not in elsewhere.stdout


def test_a_closed_pipe_is_no_bug(spec, folder):
    spec(*(GOOD.replace("good", f"good-{k}") for k in range(4)))
    command = f"{sys.executable} {ROOT / 'cli.py'} run a.grad.yaml --allow-code -j 1 | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("PASS good-0@numpy")
    assert done.stderr == ""
    assert list((folder / ".gradcheck").glob("bug-*")) == []


def test_github_gets_annotations_and_a_summary_and_no_commands_of_others(spec, folder):
    (folder / "a.grad.yaml").write_text(spec_text := (
        "schema: gradcheck/v1\nscenarios:\n  - id: bad\n    title: t\n    source: {document: d}\n"
        "    script: |\n      print('::add-mask::x')\n      raise ValueError('::error::y')\n"
    ))  # fmt: skip
    assert spec_text
    environment = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    process = python(ROOT / "cli.py", "run", "a.grad.yaml", "--allow-code", folder=folder, env=environment)
    assert process.returncode == 1
    commands = [line for line in process.stdout.splitlines() if line.lstrip().startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error file=a.grad.yaml,line=8,col=1,title=ERROR bad@numpy::")
    assert (folder / "summary.md").read_text().startswith("## gradcheck: 1 ERROR")


def test_the_schema_of_reports_is_printed_too(gradcheck):
    assert json.loads(gradcheck("schema", "--report").out)["title"] == "A report of gradcheck"


def test_watching_runs_again_after_a_change_and_ends_with_ctrl_c(spec, folder):
    pytest.importorskip("watchfiles")
    path = spec(OP)
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml", "--watch"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    summaries = 0
    while summaries < 2:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        if line.startswith("1 PASS"):
            summaries += 1
            path.write_text(path.read_text() + "# changed\n")
            (folder / "note.txt").write_text("of no concern")
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_watching_without_its_package_says_how_to_get_it(spec, gradcheck, monkeypatch):
    spec(OP)
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    done = gradcheck("run", "a.grad.yaml", "--watch")
    said = "gradcheck: --watch needs the package watchfiles: pip install watchfiles\n"
    assert done == (2, "", said)
