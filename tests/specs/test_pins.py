"""What is pinned of each release holds there, and a pin that does not hold is a failure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from installed import RELEASES, gradcheck, lacking

from gradcheck.support.resources import bundled_specs


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A release that has an environment here."""
    if problem := lacking(request.param):
        pytest.skip(problem)
    return f"paddle@{request.param}"


@pytest.mark.long
def test_each_release_does_what_is_pinned_of_it(release: str, tmp_path: Path) -> None:
    done = gradcheck("run", "--bundled", "--format", "plain", "-b", f"numpy,{release}", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


# A scenario, a part of what is pinned of it on all releases, what to put in its place, and what then is said.
BROKEN = [
    ("backward-rules-hook-on-output", "{x.grad: [2.0]}", "{x.grad: [3.0]}", "expected 3.0 at [0], got 2.0"),
    (
        "backward-rules-none-for-needed-raises", "x2: null", "x2: [0.0, 0.0]",
        "gradient of x2: expected (0.0, 0.0), got None",
    ),
    ("backward-rules-list-return", "but got list", "but got lists", "but got lists"),
    ("inplace-several-marked", "[SIGSEGV, SIGABRT]", "[SIGFPE]", "expected SIGFPE, but"),
]  # fmt: skip


def with_broken_pin(scenario: str, pinned: str, other: str) -> tuple[Path, str, str]:
    """The bundled file of a scenario, its text, and the text with `other` pinned of the scenario."""
    [file] = [path for path in bundled_specs().rglob("*.grad.yaml") if f"id: {scenario}\n" in path.read_text()]
    text = file.read_text(encoding="utf-8")
    before, start, rest = text.partition(f"  - id: {scenario}\n")
    body, end, others = rest.partition("\n  - id: ")
    broken, count = re.subn(r"(?s)(observed: .*?)" + re.escape(pinned), lambda m: m[1] + other, body, count=1)
    assert count == 1, f"{file}: {pinned} is not pinned of {scenario}"
    return file, text, before + start + broken + end + others


@pytest.mark.parametrize("one", BROKEN, ids=[one[0] for one in BROKEN])
def test_what_is_broken_here_stands_in_the_specs(one: tuple[str, str, str, str]) -> None:
    _, text, broken = with_broken_pin(*one[:3])
    assert text != broken


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "pinned", "other", "said"), BROKEN, ids=[one[0] for one in BROKEN])
def test_a_broken_pin_is_a_failure(
    release: str, tmp_path: Path, scenario: str, pinned: str, other: str, said: str
) -> None:
    file, text, broken_text = with_broken_pin(scenario, pinned, other)
    copy = tmp_path / file.name
    copy.write_text(text, encoding="utf-8")
    arguments = ("run", "--format", "plain", str(copy), scenario, "-b", release, "--allow-code")
    held = gradcheck(*arguments, folder=tmp_path)
    assert (held.returncode, held.stdout.split()[0]) == (0, "XFAIL"), held.stdout + held.stderr
    copy.write_text(broken_text, encoding="utf-8")
    broken = gradcheck(*arguments, folder=tmp_path)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert said in broken.stdout
