"""Programs as one Python function each, on numbered slots, each slot emptied after its last use.

A call of an operation is one line, ``s[7] = k3(s[5], s[6])``, and so is the vjp of one, ``s[9] = k4(s[8], s[6])``: what
it reads lies in the slots until then. Branches are an ``if``. Whatever is rarer is the call of a function.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pylayer.array import XP
from pylayer.op_node import unbroadcast
from pylayer.static.calls import gradient_of_gradient, node_of, pulled_back
from pylayer.static.cond import Conditional
from pylayer.static.operators import Assign, Call, FunctionCall, Gradient
from pylayer.static.program import Operator, Program
from pylayer.static.pylayer_op import PyLayerCall, PyLayerGradient
from pylayer.static.sizes import UnknownSize
from pylayer.static.steps import Step, free
from pylayer.static.update import Initialize, Update
from pylayer.static.values import resolved, tensors_in
from pylayer.static.variable import Variable
from pylayer.tensor import Tensor
from pylayer.vjp import Vjp, raw_ops

Slots = list[Any]


class Compiled(NamedTuple):
    """A program ready to run.

    `size` is the number of slots; `feeds` and `captured` say what goes into which before `run` is called with them, and
    `fetched` where the results are then. `operators` are those of the lines of `run`, for messages.
    """

    size: int
    feeds: list[tuple[Variable, int]]
    captured: list[tuple[Tensor, int]]
    run: Callable[[Slots], None]
    operators: list[Operator | None]
    fetched: list[int]


FILE = "<static program>"
"""What tracebacks call the function of a program."""


def compiled(program: Program, fetches: Sequence[Tensor], array_type: type) -> Compiled:
    """Compile `program` for arrays of one type."""
    compiler = Compiler(program, array_type)
    steps = list(compiler.steps(program.global_block().ops))
    fetched = [compiler.slot(tensor) for tensor in fetches]
    free(steps, keep=set(fetched))
    lines: list[tuple[str, Operator | None]] = [("def run(s):", None), ("    pass", None)]
    for step in steps:
        lines += step.source()
    exec(compile("\n".join(line for line, _ in lines), FILE, "exec"), compiler.constants)
    sources = list(compiler.slots.items())
    return Compiled(
        size=compiler.size,
        feeds=[(t, slot) for t, slot in sources if isinstance(t, Variable) and t.is_data],
        captured=[(t, slot) for t, slot in sources if not isinstance(t, Variable)],
        run=compiler.constants["run"],
        operators=[op for _, op in lines],
        fetched=fetched,
    )


class Compiler:
    """Gives out slots and turns operators into steps."""

    def __init__(self, program: Program, array_type: type) -> None:
        self.xp = XP[array_type]
        self.array_type = array_type
        self.slots: dict[Tensor, int] = {}
        self.kept: dict[Any, int] = {}
        """Slots of what is kept for a gradient beside arrays: a shape, a dtype, or the node of a call."""
        self.size = 0
        self.constants: dict[str, Any] = {
            "asarray": self.xp.asarray,
            "F": raw_ops[array_type],
            "unbroadcast": unbroadcast,
        }
        self._numbers = itertools.count()
        self.wanted: dict[Operator, set[int]] = {}
        """By call, the inputs whose gradient is computed somewhere."""
        for op in program.operators():
            if isinstance(op, Gradient) and isinstance(op.of, Call):
                self.wanted.setdefault(op.of, set()).update(op.wanted)

    def new_slot(self) -> int:
        """One more slot."""
        self.size += 1
        return self.size - 1

    def slot(self, tensor: Tensor) -> int:
        """The slot of a Tensor or Variable."""
        if tensor not in self.slots:
            self.slots[tensor] = self.new_slot()
        return self.slots[tensor]

    def claim(self, value: Any) -> list[int]:
        """The slots of the Tensors in a value."""
        return [self.slot(t) for t in tensors_in(value)]

    def constant(self, value: Any) -> str:
        """A name for something that is the same in every run."""
        name = f"k{next(self._numbers)}"
        self.constants[name] = value
        return name

    def text(self, value: Any) -> str:
        """The expression for an argument of a call."""
        if isinstance(value, Tensor):
            return f"s[{self.slot(value)}]"
        if not self.claim(value):
            return repr(value) if value is None or type(value) in (bool, int) else self.constant(value)
        return f"{self.constant(self.resolver(value, lambda array: array))}(s)"

    def resolver(self, value: Any, wrap: Callable[[Any], Any]) -> Callable[[Slots], Any]:
        """What gives a value in the run, with ``wrap(array)`` for Tensors and numbers for sizes."""

        def resolve(slots: Slots) -> Any:
            def size_of(size: UnknownSize) -> int:
                assert size.variable is not None
                return slots[self.slots[size.variable]].shape[size.axis]  # type: ignore[no-any-return]

            return resolved(value, lambda t: wrap(slots[self.slots[t]]), size_of)

        return resolve

    def steps(self, ops: Sequence[Operator]) -> Iterator[Step]:
        """The steps of operators, in order."""
        for op in ops:
            yield from self.step(op)

    # ----------------------------------------------------------------- one operator
    @functools.singledispatchmethod
    def step(self, op: Operator) -> Iterator[Step]:
        """The steps of an operator."""
        raise NotImplementedError(type(op).__name__)

    @step.register
    def _(self, op: Call) -> Iterator[Step]:
        outs = [self.slot(out) for out in op.outputs]
        arguments = [self.text(value) for value in op.arguments]
        uses = [*self.claim(op.arguments), *outs]
        call = f"{self.constant(op.op.kernels[self.array_type])}({', '.join(arguments)})"
        if op.several:
            lines = [f"r = {call}", *(f"s[{slot}] = asarray(r[{k}])" for k, slot in enumerate(outs)), "r = None"]
        else:
            lines = [f"s[{outs[0]}] = {call if op.outputs[0].ndim else f'asarray({call})'}"]
        if op in self.wanted and is_simple(op):
            for key, line in self.keeping(op, arguments):
                self.kept[op, key] = self.new_slot()
                uses.append(self.kept[op, key])
                lines.append(f"s[{self.kept[op, key]}] = {line}")
        elif op in self.wanted:
            node = self.kept[op, "node"] = self.new_slot()
            uses.append(node)
            made = self.constant(node_of(op, self.wanted[op]))
            lines.append(f"s[{node}] = {made}([{', '.join(arguments)}], [{', '.join(f's[{slot}]' for slot in outs)}])")
        yield Step(op, "\n".join(lines), uses)

    def keeping(self, op: Call, arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
        """What the vjps that are wanted read beside whole arrays: a key and the expression for each."""
        found: dict[str, str] = {}
        for k, vjp in wanted_vjps(op, self.wanted[op]):
            for name in vjp.reads:
                base, _, attribute = Vjp.source(name, op.op.arguments).partition(".")
                if attribute:
                    found[name] = f"{arguments[op.op.arguments.index(base)]}.{attribute}"
            if not same_shape(op.input_at(k), op.outputs[0]):
                name = op.op.inputs[k]
                found[f"{name}_shape"] = f"{arguments[op.op.arguments.index(name)]}.shape"
        yield from found.items()

    @step.register
    def _(self, op: Gradient) -> Iterator[Step]:
        outs = [self.slot(out) for out in op.outputs]
        given = [None if c is None else self.slot(c) for c in op.cotangents]
        uses = [*outs, *(slot for slot in given if slot is not None)]
        call = op.of
        if not isinstance(call, Call):
            inputs = [(self.slot(t), t.dtype.is_differentiable) for t in op.inputs if t is not None]
            run = gradient_of_gradient(op, inputs, outs, lambda value: self.resolver(value, Tensor))
            yield Step(op, f"{self.constant(run)}(s)", [*uses, *self.claim(op.tensors())])
        elif is_simple(call):
            vjps = dict(wanted_vjps(call, self.wanted[call]))
            for position, out in zip(op.wanted, outs, strict=True):
                yield self.vjp_step(op, call, position, vjps[position], given[0], out)
        else:
            node = self.kept[call, "node"]
            run = pulled_back(node, call.several, given, dict(zip(op.wanted, outs, strict=True)))
            yield Step(op, f"{self.constant(run)}(s)", [*uses, node])

    def vjp_step(self, op: Gradient, call: Call, position: int, vjp: Vjp, cotangent: int | None, out: int) -> Step:
        """One line: the vjp of one input, and where sizes may differ its sum over what was broadcast."""
        uses, values = [out], []
        if cotangent is not None:
            uses.append(cotangent)
        for name in vjp.reads:
            if (call, name) in self.kept:
                uses.append(self.kept[call, name])
                values.append(f"s[{self.kept[call, name]}]")
                continue
            argument: Any = call.outputs[0] if name == "out" else position
            if name in call.op.arguments:
                argument = call.arguments[call.op.arguments.index(name)]
            uses += self.claim(argument)
            values.append(self.text(argument))
        rule, read = self.constant(vjp.rule), [*(["F"] if vjp.takes_ops else []), *values]
        if vjp.multiplies:
            result = f"{rule}({', '.join(read)}).conjugate() * s[{cotangent}]"
        else:
            result = f"{rule}({', '.join([f's[{cotangent}]', *read])})"
        source = call.input_at(position)
        line = f"s[{out}] = {result if source.ndim else f'asarray({result})'}"
        if not same_shape(source, call.outputs[0]):
            shape = self.kept[call, f"{call.op.inputs[position]}_shape"]
            uses.append(shape)
            line += f"\nif s[{out}].shape != s[{shape}]: s[{out}] = asarray(unbroadcast(F, s[{out}], s[{shape}]))"
        return Step(op, line, uses)

    @step.register
    def _(self, op: Assign) -> Iterator[Step]:
        source, out = self.slot(op.tensors()[0]), self.slot(op.outputs[0])
        like = op.like
        if like is None or same_shape(like, op.tensors()[0]):
            yield Step(op, f"s[{out}] = s[{source}]", [source, out])
            return
        model, name = self.slot(like), like.name

        def check(gradient: Any, value: Any) -> Any:
            if gradient.shape != value.shape:
                raise AssertionError(
                    f"shape of inp_grad({list(gradient.shape)}) and fwd_input({list(value.shape)}) should be the same: "
                    f"the gradient that backward_fn returns for {name}."
                )
            return gradient

        yield Step(op, f"s[{out}] = {self.constant(check)}(s[{source}], s[{model}])", [source, out, model])

    @step.register
    def _(self, op: FunctionCall) -> Iterator[Step]:
        arguments, function, out = self.resolver((op.args, op.kwargs), Tensor), op.function, self.slot(op.outputs[0])

        def make(slots: Slots) -> Any:
            args, kwargs = arguments(slots)
            return function(*args, **kwargs).array

        yield Step(op, f"s[{out}] = {self.constant(make)}(s)", [*self.claim((op.args, op.kwargs)), out])

    @step.register
    def _(self, op: PyLayerCall) -> Iterator[Step]:
        yield from self.steps(op.forward.ops)

    @step.register
    def _(self, op: PyLayerGradient) -> Iterator[Step]:
        yield from self.steps(op.backward.ops)

    @step.register
    def _(self, op: Conditional) -> Iterator[Step]:
        condition = self.slot(op.condition)
        yield Step(
            op,
            f"if s[{condition}].reshape(-1)[0].item():",
            [condition],
            [list(self.steps(block.ops)) for block in op.branches],
        )

    @step.register
    def _(self, op: Update) -> Iterator[Step]:
        gradients = [self.slot(gradient) for _, gradient in op.pairs]
        yield Step(op, f"{self.constant(op.apply)}([{', '.join(f's[{slot}]' for slot in gradients)}])", gradients)

    @step.register
    def _(self, op: Initialize) -> Iterator[Step]:
        yield Step(op, f"{self.constant(op.apply)}()", [])


def is_simple(op: Call) -> bool:
    """Whether each vjp is a line of its own: one output, no list of inputs, no argument that is made up in the run."""
    made_up = any(not isinstance(value, Tensor) and tensors_in(value) for value in op.arguments)
    return not (op.several or op.op.many or made_up)


def wanted_vjps(op: Call, wanted: set[int]) -> Iterator[tuple[int, Vjp]]:
    """The vjps of the inputs at the positions `wanted`."""
    for k, vjp in zip(range(len(op.inputs)), op.op.vjps, strict=False):
        if k in wanted:
            yield k, vjp


def same_shape(one: Tensor, other: Tensor) -> bool:
    """Whether two Tensors have the same shape in every run."""
    pair = [t._spec.shape if isinstance(t, Variable) else tuple(t.array.shape) for t in (one, other)]
    return len(pair[0]) == len(pair[1]) and all(
        m is n or (isinstance(m, int) and isinstance(n, int) and m == n) for m, n in zip(*pair, strict=True)
    )
