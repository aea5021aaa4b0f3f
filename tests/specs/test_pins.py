"""What is recorded of each release holds there, and an entry that does not hold is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed import RELEASES, gradcheck, lacking


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A release that has an environment here."""
    if problem := lacking(request.param):
        pytest.skip(problem)
    return f"paddle@{request.param}"


@pytest.mark.long
def test_each_release_does_what_is_recorded_of_it(release: str, tmp_path: Path) -> None:
    done = gradcheck("run", "--bundled", "--format", "plain", "-b", f"numpy,{release}", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_what_is_recorded_of_another_release_is_a_failure(release: str, tmp_path: Path) -> None:
    other = "2.6.2" if release.endswith("@3.3.1") else "3.3.1"
    arguments = ("run", "backward-rules-grad-of-some-outputs", "--format", "plain", "-b", release)
    assert gradcheck(*arguments, folder=tmp_path).returncode == 0
    assert gradcheck(*arguments, "--as-version", other, folder=tmp_path).returncode == 1
