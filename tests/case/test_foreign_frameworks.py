"""Layers and arrays of other frameworks are refused by name, with a line that checks them, and that runs.

Modules of these names stand in for the frameworks, which need not be installed.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from warm import python

import pylayer.paddle as paddle
from gradcheck.case.foreign_frameworks import FRAMEWORKS, framework_of

CHAINER = """
import numpy as np


class Variable:
    def __init__(self, array):
        self.array = np.asarray(array)

    shape = property(lambda self: self.array.shape)
"""
HIPS = """
def make_vjp(function):
    return lambda x: (lambda g: function.vjp(function(x), x)(g), function(x))
"""
TRACER = """
def primitive(function):
    def wrapped(*args):
        return function(*args)

    wrapped.__name__ = function.__name__
    return wrapped
"""
OWN = """
import autograd
import autograd.tracer
import numpy as np

SCALE = 1.0


@autograd.tracer.primitive
def cube(x):
    return x ** 3


cube.vjp = lambda y, x: lambda g: SCALE * 3 * x ** 2 * g


def through(x):
    return cube(x * 1.0)
"""
FILES = {
    "chainer/__init__.py": CHAINER, "autograd/__init__.py": HIPS, "autograd/tracer.py": TRACER,
    "own.py": OWN,
}  # fmt: skip
LAYERS = {"cube": "HIPS autograd"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with stand-ins of the frameworks, and a module of layers of theirs."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments in a folder, which finds what this process does."""
    path = os.pathsep.join([str(folder), *map(os.path.abspath, filter(None, sys.path))])
    return python(*arguments, folder=folder, env={**os.environ, "PYTHONPATH": path})


# --------------------------------------------------------------------------- in Python
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_refused_by_name_and_the_line_that_is_given_runs(name: str, folder: Path) -> None:
    program = f"""
        import gradcheck, own, numpy as np
        from own import *
        x = np.linspace(0.1, 1, 4)
        try:
            gradcheck.check(own.{name}, x)
        except TypeError as error:
            said = str(error)
        assert "the backwards of {LAYERS[name]}, and {name} is of {LAYERS[name]}" in said, said
        setup, _, line = said.splitlines()[-1].strip().rpartition("gradcheck.check(")
        exec(setup)
        for own.SCALE, verdict in ((1.0, "PASS"), (1.5, "FAIL")):
            result = eval("gradcheck.check(" + line)
            assert result.verdict == verdict, result
            assert result.marks == ()
        try:
            gradcheck.explore(own.{name}, x="N")
        except TypeError as error:
            assert str(error) == said
        else:
            raise AssertionError("it was explored")
    """
    done = run(folder, "-c", dedent(program))
    assert done.returncode == 0, done.stderr


def test_a_function_that_calls_such_a_layer_is_refused_as_well(folder: Path) -> None:
    program = """
        import gradcheck, own, numpy as np
        for function in (own.through, lambda x: own.cube(x)):
            try:
                gradcheck.check(function, np.ones(3))
            except TypeError as error:
                assert "gradcheck does not run the backwards of" in str(error), error
            else:
                raise AssertionError(function)
    """
    done = run(folder, "-c", dedent(program))
    assert done.returncode == 0, done.stderr


def test_arrays_are_refused_as_arguments_of_any_function(folder: Path) -> None:
    program = """
        import gradcheck, chainer, numpy as np
        import pylayer.paddle as paddle
        x = chainer.Variable([1.0])
        for given in (x, [x], {"a": (x,)}):
            try:
                gradcheck.check(paddle.tanh, given)
            except TypeError as error:
                assert "argument 0 is a chainer.Variable, an array of Chainer: pass its values, x.array" in str(
                    error
                ), error
            else:
                raise AssertionError(given)
    """
    done = run(folder, "-c", dedent(program))
    assert done.returncode == 0, done.stderr


def test_nothing_of_a_framework_is_imported() -> None:
    code = "import gradcheck.case.foreign_frameworks, sys; assert not {'torch', 'jax', 'autograd'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --------------------------------------------------------------------------- which framework
def of_module(name: str) -> list[Any]:
    """A class, an object, a derived class and a function of a module of this name."""
    base = type("Base", (), {"__module__": name})
    derived = type("Derived", (base,), {"__module__": "own"})
    function = FunctionType((lambda: None).__code__, {"__name__": name})
    return [base, base(), derived, derived(), function, functools.partial(function)]


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda one: one.name)
def test_classes_objects_and_functions_tell_their_framework(framework: Any) -> None:
    for module in framework.modules:
        for value in (*of_module(module), *of_module(f"{module}.within")):
            assert framework_of(value) is framework


@pytest.mark.parametrize("module", ["autograd", "torchlike", "own.torch", "paddle.autograd", "builtins"])
def test_other_modules_are_of_none(module: str) -> None:
    """A user's own file may be called autograd.py."""
    assert [framework_of(value) for value in of_module(module)] == [None] * 6
    assert framework_of(ModuleType("torch")) is None
    assert framework_of(paddle.tanh) is None
    assert framework_of(np.tanh) is None


# --------------------------------------------------------------------------- elsewhere
@pytest.mark.parametrize("name", [*LAYERS, "through"])
def test_the_command_exits_with_2_and_gives_the_line(name: str, folder: Path) -> None:
    done = run(folder, "-m", "gradcheck", "check", f"own:{name}", "-i", "x=4")
    assert done.returncode == 2
    assert "gradcheck does not run the backwards of" in done.stdout
    assert "backward=lambda x, g:" in done.stdout


def test_a_scenario_of_such_a_layer_is_an_error(folder: Path) -> None:
    spec = """
        schema: gradcheck/v1
        scenarios:
          - {id: named, layer: {ref: "own:cube"}, inputs: {x: {shape: [3]}}}
          - id: written
            layer: |
              from own import cube
            call: cube(x)
            inputs: {x: {shape: [3]}}
    """
    (folder / "own.grad.yaml").write_text(dedent(spec))
    done = run(folder, "-m", "gradcheck", "run", "own.grad.yaml", "--allow-code")
    assert done.returncode == 1
    assert done.stdout.count("gradcheck does not run the backwards of HIPS autograd, and cube is of HIPS autograd") == 2


def test_the_pytest_plugin_raises_it(folder: Path) -> None:
    (folder / "test_own.py").write_text("import own\ndef test_cube(gradcheck):\n    gradcheck(own.cube, [1.0])\n")
    done = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py")
    assert done.returncode == 1
    assert "TypeError" in done.stdout or "ForeignFrameworkError" in done.stdout
    assert "the backwards of HIPS autograd, and cube is of HIPS autograd" in done.stdout
