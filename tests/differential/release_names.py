"""The public names of the installed Paddle: by module or class, what a user may ask it for.

python tests/differential/release_names.py      # writes engine/pylayer/paddle/release-3.3.1.txt anew
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
import sys
import types
from pathlib import Path
from typing import Any

from pylayer.paddle._names import MODULES

FILE = Path(__file__).parents[2] / "engine/pylayer/paddle/release-3.3.1.txt"
OTHERS = (
    "_C_ops", "distribution", "incubate.nn", "incubate.nn.functional", "io", "metric", "optimizer.lr", "quantization",
    "signal", "sparse", "sparse.nn", "version", "vision", "vision.models", "vision.ops", "vision.transforms",
)  # fmt: skip
"""Modules that the facade has not, and of which it is known what is in them."""
CLASSES = ("Tensor", "nn.Layer", "optimizer.Optimizer", "static.Program", "static.Executor", "pir.Block", "pir.Value")


def names_of(owner: Any) -> list[str]:
    """The names of a class or a module; those of modules end in ``/``, and of `paddle.base` private ones are there too."""
    if isinstance(owner, type):
        return sorted(name for name in dir(owner) if not name.startswith("__"))
    hidden = "__" if owner.__name__.startswith("paddle.base") else "_"
    found = {name: "/" for _, name, _ in pkgutil.iter_modules(getattr(owner, "__path__", ()))}
    for name in {*dir(owner), *getattr(owner, "__all__", ())}:
        found[name] = "/" if isinstance(getattr(owner, name, None), types.ModuleType) else ""
    return sorted(name + mark for name, mark in found.items() if not name.startswith("__" if mark else hidden))


def at(paddle: Any, path: str) -> Any:
    """What stands at a path below ``paddle``; some modules have to be imported, and some cannot be."""
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(f"paddle.{path}".removesuffix("."))
    return functools.reduce(getattr, filter(None, path.split(".")), paddle)


def release_names(paddle: Any) -> dict[str, list[str]]:
    """By module and class, their names."""
    found = {}
    for module in sorted({*MODULES, *OTHERS}):
        found[f"paddle.{module}".removesuffix(".")] = names_of(at(paddle, module))
    for path in CLASSES:
        found[f"paddle.{path}"] = names_of(at(paddle, path))
    return found


def as_text(names: dict[str, list[str]]) -> str:
    """A line per module or class."""
    return "".join(f"{owner}: {' '.join(found)}\n" for owner, found in names.items())


if __name__ == "__main__":
    import paddle

    Path(sys.argv[1] if len(sys.argv) > 1 else FILE).write_text(as_text(release_names(paddle)))
