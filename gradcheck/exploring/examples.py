"""One set of inputs to try: the sizes that the letters stand for, and the values of every input."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, get_args

import numpy as np

from gradcheck.checking.precision import SMALLEST, NumpyArray
from gradcheck.spec.input_words import InputWord
from gradcheck.spec.literals import Layout

RandomGenerator = np.random.Generator


class Drawn(NamedTuple):
    """An input with its values."""

    word: InputWord
    values: NumpyArray
    """In float64, complex128, int64 or bool."""
    dtype: str
    layout: str
    alias_of: str = ""
    """The input whose memory it shares."""


class Recipe(NamedTuple):
    """What an example is made of."""

    sizes: Mapping[str, int]
    dtype: str
    """Of the floating inputs whose word names none."""
    kinds: Mapping[str, str]
    """By input, what its values are like."""
    layouts: Mapping[str, str]
    numbers: int
    """The seed of the values."""
    aliases: Mapping[str, str] = {}
    """By input, the one before it whose memory it shares."""


class Example(NamedTuple):
    """What a layer is tried with."""

    recipe: Recipe
    inputs: Mapping[str, Drawn]

    @property
    def sizes(self) -> Mapping[str, int]:
        """What the letters stand for."""
        return self.recipe.sizes

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        return sum(one.values.size for one in self.inputs.values() if not one.alias_of)

    def __str__(self) -> str:
        sizes = ", ".join(f"{letter} = {size}" for letter, size in self.sizes.items())
        how = sorted({f"{one.dtype}" for one in self.inputs.values() if one.word.is_floating})
        layouts = sorted({one.layout for one in self.inputs.values()} - {"contiguous"})
        kinds = [f"{name} {kind}" for name, kind in self.recipe.kinds.items() if kind != "normal"]
        aliases = [
            f"{name} in the memory of {one.alias_of}"
            for name, one in self.inputs.items()
            if one.alias_of
        ]
        return ", ".join(filter(None, [sizes, *how, *layouts, *kinds, *aliases]))


def normal(shape: tuple[int, ...], random: RandomGenerator) -> NumpyArray:
    """Normally distributed."""
    return random.standard_normal(shape)


def with_rows(
    change: Callable[[NumpyArray, int], Any],
) -> Callable[[tuple[int, ...], RandomGenerator], NumpyArray]:
    """Normally distributed, then changed in place by `change`, given the rows (all axes but the last are one) and the
    number of a random one."""

    def draw(shape: tuple[int, ...], random: RandomGenerator) -> NumpyArray:
        values = np.array(random.standard_normal(shape))
        if values.size:
            rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
            change(rows, int(random.integers(len(rows))))
        return values

    return draw


KINDS_OF_VALUES: Mapping[str, Callable[[tuple[int, ...], RandomGenerator], NumpyArray]] = {
    "normal": normal,
    "positive": lambda shape, random: random.uniform(0.1, 3.0, shape),
    "negative": lambda shape, random: -random.uniform(0.1, 3.0, shape),
    "whole": lambda shape, random: random.integers(-3, 4, shape).astype(np.float64),
    "with ties": lambda shape, random: random.choice([-1.5, -0.5, 0.5, 1.5], shape),
    "with equal rows": with_rows(lambda rows, at: np.copyto(rows, rows[:1])),
    "with a row of zeros": with_rows(lambda rows, at: rows[at].fill(0.0)),
    "with an extreme row": with_rows(lambda rows, at: np.multiply(rows[at], 1e3, out=rows[at])),
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
"""What floating values may be like, the plainest first; subnormal ones in units of `SMALLEST`."""


def values_of(
    word: InputWord, shape: tuple[int, ...], kind: str, random: RandomGenerator, dtype: str
) -> NumpyArray:
    """Values of an input that fit into a dtype: of a kind, in its range, or what its word says."""
    if word.value is not None:
        return np.full(shape, word.value)
    if word.below is not None:
        return random.integers(0, word.below, shape)
    if word.dtype == "bool":
        return random.random(shape) < 0.5
    if not word.is_floating:
        return random.integers(0, 10, shape)
    if word.low is not None and word.high is not None:
        return random.uniform(word.low, word.high, shape)
    values = KINDS_OF_VALUES[kind](shape, random)
    if word.dtype.startswith("complex"):
        values = values + 1j * KINDS_OF_VALUES[kind](shape, random)
    return values * SMALLEST[dtype] if kind == "subnormal" else values


MOST_NUMBERS = 4096
"""Of one input: larger examples are made smaller."""


def build(words: Mapping[str, InputWord], recipe: Recipe) -> Example:
    """The example of a recipe. Sizes are halved until every input has few enough numbers."""
    at = dict(recipe.sizes)

    def shape(word: InputWord) -> tuple[int, ...]:
        return tuple(at[size] if isinstance(size, str) else size for size in word.sizes or ())

    while max(at.values(), default=0) > 1 and any(
        prod(shape(word)) > MOST_NUMBERS for word in words.values()
    ):
        at = {letter: max(1, size // 2) if size else 0 for letter, size in at.items()}
    random = np.random.default_rng(recipe.numbers)
    inputs: dict[str, Drawn] = {}
    for name, word in words.items():
        own = word.dtype if word.dtype != "float64" else recipe.dtype
        values = values_of(word, shape(word), recipe.kinds.get(name, "normal"), random, own)
        if other := recipe.aliases.get(name):
            inputs[name] = inputs[other]._replace(word=word, alias_of=other)
            continue
        layout = recipe.layouts.get(name, "contiguous")
        if layout == "expanded" and len(values):
            values = values[:1].repeat(len(values), 0)
        inputs[name] = Drawn(word, values, own, layout)
    return Example(recipe._replace(sizes=at), inputs)


def plainest_example(words: Mapping[str, InputWord]) -> Example:
    """An example of the plainest kind: every free size is 2."""
    letters = {letter: 2 for word in words.values() for letter in word.letters}
    return build(words, Recipe(letters, "float64", {}, {}, 0))


SIZES = (1, 2, 3, 4, 5, 1, 2, 3, 4, 0, 7, 8, 9, 16, 17, 33)
"""What a free size is drawn from: small ones mostly, none at all, and those around powers of two, where blocks end."""


def drawn(
    words: Mapping[str, InputWord], dtypes: Sequence[str], layouts: Sequence[str] = get_args(Layout)
) -> Any:
    """The strategy of `gradcheck.exploring.examples.Example` for some inputs.

    Args:
        dtypes: those of floating inputs whose word names none.
        layouts: those of inputs with several axes.

    Raises:
        ImportError: Hypothesis is not installed.
    """
    from hypothesis import strategies as st

    letters = list(dict.fromkeys(letter for word in words.values() for letter in word.letters))

    @st.composite
    def example(draw: Any) -> Any:
        sizes = {letter: draw(st.sampled_from(SIZES)) for letter in letters}
        dtype = draw(st.sampled_from(list(dtypes)))
        kinds = {
            name: draw(st.sampled_from(list(KINDS_OF_VALUES)))
            for name, word in words.items()
            if word.is_floating and word.low is None and word.value is None
        }
        laid = {
            name: draw(st.sampled_from(list(layouts)))
            for name, word in words.items()
            if len(word.sizes or ()) > 1
        }
        first: dict[
            InputWord, str
        ] = {}  # of inputs of the same word, which could lie in the same memory
        alike = {
            n: first.setdefault(word._replace(name=""), n)
            for n, word in words.items()
            if word.is_floating
        }
        several = len(layouts) > 1
        shared = {
            n: other
            for n, other in alike.items()
            if several and n != other and draw(st.integers(0, 7)) == 0
        }
        return build(words, Recipe(sizes, dtype, kinds, laid, draw(st.integers(0, 2**16)), shared))

    return example()


def scenario_text(
    example: Example, reference: str, identity: str, call: str = "", title: str = ""
) -> str:
    """A spec file with the one scenario."""
    lines = ["schema: gradcheck/v1", "scenarios:", f"  - id: {identity}"]
    if title:
        lines.append(f"    title: {json.dumps(title, ensure_ascii=False)}")
    lines.append(f"    layer: {{ref: {reference!r}}}")
    if call:
        lines.append(f"    call: {json.dumps(call, ensure_ascii=False)}")
    lines.append("    inputs:")
    for name, one in example.inputs.items():
        lines.append(f"      {name}: {input_text(one)}")
    return "\n".join(lines) + "\n"


def input_text(one: Drawn) -> str:
    """An input on one line."""
    parts = []
    if one.alias_of:
        parts.append(f"layout: {{aliased: {one.alias_of}}}")
    else:
        parts.append(
            f"values: {json.dumps(one.values.tolist())}"
            if one.values.size
            else f"shape: {list(one.values.shape)}"
        )
        if one.dtype != "float64":
            parts.append(f"dtype: {one.dtype}")
        if one.layout != "contiguous" and one.values.ndim:
            parts.append(f"layout: {one.layout}")
    if one.word.stopped:
        parts.append("stop_gradient: true")
    return f"{{{', '.join(parts)}}}"
