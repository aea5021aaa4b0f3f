"""What went wrong between ranks, by the engine's errors."""

from __future__ import annotations

from pylayer.distributed.call import DeadlockError, MismatchError
from pylayer.distributed.rank import current

CODE_OF_ERROR = {MismatchError: "GC163", DeadlockError: "GC164"}
"""By the class of an error, the code of the contract that was broken."""


def code_between_ranks(error: BaseException) -> str:
    """The code of the contract that an error says was broken; empty if it says another thing."""
    return next((code for kind, code in CODE_OF_ERROR.items() if isinstance(error, kind)), "")


def rank_unwaited() -> list[str]:
    """The calls of this rank that nobody has waited for, in words; they are forgotten."""
    here = current()
    found = [str(task.call) for task in here.unwaited]
    here.unwaited.clear()
    return found
