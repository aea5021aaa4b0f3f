"""Environments of releases that are none: this interpreter, and the bundled engine under the name of a Paddle."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from venv import EnvBuilder

FACADE = """
import sys
del sys.modules["paddle"]
import pylayer
from pylayer.tensor.tensor import Tensor
pylayer.install_paddle()
Tensor.data_ptr = lambda self: self.array.ctypes.data
Tensor.element_size = lambda self: self.array.itemsize
"""
"""The engine as ``import paddle``, with what Paddle has beside it and `gradcheck.backends.paddle` needs."""
RELEASE = f"""{FACADE}
from gradcheck.backends.bundled import BundledBackend
from gradcheck.backends.paddle import PaddleBackend
PaddleBackend.observing, PaddleBackend.share = BundledBackend.observing, BundledBackend.share
"""
"""The engine as a release that the backend of Paddle runs on: layers and memory are the engine's."""


def make_environment(folder: Path, version: str, code: str = RELEASE, *, packages: bool = True) -> Path:
    """The interpreter of an environment in which a Paddle of that version seems to be installed.

    Its ``import paddle`` runs `code`. It has this interpreter's packages, unless `packages` is false.
    """
    EnvBuilder(symlinks=True).create(folder)
    site = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(folder)}))
    (site / "paddle").mkdir()
    (site / "paddle" / "__init__.py").write_text(code)
    distribution = site / f"paddlepaddle-{version}.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text(f"Metadata-Version: 2.1\nName: paddlepaddle\nVersion: {version}\n")
    if packages:
        paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
        (site / "packages.pth").write_text("\n".join(paths) + "\n")
    return folder / "bin" / "python"
