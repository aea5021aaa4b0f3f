"""The cases of a spec that a test writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradcheck.case.case import Case
from gradcheck.run.plan import plan
from gradcheck.spec.read import read, read_bytes


def cases_of(
    spec: Path | str, backends: Sequence[str] = ("numpy",), path: str = "t.grad.yaml", **options: Any
) -> list[Case]:
    """The cases of a spec: of a file, or of a text as if it stood in `path`. The options are those of `plan`."""
    return plan([read(spec) if isinstance(spec, Path) else read_bytes(spec.encode(), path)], list(backends), **options)


def case_of(spec: Path | str, backends: Sequence[str] = ("numpy",), path: str = "t.grad.yaml", **options: Any) -> Case:
    """The first of `cases_of`."""
    return cases_of(spec, backends, path, **options)[0]
