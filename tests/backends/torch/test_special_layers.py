"""Functions of torch with something special about them, each with the verdict that mathematics and torch give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.utils.checkpoint

import gradcheck
from gradcheck.result import Status
from gradcheck.support.foreign import type_name

from . import special_layers as layers

RANDOM = np.random.default_rng(3)
X, Y = RANDOM.standard_normal((2, 3, 4))
WEIGHT = np.abs(Y[0]) + 0.5
IMAGE = RANDOM.standard_normal((1, 2, 4, 4))
KERNEL = RANDOM.standard_normal((2, 2, 3, 3))
AT_ZERO = X.copy()
AT_ZERO[0, 1] = 0
TIED = X.copy()
TIED[1, 2] = TIED[1, 0]
COMPLEX = X + 1j * Y
LONG, V, PLACES = RANDOM.standard_normal(400), RANDOM.standard_normal(5), RANDOM.integers(0, 5, 400)
GRID = RANDOM.uniform(-0.9, 0.9, (1, 3, 3, 2))


class Special(NamedTuple):
    layer: Any
    inputs: tuple[Any, ...]
    verdict: str
    options: Mapping[str, Any] = MappingProxyType({})
    says: str = ""
    """A part of the causes, or of the line, that the result names."""


def float32(*arrays: Any) -> tuple[Any, ...]:
    return tuple(array.astype("float32") for array in arrays)


def recomputed(function: Callable[..., Any], reentrant: bool) -> Callable[..., Any]:
    return lambda x: torch.utils.checkpoint.checkpoint(function, x, use_reentrant=reentrant)


def gradient_by_func(layer: Any, x: Any) -> Any:
    return torch.func.grad(lambda q: layer.apply(q, 2.0).sum())(x)


def noisy(y: Any) -> Any:
    """Values off by up to 1e-10 of themselves, in each call by others, as sums are on many threads."""
    return y * (1 + 1e-10 * torch.from_numpy(RANDOM.random(y.shape)).to(y.dtype))


SECOND = {"order": 2}
BOTH = {"dtypes": ["float64", "float32"]}
HALVES = ("float64", "float32", "float16", "bfloat16")
SPECIAL: dict[str, Special] = {
    "kept intermediate": Special(layers.KeptIntermediate, (X,), "PASS"),
    "kept intermediate, twice": Special(layers.KeptIntermediate, (X,), "FAIL", SECOND, "3.0 * x"),
    "kept ratio, twice": Special(layers.KeptRatio, (X,), "FAIL", SECOND, "x / 2"),
    "numpy inside": Special(layers.Exp2Numpy, (X,), "PASS"),
    "numpy inside, wrong": Special(layers.Exp2NumpyBad, (X,), "FAIL"),
    "numpy inside, float32": Special(layers.Exp2Numpy, float32(X), "PASS"),
    "a spectrum by numpy": Special(layers.Spectrum, (X,), "PASS"),
    "convolution": Special(layers.Conv2d, (IMAGE, KERNEL), "PASS"),
    "convolution, float32": Special(layers.Conv2d, float32(IMAGE, KERNEL), "PASS"),
    "convolution, wrong tanh": Special(layers.Conv2dBad, (IMAGE, KERNEL), "FAIL", {}, "torch.tanh(y)"),
    "convolution, twice the weight": Special(layers.Conv2dBad2, (IMAGE, KERNEL), "FAIL", {}, "F.conv2d(x, w, "),
    "relu": Special(layers.Relu, (X,), "PASS"),
    "relu at 0": Special(layers.Relu, (AT_ZERO,), "KINK"),
    "a gradient that is None": Special(layers.NoneGrad, (X, Y), "FAIL", {}, "y: backward gives 0"),
    "a gradient of another shape": Special(layers.WrongShape, (X, Y), "FAIL", {}, "invalid gradient at index 0"),
    "too few gradients": Special(layers.WrongCount, (X, Y), "FAIL", {}, "expected 2, got 1"),
    "writes into the cotangent": Special(layers.MutatesGrad, (X, Y), "FAIL", {}, "writes into the incoming gradient"),
    "writes into what is saved": Special(layers.MutatesSaved, (X,), "FAIL", {}, "writes into x"),
    "a random backward": Special(layers.RandomBackward, (X, Y), "FAIL", {}, "two calls with the same cotangent"),
    "once_differentiable": Special(layers.OnceDiff, (X,), "PASS"),
    **{f"upcast, {d}": Special(layers.UpcastNorm, (X, WEIGHT), "PASS", {"dtypes": [d]}) for d in HALVES},
    **{f"upcast, {d}, wrong": Special(layers.UpcastNormBad, (X, WEIGHT), "FAIL", {"dtypes": [d]}) for d in HALVES},
    "a mask of its own generator": Special(layers.DropoutSeeded, (X,), "PASS"),
    "a fresh mask": Special(layers.Dropout, (X,), "PASS"),
    "a fresh mask, wrong": Special(layers.DropoutBad, (X,), "FAIL", {}, "mask"),
    "a view of the cotangent": Special(layers.FlatSine, (X,), "FAIL", {}, "(g.view(-1) * torch.cos"),
    "the memory of the cotangent": Special(layers.KernelSine, (X,), "FAIL", {}, "in another order in memory"),
    "a contiguous copy of the cotangent": Special(layers.ContiguousSine, (X,), "PASS"),
    "the need of each input": Special(layers.NeedsInputGrad, (X, X.T), "PASS"),
    "the need of another input": Special(layers.NeedOfAnotherInput, (X, X.T), "FAIL", {}, "where only w needs one"),
    "saved by need": Special(layers.SavedByNeed, (X, X.T), "FAIL", {}, "x.T @ g"),
    "straight through": Special(layers.StraightThrough, (X,), "FAIL", {}, "x.round()"),
    "straight through, declared": Special(layers.StraightThrough, (X,), "PASS", {"expect": "straight-through"}),
    "double backward by a Function": Special(layers.Nested, (X,), "PASS", SECOND),
    "double backward by a wrong Function": Special(layers.NestedBad, (X,), "FAIL", SECOND, "torch.cos(x)"),
    "a module": Special(layers.Module(), (X,), "PASS"),
    "autograd inside backward": Special(layers.Detached, (X,), "PASS"),
    "autograd inside backward, twice": Special(layers.Detached, (X,), "FAIL", SECOND),
    "an operation of torch.library": Special(layers.mysin, (X,), "PASS"),
    "a wrong operation of torch.library": Special(layers.mysin2, (X,), "FAIL", {}, "torch.sin(x)"),
    "sparse inside": Special(layers.Sparse, (X[0, :3], Y[:, :2]), "PASS"),
    ".item() inside": Special(layers.ItemScale, (X,), "PASS"),
    ".item() inside, wrong": Special(layers.ItemScaleBad, (X,), "FAIL"),
    "a function of torch": Special(lambda a: torch.nn.functional.gelu(a), (X,), "PASS", {}, "torch's own rules"),
    "views": Special(lambda a: layers.Relu.apply(a.t()).t()[1:], (X,), "PASS"),
    "checkpoint": Special(recomputed(lambda b: layers.Relu.apply(b) * 2, False), (X,), "PASS"),
    "checkpoint, reentrant": Special(recomputed(lambda b: layers.Relu.apply(b) * 2, True), (X,), "PASS"),
    "checkpoint, of a library": Special(layers.BackwardOnly, (X,), "PASS"),
    "checkpoint that sets a leaf's gradient": Special(layers.SetsLeaf, (X,), "FAIL"),
    "setup_context": Special(layers.SetupContext, (X, 3.0), "PASS"),
    "setup_context, wrong": Special(layers.SetupContextBad, (X, 3.0), "FAIL"),
    "needs_input_grad": Special(layers.NeedsInputGrad, (X, Y.T.copy()), "PASS"),
    "needs_input_grad, wrong": Special(layers.NeedsInputGradBad, (X, Y.T.copy()), "FAIL"),
    "mark_dirty": Special(lambda a: layers.InPlace.apply(a * 1), (X,), "PASS"),
    "mark_dirty, wrong": Special(lambda a: layers.InPlaceBad.apply(a * 1), (X,), "FAIL"),
    "an unmarked write": Special(lambda a: layers.InPlaceUnsaid.apply(a * 1), (X,), "FAIL", {}, "forward writes into"),
    "mark_non_differentiable": Special(layers.NonDifferentiable, (X,), "PASS"),
    "an output cut off": Special(lambda a: (a * a).detach(), (torch.tensor(X, requires_grad=True),), "FAIL"),
    "undefined gradients": Special(layers.Unmaterialised, (X,), "PASS"),
    "complex numbers": Special(layers.Complex, (COMPLEX,), "PASS"),
    "complex numbers, wrong": Special(layers.ComplexBad, (COMPLEX,), "FAIL"),
    "arguments that are no tensors": Special(layers.Options, (X, "sum", (1, 2)), "PASS"),
    "writes into views": Special(layers.WritesIntoViews, (X,), "PASS"),
    "writes into views, wrong": Special(layers.WritesIntoViewsBad, (X,), "FAIL"),
    "pooling": Special(layers.MaxPool, (IMAGE,), "PASS"),
    "pooling, a tie": Special(layers.MaxPool, (np.round(IMAGE),), "KINK"),
    "sorting": Special(layers.SortedSum, (X,), "PASS"),
    "sorting, a tie": Special(layers.SortedSum, (TIED,), "KINK"),
    "written unseen": Special(layers.WritesUnseen, (X,), "PASS"),
    "written unseen, wrong": Special(layers.WritesUnseenBad, (X,), "FAIL"),
    "a running mean": Special(layers.RunningMean, (X,), "PASS"),
    "a running mean, wrong": Special(layers.RunningMeanBad, (X,), "FAIL"),
    "out=": Special(layers.WrittenOut, (X,), "PASS"),
    "out=, wrong": Special(layers.WrittenOutBad, (X,), "FAIL", {}, "x.sin()"),
    "no gradient": Special(layers.Detached2, (X,), "FAIL"),
    "a parameter": Special(layers.Linear(layers.NeedsInputGrad), (X,), "PASS"),
    "a parameter, wrong": Special(layers.Linear(layers.NeedsGradWrongWeight), (X,), "FAIL", {}, "w"),
    "sums in any order": Special(layers.SegmentSum, (LONG, PLACES), "PASS", BOTH),
    "a backward that sums in any order": Special(layers.Pick, (V, PLACES), "PASS", BOTH),
    "a backward that sums in any order, wrong": Special(layers.PickBad, (V, PLACES), "FAIL"),
    "more noise than another order": Special(lambda a: noisy(layers.Relu.apply(a)), (X,), "FAIL", {}, "two calls"),
    "grid_sample": Special(layers.GridSample, (IMAGE, GRID), "PASS"),
    "grid_sample of a grid that each call draws": Special(
        lambda a: layers.GridSample.apply(a, torch.rand(1, 3, 3, 2, dtype=a.dtype)), (IMAGE,), "PASS", {}, "same random"
    ),
    "func.grad, wrong": Special(lambda a: gradient_by_func(layers.SetupContextBad, a), (X,), "FAIL"),
    "func.grad": Special(lambda a: gradient_by_func(layers.SetupContext, a), (X,), "PASS"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPECIAL)
def test_a_special_layer(name: str) -> None:
    case = SPECIAL[name]
    result = gradcheck.check(case.layer, *case.inputs, **case.options)
    said = [*result.marks, result.why, *(f"{d.text} {d.source_line} {d.inputs}" for d in result.diagnosis)]
    assert result.verdict is Status[case.verdict], said
    assert case.says in " ".join(said)


def test_a_gradient_of_once_differentiable_is_refused_in_torchs_words() -> None:
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with @once_differentiable"):
        gradcheck.check(layers.OnceDiff, X, order=2)


def test_a_backward_must_take_undefined_gradients() -> None:
    (cause,) = gradcheck.check(layers.UnmaterialisedBad, X).diagnosis
    assert cause.code == "GC136"
    assert "only out[0] takes part in the loss" in cause.text


NEVER_RAN: dict[str, tuple[Callable[[], Any], str]] = {
    "its own apply": (lambda: layers.OwnApply, "apply is overridden and does not call Function's apply"),
    "forward called directly": (lambda: lambda a: layers.StraightThrough.forward(None, a) * a, "called directly"),
    "under no_grad": (
        lambda: lambda a: no_grad(layers.Relu.apply, a) + a - a.detach(),
        "no gradient reaches its outputs",
    ),
    "another branch": (lambda: layers.Gate().eval(), ""),
}


def no_grad(function: Callable[..., Any], *given: Any) -> Any:
    with torch.no_grad():
        return function(*given)


@pytest.mark.parametrize("name", NEVER_RAN)
def test_a_backward_that_did_not_run_is_never_silently_green(name: str) -> None:
    make, reason = NEVER_RAN[name]
    result = gradcheck.check(make(), np.abs(X) + 0.1)
    if reason:
        assert result.verdict is not Status.PASS
        assert reason in " ".join([result.why, *(d.text for d in result.diagnosis)])
    else:
        assert any("did not run: eval mode" in mark for mark in result.marks)


def test_tensors_keep_whether_they_need_a_gradient() -> None:
    x = torch.tensor(X, requires_grad=True)
    assert gradcheck.check(layers.NeedsInputGrad, x, torch.tensor(Y.T.copy())).verdict is Status.PASS
    with pytest.raises(TypeError, match="Tensors with requires_grad=True"):
        gradcheck.check(layers.Relu, torch.tensor(X))


def test_parameters_and_tensors_are_as_before() -> None:
    module = layers.Linear(layers.NeedsInputGrad)
    before, x = module.w.detach().clone(), torch.tensor(X, requires_grad=True)
    gradcheck.assert_gradients(module, x)
    assert module.w.grad is None
    assert x.grad is None
    assert torch.equal(module.w, before)
    assert module.w.dtype is torch.float64
    assert "numpy" not in vars(torch.Tensor)
    assert type_name(torch.autograd.Function) == "FunctionMeta"


def test_a_class_of_modules_asks_for_an_instance() -> None:
    with pytest.raises(TypeError, match=r"class of an nn\.Module: pass an instance"):
        gradcheck.check(layers.Module, X)


def test_a_failure_is_an_assertion_with_the_panel() -> None:
    with pytest.raises(gradcheck.GradientMismatch, match="straight through"):
        gradcheck.assert_gradients(layers.StraightThrough, X)


def test_explore_finds_the_smallest_input() -> None:
    explored = gradcheck.explore(layers.Exp2NumpyBad, x="B T", seconds=5, examples=30)
    assert not explored
    assert explored.inputs is not None
    assert explored.inputs["x"].size <= 1
