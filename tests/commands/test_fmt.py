"""``gradcheck fmt``."""

from __future__ import annotations

import os
import stat

from gradcheck.commands import validate

LOOSE = """\
schema: gradcheck/v1
scenarios:
    - layer: {op: tanh}   # a comment
      id: one  \n      inputs:
         x: {shape: [2]}
"""
MENDED = """\
schema: gradcheck/v1
scenarios:
  - layer: {op: tanh}   # a comment
    id: one
    inputs:
      x: {shape: [2]}
"""


def test_it_mends_the_files_below_this_folder(gradcheck, folder):
    (folder / "below").mkdir()
    file = folder / "below" / "a.grad.yaml"
    file.write_text(LOOSE)
    file.chmod(0o640)
    assert gradcheck("fmt") == (0, "below/a.grad.yaml: changed\n1 file, 1 changed\n", "")
    assert file.read_text() == MENDED
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert gradcheck("fmt") == (0, "1 file, 0 changed\n", "")
    assert os.listdir(folder / "below") == ["a.grad.yaml"]


def test_check_changes_nothing_and_exits_with_1(gradcheck, folder):
    file = folder / "a.grad.yaml"
    file.write_text(LOOSE)
    assert gradcheck("fmt", "--check", "a.grad.yaml") == (
        1, "a.grad.yaml: would be changed\n1 file, 1 to change\n", "",
    )  # fmt: skip
    assert file.read_text() == LOOSE
    file.write_text(MENDED)
    assert gradcheck("fmt", "--check").code == 0


def test_a_file_with_mistakes_stays_as_it_is(gradcheck, folder):
    file = folder / "a.grad.yaml"
    file.write_text(LOOSE.replace("shape", "shpae"))
    done = gradcheck("fmt", "a.grad.yaml", "nowhere.grad.yaml")
    assert done.code == 2
    assert "a.grad.yaml:6:14: error: unknown key 'shpae'" in done.err
    assert "nowhere.grad.yaml: error: there is no such file" in done.err
    assert file.read_text() == LOOSE.replace("shape", "shpae")


def test_a_link_stays_a_link(gradcheck, folder):
    (folder / "real.yaml").write_text(LOOSE)
    (folder / "a.grad.yaml").symlink_to("real.yaml")
    assert gradcheck("fmt", "a.grad.yaml").code == 0
    assert (folder / "a.grad.yaml").is_symlink()
    assert (folder / "real.yaml").read_text() == MENDED


def test_a_file_that_cannot_be_replaced_is_left_whole(gradcheck, folder, monkeypatch):
    file = folder / "a.grad.yaml"
    file.write_text(LOOSE)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(validate.os, "replace", refuse)
    done = gradcheck("fmt")
    assert (done.code, done.err) == (2, "gradcheck: a.grad.yaml: No space left on device; it stays as it is\n")
    assert file.read_text() == LOOSE
    assert os.listdir(folder) == ["a.grad.yaml"]
