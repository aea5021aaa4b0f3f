"""Examples: one set of inputs to try, with values for the free sizes (letters) and for every
input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from gradcheck.case.input_arrays import make_input, sizes_of
from gradcheck.checking.precision import SMALLEST, NumpyArray
from gradcheck.spec.literals import Layout
from gradcheck.spec.model import Input

if TYPE_CHECKING:
    from gradcheck.case.case import Case

RandomGenerator = np.random.Generator
Inputs = Mapping[str, Input]
"""Inputs by name. A size of an input: a number, or the name of a size that is drawn."""


@dataclass(frozen=True)
class Recipe:
    """The choices from which an example is made."""

    sizes: Mapping[str, int]
    dtype: str = "float64"
    """The dtype for floating inputs that specify none."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """For each input with free values, their kind: a key of `KINDS_OF_VALUES`."""
    layouts: Mapping[str, str] = field(default_factory=dict)
    """The memory layout of each input that has several axes."""
    seed: int = 0
    """The seed of the values."""


@dataclass(frozen=True)
class Example:
    """Inputs on which a layer is tried."""

    recipe: Recipe
    inputs: Inputs
    """The inputs with the example's sizes, dtypes and layouts, but without its values."""
    values: Mapping[str, NumpyArray]
    """The values of each input, in float64, complex128, int64 or bool."""

    @property
    def numbers(self) -> int:
        """The total number of elements."""
        return sum(values.size for values in self.values.values())

    def __str__(self) -> str:
        inputs = self.inputs.values()
        dtypes = {str(spec.dtype) for spec in inputs if is_floating(spec)}
        layouts = {str(spec.layout) for spec in inputs} - {"contiguous"}
        kinds = [f"{name} {kind}" for name, kind in self.recipe.kinds.items() if kind != "normal"]
        sizes = [f"{letter} = {size}" for letter, size in self.recipe.sizes.items()]
        return ", ".join([*sizes, *sorted(dtypes), *sorted(layouts), *kinds])


# --------------------------------------------------------------------------- values
def normal(shape: tuple[int, ...], random: RandomGenerator) -> NumpyArray:
    """Normally distributed."""
    return random.standard_normal(shape)


def with_rows(
    change: Callable[[NumpyArray, int], Any],
) -> Callable[[tuple[int, ...], RandomGenerator], NumpyArray]:
    """Normally distributed values, changed in place by `change`, a function of the rows (all axes
    except the last are flattened) and a random row's number.
    """

    def draw(shape: tuple[int, ...], random: RandomGenerator) -> NumpyArray:
        values = np.array(random.standard_normal(shape))
        if values.size:
            rows = values.reshape(-1, shape[-1] if shape else 1)
            change(rows, int(random.integers(len(rows))))
        return values

    return draw


KINDS_OF_VALUES: Mapping[str, Callable[[tuple[int, ...], RandomGenerator], NumpyArray]] = {
    "normal": normal,
    "positive": lambda shape, random: random.uniform(0.1, 3.0, shape),
    "negative": lambda shape, random: -random.uniform(0.1, 3.0, shape),
    "whole": lambda shape, random: random.integers(-3, 4, shape).astype(np.float64),
    "with ties": lambda shape, random: random.choice([-1.5, -0.5, 0.5, 1.5], shape),
    "with equal rows": with_rows(lambda rows, row: np.copyto(rows, rows[:1])),
    "with a row of zeros": with_rows(lambda rows, row: rows[row].fill(0.0)),
    "with an extreme row": with_rows(lambda rows, row: np.multiply(rows[row], 1e3, out=rows[row])),
    "with a large element": lambda shape, random: (
        normal(shape, random) * np.where(random.random(shape) < 0.2, 30.0, 1.0)
    ),
    "large": lambda shape, random: 20.0 * normal(shape, random),
    "small": lambda shape, random: 1e-3 * normal(shape, random),
    "far from 0": lambda shape, random: 100.0 + normal(shape, random),
    "zeros": lambda shape, random: np.zeros(shape),
    "subnormal": lambda shape, random: (
        random.choice([-1.0, 1.0], shape) * random.uniform(0.125, 0.75, shape)
    ),
}
"""Functions that draw floating values, by kind, the plainest first; subnormal values are in units
of `SMALLEST`.
"""


def is_floating(spec: Input) -> bool:
    """Whether an input holds floating or complex numbers."""
    return spec.dtype.startswith(("float", "bfloat", "complex"))


def is_free(spec: Input) -> bool:
    """Whether an input specifies neither values nor a distribution, except for a range."""
    return spec.values is None and spec.from_ is None and spec.init == "normal" and not spec.near


def has_kind(spec: Input) -> bool:
    """Whether the values of an input belong to a kind that is drawn."""
    return is_free(spec) and is_floating(spec) and spec.range is None and spec.below is None


def values_of(spec: Input, kind: str, random: RandomGenerator) -> NumpyArray:
    """Values of an input that fit its dtype: of a kind, or as the input specifies."""
    if not has_kind(spec):
        return make_input(spec, spec.dtype, random)
    shape = sizes_of(spec)
    values = KINDS_OF_VALUES[kind](shape, random)
    if spec.dtype.startswith("complex"):
        values = values + 1j * KINDS_OF_VALUES[kind](shape, random)
    return values * SMALLEST[spec.dtype] if kind == "subnormal" else values


# --------------------------------------------------------------------------- examples
MOST_NUMBERS = 4096
"""The most elements of one input: larger examples are made smaller."""


def letters_of(inputs: Inputs) -> list[str]:
    """Return the names of the free sizes, in order."""
    sizes = [size for spec in inputs.values() for size in spec.shape or ()]
    return list(dict.fromkeys(size for size in sizes if isinstance(size, str)))


def build(inputs: Inputs, recipe: Recipe) -> Example:
    """Make the example of a recipe. Sizes are halved until every input has few enough numbers."""
    sizes = dict(recipe.sizes)
    while max(sizes.values(), default=0) > 1 and any(
        prod(sizes_of(spec.at(sizes))) > MOST_NUMBERS for spec in inputs.values()
    ):
        sizes = {letter: (size + 1) // 2 for letter, size in sizes.items()}
    random = np.random.default_rng(recipe.seed)
    specs: dict[str, Input] = {}
    values: dict[str, NumpyArray] = {}
    for name, written in inputs.items():
        layout = recipe.layouts.get(name, "contiguous")
        spec = written.at({**sizes, "dtype": recipe.dtype, "layout": layout})
        array = values_of(spec, recipe.kinds.get(name, "normal"), random)
        if spec.layout == "expanded" and len(array):
            array = array[:1].repeat(len(array), 0)
        specs[name], values[name] = spec, array
    return Example(replace(recipe, sizes=sizes), specs, values)


SIZES = (1, 2, 3, 4, 5, 1, 2, 3, 4, 0, 7, 8, 9, 16, 17, 33)
"""The sizes from which a free size is drawn: mostly small ones, 0, and sizes around powers of two,
at which blocks end.
"""


def example_strategy(
    inputs: Inputs, dtypes: Sequence[str], layouts: Sequence[str] = get_args(Layout)
) -> Any:
    """Return the Hypothesis strategy of `Example` for some inputs.

    Args:
        dtypes: for floating inputs that specify none.
        layouts: of inputs with several axes.

    Raises:
        ImportError: Hypothesis is not installed.
    """
    from hypothesis import strategies as st

    letters = letters_of(inputs)
    kinds = [name for name, spec in inputs.items() if has_kind(spec)]
    with_axes = [name for name, spec in inputs.items() if len(spec.shape or ()) > 1]

    @st.composite
    def example(draw: Any) -> Any:
        recipe = Recipe(
            sizes={letter: draw(st.sampled_from(SIZES)) for letter in letters},
            dtype=draw(st.sampled_from(list(dtypes))),
            kinds={name: draw(st.sampled_from(list(KINDS_OF_VALUES))) for name in kinds},
            layouts={name: draw(st.sampled_from(list(layouts))) for name in with_axes},
            seed=draw(st.integers(0, 2**16)),
        )
        return build(inputs, recipe)

    return example()


# --------------------------------------------------------------------------- examples as scenarios
FREE_SIZE = re.compile("[A-Z]")
"""The name of a size that is drawn."""


def inputs_of(case: Case) -> dict[str, Input]:
    """Return the inputs of a case that have sizes or values to draw, or may have.

    Sizes that ``sizes`` names with a capital letter are free. An input in the memory of another
    shares its values; an input from a file keeps its sizes, dtype and values.
    """
    sizes = case.scenario.sizes
    fixed = {name: size for name, size in sizes.items() if not FREE_SIZE.fullmatch(name)}
    inputs = {
        name: spec.at({**fixed, **case.parameters}) for name, spec in case.scenario.inputs.items()
    }
    return {n: spec for n, spec in inputs.items() if not spec.alias_of and spec.from_ is None}


def case_of_example(case: Case, example: Example) -> Case:
    """Return a case with the sizes and the values of an example; fixed ones stay."""
    inputs = dict(case.scenario.inputs)
    for name, spec in example.inputs.items():
        if is_drawn(spec):
            inputs[name] = input_with_elements(spec, example.values[name])
    sizes = {**case.scenario.sizes, **example.recipe.sizes}
    scenario = case.scenario.model_copy(update={"sizes": sizes, "inputs": inputs})
    return case.model_copy(update={"scenario": scenario})


def is_drawn(spec: Input) -> bool:
    """Whether an example gives the values of a scenario's input.

    It has no complex values, which a scenario file cannot represent.
    """
    return is_free(spec) and not spec.dtype.startswith("complex")


def input_with_elements(spec: Input, values: NumpyArray) -> Input:
    """Return an input with its elements."""
    elements = {"shape": None, "values": nested_tuples(values.tolist())}
    if not values.size:
        elements = {"shape": values.shape}
    fixed = {"range": None, "below": None, "dtype_written": True, "layout_written": True}
    return spec.model_copy(update={**elements, **fixed})


def nested_tuples(value: Any) -> Any:
    """Return nested lists as the tuples that the model uses."""
    return tuple(map(nested_tuples, value)) if isinstance(value, list) else value
