"""The process that runs one case: all that a case can break is in it, and it ends with the case."""

from __future__ import annotations

import builtins
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TextIO

from gradcheck.case.case import Case
from gradcheck.case.user_code import raised_by_scenario, with_place
from gradcheck.result import Result, Status
from gradcheck.run.answer import answer_line
from gradcheck.run.limits import limit_data, shown_size
from gradcheck.run.tamper_check import Judges
from gradcheck.support.foreign import text_of, type_name
from gradcheck.support.whole_file import write_all

_exit = os._exit  # what a case does to the name must not keep its process from ending

Execute = Callable[[Case], Result]


def answer_and_leave(case: Case, execute: Execute, judges: Judges, answer_fd: int, data: int | None = None) -> NoReturn:
    """Run the case, write its result to `answer_fd` as a line of JSON, and end this process.

    `data` is what the process has of private memory, if that is known.
    """
    status, pid = 1, os.getpid()
    try:
        sys.stdout, sys.stderr = line_writer(1), line_writer(2)
        result = run_judged(case, execute, judges, data)
        if os.getpid() != pid:  # the case forked, and this is the copy
            _exit(0)
        with suppress(Exception):
            sys.stdout.flush()
        write_all(answer_fd, answer_line(result))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
        _exit(status)


def run_judged(case: Case, execute: Execute, judges: Judges, data: int | None) -> Result:
    """Run `case` within its memory limit, and see that it leaves what gradcheck computes with as it was."""
    seed_everything(case.seed)
    if case.backend != "cupy":  # CUDA reserves far more than it uses; what it uses is looked at all the same
        limit_data(case.memory, data)
    limit = sys.getrecursionlimit()
    result = run_here(execute, case)
    sys.setrecursionlimit(limit)
    changed = next((f"builtins.{name}" for name in lost_builtins), "") or judges.changed()
    if changed:
        message = f"the case leaves {changed} changed; gradcheck computes with it, so there is no verdict"
        result = case.result(Status.ERROR, message, details=(result.message,), seconds=result.seconds)
    return result


_builtins = dict(builtins.__dict__)
lost_builtins: list[str] = []
"""The builtins that the case had replaced; they are back."""


def restore() -> None:
    """Take back what a case did to all code whatever: builtins, trace functions. It calls no builtin itself."""
    sys.settrace(None)
    sys.setprofile(None)
    lost_builtins[:] = [name for name, value in _builtins.items() if builtins.__dict__.get(name) is not value]
    builtins.__dict__.update(_builtins)


def run_here(execute: Execute, case: Case) -> Result:
    """The result of `case`, run in this process; an exception of `execute` is a bug of ours and says so.

    It is none where memory or the stack ran out, or where an exception of the scenario cannot even be printed.
    """
    try:
        try:
            return execute(case)
        finally:
            restore()
    except MemoryError as error:
        what = f"needs more than {shown_size(case.memory)} of memory: {text_of(error)}"
    except RecursionError as error:
        what = f"recurses too deeply: {text_of(error)}"
    except BaseException as error:
        what = f"{type_name(error)}: {text_of(error)}"
        if not raised_by_scenario(case.scenario.path, error):
            report = "".join(traceback.format_exception(error))
            return case.result(Status.ERROR, f"bug in gradcheck: {what}", internal_error=report)
        what = with_place(what, error, case.scenario.path)
    return case.result(Status.ERROR, what)


def seed_everything(seed: int) -> None:
    """Make Python's and NumPy's global random numbers those of the case: a fork seeds Python's anew."""
    import random

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)


def warm_up_case(backend: str) -> Case:
    """A case that uses what most cases use: whatever is made on first use is made once, not in every process."""
    layer = (
        "class Square(PyLayer):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x\n"
        "    @staticmethod\n    def backward(ctx, dy):\n        x, = ctx.saved_tensor()\n        return 2 * dy * x\n"
    )
    expect = {"gradient": "matches", "values": {"out.shape": (2,)}}
    scenario = {"id": "warm-up", "title": "Warm-up", "source": {"document": "none"}, "layer": layer, "expect": expect}
    return Case.model_validate({"scenario": {**scenario, "inputs": {"x": {"shape": (2,)}}}, "backend": backend})


def line_writer(fd: int) -> TextIO:
    """A text file on `fd` that writes every line at once, so that a crash loses none."""
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
