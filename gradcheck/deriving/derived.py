"""Deriving the backward of a layer or function, as code that has passed gradcheck itself."""

from __future__ import annotations

import functools
import inspect
import linecache
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

import numpy as np

from gradcheck.deriving.call import (
    CHECKED_DTYPES,
    AppliedCall,
    CallWorld,
    LayerCall,
    is_array,
    is_layer_class,
    raw_array,
)
from gradcheck.deriving.graph import NotDerived
from gradcheck.deriving.repair import Repair
from gradcheck.deriving.source import SourceText, source_of_file
from gradcheck.deriving.trace import Trace, trace
from gradcheck.deriving.writing import (
    Written,
    WrittenBackward,
    imports_for,
    print_backward,
    write_function,
    write_layer,
    write_pair,
    write_static,
)
from gradcheck.result import Status
from gradcheck.support.display_paths import shown_path
from gradcheck.support.foreign import describe_error

GradientCheck = Callable[..., Any]
"""The type of `gradcheck.check`, which this package cannot import."""

CHECKED_SIZES = 2
"""The number of sizes at which a derived backward is checked, in addition to the given ones."""
MOST_RUNS_ALONE = 2_000
"""The most runs of backward in a search if only a fix is requested."""
numbers = count(1)


@dataclass(frozen=True)
class Derived:
    """The result of `gradcheck.derive`. It is true if a backward was derived and passed."""

    name: str
    code: str = ""
    """The class, with the imports that it needs in a separate module."""
    backward: str = ""
    """The lines of its backward."""
    diff: str = ""
    """The change of the user's file: a single edit that repairs backward, if there is one,
    otherwise the whole backward. Empty for a function, and if backward is right.
    """
    checked_at: tuple[str, ...] = ()
    """The shapes and dtypes at which gradcheck passed the code: ``x=3x4, w=4 in float64``."""
    refused: str = ""
    """The reason why no code was derived; otherwise empty."""
    source: SourceText | None = field(default=None, repr=False, compare=False)
    """The user's file."""
    changed: str = field(default="", repr=False, compare=False)
    """The text of the file with the change."""

    def __bool__(self) -> bool:
        return not self.refused

    def __str__(self) -> str:
        return self.code or f"no backward of {self.name} was derived: {self.refused}"


def derive_checked(
    applied: AppliedCall,
    check: GradientCheck,
    name: str = "",
    order: int = 1,
    world: CallWorld | None = None,
) -> Derived:
    """Derive the backward of a layer's forward, or of a function, and check it.

    Args:
        applied: the layer or function, its positional arguments, and its keyword arguments.
        check: `gradcheck.check`.
        name: of the class for a function, or of the backward for one of arrays; made of the
            function's name if it is empty.
        order: 2 to save only inputs, and to check the double backward.
        world: the ranks that call the layer together, each with its own arguments.
    """
    subject, args, kwargs = applied
    checked = functools.partial(check, order=order, effort="least")
    try:
        call = LayerCall.of(subject, args, kwargs)
        if world is not None:
            call = call.in_world(world)
    except NotDerived as refusal:
        return Derived(name or class_name(subject), refused=str(refusal))
    try:
        call, traced = traced_call(call, args, kwargs)
        derived = derived_of(traced, checked, name, inputs_only=order == 2)
    except NotDerived as refusal:
        derived = Derived(name or class_name(subject), refused=str(refusal))
    return derived if call.written_backward is None else with_change(derived, call, checked)


def with_change(derived: Derived, call: LayerCall, check: GradientCheck) -> Derived:
    """A result with the change to the user's backward: none if it is right, a single edit if one
    repairs it.
    """
    written = candidate_with(call, call.written_backward)
    if is_passed(written, call, CHECKED_DTYPES[0], check):
        return replace(derived, diff="", changed="")
    if call.world is not None or not call.runs():  # edits are searched for only on a single rank
        return derived

    def passes(backward: Any) -> bool:
        candidate = candidate_with(call, backward)
        return all(is_passed(candidate, call, dtype, check) for dtype in CHECKED_DTYPES)

    try:
        fix = Repair(call, call.written_backward, passes).fix(MOST_RUNS_ALONE)
        if fix is None:
            return derived
        source = source_of_file(fix.path)
    except NotDerived:
        return derived
    changed = source.with_fix(fix)
    return replace(derived, diff=source.diff(changed), source=source, changed=changed)


def candidate_with(call: LayerCall, backward: Any) -> Any:
    """The candidate for a check: the layer with another backward; if static, only the backward."""
    if call.static is not None:
        return backward
    layer = call.subject if call.played is None else call.played.layer
    return type(layer.__name__, (layer,), {"backward": staticmethod(backward)})


def is_passed(layer: Any, call: LayerCall, dtype: str, check: GradientCheck) -> bool:
    """Whether gradcheck passes a layer at some arguments."""
    try:
        require_pass(layer, call, dtype, check)
    except NotDerived:
        return False
    return True


def class_name(subject: Any) -> str:
    """The name of the class for a layer or function."""
    name = getattr(subject, "__name__", type(subject).__name__)
    if is_layer_class(subject):
        return str(name)
    words = [word for word in name.strip("<>").split("_") if word]
    return "".join(word[0].upper() + word[1:] for word in words) or "Layer"


def derived_of(traced: Trace, check: GradientCheck, name: str, inputs_only: bool) -> Derived:
    """The derived backward of a traced call. Raises NotDerived: no candidate passes."""
    call = traced.call
    name = name or (
        f"{call.subject.__name__}_grad" if call.takes_arrays else class_name(call.subject)
    )
    if all(node is None for node in traced.gradients.values()):
        raise NotDerived("no input takes a gradient")
    backward = print_backward(traced, inputs_only)
    written = write_class(call, traced, name, backward)
    points = [call, *islice(filter(LayerCall.runs, call.others()), CHECKED_SIZES)]
    points += call.in_other_world()
    if len(points) == 1:
        raise NotDerived("forward does not run at other sizes, so the code cannot be checked")
    candidate = execute_code(written, call, name)
    places = []
    for point in points:
        for dtype in CHECKED_DTYPES:
            require_pass(candidate, point, dtype, check)
            places.append(f"{point.shapes()} in {dtype}")
    backward.guards = guards_of(candidate, call, check)
    if backward.guards:
        written = write_class(call, traced, name, backward)
        require_pass(execute_code(written, call, name), call, CHECKED_DTYPES[0], check)
    code = f"{imports_for(written.code, call.written_forward)}\n\n{written.code}"
    derived = Derived(name, code, "\n".join(backward.lines), checked_at=tuple(places))
    if call.static is not None:
        derived = replace(derived, code=written.code)
    elif not call.is_layer:
        return derived
    source, changed = written.source, written.changed
    return replace(derived, diff=source.diff(changed), source=source, changed=changed)


def traced_call(
    call: LayerCall, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[LayerCall, Trace]:
    """A call with its trace, over Tensors, or over arrays if the function takes only arrays.

    Raises NotDerived: forward cannot be traced.
    """
    try:
        return call, trace(call)
    except NotDerived:
        raise
    except Exception as error:
        of_arrays = LayerCall.of(call.subject, args, kwargs, takes_arrays=True)
        with suppress(Exception):
            if not call.is_layer:
                return of_arrays, trace(of_arrays)
        calls = [call] if call.is_layer else [call, of_arrays]
        raise NotDerived(why_not_traced(calls, error)) from None


def why_not_traced(calls: Sequence[LayerCall], error: Exception) -> str:
    """The reason why forward cannot be traced: the error of the first of its calls, with the line,
    if all fail without being traced as well.
    """
    errors = []
    for call in calls:
        try:
            call.run_on_ranks()
        except Exception as own_error:
            errors.append(own_error)
    if len(errors) < len(calls):
        return f"forward cannot be traced: {describe_error(error)}"
    call, raised = calls[0], errors[0]
    file = inspect.getsourcefile(inspect.unwrap(call.written_forward)) or ""
    steps = traceback.extract_tb(raised.__traceback__)
    lines = [step.lineno for step in steps if step.filename == file]
    place = f" (line {lines[-1]} of {shown_path(file)})" if lines else ""
    return f"forward fails at {call.shapes() or 'its arguments'}: {describe_error(raised)}{place}"


def write_class(call: LayerCall, traced: Trace, name: str, backward: WrittenBackward) -> Written:
    """The class of a derived backward."""
    if call.is_layer:
        return write_layer(traced, call.subject, backward)
    if call.static is not None:
        return write_static(traced, backward)
    if call.takes_arrays:
        return write_pair(traced, name, backward)
    return write_function(traced, name, backward)


def execute_code(written: Written, call: LayerCall, name: str) -> Any:
    """The class that some code defines, in the scope of the user's function."""
    import pylayer.paddle as paddle

    file = f"<derived {name} {next(numbers)}>"
    linecache.cache[file] = (len(written.code), None, written.code.splitlines(True), file)
    libraries = {"paddle": paddle, "PyLayer": paddle.autograd.PyLayer, "np": np}
    if call.played is not None:
        libraries |= call.played.names.modules
    scope = {**libraries, **call.written_forward.__globals__}
    exec(compile(written.code, file, "exec"), scope)
    return scope[name]


def require_pass(candidate: Any, call: LayerCall, dtype: str, check: GradientCheck) -> None:
    """Raise NotDerived: gradcheck does not pass a layer at some arguments."""
    args = call.for_ranks(call.in_dtype(dtype))
    in_world = (
        {} if call.world is None else {"world": call.world.size, "outputs": call.world.outputs}
    )
    if call.played is not None:
        args = tuple(raw_array(value) if is_array(value) else value for value in args)
    try:
        if call.static is not None:
            result = check(candidate, *args)
        elif call.takes_arrays:
            pair = (
                functools.partial(function, **call.kwargs) for function in (call.subject, candidate)
            )
            result = check(next(pair), *args, backward=next(pair))
        else:
            applied = functools.partial(candidate.apply, **call.kwargs)
            result = check(applied if call.played is None else candidate, *args, **in_world)
    except Exception as error:
        problem = describe_error(error)
    else:
        if result.verdict in (Status.PASS, Status.KINK):
            return
        problem = f"{result.verdict}, {result.summary()}"
    raise NotDerived(f"the derived code did not pass at {call.shapes()} in {dtype}: {problem}")


def guards_of(candidate: Any, call: LayerCall, check: GradientCheck) -> dict[str, Any]:
    """The options for which a derived backward is right only with the given value, because the
    trace took the branch that the option selects.
    """
    options = call.named
    guards = {name: value for name, value in options.items() if isinstance(value, str)}
    for name, changed in call.with_other_options().items():
        running = filter(LayerCall.runs, changed)
        if not all(is_passed(candidate, other, CHECKED_DTYPES[0], check) for other in running):
            guards[name] = options[name]
    return guards
