"""The check that hand-written backwards ran: if one did not, the result is never PASS (V28)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any

from gradcheck.backends.base import package_of
from gradcheck.case.foreign_frameworks import foreign_framework, refuse_layer
from gradcheck.case.function import NamespaceCall, TensorFunction
from gradcheck.case.layer_calls import Way, definer, subclasses
from gradcheck.case.of_arrays import layer_of_arrays
from gradcheck.case.reachable import code_of_call, reads, references_of_function, traverse
from gradcheck.result import GREEN, Diagnosis, GradientSummary, Status

CODE = "GC125"
APPLY_OVERRIDDEN = "its apply is overridden and does not call {layer}'s apply"
FORWARD_DIRECT = "its forward was called directly, not through apply"
NO_GRADIENT_NEEDED = "none of its inputs needs a gradient"
NOT_REACHED = "no gradient reaches its outputs (detached, computed under no_grad, or not used)"
NOT_TAKEN = "another branch was taken"
NOT_CALLED = "its module holds it but does not call it"
NOT_GIVEN = "it was not passed to static_pylayer"
CERTAIN = (APPLY_OVERRIDDEN, FORWARD_DIRECT)
"""Reasons that also explain a wrong or missing gradient."""


def with_backwards_that_ran(function: TensorFunction, summary: GradientSummary) -> GradientSummary:
    """The summary of a check, changed from PASS if a backward that must run did not run, and marked
    if no hand-written backward ran and none needed to.
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
    silent = subject.layers.keys() - subject.ran
    if silent:
        names = " and ".join(sorted(map(subject.name_of, silent)))
        is_eval = silent.isdisjoint(subject.in_training)
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
    """Add the backwards that never ran to a summary. A FAIL stays a FAIL, with these as its first
    cause.
    """
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


class Subject:
    """The layers that a call refers to in its code; see `reads`."""

    def __init__(self, function: TensorFunction) -> None:
        self.calls = function.layer_calls()
        self.ran = self.calls.ran()
        """The keys of the layers whose backward ran."""
        self.backend, subject = function.backend, function.subject
        self.home = package_of(subject)
        self.layers: dict[Any, Any] = {}
        """The layers that code reads or modules hold, by key, as the classes that are named: a
        class may inherit its backward.
        """
        self.read_keys = set[Any]()
        """The keys of the layers that code reads."""
        self.of_forwards: list[Any] = []
        """The keys of layers whose forward has another name, by which it runs outside of apply."""
        self.in_eval_mode: list[Any] = []
        """Modules in eval mode."""
        self.in_training: list[Any] = []
        """The keys of the layers that are named by code outside of modules in eval mode."""
        self.foreign: list[Any] = []
        """Layers of other frameworks."""
        self.subject_key: Any = None
        """The key of the layer, if the checked object is itself a layer."""
        is_function = isinstance(subject, FunctionType)
        self.is_of_library = is_function and self.home in self.calls.libraries
        """Whether the checked object is an operation or a layer of the library itself."""
        with suppress(Exception):  # a user's object may raise at any access
            self.follow(subject)

    def follow(self, subject: Any) -> None:
        """Collect the layers that the checked object names; if it names none, the object itself
        counts.

        A scenario names the objects that its call reads, and the ``backward_fn`` of a static layer.
        """
        start = [subject]
        if isinstance(subject, NamespaceCall):
            function = FunctionType(subject.code, subject.namespace)
            start = [value for _, value in references_of_function(function)]
        layers = [layer for layer in map(self.layer_of, start) if layer is not None]
        namespace = getattr(subject, "namespace", {})
        if "forward_fn" in namespace and callable(namespace.get("backward_fn")):
            layers = [namespace["backward_fn"]]
            self.read_keys.add(self.add(layers[0]))
        if len(layers) == 1:
            self.subject_key = self.calls.key(layers[0])
            self.is_of_library |= self.subject_key is None
        traverse(start, self.follow_training)
        self.in_training = [*self.layers]
        traverse(self.in_eval_mode, self.follow_value)

    def refuse_foreign(self) -> None:
        """Raise ForeignFrameworkError for a foreign layer; see `refuse_foreign_layers`."""
        if self.foreign and not self.ran:
            refuse_layer(self.foreign[0], self.backend.packages)

    # ----------------------------------------------------------------- the reasons
    def missing(self) -> Iterator[tuple[Any, str]]:
        """The keys of the layers whose backward must run and did not, with the reasons.

        A backward must run for the checked object itself, for a forward that was called directly,
        and, if no backward ran at all, for every layer that was applied or is named.
        """
        ways = self.calls.ways
        direct = [key for key, way in ways.items() if way is Way.DIRECT]
        keys = [self.subject_key, *self.of_forwards, *direct]
        if not self.ran:
            keys += [*ways, *self.in_training]
        for key in dict.fromkeys(keys):
            if key is not None and key not in self.ran:
                yield key, self.reason(key)

    def reason(self, key: Any) -> str:
        """The reason why the backward of a layer did not run."""
        way, layer = self.calls.ways.get(key), self.layers.get(key, key)
        is_class = inspect.isclass(layer)
        if way in (Way.IDLE, Way.APPLIED):
            return NO_GRADIENT_NEEDED if way is Way.IDLE else NOT_REACHED
        if is_class and self.overrides_apply(layer):
            return APPLY_OVERRIDDEN
        if way or key in self.of_forwards or (is_class and self.inherits_direct(layer)):
            return FORWARD_DIRECT
        if key in self.layers and key not in self.read_keys:
            return NOT_CALLED
        return NOT_GIVEN if callable(layer) and not is_class else NOT_TAKEN

    def diagnosis(self, key: Any, reason: str) -> Diagnosis:
        """The diagnosis of a layer whose backward did not run, in the framework's terms."""
        words = reason.format(layer=self.backend.words.layer)
        return Diagnosis.of(CODE, f"backward of {self.name_of(key)} never ran: {words}")

    def overrides_apply(self, layer: type) -> bool:
        """Whether a class has an apply other than PyLayer's."""
        return definer(layer, "apply") is not definer(self.calls.base, "apply")

    def inherits_direct(self, layer: type) -> bool:
        """Whether a class shares its forward with one whose forward was called directly."""
        return self.calls.ways.get(self.calls.key(definer(layer, "forward"))) is Way.DIRECT

    def name_of(self, key: Any) -> str:
        """The name of a layer in messages."""
        layer = self.layers.get(key, key)
        return layer.rpartition(".")[2] if isinstance(layer, str) else str(layer.__name__)

    # ----------------------------------------------------------------- following the code
    def layer_of(self, value: Any) -> Any:
        """The layer, given the layer or its ``apply``; None for any other value."""
        return self.backend.layer_of(layer_of_arrays(value))

    def add(self, layer: Any) -> Any:
        """Record that a layer is named, and return its key. The library's own layers are
        ignored.
        """
        key = self.calls.key(layer)
        if key is not None:
            self.layers.setdefault(key, layer)
        return key

    def follow_training(self, value: Any) -> Iterable[Any]:
        """Like `follow_value`, but modules in eval mode are kept for later."""
        if isinstance(value, self.backend.module_type) and not value.training:
            self.in_eval_mode.append(value)
            return ()
        return self.follow_value(value)

    def follow_value(self, value: Any) -> Iterable[Any]:
        """Record a value that code names, if it is a layer or holds layers; return the values that
        it reads.
        """
        layer = self.layer_of(value)
        if layer is not None:
            self.read_keys.add(self.add(layer))
            return ()
        if callable(value) and foreign_framework(value, self.backend.packages) is not None:
            self.foreign.append(value)
            return ()
        if isinstance(value, self.backend.module_type):
            for member in filter(None, map(self.layer_of, vars(value).values())):
                self.add(member)
        elif isinstance(value, (FunctionType, MethodType)) and value.__name__ == "forward":
            self.note_forward(code_of_call(value, self.backend)[0])
        return reads(value, self.backend, self.home)

    def note_forward(self, function: Any) -> None:
        """Record the forward of a layer that code names: it runs outside of apply."""
        for layer in subclasses(self.calls.base):
            if getattr(vars(layer).get("forward"), "__func__", None) is function:
                self.of_forwards.append(self.add(layer))
