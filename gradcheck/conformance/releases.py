"""Results of releases, kept outside of the suite: one file per release that was run.

``specs/releases/paddle-3.3.1.yaml`` has the scenarios that hold on 3.3.1, and for each other
scenario the behaviour of the release and the reason. `gradcheck run --bundled -b paddle@3.3.1
--record FILE` writes it; reasons are written by hand. A run reads the file of its release: a
recorded deviation is an XFAIL, a scenario that holds although a deviation is recorded an XPASS,
anything else a FAIL. Other frameworks of `SUITES` have files in the same form:
``specs/releases/torch-2.13.0.yaml``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from packaging.version import InvalidVersion, Version
from pydantic import Field

from gradcheck.backends.base import framework_of_backend, kind_of, version_of
from gradcheck.case.case import Case
from gradcheck.spec.document import parse
from gradcheck.spec.literals import FrameworkName
from gradcheck.spec.model import LAX, BackendExpectation, Format, Scenario
from gradcheck.spec.read import validate_document
from gradcheck.spec.text import read_text
from gradcheck.support.resources import SUITES, is_bundled, release_paths
from gradcheck.support.user_error import UserError

RELEASE_FORMAT = "gradcheck-release/1"
UNREAD = "unread: "
"""The prefix of a reason that `--record` wrote and that nobody has reviewed yet."""


class Deviation(BackendExpectation):
    """A release's behaviour that differs from a scenario's expectation, and the reason."""

    noun = "a deviation"
    example = "{reason: …, observed: …}"

    versions: None = Field(default=None, description="A file must be about exactly one release.")


class ReleaseRun(Format):
    """The run from which a release file was written."""

    noun = "run"
    example = "{date: '2026-11-26', python: '3.11.7', system: Linux x86_64, suite: …}"

    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="The day of the run.")
    python: str = Field(min_length=1, description="Version of the release's interpreter.")
    system: str = Field(min_length=1, description="Operating system and processor.")
    suite: str = Field(min_length=1, description="Version and digest of the suite that was run.")


class ReleaseFile(Format):
    """The recorded behaviour of one release in the scenarios of the suite."""

    noun = "a release file"

    format: Literal["gradcheck-release/1"] = Field(description="The version of the format.")
    backend: FrameworkName = Field(description="The framework.")
    release: str = Field(min_length=1, description="The release, such as '3.3.1'.")
    run: ReleaseRun = Field(description="The run from which the file was written.")
    deviates: dict[str, Deviation] = Field(
        default={}, description="Scenario → the behaviour of the release, and the reason."
    )
    holds: Annotated[tuple[str, ...], LAX] = Field(
        default=(),
        description="Scenarios that ran and hold. A scenario in neither list was not run.",
    )

    @functools.cached_property
    def holds_set(self) -> frozenset[str]:
        """The scenarios that hold, as a set for look-ups."""
        return frozenset(self.holds)


# --------------------------------------------------------------------------- files
@functools.cache
def read_release(path: Path) -> ReleaseFile:
    """Read a release file. Raises SpecError: the file has mistakes."""
    text = read_text(path, str(path))
    return validate_document(ReleaseFile, parse(text), text)


def find_release(version: str, framework: str = "paddle") -> str:
    """Return the release whose file is read for a version: its own, otherwise the newest.

    A develop build (version 0.0.0) and a release without a file are compared with the newest
    recorded release of the framework. Empty if no release is recorded.
    """
    try:
        wanted = Version(version).public
    except InvalidVersion:
        wanted = ""
    releases = release_paths(framework)
    return wanted if wanted in releases else next(reversed(releases), "")


def require_recorded(release: str, framework: str = "paddle") -> str:
    """Require that a release has a file, and return it. Raises UserError: it has none."""
    if release not in release_paths(framework):
        known = ", ".join(release_paths(framework)) or "none"
        subject = f"{framework} {release} was not run"
        if "@" in release:
            subject = f"{release} is not a release: write its number"
        elif not release:
            subject = f"{framework}: name a release"
        raise UserError(f"{subject}; releases that were run: {known}")
    return release


# --------------------------------------------------------------------------- cases
def with_recorded_deviations(cases: Sequence[Case], as_version: str = "") -> list[Case]:
    """Return cases whose bundled scenarios have the deviations recorded for their release.

    `as_version` names the release whose file is read instead of the installed one's.
    Raises UserError: that release was not run.
    """
    for framework in {framework_of_backend(case.backend) for case in cases if as_version}:
        require_recorded(as_version, framework)
    known: dict[tuple[str, str], Scenario] = {}
    changed = []
    for case in cases:
        key = case.backend, case.scenario.id
        if key not in known:
            known[key] = with_deviation(case.scenario, case.backend, as_version)
        changed.append(case.model_copy(update={"scenario": known[key]}))
    return changed


def with_deviation(scenario: Scenario, backend: str, as_version: str = "") -> Scenario:
    """Return a scenario with the recorded deviation of a backend's release, if there is one."""
    framework = kind_of(backend)
    if framework not in SUITES or not is_bundled(scenario.path):
        return scenario
    release = as_version or find_release(version_of(backend), framework)
    path = release_paths(framework).get(release)
    entry = read_release(path).deviates.get(scenario.id) if path else None
    if entry is None:
        return scenario
    entries = (entry.complete(scenario.usual_gradient),)
    return scenario.model_copy(update={"backends": {**scenario.backends, framework: entries}})


def deviations_of(scenario: str) -> dict[str, Deviation]:
    """Return how releases deviate from a scenario's expectation, by release, the oldest first."""
    deviations = {}
    for release, path in release_paths().items():
        entry = read_release(path).deviates.get(scenario)
        if entry is not None:
            deviations[release] = entry
    return deviations
