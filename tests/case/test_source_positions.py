"""Where something happened, told in terms of the user's own files."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import pylayer
from gradcheck.case import execute
from gradcheck.case.user_code import frames_of, is_users, place_of_frames, raised_by_scenario

SPEC = "a.grad.yaml"


@pytest.mark.parametrize("file", [json.__file__, np.__file__, pylayer.__file__, execute.__file__, "<string>"])
def test_no_library_is_the_user_s(file: str) -> None:
    assert not is_users(file)


@pytest.mark.parametrize("file", ["/home/me/layers.py", "/x/site-packages/mine/layers.py", SPEC])
def test_files_of_others_are_the_user_s(file: str) -> None:
    assert is_users(file)


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        ([], ""),
        ([(json.__file__, 3)], ""),
        ([(execute.__file__, 9), (SPEC, 4), (np.__file__, 8), (SPEC, 7), (np.__file__, 8)], "line 7 of the spec"),
        ([("/m/layers.py", 3), (np.__file__, 8)], "line 3 of /m/layers.py"),
        (
            [(SPEC, 4), ("/m/layers.py", 3), ("/m/helpers.py", 5)],
            "line 5 of /m/helpers.py, called from line 3 of /m/layers.py, called from line 4 of the spec",
        ),
    ],
)
def test_the_innermost_line_is_told_and_who_called(frames: list[tuple[str, int]], told: str) -> None:
    assert place_of_frames(frames, SPEC) == told


def test_what_a_command_makes_up_is_no_place() -> None:
    assert place_of_frames([("/m/mine:Own", 4), ("/m/layers.py", 3)], "/m/mine:Own") == "line 3 of /m/layers.py"
    assert place_of_frames([("/m/mine:Own", 4)], "/m/mine:Own") == ""


def test_a_file_below_the_current_folder_is_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_of_frames([(str(tmp_path / "own" / "layers.py"), 3)], SPEC) == "line 3 of own/layers.py"


def test_code_that_python_does_not_compile_is_the_scenario_s_at_its_line() -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("\n\nreturn 1", SPEC, "exec")
    assert raised_by_scenario(SPEC, raised.value)
    assert place_of_frames(frames_of(raised.value), SPEC) == "line 3 of the spec"


def test_a_module_that_python_cannot_read_is_the_user_s(tmp_path: Path) -> None:
    spec = spec_from_file_location("own", tmp_path / "own.py")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(OSError, match=r"own\.py") as raised:
        spec.loader.exec_module(module_from_spec(spec))
    assert raised.tb.tb_next is not None
    error = raised.value.with_traceback(raised.tb.tb_next)  # without this file, which is a user's
    assert raised_by_scenario("a.grad.yaml", error)
