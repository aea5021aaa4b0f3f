"""Stands in for gradcheck.case.execute in workers of the tests: runs a scenario's script, and says what it set."""

from __future__ import annotations

from gradcheck.case.case import Case
from gradcheck.result import Result, Status


def execute(case: Case) -> Result:
    """PASS with the text that the script leaves in `said`; a text that it leaves in `bug` is one of gradcheck."""
    namespace = {"said": ""}
    source = "\n" * (case.scenario.line_of("script") - 1) + (case.scenario.script or "")
    exec(compile(source, case.scenario.path, "exec"), namespace)
    if "bug" in namespace:
        raise LookupError(namespace["bug"])
    return case.result(Status.PASS, str(namespace["said"]))


execute.__code__ = execute.__code__.replace(co_filename="<string>")  # a file of tests is the user's, and this is not
