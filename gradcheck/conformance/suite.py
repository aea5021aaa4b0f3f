"""The version of the bundled suite: one for every report, release file and matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from gradcheck import __version__
from gradcheck.spec.model import SpecFile

WHAT_RUNS = {
    "id", "layer", "script", "call", "inputs", "outputs", "sizes", "matrix", "world", "random",
    "expect", "seed", "rtol",
}  # fmt: skip
"""Keys of a scenario that say what runs and what must hold; titles, rules and files may change."""


def suite_version(specs: Iterable[SpecFile]) -> str:
    """Return the version of gradcheck, and a digest of what scenarios run and expect.

    Every report of a run of the suite has it, and every release file: ``0.1.0, ca1b29392b86``.
    """
    scenarios = [scenario for spec in specs for scenario in spec.scenarios]
    whole = hashlib.sha256()
    for scenario in sorted(scenarios, key=lambda scenario: scenario.id):
        whole.update(scenario.model_dump_json(include=WHAT_RUNS, exclude_defaults=True).encode())
    return f"{__version__}, {whole.hexdigest()[:12]}"
