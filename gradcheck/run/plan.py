"""The cases of a run: scenarios × matrix × backends, or a shard of them. Imports no backend."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from gradcheck.backends.base import framework_of_backend, usual_backend
from gradcheck.backends.environments import BackendPlace
from gradcheck.case.case import Case
from gradcheck.case.defaults import TIMEOUT
from gradcheck.case.naming import points
from gradcheck.spec.model import SpecFile


class CaseSettings(TypedDict, total=False):
    """The options that all cases of a run share and that no scenario sets."""

    mode: Literal["auto", "probe", "full"]
    order: Literal[1, 2]
    effort: Literal["least", "usual", "full"]
    memory: int
    recorded: bool
    reruns: int


def plan(
    specs: Iterable[SpecFile],
    backends: Sequence[str],
    places: Mapping[str, BackendPlace] = {},
    *,
    seed: int | None = None,
    timeout: float | None = None,
    default_timeout: float = TIMEOUT,
    **settings: Unpack[CaseSettings],
) -> list[Case]:
    """Return all cases in order: file, scenario, matrix point, backend of the file's framework.

    A `seed` and a `timeout` in seconds replace the scenarios' own; `default_timeout` is for
    scenarios without one. Backends that are not in `places` run with this interpreter.
    """
    known: dict[str, list[BackendPlace]] = {}
    for backend in backends:
        place = places.get(backend, BackendPlace(backend))
        known.setdefault(framework_of_backend(backend), []).append(place)
    fields = set(Case.model_fields)  # one set for all: a run may have very many cases
    return [
        Case.model_construct(
            fields,
            scenario=scenario,
            backend=place.backend,
            interpreter=place.interpreter,
            unavailable=place.problem,
            parameters=point,
            seed=scenario.seed if seed is None else seed,
            timeout=timeout or scenario.timeout or default_timeout,
            compared=len(known[spec.framework]) > 1,
            **settings,
        )
        for spec in specs
        for scenario in spec.scenarios
        for point in points(scenario.matrix)
        for place in known.get(spec.framework, ())
    ]


def with_usual_backends(backends: Iterable[str], specs: Iterable[SpecFile]) -> list[str]:
    """Return backends, plus the usual backend of each framework in `specs` that none of them
    runs.
    """
    chosen = [*backends]
    for framework in dict.fromkeys(spec.framework for spec in specs):
        if framework not in map(framework_of_backend, chosen):
            chosen.append(usual_backend(framework))
    return chosen


def shard(cases: Iterable[Case], number: int, total: int) -> list[Case]:
    """Return the cases of shard `number`, from 1 to `total`, which depends only on their names."""

    def shard_of(case: Case) -> int:
        digest = hashlib.sha256(case.name.encode()).digest()
        return int.from_bytes(digest[:8], "big") % total + 1

    return [case for case in cases if shard_of(case) == number]
