"""What a stranger's folder can do to a user who has given no leave: nothing but be refused, soon, with a message."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from gradcheck.commands import main
from gradcheck.config import load_project
from gradcheck.run import pool
from gradcheck.support import gc_pause as garbage
from gradcheck.support import pyproject
from tests.fuzz import strangers

SPEC = """\
schema: gradcheck/v1
scenarios:
  - {id: one, title: t, source: {document: d}, layer: {op: tanh}, inputs: {x: {shape: [2]}}}
"""
SECRET = "aws_secret = hunter2\nkey: [unclosed\n"
SECONDS = 2.0
"""Of processor time that 100 kB of a stranger's may take."""


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stranger's folder with a good spec, which is the current one, and a user who trusts nothing."""
    place = tmp_path / "project"
    (place / "specs").mkdir(parents=True)
    (place / "specs" / "own.grad.yaml").write_text(SPEC)
    (place / "link.grad.yaml").symlink_to("specs/own.grad.yaml")
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    return place


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user's own outside the stranger's folder."""
    (tmp_path / "secret").write_text(SECRET)
    return tmp_path / "secret"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="gradcheck")


def refused(*arguments: str) -> str:
    """What a command says that refuses, and soon; nothing else is told, and nothing of a user's secret."""
    began = time.process_time()
    done = call(*arguments)
    assert time.process_time() - began < SECONDS
    assert done.exit_code == 2, done.output
    assert done.stdout == "" or arguments[0] == "validate"
    assert "hunter2" not in done.output
    assert "aws_secret" not in done.output
    return done.output


# ------------------------------------------------------------------------------------ pyproject.toml
MISTAKES: dict[str, tuple[str, str]] = {
    "an integer of 5,000 digits": ("x = " + "9" * 5000, "a number or bare key of more than 1,000 characters"),
    "a hexadecimal of 5,000 digits": ("jobs = 0x" + "f" * 5000, "a number or bare key of more than 1,000 characters"),
    "deep lists": ("x = " + "[" * 5000 + "]" * 5000, "more than 40 levels"),
    "deep tables": ("x = " + "{a = " * 5000 + "1" + "}" * 5000, "more than 40 levels"),
    "40 kB of dotted keys": ("a." * 20_000 + "a = 1", "more than 40 levels"),
    "40 kB of quoted dotted keys": ("'a' . " * 7_000 + "a = 1", "more than 40 levels"),
    "a header of 5,000 names": ("[" + "a." * 5000 + "a]", "more than 40 levels"),
    "levels in each other": ("jobs = " + "{" + "a." * 30 + "a = {" + "a." * 30 + "a = 1}}", "more than 40 levels"),
    "1.1 MB": ("# " + "x" * 1_100_000, "it is larger than 1 MB"),
    "a date that there is not": ("x = 2020-02-31", "Invalid date"),
    "NUL in a path": (r'paths = ["a\u0000b"]', "none of them NUL"),
    "NUL in an interpreter": (r'environments = {"paddle@3.0.0" = "a\u0000b"}', "none of them NUL"),
    "a path of 5,000 characters": (f'paths = ["{"a" * 5000}"]', "a path has 1 to 1,000 characters"),
    "10,000 backends that there are not": ("backends = [" + "'a'," * 10_000 + "]", "at most 100 entries"),
    "10,000 environments of none": (
        "environments = {" + ", ".join(f"x{k} = 1" for k in range(10_000)) + "}",
        "at most 100 entries",
    ),
    "101 paths": ("paths = [" + "'a'," * 101 + "]", "at most 100 entries"),
    "a machine's worth of seconds": ("timeout = 1e308", "timeout must be a number of seconds above 0, at most 86,400"),
    "10**20 jobs": (f"jobs = {10**20}", 'jobs must be "auto" or a number from 1 to 1,000'),
    "20,000 keys": ("\n".join(f"x{k} = 1" for k in range(20_000)), "has 19990 more mistakes"),
    "/proc": ('paths = ["/proc"]', "/proc leads out of the project, which is not trusted"),
    "the environment": ('paths = ["/proc/self/environ"]', "/proc/self/environ leads out of the project"),
    "a folder above": ('paths = ["specs", ".."]', "leads out of the project"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MISTAKES)
@pytest.mark.parametrize("command", ["run", "validate"])
def test_settings_that_no_project_needs_are_refused(folder: Path, kind: str, command: str) -> None:
    text, message = MISTAKES[kind]
    (folder / "pyproject.toml").write_text(f"[tool.gradcheck]\n{text}\n")
    said = refused(command)
    assert f"{folder}/pyproject.toml: " in said
    assert message in said
    assert len(said) < 5_000


def test_a_users_folder_that_there_is_not_is_no_bug(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.gradcheck]\npaths = ["~nosuchuser"]\nenvironments = {"paddle@3.0.0" = "~nosuchuser/python"}\n'
    )
    assert "~nosuchuser: error: there is no such file or folder" in refused("list")
    assert "which counts once `gradcheck trust` says so" in call("backends").output


@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a device"])
def test_a_pyproject_that_is_no_plain_file_says_nothing(folder: Path, kind: str) -> None:
    file = folder / "pyproject.toml"
    if kind == "a pipe":
        os.mkfifo(file)
    elif kind == "a folder":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero")
    assert call("list").exit_code == 0


def test_jobs_of_a_project_are_no_more_than_there_are_cores(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(jobs: int, ahead: object) -> None:
        asked.append(jobs)
        raise SystemExit(0)

    asked: list[int] = []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    monkeypatch.setattr(pool, "Pool", counted)
    many = "\n".join(SPEC.splitlines()[2].replace("one", f"s{k}") for k in range(2 * (cores or 1)))
    (folder / "specs" / "own.grad.yaml").write_text("schema: gradcheck/v1\nscenarios:\n" + many)
    (folder / "pyproject.toml").write_text("[tool.gradcheck]\njobs = 1000\n")
    assert call("run", "-k", "s0 or s1 or s2").exit_code == 0
    assert call("run", "-j", "1000", "-k", "s0 or s1 or s2").exit_code == 0
    assert asked[0] <= (cores or 1)
    assert asked[1] == min(2 * (cores or 1), 3)


def test_another_users_file_above_does_not_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "pyproject.toml").write_text('[tool.gradcheck]\npaths = ["secret.grad.yaml"]\n')
    assert load_project(folder).config.paths == (str(folder.parent / "secret.grad.yaml"),)
    owners, nowhere = pyproject.owners, folder / "nowhere"
    strange = os.stat(folder).st_uid + 1
    monkeypatch.setattr(
        pyproject, "owners", lambda file: {strange} if file == folder.parent / "pyproject.toml" else owners(file)
    )
    assert load_project(folder).config.paths == ()
    assert pyproject.root_of(folder) == folder
    assert "nowhere: not trusted" in refused("trust", "--revoke", str(nowhere))  # a folder that is gone has no owner
    (folder / "pyproject.toml").write_text("[tool.gradcheck]\njobs = 2\n")
    assert load_project(folder / "specs").config.jobs == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_link_of_another_users_above_does_not_count(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[tool.gradcheck]\njobs = 3\n")
    (tmp_path / "pyproject.toml").symlink_to("mine.toml")
    assert load_project(folder).config.jobs == 3
    os.chown(tmp_path / "pyproject.toml", 12345, 12345, follow_symlinks=False)
    assert load_project(folder).config.jobs == "auto"


# -------------------------------------------------------------------------------------- paths and links
@pytest.mark.parametrize("command", ["run", "list", "validate", "fmt", "show one"])
@pytest.mark.parametrize("how", ["found", "named", "in a folder", "of the settings"])
def test_nothing_of_a_file_outside_is_shown_or_written_through_a_link(
    folder: Path, secret: Path, command: str, how: str
) -> None:
    if how == "in a folder":
        secret = secret.rename(secret.with_name("secret.grad.yaml"))
        (folder / "sub").symlink_to(folder.parent)
    else:
        (folder / "specs" / "bad.grad.yaml").symlink_to(secret)
    if how == "of the settings":
        (folder / "pyproject.toml").write_text('[tool.gradcheck]\npaths = ["specs/bad.grad.yaml"]\n')
    else:
        (folder / "pyproject.toml").touch()
    named = {"named": ["specs/bad.grad.yaml"], "in a folder": ["sub"]}.get(how, [])
    said = refused(*command.split(), *named)
    assert "leads out of the project" in said
    assert secret.read_text() == SECRET


def test_a_link_within_the_project_is_followed(folder: Path) -> None:
    (folder / "specs" / "own.grad.yaml").rename(folder / "specs" / "real.yaml")
    (folder / "specs" / "own.grad.yaml").symlink_to("real.yaml")
    assert call("validate", "specs").exit_code == 0


def test_paths_outside_hold_once_the_project_is_trusted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (folder / "specs" / "own.grad.yaml").rename(tmp_path / "shared" / "own.grad.yaml")
    (folder / "more").symlink_to(tmp_path / "shared")
    (folder / "pyproject.toml").write_text('[tool.gradcheck]\npaths = ["../shared", "more"]\n')
    assert "`gradcheck trust` allows it" in refused("list")
    assert call("run", "--allow-code").exit_code == 0
    assert call("validate", "../shared").exit_code == 0
    assert f"pyproject.toml: {tmp_path}/project/../shared is read\n" in call("trust").stdout
    assert call("list").stdout.startswith("one  t  ../shared/own.grad.yaml:3")
    (folder / "pyproject.toml").write_text('[tool.gradcheck]\npaths = ["../shared", "more", "../secret"]\n')
    assert "not trusted since its [tool.gradcheck] changed" in refused("list")


@pytest.mark.parametrize(
    "link",
    [
        "pyproject.toml",
        "specs",
        "specs/example.grad.yaml",
        "specs/gradcheck.schema.json",
        ".github",
        ".github/workflows",
    ],
)
def test_init_writes_through_no_link(folder: Path, tmp_path: Path, link: str) -> None:
    target = tmp_path / "target"
    if link.endswith((".toml", ".yaml", ".json")):
        target.write_text("mine\n")
    else:
        target.mkdir()
    if link == "specs":
        (folder / "specs").rename(tmp_path / "old")
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(target)
    before = sorted(folder.rglob("*"))
    done = call("init")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"gradcheck: {link} is a link, which is not followed: remove it; nothing was written\n"
    assert sorted(folder.rglob("*")) == before
    assert target.is_dir() or target.read_text() == "mine\n"
    assert target.is_file() or not list(target.iterdir())


def test_init_writes_no_second_name_of_a_file_elsewhere(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("x = 1\n")
    os.link(tmp_path / "mine.toml", folder / "pyproject.toml")
    assert call("init").exit_code == 0
    assert (tmp_path / "mine.toml").read_text() == "x = 1\n"
    assert load_project(folder).config.allow_code


@pytest.mark.parametrize("text", ["tool = 3\n", "tool = {x = 1}\n", "x = " + "9" * 5000, "[[tool]]\n", "\0"])
def test_init_leaves_a_pyproject_alone_that_cannot_have_settings(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)
    done = call("init")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "it stays as it is" in done.stderr
    assert (folder / "pyproject.toml").read_text() == text


# -------------------------------------------------------------------------------------- the trust list
def trust_file() -> Path:
    file = Path(os.environ["XDG_CONFIG_HOME"], "gradcheck", "trusted.json")
    file.parent.mkdir(exist_ok=True)
    return file


def test_a_trust_list_of_another_user_is_not_believed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradcheck]\nallow-code = true\n")
    assert call("trust").exit_code == 0
    assert call("run").exit_code == 0
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    for command in (["run"], ["trust", "--list"], ["trust"], ["trust", "--revoke"]):
        done = call(*command)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"{trust_file()}: it belongs to another user; mend it or remove it" in done.stderr


@pytest.mark.parametrize("key", ["relative", "/a\0b", ""])
def test_a_trust_list_with_what_is_no_folder_is_refused(folder: Path, key: str) -> None:
    trust_file().write_text(json.dumps({key: "0" * 64}))
    assert "must be a table of folders and digests" in refused("trust", "--list")


def test_a_trust_list_that_is_a_pipe_or_too_large_is_refused(folder: Path) -> None:
    trust_file().write_bytes(b" " * 1_100_000)
    assert "it is larger than 1 MB" in refused("trust", "--list")
    trust_file().unlink()
    os.mkfifo(trust_file())
    assert "this is no plain file" in refused("trust", "--list")


# -------------------------------------------------------------------------------------- Python
PYTHON = {
    "chains of names": "import paddle\n" + ("x" + ".a" * 900 + "\n") * 55,
    "9,000 names that are missing": "import paddle\n" + "".join(f"paddle.n{k}\n" for k in range(9_000)),
    "a name that grows": "import paddle\nF = paddle\n" + "F = F.a\n" * 12_000,
    "a long name, often": "import paddle\nF = paddle." + "a" * 50_000 + "\n" + "F.x\n" * 12_000,
}


@pytest.mark.parametrize("kind", PYTHON)
def test_python_of_100_kb_is_read_soon(folder: Path, kind: str) -> None:
    (folder / "layer.py").write_text(PYTHON[kind])
    began = time.process_time()
    done = call("surface", "layer.py")
    assert done.exit_code in (0, 1), done.output
    assert time.process_time() - began < SECONDS * len(PYTHON[kind]) / 100_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-" * 100_000 + "1", "too deeply nested for Python's parser"),
        ("x" + ".a" * 50_000, "too deeply nested for Python's parser"),
        ("(" * 500, "too many nested parentheses: this is no Python"),
        ("\0", "null bytes"),
        ("x = 1  # " + "x" * 2_000_000, "it is larger than 2 MB"),
    ],
)
def test_python_that_the_parser_refuses_is_said_to_be_so(folder: Path, text: str, said: str) -> None:
    (folder / "layer.py").write_text(text)
    assert said in refused("surface", "layer.py")


def test_a_pipe_called_py_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "layer.py")
    assert "layer.py: cannot be read: this is no plain file" in refused("surface", ".")


# -------------------------------------------------------------------------------------- at random
Draw = Callable[[Random, Path], list[list[str]]]


def settings(random: Random, folder: Path) -> list[list[str]]:
    (folder / "pyproject.toml").write_bytes(strangers.pyproject(random))
    return [["list"], random.choice([["validate"], ["fmt", "--check"], ["trust"], ["show", "one"], ["list", "one"]])]


def trust(random: Random, folder: Path) -> list[list[str]]:
    (folder / "pyproject.toml").write_text("[tool.gradcheck]\npaths = ['..']\n")
    trust_file().write_bytes(strangers.trust_list(random, [str(folder), str(folder.parent)]))
    return [["trust", "--list"], random.choice([["list"], ["trust", "--revoke"], ["trust"]])]


def python(random: Random, folder: Path) -> list[list[str]]:
    (folder / "layer.py").write_bytes(strangers.python(random))
    return [["surface", "layer.py"]]


DRAWS: dict[str, Draw] = {"pyproject.toml": settings, "trust lists": trust, "Python": python}


@pytest.fixture
def no_freezing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of commands in one process leave garbage behind, which one command does not look for."""
    monkeypatch.setattr(garbage, "kept", nullcontext)


def hold(draw: Draw, folder: Path, seeds: range) -> str:
    """Call commands on what the seeds draw; each must end in an exit status that is not 3, soon. How it went."""
    codes: dict[int, int] = {}
    slowest = (0.0, 0)
    for seed in seeds:
        for arguments in draw(Random(seed), folder):
            began = time.process_time()
            done = call(*arguments)
            seconds = time.process_time() - began
            assert done.exit_code in (0, 1, 2, 5), f"seed {seed}: {arguments}: {done.exit_code}\n{done.output}"
            assert done.exception is None or isinstance(done.exception, SystemExit), f"seed {seed}: {done.exception!r}"
            assert seconds < SECONDS, f"seed {seed}: {arguments} took {seconds:.1f} s"
            assert len(done.output) < 10_000_000, f"seed {seed}: {arguments} said too much"
            codes[done.exit_code] = codes.get(done.exit_code, 0) + 1
            slowest = max(slowest, (seconds, seed))
    return f"{len(seeds)} draws, exit statuses {codes}, slowest {slowest[0]:.2f} s (seed {slowest[1]})"


@pytest.mark.usefixtures("no_freezing")
@pytest.mark.parametrize("kind", DRAWS)
def test_whatever_is_drawn_ends_soon_and_is_no_bug_of_ours(folder: Path, kind: str) -> None:
    hold(DRAWS[kind], folder, range(200))


@pytest.mark.long
@pytest.mark.usefixtures("no_freezing")
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", DRAWS)
def test_twenty_thousand_draws_end_soon_and_are_no_bug_of_ours(folder: Path, kind: str, part: int) -> None:
    first = 1_000 + 5_000 * part
    print(f"{kind}: {hold(DRAWS[kind], folder, range(first, first + 5_000))}")


def test_what_is_drawn_is_neither_always_good_nor_always_bad(folder: Path) -> None:
    for draw in DRAWS.values():
        codes = [call(*draw(Random(seed), folder)[0]).exit_code for seed in range(40)]
        assert 2 < codes.count(2) < 38
