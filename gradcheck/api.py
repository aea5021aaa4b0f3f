"""The Python API: `check`, `assert_gradients`, `derive` and `explore`, for a layer or function and
its inputs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from math import inf, nextafter, prod
from numbers import Integral, Real
from typing import Any, Never, TypedDict, Unpack, get_args

import numpy as np

from gradcheck.case.arguments import WorldOf, backend_of, tensor_function
from gradcheck.case.broken_contracts import drop_library_place
from gradcheck.case.engine_twin import twin_of
from gradcheck.case.gradient_check import (
    DTYPES,
    Effort,
    Expectation,
    Mode,
    Settings,
    as_expected,
    evaluation_points,
    in_float32_if_it_must,
    worst,
)
from gradcheck.case.of_arrays import adapt_primitive, function_of_arrays, without_backward
from gradcheck.case.static_layer import mode as in_mode
from gradcheck.case.user_code import engine, import_anew, import_reference
from gradcheck.case.world import WorldArgument, WorldDeclaration, without_marks
from gradcheck.case.world import partial as partial
from gradcheck.case.world import replicated as replicated
from gradcheck.checking.verdict import Precision
from gradcheck.deriving.call import CallWorld, on_engine
from gradcheck.deriving.derived import Derived, derive_checked
from gradcheck.exploring.example_search import Search, SearchSettings, nothing_checked, search
from gradcheck.exploring.examples import Example
from gradcheck.report.check_result import CheckResult
from gradcheck.result import MOST_LISTED, Status
from gradcheck.spec.literals import MOST_RANKS, OutputPlacement, Placement
from gradcheck.spec.model import Axis, Random
from gradcheck.strategies import arrays_of, inputs_from
from gradcheck.support.display_paths import count
from gradcheck.support.foreign import describe_error
from gradcheck.support.suggest import hint
from pylayer.layer.py_layer import as_releases

MOST_SEED = 2**32 - 1
WORDS = {
    "mode": get_args(Mode),
    "expect": get_args(Expectation),
    "effort": get_args(Effort),
    "precision": get_args(Precision),
    "each of dtypes": tuple(DTYPES),
    "outputs": get_args(OutputPlacement),
    "random": get_args(Random),
    "each axis of world": get_args(Axis),
}
"""Allowed words of each option that takes one."""


def require_word(name: str, value: Any) -> None:
    """Require one of an option's allowed words. Raises TypeError, ValueError."""
    if isinstance(value, str) and value in WORDS[name]:  # `in` fails for an array
        return
    *words, last = WORDS[name]
    text = f"{name} must be {', '.join(map(repr, words))} or {last!r}, not {value!r}"
    if not isinstance(value, str):
        raise TypeError(text)
    raise ValueError(text)


def require_words(name: str, value: Any, each: str, example: str) -> None:
    """Require a list of an option's allowed words. Raises TypeError, ValueError."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name} must be a list of {example}, not {value!r}")
    for word in value:
        require_word(each, word)


def require_integer(
    name: str, value: Any, allowed: str, least: float, most: float = inf, kind: Any = Integral
) -> None:
    """Require a number within limits that is not a boolean. Raises TypeError, ValueError."""
    text = f"{name} must be {allowed}, not {value!r}"
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(text)
    if not least <= value <= most:
        raise ValueError(text)


def require_share(name: str, value: Any, or_else: str = "") -> None:
    """Require a fraction: at least 0 and below 1. Raises TypeError, ValueError."""
    allowed = f"a number of at least 0 and below 1{or_else}"
    require_integer(name, value, allowed, 0, nextafter(1, 0), kind=Real)


def require_seed(seed: Any) -> None:
    """Require a seed. Raises TypeError, ValueError."""
    require_integer("seed", seed, "a whole number from 0 to 2**32 − 1", 0, MOST_SEED)


def require_dtypes(dtypes: Any) -> None:
    """Require a list of names of dtypes. Raises TypeError, ValueError."""
    example = "names such as ['float64', 'float32']"
    require_words("dtypes", dtypes, "each of dtypes", example)


NO_STEP = "steps are chosen for every entry, each with an error bound"
OTHERS_OPTIONS = {
    **dict.fromkeys(("eps", "epsilon", "delta", "h", "step"), f"{NO_STEP}: leave it out"),
    **dict.fromkeys(
        ("atol", "tol", "tolerance"),
        "no absolute tolerance decides; rtol=1e-3 widens the bounds relative to the largest entry",
    ),
    **dict.fromkeys(
        ("grad", "grads", "gradient", "vjp", "jac"),
        "backward= takes the gradients that are written by hand for a function of NumPy arrays",
    ),
    "raise_exception": "assert_gradients raises, check returns the result",
    "nondet_tol": "nondet=1e-6 lets identical runs differ by that share of the largest entry",
    "fast_mode": 'mode="probe" compares only projections',
    "dtype": 'dtypes=["float32"] checks in other dtypes than the inputs\'',
}
"""Options of other gradient checkers, with the equivalent here."""


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Raise TypeError for an unknown option, naming the option to use instead."""
    for name in options:
        if name in OTHERS_OPTIONS:
            raise TypeError(f"there is no option {name!r}: {OTHERS_OPTIONS[name]}")
        known = list(Options.__annotations__)
        near = hint(name, known, f"the options are {', '.join(known)}")
        raise TypeError(
            f"there is no option {name!r}; {near} "
            f"(an argument of the layer is passed as kwargs={{{name!r}: …}})"
        )


def require_keywords(kwargs: Any, backward: Any) -> Mapping[str, Any]:
    """Return the keywords of a call. Raises TypeError: they are not a dict, or cannot be passed."""
    if kwargs is None:
        return {}
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise TypeError(f"kwargs must be a dict such as {{'axis': -1}}, not {kwargs!r}")
    if kwargs and backward is not None:
        raise TypeError("kwargs are for layers: with backward=, pass all arguments in order")
    return kwargs


def declared_world(
    world: Any, outputs: Any, random: Any, order: int, inputs: Sequence[Any]
) -> WorldOf | None:
    """Return a function from the placement of the inputs to the declaration of the world; None
    without a world.

    Raises:
        TypeError: an option is of the wrong type, or needs a world that is not given.
        ValueError: an option has a value that it cannot have.
    """
    words: Any = [outputs] if isinstance(outputs, str) else outputs
    require_words("outputs", words, "outputs", "the words 'split' and 'replicated', or one of them")
    require_word("random", random)
    if world is None:
        marked = dict[str, Placement]()
        without_marks("", list(inputs), marked)
        if marked or outputs != "split" or random != "by-rank":
            raise TypeError(
                "replicated, partial, outputs and random are for a world of ranks: give world=4, "
                "for example"
            )
        return None
    degrees = world if isinstance(world, Mapping) else {}
    for axis in degrees:
        require_word("each axis of world", axis)
    sizes = list(degrees.values()) or [world]
    for size in sizes:
        require_integer("world", size, "a number of ranks, or of ranks by axis", 1)
    ranks = prod(sizes)
    require_integer("world", ranks, f"1 to {MOST_RANKS} ranks", 1, MOST_RANKS)
    if order == 2:
        raise ValueError(
            "order must be 1 in a world of ranks: second derivatives are not checked there"
        )
    return lambda placements: WorldDeclaration(
        ranks, placements, tuple(words), degrees, random == "same"
    )


class GradientMismatch(AssertionError):  # noqa: N818 - a finding, not an error of the checker
    """A gradient is wrong or undecided; `result` has the details."""

    def __init__(self, result: CheckResult) -> None:
        super().__init__(str(result))
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the result: by default an exception is rebuilt from its message."""
        return type(self), (self.result,), self.__dict__


def check(
    layer_or_function: Any,
    *inputs: Any,
    kwargs: Mapping[str, Any] | None = None,
    backward: Callable[..., Any] | None = None,
    order: int = 1,
    mode: Mode = "auto",
    seed: int = 0,
    rtol: float | None = None,
    points: int = 1,
    dtypes: Sequence[str] = (),
    expect: Expectation = "matches",
    effort: Effort = "usual",
    precision: Precision = "strict",
    nondet: float = 0.0,
    world: int | Mapping[str, int] | None = None,
    outputs: str | Sequence[str] = "split",
    random: str = "by-rank",
    **unknown: Never,
) -> CheckResult:
    """The verdict on the gradients of a layer or function.

    Works on layers and functions of the bundled engine (`pylayer`), and on those of an installed
    Paddle, PyTorch, JAX or HIPS autograd.

    Args:
        layer_or_function: a PyLayer or Function class, whose `apply` is called, or any function of
            Tensors: a module, a method, a lambda. If its code names no framework, the Tensors among
            the inputs determine it. A text such as ``"package.module:Layer"`` names one to import,
            from the current folder or the project's root; where no Paddle is installed it gets the
            bundled engine as its ``paddle``.
        inputs: its arguments in order. NumPy arrays, and NumPy's floating scalars, become Tensors
            that need a gradient; Tensors keep their stop_gradient; so do those in lists, tuples and
            dicts, each with a name such as ``s[0]``. Anything else, such as a plain number, is
            passed on unchanged.
        kwargs: arguments by name, such as ``{"residual": r, "axis": -1}``; arrays among them are
            inputs, under these names.
        backward: the gradients written by hand, where `layer_or_function` is a function of NumPy
            arrays: ``backward(*arrays, *output_gradients)`` returns a gradient per array, None for
            none.
        order: 2 to check the derivative of the gradient as well, if the first is right.
        mode: ``auto``, ``probe`` or ``full``; see `gradcheck.case.gradient_check.check_gradient`.
        seed: of the random directions, cotangents and points; the same seed gives the same result.
        rtol: widens the error bars, relative to the largest entry of an input's gradient; at least
            0 and below 1.
        points: how many points are checked: the given one, then others around it, every element
            multiplied by a random factor between 1/2 and 2.
        dtypes: the dtypes to check in turn, for example ``["float64", "float32"]``, in place of
            the inputs' own.
        expect: what backward is meant to be. ``matches``: the derivative. ``differs``: anything
            else, which must be found. ``straight-through``: the cotangent unchanged, for a step
            function. ``zero``.
        effort: ``usual`` spends up to ten times the cost of the check on diagnosing a failure,
            lists 20 wrong entries of each input, and searches for an edit that repairs backward;
            ``least`` skips that search; ``full`` diagnoses and lists every entry.
        precision: ``loose`` accepts a backward that is right but loses digits, such as one that
            computes in float32 in a float64 layer; the result is marked.
        nondet: how far the results of two identical runs may differ, relative to the largest entry
            of an output or gradient, because sums are taken in another order each time; it widens
            the error bounds by as much. At least 0 and below 1; by default they must be the same.
        world: for a layer that communicates with other ranks (`paddle.distributed`): how many ranks
            it runs on, or the ranks along the axes of fleet's topology, such as ``{"mp": 4}``.
            Arrays then hold the values of all ranks, along a first axis of that size, unless they
            are marked by `gradcheck.replicated` or `gradcheck.partial`.
        outputs: in a world, how the outputs are distributed: ``split``, each rank's own, or
            ``replicated``, the same on all ranks; one word, or one for each.
        random: in a world, whether ranks draw their random numbers ``by-rank``, or all the
            ``same``.

    Returns:
        Its `verdict` is PASS, FAIL, KINK or INCONCLUSIVE; it is true for PASS and KINK. `wrong`
        lists the wrong entries, `diagnosis` the causes. For several points and dtypes it is the
        worst result, with its point and dtype in `where`. Printed it is the panel of the command
        line.

    Raises:
        TypeError: no input needs a gradient, or an option is of the wrong type; or the layer, or an
            argument, is of another framework, such as PyTorch: the message has the line that checks
            it by ``backward=``.
        ValueError: an option has a value that it cannot have.
        Exception: whatever the layer raises, except for gradients that Paddle cannot take (GC137).
    """
    refuse_unknown(unknown)
    keywords = require_keywords(kwargs, backward)
    require_integer("order", order, "1 or 2", 1, 2)
    require_seed(seed)
    require_integer("points", points, "a whole number of at least 1", 1)
    require_dtypes(dtypes)
    if rtol is not None:
        require_share("rtol", rtol, ", or None")
    require_share("nondet", nondet)
    words = {"mode": mode, "expect": expect, "effort": effort, "precision": precision}
    for name, word in words.items():
        require_word(name, word)
    arguments = [*inputs, *keywords.values()]
    declared = declared_world(world, outputs, random, order, arguments)
    anew = None
    if isinstance(layer_or_function, str):
        anew = functools.partial(import_with_engine, layer_or_function, import_anew)
        layer_or_function = import_with_engine(layer_or_function, import_reference)
    if backward is None:
        backend = backend_of(layer_or_function, arguments)
        layer_or_function = adapt_primitive(backend, layer_or_function)
    else:
        backend = backend_of(None, ())
        layer_or_function = function_of_arrays(backend, layer_or_function, backward)
    listed = sys.maxsize if effort == "full" else MOST_LISTED
    settings = Settings(seed, rtol, mode, order, listed, effort, precision, nondet)
    try:
        # A Paddle layer is computed again on the engine, which has a separate mode.
        engine_paddle = import_module("pylayer.paddle")
        with (
            in_mode(backend.paddle or engine_paddle, static=False),
            in_mode(engine_paddle, static=False),
            backend.session(),
            closing(
                tensor_function(backend, layer_or_function, inputs, declared, anew, keywords)
            ) as function,
            np.errstate(all="ignore"),
            as_releases(),
        ):
            if expect in ("straight-through", "zero"):  # a claim about the inputs only
                function.close_over({})
            if backend.translates:
                function.twin = twin_of(function, layer_or_function, inputs, declared, keywords)
            summary = worst(
                evaluation_points(function, points, [str(dtype) for dtype in dtypes], seed),
                lambda evaluated: in_float32_if_it_must(
                    evaluated, lambda f: as_expected(f, settings, expect)
                ),
            )
    except Exception as error:
        drop_library_place(error)
        if hint := without_backward(str(error)):
            error.add_note(hint)
        raise
    return CheckResult.of(summary)


def derive(
    layer_or_function: Any,
    *inputs: Any,
    name: str = "",
    order: int = 1,
    world: int | None = None,
    outputs: str | Sequence[str] = "split",
    **options: Any,
) -> Derived:
    """Derive the backward of a layer's forward, or of a function, as source, and check it.

    The forward is traced at the inputs, and the rules of its operations give the gradients. The
    code is written with forward's own names, and checked by `check` at the given sizes and two
    others, in float64 and float32; it is returned only if it passes.

    Args:
        layer_or_function: a PyLayer class of the bundled engine, a Function of torch, a function of
            the engine's Tensors or of NumPy arrays, or a text such as ``"package.module:Layer"``.
        inputs: its arguments in order, as `check` takes them.
        name: of the class for a function, or of the backward for one of arrays; made of the
            function's name unless given.
        order: 2 for a backward that saves only inputs, so that its own derivative is right too.
        world: the number of ranks, for a layer that communicates with other ranks. The layer is
            traced and checked on these, and checked again on another number of ranks. As in
            `check`, arrays hold the values of all ranks unless they are marked, and `outputs` says
            how the outputs are distributed.
        outputs: see `world`.
        options: further arguments of forward, by name.

    Returns:
        Its `code` is the class, its `diff` the change of the user's file. It is true if there is
        code; otherwise `refused` has the reason.

    Raises:
        ValueError: `order` is neither 1 nor 2, or an option of the world has a wrong value.
        TypeError: an option is of the wrong type, or needs a world that is not given.
        ImportError: nothing of that name can be imported.
    """
    require_integer("order", order, "1 or 2", 1, 2)
    declared_world(world, outputs, "by-rank", order, [*inputs, *options.values()])
    words = [outputs] if isinstance(outputs, str) else outputs
    ranks = None if world is None else CallWorld(world, words, placement_of, WorldArgument)
    if isinstance(layer_or_function, str):
        layer_or_function = import_with_engine(layer_or_function, import_reference)
    with np.errstate(all="ignore"), as_releases():
        backend = backend_of(layer_or_function, inputs, is_named=True)
        played = on_engine(backend, layer_or_function, inputs)
        layer, arguments = played or (layer_or_function, inputs)
        return derive_checked((layer, arguments, options), check, name, order, ranks)


def placement_of(value: Any) -> tuple[Any, Placement]:
    """The value of an argument in a world, without its mark, and the placement."""
    return (value.value, value.placement) if isinstance(value, WorldArgument) else (value, "split")


def import_with_engine(reference: str, load: Callable[[str], Any]) -> Any:
    """Import the object that a reference names, with the function `load`."""
    with engine():
        return load(reference)


class Options(TypedDict, total=False):
    """Options of `check`."""

    kwargs: Mapping[str, Any] | None
    backward: Callable[..., Any] | None
    order: int
    mode: Mode
    seed: int
    rtol: float | None
    points: int
    dtypes: Sequence[str]
    expect: Expectation
    effort: Effort
    precision: Precision
    nondet: float
    world: int | Mapping[str, int] | None
    outputs: str | Sequence[str]
    random: str


def assert_gradients(
    layer_or_function: Any, *inputs: Any, **options: Unpack[Options]
) -> CheckResult:
    """For tests: check like `check`, and raise if a gradient is wrong or undecided.

    Raises:
        GradientMismatch: the verdict is FAIL or INCONCLUSIVE. The message is the panel that the
            command line shows.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    result = check(layer_or_function, *inputs, **options)
    if not result:
        raise GradientMismatch(result)
    return result


@dataclass(frozen=True, repr=False)
class Explored:
    """The result of `explore`: it is true if some example had a verdict and none was wrong."""

    tried: int
    """The number of examples."""
    checked: int
    """The number of examples that had a verdict."""
    counts: Mapping[Status, int]
    """The number of examples with each outcome."""
    reasons: Mapping[str, str]
    """Reasons why examples had no verdict, each with the first such example."""
    inputs: Mapping[str, np.ndarray[Any, Any]] | None
    """The smallest arrays at which the gradient is wrong, by name; None if there are none."""
    where: str
    """Sizes, dtypes, layouts and kinds of values of these arrays."""
    result: CheckResult | None
    """The check at these inputs."""
    message: str
    """The outcome in one line."""

    def __bool__(self) -> bool:
        return self.inputs is None and self.checked > 0

    def __repr__(self) -> str:
        return self.message

    def __str__(self) -> str:
        return f"wrong at {self.where}\n{self.result}" if self.result else self.message


def explore(
    layer_or_function: Any,
    /,
    inputs: Mapping[str, str] | None = None,
    *,
    seconds: float = 30.0,
    examples: int = 10_000,
    seed: int = 0,
    dtypes: Sequence[str] = ("float64", "float32"),
    **keywords: str,
) -> Explored:
    """Look for inputs at which a gradient is wrong, and shrink them to the smallest.

    Args:
        layer_or_function: as in `check`.
        inputs: by argument, in order, its shape, such as ``{"x": "B T C", "w": "C"}``; see
            `gradcheck.strategies.inputs`.
        seconds, examples: the limits of the search in time and in examples.
        seed: of the random numbers.
        dtypes: for floating inputs without a dtype.
        keywords: the inputs as keyword arguments, in place of a dict: ``x="B T C", w="C"``.

    Returns:
        It is true if some example had a verdict and none was wrong.

    Raises:
        ImportError: Hypothesis is not installed: ``pip install hypothesis``.
        ValueError: a text describes no input, or an option has a value that it cannot have.
        TypeError: no input is given, an input takes the place of an option, or an option is of the
            wrong type.
    """
    backend_of(layer_or_function, ())  # raises for a framework that has none
    options = {"seconds": seconds, "examples": examples, "seed": seed, "dtypes": dtypes}
    wanted = inputs_from("explore(layer, ", inputs, keywords, options)
    require_seed(seed)
    require_dtypes(dtypes)
    require_integer("examples", examples, "a whole number of at least 1", 1)
    require_integer("seconds", seconds, "a number", -inf, kind=Real)

    def check_at(example: Example) -> CheckResult:
        return check(layer_or_function, *arrays_of(example).values(), seed=seed)

    def outcome(example: Example) -> tuple[Status, str]:
        try:
            result = check_at(example)
        except Exception as error:  # of the layer, at these inputs
            return Status.ERROR, describe_error(error)
        return result.verdict, result.summary()

    settings = SearchSettings(seconds, examples, seed, dtypes, layouts=("contiguous",))
    return summarise_search(search(outcome, wanted, settings), check_at)


def summarise_search(search: Search, check_at: Callable[[Example], CheckResult]) -> Explored:
    """Return the result of a search, with the check of the smallest wrong example."""
    smallest, result = search.smallest, None
    unchecked = search.tried - search.checked
    message = f"nothing wrong in {count(search.tried, 'example')}"
    if unchecked:
        message += f", of which {unchecked} had no verdict"
    if not search.checked:
        message = nothing_checked(search)
    if smallest is not None:
        result = check_at(smallest)
        message = f"wrong at {smallest}: {result.summary()}"
    return Explored(
        tried=search.tried,
        checked=search.checked,
        counts=dict(search.counts),
        reasons={reason: str(example) for reason, example in search.reasons.items()},
        inputs=arrays_of(smallest) if smallest is not None else None,
        where=str(smallest or ""),
        result=result,
        message=message,
    )
