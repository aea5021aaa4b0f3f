"""The operations of torch as they run: perturbed, with casts left out, or played on the engine.

A dispatch mode below autograd sees every aten operation of this thread, in forward and backward,
under `no_grad` and inside of custom Functions alike. Results are changed in place, through the
memory that NumPy shares with torch. While a call is recorded, *shadows* (see
`gradcheck.backends.played`) stand for all tensors that depend on the inputs, also where several
tensors share memory and code writes into it.

Values that leave torch (``.item()``, ``.numpy()``), or an operation outside of aten that is not
written in Python, are leaks: what they compute is judged by differences.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import torch

from gradcheck.backends.aten import counterpart_of, select_places, write_places
from gradcheck.backends.base import Array, Backend, Cotangents, InputGradients, Recordable
from gradcheck.backends.played import Counterpart, foreign, overwrite, play, shadow_of
from gradcheck.backends.recording import Perturbation, Recording, recorded
from gradcheck.backends.torch_private import (
    Patch,
    TorchDispatchMode,
    is_transformed,
    is_zero_tensor,
    map_tensors,
    plain_tensor,
    python_code_of,
    tree_flatten,
    tree_unflatten,
    without_transforms,
)
from pylayer.tape.node import parent_of
from pylayer.tensor.tensor import Tensor as Shadow
from pylayer.watch import current_observer

TAKES_OUT = ("numpy", "tolist", "__array__", "data_ptr")
"""Methods of tensors that hand values to code that nothing sees."""
RAW_NUMPY = torch.Tensor.numpy
"""The method of torch, whatever takes its place while a call is watched."""


# ------------------------------ values
def array_of(tensor: Any) -> Array:
    """The values of a tensor: in its own memory where that is possible."""
    if is_transformed():
        with without_transforms():
            return plain_values(plain_tensor(tensor))
    return plain_values(tensor)


def plain_values(tensor: Any) -> Array:
    """The values of a tensor that is not wrapped."""
    tensor = tensor.detach()
    if is_zero_tensor(tensor):
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        return RAW_NUMPY(tensor.view(torch.uint16)).view(ml_dtypes.bfloat16)
    return RAW_NUMPY(tensor)


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


def has_memory(tensor: Any) -> bool:
    """Whether a tensor has an element of memory for each of its own."""
    return tensor.layout is torch.strided and not is_zero_tensor(tensor)


def as_double(value: Any) -> Any:
    """A floating tensor in double precision; anything else unchanged."""
    if not is_floating_tensor(value):
        return value
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def name_of_dtype(dtype: Any) -> str:
    """The name of a dtype of torch, which is NumPy's too."""
    return str(dtype).removeprefix("torch.")


# ------------------------------ the operations of torch
class Operation:
    """What the schema of an operation says.

    Args:
        func: the overload, as a dispatch mode is given it.
    """

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.func = func
        self.name: str = schema.name.partition("::")[2]
        self.arguments = schema.arguments
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

    def in_order(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """All arguments in the order of the schema."""
        rest = self.arguments[len(args) :]
        return [*args, *(kwargs.get(a.name, a.default_value) for a in rest)]


INDEPENDENT = {
    "empty_like", "rand_like", "randn_like", "is_same_size", "_local_scalar_dense", "sym_size",
}  # fmt: skip
"""Operations whose results do not depend on the values of tensors."""
operation_of = functools.cache(Operation)


class ForeignOperation:
    """One run of an operation without counterpart, with torch's derivative.

    It runs again, in double precision, each time that a cotangent is pulled back.
    """

    def __init__(self, operation: Operation, arguments: Any) -> None:
        self.operation = operation
        leaves, self.spec = tree_flatten(arguments)
        self.leaves = [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in leaves]

    def pull(self, position: int, g: Any) -> Array:
        """The cotangent of one tensor among the arguments."""
        leaves = list(map(as_double, self.leaves))
        leaf = leaves[position] = leaves[position].requires_grad_()
        # an operation in place may not change a leaf
        fresh = [v.clone() if is_floating_tensor(v) else v for v in leaves]
        with torch.enable_grad():
            args, kwargs = tree_unflatten(fresh, self.spec)
            returned = tree_flatten(self.operation.func(*args, **kwargs))[0]
            outs = [o for o in returned if isinstance(o, torch.Tensor)]
            cotangents = g if isinstance(g, list) else [g]
            pairs = [
                (o, tensor_of(c).to(o.dtype).reshape(o.shape))
                for o, c in zip(outs, cotangents, strict=True)
                if o.requires_grad
            ]
            if not pairs:
                raise NotImplementedError(f"torch has no derivative of {self.operation.name}")
            ends, starts = zip(*pairs, strict=True)
            (found,) = torch.autograd.grad(ends, [leaf], starts, allow_unused=True)
        return np.zeros(tuple(leaf.shape)) if found is None else array_of(found)


# ------------------------------ shadows of tensors
View = tuple[Any, ...]
"""How a tensor sees the memory of its storage."""


class Shadows:
    """The shadows of tensors, by the storage that they see, and how they see it.

    What is written into a storage is seen by all tensors that see it.
    """

    def __init__(self) -> None:
        self.known: dict[int, dict[View, Shadow]] = {}
        """By storage, by view."""
        self.flat: dict[int, Shadow] = {}
        """Of storages that were written into: all of their elements."""
        self.kept: list[Any] = []
        """The storages, so that none gets the address of another."""
        self.lost: list[str] = []
        """What could not be followed."""
        self.untracked: dict[int, str] = {}
        """By storage that was written into unseen, by what."""

    @staticmethod
    def view(tensor: Any) -> View:
        """How a tensor sees its storage."""
        offset, shape, strides = tensor.storage_offset(), tensor.shape, tensor.stride()
        return offset, shape, strides, tensor.dtype, tensor.is_conj(), tensor.is_neg()

    @staticmethod
    def storage(tensor: Any) -> int:
        """What identifies the storage of a tensor while it is kept."""
        return int(tensor.untyped_storage()._cdata)

    def get(self, tensor: Any) -> Shadow | None:
        """The shadow of a tensor; None for a constant, and for anything else."""
        if not isinstance(tensor, torch.Tensor) or not has_memory(tensor):
            return None
        storage = self.storage(tensor)
        if storage in self.untracked:
            self.lost.append(f"{self.untracked[storage]}()")
        if storage not in self.known or not is_floating_tensor(tensor):
            return None
        view = self.view(tensor)
        if view not in self.known[storage]:
            shadow = self.read(storage, tensor)
            if shadow is None:
                return None
            self.known[storage][view] = shadow
        return self.known[storage][view]

    def shadow(self, tensor: Any) -> Shadow:
        """The shadow of a tensor, or one for a constant."""
        shadow = self.get(tensor)
        return shadow_of(array_of(tensor)) if shadow is None else shadow

    def put(self, tensor: Any, shadow: Shadow) -> None:
        """Have a shadow stand for a fresh tensor, or a view."""
        self.kept.append(tensor.untyped_storage())
        self.known.setdefault(self.storage(tensor), {})[self.view(tensor)] = shadow

    @staticmethod
    def places(tensor: Any) -> Array:
        """The numbers of the elements of a storage that a tensor sees, in its shape."""
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        numbers = np.arange(count)[tensor.storage_offset() :]
        strides = [stride * numbers.itemsize for stride in tensor.stride()]
        return np.lib.stride_tricks.as_strided(numbers, tensor.shape, strides)

    def whole(self, storage: int, tensor: Any) -> Shadow | None:
        """All elements of the storage of a tensor; None if it holds those of another dtype."""
        if storage in self.flat:
            flat = self.flat[storage]
            return flat if flat.array.dtype.name == name_of_dtype(tensor.dtype) else None
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        flat = shadow_of(array_of(torch.as_strided(tensor.detach(), (count,), (1,), 0)))
        # what sees most comes first: views of it, which are parts of it, change nothing then
        rows = sorted(self.known[storage].items(), key=lambda row: -row[1].array.size)
        for (offset, shape, strides, dtype, is_conj, is_neg), shadow in rows:
            if dtype is not tensor.dtype or is_conj or is_neg:
                return None
            like = torch.as_strided(tensor.detach(), shape, strides, offset)
            flat = write_places(flat, self.places(like), shadow)
            if shadow.array.size == count:
                break
        self.flat[storage] = flat
        return flat

    def read(self, storage: int, tensor: Any) -> Shadow | None:
        """The shadow of a tensor that sees a storage in another way than those that are known."""
        flat = None if tensor.is_conj() or tensor.is_neg() else self.whole(storage, tensor)
        if flat is None:
            self.lost.append("memory that is seen in two dtypes")
            return None
        return select_places(flat, self.places(tensor))

    def write(self, tensor: Any, shadow: Shadow) -> None:
        """Have what was written into a tensor be seen by all that see its storage."""
        storage, view = self.storage(tensor), self.view(tensor)
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        if self.known.get(storage, {}).keys() <= {view} and count == tensor.numel():
            self.flat.pop(storage, None)
            self.known[storage] = {}
            self.put(tensor, shadow)
            return
        self.known.setdefault(storage, {})
        self.kept.append(tensor.untyped_storage())
        flat = self.whole(storage, tensor)
        if flat is None:
            self.lost.append("memory that is seen in two dtypes")
            flat = shadow_of(array_of(tensor))
        self.flat[storage] = write_places(flat, self.places(tensor), shadow)
        self.known[storage] = {view: shadow}


# ------------------------------ a run that is watched
class OperationMode(TorchDispatchMode):  # type: ignore[misc]
    """One run, of which every operation is seen.

    Args:
        perturbation: changes every result.
        left_out: is told the dtypes of casts to fewer digits, which are not made then; None to make
            them.
        leaks: what hands values to code that nothing sees is added to these.
        shadows: of the leaves, if the run is recorded.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise torch imports its compiler for the first operation: seconds."""
        return False

    def __init__(
        self,
        perturbation: Perturbation | None,
        left_out: set[str] | None,
        leaks: list[str],
        shadows: Shadows | None = None,
    ) -> None:
        super().__init__()
        self.perturbation, self.left_out = perturbation, left_out
        self.leaks, self.shadows = leaks, shadows
        self.thread = threading.get_ident()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = operation_of(func)
        if not operation.is_aten and (code := python_code_of(func)) is not None:
            with self:  # what it computes is seen
                return code(*args, **kwargs)
        if operation.name == "_to_copy" and self.left_out is not None:
            kwargs = self.without_cast(args[0], kwargs)
        if operation.name == "_local_scalar_dense" and is_floating_tensor(args[0]):
            self.left(args[0], ".item()")
        run = Played.of(self, operation, args, kwargs)
        out = func(*args, **kwargs)
        results = [o for o in tree_flatten(out)[0] if isinstance(o, torch.Tensor)]
        made = run.shadows(results) if run is not None else None
        if self.perturbation is not None and not operation.is_view:
            self.perturb(operation, results, made)
        if run is not None:
            self.keep(operation, run.written, results if made is not None else (), made or ())
        return out

    def perturb(
        self, operation: Operation, results: Sequence[Any], made: list[Shadow] | None
    ) -> None:
        """Change fresh results in place, and their shadows with them."""
        assert self.perturbation is not None
        for k, result in enumerate(results):
            host, number = array_of(result), -1
            if made is not None:
                recording = current_observer.get()
                assert isinstance(recording, Recording)
                number = recording.number_of(parent_of(made[k]))
            self.perturbation(operation.rounds_as, host, number)
            if made is not None and not np.array_equal(host, made[k].array):
                made[k] = overwrite(made[k], host)
            if result.device.type != "cpu":
                result.copy_(tensor_of(host))

    def keep(
        self,
        operation: Operation,
        written: Sequence[Any],
        results: Sequence[Any],
        made: Sequence[Shadow],
    ) -> None:
        """Keep the shadows of results; of what is written into and not returned there is none."""
        assert self.shadows is not None
        returned = set(map(id, results))
        for tensor in written:
            if id(tensor) not in returned:
                self.shadows.untracked[self.shadows.storage(tensor)] = operation.name
        for result, shadow in zip(results, made, strict=True):
            if operation.writes and is_floating_tensor(result):
                self.shadows.write(result, shadow)
            elif parent_of(shadow) is not None and has_memory(result):
                self.shadows.put(result, shadow)
        self.leak_lost()

    def leak_lost(self) -> None:
        """Note what could not be followed."""
        assert self.shadows is not None
        for how in self.shadows.lost:
            self.leak(how)
        self.shadows.lost.clear()

    def without_cast(self, tensor: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The options of a cast; to the tensor's own dtype, if it is to one of fewer digits."""
        wanted = kwargs.get("dtype")
        if (
            not is_floating_tensor(tensor)
            or wanted is None
            or not wanted.itemsize < tensor.dtype.itemsize
        ):
            return kwargs
        if wanted.is_complex is not tensor.is_complex() or not is_of_floats(wanted):
            return kwargs
        assert self.left_out is not None
        self.left_out.add(name_of_dtype(wanted))
        return {**kwargs, "dtype": tensor.dtype}

    def left(self, tensor: Any, how: str) -> None:
        """Note that the values of a tensor went where nothing sees them."""
        if self.shadows is None:
            self.leaks.append(how)
        elif (shadow := self.shadows.get(tensor)) is not None:
            current_observer.get().left(shadow, how)

    def leak(self, how: str) -> None:
        """Note that what is computed is not followed."""
        recording = current_observer.get()
        if isinstance(recording, Recording):
            recording.taken_out.append((len(recording.arrays), how))
        else:
            self.leaks.append(how)


def is_of_floats(dtype: Any) -> bool:
    """Whether a dtype is of real or complex floating-point numbers."""
    return bool(dtype.is_floating_point or dtype.is_complex)


class Played:
    """One operation of a recorded run, some of whose arguments have shadows."""

    def __init__(
        self, mode: OperationMode, operation: Operation, args: Any, kwargs: dict[str, Any]
    ) -> None:
        assert mode.shadows is not None
        self.mode, self.operation = mode, operation
        self.arguments = operation.in_order(args, kwargs)
        # what is written into is read before
        self.before = [
            v.detach().clone() if k in operation.writes and isinstance(v, torch.Tensor) else v
            for k, v in enumerate(self.arguments)
        ]
        written = tree_flatten([self.arguments[k] for k in operation.writes])[0]
        self.written = [tensor for tensor in written if isinstance(tensor, torch.Tensor)]
        self.stand_ins = map_tensors(mode.shadows.get, self.arguments)
        self.call = list(self.before[: len(args)]), dict(kwargs)

    @classmethod
    def of(
        cls, mode: OperationMode, operation: Operation, args: Any, kwargs: dict[str, Any]
    ) -> Played | None:
        """The operation, if a shadow stands for an argument; None for one on constants alone."""
        if mode.shadows is None or operation.is_constant or not mode.shadows.known:
            return None
        values = tree_flatten((args, kwargs))[0]
        if not any(mode.shadows.get(value) is not None for value in values):
            return None
        return cls(mode, operation, args, kwargs)

    def shadows(self, results: Sequence[Any]) -> list[Shadow] | None:
        """The shadows of the results; None where they are not followed."""
        if not results:
            return None
        if any(r.layout is not torch.strided for r in results):
            self.mode.leak(f"a tensor of layout {name_of_dtype(results[0].layout)}")
            return None
        values, operation = list(map(array_of, results)), self.operation
        rows = zip(self.before, self.stand_ins, strict=True)
        mixed = [mix(v, s) for k, (v, s) in enumerate(rows) if k not in operation.outs]
        made = play(operation.counterpart, mixed, values)
        if made is not None:
            return made
        if not any(map(is_floating_tensor, results)):
            return list(map(shadow_of, values))
        if not operation.is_aten or operation.is_random:
            self.mode.leak(f"{operation.func._schema.name}()")
            return list(map(shadow_of, values))
        run, stand_ins = ForeignOperation(operation, self.call), tree_flatten(self.call)[0]
        pulls = [
            (shadow, functools.partial(run.pull, position))
            for position, value in enumerate(stand_ins)
            if (shadow := self.shadow_before(value)) is not None
        ]
        return foreign(operation.name, pulls, values)

    def shadow_before(self, value: Any) -> Shadow | None:
        """The shadow of an argument, as it was before the operation wrote into it."""
        assert self.mode.shadows is not None
        for before, stand_in in zip(self.before, self.stand_ins, strict=True):
            if before is value and isinstance(stand_in, Shadow):
                return stand_in
        return self.mode.shadows.get(value)


def mix(value: Any, shadow: Any) -> Any:
    """An argument as a counterpart takes it: shadows for tensors, names for dtypes."""
    if isinstance(value, torch.Tensor):
        return shadow if isinstance(shadow, Shadow) else shadow_of(array_of(value))
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
        return [mix(v, s) for v, s in zip(value, shadow, strict=True)]
    return name_of_dtype(value) if isinstance(value, torch.dtype) else value


modes: list[OperationMode] = []
"""Those in force, in any thread."""


def noting_method(name: str, method: Any) -> Any:
    """A method of tensors that notes what it takes out of the run of this thread."""

    @functools.wraps(method)
    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        if modes and modes[-1].thread == threading.get_ident() and is_floating_tensor(self):
            modes[-1].left(self, f".{name}()")
        return method(self, *args, **kwargs)

    return noted


own_methods: dict[str, Any] = {}
"""What the class of tensors itself defines of `TAKES_OUT`, while others are in their place."""


def watch_methods() -> None:
    """Have what takes values out of tensors note it."""
    for name in TAKES_OUT:
        own_methods[name] = vars(torch.Tensor).get(name)
        setattr(torch.Tensor, name, noting_method(name, getattr(torch.Tensor, name)))


def leave_methods() -> None:
    """Undo `watch_methods`."""
    for name, method in own_methods.items():
        if method is None:
            delattr(torch.Tensor, name)
        else:
            setattr(torch.Tensor, name, method)


METHODS = Patch(watch_methods, leave_methods)


@contextmanager
def watching(mode: OperationMode) -> Iterator[None]:
    """A block in which a mode sees all operations of this thread, and what takes values out."""
    with METHODS:
        modes.append(mode)
        try:
            with mode:
                yield
        finally:
            modes.remove(mode)


class ReachingMode(TorchDispatchMode):  # type: ignore[misc]
    """A run of which the leaves with a gradient that it computes with are noted."""

    _should_skip_dynamo = OperationMode._should_skip_dynamo

    def __init__(self) -> None:
        super().__init__()
        self.leaves: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in tree_flatten((args, kwargs))[0]:
            if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf:
                self.leaves[id(value)] = value
        return func(*args, **(kwargs or {}))


class TorchRecomputation:
    """A function computed again; see `gradcheck.checking.problem.Recomputation`.

    Args:
        function: a function of torch.
        takes_gradients: whether it takes gradients itself.
    """

    def __init__(self, backend: Backend, function: Recordable, takes_gradients: bool) -> None:
        self.backend, self.function = backend, function
        self.takes_gradients = takes_gradients
        self.left_out = set[str]()
        self.left_out_last = set[str]()
        self.leaks: list[str] = []
        self.makes_no_casts = set[str]()
        """Which of forward and vjp were seen to make none to fewer digits."""

    def outputs(
        self, inputs: Sequence[Array], perturbation: Perturbation | None = None
    ) -> list[Array]:
        """As `Problem.forward`."""
        return self.run("forward", perturbation, False, inputs)  # type: ignore[no-any-return]

    def gradients(
        self,
        inputs: Sequence[Array],
        cotangents: Cotangents,
        perturbation: Perturbation | None = None,
        own: bool = False,
    ) -> InputGradients:
        """As `Problem.vjp`."""
        return self.run("vjp", perturbation, own, inputs, cotangents)  # type: ignore[no-any-return]

    def run(self, half: str, perturbation: Perturbation | None, own: bool, *given: Any) -> Any:
        """The values that one half of the function gives."""
        compute = getattr(self.function, half)
        self.left_out_last = set()
        if perturbation is None and (own or half in self.makes_no_casts):
            return compute(*given)
        self.leaks.clear()
        try:
            mode = OperationMode(perturbation, None if own else self.left_out_last, self.leaks)
            with watching(mode):
                found = compute(*given)
        finally:
            self.left_out |= self.left_out_last
        if not own and not self.left_out_last:
            self.makes_no_casts.add(half)
        return found

    def recording(
        self,
        inputs: Sequence[Array],
        perturbation: Perturbation | None = None,
        own: bool = False,
        lines: bool = False,
    ) -> Recording | None:
        """The call, operation by operation."""
        recordable = self.function.recordable_call(inputs)
        if recordable is None:
            return None
        leaves, call = recordable
        shadows, book = list(map(leaf_shadow, leaves)), Shadows()
        self.left_out_last = set()
        mode = OperationMode(perturbation, None if own else self.left_out_last, [], book)
        applied = Applied()

        def run() -> list[Shadow]:
            for leaf, shadow in zip(leaves, shadows, strict=True):
                if is_floating_tensor(leaf):
                    book.put(leaf, shadow)
            with watching(mode), self.backend.observing(applied):
                outputs = call()
            made = list(map(book.shadow, outputs))
            mode.leak_lost()
            return made

        found, _ = recorded(run, shadows, lines, None, None, self.takes_gradients)
        found.layers = applied.layers
        self.left_out |= self.left_out_last
        return found


def leaf_shadow(leaf: Any) -> Shadow:
    """The shadow of an input."""
    return Shadow(np.array(array_of(leaf), order="C"), None, not leaf.requires_grad)


class Applied:
    """The layers that are applied while a call is recorded."""

    def __init__(self) -> None:
        self.layers: list[Any] = []

    def applied(self, layer: Any, context: Any) -> None:
        """Note a layer."""
        self.layers.append(layer)

    def pulled_back(self, layer: Any) -> None:
        """Nothing is to be noted of a backward."""
