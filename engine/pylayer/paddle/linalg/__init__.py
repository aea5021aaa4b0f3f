"""`paddle.linalg`."""

from __future__ import annotations

# ops: begin
from pylayer.ops.diagonal import (
    diagonal as diagonal,
)
# ops: end
from pylayer.paddle._missing import missing

__getattr__ = missing(__name__)
