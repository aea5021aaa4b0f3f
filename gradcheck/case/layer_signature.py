"""How an imported layer or function is called: its arguments, and the call that passes inputs.

The signature comes from the object, not from its module's text: the name may have been assigned,
decorated, or imported from elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from gradcheck.backends.base import Backend
from gradcheck.case.reachable import unused_name
from gradcheck.case.user_code import NoLayerError
from gradcheck.spec.containers import variable, variables
from gradcheck.spec.model import Input
from gradcheck.spec.python import written_arguments
from gradcheck.support.display_paths import shown_path
from gradcheck.support.suggest import hint

CANNOT_CHECK = "cannot be checked: "
"""The start of the message about a layer that does not exist or cannot be called with its
inputs.
"""
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
ANY_NAME = inspect.Parameter.VAR_KEYWORD
ANY_NUMBER = inspect.Parameter.VAR_POSITIONAL
PLACED = (*POSITIONAL, ANY_NUMBER)
ANY_ARGUMENTS = [inspect.Parameter("args", ANY_NUMBER)]
"""The arguments of a builtin function without a known signature."""
STARS: dict[Any, str] = {ANY_NAME: "**", ANY_NUMBER: "*"}
"""The prefix of parameters of these kinds."""


class NotCallableError(NoLayerError, TypeError):
    """The given object cannot be called as a layer or function of Tensors."""


class LayerSignature(NamedTuple):
    """How a layer or function is called: the names and kinds of its arguments."""

    name: str
    is_applied: bool
    """Whether the layer is a class with ``apply``, such as a PyLayer, rather than a callable."""
    parameters: Sequence[inspect.Parameter]
    """The parameters, without the context of a PyLayer."""
    target: Any
    """The layer or function itself."""

    @property
    def needed(self) -> list[str]:
        """The arguments without a default."""
        named = [each for each in self.parameters if each.kind not in STARS]
        return [each.name for each in named if each.default is each.empty]

    def names_of(self, count: int) -> list[str]:
        """The names of `count` arguments in order; generated for arguments without a name."""
        names = [each.name for each in self.parameters if each.kind in POSITIONAL][:count]
        for number in range(len(names), count):
            names.append(unused_name(f"x{number}", names))
        return names

    def usual_inputs(self) -> Iterator[str]:
        """Yield inputs for a first draft, as ``-i`` takes them: one for each required argument."""
        for parameter in self.parameters:
            if parameter.kind is ANY_NUMBER:
                yield f"{parameter.name}=[2x3,2x3]"
            elif parameter.name in self.needed:
                yield f"{parameter.name}=2x3"

    @property
    def callee(self) -> str:
        """The expression that is called."""
        return f"{self.name}.apply" if self.is_applied else self.name

    def require_call(
        self, inputs: Mapping[str, Input], keywords: Collection[str] = (), others: str = ""
    ) -> None:
        """Require that the layer can be called with the inputs, and with further keywords.

        `others` tells the user how to pass plain arguments, by default as ``--kwarg``.

        Raises NoLayerError: an argument does not exist, or one without a default is missing.
        """
        self.require_names(inputs, keywords)
        if missing := self.missing(inputs, keywords):
            shapes = ["x".join(map(str, spec.shape)) for spec in inputs.values() if spec.shape]
            shape = shapes[0] if shapes else "2x3"
            wanted = " ".join(f"--input {name}={shape}" for name in missing)
            raise NoLayerError(
                f"{self.place}forward takes {self.shown()}: give the shapes of those that are "
                f"Tensors ({wanted}), and others {others or f'as --kwarg {missing[0]}=VALUE'}"
            )

    def require_names(self, inputs: Collection[str], keywords: Collection[str] = ()) -> None:
        """Require that the layer has the arguments. Raises NoLayerError: one does not exist."""
        if any(parameter.kind in STARS for parameter in self.parameters):
            return
        for name in [*variables(inputs), *keywords]:
            if name not in self.known:
                near = hint(name, self.known, f"it takes {self.shown()}")
                raise NoLayerError(f"{self.place}forward has no argument {name!r}; {near}")

    def missing(self, inputs: Collection[str], keywords: Collection[str]) -> list[str]:
        """Return the required arguments that are not given."""
        passed = {*variables(inputs), *keywords}
        return [name for name in self.needed if name not in passed]

    @property
    def place(self) -> str:
        """``own/layers.py:6: ``; empty if it is not known, as in an interactive session."""
        with suppress(TypeError, OSError):
            file = inspect.getsourcefile(inspect.unwrap(self.target))
            return f"{shown_path(file)}:{first_line(self.target)}: " if file else ""
        return ""

    def call_to_complete(self, inputs: Collection[str], keywords: Mapping[str, Any]) -> str:
        """Return a call of the layer with all arguments, and a note on the arguments that are still
        missing.
        """
        missing = self.missing(inputs, keywords)
        arguments = [*self.arguments_of(inputs), *(f"{name}=…" for name in missing)]
        options = {**keywords}
        for parameter in self.parameters:
            is_given = parameter.name in {*variables(inputs), *missing}
            if parameter.default is not parameter.empty and not is_given:
                options.setdefault(parameter.name, parameter.default)
        note = f"  # needed: give a value for {' and '.join(missing)}" if missing else ""
        return f"{self.callee}({written_arguments(arguments, options)}){note}"

    @property
    def known(self) -> list[str]:
        """The names of the arguments."""
        return [parameter.name for parameter in self.parameters]

    def shown(self) -> str:
        """Return the arguments with their defaults, as Python writes them."""
        bare = [each.replace(annotation=each.empty) for each in self.parameters]
        return ", ".join(map(str, bare)) or "nothing"

    def call_of(self, inputs: Collection[str], keywords: Mapping[str, Any]) -> str:
        """Return the call that passes the inputs, by name where an input has the name of an
        argument.

        If no input has the name of an argument, they are passed in order.
        """
        return f"{self.callee}({written_arguments(self.arguments_of(inputs), keywords)})"

    def arguments_of(self, inputs: Collection[str]) -> Iterator[str]:
        """Yield the inputs as arguments of a call."""
        remaining = dict.fromkeys(variables(inputs))
        if remaining.keys().isdisjoint(self.known):
            yield from remaining
            return
        lists, in_order = {variable(name) for name in inputs if "[" in name}, True
        for parameter in self.parameters:
            name, sign = parameter.name, STARS.get(parameter.kind, "")
            if name in remaining:
                del remaining[name]
                is_placed = in_order and parameter.kind in PLACED
                starred = sign if name in lists and (is_placed or sign == "**") else ""
                yield f"{starred}{name}" if is_placed or starred else f"{name}={name}"
            elif sign != "*":
                in_order = False
            elif in_order:  # these take the inputs that no argument is named after
                unnamed = [other for other in remaining if other not in self.known]
                yield from unnamed
                remaining = {other: None for other in remaining if other not in unnamed}
        yield from (f"{name}={name}" for name in remaining)


def instance_of(target: Any, backend: Backend) -> Any:
    """Return an instance of a module's class, if it can be made without arguments; otherwise
    `target`.
    """
    if inspect.isclass(target) and issubclass(target, backend.module_type):
        with suppress(TypeError):
            inspect.signature(target).bind()
            return target()
    return target


def signature_of(target: Any, name: str, backend: Backend) -> LayerSignature:
    """Return the signature of the object that a name refers to in a module.

    Raises NoLayerError: the object cannot be called, or is the class of a module, such as
    ``nn.Layer``.
    """
    is_class, words = inspect.isclass(target), backend.words
    if is_class and issubclass(target, backend.module_type):
        raise NotCallableError(
            f"{name} is the class of an {words.module}: pass an instance, such as check({name}(…), "
            f"x), or on the command line --call '{name}(…)(x)'"
        )
    is_applied = is_class and hasattr(target, "apply")
    function = getattr(target, "forward", None if is_class else target)
    if not callable(function) or not callable(target):
        kind = f"class {name} has no forward" if is_class else f"{name} cannot be called"
        raise NotCallableError(
            f"{kind}: name a {words.layer}, an {words.module} or a function of Tensors"
        )
    parameters = ANY_ARGUMENTS
    with suppress(TypeError, ValueError):  # a builtin may have no signature
        skipped = int(is_applied and backend.takes_context(target))
        parameters = [*inspect.signature(function).parameters.values()][skipped:]
    return LayerSignature(name, is_applied, parameters, target)


def first_line(target: Any) -> int:
    """Return the line on which a class or function begins, from 1; 0 if it is not known."""
    with suppress(TypeError, OSError):
        return max(inspect.getsourcelines(inspect.unwrap(target))[1], 1)
    return 0
