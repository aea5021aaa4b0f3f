"""A scenario that looks for inputs at which a gradient is wrong: every example is a scenario of its own."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from gradcheck.exploring.example_search import NOT_INSTALLED, checked_examples, outcome_lines, search
from gradcheck.exploring.examples import Drawn, Example
from gradcheck.exploring.scenario import input_text
from gradcheck.result import Result, Status
from gradcheck.spec.input_words import InputWord
from gradcheck.spec.model import Aliased, Input

if TYPE_CHECKING:
    from gradcheck.case.case import Case


def explored(case: Case, run: Callable[[Case], Result]) -> Result:
    """The result of the smallest example that is wrong; PASS if none is, and INCONCLUSIVE if none could be checked.

    Args:
        run: checks a case.
    """
    explore, started = case.scenario.explore, perf_counter()
    assert explore is not None
    inputs = {name: one.at(case.variables) for name, one in case.scenario.inputs.items()}
    words = {name: word_of(name, one) for name, one in inputs.items() if not one.alias_of}

    def look(example: Example) -> tuple[Status, str]:
        untimed = {"timeout": 0.0}  # no time to name what is wrong
        result = run(case_of_example(case, inputs, example).model_copy(update=untimed))
        return result.status, result.message

    try:
        found = search(look, words, seconds=explore.seconds, examples=explore.examples, seed=case.seed)
    except ImportError:
        return case.result(Status.ERROR, NOT_INSTALLED)
    said = tuple(outcome_lines(found, words))
    if found.smallest is not None:
        wrong = run(case_of_example(case, inputs, found.smallest))
        there = [f"{name}: {input_text(one)}" for name, one in found.smallest.inputs.items() if is_drawn(inputs[name])]
        return wrong.model_copy(update={"details": (*wrong.details, *said, *there)})
    if checked_examples(found):
        return case.result(Status.PASS, "", details=said, seconds=perf_counter() - started)
    return case.result(Status.INCONCLUSIVE, "no example could be checked", details=said)


def is_drawn(spec: Input) -> bool:
    """Whether the values of an input are the search's to draw: it says neither what they are nor how they are drawn.

    Complex ones are not, as no scenario could be written of them.
    """
    says = spec.values is not None or spec.from_ is not None or spec.init != "normal" or spec.near
    return not says and not spec.dtype.startswith("complex")


def word_of(name: str, spec: Input) -> InputWord:
    """An input as the search has it. Of one whose values are not drawn, its sizes alone count."""
    low, high = spec.range or (None, None)
    value = None if is_drawn(spec) else 0.0
    return InputWord(name, spec.shape or (), spec.dtype, spec.below, spec.stop_gradient, "split", low, high, value)


def case_of_example(case: Case, inputs: dict[str, Input], example: Example) -> Case:
    """The case of an example."""
    scenario = case.scenario
    drawn = {name: drawn_input(one, example.inputs[name]) for name, one in inputs.items() if not one.alias_of}
    sizes = {**scenario.sizes, **example.sizes}
    update = {"explore": None, "sizes": sizes, "inputs": {**inputs, **drawn}}
    return case.model_copy(update={"scenario": scenario.model_copy(update=update)})


def drawn_input(spec: Input, drawn: Drawn) -> Input:
    """An input with the values of an example."""
    if not is_drawn(spec):
        return spec
    layout = spec.layout if spec.layout_written else drawn.layout
    known = {"shape": drawn.values.shape} if not drawn.values.size else {"shape": None, "values": drawn.values.tolist()}
    return spec.model_copy(
        update={
            **known, "range": None, "below": None, "dtype": spec.dtype if spec.dtype_written else drawn.dtype,
            "layout": Aliased(aliased=drawn.alias_of) if drawn.alias_of else layout, "dtype_written": True,
            "layout_written": True,
        }
    )  # fmt: skip
