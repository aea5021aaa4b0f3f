"""The public names of the installed Paddle: by module or class, what a user may ask it for.

python tests/differential/release_names.py      # writes engine/pylayer/paddle/release-3.3.1.txt anew
"""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path
from typing import Any

MODULES = (
    "", "amp", "autograd", "autograd.py_layer", "base", "base.core", "base.dygraph", "device", "distributed",
    "distributed.fleet", "distributed.fleet.utils", "distribution", "fft", "framework", "geometric", "incubate",
    "incubate.autograd", "incubate.nn", "incubate.nn.functional", "io", "jit", "linalg", "metric", "nn", "nn.functional",
    "nn.init", "nn.initializer", "nn.utils", "optimizer", "optimizer.lr", "quantization", "regularizer", "signal", "sparse",
    "sparse.nn", "special", "static", "static.nn", "tensor", "utils", "version", "vision", "vision.models", "vision.ops",
    "vision.transforms",
)  # fmt: skip
CLASSES = ("Tensor", "nn.Layer", "optimizer.Optimizer", "static.Program", "static.Executor")


def names_of(owner: Any) -> list[str]:
    """The names of a module, its submodules included, or of a class: of a Tensor also those that tests use."""
    hidden = "__" if isinstance(owner, type) else "_"
    return sorted(n for n in {*dir(owner), *getattr(owner, "__all__", ())} if not n.startswith(hidden))


def release_names(paddle: Any) -> dict[str, list[str]]:
    """By module and class, their names."""
    found = {}
    for module in MODULES:
        name = f"paddle.{module}".removesuffix(".")
        found[name] = names_of(importlib.import_module(name))
    for path in CLASSES:
        found[f"paddle.{path}"] = names_of(functools.reduce(getattr, path.split("."), paddle))
    return found


def as_text(names: dict[str, list[str]]) -> str:
    """A line per module or class."""
    return "".join(f"{owner}: {' '.join(found)}\n" for owner, found in names.items())


FILE = Path(__file__).parents[2] / "engine/pylayer/paddle/release-3.3.1.txt"

if __name__ == "__main__":
    import paddle

    Path(sys.argv[1] if len(sys.argv) > 1 else FILE).write_text(as_text(release_names(paddle)))
