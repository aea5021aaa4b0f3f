"""Separate environments for releases of a backend, such as ``paddle@3.0.0``, each with its own
interpreter.

The servers of such a backend run in that interpreter. ``gradcheck backends add``
makes an environment in the user's cache folder; a project may name interpreters that exist already.
Nothing of gradcheck is installed there: servers find it by path (`run.interpreter`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from gradcheck.backends.base import (
    BACKENDS,
    backend_row,
    installed_rows,
    kind_of,
    missing,
    version_of,
)
from gradcheck.support.resources import release_paths
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError, refusals_of
from gradcheck.support.variables import without_our_paths

DISTRIBUTIONS = {"paddle": ("paddlepaddle", "setuptools")}
"""The backends with installable releases, by name: the package, and dependencies that it does not
declare.

Paddle imports setuptools, which new environments no longer have (Python 3.12, uv).
"""

WORKER_NEEDS = ("greenlet>=3", "ml-dtypes>=0.5", "numpy>=1.26", "packaging>=24", "pydantic>=2.11")
"""Packages that a server imports, other than the backend."""

BELOW_3 = ("numpy<2", "setuptools<81")
"""Further requirements of Paddle releases before 3.0.

Paddle 2.6.2 is compiled against NumPy 1 and imports ``pkg_resources``, which setuptools had up to
version 80; it accepts any version of both.
"""

FOLDER = "GRADCHECK_ENVIRONMENTS"
"""Environment variable that names the folder of the environments, in place of that in the user's
cache.
"""
PYTHON = "{}.{}".format(*sys.version_info)
"""The version of this interpreter, as uv names one."""
COMPLETE = "gradcheck-environment"
"""The file that an environment has once everything is installed."""
LOOK = 30.0
"""Seconds that an interpreter may take to list its installed packages (measured: 0.1 s, as it only
reads file names).
"""

_QUESTION = """
import importlib.metadata as m, importlib.util as u, json, platform, sys
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return ""
distributions, modules = json.loads(sys.argv[1])
print(json.dumps([platform.python_version(), next(filter(None, map(version, distributions)), ""),
                  [name for name in modules if u.find_spec(name) is None]]))
"""
_MODULES = [need.partition(">")[0].replace("-", "_") for need in WORKER_NEEDS]


class BackendPlace(NamedTuple):
    """A backend, the interpreter that runs it, and the reason if it cannot run."""

    backend: str
    interpreter: str = ""
    """Its path; empty for this one."""
    problem: str = ""
    """Why the backend cannot run, and how to get it; empty if it can."""
    python: str = ""
    """The version of that interpreter, if it was run."""


class NotMadeError(UserError):
    """An environment cannot be made; the message gives the reason and the remedy."""


def place_of_backend(backend: str, configured: Mapping[str, str]) -> BackendPlace:
    """Where a backend runs: here, in the interpreter that `configured` names, or in its own
    environment.
    """
    if "@" not in backend:
        return BackendPlace(backend, problem=missing(backend))
    if backend in configured:
        return inspect_interpreter(backend, configured[backend])
    environment = folder_of(backend)
    if not (environment / COMPLETE).is_file():
        makes = f"`gradcheck backends add {backend}` makes it"
        if environment.exists():
            return BackendPlace(backend, problem=f"its environment was not finished: {makes}")
        problem = f"it has no environment: {makes}{unknown_release(backend)}"
        return BackendPlace(backend, problem=problem)
    return inspect_interpreter(backend, str(python_in(environment)))


def inspect_interpreter(backend: str, interpreter: str) -> BackendPlace:
    """The place of a backend with an interpreter, which is run to list its packages; none is
    imported.
    """
    kind, _, wanted = backend.partition("@")
    distributions = backend_row(kind).distributions
    question = json.dumps(
        [distributions, [*_MODULES, *(set(backend_row(kind).needs) - {"pylayer"})]]
    )
    try:
        process = subprocess.run(
            [interpreter, "-P", "-c", _QUESTION, question],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=LOOK, env=without_our_paths(),
        )  # fmt: skip
        python, version, absent = json.loads(process.stdout)
    except OSError as error:
        return BackendPlace(
            backend, interpreter, f"{interpreter} cannot be started: {error.strerror or error}"
        )
    except subprocess.TimeoutExpired:
        return BackendPlace(
            backend, interpreter, f"{interpreter} does not answer within {LOOK:g} s"
        )
    except ValueError:
        last = (process.stderr.strip().splitlines() or ["it says nothing"])[-1]
        why = f"{interpreter} is not a usable Python (3.11 or later is needed): {last}"
        return BackendPlace(backend, interpreter, why)
    problem = ""
    if absent:
        problem = f"{interpreter} lacks packages: {', '.join(absent)}"
    elif wanted and not same_version(version, wanted):
        problem = f"{interpreter} has {kind} {version or 'of no known version'}, not {wanted}"
    return BackendPlace(backend, interpreter, problem, python)


def same_version(version: str, other_version: str) -> bool:
    """Whether two versions are equal up to the part after a ``+``."""
    try:
        return Version(version).public == Version(other_version).public
    except InvalidVersion:
        return False


# ------------------------------------------------------------------------------------ names
def name_problem(backend: str) -> str:
    """The mistake in a backend's name, in one line; empty if none. The version must be exact."""
    kind, separator, wanted = backend.partition("@")
    if kind not in BACKENDS and kind not in installed_rows():
        joined = re.fullmatch(rf"({'|'.join(DISTRIBUTIONS)})?[=-]*([0-9].*)", backend)
        known = f"the backends are {', '.join(BACKENDS)}"
        meant = hint(kind, BACKENDS, known)
        if joined:
            meant = f"did you mean {joined[1] or next(iter(DISTRIBUTIONS))}@{joined[2]}?"
        return f"there is no backend {backend!r}; {meant}"
    if not separator:
        return ""
    if kind not in DISTRIBUTIONS:
        return f"{kind} has no versions to choose from: {kind} is the installed one"
    try:
        Version(wanted)
    except InvalidVersion:
        return f"{backend}: write a release after the @, such as {kind}@3.0.0"
    return ""


def unknown_release(backend: str) -> str:
    """For a release without recorded results: the end of a sentence that lists the known releases;
    otherwise empty.
    """
    kind, _, wanted = backend.partition("@")
    known = release_paths(kind)
    return "" if wanted in known else f" if it exists; known releases are {', '.join(known)}"


def requirements(backend: str) -> list[str]:
    """Requirements of a backend with a version, as pip reads them."""
    kind, _, wanted = backend.partition("@")
    package, *beside = DISTRIBUTIONS[kind]
    older = BELOW_3 if Version(wanted) < Version("3.0") else ()
    return [f"{package}=={wanted}", *WORKER_NEEDS, *beside, *older]


# ------------------------------------ making environments
def folder() -> Path:
    """The folder of environments: in the user's cache folder."""
    if named := os.environ.get(FOLDER):
        return Path(os.path.expanduser(named)).absolute()
    import platformdirs  # slow to import, and only releases have environments

    return platformdirs.user_cache_path("gradcheck") / "environments"


def folder_of(backend: str) -> Path:
    """The folder of one environment."""
    return folder() / backend


def made_environments() -> list[str]:
    """The backends with an environment, complete or not, in the order of their versions."""
    names = [path.name for path in folder().iterdir() if path.is_dir()] if folder().is_dir() else []
    known = [name for name in names if "@" in name and not name_problem(name)]
    return sorted(known, key=lambda name: (kind_of(name), Version(version_of(name))))


def python_in(environment: Path) -> Path:
    """The interpreter of an environment."""
    return environment / "bin/python"


def make(
    backend: str, say: Callable[[str], object], try_out: Callable[[BackendPlace], str]
) -> BackendPlace:
    """Make the environment of a backend, replacing an incomplete one.

    uv is used if it is installed: it caches downloads and shares files between environments. `say`
    is called with each command; their output, progress included, goes to stderr. `try_out` returns
    the error of a trial run, or nothing.

    Raises:
        NotMadeError: a command failed, or the environment cannot be used.
    """
    target = folder_of(backend)
    remove_environment(backend)
    target.parent.mkdir(parents=True, exist_ok=True)
    uv = shutil.which("uv")
    python, needs = str(python_in(target)), requirements(backend)
    steps = [
        [sys.executable, "-m", "venv", str(target)],
        [python, "-m", "pip", "--disable-pip-version-check", "install", *needs],
    ]
    if uv:
        steps = [
            [uv, "venv", "--python", PYTHON, str(target)],
            [uv, "pip", "install", "--python", python, *needs],
        ]
    try:
        for step in steps:
            say(" ".join(step))
            run_printing(step, backend)
        place = inspect_interpreter(backend, python)
        if problem := place.problem or try_out(place):
            raise NotMadeError(
                f"{backend} was installed, but does not run, and was removed: {problem}"
            )
    except BaseException:
        remove_environment(backend)
        raise
    (target / COMPLETE).write_text("\n".join(needs) + "\n", encoding="utf-8")
    return place


def run_printing(command: Sequence[str], backend: str) -> None:
    """Run a command that prints to stderr. Raises NotMadeError."""
    with refusals_of(f"{command[0]} cannot be started", NotMadeError):
        status = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), check=False
        ).returncode
    if status:
        raise NotMadeError(
            f"{backend} was not installed: {Path(command[0]).name} ended with status {status}, see "
            f"above; the release may not exist, or not for Python {PYTHON} on this system"
        )


def remove_environment(backend: str) -> bool:
    """Remove an environment; return whether there was one."""
    existed = folder_of(backend).exists()
    if existed:
        (folder_of(backend) / COMPLETE).unlink(missing_ok=True)  # marks it as incomplete
        shutil.rmtree(folder_of(backend))
    return existed
