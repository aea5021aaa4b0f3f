"""What a check does with a function of torch: which runs are watched, and which leaves a run reads."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import Function

import gradcheck
from gradcheck.backends.torch import TorchBackend
from gradcheck.backends.torch_operations import OperationMode
from gradcheck.backends.torch_private import Patch, TorchTooDifferentError, private, run_backward

X = np.random.default_rng(1).standard_normal((3, 4))
MOST_WATCHED = 2
"""The recorded run, and the plain one of backward that shows its casts. Perturbed runs are replays of
the recorded one, though torch rounds a tanh in another way than NumPy does."""


CALLS = Counter[str]()
"""Evaluations of `Gated`."""


class Gated(Function):
    """A product of the halves of its argument, which are views of it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        CALLS["forward"] += 1
        a, b = x.chunk(2, -1)
        ctx.save_for_backward(a, b)
        return a * torch.tanh(b)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        CALLS["backward"] += 1
        a, b = ctx.saved_tensors
        t = torch.tanh(b)
        return torch.cat([g * t, g * a * (1 - t * t)], -1)


def test_plain_runs_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[OperationMode] = []
    init, collect = OperationMode.__init__, list[int]()

    def noted(mode: OperationMode, *given: Any) -> None:
        init(mode, *given)
        made.append(mode)

    monkeypatch.setattr(OperationMode, "__init__", noted)
    monkeypatch.setattr(gc, "collect", lambda *_: collect.append(1))
    CALLS.clear()
    assert gradcheck.check(Gated, X).verdict == "PASS"
    assert len(made) <= MOST_WATCHED < CALLS["forward"] <= 16
    assert CALLS["backward"] <= 5
    assert collect == []  # which takes a tenth of a second, and is only of use for leaves without a name


def leaves_read_by(call: Any) -> list[Any]:
    _, leaves = TorchBackend().collect_leaves(call)
    return leaves


def test_views_in_a_function_are_no_leaves() -> None:
    x, weight = torch.tensor(X, requires_grad=True), torch.tensor(X[:, :2], requires_grad=True)
    read = leaves_read_by(lambda: Gated.apply(x) * weight)
    assert set(map(id, read)) == {id(x), id(weight)}


def test_a_view_that_needs_a_gradient_by_itself_is_a_leaf() -> None:
    row = torch.tensor(X)[0].requires_grad_()
    assert list(map(id, leaves_read_by(lambda: Gated.apply(row)))) == [id(row)]


def test_a_name_that_torch_lacks_is_reported_with_the_release_that_has_it() -> None:
    for module in ("torch.utils._python_dispatch", "torch.no_such_module"):
        with pytest.raises(TorchTooDifferentError, match=rf"no {module}\.Missing, .* torch 2\.13 has it"):
            private(module, "Missing")


FIRST = """
import sys, torch, gradcheck
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g
assert gradcheck.check(Square, torch.ones(2, dtype=torch.float64, requires_grad=True))
print(sorted({"sympy", "mpmath"} & sys.modules.keys()))
"""


def test_a_first_check_does_not_wait_for_sympy() -> None:
    """torch's own functions import it to compare two shapes, which takes as long as the check's own modules."""
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_gradients_are_those_of_torchs_own_function() -> None:
    x, w = (torch.tensor(X, requires_grad=True) for _ in range(2))
    unused = torch.ones(1, requires_grad=True)
    y, g = torch.tanh(x) * w, torch.tensor(X[::-1].copy())
    own = torch.autograd.grad([y], [x, w, unused], [g], retain_graph=True, allow_unused=True)
    ours = run_backward([y], [g], [x, w, unused])
    assert ours[2] is own[2] is None
    assert all(torch.equal(a, b) for a, b in zip(ours[:2], own[:2], strict=True))
    assert x.grad is None
    assert run_backward([y], [g], [x], create_graph=True)[0].requires_grad
    run_backward([y], [g], retain_graph=False)
    assert torch.equal(x.grad, own[0])
    with pytest.raises(RuntimeError, match="second time"):
        run_backward([y], [g], [x])


def test_a_patch_leaves_classes_as_they_were() -> None:
    class Base:
        def inherited(self) -> int:
            return 1

    class Own(Base):
        def method(self) -> int:
            return 1

    before, patch = dict(vars(Own)), Patch((Own, "method", lambda self: 2), (Own, "inherited", lambda self: 2))
    with patch, patch:
        assert (Own().method(), Own().inherited()) == (2, 2)
    assert dict(vars(Own)) == before
