"""`paddle.pir_utils`."""

from __future__ import annotations

from contextlib import nullcontext as _nullcontext

from pylayer.compatibility import static_guard as _static_guard
from pylayer.paddle._names import missing

IrGuard, DygraphPirGuard = _static_guard, _nullcontext

__getattr__ = missing(__name__)
