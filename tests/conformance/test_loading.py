"""The room of rules and releases is loaded only by the commands about them."""

from __future__ import annotations

import subprocess
import sys

import pytest

USED_FOR_A_LAYER = [
    "gradcheck.api",
    "gradcheck.pytest_plugin",
    "gradcheck.commands.check",
    "gradcheck.commands.explore",
    "gradcheck.commands.run",
    "gradcheck.commands.validate",
    "gradcheck.report.html",
    "gradcheck.run.in_case",
]


def loaded_rooms(modules: list[str]) -> set[str]:
    """The modules of the room that importing `modules` loads, in a fresh Python."""
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split() if name.startswith("gradcheck.conformance")}


def test_who_checks_a_layer_does_not_load_the_room() -> None:
    assert loaded_rooms(USED_FOR_A_LAYER) == set()


@pytest.mark.parametrize("command", ["matrix", "listing", "show"])
def test_a_command_about_rules_loads_it(command: str) -> None:
    assert "gradcheck.conformance.catalogue" in loaded_rooms([f"gradcheck.commands.{command}"])
