"""Selection of cases: ids, and the expressions of ``-k`` and ``-t``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from gradcheck.codes import CODES
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError


class Described(Protocol):
    """A scenario, as far as it can be selected by."""

    @property
    def id(self) -> str: ...
    @property
    def tags(self) -> tuple[str, ...]: ...


class Selectable(Protocol):
    """A case, or what stands for one."""

    @property
    def name(self) -> str: ...
    @property
    def scenario(self) -> Described: ...


C = TypeVar("C", bound=Selectable)


def select(
    cases: Iterable[C],
    ids: Iterable[str] = (),
    keywords: str | None = None,
    tags: str | None = None,
) -> list[C]:
    """The cases that `ids`, the expression `keywords` (``-k``) and the expression `tags` (``-t``)
    all select.

    Raises UserError: an id is not there, or an expression is not well formed.
    """
    selected = select_ids(cases, ids)
    selected = selected if keywords is None else select_names(selected, keywords)
    return selected if tags is None else select_tags(selected, tags)


def select_ids(cases: Iterable[C], ids: Iterable[str]) -> list[C]:
    """The cases of the scenarios, or with the names, that `ids` lists; all where it lists none.

    A name may leave out the parameters, the backend, or both: these are scenarios.

    Raises UserError: nothing has such an id or name.
    """
    wanted, found = set(ids), list(cases)
    if not wanted:
        return found
    known = {name for case in found for name in names_of(case)}
    problems = []
    for name in sorted(wanted - known):
        meant = hint(name, sorted(known), "`gradcheck list` shows what there is")
        if name.upper() in CODES:
            meant = f"`gradcheck explain {name}` explains that code"
        problems.append(f"no file, folder or scenario is called {name!r}; {meant}")
    if problems:
        raise UserError("\n".join(problems))
    return [case for case in found if not wanted.isdisjoint(names_of(case))]


def names_of(case: Selectable) -> set[str]:
    """Names of a case: ``tanh/dtype=float32@numpy``, and without one part or both behind the id."""
    parameters, at, backend = case.name.partition("@")
    return {case.scenario.id, case.name, parameters, f"{case.scenario.id}{at}{backend}"}


def select_names(cases: Iterable[C], expression: str) -> list[C]:
    """The cases whose names fit ``-k``: words are parts of the name, in any case."""
    fits = _Expression(expression, "-k").parse()
    return [case for case in cases if fits(_contained_in(case.name.lower()))]


def select_tags(cases: Iterable[C], expression: str) -> list[C]:
    """The cases whose tags fit ``-t``: words are whole tags.

    Raises UserError: the expression is not well formed, or no scenario has one of its tags.
    """
    parsed = _Expression(expression, "-t")
    fits = parsed.parse()
    cases = list(cases)
    known = {tag for case in cases for tag in case.scenario.tags}
    for word in parsed.words():
        if cases and word not in known:
            meant = hint(word, sorted(known), f"there are {', '.join(sorted(known)) or 'none'}")
            raise UserError(f"-t {expression!r}: no scenario has the tag {word!r}; {meant}")
    return [case for case in cases if fits(case.scenario.tags.__contains__)]


def nothing_selected(keywords: str | None, cases: Iterable[Selectable]) -> str:
    """The message if nothing of `cases` is selected: the words of ``-k`` that are in no name, with
    suggestions.
    """
    names = [case.name.lower() for case in cases]
    known = sorted({part for name in names for part in (name, *re.split("[^a-z0-9.]+", name))})
    said = ["nothing is selected"]
    for word in _Expression(keywords or "", "-k").words():
        if not any(word.lower() in name for name in names):
            said.append(
                f"no case has {word!r} in its name; "
                f"{hint(word.lower(), known, '`gradcheck list` shows them')}"
            )
    return ": ".join([said[0], "; ".join(said[1:])]).removesuffix(": ")


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
            raise UserError(f"{option}: the expression has more than {_MOST_TOKENS} words")

    def parse(self) -> Callable[[Holds], bool]:
        """The expression as a function of what its words mean."""
        whole = self.any_of()
        if self.token:
            raise self.expected("and, or, or the end")
        return whole

    def words(self) -> list[str]:
        """The words other than operators."""
        return [token for token in self.tokens if token not in ("and", "or", "not", "(", ")")]

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

    def expected(self, what: str) -> UserError:
        found = repr(self.token) if self.token else "its end"
        return UserError(
            f"{self.option} {self.text!r}: expected {what} but found {found}; combine words with "
            f"and, or, not, ( and )"
        )
