"""A gate for a project with known failures, and two reports side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from warm import python

from gradcheck.commands.compare import MOST_REPORT_BYTES as MOST_OF_A_REPORT
from gradcheck.run.results import MOST_BASELINE_BYTES as MOST_OF_A_BASELINE

ROOT = Path(__file__).parents[2]
HEAD = "schema: gradcheck/v1\ndefaults: {source: {document: own}}\nscenarios:\n"
ONE = "  - {{id: {id}, title: t, script: '{code}'}}\n"
RAISES = 'raise ValueError("no")'


@pytest.fixture
def suite(folder):
    """Writes a spec of programs by id."""

    def write(**programs: str) -> None:
        text = "".join(ONE.format(id=id.replace("_", "-"), code=code) for id, code in programs.items())
        (folder / "a.grad.yaml").write_text(HEAD + text)

    return write


@pytest.fixture
def run(gradcheck):
    return lambda *options: gradcheck("run", "a.grad.yaml", "--allow-code", *options)


def failures(folder) -> dict[str, dict[str, str]]:
    return json.loads((folder / "base.json").read_text())["failures"]


def test_known_failures_do_not_fail_the_gate_and_new_ones_do(suite, run, folder):
    suite(good="x = 1", bad=RAISES)
    first = run("--baseline", "base.json", "--baseline-update")
    assert first.code == 1
    assert failures(folder) == {"bad@numpy": {"status": "ERROR"}}
    again = run("--baseline", "base.json")
    assert again.code == 0
    assert "XFAIL bad@numpy a.grad.yaml:5:5 in the baseline (ERROR): ValueError: no" in again.out
    suite(good="x = 1", bad=RAISES, worse=RAISES)
    assert run("--baseline", "base.json").code == 1


def test_what_fails_in_another_way_is_a_new_failure(suite, run):
    suite(bad=RAISES)
    run("--baseline", "base.json", "--baseline-update")
    suite(bad="import os; os._exit(3)")
    done = run("--baseline", "base.json")
    assert (done.code, done.out[:5]) == (1, "CRASH")


def test_what_was_mended_is_said_and_pruned(suite, run, folder):
    suite(one=RAISES, two=RAISES)
    run("--baseline", "base.json", "--baseline-update")
    suite(one="x = 1", two=RAISES)
    done = run("--baseline", "base.json")
    assert done.code == 0
    assert done.err == "gradcheck: no longer failing: one@numpy; --baseline-prune removes them\n"
    run("--baseline", "base.json", "--baseline-prune")
    assert failures(folder) == {"two@numpy": {"status": "ERROR"}}


def test_pruning_adds_nothing_and_cases_that_did_not_run_stay(suite, run, folder):
    suite(one=RAISES, two=RAISES)
    run("--baseline", "base.json", "--baseline-update")
    suite(one=RAISES, two="x = 1", three=RAISES)
    run("--baseline", "base.json", "--baseline-prune", "-k", "three or one")
    assert failures(folder) == {"one@numpy": {"status": "ERROR"}, "two@numpy": {"status": "ERROR"}}


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (None, ["--baseline", "base.json"], "no such file; --baseline-update writes one"),
        ("[]", ["--baseline", "base.json"], "this is not a baseline: name another file, which --baseline-update"),
        (
            '{"format": "gradcheck-baseline/2", "failures": {"a": {"status": "BAD"}}}',
            ["--baseline", "base.json"],
            "is not a baseline",
        ),
        (None, ["--baseline-update"], "--baseline-update and --baseline-prune need --baseline FILE"),
        (
            None,
            ["--baseline", "no/base.json", "--baseline-update"],
            "/no: make it first",
        ),
    ],
)
def test_what_cannot_be_used_is_explained(suite, run, folder, content, options, said):
    suite(good="x = 1")
    if content is not None:
        (folder / "base.json").write_text(content)
    done = run(*options)
    assert done.code == 2
    assert said in done.err


def test_a_baseline_and_a_report_are_read_within_bounds(suite, run, gradcheck, folder):
    suite(good="x = 1")
    for name, most in (("base.json", MOST_OF_A_BASELINE), ("a.json", MOST_OF_A_REPORT)):
        with (folder / name).open("wb") as file:
            file.truncate(most + 1)
    refused = run("--baseline", "base.json")
    assert (refused.code, refused.err) == (2, "gradcheck: --baseline base.json: it is larger than 10 MB\n")
    assert gradcheck("compare", "a.json", "a.json") == (2, "", "gradcheck: a.json: it is larger than 250 MB\n")


def test_reports_may_come_through_pipes(suite, run, folder):
    suite(good="x = 1")
    run("--report", "json:a.json")
    command = f"{sys.executable} -m gradcheck compare <(cat a.json) <(cat a.json)"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 new failures, 1 the same of 1\n", "")


def test_two_reports_are_compared(suite, run, gradcheck):
    suite(same="x = 1", worse="x = 1", mended=RAISES, gone="x = 1")
    run("--report", "json:a.json")
    suite(same="x = 1", worse=RAISES, mended="x = 1", added="x = 1")
    run("--report", "json:b.json")
    done = gradcheck("compare", "a.json", "b.json")
    assert done.code == 1
    assert done.out.splitlines() == [
        "PASS → ERROR  worse@numpy  ValueError: no (line 5 of the spec)",
        "ERROR → PASS  mended@numpy",
        "PASS → absent  gone@numpy",
        "absent → PASS  added@numpy",
        "1 new failure, 1 the same of 5",
    ]
    assert gradcheck("compare", "b.json", "a.json").code == 1
    assert gradcheck("compare", "a.json", "a.json").code == 0


def test_what_is_no_report_is_explained(gradcheck, folder):
    (folder / "a.json").write_text("{}")
    assert "no.json: No such file" in gradcheck("compare", "no.json", "a.json").err
    other_format = '{"format": "gradcheck-report/1", "results": []}'
    for text in ("[1]", "{}", "no JSON", other_format):
        (folder / "b.json").write_text(text)
        done = gradcheck("compare", "b.json", "b.json")
        assert (done.code, "this is not a report" in done.err) == (2, True)


def test_lists_and_validations_for_programs(suite, gradcheck):
    suite(one="x = 1")
    (listed,) = json.loads(gradcheck("list", "a.grad.yaml", "--json").out)
    assert (listed["id"], listed["path"], listed["line"]) == ("one", "a.grad.yaml", 4)
    (file,) = json.loads(gradcheck("validate", "a.grad.yaml", "--format", "json").out)
    assert file == {"path": "a.grad.yaml", "scenarios": 1, "errors": []}


def test_mistakes_are_annotations_on_github(gradcheck, folder, monkeypatch, capfd):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (folder / "b.grad.yaml").write_text(HEAD + "  - {id: one, title: t, layer: {op: tahn}}\n")
    done = gradcheck("validate", "b.grad.yaml")
    assert done.code == 2
    annotation = capfd.readouterr().out  # not into the stream that escapes commands
    assert annotation.startswith("::error file=b.grad.yaml,line=4,col=")
    assert "did you mean" in annotation


def test_a_spec_is_validated_from_stdin(folder):
    text = HEAD + "  - {id: one, title: t, layer: {op: tahn}}\n"
    done = python(ROOT / "cli.py", "validate", "-", input=text, folder=folder)
    assert done.returncode == 2
    assert done.stdout.startswith("-:4:")
    done = python(ROOT / "cli.py", "validate", "-", input="#" * 11_000_000, folder=folder)
    assert (done.returncode, "larger than 10 MB" in done.stdout) == (2, True)
