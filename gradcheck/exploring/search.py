"""The search: Hypothesis draws examples and shrinks one that fails; what is left is made plain number by number."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcheck.exploring.drawing import drawn
from gradcheck.exploring.examples import KINDS, Array, Example, Recipe, made
from gradcheck.result import Status
from gradcheck.spec.input_words import InputWord

SHRINKING = 0.4
"""Share of the time that is left for shrinking when a failure is found late."""


class FoundError(Exception):
    """An example fails."""


Try = Callable[[Example], tuple[Status, str]]
"""Checks a layer at an example: the status, and a line on it."""


@dataclass
class Search:
    """What was tried, and what was found.

    Args:
        check: checks the layer at an example.
        seconds: how long the search may take; no example begins after that.
        on_example: told of the search after every example.
    """

    check: Try
    seconds: float
    on_example: Callable[[Search], None] = lambda search: None
    started: float = field(default_factory=time.monotonic)
    counts: Counter[Status] = field(default_factory=Counter)
    smallest: Example | None = None
    """The smallest example so far that fails, and what was said of it."""
    said: str = ""
    refused: dict[str, Example] = field(default_factory=dict)
    """What the layer raised, each with the first example at which it did."""

    @property
    def left(self) -> float:
        """Seconds."""
        return self.seconds - (time.monotonic() - self.started)

    @property
    def tried(self) -> int:
        """How many examples were checked."""
        return self.counts.total()

    def fails(self, example: Example) -> bool:
        """Whether an example fails; False for all once the time is up."""
        if self.left <= 0:
            return False
        status, said = self.check(example)
        self.counts[status] += 1
        if status is Status.FAIL:
            if self.smallest is None or weight(example) <= weight(self.smallest):
                self.smallest, self.said = example, said
        elif status in (Status.ERROR, Status.CRASH, Status.TIMEOUT):
            self.refused.setdefault(said, example)
        self.on_example(self)
        return status is Status.FAIL


def weight(example: Example) -> tuple[Any, ...]:
    """What is small: few numbers, small sizes, nothing out of the usual, few digits."""
    recipe, kinds = example.recipe, list(KINDS)
    values = [np.asarray(one.values, np.complex128) for one in example.inputs.values()]
    return (
        sum(a.size for a in values),
        sum(recipe.sizes.values()),
        recipe.dtype != "float64",
        sum(layout != "contiguous" for layout in recipe.layouts.values()),
        sum(kinds.index(kind) for kind in recipe.kinds.values()),
        sum(len(f"{abs(v):.17g}") for a in values for v in a.real.ravel()),
    )


def search(
    check: Try,
    words: Mapping[str, InputWord],
    *,
    seconds: float,
    examples: int,
    seed: int,
    dtypes: Sequence[str] = ("float64", "float32"),
    on_example: Callable[[Search], None] = lambda search: None,
) -> Search:
    """Look for an example that fails, and make it small.

    Args:
        words: the inputs, by name.
        seconds, examples: how long to look, and at how many examples before one fails.
        dtypes: those of floating inputs whose word names none.

    Raises:
        ImportError: Hypothesis is not installed.
    """
    import hypothesis

    found = Search(check, seconds, on_example)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        report_multiple_bugs=False,
    )
    @hypothesis.given(drawn(words, dtypes))
    def look(example: Example) -> None:
        if found.fails(example):
            if found.left < SHRINKING * seconds:  # the time that shrinking needs
                found.seconds += SHRINKING * seconds - found.left
            raise FoundError

    try:
        look()
    except FoundError:
        pass
    except hypothesis.errors.HypothesisException:  # time was up while it was shrinking: then nothing fails again
        if found.smallest is None:
            raise
    if found.smallest is not None:
        make_small(found, words)
    return found


# --------------------------------------------------------------------------- making a failure small
def make_small(found: Search, words: Mapping[str, InputWord]) -> None:
    """Make the smallest failure smaller, as long as it fails: sizes, what is unusual about it, then its numbers."""
    while found.smallest is not None and any(found.fails(made(words, one)) for one in plainer(found.smallest.recipe)):
        pass
    for places in (0, 1, 2, 3):
        for name in [*words]:
            rounded(found, name, places)
    for value in (1.0, -1.0, 2.0):
        for name in [*words]:
            set_each(found, name, value)


def plainer(recipe: Recipe) -> Iterator[Recipe]:
    """Recipes that differ in one thing, which is smaller or plainer."""
    for letter, size in recipe.sizes.items():
        for smaller in range(min(size, 9)):
            yield recipe._replace(sizes={**recipe.sizes, letter: smaller})
    if recipe.dtype != "float64":
        yield recipe._replace(dtype="float64")
    for name, layout in recipe.layouts.items():
        if layout != "contiguous":
            yield recipe._replace(layouts={**recipe.layouts, name: "contiguous"})
    kinds = list(KINDS)
    for name, kind in recipe.kinds.items():
        for other in kinds[: kinds.index(kind)]:
            yield recipe._replace(kinds={**recipe.kinds, name: other})


def rounded(found: Search, name: str, places: int) -> None:
    """Try the values of an input in fewer digits; what is not 0 does not become it, as layers have kinks there."""
    example = found.smallest
    if example is not None and example.inputs[name].values.dtype.kind == "f":
        values = example.inputs[name].values
        near = values.round(places)
        near = np.where((near == 0) & (values != 0), np.copysign(10.0**-places, values), near) + 0.0
        if not (near == values).all():
            found.fails(with_values(example, name, near))


def set_each(found: Search, name: str, value: float) -> None:
    """Try a plain number for each element of an input that is not plain yet."""
    shape = found.smallest.inputs[name].values.shape if found.smallest else ()
    for at in np.ndindex(shape):
        example = found.smallest
        assert example is not None
        values = example.inputs[name].values
        if values.dtype.kind == "f" and abs(values[at]) not in (0.0, 1.0, 2.0):
            changed: Array = values.copy()
            changed[at] = value
            found.fails(with_values(example, name, changed))


def with_values(example: Example, name: str, values: Array) -> Example:
    """The example with other values of one input."""
    return example._replace(inputs={**example.inputs, name: example.inputs[name]._replace(values=values)})
