"""The table of calls is complete, and every row of known differences is about calls that are in it."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import release_names
import table
import targets
from hypothesis import HealthCheck, given, settings
from known import CRASHES, KNOWN, last_word
from one_liners import PROGRAMS

import pylayer.paddle
from pylayer.paddle._names import MODULES
from pylayer.release import StandIn, resolve_name

PATHS = {last_word(path) for path in table.ENTRIES}


def test_every_public_name_of_the_facade_has_calls() -> None:
    shown = {path.partition(" ")[0] for path in PROGRAMS}
    left = [name for name in table.names() if name not in table.ENTRIES and name not in shown]
    # What talks to other ranks has none to talk to here: worlds hold it (`test_worlds`, specs/checker/worlds.grad.yaml).
    assert [name for name in left if not name.startswith("distributed.")] == []


OF_FUNCTIONS = ("", "fft", "geometric", "incubate", "linalg", "nn.functional", "special")
"""The modules whose functions take Tensors; of the others, classes and modes, programs are run."""

NOT_DRAWN: dict[str, str] = {
    **dict.fromkeys("get_rng_state set_rng_state".split(), "A state of the generator, which is the engine's own."),
    **dict.fromkeys(
        "autocast get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_enabled get_flags"
        " set_flags is_compiled_with_cinn is_compiled_with_custom_device is_compiled_with_distribute"
        " is_compiled_with_ipu is_compiled_with_rocm is_compiled_with_xpu".split(),
        "No Tensor goes in, and none comes out: `one_liners_names`.",
    ),
}
"""By name, why no calls are drawn."""


def functions() -> list[str]:
    """The paths of the facade's functions and of Tensor's methods."""
    found = [name for name in table.names() if name.startswith("Tensor.")]
    for module in OF_FUNCTIONS:
        for name in targets.public_names(pylayer.paddle, module):
            value = getattr(targets.module(pylayer.paddle, module), name)
            if callable(value) and not isinstance(value, type):
                found.append(f"{module}.{name}".lstrip("."))
    return found


WITHOUT_ARGUMENTS = set(
    "disable_static enable_static in_dynamic_mode get_device set_device is_compiled_with_cuda".split()
)
"""Modes and devices: their scripts have no arguments to draw."""


def drawn_twice(path: str) -> bool:
    """Whether among a few calls that are drawn for a path there are two that differ."""
    return any(len(draws(path, count)) > 1 for count in (2, 8))


def draws(path: str, count: int) -> set[str]:
    """The different calls among `count` that are drawn for a path."""
    drawn: set[str] = set()

    @settings(
        max_examples=count, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(arguments=table.ENTRIES[path].arguments)
    def draw(arguments: Any) -> None:
        drawn.add(repr(arguments))

    draw()
    return drawn


def test_every_function_of_the_facade_is_drawn() -> None:
    left = {last_word(path) for path in functions() if path not in table.ENTRIES}
    assert left == set(NOT_DRAWN)
    assert all(NOT_DRAWN.values())


def test_every_function_of_the_facade_is_drawn_at_least_twice(real: Any) -> None:
    """Where the release is there, to which the draws are given."""
    once = {path for path in functions() if path in table.ENTRIES and not drawn_twice(path)}
    assert once == WITHOUT_ARGUMENTS


TWICE_THERE = set(
    "Parameter Program assign bernoulli clone default_main_program default_startup_program dtype erf_ expm1_ "
    "fill_diagonal_ gelu logspace program_guard sigmoid softplus tanh transpose tril_indices triu_indices".split()
)
"""What the release has wrapped in a package, or once for each of its two kinds of programs, and the engine once."""


def test_what_packages_hand_on_is_what_the_release_has_inside(real: Any) -> None:
    of_facade = {f"paddle.{name}" for name in MODULES}
    modules = [name for name in sys.modules if name.startswith("paddle.") and name not in of_facade]
    differ, same = set(), 0
    for module in modules:
        for name, value in list(vars(sys.modules[module]).items()):
            found = resolve_name(f"{module}.{name}")
            if name[0] == "_" or name == "annotations" or isinstance(found, StandIn) or value is functools.reduce:
                continue
            package = module
            while vars(sys.modules.get(f"pylayer.{package}", sys)).get(name) is not found:
                package = package.rpartition(".")[0]
            if getattr(sys.modules[package], name, None) is value:
                same += 1
            else:
                differ.add(name)
    assert same > 500
    assert differ <= TWICE_THERE


@pytest.mark.parametrize("row", [*KNOWN, *CRASHES], ids=lambda row: row.names)
def test_every_row_names_what_is_called(row) -> None:
    assert row.reason
    assert row.names == "*" or set(row.names.split()) <= PATHS


def test_the_names_of_the_release_are_those_it_has(real: Any, tmp_path: Path) -> None:
    made = tmp_path / "names.txt"
    subprocess.run([sys.executable, release_names.__file__, str(made)], capture_output=True, check=True)
    assert made.read_text() == release_names.FILE.read_text()
