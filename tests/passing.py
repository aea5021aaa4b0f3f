"""Executors for tests of what a command reads and shows: they start no process."""

from __future__ import annotations

import gc
import os
import random
import sys
from concurrent.futures import Future
from contextvars import copy_context

import numpy as np

from gradcheck.case.case import Case
from gradcheck.case.execute import execute
from gradcheck.result import Result, Status
from gradcheck.run.in_case import execute_safely
from gradcheck.run.ordering import Executor


class Passing(Executor):
    """Runs nothing: every case passes."""

    def __init__(self, *_: object, **options: object) -> None:
        super().__init__(1)

    def __enter__(self) -> Passing:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, case: Case) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(case.result(Status.PASS, ""))
        return future


class InThisProcess(Passing):
    """Runs every case in this process, as one that is alone would find it; what ends its process ends all of them."""

    def submit(self, case: Case) -> Future[Result]:
        future: Future[Result] = Future()
        skipped = case.not_run()
        if skipped is None:
            folder, limit = os.getcwd(), sys.getrecursionlimit()
            random.seed(case.seed)
            np.random.seed(case.seed)
            result = copy_context().run(execute_safely, execute, case)  # static mode belongs to a context
            os.chdir(folder)
            sys.setrecursionlimit(limit)
            gc.enable()
        future.set_result(skipped or result)
        return future
