"""How an imported layer or function is called: its arguments, and the call that passes inputs.

What counts is the object that a name stands for, not the text of its module: it may have been
assigned, decorated, or imported from elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gradcheck.backends.base import Backend
from gradcheck.case.user_code import NoLayerError
from gradcheck.spec.containers import variable, variables
from gradcheck.spec.python import written_arguments
from gradcheck.support.suggest import hint

CANNOT_CHECK = "cannot be checked: "
"""Begins the message of a layer that is not there, or cannot be called with its inputs."""
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
ANY_NAME = inspect.Parameter.VAR_KEYWORD
ANY_NUMBER = inspect.Parameter.VAR_POSITIONAL


class LayerSignature(NamedTuple):
    """The arguments of a layer or function, and where it is defined."""

    name: str
    is_applied: bool
    """Whether it is a class with ``apply``, such as a PyLayer, rather than called itself."""
    parameters: Sequence[inspect.Parameter] | None
    """Without the context of a PyLayer; None if they are not known, as of some C functions."""
    file: str = ""
    """Empty if it is not known, as in an interpreter."""
    line: int = 0

    @property
    def needed(self) -> list[str]:
        """The arguments without a default."""
        return [
            parameter.name
            for parameter in self.parameters or ()
            if parameter.default is parameter.empty and parameter.kind not in (ANY_NAME, ANY_NUMBER)
        ]

    def usual_inputs(self) -> Iterator[str]:
        """Yield inputs to begin with, as ``-i`` takes them: of each needed argument, of any."""
        for parameter in self.parameters or ():
            if parameter.kind is ANY_NUMBER:
                yield f"{parameter.name}=[2x3,2x3]"
            elif parameter.name in self.needed:
                yield f"{parameter.name}=2x3"

    @property
    def callee(self) -> str:
        """The expression that is called."""
        return f"{self.name}.apply" if self.is_applied else self.name

    def require_call(self, inputs: Collection[str], keywords: Collection[str] = ()) -> None:
        """Require that it can be called with the inputs, and with further keywords.

        Raises NoLayerError: it has no such argument, or one without a default is missing.
        """
        self.require_names(inputs, keywords)
        if missing := self.missing(inputs, keywords):
            wanted = " ".join(f"--input {name}=2x3" for name in missing)
            raise NoLayerError(
                f"{self.place}forward takes {self.shown()}: give the shapes of those that are "
                f"Tensors ({wanted}), and others as --kwarg {missing[0]}=VALUE"
            )

    def require_names(self, inputs: Collection[str], keywords: Collection[str] = ()) -> None:
        """Require that it has the arguments. Raises NoLayerError: it has no such one."""
        kinds = {parameter.kind for parameter in self.parameters or ()}
        if self.parameters is None or kinds & {ANY_NAME, ANY_NUMBER}:
            return
        for name in [*variables(inputs), *keywords]:
            if name not in self.known:
                near = hint(name, self.known, f"it takes {self.shown()}")
                raise NoLayerError(f"{self.place}forward has no argument {name!r}; {near}")

    def missing(self, inputs: Collection[str], keywords: Collection[str]) -> list[str]:
        """Return the needed arguments that are not given."""
        given = {*variables(inputs), *keywords}
        return [name for name in self.needed if name not in given]

    @property
    def place(self) -> str:
        """``layers.py:6: ``; empty if it is not known."""
        return f"{Path(self.file).name}:{self.line}: " if self.file else ""

    def call_to_complete(self, inputs: Collection[str], keywords: Mapping[str, Any]) -> str:
        """Return its call with all arguments, and a note on what it needs besides what is given."""
        missing = self.missing(inputs, keywords)
        arguments = [*self.arguments_of(inputs), *(f"{name}=…" for name in missing)]
        others = {**keywords}
        for parameter in self.parameters or ():
            is_given = parameter.name in {*variables(inputs), *missing}
            if parameter.default is not parameter.empty and not is_given:
                others.setdefault(parameter.name, parameter.default)
        note = f"  # needed: say what {' and '.join(missing)} shall be" if missing else ""
        return f"{self.callee}({written_arguments(arguments, others)}){note}"

    @property
    def known(self) -> list[str]:
        """The names of the arguments."""
        return [parameter.name for parameter in self.parameters or ()]

    def shown(self) -> str:
        """Return the arguments with their defaults, as Python writes them."""
        signs: dict[Any, str] = {ANY_NAME: "**", ANY_NUMBER: "*"}
        shown = []
        for parameter in self.parameters or ():
            default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
            shown.append(f"{signs.get(parameter.kind, '')}{parameter.name}{default}")
        return ", ".join(shown) or "nothing"

    def call_of(self, inputs: Collection[str], keywords: Mapping[str, Any]) -> str:
        """Return the call of the inputs, by the names of the arguments where they have such names.

        Inputs none of which is called as an argument are passed in order.
        """
        return f"{self.callee}({written_arguments(self.arguments_of(inputs), keywords)})"

    def arguments_of(self, inputs: Collection[str]) -> Iterator[str]:
        """Yield the inputs as arguments of a call."""
        names, in_order = variables(inputs), True
        if not set(names) & {*self.known}:
            yield from names
            return
        lists = {variable(name) for name in inputs if "[" in name}
        left = dict.fromkeys(names)
        for parameter in self.parameters or ():
            name = parameter.name
            if parameter.kind is ANY_NUMBER and in_order:
                others = [other for other in left if other not in self.known]
                yield from others if name not in left else [f"*{name}" if name in lists else name]
                for other in (*others, name):
                    left.pop(other, None)
                continue
            if name not in left:
                in_order = False
                continue
            del left[name]
            sign = "**" if parameter.kind is ANY_NAME and name in lists else f"{name}="
            yield name if parameter.kind in POSITIONAL and in_order else f"{sign}{name}"
        yield from (f"{name}={name}" for name in left)


def instance_of(target: Any, backend: Backend) -> Any:
    """Return an instance of a module's class that is made without arguments; otherwise `target`."""
    if inspect.isclass(target) and issubclass(target, backend.module_type):
        with suppress(TypeError):
            inspect.signature(target).bind()
            return target()
    return target


def signature_of(target: Any, name: str, backend: Backend) -> LayerSignature:
    """Return how an object is called that a module has under a name.

    Raises NoLayerError: it cannot be called, or is the class of a module, such as ``nn.Layer``.
    """
    is_class, words = inspect.isclass(target), backend.words
    if is_class and issubclass(target, backend.module_type):
        raise NoLayerError(
            f"{name} is the class of an {words.module}: say how one is made and called, such as "
            f"call {name}(…)(x)"
        )
    is_applied = is_class and hasattr(target, "apply")
    function = getattr(target, "forward", None if is_class else target)
    if not callable(function) or not callable(target):
        kind = f"class {name} has no forward" if is_class else f"{name} cannot be called"
        raise NoLayerError(
            f"{kind}: name a {words.layer}, an {words.module} or a function of Tensors"
        )
    parameters = None
    with suppress(TypeError, ValueError):  # of a builtin nothing is known
        skipped = int(is_applied and backend.takes_context(target))
        parameters = [*inspect.signature(function).parameters.values()][skipped:]
    file = ""
    with suppress(TypeError, OSError):
        file = inspect.getsourcefile(inspect.unwrap(target)) or ""
    return LayerSignature(name, is_applied, parameters, file, first_line(target))


def first_line(target: Any) -> int:
    """Return the line on which a class or function begins, from 1; 0 if it is not known."""
    with suppress(TypeError, OSError):
        return max(inspect.getsourcelines(inspect.unwrap(target))[1], 1)
    return 0
