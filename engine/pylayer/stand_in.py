"""Stand-ins for what Paddle has and the engine lacks: they can be imported, and a use of one says its name."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any, NoReturn

from pylayer.release import FACADE, release_modules
from pylayer.unsupported import UnsupportedError

REEXPORTING = (
    "amp", "autograd", "base", "distributed", "framework", "jit", "nn", "nn.functional", "nn.initializer", "nn.utils",
    "optimizer", "static", "tensor",
)  # fmt: skip
"""The packages that hand on what is defined in modules inside: ``paddle.tensor.math.add`` is ``paddle.tensor.add``."""
OTHERS_INSIDE = tuple(
    f"paddle.{name}."
    for name in (
        "autograd.ir_backward", "base.core", "base.libpaddle", "distributed.communication.stream", "nn.quant",
        "static.amp",
    )
)  # fmt: skip
"""What is inside of them, and has functions of its own by the same names."""


class StandIn(ModuleType):
    """A module, class or function of Paddle that the engine lacks; so are the names in it.

    No object of a user's is an instance of one, and a class may have it as a base.

    Raises:
        UnsupportedError: it is called, compared, looped over or the like; a class made of it is called; an object of
            the engine's is asked whether it is an instance, as it may be what the release calls so.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # modules may be looked for in it

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # of a star import, after which a name would be missing without a reason
            self._used()
        if name.startswith("__"):  # what Python itself asks for
            raise AttributeError(f"{self!r} has no attribute {name!r}", name=name, obj=self)
        return named(f"{self.__name__}.{name}")

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not part of the bundled engine>"

    def _used(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(self.__name__)

    def __instancecheck__(self, instance: object) -> bool:
        return self.__subclasscheck__(type(instance))

    def __subclasscheck__(self, subclass: type) -> bool:
        return subclass.__module__.partition(".")[0] == "pylayer" and self._used()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        return (type(self.__name__.rpartition(".")[2], (), {"__new__": self._used}),)

    def __or__(self, other: Any) -> Any:  # in an annotation
        return self

    __ror__ = __or__


_USES = (
    "call eq ne lt le gt ge bool len iter contains getitem setitem enter exit int float index add radd sub rsub mul "
    "rmul truediv rtruediv pow rpow matmul rmatmul neg abs invert"
)
for _name in _USES.split():
    setattr(StandIn, f"__{_name}__", StandIn._used)


@functools.cache
def stand_in(path: str) -> StandIn:
    """The stand-in for a dotted name, always the same."""
    return StandIn(path)


def hands_on(path: str) -> bool:
    """Whether a dotted name is that of a module inside a package that hands on what is defined there."""
    package = path.rpartition(".")[0].removeprefix("paddle.")
    return path in release_modules() and package in REEXPORTING and not f"{path}.".startswith(OTHERS_INSIDE)


def named(path: str) -> Any:
    """What a dotted name stands for that is below a module which the facade lacks.

    It is the object of that name in the nearest package above that hands on what is defined inside it; else a stand-in.
    """
    package, _, name = path.rpartition(".")
    while "." in package and package.removeprefix("paddle.") not in REEXPORTING:
        package = package.rpartition(".")[0]
    facade = sys.modules.get(FACADE + package.removeprefix("paddle"))
    found = vars(facade).get(name) if facade is not None and "." in package else None
    if found is None or isinstance(found, ModuleType) or path.startswith(OTHERS_INSIDE):
        return stand_in(path)
    return found
