"""Whether the hand-written backwards ran: a backward that did not run is never green (V28)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

from gradcheck.backends.base import package_of
from gradcheck.case.foreign_frameworks import foreign_framework, refuse_layer
from gradcheck.case.function import NamespaceCall, TensorFunction
from gradcheck.case.layer_calls import Way, definer, subclasses
from gradcheck.case.names_in_code import CLOSED, is_installed, names_in, references_of_function
from gradcheck.case.of_arrays import layer_of_arrays
from gradcheck.result import GREEN, Diagnosis, GradientSummary, Status

CODE = "GC125"
APPLY_OVERRIDDEN = "its apply is overridden, and does not call {layer}'s apply"
FORWARD_DIRECT = "its forward was called directly, not through apply"
NO_GRADIENT_NEEDED = "none of its inputs needs a gradient"
NOT_REACHED = "no gradient reaches its outputs (detached, computed under no_grad, or not used)"
NOT_TAKEN = "another branch was taken"
NOT_CALLED = "its module holds it, and does not call it"
NOT_GIVEN = "it was not handed to static_pylayer"
CERTAIN = (APPLY_OVERRIDDEN, FORWARD_DIRECT)
"""Reasons that also explain a gradient that is wrong, or that there is none."""


def with_backwards_that_ran(function: TensorFunction, summary: GradientSummary) -> GradientSummary:
    """The summary of a check: not green if a backward that must run did not.

    It is marked if no hand-written backward ran and none needed to.
    """
    subject = Subject(function)
    is_green = summary.verdict in GREEN
    if summary.verdict is not Status.FAIL:
        subject.refuse_foreign()
    missing = [
        subject.diagnosis(key, reason)
        for key, reason in subject.missing()
        if is_green or reason in CERTAIN
    ]
    if missing:
        return never_ran(missing, summary)
    if not is_green:
        return summary
    silent = {key: layer for key, layer in subject.named.items() if key not in subject.ran}
    if silent:
        names = " and ".join(sorted(map(subject.name_of, silent)))
        is_eval = all(layer.only_in_eval for layer in silent.values())
        mark = f"backward of {names} did not run{': eval mode' if is_eval else ''}"
    elif function.expects_backward and not subject.ran and not subject.is_of_library:
        rules = function.backend.words.rules
        mark = f"no hand-written backward: {rules} own rules were checked"
    else:
        return summary
    return summary.model_copy(update={"marks": (*summary.marks, mark)})


def refuse_foreign_layers(function: TensorFunction) -> None:
    """Raise if the checked code names a layer of another framework and no user's backward ran.

    Raises:
        ForeignFrameworkError: it does.
    """
    Subject(function).refuse_foreign()


def never_ran(missing: list[Diagnosis], summary: GradientSummary) -> GradientSummary:
    """The summary with the backwards that never ran. A FAIL stays one: they are its first cause."""
    diagnosis = (*missing, *summary.diagnosis)
    if summary.verdict is Status.FAIL:
        return summary.model_copy(update={"diagnosis": diagnosis})
    changed = {
        "verdict": Status.INCONCLUSIVE,
        "why": "; ".join(cause.text for cause in missing),
        "diagnosis": diagnosis,
        "certified": False,
    }
    return summary.model_copy(update=changed)


@dataclass
class NamedLayer:
    """A layer that the code names, and how."""

    layer: Any
    """The class as it is named, which may inherit its backward; or a ``backward_fn``."""
    only_in_eval: bool = True
    """Whether only modules in eval mode name it."""
    is_held: bool = False
    """Whether a module has it as an attribute."""
    is_read: bool = False
    """Whether code reads it."""
    forward_is_named: bool = False
    """Whether its forward has another name, by which it runs outside of apply."""


class Subject:
    """The layers that a call is meant to use, as far as its code shows.

    The code is followed from what is checked along the global names, closures and attributes that
    it reads: a layer that is picked from a dict or a list, as from a table of activations, need
    not be used.
    """

    def __init__(self, function: TensorFunction) -> None:
        self.calls = function.layer_calls()
        self.ran = self.calls.ran()
        """The keys of the layers whose backward ran."""
        self.backend = function.backend
        self.checked: Any = None
        """The key of the layer that is itself what is checked."""
        self.named: dict[Any, NamedLayer] = {}
        """By key."""
        self.is_of_library = False
        """Whether what is checked is an operation or a layer of the library itself."""
        self.foreign: list[Any] = []
        """Layers of other frameworks."""
        self.seen: dict[tuple[int, bool, int], Any] = {}
        with suppress(Exception):  # a user's object may raise at any access
            self.start(function.subject)

    def start(self, subject: Any) -> None:
        """Follow what is checked."""
        layer = self.layer_of(subject)
        if isinstance(subject, NamespaceCall):
            self.follow_call(subject)
        elif layer is not None:
            self.add(layer, False)
            self.checked = self.calls.key(layer)
            self.is_of_library = self.checked is None
        else:
            is_function = isinstance(subject, FunctionType)
            self.is_of_library = is_function and package_of(subject) in self.calls.libraries
            self.follow(subject, False)

    def refuse_foreign(self) -> None:
        """As `refuse_foreign_layers`."""
        if self.foreign and not self.ran:
            refuse_layer(self.foreign[0], self.backend.packages)

    # ----------------------------------------------------------------- the reasons
    def missing(self) -> Iterator[tuple[Any, str]]:
        """The keys of the layers whose backward must run and did not, with the reasons.

        Such are what is checked itself, a forward that was called directly, and, if no backward ran
        at all, every layer that was applied or is named.
        """
        ways = self.calls.ways
        keys = [
            self.checked,
            *(key for key, layer in self.named.items() if layer.forward_is_named),
            *(key for key, way in ways.items() if way is Way.DIRECT),
        ]
        if not self.ran:
            keys += ways
            keys += [key for key, layer in self.named.items() if not layer.only_in_eval]
        for key in dict.fromkeys(keys):
            if key is not None and key not in self.ran:
                yield key, self.reason(key)

    def reason(self, key: Any) -> str:
        """The reason why the backward of a layer did not run."""
        way, named = self.calls.ways.get(key), self.named.get(key) or NamedLayer(key)
        is_class = inspect.isclass(named.layer)
        if way in (Way.IDLE, Way.APPLIED):
            return NO_GRADIENT_NEEDED if way is Way.IDLE else NOT_REACHED
        if is_class and self.overrides_apply(named.layer):
            return APPLY_OVERRIDDEN
        if way or named.forward_is_named or (is_class and self.inherits_direct(named.layer)):
            return FORWARD_DIRECT
        if named.is_held and not named.is_read:
            return NOT_CALLED
        return NOT_GIVEN if callable(named.layer) and not is_class else NOT_TAKEN

    def diagnosis(self, key: Any, reason: str) -> Diagnosis:
        """The diagnosis of a layer whose backward did not run, in the words of the framework."""
        words = reason.format(layer=self.backend.words.layer)
        return Diagnosis.of(CODE, f"backward of {self.name_of(key)} never ran: {words}")

    def overrides_apply(self, layer: type) -> bool:
        """Whether a class has an apply other than PyLayer's."""
        return definer(layer, "apply") is not definer(self.calls.base, "apply")

    def inherits_direct(self, layer: type) -> bool:
        """Whether a class has the forward of one whose forward was called directly."""
        return self.calls.ways.get(self.calls.key(definer(layer, "forward"))) is Way.DIRECT

    def name_of(self, key: Any) -> str:
        """The name of a layer in messages."""
        layer = self.named[key].layer if key in self.named else key
        return layer.rpartition(".")[2] if isinstance(layer, str) else str(layer.__name__)

    # ----------------------------------------------------------------- following the code
    def layer_of(self, value: Any) -> Any:
        """The layer that a value is, or whose apply it is; otherwise None."""
        return self.backend.layer_of(layer_of_arrays(value))

    def add(self, layer: Any, evaluating: bool) -> NamedLayer:
        """Note that a layer is named. One of the library's own is not kept."""
        key = self.calls.key(layer)
        if key is None:
            return NamedLayer(layer)
        named = self.named.setdefault(key, NamedLayer(layer))
        named.only_in_eval &= evaluating
        return named

    def follow_call(self, call: NamespaceCall) -> None:
        """Follow the call of a scenario; if it names one layer, that is what is checked."""
        function = FunctionType(call.code, call.namespace)
        values = [value for _, value in references_of_function(function)]
        layers = [layer for value in values if (layer := self.layer_of(value)) is not None]
        for value in values:
            self.follow(value, False)
        backward_fn = call.namespace.get("backward_fn")
        if callable(backward_fn) and "forward_fn" in call.namespace:
            self.add(backward_fn, False)
            layers = [backward_fn]
        if len(layers) == 1:
            self.checked = self.calls.key(layers[0])

    def follow(self, value: Any, evaluating: bool) -> None:
        """Follow a value that code names."""
        if (id(value), evaluating, 0) in self.seen:
            return
        self.seen[id(value), evaluating, 0] = value
        layer = self.layer_of(value)
        if layer is not None:
            self.add(layer, evaluating).is_read = True
        elif callable(value) and foreign_framework(value, self.backend.packages) is not None:
            self.foreign.append(value)
        elif isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.follow(part, evaluating)
        elif isinstance(value, FunctionType):
            self.follow_code(value, None, evaluating)
        elif isinstance(value, MethodType):
            self.follow_code(value.__func__, value.__self__, evaluating)
        elif isinstance(value, self.backend.module_type):
            self.follow_module(value, evaluating or not value.training)
        elif not inspect.isclass(value):
            self.follow_object(value, evaluating)

    def follow_object(self, value: Any, evaluating: bool) -> None:
        """Follow what calling an object runs: the function that a decorator of the framework was
        put on, or its ``__call__``."""
        if package_of(type(value)) in self.backend.packages and hasattr(value, "__wrapped__"):
            self.follow(value.__wrapped__, evaluating)
            return
        call = inspect.getattr_static(type(value), "__call__", None)
        self.follow_code(call, value, evaluating)

    def follow_module(self, module: Any, evaluating: bool) -> None:
        """Follow the forward and attributes of a module, or what a container contains."""
        for value in vars(module).values():
            if (layer := self.layer_of(value)) is not None:
                self.add(layer, evaluating).is_held = True
        forward = getattr(module.forward, "__func__", module.forward)
        if is_users_function(forward):
            self.follow_code(forward, module, evaluating)
            return
        for contained in getattr(module, self.backend.submodules, {}).values():
            self.follow(contained, evaluating)

    def follow_code(self, function: Any, owner: Any, evaluating: bool) -> None:
        """Follow what the code of a function reads; `owner` is the object whose method it is."""
        place = id(function), evaluating, id(owner)
        if place in self.seen or not is_users_function(function):
            return
        self.seen[place] = function
        self.note_forward(function)
        attributes = names_in(function.__code__).attributes
        for _, value in references_of_function(function):
            self.follow(value, evaluating)
            if isinstance(value, ModuleType) and not is_closed(value.__name__):
                for member in self.members_of(value, attributes):
                    self.follow(member, evaluating)
        for member in self.members_of(owner, attributes):
            if isinstance(member, FunctionType):
                self.follow_code(member, owner, evaluating)
            else:
                self.follow(member, evaluating)

    def note_forward(self, function: FunctionType) -> None:
        """Note the forward of a layer that code names: it runs outside of apply."""
        if function.__name__ == "forward":
            for layer in subclasses(self.calls.base):
                if getattr(vars(layer).get("forward"), "__func__", None) is function:
                    self.add(layer, True).forward_is_named = True

    def members_of(self, owner: Any, names: set[str]) -> Iterator[Any]:
        """The attributes of an object, or of its class, with these names; methods as functions.

        Nothing of it runs.
        """
        held = {**getattr(owner, self.backend.submodules, {}), **getattr(owner, "__dict__", {})}
        for name in names:
            value = held.get(name, inspect.getattr_static(type(owner), name, None))
            value = getattr(value, "fget", value) if isinstance(value, property) else value
            yield value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


def is_users_function(value: Any) -> bool:
    """Whether a value is a function of a package that may know of the user's layers."""
    return isinstance(value, FunctionType) and not is_closed(package_of(value))


def is_closed(name: str) -> bool:
    """Whether a module is of a package that knows nothing of the user's layers."""
    package = name.partition(".")[0]
    return package in CLOSED or package == "gradcheck" or is_installed(package)
