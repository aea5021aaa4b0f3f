"""The bundled autograd engine on NumPy and CuPy arrays, with the part of Paddle's surface that custom layers use.

``import pylayer`` registers nothing; `install_paddle` makes ``import paddle`` mean the engine in this process.
"""

from __future__ import annotations

import pylayer.ops  # noqa: F401 - the package gives Tensor its methods
from pylayer.release import install_paddle, uninstall_paddle

__version__ = "0.1.0"

__all__ = ["__version__", "install_paddle", "uninstall_paddle"]
