"""A right layer and single mistakes in its backward, each with the lines of forward at which it may be named.

A mistake is one replacement in the source of the right backward, so that every broken layer differs from a right one by
one edit, and forward is the very same function, in a file that can be read.

A mistake is *at* a line if some wrong rule of the operations on that line alone gives the gradients of the broken
backward. Where one factor is wrong all along a chain (m → v → s → out, nothing else leaving it), every line of the
chain is right; a wrong rule of one operation (1 − y for 1 − y²) is at the line of that operation alone, and at a
neighbour only where a plausible wrong rule of the neighbour is the same number.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator], Sequence[Any]]


@dataclass(frozen=True)
class Mistake:
    """`right`, a text that stands once in backward, replaced by `wrong`.

    `at` names lines of forward by the first name that they assign (``m`` is the line ``m = x.mean(…)``), or ``return``.
    `whole` are codes of causes without a line that are true as well: of a gradient that is wrong as a whole.
    """

    name: str
    right: str
    wrong: str
    at: tuple[str, ...]
    whole: tuple[str, ...] = ()


def mistake(name: str, right: str, wrong: str, at: str, whole: str = "") -> Mistake:
    """One from texts: `at` and `whole` separated by spaces."""
    return Mistake(name, right, wrong, tuple(at.split()), tuple(whole.split()))


@dataclass(frozen=True)
class Case:
    """A PyLayer with a right backward, a way to draw its inputs, and mistakes."""

    layer: type
    inputs: Draw
    mistakes: tuple[Mistake, ...]

    @property
    def name(self) -> str:
        return self.layer.__name__

    def mistake(self, name: str) -> Mistake:
        """The mistake of a name."""
        return next(wrong for wrong in self.mistakes if wrong.name == name)

    def broken(self, wrong: Mistake) -> type:
        """The layer with a mistake in its backward; its forward is the same object.

        Raises:
            ValueError: the text to be replaced does not stand in backward exactly once.
        """
        original = self.layer.backward
        lines, first = inspect.getsourcelines(original)
        source = textwrap.dedent("".join(lines))
        if source.count(wrong.right) != 1:
            raise ValueError(f"{self.name}: {wrong.right!r} stands {source.count(wrong.right)} times in backward")
        tree = ast.parse(source.replace(wrong.right, wrong.wrong))
        ast.increment_lineno(tree, first - 1)
        made: dict[str, Any] = {}
        exec(compile(tree, inspect.getfile(original), "exec"), vars(sys.modules[self.layer.__module__]), made)
        return type(self.name, (self.layer,), {"backward": made["backward"]})

    def lines(self, wrong: Mistake) -> dict[int, str]:
        """The lines at which a mistake may be named: their numbers in the layer's file, and their texts.

        Raises:
            ValueError: a name of `at` is assigned on no line of forward, or on several.
        """
        found = {}
        for name in wrong.at:
            here = [(n, text) for n, text in self.forward_lines() if assigned(text) == name]
            if len(here) != 1:
                raise ValueError(f"{self.name}: {name!r} names {len(here)} lines of forward")
            found.update(here)
        return found

    def forward_lines(self) -> list[tuple[int, str]]:
        """The lines of forward, numbered as in their file."""
        lines, first = inspect.getsourcelines(self.layer.forward)
        return [(first + k, text.strip()) for k, text in enumerate(lines)]


def assigned(line: str) -> str:
    """The first name that a line assigns; ``return`` for a line that returns."""
    if line.startswith("return "):
        return "return"
    return line.partition(" = ")[0].partition(",")[0] if " = " in line else ""
