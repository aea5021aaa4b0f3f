"""The bundled autograd engine: NumPy and CuPy arrays, and the Paddle names that custom layers use.

``import pylayer`` registers nothing; after `install_paddle`, ``import paddle`` in this process
imports the engine.
"""

from __future__ import annotations

import pylayer.ops  # noqa: F401 - the package gives Tensor its methods
from pylayer.release import install_paddle, uninstall_paddle

__version__ = "0.1.0"

__all__ = ["__version__", "install_paddle", "uninstall_paddle"]
