"""What to run: scenarios × matrix × backends, narrowed down to what was asked for."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from gradcheck.spec.model import Scenario, SpecFile


class Case(BaseModel):
    """One scenario at one point of its matrix on one backend: what a worker runs."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    scenario: Scenario
    backend: str
    parameters: dict[str, Any] = {}
    seed: int = 0
    timeout: float = 60.0
    """Wall-clock limit in seconds."""

    @property
    def name(self) -> str:
        """``id@backend``, or ``id/dtype=float32@backend``: no brackets, no colons, no spaces."""
        point = ",".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.scenario.id}{'/' if point else ''}{point}@{self.backend}"


class SelectionError(ValueError):
    """A selection that cannot be understood; the message says what to do."""


def plan(
    specs: Iterable[SpecFile], backends: Sequence[str], *, seed: int | None = None, timeout: float = 60.0
) -> list[Case]:
    """All cases in order: file, scenario, matrix point, backend. `seed`, if given, goes before the scenarios' own."""
    return [
        Case(
            scenario=scenario,
            backend=backend,
            parameters=dict(zip(scenario.matrix, point, strict=True)),
            seed=scenario.seed if seed is None else seed,
            timeout=scenario.timeout or timeout,
        )
        for spec in specs
        for scenario in spec.scenarios
        for point in itertools.product(*scenario.matrix.values())
        for backend in backends
    ]


def select_ids(cases: Iterable[Case], ids: Iterable[str]) -> list[Case]:
    """The cases of the scenarios, or with the names, that `ids` lists; all where it lists none.

    Raises:
        SelectionError: nothing has such an id or name.
    """
    wanted, found = set(ids), list(cases)
    if not wanted:
        return found
    known = {name for case in found for name in (case.scenario.id, case.name)}
    for name in sorted(wanted - known):
        near = difflib.get_close_matches(name, sorted(known), 1)
        hint = f" Did you mean {near[0]}?" if near else " `gradcheck list` shows what there is."
        raise SelectionError(f"no file, folder or scenario is called {name}.{hint}")
    return [case for case in found if case.scenario.id in wanted or case.name in wanted]


def matcher(expression: str, what: str) -> Callable[[Callable[[str], bool]], bool]:
    """``a and not (b or c)`` as a function of what the words mean.

    Raises:
        SelectionError: it is not such an expression; `what` names the option.
    """
    tokens = re.findall(r"\(|\)|[^\s()]+", expression)
    position = 0

    def fail(expected: str) -> SelectionError:
        found = tokens[position] if position < len(tokens) else "the end"
        return SelectionError(f"{what} {expression!r}: expected {expected}, found {found}. Use words, and, or, not, ().")

    def alternatives() -> Any:
        nonlocal position
        node = conjunction()
        while position < len(tokens) and tokens[position] == "or":
            position += 1
            node = ("or", node, conjunction())
        return node

    def conjunction() -> Any:
        nonlocal position
        node = negation()
        while position < len(tokens) and tokens[position] == "and":
            position += 1
            node = ("and", node, negation())
        return node

    def negation() -> Any:
        nonlocal position
        if position == len(tokens):
            raise fail("a word")
        token = tokens[position]
        position += 1
        if token == "not":
            return ("not", negation())
        if token == "(":
            node = alternatives()
            if position == len(tokens) or tokens[position] != ")":
                raise fail(")")
            position += 1
            return node
        if token in ("and", "or", ")"):
            position -= 1
            raise fail("a word")
        return token

    tree = alternatives()
    if position != len(tokens):
        raise fail("and, or, or the end")

    def holds(node: Any, means: Callable[[str], bool]) -> bool:
        match node:
            case ("not", inner):
                return not holds(inner, means)
            case ("and", left, right):
                return holds(left, means) and holds(right, means)
            case ("or", left, right):
                return holds(left, means) or holds(right, means)
            case _:
                return means(node)

    return lambda means: holds(tree, means)


def select_names(cases: Iterable[Case], expression: str) -> list[Case]:
    """The cases whose names fit ``-k``: words are parts of the name, in any case."""
    fits = matcher(expression, "-k")
    return [case for case in cases if fits(lambda word, name=case.name.lower(): word.lower() in name)]  # type: ignore[misc]


def select_tags(cases: Iterable[Case], expression: str) -> list[Case]:
    """The cases whose tags fit ``-t``: words are whole tags."""
    fits = matcher(expression, "-t")
    return [case for case in cases if fits(lambda word, tags=case.scenario.tags: word in tags)]  # type: ignore[misc]
