"""Checking gradients from Python: a layer or function, its inputs, and what is wrong with its gradient."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from importlib import import_module
from math import prod
from numbers import Real
from typing import Any, TypedDict, Unpack, get_args

import numpy as np

from gradcheck.case.arguments import WorldOf, backend_of, tensor_function
from gradcheck.case.engine_twin import twin_of
from gradcheck.case.foreign_frameworks import refuse_layer
from gradcheck.case.function import leave_out_own_place
from gradcheck.case.gradient_check import (
    DTYPES,
    Effort,
    Expectation,
    Mode,
    Settings,
    as_expected,
    in_float32_if_it_must,
    looks,
    worst,
)
from gradcheck.case.layer import mode as in_mode
from gradcheck.case.of_arrays import function_of_arrays
from gradcheck.case.user_code import engine, import_anew, import_reference
from gradcheck.case.world_call import Declared, without_marks
from gradcheck.case.world_call import partial as partial
from gradcheck.case.world_call import replicated as replicated
from gradcheck.checking.verdict import Precision
from gradcheck.exploring.example_search import Search, checked_examples, nothing_checked, search
from gradcheck.exploring.examples import Example
from gradcheck.report.check_result import CheckResult
from gradcheck.result import Status
from gradcheck.spec.literals import MOST_RANKS, Stands
from gradcheck.spec.model import Axis
from gradcheck.strategies import arrays_of, inputs_from, words_by_input
from gradcheck.support.display_paths import count
from gradcheck.support.foreign import described
from pylayer.py_layer import as_releases

MOST_SEED = 2**32 - 1
WORDS = {
    "mode": get_args(Mode),
    "expect": get_args(Expectation),
    "effort": get_args(Effort),
    "precision": get_args(Precision),
    "each of dtypes": tuple(DTYPES),
    "outputs": ("split", "replicated"),
    "random": ("by-rank", "same"),
    "each axis of world": get_args(Axis),
}
"""The words that an option may be."""


def validate_options(
    order: Any, seed: Any, rtol: Any, points: Any, dtypes: Any, **words: Any
) -> None:
    """Accept the options of `check`.

    Raises:
        TypeError: one is of the wrong type, or `order` is neither 1 nor 2.
        ValueError: one has a value that it cannot have.
    """
    if whole_number("order", order, "1 or 2") not in (1, 2):
        raise TypeError(f"order must be 1 or 2, not {order!r}")
    for name, word in words.items():
        one_of(name, word)
    if not 0 <= whole_number("seed", seed, "a whole number from 0 to 2**32 − 1") <= MOST_SEED:
        raise ValueError(f"seed must be a whole number from 0 to 2**32 − 1, not {seed!r}")
    if whole_number("points", points, "a whole number of at least 1") < 1:
        raise ValueError(f"points must be a whole number of at least 1, not {points!r}")
    if rtol is not None:
        is_number = isinstance(rtol, Real) and not isinstance(rtol, bool)
        if not is_number or not 0 <= float(rtol) < 1:
            text = f"rtol must be a number of at least 0 and below 1, or None, not {rtol!r}"
            raise ValueError(text) if is_number else TypeError(text)
    if isinstance(dtypes, str) or not isinstance(dtypes, Sequence):
        raise TypeError(
            f"dtypes must be a list of names such as ['float64', 'float32'], not {dtypes!r}"
        )
    for dtype in dtypes:
        one_of("each of dtypes", dtype)


def declared_world(
    world: Any, outputs: Any, random: Any, order: int, inputs: Sequence[Any]
) -> WorldOf | None:
    """What is declared of a world, once it is known what its inputs stand for; None without a world.

    Raises:
        TypeError: an option is of the wrong type, or one that belongs to a world is given without it.
        ValueError: an option has a value that it cannot have.
    """
    words: Any = [outputs] if isinstance(outputs, str) else outputs
    if not isinstance(words, Sequence):
        raise TypeError(
            f"outputs must be 'split' or 'replicated', or a list of these words, not {outputs!r}"
        )
    for word in words:
        one_of("outputs", word)
    one_of("random", random)
    if world is None:
        marked = dict[str, Stands]()
        without_marks("", list(inputs), marked)
        if marked or outputs != "split" or random != "by-rank":
            raise TypeError(
                "replicated, partial, outputs and random are for a world of ranks: give world=4, for example"
            )
        return None
    degrees = world if isinstance(world, Mapping) else {}
    for axis in degrees:
        one_of("each axis of world", axis)
    sizes = list(degrees.values()) if degrees else [world]
    numbers = [
        whole_number("world", size, "a number of ranks, or of ranks by axis") for size in sizes
    ]
    for number in (*numbers, prod(numbers)):
        if not 1 <= number <= MOST_RANKS:
            raise ValueError(f"world must be 1 to {MOST_RANKS} ranks, not {number!r}")
    if order == 2:
        raise ValueError(
            "order must be 1 in a world of ranks: second derivatives are not checked there"
        )
    return lambda stands: Declared(prod(sizes), stands, tuple(words), degrees, random == "same")


def whole_number(name: str, value: Any, allowed: str) -> int:
    """A whole number that is no boolean. Raises TypeError."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name} must be {allowed}, not {value!r}")


def one_of(name: str, value: Any) -> None:
    """Accept one of the words that an option may be. Raises TypeError and ValueError."""
    allowed = WORDS[name]
    if not isinstance(value, str) or value not in allowed:
        text = (
            f"{name} must be {', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}, not {value!r}"
        )
        raise ValueError(text) if isinstance(value, str) else TypeError(text)


MOST_LISTED_BY_CHECK = 10_000
"""The most wrong entries of one input that a result lists."""


class GradientMismatch(AssertionError):  # noqa: N818 - it is what was found, not an error of the checker
    """A gradient is wrong, or could not be told; `result` says all there is to say."""

    def __init__(self, result: CheckResult) -> None:
        super().__init__(str(result))
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        """As exceptions are pickled, but made anew of the result, not of the message."""
        return type(self), (self.result,), self.__dict__


def check(
    layer_or_function: Any,
    *inputs: Any,
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
    world: int | Mapping[str, int] | None = None,
    outputs: str | Sequence[str] = "split",
    random: str = "by-rank",
) -> CheckResult:
    """The verdict on the gradients of a layer or function.

    Works on layers and functions of the bundled engine (`pylayer`) and on those of an installed Paddle.

    Args:
        layer_or_function: a PyLayer class, whose `apply` is called, or any function of Tensors: an ``nn.Layer``, a
            method, a lambda. A text such as ``"package.module:Layer"`` names one to import, from the current folder or
            the project's root; where no Paddle is installed it gets the bundled engine as its ``paddle``.
        inputs: its arguments in order. NumPy arrays, and NumPy's floating scalars, become Tensors that need a gradient;
            Tensors keep their stop_gradient; so do those in lists, tuples and dicts, each with a name of its own,
            ``s[0]``. Anything else, such as a plain number, is passed on as it is.
        backward: the gradients written by hand, where `layer_or_function` is a function of NumPy arrays:
            ``backward(*arrays, *output_gradients)`` returns a gradient per array, None for none.
        order: 2 to check the derivative of the gradient as well, if the first is right.
        mode: ``auto``, ``probe`` or ``full``; see `gradcheck.case.gradient_check.check_gradient`.
        seed: of the random directions, cotangents and points; the same seed gives the same result.
        rtol: widens the error bars, relative to the largest entry of an input's gradient; at least 0 and below 1.
        points: how many points are looked at: the given one, then others around it, every element multiplied by a
            random factor between 1/2 and 2.
        dtypes: the dtypes to look at in turn, for example ``["float64", "float32"]``, in place of the inputs' own.
        expect: what backward is. ``matches``: the derivative. ``differs``: anything else, which must be found.
            ``straight-through``: the cotangent unchanged, of a function in steps. ``zero``.
        effort: ``usual`` spends about ten times the check itself on naming what is wrong; ``full`` names every entry.
        precision: ``loose`` lets a backward pass that is right but loses digits, such as one that computes in float32
            in a layer of float64; the result is marked.
        world: for a layer that talks to other ranks (`paddle.distributed`): how many ranks it runs on, or the ranks
            along the axes of fleet's topology, such as ``{"mp": 4}``. Arrays then hold the values of all ranks, along a
            first axis of that size, unless they are marked by `gradcheck.replicated` or `gradcheck.partial`.
        outputs: in a world, what the outputs stand for: ``split``, each rank's own, or ``replicated``, the same on all
            ranks; one word, or one for each.
        random: in a world, whether ranks draw their random numbers ``by-rank``, or all the ``same``.

    Returns:
        Its `verdict` is PASS, FAIL, KINK or INCONCLUSIVE; its truth is whether that is PASS or KINK. `wrong` lists the
        wrong entries, `diagnosis` the causes. Of several points and dtypes it is the worst found, and `where` says at
        which. Printed it is the panel of the command line.

    Raises:
        TypeError: no input needs a gradient, or an option is of the wrong type; or the layer, or an argument, is of
            another framework, such as PyTorch: the message has the line that checks it by ``backward=``.
        ValueError: an option has a value that it cannot have.
        Exception: whatever the layer raises, except for gradients that Paddle cannot take (GC137).
    """
    words = {"mode": mode, "expect": expect, "effort": effort, "precision": precision}
    validate_options(order, seed, rtol, points, dtypes, **words)
    declared = declared_world(world, outputs, random, order, inputs)
    reference = layer_or_function if isinstance(layer_or_function, str) else None
    if reference is not None:
        layer_or_function = imported(reference, import_reference)
    if backward is None:
        refuse_layer(layer_or_function)
    backend = backend_of(layer_or_function, inputs) if backward is None else backend_of(None, ())
    if backward is not None:
        layer_or_function = function_of_arrays(backend, layer_or_function, backward)
    anew = (lambda: imported(reference, import_anew)) if reference is not None else None
    settings = Settings(seed, rtol, mode, order, MOST_LISTED_BY_CHECK, effort, precision)
    try:
        with ExitStack() as stack:
            # a layer of Paddle's is computed again on the engine, which has a mode of its own
            for paddle in (backend.paddle, import_module("pylayer.paddle")):
                stack.enter_context(in_mode(paddle, static=False))
            function = tensor_function(backend, layer_or_function, inputs, declared, anew)
            stack.enter_context(closing(function))
            if expect in ("straight-through", "zero"):  # that is said of the inputs alone
                function.close_over({})
            if backend.name == "paddle":
                function.twin = twin_of(function, layer_or_function, inputs, declared)
            stack.enter_context(np.errstate(all="ignore"))
            stack.enter_context(as_releases())
            looked = looks(function, points, [str(dtype) for dtype in dtypes], seed)
            found = worst(
                looked,
                lambda at: in_float32_if_it_must(at, lambda f: as_expected(f, settings, expect)),
            )
    except Exception as error:
        leave_out_own_place(error)
        if isinstance(error, TypeError) and "__array_ufunc__" in str(error) and backward is None:
            error.add_note(
                "a function of NumPy arrays is checked with the gradients written for it: backward=…"
            )
        raise
    return CheckResult.of(found)


def imported(reference: str, how: Callable[[str], Any]) -> Any:
    """What a reference names; `how` it is imported."""
    with engine():
        return how(reference)


class Options(TypedDict, total=False):
    """Those of `check`."""

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
    world: int | Mapping[str, int] | None
    outputs: str | Sequence[str]
    random: str


def assert_gradients(
    layer_or_function: Any, *inputs: Any, **options: Unpack[Options]
) -> CheckResult:
    """As `check`, for tests.

    Raises:
        GradientMismatch: the verdict is FAIL or INCONCLUSIVE. The message is the panel that the command line shows.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    result = check(layer_or_function, *inputs, **options)
    if not result:
        raise GradientMismatch(result)
    return result


class Explored:
    """What `explore` found.

    Its truth is whether some example had a verdict and none was wrong. `inputs` are the smallest arrays at which the
    gradient is wrong, by name, and `result` the check there; both None if there are none. `tried` is how many examples
    there were, `checked` how many of them had a verdict. `reasons` are why others had none, each with the first example
    of which it was said.
    """

    def __init__(self, search: Search, result: CheckResult | None) -> None:
        self.tried, self.counts, self.result = search.tried, dict(search.counts), result
        self.checked = checked_examples(search)
        self.reasons = {said: str(example) for said, example in search.reasons.items()}
        self.inputs = None if search.smallest is None else arrays_of(search.smallest)
        self.where = "" if search.smallest is None else str(search.smallest)
        self._undecided = nothing_checked(search)

    def __bool__(self) -> bool:
        return self.inputs is None and self.checked > 0

    def __repr__(self) -> str:
        if self.result is not None:
            return f"wrong at {self.where}: {self.result.said()}"
        if not self.checked:
            return self._undecided
        others = (
            f", of which {self.tried - self.checked} had no verdict"
            if self.tried > self.checked
            else ""
        )
        return f"nothing wrong in {count(self.tried, 'example')}{others}"

    def __str__(self) -> str:
        return repr(self) if self.result is None else f"wrong at {self.where}\n{self.result}"


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
        layer_or_function: as of `check`.
        inputs: by argument, in order, its shape, such as ``{"x": "B T C", "w": "C"}``; see
            `gradcheck.strategies.inputs`.
        seconds, examples: how long to look, and at how many examples at most.
        seed: of what is drawn.
        dtypes: those of floating inputs that name none.
        keywords: the inputs once more, in place of a dict: ``x="B T C", w="C"``.

    Returns:
        It is true if some example had a verdict and none was wrong.

    Raises:
        ImportError: Hypothesis is not installed: ``pip install "gradcheck[explore]"``.
        ValueError: a text describes no input, or an option has a value that it cannot have.
        TypeError: there are no inputs, one stands where an option belongs, or an option is of the wrong type.
    """
    refuse_layer(layer_or_function)
    options = {"seconds": seconds, "examples": examples, "seed": seed, "dtypes": dtypes}
    words = words_by_input(inputs_from("explore(layer, ", inputs, keywords, options))
    validate_options(1, seed, None, 1, dtypes)
    if whole_number("examples", examples, "a whole number of at least 1") < 1:
        raise ValueError(f"examples must be a whole number of at least 1, not {examples!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        raise TypeError(f"seconds must be a number, not {seconds!r}")

    def at(example: Example) -> CheckResult:
        return check(layer_or_function, *arrays_of(example).values(), seed=seed)

    def look(example: Example) -> tuple[Status, str]:
        try:
            found = at(example)
        except Exception as error:  # of the layer, at these inputs
            return Status.ERROR, described(error)
        return found.verdict, found.said()

    found = search(
        look,
        words,
        seconds=seconds,
        examples=examples,
        seed=seed,
        dtypes=dtypes,
        layouts=("contiguous",),
    )
    return Explored(found, None if found.smallest is None else at(found.smallest))
