"""The source position in the user's program at which an object was made."""

from __future__ import annotations

import sys
from pathlib import Path

ENGINE = str(Path(__file__).resolve().parents[1])


def user_location() -> str:
    """File and line of the innermost running code outside of the engine."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(ENGINE) and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
