"""What there is to run: scenarios × matrix × backends, or a shard of it. Imports no backend."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from gradcheck.backends.environments import BackendPlace
from gradcheck.case.case import Case
from gradcheck.case.defaults import MEMORY, TIMEOUT
from gradcheck.case.naming import points
from gradcheck.spec.model import SpecFile


def plan(
    specs: Iterable[SpecFile],
    backends: Sequence[str],
    *,
    seed: int | None = None,
    mode: Literal["auto", "probe", "full"] = "auto",
    order: Literal[1, 2] = 1,
    effort: Literal["usual", "full"] = "usual",
    timeout: float | None = None,
    default_timeout: float = TIMEOUT,
    memory: int = MEMORY,
    places: Mapping[str, BackendPlace] = {},
) -> list[Case]:
    """All cases in order: file, scenario, matrix point, backend.

    `seed` and `timeout` (seconds), if given, go before the scenarios' own; `default_timeout` is for those without.
    `memory` is the limit of each in bytes. Backends that are not in `places` run with this interpreter.
    """
    at = {backend: places.get(backend) or BackendPlace(backend) for backend in backends}
    fields = set(Case.model_fields)
    return [
        Case.model_construct(
            fields,  # one set for all: a run may have very many cases
            scenario=scenario,
            backend=backend,
            interpreter=at[backend].interpreter,
            unavailable=at[backend].problem,
            parameters=point,
            seed=scenario.seed if seed is None else seed,
            mode=mode,
            order=order,
            effort=effort,
            timeout=timeout or scenario.timeout or default_timeout,
            compared=len(backends) > 1,
            memory=memory,
        )
        for spec in specs
        for scenario in spec.scenarios
        for point in points(scenario.matrix)
        for backend in backends
    ]


def shard(cases: Iterable[Case], number: int, of: int) -> list[Case]:
    """The cases of shard `number` (from 1) `of` so many: which one a case is in depends on its name alone."""

    def home(case: Case) -> int:
        return int.from_bytes(hashlib.sha256(case.name.encode()).digest()[:8], "big") % of

    return [case for case in cases if home(case) == number - 1]
