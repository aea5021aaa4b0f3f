"""The scenarios that a command selects: spec files, folders and ids on the command line."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gradcheck.backends.base import framework_of_backend, kind_of
from gradcheck.case.naming import LAYER_REFERENCE
from gradcheck.commands.advice import advice_on_bare_word, is_format
from gradcheck.commands.errors import NOTHING_SELECTED, USAGE
from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.folders import find, path_in_project
from gradcheck.spec.text import read_text
from gradcheck.support.display_paths import count
from gradcheck.support.escape import WithoutCommands, safe
from gradcheck.support.file_io import require_folder
from gradcheck.support.pyproject import root_of, roots
from gradcheck.support.resources import SUITES, bundled_files, bundled_specs, is_bundled
from gradcheck.support.suggest import hint, nearest
from gradcheck.support.user_error import UserError, refusals_of

if TYPE_CHECKING:
    from gradcheck.case.case import Case
    from gradcheck.config import Project
    from gradcheck.spec.model import Scenario, SpecFile


@dataclass(frozen=True)
class Target:
    """An argument of the command line, resolved: a path, a scenario of a file, or an id."""

    path: str = ""
    id: str = ""
    line: int | None = None

    @property
    def is_place(self) -> bool:
        """Whether the argument is a scenario of a file."""
        return bool(self.path and (self.id or self.line is not None))


_PLACE = re.compile(r"(.*\.ya?ml)(?:::(.+)|:(\d{1,9})(?::\d{1,9}:?)?)")


def parse_target(word: str) -> Target:
    """Resolve a word: a path if it exists or looks like one, ``-`` for stdin,
    ``FILE::ID``, ``FILE:LINE`` (also with a column, as output has it) or an id.
    """
    if word == "-" or Path(word).exists():
        return Target(word)
    if place := _PLACE.fullmatch(word):
        return Target(place[1], place[2] or "", int(place[3]) if place[3] else None)
    is_path = word.lower().endswith((".yaml", ".yml", "/"))
    return Target(word) if is_path else Target(id=word)


def read_specs(
    names: Sequence[str],
    project: Project | None = None,
    *,
    bundled: bool = False,
    command: str = "run",
) -> tuple[list[SpecFile], list[str]]:
    """Return the spec files that `names` refer to, and the ids among them.

    Without paths among the names, the project's files are read, or with `bundled` those of
    gradcheck; ids that the project does not have are searched for among gradcheck's own.

    Raises:
        UserError: no file is found, or a name cannot be resolved.
        ConfigError: the project's settings cannot be used.
        SystemExit: a file has mistakes; all are printed.
    """
    from gradcheck.spec.read import read_each, shared_ids  # completing ids needs no model

    for name in names:
        require_spec_name(name)
    targets = [parse_target(name) for name in names]
    paths = list(dict.fromkeys(target.path for target in targets if target.path))
    selecting = [target for target in targets if target.id or target.is_place]
    files, mistakes = find_specs(paths, project, bundled=bundled)
    if not (files or mistakes or selecting):
        raise nothing_found(command)
    specs, file_mistakes = read_each(files)
    known = ids_in(specs)
    # Mistakes elsewhere do not keep one scenario from being run.
    wanted = {scenario_of(target.id) for target in selecting}
    is_elsewhere = not paths and bool(wanted) and wanted <= known
    refused = [*shared_ids(specs), *(() if is_elsewhere else [*mistakes, *file_mistakes])]
    if refused:
        refuse_mistakes(refused)
    if file_mistakes:
        wrong = ", ".join(dict.fromkeys(mistake.path for mistake in file_mistakes))
        number = count(len(file_mistakes), "mistake")
        text = f"{number} in {safe(wrong)}; `gradcheck validate` shows them"
        click.echo(f"gradcheck: {text}", err=True)
    ids = [id_of(target, specs) for target in selecting]
    unknown = [name for name in ids if scenario_of(name) not in known]
    for name in unknown:
        if advice := advice_on_unknown(name, known):
            raise UserError(f"no file, folder or scenario is called {name!r}; {advice}")
        if bundled:
            near = hint(name, known, "`gradcheck list --bundled` lists all")
            raise UserError(f"no bundled scenario is called {name!r}; {near}")
    if unknown and not paths and not bundled:
        specs += [without(spec, known) for spec in read_bundled()]
    return specs, ids


def advice_on_unknown(name: str, ids: Collection[str]) -> str:
    """Return advice on a word that is neither a path nor one of the `ids`; empty if nothing like it
    exists, or only an id.
    """
    from gradcheck.spec.draft import file_of_module, meant_layer  # completing ids needs no model

    file = f"{name.removesuffix('.grad')}.grad.yaml"
    if os.path.isfile(file):
        return f"did you mean {file}?"
    in_file = re.fullmatch(r"(.+\.ya?ml)([:#@, /[(]*)([\w/=.@-]*)[])]?", name)
    if in_file and os.path.isfile(in_file[1]):
        separator = " -b " if in_file[2] == "@" else " "
        line = re.fullmatch(r"L?(\d+)", in_file[3])
        ending = f":{line[1]}" if line else f"{separator}{in_file[3]}"
        return f"write {in_file[1]}{ending}".rstrip()
    in_folder = re.fullmatch(r"(.+?)::?([\w=.-]+)", name)
    if in_folder and os.path.isdir(in_folder[1]):
        return f"write {in_folder[1]} {in_folder[2]}"
    folder, file = os.path.split(name)
    pattern = "*.grad.yaml" if ".grad" in file else "*/"
    names = sorted(path.name for path in Path(folder).glob(pattern))
    is_id = pattern == "*/" and nearest(name, ids)
    if not is_id and (near := nearest(file, names)):
        return f"did you mean {os.path.join(folder, near)}?"
    layer = meant_layer(name)
    if any(file_of_module(layer.partition(":")[0], root) for root in roots()):
        return f"`gradcheck check {layer}` checks that layer"
    if is_format(suffix := name.rpartition(".")[2]):
        return f"write --report {suffix}:{name}, in quotes if the path has spaces"
    if near := path_in_project(name):
        return f"did you mean {near}?"
    return advice_on_bare_word(name, click.get_current_context().command)


def ids_in(specs: Iterable[SpecFile]) -> set[str]:
    """Return the ids of the scenarios of some files."""
    return {scenario.id for spec in specs for scenario in spec.scenarios}


def refuse_mistakes(mistakes: Sequence[Diagnostic]) -> NoReturn:
    """Print mistakes in spec files. Raises SystemExit: always."""
    for diagnostic in SpecError(mistakes).diagnostics:
        click.echo(diagnostic.render(), err=True)
    annotate_on_github(mistakes)
    click.echo(f"{count(len(mistakes), 'mistake')} in spec files; nothing was run", err=True)
    raise SystemExit(USAGE)


def require_spec_name(name: str) -> None:
    """Raise UserError if a word names a layer, a Python file or a report."""
    if name.startswith("--"):
        raise UserError(f"{name} comes after --: write options before --")
    if is_format(name.partition(":")[0]):
        raise UserError(f"{name} is not a spec file or id; write --report {name}")
    if layer := layer_of_word(name):
        raise UserError(
            f"{name} is not a spec file or id; `gradcheck check {layer}` checks that layer"
        )


def layer_of_word(name: str) -> str:
    """Return the layer that a word names, also by a Python file; empty if it names none."""
    if name.endswith(".py"):
        name = ".".join(Path(name).with_suffix("").parts) + ":LAYER"
    name = name.replace(".py:", ":")
    is_in_spec = re.search(r"\.ya?ml:", name)
    return name if LAYER_REFERENCE.fullmatch(name) and not is_in_spec else ""


def id_of(target: Target, specs: Sequence[SpecFile]) -> str:
    """Return the selected id, which a line of a file may represent. Raises UserError: there is
    none.
    """
    if not target.path:
        return target.id
    path = os.path.realpath(locate_file(target.path))
    scenarios = [
        scenario
        for spec in specs
        if os.path.realpath(spec.path) == path
        for scenario in spec.scenarios
    ]
    if target.line is not None:
        return id_at_line(target, target.line, scenarios)
    ids = [scenario.id for scenario in scenarios]
    if scenario_of(target.id) not in ids:
        listed = ", ".join(ids[:5]) + ", …" * (len(ids) > 5)
        near = hint(target.id, ids, f"it has {listed}")
        raise UserError(f"{target.path} has no scenario {target.id!r}; {near}")
    return target.id


def id_at_line(target: Target, line: int, scenarios: Sequence[Scenario]) -> str:
    """Return the id of the scenario on a line of a file. Raises UserError: there is none."""
    number = len(read_text(locate_file(target.path), target.path).content.rstrip("\n").split("\n"))
    before = [scenario for scenario in scenarios if scenario.begins <= line]
    problem = "" if before else "no scenario is on this line"
    if line > number:
        problem = f"the file has {count(number, 'line')}"
    if problem:
        shows = f"`gradcheck list {target.path}` shows where each begins"
        raise UserError(f"{target.path}:{line}: {problem}; {shows}")
    return max(before, key=lambda scenario: scenario.begins).id


@functools.cache
def read_bundled() -> list[SpecFile]:
    """Return the spec files that come with gradcheck."""
    from gradcheck.spec.read import read_all  # completing ids needs no model

    return read_all(bundled_files())


def with_releases(cases: Sequence[Case], as_version: str = "") -> list[Case]:
    """Return cases with the deviations recorded for their release, if they are in the suite.

    `as_version` names the release whose file is read instead of the installed one's.
    Raises UserError: that release was not run.
    """
    if not as_version and not any(kind_of(case.backend) in SUITES for case in cases):
        return [*cases]
    from gradcheck.conformance.releases import with_recorded_deviations  # only for releases

    return with_recorded_deviations(cases, as_version)


def suite_of(cases: Iterable[Case]) -> str:
    """Return the versions of the suites that have scenarios among the cases; empty if none has."""
    bundled = [case.backend for case in cases if is_bundled(case.scenario.path)]
    if not bundled:
        return ""
    from gradcheck.conformance.suite import suite_version  # not for a user's own layers

    return "; ".join(map(suite_version, sorted(set(map(framework_of_backend, bundled)))))


def bundled_scenarios() -> list[Scenario]:
    """Return the scenarios of the bundled files."""
    return [scenario for spec in read_bundled() for scenario in spec.scenarios]


def annotate_on_github(mistakes: Iterable[Diagnostic]) -> None:
    """Print an annotation for each mistake if this runs on GitHub Actions.

    They bypass the stream that escapes workflow commands.
    """
    if not os.environ.get("GITHUB_ACTIONS"):
        return
    from gradcheck.report.github import mistake_annotations  # rarely needed

    stream = sys.__stdout__ if isinstance(sys.stdout, WithoutCommands) else sys.stdout
    for line in mistake_annotations(mistakes):
        print(line, file=stream)


def find_specs(
    paths: Sequence[str], project: Project | None = None, *, bundled: bool = False
) -> tuple[list[Path], list[Diagnostic]]:
    """Return the spec files at the paths of the command line, and the mistakes in them.

    Without paths, gradcheck's own (`bundled`) or the current project's: the files that its settings
    name, otherwise all below its root. Raises ConfigError: the settings cannot be used.
    """
    if bundled:
        if paths:
            raise UserError(
                "--bundled takes the specs that come with gradcheck, "
                f"and {paths[0]} is not one of them"
            )
        return bundled_files(), []
    if paths:
        return find(map(locate_file, paths))
    from gradcheck.config import load_project  # validating a named file needs no settings

    config = (project or load_project()).config
    if config.paths:
        return find(map(as_seen_from_here, config.paths))
    return find([as_seen_from_here(str(project_root()))], whole_project=True)


def nothing_found(command: str = "run") -> UserError:
    """The error for a project without spec files; it names the `command` for the bundled files."""
    where = f"no *.grad.yaml below {project_root()}"
    return UserError(f"{where}; gradcheck's own: gradcheck {command} --bundled", NOTHING_SELECTED)


def project_root() -> Path:
    """The root of the project that contains the current folder."""
    return root_of(Path(os.path.realpath(Path.cwd())))


def as_seen_from_here(path: str) -> str:
    """Return a path relative to the current folder if that is shorter."""
    return min(path, os.path.relpath(path), key=len)


def scenario_of(name: str) -> str:
    """The id in the name of a case: ``ID/dtype=float32@numpy``."""
    return re.split("[/@]", name, maxsplit=1)[0]


def without(spec: SpecFile, ids: set[str]) -> SpecFile:
    """Return a spec file without the scenarios that have one of the ids."""
    scenarios = tuple(scenario for scenario in spec.scenarios if scenario.id not in ids)
    return spec.model_copy(update={"scenarios": scenarios})


def locate_file(name: str) -> Path:
    """Return the file at a path; a bundled file may be given in the form that reports show, from
    any folder.
    """
    path = Path(name)
    bundled = bundled_specs().joinpath(*path.parts[1:])
    is_shown = path.parts[:1] == ("specs",) and not path.exists() and bundled.is_file()
    return bundled if is_shown else path


def new_spec(option: str, name: str) -> Path:
    """Return the spec file that an option asks to write. Raises UserError: the file exists."""
    file = Path(name)
    if not name.endswith(".grad.yaml"):
        stem = re.sub(r"(\.grad)?\.ya?ml$", "", name)
        if file.is_dir():
            stem = str(file / "own")
        raise UserError(
            f"{option} {name}: spec files are named <topic>.grad.yaml: write {stem}.grad.yaml"
        )
    require_folder(file.parent, f"{option} {name}")
    if file.exists():
        raise UserError(f"{option} {name}: this file exists already and was not changed")
    return file


def write_spec(option: str, file: Path, text: str) -> None:
    """Write a new spec file, and print how to run it."""
    with refusals_of(f"{option} {file}"), file.open("x", encoding="utf-8") as opened:
        opened.write(text)
    click.echo(f"gradcheck: wrote {file}; next: gradcheck run {file} --allow-code", err=True)
