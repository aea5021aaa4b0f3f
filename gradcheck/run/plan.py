"""What to run: scenarios × matrix × backends, narrowed down to what was asked for. Imports no backend."""

from __future__ import annotations

import difflib
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from gradcheck.backends.base import missing, unsupported
from gradcheck.result import Result, Status
from gradcheck.spec.model import Scenario, SpecFile

TIMEOUT = 60.0
"""Seconds that a case may take where nobody says otherwise."""
MEMORY = 4 << 30
"""Bytes that a case may take where nobody says otherwise."""


class Case(BaseModel):
    """One scenario at one point of its matrix on one backend: what a worker runs."""

    # Only workers validate cases; `list` and `show` need not wait for the validator to be built.
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants", defer_build=True)

    scenario: Scenario
    backend: str
    parameters: dict[str, Any] = {}
    seed: int = 0
    mode: Literal["auto", "probe", "full"] = "auto"
    """How much of the Jacobian the gradient check looks at."""
    effort: Literal["usual", "full"] = "usual"
    """How much is spent on naming what is wrong about a gradient."""
    timeout: float = TIMEOUT
    """Wall-clock limit in seconds."""
    memory: int = MEMORY
    """Limit in bytes of what the case may allocate."""

    @property
    def name(self) -> str:
        """``id@backend``, or ``id/dtype=float32@backend``: no brackets, no colons, no spaces."""
        point = ",".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.scenario.id}{'/' if point else ''}{point}@{self.backend}"

    def result(self, status: Status, message: str, **fields: Any) -> Result:
        """A result of this case, for those who cannot or need not run it; `fields` are further ones of Result."""
        scenario = self.scenario
        return Result(
            name=self.name,
            scenario=scenario.id,
            backend=self.backend,
            path=scenario.path,
            line=scenario.line,
            column=scenario.column,
            status=status,
            message=message,
            **fields,
        )

    def not_run(self) -> Result | None:
        """SKIP or UNSUPPORTED with the reason why this is not run at all; None if it is."""
        entry = self.scenario.on(self.backend)
        if entry is not None and entry.skip is not None:
            return self.result(Status.SKIP, entry.skip.reason)
        if reason := missing(self.backend):
            return self.result(Status.SKIP, reason)
        if reason := unsupported(self.backend):
            return self.result(Status.UNSUPPORTED, reason)
        return None


class SelectionError(ValueError):
    """A selection that cannot be understood; the message says what to do."""


def plan(
    specs: Iterable[SpecFile],
    backends: Sequence[str],
    *,
    seed: int | None = None,
    mode: Literal["auto", "probe", "full"] = "auto",
    effort: Literal["usual", "full"] = "usual",
    timeout: float | None = None,
    default_timeout: float = TIMEOUT,
    memory: int = MEMORY,
) -> list[Case]:
    """All cases in order: file, scenario, matrix point, backend.

    `seed` and `timeout` (seconds), if given, go before the scenarios' own; `default_timeout` is for those without.
    `memory` is the limit of each in bytes.
    """
    fields = set(Case.model_fields)
    return [
        Case.model_construct(
            fields,  # one set for all: a run may have very many cases
            scenario=scenario,
            backend=backend,
            parameters=dict(zip(scenario.matrix, point, strict=True)),
            seed=scenario.seed if seed is None else seed,
            mode=mode,
            effort=effort,
            timeout=timeout or scenario.timeout or default_timeout,
            memory=memory,
        )
        for spec in specs
        for scenario in spec.scenarios
        for point in itertools.product(*scenario.matrix.values())
        for backend in backends
    ]


def select(
    cases: Iterable[Case], ids: Iterable[str] = (), keywords: str | None = None, tags: str | None = None
) -> list[Case]:
    """The cases that `ids`, the expression `keywords` (``-k``) and the expression `tags` (``-t``) all select.

    Raises:
        SelectionError: an id is not there, or an expression is not well formed.
    """
    selected = select_ids(cases, ids)
    selected = selected if keywords is None else select_names(selected, keywords)
    return selected if tags is None else select_tags(selected, tags)


def select_ids(cases: Iterable[Case], ids: Iterable[str]) -> list[Case]:
    """The cases of the scenarios, or with the names, that `ids` lists; all where it lists none.

    Raises:
        SelectionError: nothing has such an id or name.
    """
    wanted, found = set(ids), list(cases)
    if not wanted:
        return found
    known = {name for case in found for name in (case.scenario.id, case.name)}
    problems = []
    for name in sorted(wanted - known):
        near = difflib.get_close_matches(name, sorted(known), 1)
        hint = f"did you mean {near[0]}?" if near else "`gradcheck list` shows what there is"
        problems.append(f"no file, folder or scenario is called {name!r}; {hint}")
    if problems:
        raise SelectionError("\n".join(problems))
    return [case for case in found if case.scenario.id in wanted or case.name in wanted]


def select_names(cases: Iterable[Case], expression: str) -> list[Case]:
    """The cases whose names fit ``-k``: words are parts of the name, in any case.

    Raises:
        SelectionError: the expression is not well formed.
    """
    fits = _Expression(expression, "-k").parse()
    return [case for case in cases if fits(_contained_in(case.name.lower()))]


def select_tags(cases: Iterable[Case], expression: str) -> list[Case]:
    """The cases whose tags fit ``-t``: words are whole tags.

    Raises:
        SelectionError: the expression is not well formed.
    """
    fits = _Expression(expression, "-t").parse()
    return [case for case in cases if fits(case.scenario.tags.__contains__)]


def shard(cases: Iterable[Case], number: int, of: int) -> list[Case]:
    """The cases of shard `number` (from 1) `of` so many: which one a case is in depends on its name alone."""

    def home(case: Case) -> int:
        return int.from_bytes(hashlib.sha256(case.name.encode()).digest()[:8], "big") % of

    return [case for case in cases if home(case) == number - 1]


def _contained_in(name: str) -> Callable[[str], bool]:
    return lambda word: word.lower() in name


Holds = Callable[[str], bool]
"""Whether a word of an expression holds."""
_MOST_TOKENS = 200  # keeps the recursion below Python's limit


class _Expression:
    """Words with ``and``, ``or``, ``not`` and parentheses, parsed by recursive descent."""

    def __init__(self, text: str, option: str) -> None:
        self.text, self.option = text, option
        self.tokens = re.findall(r"[()]|[^\s()]+", text)
        self.position = 0
        if len(self.tokens) > _MOST_TOKENS:
            raise SelectionError(f"{option}: the expression has more than {_MOST_TOKENS} words")

    def parse(self) -> Callable[[Holds], bool]:
        """The expression as a function of what its words mean."""
        whole = self.any_of()
        if self.token:
            raise self.expected("and, or, or the end")
        return whole

    @property
    def token(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self, token: str) -> bool:
        """Step over `token` if it is the next one."""
        found = self.token == token
        self.position += found
        return found

    def any_of(self) -> Callable[[Holds], bool]:
        parts = [self.all_of()]
        while self.take("or"):
            parts.append(self.all_of())
        return lambda holds: any(part(holds) for part in parts)

    def all_of(self) -> Callable[[Holds], bool]:
        parts = [self.one()]
        while self.take("and"):
            parts.append(self.one())
        return lambda holds: all(part(holds) for part in parts)

    def one(self) -> Callable[[Holds], bool]:
        if self.take("not"):
            negated = self.one()
            return lambda holds: not negated(holds)
        if self.take("("):
            inner = self.any_of()
            if not self.take(")"):
                raise self.expected("')'")
            return inner
        word = self.token
        if word in ("", "and", "or", ")"):
            raise self.expected("a word")
        self.position += 1
        return lambda holds: holds(word)

    def expected(self, what: str) -> SelectionError:
        found = repr(self.token) if self.token else "its end"
        return SelectionError(
            f"{self.option} {self.text!r}: expected {what} but found {found}; combine words with and, or, not, ( and )"
        )
