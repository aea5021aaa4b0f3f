"""``gradcheck trust``: a project's word counts once the user has given it leave, and while it stays the same."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

CODE = """\
  - id: one
    title: A right answer
    source: {document: d}
    script: |
      answer = 6 * 7
    expect: {values: {answer: 42}}
"""
PROJECT = "[project]\nname = 'p'\n\n[tool.gradcheck]\njobs = 1\nallow-code = true\n"


@pytest.fixture
def project(spec, folder):
    """A project that asks for leave, with a spec that holds code."""
    spec(CODE)
    (folder / "pyproject.toml").write_text(PROJECT)
    return folder


def list_file() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "gradcheck" / "trusted.json"


def test_a_project_that_asks_is_refused_with_the_line_and_what_to_do(project, gradcheck):
    done = gradcheck("run", "a.grad.yaml")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-2:] == [
        "pyproject.toml:6: allow-code = true does not hold: the project is not trusted",
        "gradcheck: this code is not from gradcheck, so it was not run. Read it; then allow it with --allow-code, "
        "or for this project with `gradcheck trust`",
    ]


def test_trust_holds_until_the_section_changes(project, gradcheck):
    done = gradcheck("trust")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"pyproject.toml:6: allow-code = true\n{project}: trusted until [tool.gradcheck] changes\n"
    assert gradcheck("run", "a.grad.yaml").code == 0
    (project / "pyproject.toml").write_text(PROJECT.replace("'p'", "'q'").replace("jobs = 1", "jobs  =  0x1  # one"))
    assert gradcheck("run", "a.grad.yaml").code == 0  # the same section, however it is written
    (project / "pyproject.toml").write_text(PROJECT.replace("jobs = 1", "jobs = 2"))
    done = gradcheck("run", "a.grad.yaml")
    assert done.code == 2
    assert "does not hold: the project is not trusted since its [tool.gradcheck] changed\n" in done.err
    assert gradcheck("trust").code == 0
    assert gradcheck("run", "a.grad.yaml").code == 0


def test_trust_is_of_one_folder_and_not_of_its_copies(project, gradcheck, folder, monkeypatch):
    gradcheck("trust")
    copy = folder / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "a.grad.yaml"):
        (copy / name).write_bytes((folder / name).read_bytes())
    monkeypatch.chdir(copy)
    assert gradcheck("run", "a.grad.yaml").code == 2


def test_trust_is_of_the_folder_that_a_link_leads_to(project, gradcheck, folder, tmp_path_factory, monkeypatch):
    gradcheck("trust")
    link = tmp_path_factory.mktemp("links") / "link"
    link.symlink_to(folder)
    monkeypatch.chdir(link)
    assert gradcheck("run", "a.grad.yaml").code == 0
    link.unlink()
    link.mkdir()
    (link / "pyproject.toml").write_text(PROJECT)
    (link / "a.grad.yaml").write_bytes((folder / "a.grad.yaml").read_bytes())
    monkeypatch.chdir(link)
    assert gradcheck("run", "a.grad.yaml").code == 2


def test_a_trusted_project_speaks_for_its_own_files_and_those_it_names(project, gradcheck, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (project / "a.grad.yaml").rename(elsewhere / "b.grad.yaml")
    gradcheck("trust")
    done = gradcheck("run", str(elsewhere))
    assert done.code == 2
    assert "the trusted project speaks only for files in its folder, and for those that it names\n" in done.err
    (project / "link.grad.yaml").symlink_to(elsewhere / "b.grad.yaml")
    assert gradcheck("run", "link.grad.yaml").code == 2
    (project / "pyproject.toml").write_text(PROJECT + f"paths = ['{elsewhere}']\n")
    gradcheck("trust")
    assert gradcheck("run").code == 0


def test_replay_asks_as_run_does(project, gradcheck):
    (project / "a.grad.yaml").write_text((project / "a.grad.yaml").read_text().replace("42", "43"))
    assert gradcheck("run", "a.grad.yaml", "--allow-code").code == 1
    assert gradcheck("replay").code == 2
    gradcheck("trust")
    done = gradcheck("replay")
    assert done.code == 1
    assert done.err == "gradcheck: pyproject.toml sets jobs · its allow-code holds: the project is trusted\n"


# -------------------------------------------------------------------------------- what is believed
@pytest.mark.parametrize("layout", ["plain", "rich"])
def test_a_run_says_what_it_believes(project, gradcheck, passing, layout):
    def said(*arguments: str) -> str:
        done = gradcheck("run", "a.grad.yaml", "--format", layout, *arguments)
        return " ".join((done.err if layout == "plain" else done.out).split())

    asked = "pyproject.toml sets jobs · its allow-code does not hold: the project is not trusted"
    assert asked in said("--allow-code")
    assert asked not in said("--allow-code", "-q")
    gradcheck("trust")
    assert "pyproject.toml sets jobs · its allow-code holds: the project is trusted" in said()
    (project / "pyproject.toml").write_text("[tool.gradcheck]\ntimeout = 5\nallow-code = false\n")
    assert "pyproject.toml sets timeout, allow-code" in said("--allow-code")
    (project / "pyproject.toml").unlink()
    assert "pyproject" not in said("--allow-code")


def test_the_environment_allows_code_for_one_run_and_the_run_says_so(spec, gradcheck, monkeypatch):
    spec(CODE)
    monkeypatch.setenv("GRADCHECK_ALLOW_CODE", "1")
    done = gradcheck("run", "a.grad.yaml")
    assert (done.code, done.err) == (0, "gradcheck: code allowed by GRADCHECK_ALLOW_CODE\n")
    assert gradcheck("run", "a.grad.yaml", "--allow-code").err == ""
    for value in ("0", ""):
        monkeypatch.setenv("GRADCHECK_ALLOW_CODE", value)
        assert gradcheck("run", "a.grad.yaml").code == 2
    monkeypatch.setenv("GRADCHECK_ALLOW_CODE", "perhaps")
    assert "GRADCHECK_ALLOW_CODE" in gradcheck("run", "a.grad.yaml").err


# ------------------------------------------------------------------------------- list and revoke
def test_what_is_trusted_is_listed_with_how_it_stands(project, gradcheck):
    assert gradcheck("trust", "--list").out == "no project is trusted\n"
    gradcheck("trust")
    assert gradcheck("trust", "--list").out == f"{project}: trusted\n"
    (project / "pyproject.toml").write_text(PROJECT.replace("1", "2"))
    assert gradcheck("trust", "--list").out == f"{project}: not trusted since its [tool.gradcheck] changed\n"
    (project / "pyproject.toml").unlink()
    assert gradcheck("trust", "--list").out == f"{project}: it has no [tool.gradcheck] any more\n"


@pytest.mark.parametrize("gone", [False, True])
def test_trust_can_be_revoked_also_where_the_project_is_gone(project, gradcheck, gone):
    gradcheck("trust")
    if gone:
        (project / "pyproject.toml").unlink()
    done = gradcheck("trust", "--revoke", str(project))
    assert (done.code, done.out) == (0, f"{project}: not trusted any more\n")
    assert gradcheck("trust", "--list").out == "no project is trusted\n"
    done = gradcheck("trust", "--revoke")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"gradcheck: {project}: not trusted; `gradcheck trust --list` shows what is\n"


def test_trust_and_revoke_work_from_a_folder_below(project, gradcheck, monkeypatch):
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert gradcheck("trust").code == 0
    assert gradcheck("run", "../a.grad.yaml").code == 0
    assert gradcheck("trust", "--revoke").code == 0
    assert gradcheck("run", "../a.grad.yaml").code == 2


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (None, [], ".: there is no pyproject.toml with [tool.gradcheck] to trust"),
        ("[tool.other]\n", [], ".: there is no pyproject.toml with [tool.gradcheck] to trust"),
        ("[tool.gradcheck]\njobs = 2\n", [], "pyproject.toml: [tool.gradcheck] asks for nothing that needs trust"),
        ("[tool.gradcheck]\nallow-cod = true\n", [], "has no key 'allow-cod'; did you mean allow-code?"),
        (PROJECT, ["nowhere"], "nowhere: name a folder of the project"),
        (PROJECT, ["--list", "--revoke"], "use one of them"),
    ],
)
def test_what_cannot_be_trusted_is_said_and_nothing_is_recorded(gradcheck, folder, text, arguments, message):
    if text is not None:
        (folder / "pyproject.toml").write_text(text)
    done = gradcheck("trust", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not list_file().exists()


# ------------------------------------------------------------------------------------- the list
def test_the_list_is_readable_to_the_user_alone_and_may_be_a_link(project, gradcheck, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("dotfiles") / "trusted.json"
    elsewhere.write_text("{}")
    file = list_file()
    file.parent.mkdir(parents=True)
    file.symlink_to(elsewhere)
    gradcheck("trust")
    assert file.is_symlink()
    assert list(json.loads(elsewhere.read_text())) == [str(project)]
    assert elsewhere.stat().st_mode & 0o077 == 0
    assert [one.name for one in elsewhere.parent.iterdir()] == ["trusted.json"]


@pytest.mark.parametrize(
    "content", ["[", "[]", '{"/": 3}', "\xff", "[" * 100_000], ids=["cut", "list", "number", "bytes", "deep"]
)
def test_a_list_that_cannot_be_read_is_named_and_nothing_is_trusted(project, gradcheck, content):
    file = list_file()
    file.parent.mkdir(parents=True)
    file.write_bytes(content.encode("latin-1"))
    for command in (["trust"], ["trust", "--list"], ["trust", "--revoke"], ["run", "a.grad.yaml"]):
        done = gradcheck(*command)
        assert (done.code, done.out) == (2, "")
        assert re.match(rf"gradcheck: {re.escape(str(file))}: ", done.err)
    assert file.read_bytes() == content.encode("latin-1")


def test_a_list_that_cannot_be_written_is_named(project, gradcheck, monkeypatch, tmp_path_factory):
    blocked = tmp_path_factory.mktemp("blocked") / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(blocked))
    done = gradcheck("trust")
    assert (done.code, done.out) == (2, "")
    assert f"gradcheck: {blocked}/gradcheck" in done.err
