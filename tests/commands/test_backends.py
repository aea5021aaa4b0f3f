"""``gradcheck backends``, and runs on releases: the one here is the engine, under the name of a Paddle 9."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from releases import RELEASE, make_environment

from gradcheck.backends import environments
from gradcheck.support.resources import release_paths

OP = """\
  - id: tanh
    title: A tanh layer
    source: {document: d}
    layer: {op: tanh}
    inputs: {x: {shape: [2]}}
"""
PINNED = """\
  - id: pinned
    title: An answer that only some releases know
    source: {document: d}
    script: |
      import sys
      where = sys.prefix
      answer = 41
    expect: {values: {answer: 42}}
    backends:
      paddle:
        - {versions: "<9.1", observed: {values: {answer: 41}}, reason: it cannot count}
        - {versions: ">=9.1", observed: {crash: [SIGSEGV]}, reason: it dies of it}
"""


def project(folder: Path, *names: str, more: str = "") -> None:
    """A project that names an interpreter for each release."""
    lines = [f'"{name}" = "{make_environment(folder / name, name.partition("@")[2])}"' for name in names]
    text = "\n".join(["[tool.gradcheck]", more, "[tool.gradcheck.environments]", *lines])
    (folder / "pyproject.toml").write_text(text + "\n")


@pytest.fixture
def cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(environments.FOLDER, str(folder / "cache"))
    return folder / "cache"


@pytest.fixture
def release(cache: Path) -> Path:
    """An environment as `gradcheck backends add paddle@9.0.0` leaves it."""
    made = cache / "paddle@9.0.0"
    make_environment(made, "9.0.0")
    (made / environments.COMPLETE).write_text("")
    return made


# ------------------------------------------------------------------------------------ running on a release
def test_a_release_runs_in_its_own_interpreter_beside_the_engine_here(spec, gradcheck, release):
    spec(OP)
    done = gradcheck("run", "a.grad.yaml", "-b", "numpy,paddle@9.0.0")
    assert (done.code, done.err.count("bug")) == (0, 0), done
    assert [line.split()[:2] for line in done.out.splitlines()[:2]] == [
        ["PASS", "tanh@numpy"],
        ["PASS", "tanh@paddle@9.0.0"],
    ]


def test_what_two_backends_compute_differently_is_a_failure_of_its_own(spec, gradcheck, cache):
    made = cache / "paddle@9.0.0"
    other = "\nimport paddle\nours = paddle.tanh\npaddle.tanh = lambda x: ours(x) * 2\n"
    make_environment(made, "9.0.0", RELEASE + other)
    (made / environments.COMPLETE).write_text("")
    spec(OP)
    done = gradcheck(
        "run", "a.grad.yaml", "-b", "numpy,paddle@9.0.0", "--report", "json:a.json", "--report", "junit:a.xml"
    )
    assert done.code == 1
    words = [line.split()[:2] for line in done.out.splitlines()[:3]]
    assert words == [["PASS", "tanh@numpy"], ["PASS", "tanh@paddle@9.0.0"], ["FAIL", "tanh@numpy,paddle@9.0.0"]]
    assert "both behave as documented, but out: " in done.out
    assert "    gradient of x: " in done.out
    assert "again: gradcheck run a.grad.yaml tanh@numpy tanh@paddle@9.0.0 -v" in done.out
    report = json.loads(Path("a.json").read_text())
    assert (report["not_run"], [one["compared_with"] for one in report["results"]]) == (0, ["", "", "numpy"])
    assert 'tests="3"' in Path("a.xml").read_text()
    again = gradcheck("run", "--lf", "-b", "numpy,paddle@9.0.0")
    assert (again.code, [line.split()[0] for line in again.out.splitlines()[:3]]) == (1, ["PASS", "PASS", "FAIL"])
    resumed = gradcheck("run", "a.grad.yaml", "--resume", "-b", "numpy,paddle@9.0.0")
    assert (resumed.code, "2 of 2 results are known" in resumed.err) == (1, True)


def test_code_sees_the_release_s_interpreter_and_its_packages(spec, gradcheck, release):
    spec(PINNED.partition("    expect")[0] + f"    expect: {{values: {{where: {release}, answer: 41}}}}\n")
    assert gradcheck("run", "a.grad.yaml", "-b", "paddle@9.0.0", "--allow-code").code == 0
    assert gradcheck("run", "a.grad.yaml", "-b", "numpy", "--allow-code").code == 1


def test_a_case_is_named_with_its_release_and_found_by_that(spec, gradcheck, release):
    spec(OP, PINNED)
    done = gradcheck("run", "a.grad.yaml", "tanh@paddle@9.0.0")
    assert (done.code, done.out.splitlines()[0].split()[:2]) == (0, ["PASS", "tanh@paddle@9.0.0"])


def test_what_is_pinned_of_a_release_is_expected_of_that_one_alone(spec, gradcheck, release):
    spec(PINNED)
    done = gradcheck("run", "a.grad.yaml", "-b", "paddle@9.0.0", "--allow-code")
    assert done.code == 0
    assert done.out.startswith("XFAIL pinned@paddle@9.0.0 a.grad.yaml:3:5 it cannot count ")
    assert gradcheck("run", "a.grad.yaml", "-b", "numpy", "--allow-code").code == 1


def test_a_pin_that_does_not_hold_fails_the_run(spec, gradcheck, release):
    expected = []
    scenarios = []
    for id, old, new, shown in [
        ("neither", "{answer: 41}}, reason", "{answer: 40}}, reason", "FAIL neither@paddle@9.0.0 {} behaves neither"),
        ("both", "answer = 41", "answer = 42", "XPASS both@paddle@9.0.0 {} behaves as documented, but"),
        ("another", '"<9.1"', '"<9.0"', "FAIL another@paddle@9.0.0 {} answer: expected 42, got 41"),
    ]:
        assert old in PINNED
        line = 3 + len(scenarios) * PINNED.count("\n")
        expected.append(shown.format(f"a.grad.yaml:{line}:5"))
        scenarios.append(PINNED.replace(old, new).replace("id: pinned", f"id: {id}"))
    spec(*scenarios)
    done = gradcheck("run", "a.grad.yaml", "-b", "paddle@9.0.0", "--allow-code")
    assert done.code == 1
    lines = [line for line in done.out.splitlines() if line.startswith(("FAIL ", "XPASS "))]
    assert [line[: len(shown)] for line, shown in zip(lines, expected, strict=True)] == expected


def test_a_crash_that_is_pinned_is_expected_of_that_signal_alone(spec, gradcheck, folder):
    project(folder, "paddle@9.1.0", more="allow-code = true")
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV); answer = 41"
    spec(PINNED.replace("answer = 41", dies))
    done = gradcheck("run", "a.grad.yaml", "-b", "paddle@9.1.0")
    assert (done.code, done.out.partition(" 0.")[0]) == (0, "XFAIL pinned@paddle@9.1.0 a.grad.yaml:3:5 it dies of it")
    spec(PINNED.replace("answer = 41", dies.replace("SIGSEGV", "SIGILL")))
    done = gradcheck("run", "a.grad.yaml", "-b", "paddle@9.1.0")
    assert done.code == 1
    assert "expected SIGSEGV, but the process was killed by SIGILL" in done.out


def test_a_case_is_replayed_with_its_release(spec, gradcheck, release):
    spec(PINNED.replace("answer: 41", "answer: 40"))
    assert gradcheck("run", "a.grad.yaml", "-b", "paddle@9.0.0", "--allow-code").code == 1
    done = gradcheck("replay", "--allow-code")
    assert done.code == 1
    assert "FAIL pinned@paddle@9.0.0 " in done.out
    (release / environments.COMPLETE).unlink()
    done = gradcheck("replay", "--allow-code")
    assert done.code == 2
    assert "backend paddle@9.0.0: its environment was not finished: `gradcheck backends add" in done.err


# ------------------------------------------------------------------------------------ which there are
def test_a_release_that_is_asked_for_and_not_there_says_how_to_get_it(spec, gradcheck, cache):
    spec(OP)
    done = gradcheck("run", "a.grad.yaml", "-b", "numpy,paddle@9.0.0")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "gradcheck: backend paddle@9.0.0: it has no environment: `gradcheck backends add paddle@9.0.0` makes it "
        f"if it exists; known releases are {', '.join(release_paths())}\n"
    )


def test_a_release_that_the_configuration_alone_names_is_skipped(spec, gradcheck, cache, folder):
    spec(OP)
    (folder / "pyproject.toml").write_text('[tool.gradcheck]\nbackends = ["numpy", "paddle@9.0.0"]\n')
    done = gradcheck("run", "a.grad.yaml")
    assert done.code == 0
    assert "SKIP tanh@paddle@9.0.0 a.grad.yaml:3:5 it has no environment: `gradcheck backends add" in done.out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("padle@9.0.0", "there is no backend 'padle@9.0.0'; did you mean paddle?"),
        ("paddle@nine", "paddle@nine: write a release after the @, such as paddle@3.0.0"),
        ("numpy@2.0", "numpy has no versions to choose from: numpy is the installed one"),
    ],
)
@pytest.mark.parametrize("command", [("run", "a.grad.yaml", "-b"), ("backends", "add"), ("backends", "remove")])
def test_a_name_that_is_none_is_told(spec, gradcheck, cache, command, name, said):
    spec(OP)
    done = gradcheck(*command, name)
    assert (done.code, done.out, done.err) == (2, "", f"gradcheck: {said}\n")


@pytest.mark.parametrize("command", ["add", "remove"])
def test_only_releases_have_environments(gradcheck, cache, command):
    done = gradcheck("backends", command, "paddle")
    assert (done.code, done.err) == (2, "gradcheck: paddle: write a release, such as paddle@3.0.0\n")


def test_they_are_listed_with_versions_places_and_why_not(gradcheck, release):
    make_environment(release.parent / "paddle@9.1.0", "9.1.0")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in gradcheck("backends").out.splitlines()}
    assert rows["numpy"][1] == "here"
    python = ".".join(map(str, sys.version_info[:3]))
    assert rows["paddle@9.0.0"] == ["9.0.0", f"{environments.python_in(release)} (Python {python})"]
    unfinished = "its environment was not finished: `gradcheck backends add paddle@9.1.0` makes it"
    assert rows["paddle@9.1.0"] == ["9.1.0", unfinished]


def test_an_environment_is_removed(gradcheck, release):
    done = gradcheck("backends", "remove", "paddle@9.0.0")
    assert (done.code, done.out) == (0, f"paddle@9.0.0: {release} is removed\n")
    assert not release.exists()
    done = gradcheck("backends", "remove", "paddle@9.0.0")
    assert (done.code, done.err) == (
        2,
        f"gradcheck: paddle@9.0.0 has no environment in {release.parent}; `gradcheck backends` lists all\n",
    )


# ------------------------------------------------------------------------------------ making one
def test_add_tries_a_first_case_and_leaves_what_is_there(gradcheck, cache, monkeypatch):
    def run(command, backend):
        if "venv" in command:
            make_environment(cache / backend, "9.0.0")

    monkeypatch.setattr(environments, "run_printing", run)
    ready = f"{environments.python_in(cache / 'paddle@9.0.0')}\n"
    done = gradcheck("backends", "add", "paddle@9.0.0")
    assert (done.code, done.out) == (0, f"paddle@9.0.0 is ready: {ready}"), done
    assert done.err.count("\n") == 2  # a line for each command
    done = gradcheck("backends", "add", "paddle@9.0.0")
    assert (done.code, done.out, done.err) == (0, f"paddle@9.0.0 is there: {ready}", "")


def test_add_tells_what_does_not_run(gradcheck, cache, monkeypatch):
    def run(command, backend):
        if "venv" in command:
            make_environment(cache / backend, "9.0.0", "raise ImportError('libcuda.so is missing')")

    monkeypatch.setattr(environments, "run_printing", run)
    done = gradcheck("backends", "add", "paddle@9.0.0")
    assert (done.code, done.out) == (2, "")
    assert "gradcheck: paddle@9.0.0 was installed, but does not run, and was removed: " in done.err
    assert "libcuda.so is missing" in done.err
    assert not (cache / "paddle@9.0.0").exists()


def test_naming_an_interpreter_is_no_permission_for_code(spec, gradcheck, cache, folder):
    spec(PINNED)
    project(folder, "paddle@9.0.0")
    done = gradcheck("run", "a.grad.yaml", "-b", "paddle@9.0.0")
    assert done.code == 2
    assert "this code is not from gradcheck, so it was not run" in done.err
    assert gradcheck("run", "a.grad.yaml", "-b", "paddle@9.0.0", "--allow-code").code == 0


# ------------------------------------------------------------------------------------ releases of Paddle
@pytest.mark.long
@pytest.mark.parametrize("version", ["2.6.2", "3.0.0", "3.1.1", "3.2.2", "3.3.1"])
def test_the_bundled_specs_hold_on_a_release(version):
    """In the user's own environments, where `gradcheck backends add` has made it."""
    user = Path(f"~{getpass.getuser()}").expanduser() / ".cache" / "gradcheck" / "environments"
    env = {environments.FOLDER: str(user), **os.environ}
    command = [sys.executable, "-m", "gradcheck", "run", "--bundled", "-b", f"paddle@{version}", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if "`gradcheck backends add" in done.stderr:
        pytest.skip(f"gradcheck backends add paddle@{version} was not run")
    assert done.returncode == 0, done.stdout
    assert "XFAIL" in done.stdout
