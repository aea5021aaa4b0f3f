"""The repair and the derivation of the backwards of torch Functions, each checked by running them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import Function

import gradcheck
from gradcheck.deriving.source import source_of_file
from gradcheck.result import Status

from .fresh import DTYPES, loaded, variants
from .fresh_functions import INPUTS

WITHOUT_FIX = {
    *("LayerNorm_1", "LayerNorm_2", "CrossEntropy_1", "Normalise_2", "Solve_2", "Solve_5"),
    *("Cosine_2", "Rotary_5", "Smooth_1", "Smooth_2", "Dice_2", "Dice_3", "Margin_3", "Margin_4", "LogDet_2"),
}
"""Mistakes that no one edit repairs: what is missing is more than that, or not saved."""
NOT_DERIVED = {
    "CrossEntropy": "a Tensor that has no name",
    "Smooth": "torch's unfold",
    "Solve": "torch's _linalg_solve_ex",
    "LogDet": "did not pass at",  # a size is a number in the text
}
RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((3, 4))


@pytest.mark.parametrize("function", INPUTS, ids=lambda function: function.__name__)
def test_mistakes_are_repaired_by_one_edit(function: type[Function], tmp_path: Path) -> None:
    _, *mistakes = variants(function, tmp_path)
    for number, wrong in enumerate(mistakes):
        fix = gradcheck.check(wrong.layer, *wrong.inputs).fix
        assert fix is not None or wrong.name in WITHOUT_FIX, wrong.name
        if fix is None:
            continue
        # at other values, in both dtypes
        source = source_of_file(fix.path).with_fix(fix).partition("\n\n\n")[2]
        fixed = loaded(f"{function.__name__}_fixed_{number}", source, tmp_path)
        for dtype in DTYPES:
            other = [(1.1 * array).astype(dtype) for array in wrong.inputs]
            assert gradcheck.check(fixed, *other).verdict is Status.PASS, (wrong.name, fix)


@pytest.mark.parametrize("function", INPUTS, ids=lambda function: function.__name__)
def test_a_backward_is_derived_or_refused_with_the_reason(function: type[Function]) -> None:
    derived = gradcheck.derive(function, *INPUTS[function])
    assert bool(derived) == (function.__name__ not in NOT_DERIVED), derived
    assert NOT_DERIVED.get(function.__name__, "") in derived.refused
    if derived:
        assert len(derived.checked_at) == 6  # three sizes, two dtypes
        scope: dict[str, Any] = {}
        exec(derived.code, scope)  # it stands alone
        inputs = tuple(torch.tensor(array, requires_grad=True) for array in INPUTS[function])
        assert torch.autograd.gradcheck(scope[function.__name__].apply, inputs)


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y * factor

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y) * ctx.factor, None


def test_an_argument_that_is_no_tensor_gets_none() -> None:
    result = gradcheck.check(Scaled, X, 3.0)
    assert result.fix is not None
    assert result.fix.source_line.startswith("return g * (1 - y * y) * ctx.factor, None")


class NumberBetween(Function):
    @staticmethod
    def forward(ctx, x, factor, w):
        ctx.factor = factor
        y = torch.tanh(x)
        ctx.save_for_backward(y, w)
        return factor * y * w

    @staticmethod
    def backward(ctx, g):
        y, w = ctx.saved_tensors
        return ctx.factor * g * w * (1 - y * y), None, g * y


def test_a_derived_backward_returns_none_in_the_place_of_a_number() -> None:
    derived = gradcheck.derive(NumberBetween, X, 3.0, X + 1)
    assert derived.backward.endswith("return dx, None, dw")
    fix = gradcheck.check(NumberBetween, X, 3.0, X + 1).fix
    assert fix is not None
    assert "None, g * ctx.factor * y" in fix.source_line


class Later(Function):
    @staticmethod
    def forward(x):
        return torch.exp(2 * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return 3 * g * y


def test_a_function_with_setup_context_is_repaired_and_not_rewritten() -> None:
    fix = gradcheck.check(Later, X).fix
    assert fix is not None
    assert fix.replacement == "2"
    derived = gradcheck.derive(Later, X)
    assert derived.refused.startswith("forward takes no context")
    assert fix.replacement in derived.diff


class Overwrites(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sigmoid(x)
        ctx.save_for_backward(y)
        return torch.exp(y)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        d = 2 * y
        d *= 1 - d / 2
        return g * d * torch.exp(d)


def test_an_edit_that_makes_backward_change_what_is_saved_is_none() -> None:
    fix = gradcheck.check(Overwrites, X).fix
    assert fix is None or fix.source_line != "d = y"


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


def test_a_function_of_arrays_beside_torch_is_derived_as_one() -> None:
    assert gradcheck.derive(softplus, np.ones(3)).backward == "e = np.exp(x)\nreturn dy / (1 + e) * e"


class Doubled(Function):
    @staticmethod
    def forward(ctx, x, bias):
        return 2 * (x + bias)

    @staticmethod
    def backward(ctx, g):
        return 2 * g, 2 * g.sum(0)


def test_the_line_of_a_forward_that_fails_is_the_users() -> None:
    derived = gradcheck.derive(Doubled, np.ones((3, 4)), np.ones(3))
    assert derived.refused.startswith("forward fails at x=3x4, bias=3: RuntimeError: ")
    line = Doubled.forward.__code__.co_firstlineno + 2
    assert re.search(rf"\(line {line} of \S*test_deriving\.py\)$", derived.refused)
