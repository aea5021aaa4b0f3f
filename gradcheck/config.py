"""``[tool.gradcheck]`` of the project's own pyproject.toml. The command line goes before it."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where and why."""


class Config(BaseModel):
    """What a project may set for all its runs."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=True)

    allow_code: Annotated[bool, Field(alias="allow-code")] = False
    """Run code in spec files, as --allow-code does."""
    paths: list[str] = []
    """Spec files and folders to run where the command line names none, relative to the file."""
    backends: list[str] = []
    jobs: int | None = None
    timeout: float | int | None = None
    folder: Path = Field(Path(), exclude=True)


def load_config(start: Path | None = None) -> Config:
    """The settings of the nearest pyproject.toml, from `start` (the current folder) upward.

    Raises:
        ConfigError: the file is no TOML, or ``[tool.gradcheck]`` has a key or value that there is not.
    """
    start = (start or Path.cwd()).resolve()
    file = next((folder / "pyproject.toml" for folder in [start, *start.parents] if (folder / "pyproject.toml").is_file()), None)
    if file is None:
        return Config()
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("gradcheck", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{file}: {error}") from error
    try:
        return Config.model_validate({**table, "folder": file.parent})
    except ValidationError as error:
        keys = sorted(field.alias or name for name, field in Config.model_fields.items() if name != "folder")
        problems = []
        for mistake in error.errors():
            key = str(mistake["loc"][0])
            near = difflib.get_close_matches(key, keys, 1)
            if mistake["type"] == "extra_forbidden":
                hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(keys)}"
                problems.append(f"{file}: [tool.gradcheck] has no key {key}; {hint}")
            else:
                problems.append(f"{file}: [tool.gradcheck] {key}: {mistake['msg']}")
        raise ConfigError("\n".join(problems)) from error
