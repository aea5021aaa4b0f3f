"""Whether the hand-written backwards of what is checked ran: a backward that did not run is never green (V28)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from gradcheck.backends.base import package_of
from gradcheck.case.foreign_frameworks import framework_of, refuse_layer
from gradcheck.case.function import NamespaceCall, TensorFunction
from gradcheck.case.layer_calls import LAYER_LIBRARIES, LayerCalls, Way, subclasses
from gradcheck.case.names_in_code import CLOSED, cell_is_set, is_installed, variables_and_attributes
from gradcheck.result import Diagnosis, GradientSummary, Status

CODE = "GC125"
APPLY_OVERRIDDEN = "its apply is overridden, and does not call PyLayer's apply"
FORWARD_DIRECT = "its forward was called directly, not through apply"
NO_GRADIENT_NEEDED = "none of its inputs needs a gradient"
NOT_REACHED = "no gradient reaches its outputs (detached, computed under no_grad, or not used)"
NOT_TAKEN = "another branch was taken"
NOT_CALLED = "its module holds it, and does not call it"
NOT_GIVEN = "it was not handed to static_pylayer"
CERTAIN = (APPLY_OVERRIDDEN, FORWARD_DIRECT)
"""Reasons that also explain a gradient that is wrong, or that there is none."""


def with_backwards_that_ran(function: TensorFunction, summary: GradientSummary) -> GradientSummary:
    """The summary of a check: not green if a backward that must run did not, marked if none ran that need not."""
    calls = function.layer_calls()
    subject = Subject(function, calls)
    ran = calls.ran()
    if summary.verdict is not Status.FAIL:
        subject.refuse_foreign()
    missing = {
        subject.name_of(key): reason
        for key, reason in subject.missing(ran).items()
        if is_grave(reason, summary.verdict)
    }
    if missing:
        return never_ran(missing, summary)
    if summary.verdict not in (Status.PASS, Status.KINK):
        return summary
    silent = {key: subject.named[key] for key in subject.named if key not in ran}
    if silent:
        names = " and ".join(sorted(map(subject.name_of, silent)))
        mark = f"backward of {names} did not run{': eval mode' if all(silent.values()) else ''}"
    elif not ran and function.expects_backward and not subject.is_of_library:
        rules = "the engine's" if function.backend.records else "Paddle's"
        mark = f"no hand-written backward: {rules} own rules were checked"
    else:
        return summary
    return summary.model_copy(update={"marks": (*summary.marks, mark)})


def refuse_foreign_layers(function: TensorFunction) -> None:
    """See that the code of what is checked names no layer of another framework, if none of the user's backwards ran.

    Raises:
        ForeignFrameworkError: it does.
    """
    Subject(function, function.layer_calls()).refuse_foreign()


def is_grave(reason: str, verdict: Status) -> bool:
    """Whether a backward that did not run for this reason changes what is reported."""
    return reason in CERTAIN or verdict in (Status.PASS, Status.KINK)


def never_ran(missing: dict[str, str], summary: GradientSummary) -> GradientSummary:
    """The summary with the reasons why backwards did not run. A FAIL stays one: they are its first cause."""
    causes = [
        Diagnosis.of(CODE, f"backward of {name} never ran: {why}") for name, why in missing.items()
    ]
    diagnosis = (*causes, *summary.diagnosis)
    if summary.verdict is Status.FAIL:
        return summary.model_copy(update={"diagnosis": diagnosis})
    why = "; ".join(cause.text for cause in causes)
    return summary.model_copy(
        update={
            "verdict": Status.INCONCLUSIVE,
            "why": why,
            "diagnosis": diagnosis,
            "certified": False,
        }
    )


class Subject:
    """The layers that a call is meant to use, as far as its code shows.

    The code is followed from what is checked along the global names, closures and attributes that it reads: a layer
    that is picked from a dict or a list, as from a table of activations, need not be used.
    """

    def __init__(self, function: TensorFunction, calls: LayerCalls) -> None:
        self.calls = calls
        self.module_type: Any = function.backend.paddle.nn.Layer
        self.given: Any = None
        """The key of the layer that is itself what is checked."""
        self.named: dict[Any, bool] = {}
        """By key, whether only modules in eval mode name the layer."""
        self.classes: dict[Any, Any] = {}
        """By key, the class that is named: it may inherit its backward."""
        self.held: set[Any] = set()
        """The layers that a module has as an attribute."""
        self.read: set[Any] = set()
        """The layers that code reads."""
        self.is_of_library = False
        """Whether what is checked is an operation or a layer of the library itself."""
        self.aliased: set[Any] = set()
        """The layers whose forward has another name."""
        self.foreign: list[Any] = []
        """Layers of other frameworks."""
        self.seen: dict[tuple[int, bool, int], Any] = {}
        with suppress(Exception):  # objects of the user's may raise at whatever they are asked
            self.start(function.subject)

    def start(self, subject: Any) -> None:
        """Follow what is checked."""
        calls = self.calls
        if isinstance(subject, NamespaceCall):
            self.follow_call(subject)
        elif (layer := self.layer_of(subject)) is not None:
            self.add(layer, False)
            self.given = calls.key(layer)
            self.is_of_library = self.given is None
        else:
            self.is_of_library = (
                isinstance(subject, FunctionType) and package_of(subject) in LAYER_LIBRARIES
            )
            self.follow(subject, False)

    def refuse_foreign(self) -> None:
        """As `refuse_foreign_layers`."""
        if self.foreign and not self.calls.ran():
            refuse_layer(self.foreign[0])

    # ----------------------------------------------------------------- the reasons
    def missing(self, ran: set[Any]) -> dict[Any, str]:
        """The layers whose backward must run and did not, with the reasons.

        That is what is checked itself, a forward that was called directly, and, if no backward ran at all, every layer
        that was applied or is named.
        """
        ways = self.calls.ways
        certain = [*([self.given] if self.given is not None else []), *self.aliased]
        certain += [key for key, way in ways.items() if way is Way.DIRECT]
        others = (
            []
            if ran
            else [*ways, *(key for key, evaluating in self.named.items() if not evaluating)]
        )
        keys = [key for key in dict.fromkeys([*certain, *others]) if key not in ran]
        return {key: self.reason(key) for key in keys}

    def reason(self, key: Any) -> str:
        """The reason why the backward of a layer did not run."""
        way, layer = self.calls.ways.get(key), self.classes.get(key, key)
        is_class = inspect.isclass(layer)
        if way in (None, Way.DIRECT) and is_class and self.overrides_apply(layer):
            return APPLY_OVERRIDDEN
        if way is Way.DIRECT or (
            way is None and (key in self.aliased or (is_class and self.inherits_direct(layer)))
        ):
            return FORWARD_DIRECT
        if way is not None:
            return NO_GRADIENT_NEEDED if way is Way.IDLE else NOT_REACHED
        if key in self.held - self.read:
            return NOT_CALLED
        return NOT_TAKEN if is_class or isinstance(key, str) else NOT_GIVEN

    def overrides_apply(self, layer: type) -> bool:
        """Whether a class has an apply other than PyLayer's."""
        return inspect.getattr_static(layer, "apply") is not inspect.getattr_static(
            self.calls.base, "apply"
        )

    def inherits_direct(self, layer: type) -> bool:
        """Whether a class inherits a forward that was called directly."""
        definer = next((cls for cls in layer.__mro__[1:] if "forward" in vars(cls)), None)
        is_inherited = definer is not None and "forward" not in vars(layer)
        return is_inherited and self.calls.ways.get(self.calls.key(definer)) is Way.DIRECT

    def name_of(self, key: Any) -> str:
        """The name of a layer in messages."""
        layer = self.classes.get(key, key)
        return layer.rpartition(".")[2] if isinstance(layer, str) else str(layer.__name__)

    # ----------------------------------------------------------------- following the code
    def layer_of(self, value: Any) -> Any:
        """The layer that a value is, or whose apply it is; None for anything else."""
        if isinstance(value, (MethodType, BuiltinFunctionType)) and value.__name__ == "apply":
            value = value.__self__
        return value if inspect.isclass(value) and issubclass(value, self.calls.base) else None

    def add(self, layer: Any, evaluating: bool) -> None:
        """Note that a layer is named."""
        key = self.calls.key(layer)
        if key is not None:
            self.named[key] = self.named.get(key, True) and evaluating
            self.classes[key] = layer

    def follow_call(self, call: NamespaceCall) -> None:
        """Follow the call of a scenario; if it names one layer by itself, that is what is checked."""
        values = [call.namespace[name] for name in read_names(call) if name in call.namespace]
        layers = [layer for value in values if (layer := self.layer_of(value)) is not None]
        for value in values:
            self.follow(value, False)
        backward_fn = call.namespace.get("backward_fn")
        if callable(backward_fn) and "forward_fn" in call.namespace:
            self.add(backward_fn, False)
            layers = [backward_fn]
        if len(layers) == 1:
            self.given = self.calls.key(layers[0])

    def follow(self, value: Any, evaluating: bool) -> None:
        """Follow a value that code names."""
        if (id(value), evaluating, 0) in self.seen:
            return
        self.seen[id(value), evaluating, 0] = value
        layer = self.layer_of(value)
        if layer is None and callable(value) and framework_of(value) is not None:
            self.foreign.append(value)
        elif layer is not None:
            self.add(layer, evaluating)
            self.read.add(self.calls.key(layer))
        elif isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.follow(part, evaluating)
        elif isinstance(value, FunctionType):
            self.follow_code(value, None, evaluating)
        elif isinstance(value, MethodType):
            self.follow_code(value.__func__, value.__self__, evaluating)
        elif isinstance(value, self.module_type):
            self.follow_module(value, evaluating or not value.training)
        elif not inspect.isclass(value):
            self.follow_code(
                inspect.getattr_static(type(value), "__call__", None), value, evaluating
            )

    def follow_module(self, module: Any, evaluating: bool) -> None:
        """Follow the forward of an ``nn.Layer``, and its attributes; of a container, what it contains."""
        for value in vars(module).values():
            if (layer := self.layer_of(value)) is not None:
                self.add(layer, evaluating)
                self.held.add(self.calls.key(layer))
        forward = getattr(module.forward, "__func__", module.forward)
        if isinstance(forward, FunctionType) and not is_library(forward):
            self.follow_code(forward, module, evaluating)
            return
        for contained in module._sub_layers.values():
            self.follow(contained, evaluating)

    def follow_code(self, function: Any, owner: Any, evaluating: bool) -> None:
        """Follow what the code of a function reads; `owner` is the object whose method it is."""
        if not isinstance(function, FunctionType) or is_library(function):
            return
        if (id(function), evaluating, id(owner)) in self.seen:
            return
        self.seen[id(function), evaluating, id(owner)] = function
        self.note_forward(function)
        variables, attributes = variables_and_attributes(function.__code__)
        read = [function.__globals__[name] for name in variables if name in function.__globals__]
        read += [cell.cell_contents for cell in function.__closure__ or () if cell_is_set(cell)]
        read += function.__defaults__ or ()
        for value in read:
            members = (
                vars(value)
                if isinstance(value, ModuleType) and not is_closed(value.__name__)
                else {}
            )
            for part in (value, *(members[name] for name in attributes if name in members)):
                self.follow(part, evaluating)
        for value in members_of(owner, attributes):
            if isinstance(value, FunctionType):
                self.follow_code(value, owner, evaluating)
            else:
                self.follow(value, evaluating)

    def note_forward(self, function: FunctionType) -> None:
        """Note it if a function that code names is the forward of a layer, which then runs outside of apply."""
        if function.__name__ == "forward":
            for layer in subclasses(self.calls.base):
                if getattr(vars(layer).get("forward"), "__func__", None) is function:
                    self.aliased |= {self.calls.key(layer)} - {None}


def read_names(call: NamespaceCall) -> Iterator[str]:
    """The names that the call of a scenario reads."""
    variables, _ = variables_and_attributes(call.code)
    yield from sorted(variables)


def members_of(owner: Any, names: set[str]) -> Iterator[Any]:
    """The attributes of an object, or of its class, with these names; methods as functions. Nothing of it runs."""
    if owner is None:
        return
    held = {**getattr(owner, "_sub_layers", {}), **getattr(owner, "__dict__", {})}
    for name in names:
        value = held.get(name, inspect.getattr_static(type(owner), name, None))
        value = getattr(value, "fget", value) if isinstance(value, property) else value
        yield value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


def is_library(function: FunctionType) -> bool:
    """Whether a function belongs to a package that knows nothing of the user's layers."""
    return is_closed(package_of(function))


def is_closed(name: str) -> bool:
    """Whether a module is of a package that knows nothing of the user's layers."""
    package = name.partition(".")[0]
    return package in CLOSED or package == "gradcheck" or is_installed(package)
