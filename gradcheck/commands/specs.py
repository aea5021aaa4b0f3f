"""Which scenarios a command is about: spec files, folders and ids on the command line, narrowed by -k and -t."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcheck.case.naming import LAYER_REFERENCE
from gradcheck.commands.errors import NOTHING_SELECTED, USAGE
from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.folders import find
from gradcheck.support.display_paths import count
from gradcheck.support.pyproject import root_of, table_of
from gradcheck.support.resources import bundled_files, bundled_specs
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from gradcheck.config import Project
    from gradcheck.spec.model import Scenario, SpecFile


def read_specs(
    names: Sequence[str],
    project: Project | None = None,
    *,
    bundled: bool = False,
    command: str = "run",
) -> tuple[list[SpecFile], list[str]]:
    """The spec files that `names` mean, and the names that are ids instead.

    A name is a path if it exists or looks like one. Without paths among the names, those of the project are read, or
    with `bundled` those of gradcheck; ids that the project has not are looked for among gradcheck's own.

    Raises:
        UserError: there is no file, or a name cannot be meant; ConfigError: the project's settings cannot be used.
        SystemExit: a file has mistakes, and all are shown.
    """
    for name in names:
        if LAYER_REFERENCE.fullmatch(name):
            raise UserError(
                f"{name} is no spec file or id; `gradcheck check {name}` checks that layer"
            )
        if name.endswith(".py") and Path(name).is_file():
            module = ".".join(Path(name).with_suffix("").parts)
            raise UserError(
                f"{name} is no spec file; `gradcheck check {module}:LAYER` checks a layer of it"
            )
        if Path(name).suffix not in SPEC_SUFFIXES and Path(name).is_file():
            raise UserError(f"{name} is no spec file: these are named <topic>.grad.yaml")
    places = [place for name in names if (place := place_in_file(name)) is not None]
    whole = [name for name in names if place_in_file(name) is None]
    paths = [*(name for name in whole if is_path(name)), *(file for file, _ in places)]
    ids = [name for name in whole if not is_path(name)]
    files, mistakes = find_specs(list(dict.fromkeys(paths)), project, bundled=bundled)
    if not files and not mistakes and not ids:
        raise nothing_found(command)
    specs = read_or_exit(files, mistakes)
    ids += [id_at(file, at, specs) for file, at in places]
    known = {scenario.id for spec in specs for scenario in spec.scenarios}
    for name in ids:
        if name not in known and (
            near := next(filter(os.path.isfile, (f"{name}.yaml", f"{name}.grad.yaml")), None)
        ):
            raise UserError(f"no file, folder or scenario is called {name!r}; did you mean {near}?")
    if not paths and not bundled and not {scenario_of(name) for name in ids} <= known:
        specs += [without(spec, known) for spec in read_bundled()]
    return specs, ids


SPEC_SUFFIXES = (".yaml", ".yml", ".json", "")
"""Those of a file that may be a spec."""
_PLACE = re.compile(r"(.*\.ya?ml)(?:::(.+)|:(\d{1,9}))")


def place_in_file(name: str) -> tuple[str, str] | None:
    """The file and the id in ``file.grad.yaml::id``, or the file and the line in ``file.grad.yaml:12``; else None."""
    match = None if Path(name).exists() else _PLACE.fullmatch(name)
    return None if match is None else (match[1], match[2] or match[3])


def id_at(file: str, at: str, specs: Sequence[SpecFile]) -> str:
    """The id that is named, or that of the scenario on a line of a file, as in ``FILE::ID`` and ``FILE:LINE``."""
    here = os.path.realpath(located(file))
    scenarios = [
        one for spec in specs if os.path.realpath(spec.path) == here for one in spec.scenarios
    ]
    if not at.isdigit():
        if scenario_of(at) not in {one.id for one in scenarios}:
            ids = [one.id for one in scenarios]
            some = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
            raise UserError(f"{file} has no scenario {at!r}; {hint(at, ids, f'it has {some}')}")
        return at
    before = [one for one in scenarios if one.begins <= int(at)]
    if not before:
        first = min(one.begins for one in scenarios)
        raise UserError(f"{file}:{at}: no scenario stands there: the first begins on line {first}")
    return max(before, key=lambda one: one.begins).id


def read_bundled() -> list[SpecFile]:
    """The spec files that come with gradcheck."""
    return read_or_exit(bundled_files(), ())


def bundled_scenarios() -> list[Scenario]:
    """The scenarios of those files."""
    return [scenario for spec in read_bundled() for scenario in spec.scenarios]


def read_or_exit(files: Sequence[Path], mistakes: Sequence[Diagnostic]) -> list[SpecFile]:
    """The spec files. Raises SystemExit: there are `mistakes`, or a file has some; all are shown."""
    try:
        from gradcheck.spec.read import read_all  # here: completing ids needs no model

        return read_all(files, mistakes)
    except SpecError as error:
        for diagnostic in error.diagnostics:
            click.echo(diagnostic.render(), err=True)
        click.echo(
            f"{count(len(error.diagnostics), 'mistake')} in spec files; nothing was run", err=True
        )
        raise SystemExit(USAGE) from None


def find_specs(
    paths: Sequence[str], project: Project | None = None, *, bundled: bool = False
) -> tuple[list[Path], list[Diagnostic]]:
    """The spec files that paths of the command line mean, and what is wrong with those.

    Without paths, those of gradcheck (`bundled`) or of the current project: what its settings name, or else all below
    its root. Raises ConfigError: the settings cannot be used.
    """
    if bundled and paths:
        raise UserError(
            f"--bundled takes the specs that come with gradcheck, and {paths[0]} is not one of them"
        )
    if bundled:
        return bundled_files(), []
    if paths:
        return find(map(located, paths))
    if project is None and table_of(Path.cwd()) is not None:
        from gradcheck.config import load_project  # here: it loads what reads the settings

        project = load_project()
    if project is not None and project.config.paths:
        return find(map(as_seen_from_here, project.config.paths))
    return find([as_seen_from_here(str(project_root()))], whole_project=True)


def nothing_found(command: str = "run") -> UserError:
    """What to raise where the project has no spec files; it says with which `command` to have gradcheck's own."""
    where = f"no *.grad.yaml below {project_root()}"
    return UserError(f"{where}; gradcheck's own: gradcheck {command} --bundled", NOTHING_SELECTED)


def project_root() -> Path:
    """The root of the project that the current folder is in."""
    return root_of(Path(os.path.realpath(Path.cwd())))


def as_seen_from_here(path: str) -> str:
    """A path relative to the current folder, where that is the shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # on another drive of Windows
        return path
    return relative if len(relative) < len(path) else path


def scenario_of(name: str) -> str:
    """The id in the name of a case: ``ID/dtype=float32@numpy``."""
    return re.split("[/@]", name, maxsplit=1)[0]


def without(spec: SpecFile, ids: set[str]) -> SpecFile:
    """A spec file without the scenarios that have one of the ids."""
    kept = tuple(scenario for scenario in spec.scenarios if scenario.id not in ids)
    return spec if len(kept) == len(spec.scenarios) else spec.model_copy(update={"scenarios": kept})


def is_path(name: str) -> bool:
    """Whether a word of the command line is a path rather than an id."""
    return Path(name).exists() or name.endswith((".yaml", ".yml", "/"))


def located(name: str) -> Path:
    """The file that a path means: a bundled one can be named as reports show it, from any folder."""
    path = Path(name)
    if not os.path.lexists(path) and path.parts[:1] == ("specs",):
        bundled = bundled_specs().joinpath(*path.parts[1:])
        return bundled if bundled.is_file() else path
    return path


def new_spec(option: str, name: str) -> Path:
    """The spec file of that name, which an option says is to be written: none that is there already."""
    file = Path(name)
    if not name.endswith(".grad.yaml"):
        stem = re.sub(r"(\.grad)?\.ya?ml$", "", name)
        raise UserError(
            f"{option} {name}: spec files are named <topic>.grad.yaml: write {stem}.grad.yaml"
        )
    if not file.absolute().parent.is_dir():
        raise UserError(f"{option} {name}: there is no folder {file.parent}: make it first")
    if file.exists():
        raise UserError(f"{option} {name}: there is such a file already; it stays as it is")
    return file


def write_spec(option: str, file: Path, text: str) -> None:
    """Write a spec file that is not there, and say how it is run."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise UserError(f"{option} {file}: {error.strerror or error}") from None
    click.echo(f"gradcheck: wrote {file}; next: gradcheck run {file} --allow-code", err=True)
