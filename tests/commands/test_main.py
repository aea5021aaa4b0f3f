"""The group: help, unknown commands, bugs of ours, missing packages; and what quick commands must not import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gradcheck import __version__
from gradcheck.commands import COMMANDS, main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def broken(monkeypatch):
    """Adds a command that fails with the given exception."""

    def add(error: BaseException) -> None:
        @click.command()
        def fails() -> None:
            raise error

        monkeypatch.setitem(COMMANDS, "fails", ("unused:unused", ""))
        command = type(main).get_command
        monkeypatch.setattr(
            type(main),
            "get_command",
            lambda self, context, name: fails if name == "fails" else command(self, context, name),
        )

    return add


def test_help_names_every_command(gradcheck):
    done = gradcheck("--help")
    assert done.code == 0
    for name, (_, text) in COMMANDS.items():
        assert f"\n  {name} " in done.out
        assert text.split()[0] in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there(gradcheck, name):
    done = gradcheck(name, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: gradcheck {name} ")


def test_version(gradcheck):
    assert gradcheck("--version") == (0, f"gradcheck, version {__version__}\n", "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rnu", "did you mean run?."),
        ("xyzzy", f"the commands are {', '.join(COMMANDS)}."),
    ],
)
def test_an_unknown_command_brings_up_the_nearest_one(gradcheck, name, hint):
    done = gradcheck(name)
    assert done.code == 2
    assert f"Error: No such command {name!r}; {hint}\n" in done.err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("check", "m:L", "-i", "a", "3x4"), "gradcheck: -i a 3x4: write -i a=3x4\n"),
        (("check", "m:L", "--kwarg", "by", "mean"), "gradcheck: --kwarg by mean: write --kwarg by=mean\n"),
        (("check", "m:L", "a=3x4"), "(a=3x4): write -i before each input, as in -i a=3x4\n"),
        (("backends", "install", "paddle@3.0.0"), "are add and remove; `gradcheck backends` alone lists all.\n"),
    ],
)
def test_a_mistake_that_click_reports_has_advice(gradcheck, words, advice):
    done = gradcheck(*words)
    assert done.code == 2
    assert done.err.endswith(advice)


def test_a_bug_of_ours_is_a_report_to_file_and_no_traceback(gradcheck, folder, broken):
    broken(LookupError("oh"))
    done = gradcheck("fails")
    assert (done.code, done.out) == (3, "")
    (path,) = (folder / ".gradcheck").glob("bug-*")
    assert done.err == f"gradcheck: this is a bug in gradcheck. Please report it with the file .gradcheck/{path.name}\n"
    assert "LookupError: oh" in path.read_text()
    assert f"gradcheck {__version__}, Python " in path.read_text()


def test_a_bug_where_nothing_can_be_written_leaves_its_report_elsewhere(
    gradcheck, folder, broken, tmp_path_factory, monkeypatch
):
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (folder / ".gradcheck").write_text("a file")
    broken(LookupError("oh"))
    paths = []
    for _ in range(2):
        done = gradcheck("fails")
        assert done.code == 3
        paths.append(Path(done.err.split()[-1]))
        assert "LookupError: oh" in paths[-1].read_text()
        assert paths[-1].stat().st_mode & 0o077 == 0
    assert {path.parent for path in paths} == {temporary}
    assert len(set(paths)) == 2


def test_no_two_reports_have_the_same_name(gradcheck, folder, broken):
    broken(LookupError("oh"))
    for _ in range(2):
        gradcheck("fails")
    assert len(list((folder / ".gradcheck").glob("bug-*.txt"))) == 2


def test_a_bug_of_which_no_report_can_be_kept_is_shown(gradcheck, folder, broken, monkeypatch):
    (folder / ".gradcheck").write_text("a file")
    monkeypatch.setattr("tempfile.tempdir", str(folder / "nowhere"))
    broken(LookupError("oh"))
    done = gradcheck("fails")
    assert done.code == 3
    assert done.err.startswith("gradcheck: this is a bug in gradcheck. Please report it with these lines:\n")
    assert "LookupError: oh" in done.err


def test_a_missing_package_is_named(gradcheck, folder, broken):
    broken(ModuleNotFoundError("No module named 'numpy'", name="numpy"))
    assert gradcheck("fails") == (2, "", "gradcheck: the package numpy is missing: pip install numpy\n")
    assert not (folder / ".gradcheck").exists()


def test_a_missing_module_of_ours_is_a_bug(gradcheck, broken):
    broken(ModuleNotFoundError("No module named 'gradcheck.x'", name="gradcheck.x"))
    assert gradcheck("fails").code == 3


def test_an_interrupt_is_130_in_every_command(gradcheck, broken):
    broken(KeyboardInterrupt())
    assert gradcheck("fails").code == 130


def test_the_checkout_runs_without_being_installed(folder):
    command = [sys.executable, str(ROOT / "cli.py"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"gradcheck, version {__version__}\n", "")


def test_the_checkout_names_a_missing_package(folder):
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(ROOT / "cli.py"), "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "cli.py: the package click is missing. Install what gradcheck needs: python -m pip install -e "
    )


BACKENDS = ["numpy", "pylayer", "paddle", "cupy", "ml_dtypes"]
SCREEN = ["rich", "jinja2"]
MODEL = ["pydantic", "yaml"]


@pytest.mark.parametrize(
    ("commands", "heavy"),
    [
        (["--help", "--version", "schema", "schema --report"], BACKENDS + SCREEN + MODEL),
        (
            [
                "explain GC104",
                "validate",
                "validate a.grad.yaml",
                "list a.grad.yaml",
                "list",
                "list --bundled",
                "show a.grad.yaml one",
                "run --help",
                "check --help",
            ],
            BACKENDS + SCREEN,
        ),
    ],
    ids=["first words", "what only looks"],
)
def test_quick_commands_import_neither_numpy_nor_a_backend_nor_user_code(spec, folder, commands, heavy):
    """One after the other in a process: what any of them imports is said behind it."""
    (folder / "trap.py").write_text("raise SystemExit('imported')")
    spec(
        "  - id: one\n    title: t\n    source: {document: d}\n"
        '    layer: {ref: "trap:L"}\n    inputs: {x: {shape: [1]}}\n'
    )
    done = loading([*heavy, "trap"], *(command.split() for command in commands))
    assert done.stderr.splitlines() == [f"{command}: []" for command in commands]
    assert done.stdout


def test_a_run_on_one_backend_leaves_numpy_to_its_workers(spec):
    spec("  - {id: one, script: x = 1}\n")
    run = loading(["numpy", "ml_dtypes"], ["run", "a.grad.yaml", "--allow-code"])
    assert run.stderr == "run a.grad.yaml --allow-code: []\n"


def test_no_plugin_of_pydantic_s_is_loaded_at_start(spec, folder):
    spec("  - {id: one, script: x = 1}\n")
    (folder / "trap.py").write_text("raise SystemExit('imported')")
    (folder / "trap-1.dist-info").mkdir()
    (folder / "trap-1.dist-info" / "METADATA").write_text("Name: trap\nVersion: 1\n")
    (folder / "trap-1.dist-info" / "entry_points.txt").write_text("[pydantic]\ntrap = trap:plugin\n")
    assert loading(["trap"], ["validate", "a.grad.yaml"]).stderr == "validate a.grad.yaml: []\n"


def loading(modules, *commands):
    """Commands in a process, which says after each which of some modules have been imported."""
    program = (
        f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'engine')]!r}; sys.path.append('.')\n"
        "from gradcheck.__main__ import main\n"
        f"for command in {commands!r}:\n"
        "    sys.argv[1:] = command\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code, (command, end.code)\n"
        f"    print(' '.join(command) + ':', sorted(set({modules!r}) & set(sys.modules)), file=sys.stderr)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        check=True,
    )
