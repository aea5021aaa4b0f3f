"""The search: Hypothesis draws examples and shrinks a failing one; then its values are simplified
number by number.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, get_args

import numpy as np

from gradcheck.checking.precision import NumpyArray
from gradcheck.exploring.examples import (
    KINDS_OF_VALUES,
    SIZES,
    Example,
    Inputs,
    example_strategy,
    is_drawn,
    is_floating,
    letters_of,
)
from gradcheck.result import Status
from gradcheck.spec.literals import Layout
from gradcheck.support.display_paths import count

SHRINKING = 0.4
"""Share of the time reserved for shrinking when a failure is found late."""


class FoundError(Exception):
    """An example fails."""


NOT_INSTALLED = "explore draws with Hypothesis, which is not installed: pip install hypothesis"
"""The message of `search`'s ImportError."""
DECIDED = (Status.PASS, Status.KINK, Status.FAIL)
"""Statuses of examples whose gradient was checked. All others are reasons why it was not."""
CheckExample = Callable[[Example], tuple[Status, str]]
"""A function that checks a layer at an example, and returns the status and a line of text."""


@dataclass(frozen=True)
class SearchSettings:
    """The limits of a search, and the choices from which it draws."""

    seconds: float
    examples: int
    """The most examples to try before one fails."""
    seed: int
    dtypes: Sequence[str] = ("float64", "float32")
    """The dtypes for floating inputs that specify none."""
    layouts: Sequence[str] = get_args(Layout)
    """The layouts of inputs with several axes."""
    on_example: Callable[[Search], None] = lambda search: None
    """A function that is called with the search after every example."""


@dataclass
class Search:
    """The state of a search: examples tried, and failures found."""

    check: CheckExample
    inputs: Inputs
    seconds: float
    """The seconds that the search may take; no example begins after that."""
    on_example: Callable[[Search], None]
    started: float = field(default_factory=time.monotonic)
    counts: Counter[Status] = field(default_factory=Counter)
    failures: list[Example] = field(default_factory=list)
    """Examples that fail, each no larger than the one before it."""
    reasons: dict[str, Example] = field(default_factory=dict)
    """Reasons why examples had no verdict, mostly exceptions of the layer, each with the first such
    example.
    """

    @property
    def seconds_left(self) -> float:
        """Seconds."""
        return self.seconds - (time.monotonic() - self.started)

    @property
    def tried(self) -> int:
        return self.counts.total()

    @property
    def checked(self) -> int:
        """The number of examples that had a verdict."""
        return sum(self.counts[status] for status in DECIDED)

    @property
    def smallest(self) -> Example | None:
        """The smallest example so far that fails; None if none does."""
        return self.failures[-1] if self.failures else None

    def fails(self, example: Example) -> bool:
        """Whether an example fails; always False once the time is up."""
        if self.seconds_left <= 0:
            return False
        status, message = self.check(example)
        self.counts[status] += 1
        if status is Status.FAIL:
            if not self.failures or weight(example) <= weight(self.failures[-1]):
                self.failures.append(example)
        elif status not in DECIDED:
            self.reasons.setdefault(message, example)
        self.on_example(self)
        return status is Status.FAIL


def weight(example: Example) -> tuple[Any, ...]:
    """Return the sort key of an example, smallest first: few numbers, small sizes, nothing unusual,
    few digits.
    """
    recipe, kinds = example.recipe, list(KINDS_OF_VALUES)
    values = [np.asarray(array, np.complex128) for array in example.values.values()]
    return (
        sum(a.size for a in values),
        sum(recipe.sizes.values()),
        recipe.dtype != "float64",
        sum(layout != "contiguous" for layout in recipe.layouts.values()),
        sum(kinds.index(kind) for kind in recipe.kinds.values()),
        sum(len(f"{abs(v):.17g}") for a in values for v in a.real.ravel()),
    )


def search(check: CheckExample, inputs: Inputs, settings: SearchSettings) -> Search:
    """Search for an example that fails, and shrink it.

    Raises:
        ImportError: Hypothesis is not installed.
    """
    import hypothesis

    state = Search(check, inputs, settings.seconds, settings.on_example)
    shrinking = SHRINKING * settings.seconds

    @hypothesis.seed(settings.seed)
    @hypothesis.settings(
        max_examples=settings.examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        report_multiple_bugs=False,
    )
    @hypothesis.given(example_strategy(inputs, settings.dtypes, settings.layouts))
    def try_example(example: Example) -> None:
        if state.fails(example):
            state.seconds += max(
                0.0, shrinking - state.seconds_left
            )  # the time that shrinking needs
            raise FoundError

    try:
        try_example()
    except FoundError:
        pass
    except hypothesis.errors.HypothesisException:
        # Time was up during shrinking: from then on no example counts as failing.
        if not state.failures:
            raise
    if state.failures:
        simplify_numbers(state)
    return state


def nothing_checked(search: Search) -> str:
    """Return why no example of a search had a verdict, with the first reason."""
    if not search.tried:
        return f"no example began within {search.seconds:g} s"
    message, example = next(iter(search.reasons.items()))
    where = f" (at {example})" if str(example) else ""
    return f"none of {count(search.tried, 'example')} had a verdict: {message}{where}"


NAMES = {
    Status.PASS: "right",
    Status.KINK: "next to a kink",
    Status.INCONCLUSIVE: "undecided",
    Status.UNSUPPORTED: "unsupported",
    Status.FAIL: "wrong",
}
"""The word for examples of a status; examples of any other status raised."""


def outcome_lines(search: Search) -> list[str]:
    """Return a summary of the examples tried and their outcomes."""
    counts = Counter({"right": 0})
    for status, number in search.counts.items():
        counts[NAMES.get(status, "raised")] += number
    order = ["next to a kink", "undecided", "unsupported", "raised", "wrong"]
    parts = [
        f"{counts['right']} right",
        *(f"{counts[outcome]} {outcome}" for outcome in order if counts[outcome]),
    ]
    letters = ", ".join(sorted(letters_of(search.inputs)))
    sizes = f" (sizes {letters} from {min(SIZES)} to {max(SIZES)})" if letters else ""
    lines = [f"explore: {count(search.tried, 'example')}{sizes}: {', '.join(parts)}"]
    reasons = list(search.reasons.items())[:3]
    lines += [f"  no verdict at {example}: {message}" for message, example in reasons]
    if search.smallest is not None:
        lines.append(f"  smallest failing example: {search.smallest}")
    return lines


# --------------------------------------------------------------------------- simpler numbers
def simplify_numbers(search: Search) -> None:
    """Simplify the numbers of the smallest failure of a search, as long as it fails.

    Hypothesis has shrunk everything but these, which follow from a seed. They get fewer digits (but
    no number becomes 0, as layers have kinks there), then plain values.
    """
    inputs = search.failures[-1].inputs
    names = [name for name, spec in inputs.items() if is_drawn(spec) and is_floating(spec)]
    for places, name in product((0, 1, 2, 3), names):
        values = search.failures[-1].values[name]
        near = values.round(places)
        lost = (near == 0) & (values != 0)
        near = np.where(lost, np.copysign(10.0**-places, values), near) + 0.0
        if not (near == values).all():
            search.fails(with_values(search.failures[-1], name, near))
    for value, name in product((1.0, -1.0, 2.0), names):
        for index in np.ndindex(search.failures[-1].values[name].shape):
            values = search.failures[-1].values[name]
            if abs(values[index]) not in (0.0, 1.0, 2.0):
                changed: NumpyArray = values.copy()
                repeated = inputs[name].layout == "expanded"
                changed[(slice(None), *index[1:]) if repeated else index] = value
                search.fails(with_values(search.failures[-1], name, changed))


def with_values(example: Example, name: str, values: NumpyArray) -> Example:
    """Return the example with other values of one input."""
    return replace(example, values={**example.values, name: values})
