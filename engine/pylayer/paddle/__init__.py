"""Paddle's public names over the bundled engine (the facade): only re-exports of names that other
modules define.

The engine's version is `__version__`; it is not a Paddle release.
"""

from __future__ import annotations

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

import pylayer.distributed.process_group  # noqa: F401 - groups have it
from pylayer import __version__ as __version__
from pylayer.paddle._names import fill as _fill

newaxis = None

_fill()
