"""The project's settings: ``[tool.gradcheck]`` in its pyproject.toml. The command line takes
precedence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from gradcheck.backends.environments import name_problem
from gradcheck.support.pyproject import ConfigError, shorten_message, table_of
from gradcheck.support.suggest import hint

MOST_JOBS = 1_000
MOST_SECONDS = 86_400
"""A day, as for --timeout."""


def _backend(name: str) -> str:
    if problem := name_problem(name):
        raise ValueError(problem)
    return name


def _release(name: str) -> str:
    if "@" not in name:
        raise ValueError(f"{name} has no version")
    return name


ConfiguredBackend = Annotated[str, AfterValidator(_backend)]
Release = Annotated[ConfiguredBackend, AfterValidator(_release)]


class Config(BaseModel):
    """Settings of a project for all its runs."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    allow_code: Annotated[bool, Field(alias="allow-code")] = False
    """Whether code in the spec files of the project may run, as with --allow-code."""
    paths: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Spec files and folders to read if the command line names none; relative to the
    pyproject.toml.
    """
    backends: Annotated[tuple[ConfiguredBackend, ...], Field(strict=False)] = ()
    """Backends to run on if the command line names none."""
    environments: dict[Release, str] = {}
    """Backend with its version → the interpreter of an environment that has it; relative to the
    pyproject.toml.
    """
    jobs: Annotated[int, Field(ge=1, le=MOST_JOBS)] | Literal["auto"] = "auto"
    """Cases at a time; at most the number of cores."""
    timeout: Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False)] | None = None
    """Seconds that a case may take if its scenario sets no limit."""


_EXPECTED = {
    "allow-code": "true or false",
    "paths": 'a list of files and folders, such as ["specs"]',
    "backends": 'a list of backends, such as ["numpy", "cupy", "paddle", "paddle@3.0.0"]',
    "environments": "a table of interpreters, such as "
    '{"paddle@3.0.0" = "/opt/paddle-3.0.0/bin/python"}',
    "jobs": f'"auto" or a number from 1 to {MOST_JOBS:,}',
    "timeout": f"a number of seconds above 0, at most {MOST_SECONDS:,}",
}
"""Every key → the required form of its value."""


class Project(NamedTuple):
    """A project's settings, and the pyproject.toml that contains them."""

    config: Config
    file: Path | None = None
    """The pyproject.toml, as an absolute path with links resolved; None if there are no
    settings.
    """
    table: Mapping[str, Any] = {}
    """``[tool.gradcheck]`` as written in the file."""


def load_project(start: Path | None = None) -> Project:
    """Return the settings of the nearest pyproject.toml, from `start` (the current folder) upward.

    Without one they are the defaults. A folder with ``.git`` is the last one that is searched:
    settings above a clone do not apply to it. `paths` and `environments` begin with the folder of
    the file.

    Raises:
        ConfigError: the file is unreadable or not TOML, or ``[tool.gradcheck]`` has an unknown key
            or value.
    """
    section = table_of(start or Path.cwd())
    if section is None:
        return Project(Config.model_construct())
    file, table = section
    try:
        config = Config.model_validate(table)
    except ValidationError as error:
        raise ConfigError("\n".join(mistakes_in(file, table, error))) from None
    root = file.parent
    paths = tuple(str(root / path) for path in config.paths)
    interpreters = {
        name: str(root / os.path.expanduser(path)) for name, path in config.environments.items()
    }
    config = config.model_copy(update={"paths": paths, "environments": interpreters})
    return Project(config, file, table)


def mistakes_in(file: Path, table: Mapping[str, Any], error: ValidationError) -> list[str]:
    """Return a line for each key with a mistake."""
    lines = {}
    for detail in error.errors():
        key = str(detail["loc"][0])
        reason = shorten_message(str(detail.get("ctx", {}).get("error", "")))
        line = f"{file}: [tool.gradcheck] {_mistake(key, table[key])}: {reason}"
        lines[key] = line.removesuffix(": ")
    return [*lines.values()]


def _mistake(key: str, value: Any) -> str:
    if key in _EXPECTED:
        return f"{key} must be {_EXPECTED[key]}, not {shorten_message(repr(value))}"
    otherwise = f"the keys are {', '.join(_EXPECTED)}"
    return f"has no key {shorten_message(repr(key))}; {hint(key[:100], _EXPECTED, otherwise)}"
