"""JAX as a backend: functions are traced, and the traced program runs on the bundled engine.

A call keeps the function and its arguments; its gradients come from ``jax.vjp``, which runs the
user's backward, compiled once for each shape. The forward, and everything that is perturbed or
recorded, is the traced program on the engine; see `gradcheck.backends.jax_program`. Everything runs
with JAX's 64-bit types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_map_with_path

from gradcheck.backends.base import (
    Array,
    Backend,
    Computed,
    Cotangents,
    FrameworkWords,
    InputGradients,
    ObserverBlock,
    Recordable,
    RecordableCall,
    Refusal,
    is_differentiable,
)
from gradcheck.backends.jax_program import (
    HandWritten,
    JaxProgram,
    code_of,
    engine_value,
    is_plain,
    plain_array,
)
from gradcheck.backends.played import Unplayed
from gradcheck.backends.recomputation import Recomputation
from gradcheck.backends.recording import is_close
from gradcheck.spec.containers import map_leaves
from gradcheck.support.foreign import text_of
from pylayer.tensor.tensor import Tensor as Shadow
from pylayer.watch import LayerObserver, watchers

BWD_RULE = re.compile(r"[Cc]ustom VJP bwd rule|custom_vjp.*bwd|bwd rule for function", re.DOTALL)
"""The start of JAX's message when it rejects the result of a bwd."""
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Options of XLA for programs that run only a few times: compilation takes most of a check's
time.
"""
Places = tuple[int, ...]
"""Positions of arguments or results."""


class FwdDiffersError(Exception):
    """The primal function and its fwd return different values."""


class TensorTypes(type):
    """The types that a check treats as Tensors: `Tensor`, and JAX's arrays other than random
    keys.
    """

    def __instancecheck__(cls, value: Any) -> bool:
        if isinstance(value, jax.Array):
            return is_plain(value) and not isinstance(value, jax.core.Tracer)
        return isinstance(value, JaxTensor)


class AnyTensor(metaclass=TensorTypes):
    """The class of Tensors."""


class NoModule:
    """JAX has no class of modules."""


class PureFunction:
    """A function from a list of arrays to a list of arrays, for JAX to trace.

    Args:
        compute: takes the arrays.
        is_judged: whether JAX computes the function, not the engine: it gives the gradients of all
            outputs.
    """

    def __init__(self, compute: Callable[[Sequence[Any]], list[Any]], is_judged: bool) -> None:
        self.compute, self.is_judged = compute, is_judged
        self.compared: Places = ()
        """Results for which the gradients of the engine and of JAX were compared."""

    def __call__(self, *values: Any) -> list[Any]:
        return self.compute(values)


class JaxTensor:
    """An array, and the call that produced it.

    Args:
        value: a NumPy array, or the object that JAX traces in its place.
        call: None for a leaf.
        place: which of the call's results it is.
    """

    def __init__(
        self, value: Any, needs_gradient: bool, call: JaxCall | None = None, place: int = 0
    ) -> None:
        self.value, self.needs_gradient = value, needs_gradient
        self.call, self.place = call, place
        self.grad: JaxTensor | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def ndim(self) -> int:
        return len(self.value.shape)

    @property
    def is_leaf(self) -> bool:
        return self.call is None


class JaxCall:
    """A call of a function with Tensors."""

    def __init__(self, function: PureFunction, inputs: Sequence[JaxTensor]) -> None:
        self.function, self.inputs = function, inputs

    @property
    def values(self) -> list[Any]:
        """The arguments."""
        return [t.value for t in self.inputs]


class JaxBackend(Backend):
    """JAX on the CPU, or on its configured device."""

    name = "jax"
    packages = ("jax", "jaxlib")
    layer_type = HandWritten
    module_type = NoModule
    tensor_type = AnyTensor
    words = FrameworkWords(
        framework="JAX",
        layer="custom_vjp",
        module="module",
        takes_gradient="a floating dtype",
        takes_none="they are integers or booleans",
        rules="JAX's",
    )

    def __init__(self) -> None:
        self.observers: list[LayerObserver] = []
        self.functions: dict[Any, PureFunction] = {}
        """Functions for JAX, by the objects that they were made from: JAX identifies functions by
        object identity.
        """
        self.not_played: set[Any] = set()
        """The keys of programs that the engine does not compute, or computes differently from
        JAX.
        """
        self.program_at, self.compiled_at = cache(trace_program), cache(compile_by_xla)
        """Traced and compiled programs, by function and by the shapes and dtypes of its arrays.
        """
        self.inspected: set[Any] = set()
        """The calls whose results on the engine were compared with those of JAX, by the same
        keys.
        """
        self.differing: dict[Any, str] = {}
        """How the results of a fwd differ from those of its primal, by the same keys."""

    # ----------------------------------------------------------------- Tensors
    def names(self) -> dict[str, Any]:
        return {"jax": jax, "jnp": jnp}

    def tensor(self, array: Array, dtype: str | None, *, stop_gradient: bool) -> JaxTensor:
        if not isinstance(array, jax.core.Tracer):
            array = np.array(array, dtype=dtype, order="C")
        elif dtype is not None:
            array = array.astype(dtype)
        return JaxTensor(array, not stop_gradient and is_differentiable(array))

    def array(self, tensor: Any) -> Array:
        if isinstance(tensor, JaxTensor):
            return tensor.value
        return tensor if isinstance(tensor, jax.core.Tracer) else np.asarray(tensor)

    def map_leaves(self, name: str, value: Any, leaf: Callable[[str, Any], Any]) -> Any:
        """This includes registered classes, whose leaves are named by their paths, such as
        ``p.weight``.
        """

        def map_tree(name: str, value: Any) -> Any:
            return tree_map_with_path(lambda path, x: leaf(f"{name}{keystr(path)}", x), value)

        return map_leaves(name, value, map_tree)

    def needs_gradient(self, tensor: Any) -> bool:
        if isinstance(tensor, JaxTensor):
            return tensor.needs_gradient
        return is_differentiable(tensor)

    def claims(self, output: Any) -> bool:
        return is_differentiable(output)

    def is_parameter(self, tensor: Any) -> bool:
        """JAX differentiates only with respect to arguments."""
        return False

    def version(self, tensor: Any) -> int:
        return 0

    def alias(self, tensor: Any, stop_gradient: bool) -> JaxTensor:
        return JaxTensor(self.array(tensor), not stop_gradient)

    def reverse_axes(self, tensor: Any) -> JaxTensor:
        return JaxTensor(self.array(tensor).T, False)

    def strided_view(self, tensor: Any, shape: list[int], strides: list[int]) -> JaxTensor:
        array = self.array(tensor)
        steps = [step * array.itemsize for step in strides]
        return JaxTensor(np.lib.stride_tricks.as_strided(array, shape, steps), False)

    def share(self, leaf: JaxTensor, other: JaxTensor) -> None:
        leaf.value = other.value

    def overlap(self, a: Any, b: Any) -> bool:
        return False

    # ----------------------------------------------------------------- calls and gradients
    def function(
        self, key: Any, compute: Callable[[Sequence[Any]], list[Any]], is_judged: bool
    ) -> PureFunction:
        """The function stored under a key; it is made if there is none."""
        return self.functions.setdefault(key, PureFunction(compute, is_judged))

    def call(self, function: Callable[[dict[str, Any]], Any], tensors: dict[str, Any]) -> Any:
        names = tuple(tensors)

        def compute(values: Sequence[Any]) -> list[Any]:
            arrays = [v if isinstance(v, jax.core.Tracer) else jnp.asarray(v) for v in values]
            leaves = jax.tree.leaves(function(dict(zip(names, arrays, strict=True))))
            return [jnp.asarray(x) for x in leaves if is_scalar(x) or has_numbers(x)]

        pure = self.function((function, names), compute, is_judged=False)
        call = JaxCall(pure, list(tensors.values()))
        results = self.results(call)
        if is_traced(call.values):
            return results
        for layer in self.program(pure, call.values).applied_layers():
            for observer in self.observers:
                observer.applied(layer, None)
        return results if self.is_faithful(call, results) else self.results(call)

    def results(self, call: JaxCall) -> list[JaxTensor]:
        """The results of a call as Tensors."""
        needs = any(t.needs_gradient for t in call.inputs)
        return [
            JaxTensor(value, needs and is_differentiable(value), call, place)
            for place, value in enumerate(self.evaluate(call.function, call.values))
        ]

    def grad(
        self,
        outputs: list[JaxTensor],
        inputs: list[JaxTensor],
        cotangents: list[JaxTensor],
        existing_leaves: Sequence[Any],
        create_graph: bool,
    ) -> list[JaxTensor | None]:
        call = outputs[0].call
        assert call is not None
        known = {id(t): k for k, t in enumerate(call.inputs)}
        positions = tuple(known[id(t)] for t in inputs if id(t) in known)
        places = tuple(t.place for t in outputs)
        pull = self.pull(call.function, len(call.inputs), positions, places)
        if not is_traced(call.values):
            self.tell_layers(call, positions, places)
            if text := self.differing.get((call.function, avals_of(call.values))):
                raise FwdDiffersError(text)
        gradients = iter(self.results(JaxCall(pull, [*call.inputs, *cotangents])))
        return [next(gradients) if id(t) in known else None for t in inputs]

    def pull(
        self,
        function: PureFunction,
        count: int,
        positions: Places,
        places: Places,
    ) -> PureFunction:
        """A function of arguments and cotangents that returns the gradients, followed by the
        outputs of the user's fwd.

        JAX's vjp of y = a x is a g; the checker compares conj(a) g. If some outputs are not used,
        the function is computed on the engine if its results agreed with JAX's before: this saves
        compiling another program for a single run.
        """

        def compute(values: Sequence[Any]) -> list[Any]:
            arguments = list(map(jnp.asarray, values[:count]))

            def results_at(*moved: Any) -> list[Any]:
                replaced = list(arguments)
                for position, value in zip(positions, moved, strict=True):
                    replaced[position] = value
                results = function(*replaced)
                return [jnp.asarray(results[place]) for place in places]

            outputs, back = jax.vjp(results_at, *(arguments[k] for k in positions))
            starts = [
                jnp.conj(jnp.asarray(start, output.dtype))
                for start, output in zip(values[count:], outputs, strict=True)
            ]
            return [*map(jnp.conj, back(starts)), *outputs]

        is_judged = not set(places) < set(function.compared)
        return self.function((function, positions, places), compute, is_judged)

    def backward(self, outputs: list[JaxTensor], cotangents: list[JaxTensor | None]) -> None:
        call = outputs[0].call
        if call is None:
            return
        leaves = [t for t in call.inputs if t.needs_gradient]
        gradients = self.grad(outputs, leaves, self.starts(outputs, cotangents), (), False)
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf.grad = gradient

    def is_faithful(self, call: JaxCall, results: Sequence[JaxTensor]) -> bool:
        """Whether the engine and JAX give the same results for a call; compared once for each
        shape. The compiled program is used again for the gradients.
        """
        key = call.function, avals_of(call.values)
        positions = tuple(k for k, t in enumerate(call.inputs) if t.needs_gradient)
        places = tuple(k for k, t in enumerate(results) if is_differentiable(t))
        if key in self.inspected or not positions or not places:
            return True
        self.inspected.add(key)
        ours = [results[place].value for place in places]
        pull = self.pull(call.function, len(call.inputs), positions, places)
        arguments = [*call.values, *map(np.ones_like, ours)]
        try:
            theirs = self.evaluate(pull, arguments)[len(positions) :]
        except Exception:  # raised by the user's backward, and again when gradients are taken
            return True
        # XLA may omit roundings of intermediate values to narrow dtypes, so results agree only to
        # the digits of these dtypes.
        coarsest = self.program(call.function, call.values).coarsest_dtype()
        agrees = partial(is_close, dtype=coarsest)
        if all(map(agrees, ours, theirs)):
            call.function.compared = places
            return True
        forward = self.run_on_engine(pull, arguments)
        if forward is not None and all(map(agrees, forward[len(positions) :], theirs)):
            self.differing[key] = fwd_difference(ours, theirs)
            return True
        self.not_played.add(key)
        return False

    # ----------------------------------------------------------------- values
    def evaluate(self, function: PureFunction, values: Sequence[Any]) -> list[Any]:
        """Call a function; while JAX traces, let JAX trace it."""
        if is_traced(values):
            return function(*values)
        try:
            played = None if function.is_judged else self.run_on_engine(function, values)
            return self.compute_by_jax(function, values) if played is None else played
        except Exception as error:
            leave_out_note(error)
            raise

    def compute_by_jax(self, function: PureFunction, values: Sequence[Any]) -> list[Any]:
        """The results that JAX computes."""
        with jax.enable_x64(True):
            run = self.compiled_at(function, avals_of(values))
            return list(map(np.asarray, run(*values)))

    def program(self, function: PureFunction, values: Sequence[Any]) -> JaxProgram:
        """The program of a function at these shapes."""
        return self.program_at(function, avals_of(values))

    def run_on_engine(self, function: PureFunction, values: Sequence[Any]) -> list[Any] | None:
        """The results on the engine; None if the function is not computed there."""
        key = function, avals_of(values)
        program = self.program(function, values)
        if key in self.not_played:
            return None
        try:
            results = program.run(list(map(engine_value, values)))
            return [np.asarray(plain_array(result)) for result in results]
        except Unplayed:
            self.not_played.add(key)
            return None

    # ----------------------------------------------------------------- layers
    def observing(self, observer: LayerObserver) -> ObserverBlock:
        return ObserverBlock(self.observers, observer)

    def tell_layers(self, call: JaxCall, positions: Places, places: Places) -> None:
        """Report the functions whose hand-written derivative is about to run."""
        program = self.program(call.function, call.values)
        for layer in program.pulled_layers(positions, places):
            for observer in self.observers:
                observer.pulled_back(layer)

    def layer_of(self, value: Any) -> HandWritten | None:
        if not isinstance(value, (jax.custom_vjp, jax.custom_jvp)):
            return None
        code = code_of(value.fun)
        if code is None:
            return None
        bwd = code_of(getattr(value, "bwd", None))
        layer = HandWritten(code.co_name, code.co_filename, code.co_firstlineno, bwd)
        return layer if layer.is_users else None

    def takes_context(self, layer: Any) -> bool:
        return False

    def refusal(self, error: BaseException) -> Refusal | None:
        text = text_of(error)
        if isinstance(error, FwdDiffersError):
            return Refusal(text, code="GC139")
        if isinstance(error, (TypeError, ValueError)) and BWD_RULE.search(text):
            return Refusal(" ".join(text.split()))
        return None

    # ----------------------------------------------------------------- perturbed and recorded
    def recomputation(
        self,
        function: Recordable,
        sources: Sequence[Any],
        original: Computed | None,
        takes_gradients: bool,
    ) -> Recomputation | None:
        if self.not_played:
            return None
        return Recomputation(OnEngine(self, function), (), original or function, takes_gradients)


class OnEngine:
    """A function, and its vjp, as programs on the engine."""

    def __init__(self, backend: JaxBackend, function: Recordable) -> None:
        self.backend, self.function = backend, function
        self.program_at = cache(self.trace)

    def program(self, half: str, *arguments: Any) -> tuple[JaxProgram, Any]:
        """The program of the forward or the vjp at arguments of these shapes, and the tree of its
        results, which may include None.
        """
        leaves, tree = jax.tree.flatten(arguments)
        return self.program_at(half, tree, avals_of(leaves))

    def trace(
        self, half: str, tree: Any, avals: Sequence[jax.ShapeDtypeStruct]
    ) -> tuple[JaxProgram, Any]:
        """Trace the program that `program` returns, for arguments with these leaves."""
        compute = getattr(self.function, half)
        with jax.enable_x64(True):
            closed, results = jax.make_jaxpr(compute, return_shape=True)(*tree.unflatten(avals))
        return JaxProgram(closed), jax.tree.structure(results)

    def run(self, half: str, *arguments: Any) -> Any:
        """The results of the forward or of the vjp."""
        program, tree = self.program(half, *arguments)
        results = program.run(list(map(engine_value, jax.tree.leaves(arguments))))
        return jax.tree.unflatten(tree, map(plain_array, results))

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs."""
        return self.run("forward", list(arrays))  # type: ignore[no-any-return]

    def vjp(self, arrays: Sequence[Array], cotangents: Cotangents) -> InputGradients:
        """The gradients."""
        return self.run("vjp", list(arrays), list(cotangents))  # type: ignore[no-any-return]

    def recordable_call(self, arrays: Sequence[Array]) -> RecordableCall:
        """The leaves, and the program of the forward."""
        program, _ = self.program("forward", list(arrays))
        leaves = [Shadow(np.array(a), None, not is_differentiable(a)) for a in arrays]

        def call() -> list[Shadow]:
            for layer in program.applied_layers():
                watchers.get().observer.applied(layer, None)
            return program.run(leaves)

        return leaves, call


def fwd_difference(ours: Sequence[Array], theirs: Sequence[Array]) -> str:
    """How the results of a primal function differ from those of its fwd."""
    for number, (primal, fwd) in enumerate(zip(ours, theirs, strict=True)):
        if not is_close(primal, fwd):
            distances = np.abs(np.asarray(primal) - fwd)
            index = np.unravel_index(int(np.nanargmax(distances)), distances.shape)
            place = f"out[{number}]" if len(ours) > 1 else "out"
            element = f"{place}[{','.join(map(str, index))}]" if index else place
            return (
                f"fwd returns {fwd[index]:.6g} for {element}, the function itself "
                f"{np.asarray(primal)[index]:.6g}: with gradients, it is a different function"
            )
    return "fwd returns other values than the function itself"


def leave_out_note(error: BaseException) -> None:
    """Remove JAX's note about its own frames from an error."""
    notes = [n for n in getattr(error, "__notes__", ()) if "JAX has removed its internal" not in n]
    if notes != getattr(error, "__notes__", notes):
        error.__notes__ = notes


def is_traced(values: Sequence[Any]) -> bool:
    """Whether JAX traces one of the values."""
    return any(isinstance(v, jax.core.Tracer) for v in values)


def has_numbers(value: Any) -> bool:
    """Whether a result is an array of numbers."""
    return hasattr(value, "dtype") and is_plain(value)


def is_scalar(value: Any) -> bool:
    """Whether a result is a plain number, that is, a scalar."""
    return isinstance(value, (int, float, complex))


def avals_of(values: Sequence[Any]) -> tuple[jax.ShapeDtypeStruct, ...]:
    """The shapes and dtypes of arrays."""
    return tuple(jax.ShapeDtypeStruct(v.shape, v.dtype) for v in values)


def trace_program(
    function: Callable[..., Any], avals: Sequence[jax.ShapeDtypeStruct]
) -> JaxProgram:
    """The program of a function at arrays of these shapes."""
    with jax.enable_x64(True):
        return JaxProgram(jax.make_jaxpr(function)(*avals))


def compile_by_xla(function: Callable[..., Any], avals: Sequence[jax.ShapeDtypeStruct]) -> Any:
    """A function compiled by XLA for these shapes."""
    return jax.jit(function).lower(*avals).compile(compiler_options=QUICKLY)
