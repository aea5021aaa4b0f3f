"""A case: one scenario at one point of its matrix on one backend. Imports no backend."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from gradcheck.backends.base import kind_of, missing, version_of
from gradcheck.case.defaults import MEMORY, TIMEOUT
from gradcheck.case.naming import case_name
from gradcheck.result import Result, Status
from gradcheck.spec.model import NO_DEVIATION, BackendExpectation, Expect, Scenario


class Case(BaseModel):
    """One scenario at one point of its matrix on one backend; a process runs one case."""

    # Only the processes of cases validate them: `list` and `show` need not build the validator.
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants", defer_build=True)

    scenario: Scenario
    backend: str
    interpreter: str = ""
    """The path of the interpreter that runs it; empty for this one."""
    unavailable: str = ""
    """Why its backend cannot run, as far as that is known beforehand."""
    parameters: dict[str, Any] = {}
    seed: int = 0
    mode: Literal["auto", "probe", "full"] = "auto"
    """How much of the Jacobian the gradient check covers."""
    order: Literal[1, 2] = 1
    """With 2, the derivative of the gradient is checked as well, if backward is expected to match
    the derivative.
    """
    effort: Literal["least", "usual", "full"] = "usual"
    """The effort for diagnosing a wrong gradient."""
    timeout: float = TIMEOUT
    """Wall-clock limit in seconds."""
    reruns: int = 0
    """How often the case is run again if its result is not as expected."""
    compared: bool = False
    """Whether outputs and gradients are kept, to compare them with those of other backends."""
    memory: int = MEMORY
    """The most bytes that the case may allocate."""
    recorded: bool = False
    """Whether the result describes a backend's behaviour if it deviates from the expected."""

    @property
    def name(self) -> str:
        """``id@backend``, or ``id/dtype=float32@backend``: no brackets, no colons, no spaces."""
        return case_name(self.scenario.id, self.parameters, self.backend)

    @property
    def variables(self) -> dict[str, Any]:
        """The parameters and sizes that the scenario's code can read."""
        return {**self.scenario.sizes, **self.parameters}

    @property
    def entry(self) -> BackendExpectation:
        """The scenario's deviation for this version of the backend; `NO_DEVIATION` for none."""
        kind = kind_of(self.backend)
        if not self.scenario.entries_of(kind):  # no need to look up the version
            return NO_DEVIATION
        return self.scenario.on(kind, version_of(self.backend))

    @property
    def expect(self) -> Expect:
        return self.entry.expect or self.scenario.expect

    def expecting(self, observed: Expect) -> Case:
        """Copy the case with `observed` as its documented expectation."""
        changes = {"expect": observed, "backends": {}}
        return self.model_copy(update={"scenario": self.scenario.model_copy(update=changes)})

    def result(self, status: Status, message: str, **fields: Any) -> Result:
        """Make a result of this case without running it; `fields` are further fields of Result."""
        scenario = self.scenario
        return Result(
            name=self.name,
            scenario=scenario.id,
            backend=self.backend,
            path=scenario.path,
            line=scenario.line,
            column=scenario.column,
            status=status,
            message=message,
            **fields,
        )

    def not_run(self) -> Result | None:
        """A SKIP with the reason if this case cannot run; otherwise None."""
        if skip := self.entry.skip:
            return self.result(Status.SKIP, skip.reason)
        reason = self.unavailable
        if not reason and not self.interpreter:
            reason = missing(self.backend)
        return self.result(Status.SKIP, reason) if reason else None
