"""The search: Hypothesis draws examples and shrinks one that fails; what is left is made plain number by number."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from gradcheck.checking.precision import NumpyArray
from gradcheck.exploring.examples import KINDS_OF_VALUES, Drawn, Example, Recipe, build, drawn
from gradcheck.result import Status
from gradcheck.spec.input_words import InputWord
from gradcheck.spec.literals import Layout
from gradcheck.spec.model import Aliased, Input
from gradcheck.support.display_paths import count

if TYPE_CHECKING:
    from gradcheck.case.case import Case


FREE_SIZE = re.compile("[A-Z]")
"""The name of a size that is drawn."""
SHRINKING = 0.4
"""Share of the time that is left for shrinking when a failure is found late."""


class FoundError(Exception):
    """An example fails."""


NOT_INSTALLED = (
    'explore draws with Hypothesis, which is not installed: pip install "gradcheck[explore]"'
)
"""What is said of the ImportError of `search`."""
DECIDED = (Status.PASS, Status.KINK, Status.FAIL)
"""Statuses of examples whose gradient was checked. All others say why theirs was not."""
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
    reasons: dict[str, Example] = field(default_factory=dict)
    """Why examples had no verdict, each with the first of which it was said: what the layer raised, mostly."""

    @property
    def left(self) -> float:
        """Seconds."""
        return self.seconds - (time.monotonic() - self.started)

    @property
    def tried(self) -> int:
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
        elif status not in DECIDED:
            self.reasons.setdefault(said, example)
        self.on_example(self)
        return status is Status.FAIL


def weight(example: Example) -> tuple[Any, ...]:
    """What is small: few numbers, small sizes, nothing out of the usual, few digits."""
    recipe, kinds = example.recipe, list(KINDS_OF_VALUES)
    values = [np.asarray(one.values, np.complex128) for one in example.inputs.values()]
    return (
        sum(a.size for a in values),
        sum(recipe.sizes.values()),
        recipe.dtype != "float64",
        sum(layout != "contiguous" for layout in recipe.layouts.values()) + len(recipe.aliases),
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
    layouts: Sequence[str] = get_args(Layout),
    on_example: Callable[[Search], None] = lambda search: None,
) -> Search:
    """Look for an example that fails, and make it small.

    Args:
        words: the inputs, by name.
        seconds, examples: how long to look, and at how many examples before one fails.
        dtypes: those of floating inputs whose word names none.
        layouts: those of inputs with several axes; where there is one, no two share their memory.

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
    @hypothesis.given(drawn(words, dtypes, layouts))
    def look(example: Example) -> None:
        if found.fails(example):
            if found.left < SHRINKING * seconds:  # the time that shrinking needs
                found.seconds += SHRINKING * seconds - found.left
            raise FoundError

    try:
        look()
    except FoundError:
        pass
    except (
        hypothesis.errors.HypothesisException
    ):  # time was up while it was shrinking: then nothing fails again
        if found.smallest is None:
            raise
    if found.smallest is not None:
        make_small(found, words)
    return found


def checked_examples(search: Search) -> int:
    """How many examples had a verdict."""
    return sum(search.counts[status] for status in DECIDED)


def nothing_checked(search: Search) -> str:
    """What to say of a search of which no example had a verdict, with the first reason."""
    if not search.tried:
        return f"no example began within {search.seconds:g} s"
    said, example = next(iter(search.reasons.items()), ("", None))
    where = f" (at {example})" if example is not None and str(example) else ""
    return f"none of {count(search.tried, 'example')} had a verdict: {said}{where}"


def outcome_lines(search: Search, words: Mapping[str, InputWord]) -> list[str]:
    """What was tried, and what came of it."""
    names = {
        Status.KINK: "beside a kink",
        Status.INCONCLUSIVE: "undecided",
        Status.UNSUPPORTED: "unsupported",
    }
    parts = [f"{search.counts[Status.PASS]} right"]
    parts += [
        f"{search.counts[status]} {name}" for status, name in names.items() if search.counts[status]
    ]
    raised = search.tried - sum(search.counts[s] for s in (Status.PASS, Status.FAIL, *names))
    parts += [f"{raised} raised"] if raised else []
    parts += [f"{search.counts[Status.FAIL]} wrong"] if search.counts[Status.FAIL] else []
    letters = sorted({letter for word in words.values() for letter in word.letters})
    sizes = f" (sizes {', '.join(letters)} from 0 to 33)" if letters else ""
    lines = [f"explore: {count(search.tried, 'example')}{sizes}: {', '.join(parts)}"]
    lines += [
        f"  no verdict at {example}: {said}" for said, example in list(search.reasons.items())[:3]
    ]
    if search.smallest is not None:
        lines.append(f"  smallest that is wrong: {search.smallest}")
    return lines


# --------------------------------------------------------------------------- making a failure small
def make_small(found: Search, words: Mapping[str, InputWord]) -> None:
    """Make the smallest failure smaller, as long as it fails: sizes, what is unusual about it, then its numbers: fewer
    digits (what is not 0 does not become it, as layers have kinks there), and plain ones."""
    while found.smallest is not None and any(
        found.fails(build(words, one)) for one in plainer(found.smallest.recipe)
    ):
        pass
    assert found.smallest is not None
    names = [
        n
        for n, one in found.smallest.inputs.items()
        if one.values.dtype.kind == "f" and not one.alias_of
    ]
    for places, name in product((0, 1, 2, 3), names):
        values = found.smallest.inputs[name].values
        near = values.round(places)
        near = np.where((near == 0) & (values != 0), np.copysign(10.0**-places, values), near) + 0.0
        if not (near == values).all():
            found.fails(with_values(found.smallest, name, near))
    for value, name in product((1.0, -1.0, 2.0), names):
        for at in np.ndindex(found.smallest.inputs[name].values.shape):
            one = found.smallest.inputs[name]
            if abs(one.values[at]) not in (0.0, 1.0, 2.0):
                changed: NumpyArray = one.values.copy()
                changed[(slice(None), *at[1:]) if one.layout == "expanded" else at] = value
                found.fails(with_values(found.smallest, name, changed))


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
    for name in recipe.aliases:
        yield recipe._replace(
            aliases={other: of for other, of in recipe.aliases.items() if other != name}
        )
    kinds = list(KINDS_OF_VALUES)
    for name, kind in recipe.kinds.items():
        for other in kinds[: kinds.index(kind)]:
            yield recipe._replace(kinds={**recipe.kinds, name: other})


def with_values(example: Example, name: str, values: NumpyArray) -> Example:
    """The example with other values of one input, and of those in its memory."""
    changed = {
        key: one._replace(values=values) if name in (key, one.alias_of) else one
        for key, one in example.inputs.items()
    }
    return example._replace(inputs=changed)


# --------------------------------------------------------------------------- the inputs of a scenario
def input_words_of(case: Case) -> dict[str, InputWord]:
    """Return what the search needs to know of the inputs of a case: sizes that ``sizes`` names with a capital letter
    are free, and of inputs whose values are not drawn the sizes alone count.
    """
    fixed = {
        name: size for name, size in case.scenario.sizes.items() if not FREE_SIZE.fullmatch(name)
    }
    words: dict[str, InputWord] = {}
    for name, written in case.scenario.inputs.items():
        one = written.at({**fixed, **case.parameters})
        if not one.alias_of:
            (low, high), value = one.range or (None, None), None if is_drawn(one) else 0.0
            sizes = np.shape(one.values) if one.values is not None else one.shape or ()
            words[name] = InputWord(
                name, sizes, one.dtype, one.below, one.stop_gradient, "split", low, high, value
            )
    return words


def case_of_example(case: Case, example: Example) -> Case:
    """Return a case with the sizes and the values of an example."""
    inputs = {name: one.at(case.parameters) for name, one in case.scenario.inputs.items()}
    for name, one in inputs.items():
        if not one.alias_of:
            inputs[name] = drawn_input(one, example.inputs[name])
    update = {"sizes": {**case.scenario.sizes, **example.sizes}, "inputs": inputs}
    return case.model_copy(update={"scenario": case.scenario.model_copy(update=update)})


def is_drawn(spec: Input) -> bool:
    """Whether the values of an input are the search's to draw: it says neither what they are nor how they are drawn.

    Complex ones are not, as no scenario could be written of them.
    """
    says = spec.values is not None or spec.from_ is not None or spec.init != "normal" or spec.near
    return not says and not spec.dtype.startswith("complex")


def nested_tuples(value: Any) -> Any:
    """Return nested lists as the tuples that the model has."""
    return tuple(map(nested_tuples, value)) if isinstance(value, list) else value


def drawn_input(spec: Input, drawn: Drawn) -> Input:
    """An input with the values of an example."""
    if not is_drawn(spec):
        return spec
    layout = spec.layout if spec.layout_written else drawn.layout
    known = (
        {"shape": drawn.values.shape}
        if not drawn.values.size
        else {"shape": None, "values": nested_tuples(drawn.values.tolist())}
    )
    return spec.model_copy(
        update={
            **known, "range": None, "below": None, "dtype": spec.dtype if spec.dtype_written else drawn.dtype,
            "layout": Aliased(aliased=drawn.alias_of) if drawn.alias_of else layout, "dtype_written": True,
            "layout_written": True,
        }
    )  # fmt: skip
