"""What git ignores, as gitignore(5) has it. The rows that git itself can be asked for are asked of it as well."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gradcheck.spec.folders import spec_files
from gradcheck.support import gitignore
from gradcheck.support.gitignore import Ignored, above, rule_of

# The lines of a .gitignore, a path below it, and whether git ignores that.
ROWS = [
    ("a.grad.yaml", "a.grad.yaml", True),
    ("a.grad.yaml", "sub/a.grad.yaml", True),
    ("/a.grad.yaml", "sub/a.grad.yaml", False),
    ("sub/a.grad.yaml", "sub/a.grad.yaml", True),
    ("sub/a.grad.yaml", "deep/sub/a.grad.yaml", False),
    ("**/sub/a.grad.yaml", "deep/sub/a.grad.yaml", True),
    ("sub/", "sub/a.grad.yaml", True),
    ("sub/", "deep/sub/a.grad.yaml", True),
    ("sub/**", "sub/deep/a.grad.yaml", True),
    ("deep/**/a.grad.yaml", "deep/a.grad.yaml", True),
    ("deep/**/a.grad.yaml", "deep/b/c/a.grad.yaml", True),
    ("deep/*/a.grad.yaml", "deep/b/c/a.grad.yaml", False),
    ("a.grad.yaml/", "a.grad.yaml", False),
    ("*.yaml", "sub/a.grad.yaml", True),
    ("?.grad.yaml", "a.grad.yaml", True),
    ("[ab].grad.yaml", "a.grad.yaml", True),
    ("[!ab].grad.yaml", "a.grad.yaml", False),
    ("[^b].grad.yaml", "a.grad.yaml", True),
    (r"\#a.grad.yaml", "#a.grad.yaml", True),
    (r"\!a.grad.yaml", "!a.grad.yaml", True),
    (r"\*.grad.yaml", "a.grad.yaml", False),
    (r"\*.grad.yaml", "*.grad.yaml", True),
    ("# a.grad.yaml", "a.grad.yaml", False),
    ("a.grad.yaml   ", "a.grad.yaml", True),
    ("*.yaml\n!a.grad.yaml", "a.grad.yaml", False),
    ("!a.grad.yaml\n*.yaml", "a.grad.yaml", True),
    ("sub/\n!sub/a.grad.yaml", "sub/a.grad.yaml", True),  # a folder that is left out is not looked into
    ("sub/*\n!sub/a.grad.yaml", "sub/a.grad.yaml", False),
    ("", "a.grad.yaml", False),
    ("/", "a.grad.yaml", False),
]


@pytest.mark.parametrize(("lines", "path", "ignored"), ROWS)
def test_a_file_is_ignored_where_git_ignores_it(tmp_path: Path, lines: str, path: str, ignored: bool) -> None:
    (tmp_path / ".gitignore").write_text(lines + "\n")
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    assert (tmp_path / path in spec_files(tmp_path)) is not ignored
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        asked = subprocess.run(["git", "check-ignore", "-q", path], cwd=tmp_path, check=False)
        assert asked.returncode == (0 if ignored else 1)


def test_the_file_in_a_lower_folder_counts_more(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".gitignore").write_text("*.yaml\n")
    (tmp_path / "sub" / ".gitignore").write_text("!/a.grad.yaml\n")
    for place in (tmp_path, tmp_path / "sub"):
        (place / "a.grad.yaml").touch()
    assert spec_files(tmp_path) == [tmp_path / "sub" / "a.grad.yaml"]


def test_the_files_above_count_up_to_the_folder_with_git(tmp_path: Path) -> None:
    below = tmp_path / "clone" / "part"
    below.mkdir(parents=True)
    (tmp_path / "clone" / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("b.grad.yaml\n")
    (tmp_path / "clone" / ".gitignore").write_text("/part/a.grad.yaml\n")
    for name in "ab":
        (below / f"{name}.grad.yaml").touch()
    ignored, names = above(below)
    assert names == ("part",)
    assert [ignored.ignores((*names, f"{name}.grad.yaml"), False) for name in "ab"] == [True, False]
    assert spec_files(below, whole_project=True) == [below / "b.grad.yaml"]


def test_no_pattern_takes_long(tmp_path: Path) -> None:
    name = "a" * 250
    rules = [rule_of("*a" * 100 + "b"), rule_of("**/a" * 50 + "/b"), rule_of("[a" * 100), rule_of("?*" * 100 + "b")]
    assert not any(rule.fits([name] * 200) for rule in rules if rule is not None)


def test_a_file_that_is_none_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitignore").mkdir()
    assert not Ignored().entering(tmp_path).ignores(("a.grad.yaml",), False)
    (tmp_path / ".gitignore").rmdir()
    (tmp_path / ".gitignore").write_bytes(b"\xff\xfe\n*.yaml\n")
    assert Ignored().entering(tmp_path).ignores(("a.grad.yaml",), False)
    monkeypatch.setattr(gitignore, "MOST_GITIGNORE_BYTES", 3)
    assert not Ignored().entering(tmp_path).ignores(("a.grad.yaml",), False)
