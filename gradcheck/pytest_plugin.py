"""The pytest plugin: spec files are collected as tests, and a fixture checks layers in a
project's own tests.

Collecting reads spec files and runs none of their code. A scenario then runs in a separate process,
as with the command; its code may run, like the project's test code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from _pytest._code.code import TerminalRepr

    from gradcheck.backends.environments import BackendPlace
    from gradcheck.case.case import Case
    from gradcheck.result import Result
    from gradcheck.run.runner import Runner

FIXTURE = "assert_gradients"
_runner = pytest.StashKey["Runner"]()
_places = pytest.StashKey[dict[tuple[str, str], "BackendPlace"]]()
_tags = pytest.StashKey["Tags"]()


class ScenarioFailed(Exception):  # noqa: N818 - what is raised for pytest, and never caught by users
    """A scenario is not as expected; `result` has the details."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"{result.status}: {result.message}")
        self.result = result


def pytest_addoption(parser: pytest.Parser) -> None:
    """The settings of the ini file."""
    backends = "Backends to run scenarios on (default: those of [tool.gradcheck], or numpy)."
    engine = (
        "Whether ``import paddle`` finds gradcheck's engine in all tests if no Paddle is installed."
    )
    parser.addini("gradcheck_backends", backends, "args")
    parser.addini("gradcheck_engine", engine, "bool", False)


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Remember the markers that the ini file lists, before plugins add theirs."""
    early_config.stash[_tags] = Tags(early_config, len(early_config.getini("markers")))


def pytest_configure(config: pytest.Config) -> None:
    """Let the whole run import the engine as ``paddle`` if the ini file requests it and no Paddle
    is installed.
    """
    if config.getini("gradcheck_engine"):
        from gradcheck.case.user_code import engine

        block = ExitStack()
        block.enter_context(engine())
        config.add_cleanup(block.close)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SpecCollector | None:
    """Spec files are collected, wherever pytest looks for tests."""
    if file_path.name.endswith(".grad.yaml"):
        return SpecCollector.from_parent(parent, path=file_path)
    return None


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers."""
    if _runner in config.stash:
        config.stash[_runner].__exit__(None, None, None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Hide the frames of gradcheck and its engine in errors of a layer's test, unless the error is
    gradcheck's own.
    """
    if call.excinfo is not None and FIXTURE in getattr(item, "fixturenames", ()):
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("gradcheck", "pylayer"):
                vars(module)["__tracebackhide__"] = is_no_bug


def is_no_bug(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether an error is due to the user's code, or to arguments that it passes to gradcheck or
    the engine.
    """
    last = str(excinfo.traceback[-1].frame.f_globals.get("__name__", ""))
    return last.partition(".")[0] != "gradcheck" or last in (
        "gradcheck.api",
        "gradcheck.case.arguments",
    )


class SpecCollector(pytest.File):
    """A spec file, collected as a test for each case."""

    def collect(self) -> Iterable[pytest.Item]:
        """The cases, in the order of the file.

        Raises:
            CollectError: the file has mistakes; they are shown as by `gradcheck validate`.
        """
        from gradcheck.backends.environments import name_problem
        from gradcheck.config import load_project
        from gradcheck.run.plan import plan, with_usual_backends
        from gradcheck.spec.diagnostic import SpecError
        from gradcheck.spec.read import read
        from gradcheck.support.pyproject import ConfigError

        try:
            config = load_project(self.path.parent).config
            wanted = self.config.getini("gradcheck_backends") or config.backends
            spec = read(self.path)
        except (SpecError, ConfigError) as error:
            raise self.CollectError(str(error)) from None
        if problem := next(filter(None, map(name_problem, wanted)), ""):
            raise self.CollectError(problem)
        for case in plan([spec], with_usual_backends(wanted, [spec])):
            yield CaseItem.from_parent(
                self, name=case.name, case=case, environments=config.environments
            )


class CaseItem(pytest.Item):
    """A case of a scenario."""

    def __init__(self, *, case: Case, environments: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case, self.environments = case, environments
        for tag in case.scenario.tags:
            self.add_marker(tags_of(self.config).marker(tag))

    def runtest(self) -> None:
        """Run the case, and report its outcome to pytest.

        Raises:
            ScenarioFailed: the case is not as expected.
        """
        from gradcheck.result import Status

        place = place_for(self.config, self.case.backend, self.environments)
        case = self.case.model_copy(
            update={"interpreter": place.interpreter, "unavailable": place.problem}
        )
        result = runner_of(self.config).submit(case).result()
        if result.output:
            self.add_report_section("call", "stdout", result.output)
        if result.status in (Status.SKIP, Status.UNSUPPORTED):
            pytest.skip(result.message)
        if result.status is Status.XFAIL:
            pytest.xfail(result.message)
        if not result.status.green:
            raise ScenarioFailed(result)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        """The panel that the command shows. The first line goes into pytest's summary, after the
        test's name.
        """
        if isinstance(excinfo.value, ScenarioFailed):
            from gradcheck.report.result_text import failure_block, place
            from gradcheck.result import Status

            result = excinfo.value.result
            first, *further = failure_block(result, "--allow-code")
            first = first if result.status is Status.FAIL else f"{result.status}: {first}"
            return "\n".join([first, *further, f"scenario: {place(result)}"])
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[PathLike[str] | str, int | None, str]:
        """The scenario's line, counted from 0."""
        return self.path, self.case.scenario.line - 1, self.name


class Tags:
    """Tags as markers for ``-m``, which are labels and have no effect.

    pytest and its plugins act on the markers that they register: ``skip`` hides a test.

    A tag of such a name gets ``tag_`` before it. Markers that only the ini file lists are the
    user's labels, and tags may have their names.
    """

    def __init__(self, config: pytest.Config, listed: int) -> None:
        self.config = config
        self.listed = listed
        """The number of lines of `markers` from the ini file; those after them are from plugins,
        and `ours`.
        """
        self.ours: set[str] = set()

    def marker(self, tag: str) -> pytest.MarkDecorator:
        """The marker of a tag, registered with pytest although no ini file lists it."""
        lines = self.config.getini("markers")
        taken = {name_of(line) for line in lines[self.listed :]} - self.ours
        name = tag.replace("-", "_")
        while name in taken:
            name = f"tag_{name}"
        if name not in self.ours:
            self.ours.add(name)
            self.config.addinivalue_line("markers", f"{name}: a tag of gradcheck scenarios")
        mark: pytest.MarkDecorator = getattr(pytest.mark, name)
        return mark


def tags_of(config: pytest.Config) -> Tags:
    """The tags of the run. If the plugin alone was loaded too late to read the ini file, no marker
    counts as a tag.
    """
    return config.stash.setdefault(_tags, Tags(config, 0))


def name_of(line: str) -> str:
    """The marker that a line of pytest's `markers` describes."""
    return line.partition(":")[0].partition("(")[0].strip()


def place_for(config: pytest.Config, backend: str, environments: Mapping[str, str]) -> BackendPlace:
    """A backend's place; its interpreter is started only once, and not while tests are
    collected.
    """
    from gradcheck.backends.environments import place_of_backend

    known = config.stash.setdefault(_places, {})
    key = backend, environments.get(backend, "")
    if key not in known:
        known[key] = place_of_backend(backend, environments)
    return known[key]


def runner_of(config: pytest.Config) -> Runner:
    """One runner for the whole run; with pytest-xdist each of its processes has one."""
    if _runner not in config.stash:
        from gradcheck.run.runner import Runner

        config.stash[_runner] = Runner(1)
    return config.stash[_runner]


@pytest.fixture(name=FIXTURE)
def assert_gradients_fixture() -> Iterator[Callable[..., Any]]:
    """`gradcheck.assert_gradients`; in the test ``import paddle`` finds the engine if no Paddle is
    installed.
    """
    from gradcheck import assert_gradients
    from gradcheck.case.user_code import engine

    with engine():
        yield assert_gradients


@pytest.fixture(name="gradcheck")
def gradcheck_fixture(assert_gradients: Callable[..., Any]) -> Callable[..., Any]:
    """The fixture `assert_gradients` under the package's name, for tests that do not import the
    package.
    """
    return assert_gradients
