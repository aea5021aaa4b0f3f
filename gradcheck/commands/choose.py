"""Which backends a run is on, and where each runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gradcheck.backends.base import BACKENDS, kind_of
from gradcheck.backends.environments import BackendPlace, name_problem, place_of_backend
from gradcheck.commands.specs import fail
from gradcheck.commands.trust import Leave
from gradcheck.config import Config

_IN_CASE = re.compile(rf"@(({'|'.join(BACKENDS)})(@[^@]+)?)$")


def environments_of(leave: Leave) -> Mapping[str, str]:
    """The interpreters that the project names, if its word counts: they are started, and may be any program."""
    return leave.project.config.environments if leave.for_all or leave.trusted else {}


def chosen_backends(
    names: Sequence[str], ids: Sequence[str], config: Config, environments: Mapping[str, str], required: bool
) -> dict[str, BackendPlace]:
    """Those of ``-b``, or of the case names among `ids`, or of the configuration, or numpy; commas separate as well.

    Raises:
        SystemExit: there is no such backend, or one that ``-b`` names, that is `required`, or that needs nothing
            further, cannot be used.
    """
    named = split_names(names)
    for name in ids:
        if "@" in name and not _IN_CASE.search(name):
            check_backend(name.partition("@")[2])
    in_cases = [match[1] for match in map(_IN_CASE.search, ids) if match]
    chosen = list(dict.fromkeys(named or in_cases or config.backends or ["numpy"]))
    for name in chosen:
        check_backend(name)
    found = {name: place_of_backend(name, environments) for name in chosen}
    for name, place in found.items():
        if place.problem and (named or required or not BACKENDS[kind_of(name)].extra):
            raise fail(f"backend {name}: {place.problem}{untrusted(name, config, environments)}")
    return found


def split_names(words: Sequence[str]) -> list[str]:
    """The backends that words name, between commas."""
    return [name.strip() for word in words for name in word.split(",") if name.strip()]


def check_backend(name: str) -> None:
    """See that a name is that of a backend. Raises SystemExit: it is none."""
    if problem := name_problem(name):
        raise fail(problem)


def untrusted(name: str, config: Config, environments: Mapping[str, str]) -> str:
    """What to add where the project names an interpreter for a backend, and its word does not count."""
    named = name in config.environments and name not in environments
    return "; the project names an interpreter, which counts once `gradcheck trust` says so" if named else ""


def place_again(name: str, environments: Mapping[str, str]) -> dict[str, BackendPlace]:
    """Where the backend of a case that ran before runs now. Raises SystemExit: it cannot run, or is no backend."""
    check_backend(name)
    place = place_of_backend(name, environments)
    if place.problem:
        raise fail(f"backend {name}: {place.problem}")
    return {name: place}
