"""Interception of torch operations as they run: perturbed, with casts left out, or replayed on
the engine.

A dispatch mode below autograd sees every aten operation of this thread: in forward and backward,
under `no_grad`, and inside custom Functions. It is active while the user's code runs, if there is
an observer of the engine or casts are left out; plain runs do not use it. Results are changed in
place, through the memory that NumPy shares with torch. While a call is recorded, *shadows* (see
`gradcheck.backends.played`) represent all tensors that depend on the inputs, even if several
tensors share memory and code writes into it.

Values that leave torch (``.item()``, ``.numpy()``), and operations outside of aten that are not
written in Python, are leaks: only differences check the values computed from them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import torch

from gradcheck.backends.aten import counterpart_of, select_places, write_places
from gradcheck.backends.base import (
    Array,
    Cotangents,
    InputGradients,
    Recordable,
    RecordableCall,
    flat_tensors,
)
from gradcheck.backends.played import (
    Counterpart,
    Unplayed,
    is_equal,
    overwrite,
    play,
    record_foreign,
    shadow_of,
)
from gradcheck.backends.recording import Recording
from gradcheck.backends.torch_private import (
    Patch,
    TorchDispatchMode,
    is_zero_tensor,
    plain_tensor,
    python_code_of,
    run_backward,
    storage_of,
    without_transforms,
)
from pylayer.tape.node import parent_of
from pylayer.tape.symbol import is_of_a_program
from pylayer.tensor.tensor import Tensor as Shadow
from pylayer.watch import NOBODY, Observer, watchers
from pylayer.watch.casts import casts

TAKES_OUT = ("numpy", "tolist", "__array__", "data_ptr")
"""Methods of tensors that pass values to unobserved code."""
RAW_NUMPY = torch.Tensor.numpy
"""The original method of torch, also while a watched call replaces it."""


# ------------------------------ values
def array_of(tensor: Any) -> Array:
    """The values of a tensor: in its own memory where that is possible."""
    try:
        return RAW_NUMPY(tensor, force=True)
    except (TypeError, RuntimeError):  # it is sparse, of bfloat16, or wrapped by `torch.func`
        with without_transforms():
            return plain_values(plain_tensor(tensor).detach())


def plain_values(tensor: Any) -> Array:
    """The values of a tensor of any layout and dtype that is not wrapped."""
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype is not torch.bfloat16:
        return RAW_NUMPY(tensor, force=True)
    if is_zero_tensor(tensor):
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    return RAW_NUMPY(tensor.view(torch.uint16), force=True).view(ml_dtypes.bfloat16)


def tensor_of(array: Array, dtype: str | None = None) -> Any:
    """A tensor with a copy of an array."""
    array = np.array(array)
    if array.dtype == ml_dtypes.bfloat16:
        tensor = torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(array)
    return tensor if dtype is None else tensor.to(getattr(torch, dtype))


def is_floating_tensor(value: Any) -> bool:
    """Whether a value is a tensor that can have a gradient."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def as_double(tensor: Any) -> Any:
    """A new tensor with the values of another, in double precision if it is floating."""
    if not is_floating_tensor(tensor):
        return tensor.clone()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64, copy=True)


def name_of_dtype(dtype: Any) -> str:
    """The name of a dtype of torch, which is NumPy's too."""
    return str(dtype).removeprefix("torch.")


def tensors_among(values: Sequence[Any]) -> list[Any]:
    """The tensors among values, at any depth of lists."""
    return flat_tensors(values, torch.is_tensor)


def map_items(value: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to a value, or to each value in nested lists."""
    if isinstance(value, (list, tuple)):
        return [map_items(item, function) for item in value]
    return function(value)


# ------------------------------ the operations of torch
class Operation:
    """An operation as its schema describes it.

    Args:
        func: the overload, as a dispatch mode is given it.
    """

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.func = func
        self.name: str = schema.name.partition("::")[2]
        self.defaults = {a.name: a.default_value for a in schema.arguments}
        self.by_name = [a.name for a in schema.arguments if a.kwarg_only]
        self.writes = [
            k
            for k, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        self.outs = {k for k in self.writes if schema.arguments[k].kwarg_only}
        """The arguments that are only written into."""
        self.is_view = not self.writes and any(r.alias_info is not None for r in schema.returns)
        self.is_aten = func.namespace == "aten"
        self.is_random = torch.Tag.nondeterministic_seeded in func.tags
        self.counterpart: Counterpart | None = (
            counterpart_of(self.name, schema.overload_name) if self.is_aten else None
        )
        self.rounds_as = self.counterpart.name if self.counterpart is not None else self.name
        """The name by which its results are perturbed."""
        self.is_constant = self.name.startswith("new_") or self.name in INDEPENDENT

    def in_order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """All arguments in the order of the schema."""
        rest = {**self.defaults, **kwargs}
        return [*args, *[*rest.values()][len(args) :]]

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The tensors that the operation returns for all its arguments, in order."""
        count = len(values) - len(self.by_name)
        by_name = dict(zip(self.by_name, values[count:], strict=True))
        return tensors_among([self.func(*values[:count], **by_name)])


INDEPENDENT = {
    "empty_like", "rand_like", "randn_like", "is_same_size", "_local_scalar_dense", "sym_size",
}  # fmt: skip
"""Operations whose results do not depend on the values of tensors."""
operation_of = functools.cache(Operation)


class ForeignOperation:
    """One run of an operation without a counterpart, with torch's derivative.

    It runs again, in double precision, each time that a cotangent is pulled back.

    Args:
        values: all arguments, in order. Arguments that it writes into have their previous values.
    """

    def __init__(self, operation: Operation, values: Sequence[Any]) -> None:
        self.operation, self.values = operation, values
        self.copies = {id(t): t.detach().clone() for t in tensors_among(values)}

    def pull(self, tensor: Any, cotangents: list[Array]) -> Array:
        """The cotangent of one of the tensors."""
        wide = {key: as_double(copy) for key, copy in self.copies.items()}
        leaf = wide[id(tensor)].requires_grad_()
        with torch.enable_grad():
            # an operation in place may not change a leaf
            wide[id(tensor)] = leaf.clone()
            outs = self.operation.run(map_items(self.values, lambda v: wide.get(id(v), v)))
            pairs = [
                (o, tensor_of(c).to(o.dtype).reshape(o.shape))
                for o, c in zip(outs, cotangents, strict=True)
                if o.requires_grad
            ]
            if not pairs:
                raise NotImplementedError(f"torch has no derivative of {self.operation.name}")
            ends, starts = zip(*pairs, strict=True)
            (gradient,) = run_backward(ends, starts, [leaf])
        return np.zeros(tuple(leaf.shape)) if gradient is None else array_of(gradient)


# ------------------------------ shadows of tensors
def leak(how: str) -> None:
    """Tell the current observer that values are computed that it does not follow."""
    watchers.get().observer.leaked(how)


def or_constant(shadow: Shadow | None, tensor: Any) -> Shadow:
    """The given shadow, or, if there is none, a constant's shadow with the values of a tensor."""
    return shadow_of(array_of(tensor)) if shadow is None else shadow


class Memory:
    """The shadows of the tensors that share one storage.

    A write into the storage reaches all of them.
    """

    def __init__(self, tensor: Any) -> None:
        self.storage = tensor.untyped_storage()
        """Kept, so that no other gets its address."""
        self.count = self.storage.nbytes() // tensor.element_size()
        self.views: dict[tuple[Any, ...], Shadow] = {}
        """The shadows, by the view of the storage."""
        self.flat: Shadow | None = None
        """All elements of the storage, once it was written into or viewed in another way."""
        self.writer = ""
        """The operation that wrote into the storage unobserved."""

    @staticmethod
    def view(tensor: Any) -> tuple[Any, ...]:
        """The view that a tensor has of its storage."""
        kind = tensor.dtype, tensor.is_conj(), tensor.is_neg()
        return kind, tensor.storage_offset(), tensor.shape, tensor.stride()

    def places(self, tensor: Any) -> Array:
        """The indices in the storage of a tensor's elements, in the tensor's shape."""
        numbers = np.arange(self.count)[tensor.storage_offset() :]
        strides = [stride * numbers.itemsize for stride in tensor.stride()]
        return np.lib.stride_tricks.as_strided(numbers, tensor.shape, strides)

    def read(self, tensor: Any) -> Shadow | None:
        """The shadow of a tensor; None for integers, and if it cannot be followed, which is a
        leak.
        """
        if self.writer:
            leak(f"{self.writer}()")
        if not is_floating_tensor(tensor):
            return None
        view = self.view(tensor)
        if view not in self.views and (flat := self.flat_shadow(tensor)) is not None:
            self.views[view] = select_places(flat, self.places(tensor))
        return self.views.get(view)

    def write(self, tensor: Any, shadow: Shadow) -> None:
        """Propagate a write into a tensor to all tensors of its storage."""
        view = self.view(tensor)
        if self.views.keys() <= {view} and self.count == tensor.numel():
            self.flat = None  # this view covers the whole storage, and there is no other view
        else:
            flat = self.flat_shadow(tensor)
            self.flat = write_places(or_constant(flat, tensor), self.places(tensor), shadow)
        self.views = {view: shadow}

    def flat_shadow(self, tensor: Any) -> Shadow | None:
        """All elements of the storage of a tensor; None if other tensors view them in another
        dtype.
        """
        kind = self.view(tensor)[0]
        if kind[1:] != (False, False) or any(view[0] != kind for view in self.views):
            leak("memory that is viewed in two dtypes")
            return None
        if self.flat is not None:
            return self.flat
        plain = tensor.detach()
        flat = shadow_of(array_of(torch.as_strided(plain, (self.count,), (1,), 0)))
        # larger views come first: then the views inside them change nothing
        rows = sorted(self.views.items(), key=lambda row: -row[1].array.size)
        for (_, offset, shape, strides), shadow in rows:
            view_tensor = torch.as_strided(plain, shape, strides, offset)
            flat = write_places(flat, self.places(view_tensor), shadow)
            if shadow.array.size == self.count:
                break
        self.flat = flat
        return flat


class Shadows:
    """The shadows of tensors, by their storage."""

    def __init__(self) -> None:
        self.memories: dict[int, Memory] = {}

    @staticmethod
    def has_memory(tensor: Any) -> bool:
        """Whether each element of a tensor has its own element of memory."""
        return tensor.layout is torch.strided and not is_zero_tensor(tensor)

    def keeps(self, tensor: Any, shadow: Shadow) -> bool:
        """Whether the shadow of a result is kept; that of a constant is not."""
        return parent_of(shadow) is not None and self.has_memory(tensor)

    def memory(self, tensor: Any) -> Memory:
        """The shadows of the tensors that share a tensor's storage."""
        key = storage_of(tensor)
        if key not in self.memories:
            self.memories[key] = Memory(tensor)
        return self.memories[key]

    def get(self, tensor: Any) -> Shadow | None:
        """The shadow of a tensor; None for a constant."""
        if not self.has_memory(tensor):
            return None
        memory = self.memories.get(storage_of(tensor))
        return None if memory is None else memory.read(tensor)

    def shadow(self, tensor: Any) -> Shadow:
        """The shadow of a tensor, or one for a constant."""
        return or_constant(self.get(tensor), tensor)

    def put(self, tensor: Any, shadow: Shadow) -> None:
        """Let a shadow represent a fresh tensor, or a view."""
        memory = self.memory(tensor)
        memory.views[memory.view(tensor)] = shadow


class PlayedOperation:
    """One operation of a recorded run.

    Args:
        values: all its arguments, in order.
        shadows: by the ids of tensors among them.
    """

    def __init__(
        self, operation: Operation, values: Sequence[Any], shadows: dict[int, Shadow]
    ) -> None:
        self.operation, self.shadows = operation, shadows
        self.written = tensors_among([values[k] for k in operation.writes])
        # an operation reads the old values of the tensors that it writes into
        before = {id(tensor): tensor.detach().clone() for tensor in self.written}
        self.values = map_items(values, lambda v: before.get(id(v), v)) if before else values
        for key, copy in before.items():
            if key in shadows:
                shadows[id(copy)] = shadows[key]

    def results(self, results: Sequence[Any]) -> list[Shadow]:
        """The shadows of the results; empty if the results are not followed."""
        if not results:
            return []
        if any(r.layout is not torch.strided for r in results):
            leak(f"a tensor of layout {name_of_dtype(results[0].layout)}")
            return []
        arrays, operation = list(map(array_of, results)), self.operation
        read = [v for k, v in enumerate(self.values) if k not in operation.outs]
        shadows = play(operation.counterpart, map_items(read, self.as_played), arrays)
        if shadows is not None:
            return shadows
        if is_of_a_program(list(self.shadows.values())):
            raise Unplayed(f"the engine has no counterpart of torch's {operation.name}")
        if any(map(is_floating_tensor, results)) and operation.is_aten and not operation.is_random:
            run = ForeignOperation(operation, self.values)
            tensors = {id(t): t for t in tensors_among(self.values) if id(t) in self.shadows}
            pulls = [(self.shadows[k], functools.partial(run.pull, t)) for k, t in tensors.items()]
            return record_foreign(operation.name, pulls, arrays)
        if any(map(is_floating_tensor, results)):
            leak(f"{operation.func._schema.name}()")
        return list(map(shadow_of, arrays))

    def as_played(self, value: Any) -> Any:
        """An argument as a counterpart takes it: shadows for tensors, names for dtypes."""
        if isinstance(value, torch.Tensor):
            return or_constant(self.shadows.get(id(value)), value)
        return name_of_dtype(value) if isinstance(value, torch.dtype) else value


# ------------------------------------ an observed run
class OperationMode(TorchDispatchMode):  # type: ignore[misc]
    """One run, in which every operation is observed.

    Args:
        observer: its perturbation changes every result.
        shadows: of the leaves, if the run is recorded.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Skip nothing: else torch loads its compiler at the first operation, for seconds."""
        return False

    def __init__(self, observer: Observer, shadows: Shadows | None = None) -> None:
        super().__init__()
        self.perturbation = getattr(observer, "perturbation", None)
        self.shadows = shadows
        if isinstance(observer, Recording):
            observer.perturbation = None  # shadows are perturbed together with torch's results

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, operation = kwargs or {}, operation_of(func)
        if not operation.is_aten and (code := python_code_of(func)) is not None:
            with self:  # its operations are observed
                return code(*args, **kwargs)
        if operation.name == "_to_copy":
            kwargs = without_cast(args[0], kwargs)
        elif operation.name == "_local_scalar_dense":
            self.report_leak(args[0], ".item()")
        run = None if operation.is_constant else self.played_operation(operation, args, kwargs)
        returned = func(*args, **kwargs)
        if run is None and (self.perturbation is None or operation.is_view):
            return returned
        results = tensors_among([returned])
        shadows = [] if run is None else run.results(results)
        if self.perturbation is not None and not operation.is_view:
            self.perturb(operation, results, shadows)
        if run is not None:
            self.keep(run, results, shadows)
        return returned

    def played_operation(
        self, operation: Operation, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> PlayedOperation | None:
        """The operation, if a shadow represents an argument; None for one that has only
        constants.
        """
        if self.shadows is None:
            return None
        values, shadows = operation.in_order(args, kwargs), dict[int, Shadow]()
        for tensor in tensors_among(values):
            shadow = self.shadows.get(tensor)
            if shadow is not None:
                shadows[id(tensor)] = shadow
        return PlayedOperation(operation, values, shadows) if shadows else None

    def perturb(self, operation: Operation, results: Sequence[Any], shadows: list[Shadow]) -> None:
        """Perturb fresh results, and their shadows if any, in place."""
        assert self.perturbation is not None
        for k, result in enumerate(results):
            host, number = array_of(result), -1
            if shadows:
                recording = watchers.get().observer
                assert isinstance(recording, Recording)
                number = recording.number_of(parent_of(shadows[k]))
            self.perturbation(operation.rounds_as, host, number)
            if shadows and not is_equal(host, shadows[k].array):
                shadows[k] = overwrite(shadows[k], host)
            if result.device.type != "cpu":
                result.copy_(tensor_of(host))

    def keep(self, run: PlayedOperation, results: Sequence[Any], shadows: Sequence[Shadow]) -> None:
        """Keep the shadows of the results, if any. An argument that is written into loses its
        shadow, unless it is one of these results.
        """
        assert self.shadows is not None
        followed = dict(zip(map(id, results), shadows, strict=False))
        for tensor in run.written:
            if id(tensor) not in followed:
                self.shadows.memory(tensor).writer = run.operation.name
        for result, shadow in zip(results, shadows, strict=False):
            if run.operation.writes and is_floating_tensor(result):
                self.shadows.memory(result).write(result, shadow)
            elif self.shadows.keeps(result, shadow):
                self.shadows.put(result, shadow)

    def report_leak(self, tensor: Any, how: str) -> None:
        """Note that the values of a tensor went to unobserved code."""
        if not is_floating_tensor(tensor):
            return
        if self.shadows is None:
            leak(how)
        elif (shadow := self.shadows.get(tensor)) is not None:
            watchers.get().observer.left(shadow, how)


def without_cast(tensor: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a cast; with the tensor's own dtype if a cast to fewer digits is left out."""
    wanted, noted = options.get("dtype"), casts.left_out
    if noted is None or wanted is None or wanted.itemsize >= tensor.dtype.itemsize:
        return options
    kind = tensor.is_floating_point(), tensor.is_complex()
    if not any(kind) or kind != (wanted.is_floating_point, wanted.is_complex):
        return options
    noted.add(name_of_dtype(wanted))
    return {**options, "dtype": tensor.dtype}


class CurrentRun(threading.local):
    """The mode of the run of this thread, if it is watched."""

    mode: AbstractContextManager[object] = nullcontext()


current_run = CurrentRun()


def users_code() -> AbstractContextManager[object]:
    """A block around the user's code: if the run is observed, its operations are reported."""
    return current_run.mode


@contextmanager
def observed_by(mode: OperationMode) -> Iterator[None]:
    """A block in which a mode observes the user's code of this thread."""
    before, current_run.mode = current_run.mode, mode
    try:
        with METHODS:
            yield
    finally:
        current_run.mode = before


def noting_method(name: str, method: Any) -> Any:
    """A tensor method that also notes that it takes values out of this thread's run."""

    @functools.wraps(method)
    def call_and_report(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(current_run.mode, OperationMode):
            current_run.mode.report_leak(self, f".{name}()")
        return method(self, *args, **kwargs)

    return call_and_report


METHODS = Patch(
    *((torch.Tensor, name, noting_method(name, getattr(torch.Tensor, name))) for name in TAKES_OUT)
)


class LeafMode(TorchDispatchMode):  # type: ignore[misc]
    """A run that notes which leaves with a gradient it uses."""

    _should_skip_dynamo = OperationMode._should_skip_dynamo

    def __init__(self) -> None:
        super().__init__()
        self.leaves: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for value in tensors_among([*args, *kwargs.values()]):
            # within a Function, views of its arguments are leaves too
            base = value._base if value._is_view() and value._base.requires_grad else value
            if base.requires_grad and base.is_leaf:
                self.leaves[id(base)] = base
        return func(*args, **kwargs)


class ObservedFunction:
    """A function of torch whose operations are reported to the engine's current observer.

    A run without an observer, and without casts to leave out, is plain.
    """

    def __init__(self, function: Recordable) -> None:
        self.function = function
        self.makes_no_casts = set[str]()
        """The passes (forward or vjp) in which no cast to fewer digits was observed."""

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs."""
        return self.run_observed("forward", self.function.forward, arrays)  # type: ignore[no-any-return]

    def vjp(self, arrays: Sequence[Array], cotangents: Cotangents) -> InputGradients:
        """The gradients."""
        return self.run_observed("vjp", self.function.vjp, arrays, cotangents)  # type: ignore[no-any-return]

    def run_observed(
        self,
        half: str,
        compute: Callable[..., Any],
        *arguments: Any,
        shadows: Shadows | None = None,
    ) -> Any:
        """Call a function, observing its operations if needed."""
        observer = watchers.get().observer
        leaves_casts_out = casts.left_out is not None and half not in self.makes_no_casts
        if observer is NOBODY.observer and not leaves_casts_out:
            return compute(*arguments)
        with observed_by(OperationMode(observer, shadows)):
            result = compute(*arguments)
        if casts.left_out is not None and not casts.left_out:
            self.makes_no_casts.add(half)
        return result

    def recordable_call(self, arrays: Sequence[Array]) -> RecordableCall:
        """The shadows of the leaves of a call, and the call that gives those of its outputs."""
        leaves, call = self.function.recordable_call(arrays)
        shadows, book = list(map(leaf_shadow, leaves)), Shadows()

        def shadows_of_outputs() -> list[Shadow]:
            for leaf, shadow in zip(leaves, shadows, strict=True):
                if is_floating_tensor(leaf):
                    if Memory.view(leaf) in book.memory(leaf).views:
                        leak("two inputs in the same memory")
                    book.put(leaf, shadow)
            outputs = self.run_observed("forward", call, shadows=book)
            return list(map(book.shadow, outputs))

        return shadows, shadows_of_outputs


def leaf_shadow(leaf: Any) -> Shadow:
    """The shadow of an input."""
    return Shadow(np.array(array_of(leaf), order="C"), None, not leaf.requires_grad)
