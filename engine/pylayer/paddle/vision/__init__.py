"""`paddle.vision`."""

from __future__ import annotations

from pylayer.paddle._names import missing
from pylayer.paddle.vision import models as models

__getattr__ = missing(__name__)
