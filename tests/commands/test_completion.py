"""What a shell completes, as click's own scripts for shells ask for it."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from gradcheck.commands import main


def completed(*words: str) -> list[str]:
    """What the last word, which is being typed, may become."""
    *before, typed = words
    found = ShellComplete(main, {}, "gradcheck", "_GRADCHECK_COMPLETE").get_completions(before, typed)
    return [one.value for one in found if one.type == "plain"]


@pytest.mark.parametrize("command", ["run", "show", "explain", "replay"])
def test_ids_of_the_project_and_of_our_own(spec, command):
    spec("  - id: apply-mine\n    layer: {op: tanh}\n    inputs: {x: [2]}\n")
    found = completed(command, "apply-")
    assert found[0] == "apply-mine"
    assert "apply-tanh-float64-mean" in found
    assert all(one.startswith("apply-") for one in found)


def test_a_file_with_mistakes_costs_no_others_ids(folder):
    (folder / "bad.grad.yaml").write_text("a: [")
    (folder / "pyproject.toml").write_text("[tool.gradcheck]\nnone = 1\n")
    assert "apply-tanh-float64-mean" in completed("run", "apply-ta")


@pytest.mark.parametrize("typed", ["GC10", "gc10"])
def test_codes(folder, typed):
    assert "GC104" in completed("explain", typed)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["run", "-b", "nu"], ["numpy"]),
        (["run", "-b", "numpy,pad"], ["numpy,paddle"]),
        (["check", "mod:Own", "-b", "cu"], ["cupy"]),
        (["run", "--report", "j"], ["json:", "jsonl:", "junit:"]),
        (["run", "--format", "p"], ["plain"]),
        (["validate", "--format", "j"], ["json"]),
        (["va"], ["validate"]),
        (["nothing", "a"], []),
    ],
)
def test_backends_formats_and_commands(folder, monkeypatch, words, meant):
    monkeypatch.setenv("GRADCHECK_ENVIRONMENTS", str(folder))
    assert completed(*words) == meant
