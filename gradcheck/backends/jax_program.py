"""A jaxpr as a list of equations, computed on the bundled engine.

Calls of `jit`, `custom_vjp` and the like are inlined, so that a function is computed by its primal,
whatever its backward. Every equation is replayed by its row of `gradcheck.backends.jax_primitives`,
so the engine's current observer records or perturbs it. One without a row is computed by JAX, with
JAX's derivative.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import jax
import numpy as np
from jax.extend import core

from gradcheck.backends.base import Array, Spot, is_differentiable
from gradcheck.backends.jax_primitives import PRIMITIVES
from gradcheck.backends.played import ForeignRow, PullBack, Unplayed, record_foreign
from gradcheck.backends.recording import is_library_file, outputs_of, played_at
from pylayer.ops.joining import stack
from pylayer.ops.shape import cast
from pylayer.tensor.dtype import BY_NUMPY
from pylayer.tensor.tensor import Tensor
from pylayer.watch import watchers

JAX_FOLDER = f"{Path(jax.__file__).parent}"
MOST_ITERATIONS = 10_000
"""The most steps of one while_loop: a recording keeps every step."""
EngineValue = Any
"""A Tensor of the engine, or a JAX array whose dtype the engine lacks."""
Slots = list[int]
"""Positions in the list of a program's values."""


@dataclass(frozen=True)
class HandWritten:
    """A function with a derivative written by hand: a custom_vjp, or a custom_jvp.

    It is identified by the place of its primal and, because two may be on one line, by the code of
    its bwd.
    """

    name: str
    file: str
    line: int
    bwd: CodeType | None = None
    """None for a custom_jvp, whose rule a trace does not contain."""

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def is_users(self) -> bool:
        """Whether the function is the user's, not one of JAX's own."""
        return not self.file.startswith(JAX_FOLDER)


@dataclass(eq=False)
class Equation:
    """One equation of a program."""

    eqn: Any
    inputs: Slots
    outputs: Slots
    calls: tuple[Any, ...]
    """The equations of the enclosing jits, the outermost first."""
    parts: list[JaxProgram] = field(default_factory=list)
    """The programs of its branches, or of its loop's condition and body."""

    @property
    def name(self) -> str:
        """The name of the equation's primitive."""
        return str(self.eqn.primitive.name)

    @cached_property
    def spots(self) -> tuple[Spot | None, Spot | None]:
        """The source positions of the user's code and of its caller.

        Jitted code is traced once for all of its callers and has the frames of the first one. So
        JAX's own functions are reported at the call, the user's functions at the line inside.
        """
        frames = frames_of_user(self.eqn)
        for number, call in enumerate(self.calls):
            name = call.params["name"]
            if not any(code.co_name == name for code, _ in frames):
                frames = frames_of_user(self.calls[number])
                break
        return (*frames[:2], None, None)[:2]  # type: ignore[return-value]

    @property
    def floating_outputs(self) -> Slots:
        """The outputs that have derivatives."""
        rows = zip(self.outputs, self.eqn.outvars, strict=True)
        return [slot for slot, v in rows if jax.numpy.issubdtype(v.aval.dtype, np.inexact)]

    # -------------------------------------------------------- computing an equation
    def compute(self, operands: list[EngineValue]) -> list[EngineValue]:
        """The results of the equation, computed by its row or by JAX."""
        loop = LOOPS.get(self.name)
        if loop is not None:
            return loop(self, operands)
        try:
            return self.play(operands)
        except Unplayed:
            return self.compute_by_jax(operands)

    def play(self, operands: list[EngineValue]) -> list[EngineValue]:
        """The results of the equation, computed by its row. Raises Unplayed if the row does not
        cover the equation.
        """
        row = PRIMITIVES.get(self.name)
        if row is None or not all(isinstance(x, Tensor) for x in operands):
            raise Unplayed
        arguments = self.in_one_dtype(operands)
        try:
            results = outputs_of(row(*arguments, **self.eqn.params))
        except (ValueError, TypeError, IndexError, NotImplementedError) as error:
            raise Unplayed from error  # the engine has no such operation
        rows = zip(results, self.eqn.outvars, strict=True)
        return [self.fit_dtype(result, variable) for result, variable in rows]

    def fit_dtype(self, result: Tensor, variable: Any) -> Tensor:
        """A result in the dtype of its variable, or a wider one where casts are left out.

        Raises Unplayed if its shape differs.
        """
        wanted = variable.aval
        if result.array.shape != wanted.shape:
            raise Unplayed
        dtype = np.dtype(wanted.dtype)
        is_wider = (
            is_differentiable(result.array)
            and dtype.kind in "fcV"
            and result.array.dtype.itemsize > dtype.itemsize
        )
        return result if is_wider or result.array.dtype == dtype else cast(result, dtype.name)

    def in_one_dtype(self, operands: list[EngineValue]) -> list[EngineValue]:
        """Operands that should share a floating dtype, cast to the widest among them: a cast may
        have been left out.
        """
        variables = self.eqn.invars
        if not all(isinstance(x, Tensor) for x in operands):
            return operands
        dtypes = {
            x.array.dtype
            for x, v in zip(operands, variables, strict=True)
            if is_differentiable(x.array) and v.aval.dtype == variables[-1].aval.dtype
        }
        if len(dtypes) < 2:
            return operands
        widest = max(dtypes, key=lambda dtype: dtype.itemsize)
        return [cast(x, widest.name) if x.array.dtype in dtypes else x for x in operands]

    def compute_by_jax(self, operands: list[EngineValue]) -> list[EngineValue]:
        """The results, recorded as one step whose derivative is JAX's."""
        arrays = list(map(plain_array, self.in_one_dtype(operands)))
        results = bind(self.eqn, arrays)
        if not all(map(is_known, results)):
            return list(map(engine_value, results))
        tensors = {k: x for k, x in enumerate(operands) if isinstance(x, Tensor)}
        floating = {k: x for k, x in tensors.items() if is_differentiable(x.array)}
        if floating and not self.has_derivative:
            for x in floating.values():
                watchers.get().observer.left(x, self.name)
            return list(map(engine_value, results))
        pulls = [(x, jax_pull(self.eqn, arrays, k)) for k, x in floating.items()]
        shadows = record_foreign(self.name, pulls, [np.asarray(r) for r in results])
        if all(x.node is None for x in shadows):
            row = ForeignRow(self.name, ())
            watchers.get().observer.computed(row, operands, [x.array for x in shadows])
        return list(shadows)

    @cached_property
    def has_derivative(self) -> bool:
        """Whether JAX differentiates the equation: false for a callback or a call of other code."""
        primitive, params = self.eqn.primitive, self.eqn.params

        def gradients(*arguments: Any) -> Any:
            results, back = jax.vjp(lambda *xs: primitive.bind(*xs, **params), *arguments)
            return back(results)

        try:
            with jax.enable_x64(True):
                jax.eval_shape(gradients, *(v.aval for v in self.eqn.invars))
        except Exception:  # the type of JAX's error depends on the primitive
            return False
        return True


def bind(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """Let JAX compute an equation."""
    with jax.enable_x64(True):
        arrays = jax.device_put(list(map(plain_array, operands)))
        results = eqn.primitive.bind(*arrays, **eqn.params)
    return list(results) if eqn.primitive.multiple_results else [results]


def jax_pull(eqn: Any, arrays: Sequence[Array], position: int) -> PullBack:
    """The vjp of one operand, in double precision."""

    def pull(cotangents: list[Array]) -> Array:
        with jax.enable_x64(True):
            wide = [jax.numpy.asarray(to_double(a)) for a in arrays]

            def of_operand(x: Any) -> list[Any]:
                return bind(eqn, [*wide[:position], x, *wide[position + 1 :]])

            outputs, back = jax.vjp(of_operand, wide[position])
            starts = [
                jax.numpy.asarray(np.conj(c), output.dtype)
                if jax.numpy.issubdtype(output.dtype, jax.numpy.inexact)
                else np.zeros(output.shape, jax.dtypes.float0)
                for c, output in zip(cotangents, outputs, strict=True)
            ]
            return np.conj(np.asarray(back(starts)[0]))

    return pull


def to_double(array: Array) -> Array:
    """An array of floating or complex numbers in double precision; others unchanged."""
    if not is_plain(array) or not is_differentiable(array):
        return array
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


def is_plain(array: Array) -> bool:
    """Whether NumPy knows an array's dtype, which it does not for random keys."""
    return isinstance(array.dtype, np.dtype)


def is_known(array: Array) -> bool:
    """Whether the engine has an array's dtype."""
    return is_plain(array) and array.dtype in BY_NUMPY


def engine_value(array: Array) -> EngineValue:
    """An array in the form in which a program keeps it."""
    if is_known(array):
        return Tensor(np.array(array, order="C"))
    return array


def plain_array(value: EngineValue) -> Array:
    """The array of a value."""
    return value.array if isinstance(value, Tensor) else value


def frames_of_user(eqn: Any) -> list[Spot]:
    """The frames of the user's code in which an equation was traced, the innermost first."""
    traceback = eqn.source_info.traceback
    if traceback is None:
        return []
    return [
        (code, instruction)
        for code, instruction in zip(*traceback.raw_frames(), strict=True)
        if not code.co_filename.startswith((JAX_FOLDER, "<frozen"))
        and not is_library_file(code.co_filename)
    ]


# --------------------------------------------------------------------------- programs
INLINED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}
"""Primitives that call a jaxpr, and the parameter that has it."""
PARTS: dict[str, Callable[[Any], list[Any]]] = {
    "cond": lambda params: list(params["branches"]),
    "scan": lambda params: [params["jaxpr"]],
    "while": lambda params: [params["cond_jaxpr"], params["body_jaxpr"]],
}
"""The jaxprs in the parameters of control flow."""


class JaxProgram:
    """The equations of a jaxpr that its outputs depend on, in order, calls inlined."""

    def __init__(self, closed: Any) -> None:
        self.values: list[EngineValue] = []
        """Constants in their slots, None in the others."""
        self.equations: list[Equation] = []
        self.layers: list[tuple[HandWritten, Slots, Slots]] = []
        """The user's functions with a hand-written derivative, with their inputs and outputs."""
        self.inputs = [self.new_slot() for _ in closed.jaxpr.invars]
        self.outputs = self.inline(closed.jaxpr, closed.consts, self.inputs, ())
        self.leave_out_unused()

    def new_slot(self, value: EngineValue = None) -> int:
        """Reserve a slot for one more value."""
        self.values.append(value)
        return len(self.values) - 1

    def inline(
        self, jaxpr: Any, constants: Sequence[Any], inputs: Slots, calls: tuple[Any, ...]
    ) -> Slots:
        """Add the equations of a jaxpr; returns the slots of its outputs."""
        scope = dict(zip(jaxpr.invars, inputs, strict=True))
        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
            scope[variable] = self.new_slot(engine_value(constant))

        def slot(variable: Any) -> int:
            if isinstance(variable, core.Literal):
                return self.new_slot(engine_value(np.asarray(variable.val, variable.aval.dtype)))
            return int(scope[variable])

        for eqn in jaxpr.eqns:
            operands = list(map(slot, eqn.invars))
            scope.update(zip(eqn.outvars, self.add(eqn, operands, calls), strict=True))
        return list(map(slot, jaxpr.outvars))

    def add(self, eqn: Any, inputs: Slots, calls: tuple[Any, ...]) -> Slots:
        """Add an equation; returns the slots of its outputs."""
        name, params = eqn.primitive.name, eqn.params
        if name in INLINED:
            called = params[INLINED[name]]
            is_jit = "name" in params
            below = (*calls, eqn) if is_jit else calls
            jaxpr, constants = getattr(called, "jaxpr", called), getattr(called, "consts", ())
            outputs = self.inline(jaxpr, constants, inputs, below)
            if name.startswith("custom") and (layer := hand_written(jaxpr, params)).is_users:
                self.layers.append((layer, inputs, outputs))
            return outputs
        operands = [self.values[slot] for slot in inputs]
        is_constant = all(x is not None for x in operands)
        if is_constant and not all(isinstance(x, Tensor) for x in operands):
            # such as random bits, for which the engine has no dtype
            return [self.new_slot(engine_value(result)) for result in bind(eqn, operands)]
        outputs = [self.new_slot() for _ in eqn.outvars]
        parts = [JaxProgram(closed) for closed in PARTS.get(name, lambda _: [])(params)]
        self.equations.append(Equation(eqn, inputs, outputs, calls, parts))
        return outputs

    def leave_out_unused(self) -> None:
        """Leave out equations that no output depends on."""
        needed = set(self.outputs)
        needed_equations = []
        for equation in reversed(self.equations):
            if needed.intersection(equation.outputs):
                needed.update(equation.inputs)
                needed_equations.append(equation)
        self.equations = needed_equations[::-1]

    def run(self, inputs: Sequence[EngineValue]) -> list[EngineValue]:
        """The outputs at some inputs."""
        values = list(self.values)
        for slot, value in zip(self.inputs, inputs, strict=True):
            values[slot] = value
        before = played_at.get()
        try:
            for equation in self.equations:
                played_at.set(equation)
                results = equation.compute([values[slot] for slot in equation.inputs])
                for slot, value in zip(equation.outputs, results, strict=True):
                    values[slot] = value
        finally:
            played_at.set(before)
        return [values[slot] for slot in self.outputs]

    def programs(self) -> Iterator[JaxProgram]:
        """This program, and those of its loops and branches, at any depth."""
        yield self
        for equation in self.equations:
            for program in equation.parts:
                yield from program.programs()

    def coarsest_dtype(self) -> Any:
        """The floating dtype with the fewest digits among the results of its equations; None if
        there is none.
        """
        results = (v.aval for p in self.programs() for e in p.equations for v in e.eqn.outvars)
        dtypes = {aval.dtype for aval in results if jax.numpy.issubdtype(aval.dtype, np.inexact)}
        return max(dtypes, key=lambda dtype: float(jax.numpy.finfo(dtype).eps), default=None)

    def applied_layers(self) -> list[HandWritten]:
        """The user's functions with a hand-written derivative, also inside loops."""
        return list({layer: None for p in self.programs() for layer, _, _ in p.layers})

    def slots_between(self, sources: Sequence[int], ends: Sequence[int]) -> set[int]:
        """The slots of floating values on a path from some inputs to some outputs, both given by
        their numbers. Results of `stop_gradient` depend on nothing.
        """
        flows = [equation for equation in self.equations if equation.name != "stop_gradient"]
        reached = {self.inputs[number] for number in sources}
        for equation in flows:
            if reached.intersection(equation.inputs):
                reached.update(equation.floating_outputs)
        needed = {self.outputs[number] for number in ends}
        for equation in reversed(flows):
            if needed.intersection(equation.outputs):
                needed.update(equation.inputs)
        return reached & needed

    def pulled_layers(self, sources: Sequence[int], ends: Sequence[int]) -> list[HandWritten]:
        """The layers through which a gradient flows from outputs to inputs, both given by their
        numbers.
        """
        between = self.slots_between(sources, ends)
        layers = [
            layer
            for layer, inputs, outputs in self.layers
            if between.intersection(inputs) and between.intersection(outputs)
        ]
        for equation in self.equations:
            if between.intersection(equation.outputs):
                for program in equation.parts:
                    layers += program.applied_layers()
        return list(dict.fromkeys(layers))


def hand_written(jaxpr: Any, params: dict[str, Any]) -> HandWritten:
    """The function whose primal a jaxpr is; `parameters` are those of its call."""
    info, bwd = jaxpr.debug_info, code_of(params.get("bwd"))
    line = int(info.func_lineno or 0)
    return HandWritten(str(info.func_name), str(info.func_filename), line, bwd)


def code_of(function: Any) -> CodeType | None:
    """The code of a function, or of the one that partials and JAX's own functions are made of; None
    if it has none.
    """
    while (inner := inner_function(function)) is not None:
        function = inner
    return getattr(function, "__code__", None)


def inner_function(function: Any) -> Any:
    """The function inside a partial, inside JAX's wrapper of a function, or inside the bwd of a
    batch that `vmap` makes of a bwd; None if there is none.
    """
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType) and code.co_filename.startswith(JAX_FOLDER):
        return inspect.getclosurevars(function).nonlocals.get("bwd")
    return getattr(function, "func", None) or getattr(function, "f", None)


# --------------------------------------------------------------------------- control flow
def cond(equation: Equation, operands: list[EngineValue]) -> list[EngineValue]:
    """The branch that is taken."""
    index = int(plain_array(operands[0]))
    return equation.parts[min(max(index, 0), len(equation.parts) - 1)].run(operands[1:])


def while_loop(equation: Equation, operands: list[EngineValue]) -> list[EngineValue]:
    """A loop, step by step.

    Raises:
        Unplayed: it does not end.
    """
    condition, body = equation.parts
    params = equation.eqn.params
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    for_condition, for_body, state = operands[:first], operands[first:second], operands[second:]
    for _ in range(MOST_ITERATIONS):
        if not bool(plain_array(condition.run([*for_condition, *state])[0])):
            return state
        state = body.run([*for_body, *state])
    raise Unplayed(f"a while_loop of more than {MOST_ITERATIONS:,} iterations")


def scan(equation: Equation, operands: list[EngineValue]) -> list[EngineValue]:
    """A loop over the first axis of the operands, step by step."""
    params, (body,) = equation.eqn.params, equation.parts
    first, second = params["num_consts"], params["num_consts"] + params["num_carry"]
    constants, state, sequences = operands[:first], operands[first:second], operands[second:]
    columns: list[list[EngineValue]] = [[] for _ in equation.outputs[params["num_carry"] :]]
    steps = range(params["length"])
    for step in reversed(steps) if params["reverse"] else steps:
        results = body.run([*constants, *state, *(sequence[step] for sequence in sequences)])
        state = results[: params["num_carry"]]
        for column, item in zip(columns, results[params["num_carry"] :], strict=True):
            column.append(item)
    variables = equation.eqn.outvars[params["num_carry"] :]
    if params["reverse"]:
        columns = [column[::-1] for column in columns]
    stacks = [stack_items(items, v) for items, v in zip(columns, variables, strict=True)]
    return [*state, *stacks]


def stack_items(items: Sequence[EngineValue], variable: Any) -> EngineValue:
    """Values along a new first axis."""
    if not items:
        return engine_value(np.zeros(variable.aval.shape, variable.aval.dtype))
    if isinstance(items[0], Tensor):
        return stack(list(items), 0)
    return jax.numpy.stack(items)


LOOPS: dict[str, Callable[[Equation, list[EngineValue]], list[EngineValue]]] = {
    "cond": cond,
    "scan": scan,
    "while": while_loop,
}
