"""``--resume``, ``--lf``, ``--shard`` and ``replay``: what a run leaves for the next one."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from textwrap import dedent, indent

import pytest
from warm import python

ROOT = Path(__file__).parents[2]

GOOD = """\
  - id: good
    title: A right answer
    source: {document: d}
    script: |
      import os
      open("runs.txt", "a").write("good ")
    expect: {values: {1 + 1: 2}}
"""
BAD = GOOD.replace("good", "bad").replace("1 + 1: 2", "1 + 1: 3")
LAYER = """\
  - id: layer
    title: A wrong layer
    source: {document: d}
    layer: |
      class Double(PyLayer):
          @staticmethod
          def forward(ctx, x):
              print("forward runs")
              return x * 2

          @staticmethod
          def backward(ctx, dy):
              return dy * 3
    inputs: {x: {shape: [7]}}
"""


def lines(done) -> list[str]:
    return re.findall(r"^([A-Z]+ [\w-]+)@", done.out, re.MULTILINE)


# ----------------------------------------------------------------------------------------- --resume
def test_resume_runs_what_has_no_result_and_reports_everything(spec, gradcheck, folder):
    spec(GOOD, BAD, GOOD.replace("good", "late"))
    gradcheck("run", "a.grad.yaml", "--allow-code", "-x", "-j", "1")
    record = folder / ".gradcheck" / "last.jsonl"
    record.write_bytes(b"".join(record.read_bytes().splitlines(keepends=True)[:2]))
    (folder / "runs.txt").unlink()
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--resume")
    assert (done.code, done.err) == (1, "gradcheck: 2 of 3 results are known from the last run\n")
    assert lines(done) == ["PASS good", "FAIL bad", "PASS late"]
    assert (folder / "runs.txt").read_text().split() == ["late"]


def test_resume_runs_again_what_has_changed(spec, gradcheck, folder):
    spec(GOOD, BAD)
    gradcheck("run", "a.grad.yaml", "--allow-code")
    spec(GOOD, BAD.replace("1 + 1: 3", "1 + 1: 2"))
    done = gradcheck("run", "a.grad.yaml", "--allow-code", "--resume")
    assert (done.code, done.err) == (0, "gradcheck: 1 of 2 results are known from the last run\n")
    assert gradcheck("run", "a.grad.yaml", "--allow-code", "--resume").err.startswith("gradcheck: 2 of 2")
    assert gradcheck("run", "a.grad.yaml", "--allow-code", "--resume", "--seed", "3").err.startswith(
        "gradcheck: 0 of 2"
    )


def test_resume_gives_no_leave_to_run_code(spec, gradcheck):
    spec(GOOD)
    gradcheck("run", "a.grad.yaml", "--allow-code")
    assert gradcheck("run", "a.grad.yaml", "--resume").code == 2


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_run_in_order(spec, folder, name):
    """As Ctrl-C does, in test_run.py."""
    hang = GOOD.replace('open("runs.txt", "a").write("good ")', "os.read(os.pipe()[0], 1)").replace("good", "hang")
    spec(GOOD, hang.replace("import os", "import os; open('hangs', 'w').close()"))
    command = [sys.executable, str(ROOT / "cli.py"), "run", "--allow-code", "-j", "1", "a.grad.yaml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while not (folder / "hangs").exists() and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(getattr(signal, name))
        out, err = process.communicate()
    assert (process.returncode, err) == (130, "gradcheck: finished results are kept; --resume continues\n")
    assert re.fullmatch(r"PASS good@numpy .*\n1 PASS in .* s; stopped before the end, 1 without a result\n", out)
    assert len((folder / ".gradcheck" / "last.jsonl").read_text().splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("half", ["", '["half'])
def test_a_signal_ends_a_run_whose_worker_was_stopped_in_the_middle_of_an_answer(spec, folder, half):
    code = f"""
    import os, signal
    for number in range(32):
        try:
            os.write(os.open(f"/proc/{{os.getppid()}}/fd/{{number}}", os.O_WRONLY | os.O_NONBLOCK), {half.encode()!r})
        except OSError:
            pass
    os.kill(os.getppid(), signal.SIGSTOP)
    open("hangs", "w").close()
    """
    head = "  - id: stops\n    title: t\n    source: {document: d}\n    script: |\n"
    spec(GOOD, head + indent(dedent(code), "      "))
    command = [sys.executable, str(ROOT / "cli.py"), "run", "--allow-code", "-j", "1", "a.grad.yaml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 60
        while not (folder / "hangs").exists() and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        try:
            _, err = process.communicate(timeout=40)  # the limit of the case is 60 s
        finally:
            process.kill()
    assert (process.returncode, err) == (130, "gradcheck: finished results are kept; --resume continues\n")


LITTLE = """\
  - id: little-{k}
    title: A little work
    source: {{document: d}}
    layer: {{op: tanh}}
    inputs: {{x: {{shape: [{n}]}}}}
"""


def report_of(folder: Path, *options: str, **environment: str) -> list[dict]:
    """The report of a run, without times."""
    command = ("run", "a.grad.yaml", "-j", "2", "-q", *options, "--report", "json:r.json")
    assert python(ROOT / "cli.py", *command, folder=folder, env={**os.environ, **environment}).returncode == 0
    return [{**result, "seconds": 0} for result in json.loads((folder / "r.json").read_text())["results"]]


def still_there(mark: str) -> int:
    """How many processes have `mark` in their environment."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            count += mark.encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
    return count


@pytest.mark.parametrize(("kills", "cases"), [(3, 30), pytest.param(50, 100, marks=pytest.mark.long)])
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_killed_run_loses_nothing_and_leaves_no_process(spec, folder, kills, cases):
    spec(*(LITTLE.format(k=k, n=k % 5 + 1) for k in range(cases)))
    undisturbed = report_of(folder)
    moments = random.Random(kills)
    record = folder / ".gradcheck" / "last.jsonl"
    kept = []
    for number in range(10 * kills):
        if number >= kills and any(0 < count < cases for count in kept):  # one was killed halfway
            break
        record.unlink(missing_ok=True)
        mark = uuid.uuid4().hex
        command = [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml", "-j", "2"]
        process = subprocess.Popen(
            command, env={**os.environ, "MARK": mark}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder
        )
        shown = moments.choice([0, moments.randrange(1, cases // 2), moments.randrange(1, cases)])
        if shown:  # after that number of results, or while it starts
            out = b"".join(process.stdout.readline() for _ in range(shown))
        else:
            time.sleep(moments.uniform(0, 0.3))
            out = b""
        process.kill()
        out += process.communicate()[0]
        end = time.monotonic() + 10
        while still_there(mark) and time.monotonic() < end:
            time.sleep(0.02)
        assert still_there(mark) == 0
        recorded = len(record.read_bytes().splitlines()) if record.exists() else 0
        assert (
            recorded >= len(out.splitlines()) - 1
        )  # all that was shown (the summary, if it got that far, is a line too)
        kept.append(recorded)
        assert report_of(folder, *(["--resume"] if record.exists() else [])) == undisturbed
    assert any(0 < count < cases for count in kept)


# --------------------------------------------------------------------------------------------- --lf
def test_lf_runs_what_failed_in_the_files_where_it_failed(spec, gradcheck, folder):
    spec(GOOD, BAD, BAD.replace("bad", "worse"), name="sub/a.grad.yaml")
    gradcheck("run", "sub", "--allow-code")
    done = gradcheck("run", "--lf", "--allow-code")
    assert (done.code, lines(done)) == (1, ["FAIL bad", "FAIL worse"])
    spec(GOOD, BAD.replace("1 + 1: 3", "1 + 1: 2"), BAD.replace("bad", "worse"), name="sub/a.grad.yaml")
    assert lines(gradcheck("run", "--lf", "--allow-code")) == ["PASS bad", "FAIL worse"]
    assert lines(gradcheck("run", "--lf", "--allow-code")) == ["FAIL worse"]


def test_lf_keeps_in_mind_what_failed_and_was_not_selected(spec, gradcheck):
    spec(BAD, BAD.replace("bad", "worse"))
    gradcheck("run", "a.grad.yaml", "--allow-code")
    assert lines(gradcheck("run", "a.grad.yaml", "--lf", "-k", "bad", "--allow-code")) == ["FAIL bad"]
    assert lines(gradcheck("run", "--lf", "--allow-code")) == ["FAIL bad", "FAIL worse"]


def test_lf_runs_everything_where_nothing_failed(spec, gradcheck):
    spec(GOOD)
    gradcheck("run", "a.grad.yaml", "--allow-code")
    done = gradcheck("run", "a.grad.yaml", "--lf", "--allow-code")
    assert (lines(done), done.err) == (
        ["PASS good"],
        "gradcheck: nothing failed in the last run, so all cases are run\n",
    )


# ------------------------------------------------------------------------------------------ --shard
def test_shards_are_disjoint_and_together_everything(spec, gradcheck):
    spec(*(LITTLE.format(k=k, n=1) for k in range(40)))
    shards = [lines(gradcheck("run", "a.grad.yaml", "--shard", f"{k}/3")) for k in (1, 2, 3)]
    assert sorted(name for shard in shards for name in shard) == sorted(f"PASS little-{k}" for k in range(40))
    assert all(len(shard) > 5 for shard in shards)


def test_a_case_stays_in_its_shard_when_others_come(spec, gradcheck):
    spec(*(LITTLE.format(k=k, n=1) for k in range(10)))
    before = set(lines(gradcheck("run", "a.grad.yaml", "--shard", "1/2")))
    spec(*(LITTLE.format(k=k, n=1) for k in range(20)))
    after = set(lines(gradcheck("run", "a.grad.yaml", "--shard", "1/2")))
    assert {name for name in after if int(name.rpartition("-")[2]) < 10} == before


def test_a_shard_without_cases_says_so(spec, gradcheck):
    spec(GOOD)
    codes = [gradcheck("run", "a.grad.yaml", "--allow-code", "--shard", f"{k}/2").code for k in (1, 2)]
    assert sorted(codes) == [0, 5]


# ------------------------------------------------------------------------------------------- replay
def test_replay_runs_the_last_failure_again_and_shows_everything(spec, gradcheck, folder):
    spec(BAD, LAYER, GOOD)
    gradcheck("run", "a.grad.yaml", "--allow-code", "--seed", "7")
    before = (folder / ".gradcheck" / "last.jsonl").read_bytes()
    done = gradcheck("replay", "--allow-code")
    assert (done.code, lines(done)) == (1, ["FAIL layer"])
    assert "              return dy * 3\n" in done.out
    assert len(re.findall(r"^  out\[\d\], x\[\d\]: 3, 2", done.out, re.MULTILINE)) == 7
    assert "what it printed:\n  forward runs\n" in done.out
    assert "--seed 7" in done.out
    assert (folder / ".gradcheck" / "last.jsonl").read_bytes() == before


def test_replay_finds_a_case_by_its_scenario_or_its_name(spec, gradcheck):
    spec(GOOD, BAD, LAYER)
    gradcheck("run", "a.grad.yaml", "--allow-code")
    assert lines(gradcheck("replay", "bad", "--allow-code")) == ["FAIL bad"]
    assert lines(gradcheck("replay", "good@numpy", "--allow-code")) == ["PASS good"]


def test_replay_says_what_it_cannot_do(spec, gradcheck):
    spec(GOOD)
    gradcheck("run", "a.grad.yaml", "--allow-code")
    for arguments, message in (
        (
            ["nope", "--allow-code"],
            "the last run has no case 'nope'; if there is such a scenario, `gradcheck run nope` runs it",
        ),
        (["goood"], "the last run has no case 'goood'; did you mean good?"),
        (["--allow-code"], "nothing failed in the last run; name a case to replay it anyway"),
        (["good"], "this code is not from gradcheck, so it was not run"),
    ):
        done = gradcheck("replay", *arguments)
        assert (done.code, done.out) == (2, "")
        assert message in done.err


def test_replay_takes_the_last_failure_or_a_place_in_a_file(spec, gradcheck):
    spec(GOOD, BAD)
    gradcheck("run", "a.grad.yaml", "--allow-code")
    last = len(Path("a.grad.yaml").read_text().splitlines())
    for names in ([], ["a.grad.yaml"], ["a.grad.yaml::bad"], [f"a.grad.yaml:{last}"], ["bad@numpy"]):
        done = gradcheck("replay", *names, "--allow-code")
        assert (done.code, lines(done)) == (1, ["FAIL bad"]), names


def test_replay_needs_a_record_and_the_case_in_its_file(spec, gradcheck):
    spec(GOOD, BAD)
    assert (
        gradcheck("replay").err
        == "gradcheck: no last run is recorded in this folder (.gradcheck/last.jsonl): `gradcheck run` records one\n"
    )
    gradcheck("run", "a.grad.yaml", "--allow-code")
    spec(GOOD)
    assert gradcheck("replay", "--allow-code").err == "gradcheck: bad@numpy is no longer in a.grad.yaml\n"


def test_a_report_goes_where_the_user_says_be_it_through_a_link(spec, gradcheck, folder, tmp_path_factory):
    spec(LAYER)
    target = tmp_path_factory.mktemp("elsewhere") / "r.json"
    (folder / "r.json").symlink_to(target)
    gradcheck("run", "a.grad.yaml", "--allow-code", "--report", "json:r.json")
    assert [result["status"] for result in json.loads(target.read_text())["results"]] == ["FAIL"]
