"""The fast ways give what the definition gives, and can be left out."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from random_programs import digest

from pylayer import fast
from pylayer.tape import graph

COUNT = 400


def plainly(*arguments: str, plain: str = "1") -> str:
    """What a Python prints in which the fast ways are left out, or by ``plain="0"`` taken."""
    environment = {**os.environ, "PYLAYER_PLAIN": plain}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not fast.ON, reason="both would be plain")
def test_random_programs_give_the_same_bit_by_bit() -> None:
    with np.errstate(all="ignore"):
        usual = digest(COUNT)
    assert plainly(str(Path(__file__).with_name("random_programs.py")), str(COUNT)).split() == usual


def test_the_environment_leaves_them_out() -> None:
    made = (
        "import pylayer.paddle as p; x = p.to_tensor([1.0], stop_gradient=False); print(type((x * x).grad_fn).__name__)"
    )
    assert plainly("-c", made).strip() == "OpNode"


def test_the_definition_of_the_walk_is_short() -> None:
    functions = (graph.walk, graph.Pending)
    code = [inspect.getsource(one).replace(inspect.getdoc(one) or "", "") for one in functions]
    assert sum(len([line for line in text.splitlines() if line.strip()]) for text in code) <= 60


@pytest.mark.long
def test_all_tests_of_the_engine_hold_without_them() -> None:
    here = str(Path(__file__).parent)
    plainly("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", here, "--deselect", f"{here}/test_plain.py")


WAY = """
import sys
import pylayer.paddle as paddle

def multiply():
    y = x * x
    y.backward()
    return x.grad

x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
multiply()
files = set()
sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename))
multiply()
sys.setprofile(None)
print(*(file for file in files if "pylayer" in file))
"""


@pytest.mark.parametrize("plain", ["0", "1"])
def test_a_multiplication_and_its_backward_run_in_few_files(plain: str) -> None:
    assert 0 < len(plainly("-c", WAY, plain=plain).split()) <= 8
