"""A project of JAX's functions on the command line: `framework: jax`, `new` and `init`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from warm import python

pytest.importorskip("jax")

from gradcheck.backends.jax import JaxBackend
from gradcheck.spec.literals import NAMES_OF_FRAMEWORKS

LAYERS = """\
import jax


@jax.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * g * x**2,))
"""


def test_init_new_and_run(tmp_path: Path) -> None:
    (tmp_path / "own_layers.py").write_text(LAYERS)

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return python("-m", "gradcheck", *arguments, folder=tmp_path, env={**os.environ, "NO_COLOR": "1"})

    assert command("init", "--framework", "jax").returncode == 0
    made = command("new", "own_layers:cube", "-i", "x=3", "-o", "specs/cube.grad.yaml")
    assert made.returncode == 0, made.stderr
    assert "framework: jax\n" in (tmp_path / "specs" / "cube.grad.yaml").read_text()
    done = command("run")
    assert done.returncode == 0, done.stdout + done.stderr
    started = sorted(" ".join(line.split()[:2]) for line in done.stdout.splitlines()[:-1])
    assert started == ["PASS cube@jax", "PASS example-square@jax"]


def test_explore_draws_no_layout(tmp_path: Path) -> None:
    (tmp_path / "own_layers.py").write_text(LAYERS)
    explored = ("explore", "own_layers:cube", "-i", "x=2x3", "--examples", "12", "--seconds", "60")
    done = python("-m", "gradcheck", *explored, folder=tmp_path, env={**os.environ, "NO_COLOR": "1"})
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "expanded" not in done.stdout
    assert "right" in done.stdout


def test_code_finds_the_names_that_the_format_promises() -> None:
    assert tuple(JaxBackend().names()) == NAMES_OF_FRAMEWORKS["jax"]
