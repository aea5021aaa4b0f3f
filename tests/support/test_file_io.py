"""Files are written whole, wherever they are: through a link, into a pipe, beside what cannot be replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gradcheck.support.file_io import write_whole

needs_posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX")


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    before = path.stat()
    with path.open() as reader:
        write_whole(path, "new ü \ud800")
        assert reader.read() == "old"  # who reads meanwhile has it whole
    assert path.read_text() == "new ü \\ud800"
    assert path.stat().st_ino != before.st_ino
    assert path.stat().st_mode == before.st_mode
    assert os.listdir(tmp_path) == ["a"]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


@needs_posix
def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("there", "not-there"):
        (tmp_path / name).symlink_to(Path("folder") / name)
    (tmp_path / "folder" / "there").write_text("old")
    for name in ("there", "not-there"):
        write_whole(tmp_path / name, "new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "folder" / name).read_text() == "new"


@needs_posix
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_whole(tmp_path / "pipe", "new")
    reader.join()
    assert read == ["new"]


@needs_posix
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_stdout_gets_it_in_its_place_among_what_is_printed(tmp_path: Path, kind: str) -> None:
    code = "from pathlib import Path; from gradcheck.support.file_io import write_whole\n"
    code += "print('before'); write_whole(Path('/dev/stdout'), 'it\\n'); print('after')"
    with (tmp_path / "out").open("w+") as file:
        out = file if kind == "file" else subprocess.PIPE
        done = subprocess.run([sys.executable, "-c", code], stdout=out, check=True, cwd=Path(__file__).parents[1])
        file.seek(0)
        assert (file.read() if kind == "file" else done.stdout.decode()) == "before\nit\nafter\n"
