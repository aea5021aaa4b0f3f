"""Where a backend runs: here, in an interpreter that is named, or in an environment that was made; and why not."""

from __future__ import annotations

import subprocess
import sys

import pytest
from releases import make_environment

from gradcheck.backends import environments
from gradcheck.backends.base import version_of
from gradcheck.backends.environments import (
    BackendPlace,
    NotMadeError,
    made_environments,
    make,
    name_problem,
    place_of_backend,
    requirements,
)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("numpy", ""),
        ("paddle", ""),
        ("paddle@3.0.0", ""),
        ("paddle@3.0.0rc1", ""),
        ("chainer", "there is no backend 'chainer'; the backends are numpy, cupy, paddle, torch, jax"),
        ("chainer@2", "there is no backend 'chainer@2'; the backends are numpy, cupy, paddle, torch, jax"),
        ("numpy@2.0", "numpy has no versions to choose from: numpy is the installed one"),
        ("paddle@", "paddle@: write a release after the @, such as paddle@3.0.0"),
        ("paddle@../../etc", "paddle@../../etc: write a release after the @, such as paddle@3.0.0"),
        ("paddle@>=3", "paddle@>=3: write a release after the @, such as paddle@3.0.0"),
    ],
)
def test_a_name_is_a_backend_s_perhaps_with_an_exact_release(name, problem):
    assert name_problem(name) == problem


def test_the_version_of_a_backend_is_in_its_name_or_that_of_what_is_installed():
    import numpy

    assert version_of("paddle@3.0.0") == "3.0.0"
    assert version_of("numpy") == numpy.__version__


def test_the_bundled_engine_runs_here():
    assert place_of_backend("numpy", {}) == BackendPlace("numpy")


def test_a_release_without_an_environment_says_how_to_get_one(cache):
    assert place_of_backend("paddle@3.0.0", {}).problem == (
        "it has no environment: `gradcheck backends add paddle@3.0.0` makes it"
    )
    make_environment(cache / "paddle@3.0.0", "3.0.0")  # as a `gradcheck backends add` leaves it that was killed
    assert place_of_backend("paddle@3.0.0", {}).problem.startswith(
        "its environment was not finished: `gradcheck backends add"
    )


def test_a_finished_environment_is_one_whose_interpreter_has_the_release(cache):
    python = make_environment(cache / "paddle@9.1.0", "9.1.0")
    (cache / "paddle@9.1.0" / environments.COMPLETE).write_text("")
    version = ".".join(map(str, sys.version_info[:3]))
    assert place_of_backend("paddle@9.1.0", {}) == BackendPlace("paddle@9.1.0", str(python), "", version)


def test_a_named_interpreter_must_have_the_release_and_what_workers_need(tmp_path):
    python = str(make_environment(tmp_path / "nine", "9.0.0+cpu"))
    assert place_of_backend("paddle@9.0.0", {"paddle@9.0.0": python}).problem == ""
    assert (
        place_of_backend("paddle@9.1.0", {"paddle@9.1.0": python}).problem
        == f"{python} has paddle 9.0.0+cpu, not 9.1.0"
    )
    bare = str(make_environment(tmp_path / "bare", "9.0.0", packages=False))
    lacks = f"{bare} lacks packages: greenlet, ml_dtypes, numpy, packaging, pydantic"
    assert place_of_backend("paddle@9.0.0", {"paddle@9.0.0": bare}).problem == lacks


def test_an_interpreter_that_is_none_is_told(tmp_path):
    absent = str(tmp_path / "python")
    place = place_of_backend("paddle@9.0.0", {"paddle@9.0.0": absent})
    assert place.problem == f"{absent} cannot be started: No such file or directory"
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho what is that >&2\nexit 1\n")
    other.chmod(0o755)
    problem = place_of_backend("paddle@9.0.0", {"paddle@9.0.0": str(other)}).problem
    assert problem == f"{other} is not a usable Python (3.11 or later is needed): what is that"


def test_what_is_installed_is_asked_without_importing_it(tmp_path):
    python = str(make_environment(tmp_path / "loud", "9.0.0", "raise SystemExit('imported')"))
    assert place_of_backend("paddle@9.0.0", {"paddle@9.0.0": python}).problem == ""


# ------------------------------------------------------------------------------------ making one
def test_old_releases_get_what_their_packages_do_not_ask_for():
    assert requirements("paddle@3.0.0")[0] == "paddlepaddle==3.0.0"
    assert "numpy<2" not in requirements("paddle@3.0.0")
    assert {"paddlepaddle==2.6.2", "numpy<2", "setuptools<81"} <= set(requirements("paddle@2.6.2"))


@pytest.mark.parametrize("uv", ["", "/opt/uv"])
def test_an_environment_is_made_with_uv_if_it_is_there_else_with_venv_and_pip(cache, monkeypatch, uv):
    commands: list[list[str]] = []

    def run(command, backend):
        commands.append(list(command))
        if "venv" in command:
            make_environment(cache / backend, "9.0.0")

    monkeypatch.setattr(environments, "run_printing", run)
    monkeypatch.setattr(environments.shutil, "which", lambda name: uv or None)
    said: list[str] = []
    tried: list[BackendPlace] = []
    place = make("paddle@9.0.0", said.append, lambda place: tried.append(place) or "")
    assert (place.problem, place.interpreter) == ("", str(environments.python_in(cache / "paddle@9.0.0")))
    assert commands[0][0] == (uv or sys.executable)
    assert commands[1][0] == (uv or place.interpreter)
    assert commands[1][-len(requirements("paddle@9.0.0")) :] == requirements("paddle@9.0.0")
    assert said == [" ".join(command) for command in commands]
    assert made_environments() == ["paddle@9.0.0"]
    assert tried == [place] == [place_of_backend("paddle@9.0.0", {})]


def test_what_was_installed_and_does_not_run_leaves_nothing(cache, monkeypatch):
    def run(command, backend):
        if "venv" in command:
            make_environment(cache / backend, "9.0.0")

    monkeypatch.setattr(environments, "run_printing", run)
    with pytest.raises(NotMadeError, match=r"paddle@9\.0\.0 was installed, but does not run, .*: it is broken"):
        make("paddle@9.0.0", lambda command: None, lambda place: "it is broken")
    assert not (cache / "paddle@9.0.0").exists()


def test_what_could_not_be_installed_leaves_nothing(cache, monkeypatch):
    monkeypatch.setattr(environments.shutil, "which", lambda name: "/bin/false")
    with pytest.raises(NotMadeError, match=r"paddle@9\.0\.0 was not installed: false ended with status 1, see above"):
        make("paddle@9.0.0", lambda command: None, lambda place: "")
    assert not (cache / "paddle@9.0.0").exists()


def test_environments_are_listed_by_version(cache):
    for name in ("paddle@10.0.0", "paddle@9.0.0", "paddle@9.0.0rc1", "something else", "paddle"):
        (cache / name).mkdir(parents=True)
    assert made_environments() == ["paddle@9.0.0rc1", "paddle@9.0.0", "paddle@10.0.0"]


def test_a_worker_imports_nothing_beside_what_environments_get():
    """A worker of Paddle, up to the import of Paddle itself."""
    ours = ["run.server", "case.execute", "backends.paddle", "backends.bundled", "case.engine_twin"]
    code = (
        f"import {', '.join(f'gradcheck.{name}' for name in ours)}, sys, sysconfig\n"
        "places = {sysconfig.get_path('purelib'), sysconfig.get_path('platlib')}\n"
        "files = ((name, getattr(module, '__file__', None) or '') for name, module in sys.modules.items())\n"
        "print(*sorted({name.partition('.')[0] for name, file in files if file.startswith(tuple(places))}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(path for path in sys.path if not path.endswith("site-packages"))},
    )  # fmt: skip
    pydantic_s_own = {"annotated_types", "pydantic_core", "typing_extensions", "typing_inspection"}
    needed = {name.replace("-", "_").partition(">")[0] for name in environments.WORKER_NEEDS}
    assert set(done.stdout.split()) <= needed | pydantic_s_own | {"_distutils_hack", "gradcheck", "pylayer"}
