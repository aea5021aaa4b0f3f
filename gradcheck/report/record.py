"""The content of a report: a run with its results; and its JSON format."""

from __future__ import annotations

import json
import platform
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import to_json

from gradcheck import __version__
from gradcheck.backends.base import installed_version
from gradcheck.case.case import Case
from gradcheck.result import Result

REPORT_FORMAT: Final = "gradcheck-report/2"
PACKAGES = ("numpy", "cupy", "paddlepaddle")
"""The packages whose versions a report lists."""


class PagePart(NamedTuple):
    """A part of the page: HTML that is escaped already, and its style sheet."""

    html: str
    style: str


class Report(BaseModel):
    """A run: its versions, its command, and its results in the order of the scenarios."""

    # Few runs write one, and building it takes as long as reading a file of scenarios.
    model_config = ConfigDict(
        frozen=True,
        ser_json_inf_nan="strings",
        json_schema_serialization_defaults_required=True,
        defer_build=True,
    )

    format: Literal["gradcheck-report/2"] = Field(
        default=REPORT_FORMAT, description="The format of this file."
    )
    gradcheck: str = Field(
        default_factory=lambda: __version__, description="The version of gradcheck."
    )
    suite: str = Field(
        default="",
        description="Version and digest of the bundled suite, if any of its scenarios ran.",
    )
    python: str = Field(
        default_factory=platform.python_version, description="The version of Python."
    )
    platform: str = Field(
        default_factory=platform.platform,
        description="The operating system, in Python's words.",
    )
    versions: dict[str, str] = Field(
        default_factory=lambda: versions(), description="The versions of numerical packages."
    )
    command: tuple[str, ...] = Field(default=(), description="The arguments of the command line.")
    again: str = Field(
        default="",
        description="Options with which one of the cases runs again as it ran here.",
    )
    seeds: tuple[int, ...] = Field(default=(), description="The seeds of the cases, each once.")
    started: str = Field(default="", description="When the run began: ISO 8601, UTC.")
    seconds: float = Field(default=0.0, description="How long it took.")
    not_run: int = Field(default=0, description="Cases without a result: the run was stopped.")
    results: tuple[Result, ...] = Field(default=(), description="The results, one per case.")
    cases: SkipJsonSchema[tuple[Case, ...]] = Field(default=(), exclude=True)
    """The cases of the results; they are not written to files."""
    matrix: SkipJsonSchema[PagePart | None] = Field(default=None, exclude=True)
    """The matrix of rules and backends for the page, if the run has several backends."""

    @property
    def good(self) -> bool:
        """Whether every case has a result and is as expected."""
        return not self.not_run and all(result.status.green for result in self.results)


def versions() -> dict[str, str]:
    """The versions of `PACKAGES` that are installed."""
    return {package: version for package in PACKAGES if (version := installed_version(package))}


def as_json(report: Report) -> str:
    """An object with the versions, the command and the results, see ``schemas/report.json``.

    It is strict JSON in ASCII: numbers that JSON cannot represent are the texts ``NaN``,
    ``Infinity`` and ``-Infinity``.
    """
    return json.dumps(json_data(report), indent=1, allow_nan=False) + "\n"


def as_json_lines(report: Report) -> str:
    """JSON lines: first the object without its results, then each result."""
    data = json_data(report)
    results = data.pop("results")
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in [data, *results])


def json_data(report: Report) -> dict[str, Any]:
    """The report as data that JSON can represent."""
    data: dict[str, Any] = json.loads(to_json(report.model_dump(), inf_nan_mode="strings"))
    return data
