"""Selection of cases: ids, and the expressions of ``-k`` and ``-t``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable

from gradcheck.case.case import Case
from gradcheck.codes import CODES
from gradcheck.support.suggest import hint, require_one_name
from gradcheck.support.user_error import UserError

EXPRESSION_FORM = "combine words with and, or, not, ( and ), all in one pair of quotes"


def select(
    cases: Iterable[Case],
    ids: Iterable[str] = (),
    keywords: str | None = None,
    tags: str | None = None,
) -> list[Case]:
    """The cases that `ids`, the expression `keywords` (``-k``) and the expression `tags` (``-t``)
    all select.

    Raises UserError: an id does not exist, or an expression is malformed.
    """
    cases = list(cases)
    selected = select_ids(cases, ids)
    if keywords is not None:
        selected = select_names(selected, keywords)
    if tags is not None:
        known = {tag for case in cases for tag in case.scenario.tags}
        selected = select_tags(selected, tags, known)
    return selected


def select_ids(cases: Iterable[Case], ids: Iterable[str]) -> list[Case]:
    """The cases that `ids` lists by scenario or by name; all cases if it is empty.

    A name may omit the parameters, the backend, or both (a scenario).

    Raises UserError: nothing has such an id or name.
    """
    wanted, candidates = set(ids), list(cases)
    if not wanted:
        return candidates
    known = {name for case in candidates for name in names_of(case)}
    for name in sorted(wanted - known):
        require_one_name(name, known.__contains__)
        meant = hint(name, sorted(known), "`gradcheck list` lists all, with tags and files")
        if (code := name.upper().replace("-", "")) in CODES:
            meant = f"`gradcheck explain {code}` explains that code"
        raise UserError(f"no file, folder or scenario is called {name!r}; {meant}")
    return [case for case in candidates if not wanted.isdisjoint(names_of(case))]


def names_of(case: Case) -> set[str]:
    """The names that select a case: ``tanh/dtype=float32@numpy``, and the same
    without one or both parts after the id.
    """
    parameters, separator, backend = case.name.partition("@")
    return {case.scenario.id, case.name, parameters, f"{case.scenario.id}{separator}{backend}"}


def select_names(cases: Iterable[Case], expression: str) -> list[Case]:
    """The cases whose names match ``-k``: words are parts of the name, upper or lower case."""
    wanted = Expression(expression.lower(), "-k")
    return [case for case in cases if wanted.holds(case.name.lower().__contains__)]


def select_tags(cases: Iterable[Case], expression: str, known: Collection[str]) -> list[Case]:
    """The cases whose tags match ``-t``: words are whole tags.

    Raises UserError: the expression is malformed, or has a word that is not among the `known` tags
    of all scenarios.
    """
    wanted, cases = Expression(expression, "-t"), list(cases)
    for word in wanted.words:
        if not re.fullmatch(r"\w[\w-]*", word):  # the form of tags, unlike -slow, a,b or a|b
            raise wanted.malformed()
        if cases and word not in known:
            meant = hint(word, sorted(known), f"there are {', '.join(sorted(known)) or 'none'}")
            raise UserError(f"-t {expression!r}: no scenario has the tag {word!r}; {meant}")
    return [case for case in cases if wanted.holds(case.scenario.tags.__contains__)]


def nothing_selected(keywords: str | None, cases: Iterable[Case]) -> str:
    """The message if none of `cases` is selected: the words of ``-k`` that are in no name, with
    suggestions.
    """
    names = [case.name.lower() for case in cases]
    known = sorted(
        {fragment for name in names for fragment in (name, *re.split("[^a-z0-9.]+", name))}
    )
    words = Expression(keywords.lower(), "-k").words if keywords else []
    unknown = []
    for word in words:
        if any(word in name for name in names):
            continue
        advice = hint(word, known, "`gradcheck list` shows them")
        if re.search("[!&|,~]", word):
            advice = EXPRESSION_FORM
        unknown.append(f"no case has {word!r} in its name; {advice}")
    return ": ".join(["nothing is selected", "; ".join(unknown)]).removesuffix(": ")


_LOGIC = (ast.Expression, ast.BoolOp, ast.UnaryOp, ast.boolop, ast.Not, ast.Name, ast.Load)
"""The syntax nodes that an expression may have, once its words are names."""


class Expression:
    """Words combined by ``and``, ``or``, ``not`` and parentheses, with Python's meaning.

    Raises UserError: the expression does not have this form.
    """

    def __init__(self, text: str, option: str) -> None:
        self.text, self.option = text, option
        tokens = re.findall(r"[()]|[^\s()]+", text)
        self.words = [token for token in tokens if token not in ("and", "or", "not", "(", ")")]
        names = (f"word_{number}" for number in range(len(self.words)))
        source = " ".join(next(names) if token in self.words else token for token in tokens)
        try:
            tree = ast.parse(source, mode="eval")
            if not all(isinstance(node, _LOGIC) for node in ast.walk(tree)):
                raise SyntaxError
            self.code = compile(tree, option, "eval")
        except (SyntaxError, RecursionError, MemoryError):
            raise self.malformed() from None

    def malformed(self) -> UserError:
        """The error for an expression that does not have this form."""
        return UserError(f"{self.option} {self.text!r}: {EXPRESSION_FORM}")

    def holds(self, word_holds: Callable[[str], bool]) -> bool:
        """Whether the expression holds, given a predicate for its words."""
        values = {f"word_{number}": word_holds(word) for number, word in enumerate(self.words)}
        return bool(eval(self.code, {}, values))
