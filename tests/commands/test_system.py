"""What the system refuses is said in a line, with exit code 2, and is no bug; Ctrl-C is 130 at any time."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradcheck.commands.errors import REFUSALS, refusal
from gradcheck.support.resources import bundled_specs

ROOT = Path(__file__).parents[2]
APPLY = bundled_specs() / "documents" / "apply.grad.yaml"
CLI = f"{sys.executable} {ROOT / 'cli.py'}"
OP = """\
  - id: op
    title: No code but ours
    source: {document: d}
    layer: {op: tanh}
    inputs: {x: {shape: [2]}}
"""
NO_STDOUT = "gradcheck: stdout is closed, so nothing can be shown: write >/dev/null if that is intended\n"
NO_ROOM = "gradcheck: the output could not be written: No space left on device\n"
full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")


def shell(command: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    return done.returncode, done.stdout, done.stderr


def no_report(folder: Path) -> bool:
    return not list((folder / ".gradcheck").glob("bug-*")) if (folder / ".gradcheck").exists() else True


# ---------------------------------------------------------------------------------------- streams
@pytest.mark.parametrize("command", ["list", "--version", "run a.grad.yaml", "nonsense"])
def test_a_closed_stdout_is_said_on_stderr(spec, folder, command):
    spec(OP)
    assert shell(f"{CLI} {command} >&-") == (2, "", NO_STDOUT)
    assert no_report(folder)


@full
@pytest.mark.parametrize("command", ["list", "run a.grad.yaml", "run a.grad.yaml --format rich"])
def test_a_full_stdout_is_said_on_stderr(spec, folder, command):
    spec(OP)
    assert shell(f"{CLI} {command} >/dev/full") == (2, "", NO_ROOM)
    assert no_report(folder)


@pytest.mark.parametrize(("format", "stream"), [("plain", "2>&-"), pytest.param("rich", "2>/dev/full", marks=full)])
def test_a_run_needs_no_stderr_unless_it_has_something_to_say_there(spec, folder, format, stream):
    spec(OP)
    code, out, err = shell(f"{CLI} run a.grad.yaml --format {format} {stream}")
    assert (code, err) == (0, "")
    assert re.search(r"^1 PASS in ", out, re.MULTILINE)
    assert no_report(folder)


@pytest.mark.parametrize("stream", ["2>&-", pytest.param("2>/dev/full", marks=full)])
def test_what_cannot_be_said_for_want_of_a_stderr_is_told_by_the_exit_code(folder, stream):
    assert shell(f"{CLI} run none.grad.yaml {stream}") == (2, "", "")
    assert shell(f"{CLI} --nonsense {stream}") == (2, "", "")
    assert no_report(folder)


def test_what_a_case_prints_never_reaches_a_file_in_the_place_of_a_closed_stream(spec, folder):
    spec(OP.partition("    layer")[0] + "    script: __import__('os').write(2, b'!')\n")
    code, out, _ = shell(f"{CLI} run a.grad.yaml --allow-code --report json:r.json <&- 2>&-")
    assert (code, out.split()[0]) == (0, "PASS")
    for file in ("r.json", ".gradcheck/last.jsonl", ".gradcheck/.gitignore"):
        assert (folder / file).read_text()[0] in "[{*"


@pytest.mark.parametrize("command", ["list", "run a.grad.yaml", "run a.grad.yaml --format rich"])
def test_a_reader_that_has_gone_ends_the_command_without_a_word(spec, folder, command):
    spec(OP)
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(f"{CLI} {command}".split(), stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (2, "")
    assert no_report(folder)


# ------------------------------------------------------------------------------------- the folder
@pytest.mark.parametrize("command", ["list", "run", "run -b numpy op", "replay"])
def test_a_current_folder_that_is_gone_is_said(folder, command):
    code, out, err = shell(f"mkdir gone; cd gone; rmdir ../gone; {CLI} {command}")
    assert (code, out) == (2, "")
    assert err == "gradcheck: the current folder does not exist any more: go to another one\n"


def test_what_needs_no_current_folder_works_without_one(folder):
    for command in ("--version", "explain GC104", "schema"):
        code, out, err = shell(f"mkdir gone; cd gone; rmdir ../gone; {CLI} {command}")
        assert (code, err) == (0, "")
        assert out


# ---------------------------------------------------------------------------------- other refusals
@pytest.mark.parametrize("command", ["run", "list", "show", "validate"])
def test_a_name_that_the_system_refuses_is_no_bug(folder, gradcheck, command):
    done = gradcheck(command, "a" * 5000)
    assert done.code == 2
    assert "a" * 100 in done.out + done.err
    assert no_report(folder)


def test_too_few_files_is_no_bug(spec, folder):
    spec(OP)
    code, _, err = shell(f"ulimit -n 6; {CLI} run a.grad.yaml")
    assert code == 2
    assert err.endswith(": Too many open files\n") or err == "gradcheck: Too many open files\n"
    assert no_report(folder)


@pytest.mark.parametrize("number", sorted(REFUSALS))
def test_a_refusal_names_the_file_and_the_reason(number):
    said = refusal(OSError(number, os.strerror(number), "a\nb"))
    assert said.message == f"'a\\nb': {os.strerror(number)}"
    assert os.strerror(number) in refusal(OSError(number, os.strerror(number))).message


@pytest.mark.parametrize("number", [errno.EBADF, errno.EINVAL, errno.EISDIR, errno.EEXIST])
def test_what_may_be_our_own_mistake_stays_a_bug(number):
    assert refusal(OSError(number, os.strerror(number), "file")) is None
    assert refusal(FileNotFoundError(errno.ENOENT, "none", "specs/of-ours.yaml")) is None


# ------------------------------------------------------------------------------------------ Ctrl-C
INTERRUPTED = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
STARTS = {"python cli.py": [str(ROOT / "cli.py")], "python -m": ["-m", "gradcheck"]}


@pytest.mark.parametrize(
    ("start", "module"),
    [
        ("python cli.py", "click"),
        ("python cli.py", "yaml"),
        ("python -m", "click"),
        ("python -m", "shutil"),
        ("python -m", "pydantic"),
    ],
)
def test_ctrl_c_in_the_middle_of_an_import_is_130_without_a_word(folder, tmp_path_factory, start, module):
    planted = tmp_path_factory.mktemp("modules")
    (planted / f"{module}.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
    )
    path = os.pathsep.join(map(str, (planted, ROOT, ROOT / "engine")))
    command = [sys.executable, *STARTS[start], "show", "apply-nested-apply"]
    # cli.py puts its own folders first, so the modules come by the path in both cases
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


# --------------------------------------------------------------------- imports from the current folder
@pytest.mark.parametrize(
    ("start", "command"),
    [
        ("python cli.py", "list --bundled"),
        ("python -m", f"run {APPLY} -k apply-tanh"),
    ],
    ids=["cli.py list", "-m run"],
)
def test_no_module_of_the_current_folder_is_imported(folder, start, command):
    for module in ("click", "difflib", "yaml", "signal", "numpy", "ml_dtypes"):
        (folder / f"{module}.py").write_text("open('ran', 'w').close()\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "engine")))}
    done = subprocess.run(
        [sys.executable, *STARTS[start], *command.split()], capture_output=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (folder / "ran").exists()
