"""The process of a case: it runs the case, writes its result, and ends."""

from __future__ import annotations

import faulthandler
import os
import random
import resource
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pkgutil import resolve_name
from typing import NoReturn, TextIO

import numpy as np

from gradcheck.backends.base import backend_row
from gradcheck.case.case import Case
from gradcheck.case.user_code import (
    frames_of,
    innermost_place,
    raised_by_scenario,
    with_place,
)
from gradcheck.result import Result, Status
from gradcheck.run.answer import answer_line
from gradcheck.run.limits import limit_own_memory, shown_size
from gradcheck.support.foreign import text_of, type_name

Execute = Callable[[Case], Result]


def prepare_process(execute_name: str, backend: str, warm_up: bool) -> Execute:
    """Import everything that a case needs, and return the function that runs cases.

    If `warm_up` is set and the backend permits it before a fork, a first case is run so that
    objects made on first use exist.
    """
    execute: Execute = resolve_name(execute_name)
    row = backend_row(backend)
    for preloaded in row.preload:
        import_module(preloaded)
    if warm_up and row.warm_up:
        execute_safely(execute, warm_up_case(backend))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no file
    faulthandler.enable(file=2, all_threads=False)
    return execute


def run_case(execute: Execute, request: int, answer: int, output: int) -> NoReturn:
    """Run a case, read from a file as JSON, write its result to a file as JSON, and end this
    process.
    """
    status, pid = 1, os.getpid()
    try:
        if os.getpgid(0) != pid:
            os.setpgid(0, 0)  # a new process group, which is killed whole
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        sys.stdout, sys.stderr = line_writer(1), line_writer(2)
        with open(request, "rb") as file:
            case = Case.model_validate_json(file.read())
        if case.backend != "cupy":  # CUDA reserves more than it uses; its use is watched
            limit_own_memory(case.memory)
        random.seed(case.seed)
        np.random.seed(case.seed)
        recursion_limit = sys.getrecursionlimit()
        result = execute_safely(execute, case)
        sys.setrecursionlimit(recursion_limit)
        if os.getpid() == pid:  # otherwise the case forked, and this is the copy
            with open(answer, "wb") as file:
                file.write(answer_line(result))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(status)


def line_writer(descriptor: int) -> TextIO:
    """Open a descriptor for text; every line is written immediately, so that a crash loses none."""
    return open(
        descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def execute_safely(execute: Execute, case: Case) -> Result:
    """Return the result of a case; an exception of `execute` becomes an ERROR.

    It is reported as a bug in gradcheck, unless memory or the stack ran out, or the scenario's own
    code raised it.
    """
    try:
        return execute(case)
    except MemoryError as error:
        message = f"needs more than {shown_size(case.memory)} of memory: {text_of(error)}"
    except RecursionError as error:
        message = f"recurses too deeply: {text_of(error)}"
    except BaseException as error:
        message = f"{type_name(error)}: {text_of(error)}"
        if not raised_by_scenario(case.scenario.path, error):
            report = "".join(traceback.format_exception(error))
            return case.result(Status.ERROR, f"bug in gradcheck: {message}", internal_error=report)
        message = with_place(message, error, case.scenario.path)
        place = innermost_place(frames_of(error), case.scenario.path)
        return case.result(Status.ERROR, message, raised_at=place)
    return case.result(Status.ERROR, message)


def warm_up_case(backend: str) -> Case:
    """Return a case that uses the objects that most cases use."""
    layer = (
        "class Square(PyLayer):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        "
        "return x * x\n"
        "    @staticmethod\n    def backward(ctx, dy):\n        x, = ctx.saved_tensor()\n        "
        "return 2 * dy * x\n"
    )
    scenario = {
        "id": "warm-up",
        "title": "Warm-up",
        "source": {"document": "none"},
        "layer": layer,
        "inputs": {"x": {"shape": (2,)}},
        "expect": {"gradient": "matches", "values": {"out.shape": (2,)}},
    }
    return Case.model_validate({"scenario": scenario, "backend": backend})
