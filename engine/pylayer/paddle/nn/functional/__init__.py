"""`paddle.nn.functional`."""

from __future__ import annotations

# ops: begin
from pylayer.ops.elementwise import (
    tanh as tanh,
)
from pylayer.ops.padding import (
    pad as pad,
)
from pylayer.ops.sorting import (
    one_hot as one_hot,
)
# ops: end
from pylayer.paddle._missing import missing

__getattr__ = missing(__name__)
