"""Rules of what a scenario says of a backend: which keys go together, and which versions an entry is about."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from gradcheck.spec import expectations
from gradcheck.spec.diagnostic import quote
from gradcheck.spec.messages import misspelt
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node
from gradcheck.spec.versions import is_range, shared

_ENDS = ("crash", "hang")
# A key, keys that it rules out, and what to do about it.
_APART = (
    ("skip", ("xfail", "observed"), "keep one: a case that is not run cannot fail"),
    ("xfail", ("observed",), "keep 'observed', which says in what way the case fails"),
    ("expect", ("observed",), "keep 'expect' if what it does is right, 'observed' if it is not"),
    ("reason", ("policy",), "keep 'policy', which has a reason of either side, if it is no mistake"),
)


def backend_entries(scenario: Node) -> Iterator[list[Node]]:
    """For each backend that a scenario speaks of, what it says of its versions."""
    for _, value in scenario.mapping("backends").entries.values():
        yield [one for one in (value.items or [value]) if one.kind == "mapping"]


def check_backends(scenario: Node, text: SpecText) -> None:
    """Report what is wrong with the entries of each backend, as far as the model alone cannot tell."""
    for _, value in scenario.mapping("backends").entries.values():
        if value.kind == "sequence" and not value.items:
            message, help = "a backend's expectations must not be empty", "write what is different, or remove it"
            text.report(*value.place, message, help)
    for entries in backend_entries(scenario):
        check_entries(entries, text)


def all_expectations(scenario: Node) -> list[Node]:
    """What a scenario expects, and what it says of each backend: expectations and observations."""
    entries = [entry for entries in backend_entries(scenario) for entry in entries]
    found = [scenario.get("expect"), *(entry.get(key) for entry in entries for key in ("expect", "observed"))]
    return [one for one in found if one is not None]


def check_entries(entries: Sequence[Node], text: SpecText) -> None:
    """Report what is wrong with the entries of one backend."""
    ranges: list[tuple[Node, Node | None]] = []
    for entry in entries:
        _check_keys(entry, text)
        range = entry.get("versions")
        if range is None or (isinstance(range.value, str) and is_range(range.value)):
            ranges.append((entry, range))
        elif isinstance(range.value, str):
            help = "write '>=3.0,<3.3' or '==3.0.0': comparisons of PEP 440, joined by commas"
            text.report(*range.place, f"versions: {quote(range.text)} is no range of versions", help)
            range.kind = "unreadable"
    for (_, one), (entry, other) in itertools.combinations(ranges, 2):
        if common := shared(*(None if range is None else str(range.value) for range in (one, other))):
            limited = one is not None and other is not None
            help = "let one range end where another begins" if limited else "an entry without 'versions' is about all"
            text.report(*(other or entry).place, f"two entries are about version {common}", help)


def _check_keys(entry: Node, text: SpecText) -> None:
    for key, others, help in _APART:
        for other in others:
            if key in entry.entries and other in entry.entries:
                text.report(*entry.at(key), f"both {quote(other)} and {quote(key)} for one backend", help)
    for key in ("reason", "policy", "issue"):
        unused = key in entry.entries and "observed" not in entry.entries
        if unused and not misspelt(entry, expectations.BackendExpectation, ["observed"]):
            text.report(
                *entry.at(key), f"{quote(key)} is of no use without 'observed'", "xfail and skip have their own"
            )
    observed = entry.get("observed")
    if observed is None or observed.kind != "mapping":
        return
    why = ["reason", "policy"]
    if entry.entries.keys().isdisjoint(why) and not misspelt(entry, expectations.BackendExpectation, why):
        help = "add 'reason: …': why, in one sentence"
        text.report(*entry.at("observed"), "'observed' needs a 'reason' beside it", help)
    for key in ("observed", "crash"):
        node = observed if key == "observed" else observed.get(key)
        if node is not None and not node.entries and not node.items and node.kind in ("mapping", "sequence"):
            text.report(*node.place, f"{key} must not be empty", "write what is seen")
    ends = [key for key in _ENDS if key in observed.entries]
    rest = [key for key in observed.entries if key not in ends]
    if ends and (rest or len(ends) > 1):
        other = (rest or ends[1:])[0]
        message = f"{quote(other)} cannot be seen of a case that ends by {quote(ends[0])}"
        text.report(*observed.at(other), message, "keep one of the two")
    hang = observed.get("hang")
    if hang is not None and hang.value is False:
        text.report(*observed.at("hang"), "'hang: false' says nothing", "remove it")
