"""Release files written from a run: which scenarios hold, and how the others deviate."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from platform import machine, system
from typing import Any

import yaml
from packaging.version import Version

from gradcheck.backends.base import kind_of, version_of
from gradcheck.case.case import Case
from gradcheck.conformance.releases import (
    RELEASE_FORMAT,
    UNREAD,
    Deviation,
    read_release,
)
from gradcheck.conformance.suite import suite_version
from gradcheck.result import AS_DOCUMENTED, Result, Status
from gradcheck.spec.model import BackendExpectation
from gradcheck.spec.read import load
from gradcheck.support.file_io import require_folder, write_whole
from gradcheck.support.resources import SUITES, bundled_files, is_bundled
from gradcheck.support.user_error import UserError, refusals_of

WIDTH = 100
HEADS = {
    "paddle": """\
# What Paddle {release} does with the bundled suite, from a run of it:
# `gradcheck run --bundled -b paddle@{release} --record {name}`. Reasons are written by hand.
""",
    "torch": """\
# What torch {release} does with the suite of its documents, from a run of it:
# `gradcheck run specs/torch -b torch --record {name}`. Reasons are written by hand.
""",
}
"""Framework → how its release files begin."""


def require_recordable(cases: Sequence[Case], path: str) -> None:
    """Raise UserError unless the cases are those of a suite on one release of its framework."""
    backends = sorted({case.backend for case in cases})
    if len(backends) != 1 or kind_of(backends[0]) not in SUITES:
        raise UserError(
            f"--record {path}: a file is about one release of Paddle or torch: add -b paddle, "
            f"-b torch, or a release such as -b paddle@3.3.1"
        )
    if not all(is_bundled(case.scenario.path) for case in cases):
        suites = "add --bundled, or specs/torch for torch"
        raise UserError(f"--record {path}: it records the bundled suite: {suites}")
    require_folder(Path(path).parent, f"--record {path}")


def write_release_file(path: Path, cases: Sequence[Case], results: Sequence[Result]) -> None:
    """Write the behaviour of the backend of some cases.

    Entries that the run confirms stay as they are, as do those of scenarios that it left out;
    new entries have a reason that begins with `UNREAD`. The file's `run` is the last run of the
    whole suite.

    Raises UserError: the file cannot be written.
    """
    by_name = {case.name: case for case in cases}
    case_results: dict[str, list[tuple[Case, Result]]] = {}
    for result in results:
        case = by_name[result.cases[-1]]
        case_results.setdefault(case.scenario.id, []).append((case, result))
    deviates, holds = dict[str, dict[str, Any]](), list[str]()
    for scenario, outcomes in case_results.items():
        if entry := release_entry(outcomes):
            deviates[scenario] = entry
        elif any(result.status in (*AS_DOCUMENTED, Status.XPASS) for _, result in outcomes):
            holds.append(scenario)
    run = run_of(cases[0])
    if path.exists():
        recorded = read_release(path)
        suite = load(bundled_files(kind_of(cases[0].backend)))
        known = {scenario.id for spec in suite for scenario in spec.scenarios}
        not_rerun = known - case_results.keys()
        deviates |= {
            id: entry_data(recorded.deviates[id]) for id in not_rerun & recorded.deviates.keys()
        }
        holds += not_rerun & recorded.holds_set
        if not_rerun:
            run = recorded.run.model_dump(mode="json")
    text = file_text(cases[0], path.name, run, dict(sorted(deviates.items())), sorted(holds))
    with refusals_of(f"--record {path}"):
        write_whole(path, text)


def release_entry(outcomes: Sequence[tuple[Case, Result]]) -> dict[str, Any] | None:
    """Return the entry of a scenario from its cases; None if it holds or gives no information."""
    for case, result in outcomes:
        if result.status is Status.XFAIL or case.entry.skip is not None:
            return entry_data(case.entry)
    for _, result in outcomes:
        if not result.status.green and result.status not in (Status.XPASS, Status.INCONCLUSIVE):
            return new_entry(result)
    return None


def new_entry(result: Result) -> dict[str, Any]:
    """Return the behaviour of a case, with a placeholder for the reason."""
    observed = result.instead
    if result.status is Status.TIMEOUT:
        observed = {"hang": True}
    elif result.signal:
        observed = {"crash": [result.signal]}
    message = " ".join(result.message.split())
    return {"reason": f"{UNREAD}{message[:300]}", "observed": observed}


def entry_data(entry: BackendExpectation) -> dict[str, Any]:
    """Return an entry in the form of a release file."""
    data = entry.model_dump(mode="json", exclude_unset=True, exclude={"versions"})
    observed = data.get("observed") or {}
    if observed.get("gradient") == "unchecked":  # the default
        del observed["gradient"]
    order = [key for key in Deviation.model_fields if data.get(key) is not None]
    order.sort(key=lambda key: key not in ("reason", "policy", "issue"))
    return {key: data[key] for key in order}


# --------------------------------------------------------------------------- text
def run_of(case: Case) -> dict[str, str]:
    """Return the description of a case's run for a release file."""
    return {
        "date": str(date.today()),
        "python": python_of(case),
        "system": f"{system()} {machine()}",
        "suite": f"gradcheck {suite_version(kind_of(case.backend))}",
    }


def file_text(
    case: Case,
    name: str,
    run: dict[str, str],
    deviates: dict[str, dict[str, Any]],
    holds: Iterable[str],
) -> str:
    """Return the text of a release file."""
    framework, release = kind_of(case.backend), Version(version_of(case.backend)).public
    fields = {"format": RELEASE_FORMAT, "backend": framework, "release": release}
    head = HEADS[framework].format(release=release, name=name)
    parts = [head, dump({**fields, "run": run})]
    parts.append("deviates:" + ("" if deviates else " {}") + "\n")
    for scenario, entry in deviates.items():
        parts.append(textwrap.indent(dump({scenario: entry}), "  "))
    wrapped = textwrap.fill(
        ", ".join(holds), WIDTH - 2, initial_indent="  ", subsequent_indent="  ",
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    parts.append(f"holds: [\n{wrapped}\n]\n" if wrapped else "holds: []\n")
    return "".join(parts)


def dump(data: dict[str, Any]) -> str:
    """Return YAML in the subset that specs use."""
    text: str = yaml.dump(data, Dumper=_FlowLists, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


class _FlowLists(yaml.SafeDumper):
    """A dumper that writes mappings as blocks and lists on one line."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        return super().represent_sequence(tag, sequence, flow_style=True)


def python_of(case: Case) -> str:
    """The version of the interpreter that ran a case."""
    from platform import python_version

    from gradcheck.backends.environments import inspect_interpreter

    return (
        inspect_interpreter(case.backend, case.interpreter).python
        if case.interpreter
        else python_version()
    )
