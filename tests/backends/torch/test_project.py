"""A project of torch's layers on the command line: `framework: torch`, `new`, `init`, and what finds out by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from square import layer
from warm import python

import gradcheck
from gradcheck.backends.torch import TorchBackend
from gradcheck.spec.literals import NAMES_OF_FRAMEWORKS

LAYERS = """\
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0] ** 2


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x


def scaled(x):
    return x.tanh() * 2


def cubed(x):
    from other_layers import cube  # a name that says nothing of torch

    return cube(x)
"""
PADDLES = f"schema: gradcheck/v1\nscenarios:\n  - id: of-paddle\n{layer()}    inputs: {{x: [2]}}\n"
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(tmp_path: Path) -> Call:
    """Calls the command line, in a project with a module of torch's layers."""
    (tmp_path / "own_layers.py").write_text(LAYERS)
    (tmp_path / "pyproject.toml").write_text("")
    settings = {"GRADCHECK_ALLOW_CODE": "1", "NO_COLOR": "1"}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return python("-m", "gradcheck", *arguments, folder=tmp_path, env={**os.environ, **settings})

    return call


def test_init_new_and_run_of_a_folder_with_paddles_layers_too(command: Call, tmp_path: Path) -> None:
    assert command("init", "--framework", "torch").returncode == 0
    made = command("new", "own_layers:Cube", "-i", "x=3", "-o", "specs/cube.grad.yaml")
    assert made.returncode == 0, made.stderr
    assert "framework: torch\n" in (tmp_path / "specs" / "cube.grad.yaml").read_text()
    (tmp_path / "specs" / "paddle.grad.yaml").write_text(PADDLES)

    done = command("run")
    assert done.returncode == 0, done.stdout + done.stderr
    started = sorted(" ".join(line.split()[:2]) for line in done.stdout.splitlines()[:-1])
    assert started == ["PASS cube@torch", "PASS example-square@torch", "PASS of-paddle@numpy"]

    done = command("run", "-b", "torch")
    assert done.stdout.splitlines()[-1].startswith("2 PASS in ")
    assert "left out: 1 scenario of paddle, as -b numpy is not given" in done.stderr


def test_a_function_of_methods_gets_the_framework_that_is_said(command: Call, tmp_path: Path) -> None:
    made = command("new", "own_layers:scaled", "--framework", "torch", "-o", "scaled.grad.yaml")
    assert made.returncode == 0, made.stderr
    assert command("run", "scaled.grad.yaml").stdout.startswith("PASS scaled@torch scaled.grad.yaml:4:5")


def test_inputs_in_one_memory_share_no_gradient(command: Call, tmp_path: Path) -> None:
    # the product of two such numbers is 0: differences show nothing, and a record of the forward knows x and w apart
    # by their memory alone
    (tmp_path / "product.grad.yaml").write_text(
        "schema: gradcheck/v1\nframework: torch\nscenarios:\n  - id: product\n    layer: {ref: 'own_layers:Product'}\n"
        "    inputs: {x: {values: [6.0e-309]}, w: {layout: {aliased: x}}}\n"
    )
    assert command("run", "product.grad.yaml").stdout.startswith("PASS product@torch ")


def test_a_layer_of_an_installed_package_is_found_to_be_torchs(command: Call) -> None:
    # a Function of torch's own package, of which the project has no file
    done = command("check", "torch.autograd._functions:Resize", "-i", "x=2x3", "--call", "Resize.apply(x, (3, 2))")
    assert done.stdout.startswith("PASS resize@torch "), done.stdout + done.stderr


def test_a_function_of_which_nothing_says_whose_it_is_is_not_run_on_the_engine(command: Call, tmp_path: Path) -> None:
    # on the engine the Function would be a plain function, and its backward would not run
    (tmp_path / "other_layers.py").write_text("from own_layers import Cube\n\ncube = Cube.apply\n")
    done = command("check", "own_layers:cubed", "-i", "x=3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "torch is imported: pass Tensors of one (a command: -b torch, " in done.stderr
    done = command("check", "own_layers:cubed", "-i", "x=3", "-b", "torch")
    assert done.stdout.startswith("PASS cubed@torch own_layers:cubed:")
    assert "no hand-written backward" not in done.stdout


def test_what_names_no_framework_is_to_be_called_with_tensors() -> None:
    values = np.ones(3)
    with pytest.raises(TypeError, match=r"and torch is imported: pass Tensors of one .* backward="):
        gradcheck.check(lambda x: x.tanh(), values)
    assert gradcheck.check(lambda x: x.tanh(), torch.ones(3, requires_grad=True)).verdict.green
    assert gradcheck.check(lambda x: np.tanh(x), values, backward=lambda x, g: g * (1 - np.tanh(x) ** 2)).verdict.green


def test_code_finds_the_names_that_the_format_promises() -> None:
    assert tuple(TorchBackend().names()) == NAMES_OF_FRAMEWORKS["torch"]
