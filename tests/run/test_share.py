"""Which cases share a process, and how what one of them leaves is seen."""

from __future__ import annotations

import itertools
import sys
from types import ModuleType

import pytest

from gradcheck.run.share import MOST_CASES, Snapshot, is_plain

LAYER = """\
class Own(PyLayer):
    scale = 2.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.scale = Own.scale
        return x * ctx.scale

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensor()
        return dy * ctx.scale
"""


@pytest.mark.parametrize(
    "code",
    [
        LAYER,
        "import math, numpy as np\nfrom paddle.autograd import PyLayer\nx = np.exp(math.pi)",
        "import paddle.nn.functional as F\nF.relu(x)",
        "class A:\n    def __init__(self):\n        super().__init__()\n        self._b = {}\n        self._b['k'] = 2",
        "from collections import namedtuple\nimport time; time.sleep(0.01)",
        "x.grad is None and out.shape",
    ],
)
def test_code_that_only_computes_may_share(code):
    assert is_plain(code)


@pytest.mark.parametrize(
    "code",
    [
        "import os",
        "import sys, math",
        "from os import path",
        "import ctypes",
        "import threading",
        "import pylayer.tensor",
        "from mylayers import *",
        "import numpy.ctypeslib",
        "from numpy import memmap",
        "from numpy.lib.stride_tricks import as_strided",
        "np.lib.stride_tricks.as_strided(x, (9,))",
        "np.abs = None",
        "paddle.nn.functional.relu = None",
        "PyLayer.apply = None",
        "del paddle.tanh",
        "import numpy as n\nn.abs = None",
        "x.__class__.__mul__ = None",
        "class A:\n    def __del__(self): pass",
        "().__class__.__bases__[0].__subclasses__()",
        "getattr(np, 'a' + 'bs')",
        "setattr(np, 'abs', None)",
        "globals()['x'] = 1",
        "exec('import os')",
        "eval(x)",
        "open('f')",
        "__import__('os')",
        "import random\nrandom._os.system('true')",
        "import typing\ntyping.sys.exit()",
        "print(__builtins__)",
        "x = (",
        "\0",
    ],
)
def test_code_that_could_reach_further_may_not(code):
    assert not is_plain(code)


@pytest.fixture
def module(monkeypatch):
    """A module `watched`, with a class in it."""
    watched = ModuleType("watched")
    exec("class Thing:\n    def act(self): return 1\ndef work(): return 2\nconstant = 1.5", vars(watched))
    watched.Thing.__module__ = "watched"
    watched._names = itertools.count()
    monkeypatch.setitem(sys.modules, "watched", watched)
    return watched


@pytest.fixture
def snapshot(module):
    return Snapshot(("watched",))


def test_nothing_changed_where_nothing_was(snapshot, module):
    module.work()
    module.Thing().act()
    next(module._names)
    assert snapshot.changed() == ""


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("work = None", "watched.work"),
        ("constant = 1.5 + 0.0", "watched.constant"),
        ("del work", "watched.work"),
        ("added = 1", "watched.added"),
        ("Thing.act = None", "watched.Thing.act"),
        ("Thing.new = None", "watched.Thing.new"),
        ("Thing = None", "watched.Thing"),
    ],
)
def test_a_change_is_named(snapshot, module, change, name):
    exec(change, vars(module))
    assert snapshot.changed() == name


def test_a_value_that_cannot_be_compared_is_a_change(snapshot, module):
    class Awkward:
        def __eq__(self, other):
            raise RuntimeError

    module.work = Awkward()
    assert snapshot.changed() == "watched.work"


def test_a_module_imported_on_first_use_is_no_change(snapshot, module):
    module.later = ModuleType("watched.later")
    assert snapshot.changed() == ""


def test_counters_start_anew(snapshot, module):
    assert [next(module._names) for _ in range(3)] == [0, 1, 2]
    snapshot.restart_counters()
    assert next(module._names) == 0


LEAVES = "import numpy as np\nnp.typecodes['left'] = 'over'"
LOOKS = "import numpy as np\nsaid = np.typecodes.get('left')"


def test_what_is_made_on_first_use_is_no_change(snapshot, module):
    module.Thing.__pydantic_complete__ = True
    assert snapshot.changed() == ""


def test_plain_cases_share_a_process_and_others_do_not(make_pool, case):
    with make_pool() as pool:
        pool.run(case(LEAVES, "a"))
        assert pool.run(case(LOOKS, "b")).message == "over"  # what no snapshot sees tells that it is the same process
        assert pool.run(case(f"import os\n{LOOKS}", "c")).message == "None"
        assert pool.run(case(LOOKS, "d")).message == "None"


def test_what_fails_after_others_is_run_again_by_itself(make_pool, case):
    with make_pool() as pool:
        pool.run(case(LEAVES, "a"))
        result = pool.run(case(f"{LOOKS}\nif said: raise ValueError(said)", "b"))
        assert (result.status, result.message) == ("PASS", "None")
        result = pool.run(case("raise ValueError('by itself')", "c"))
        assert (result.status, result.message[:21]) == ("ERROR", "ValueError: by itself")


def test_a_process_ends_after_so_many_cases(make_pool, case, monkeypatch):
    with make_pool() as pool:
        pool.run(case(LEAVES, "first"))
        messages = [pool.run(case(LOOKS, f"c{k}")).message for k in range(MOST_CASES + 1)]
        assert messages == ["over"] * (MOST_CASES - 1) + ["None"] * 2
