"""What went wrong between ranks, by the engine's errors."""

from __future__ import annotations

from pylayer.distributed.call import DeadlockError, MismatchError
from pylayer.distributed.rank import current

CODE_OF_ERROR = {MismatchError: "GC163", DeadlockError: "GC164"}
"""By the class of an error, the code of the contract that was broken."""


class EngineRanks:
    """What a backend says of its ranks, which are the engine's."""

    def between_ranks(self, error: BaseException) -> str:
        return next((code for kind, code in CODE_OF_ERROR.items() if isinstance(error, kind)), "")

    def unwaited(self) -> list[str]:
        here = current()
        found = [str(task.call) for task in here.unwaited]
        here.unwaited.clear()
        return found
