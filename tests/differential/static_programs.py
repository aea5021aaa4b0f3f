"""Programs of static mode, drawn at random: what is created, what is computed of it, and which gradients are asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from described import Library

SHAPE = (2, 3)
VALUES = np.array([[0.75, -1.5, 2.25], [1.25, 0.5, -0.25]], "float32")


def parameter(paddle: Library, trainable: bool) -> Any:
    """A parameter with the same values on either library."""
    made = paddle.static.create_parameter(
        list(SHAPE), "float32", default_initializer=paddle.nn.initializer.Assign(VALUES + 0.5)
    )
    made.stop_gradient = not trainable
    return made


SOURCES: dict[str, Callable[[Library], Any]] = {
    "data": lambda paddle: paddle.static.data("x", list(SHAPE), "float32"),
    "more data": lambda paddle: paddle.static.data("x", list(SHAPE), "float32"),
    "data of any length": lambda paddle: paddle.static.data("x", [None, SHAPE[1]], "float32"),
    "parameter": lambda paddle: parameter(paddle, True),
    "frozen": lambda paddle: parameter(paddle, False),
    "full": lambda paddle: paddle.full(list(SHAPE), 1.5),
    "zeros": lambda paddle: paddle.zeros(list(SHAPE)),
    "ones": lambda paddle: paddle.ones(list(SHAPE)),
    "assign": lambda paddle: paddle.scale(paddle.assign(VALUES), 1.0),
    "to_tensor": lambda paddle: paddle.scale(paddle.to_tensor(VALUES), 1.0),
    "arange": lambda paddle: paddle.arange(0, 6, dtype="float32").reshape(list(SHAPE)),
    "linspace": lambda paddle: paddle.linspace(-1.0, 2.0, 6).reshape(list(SHAPE)),
    "eye": lambda paddle: paddle.scale(paddle.eye(*SHAPE), 1.0),
    "row": lambda paddle: paddle.scale(paddle.assign(VALUES[:1]), 1.0),
}
"""Each gives a Tensor of `SHAPE`, or one that broadcasts to it.

Paddle gives of the gradient of what an operation without one made that of its first use alone, unless it is `full`: such
are used once, by `scale`.
"""

UNARY: dict[str, Callable[[Library, Any], Any]] = {
    "tanh": lambda paddle, a: paddle.tanh(a),
    "exp": lambda paddle, a: paddle.exp(a * 0.25),
    "abs": lambda paddle, a: paddle.abs(a),
    "square": lambda paddle, a: a * a,
    "scale": lambda paddle, a: paddle.scale(a, 2.0, 1.0),
    "minus": lambda paddle, a: 1.0 - a,
    "softmax": lambda paddle, a: paddle.nn.functional.softmax(a),
    "relu": lambda paddle, a: paddle.nn.functional.relu(a),
    "rows": lambda paddle, a: paddle.concat([a[1:], a[:1]], 0),
    "turned": lambda paddle, a: paddle.transpose(paddle.transpose(a, [1, 0]), [1, 0]),
    "flat": lambda paddle, a: paddle.reshape(paddle.reshape(a, [-1]), [-1, 3]),
    "mean": lambda paddle, a: a - paddle.mean(a, 0, keepdim=True),
    "assign": lambda paddle, a: paddle.assign(a),
    "clone": lambda paddle, a: a.clone(),
    "detach": lambda paddle, a: a.detach(),
    "cast": lambda paddle, a: a.astype("float64").astype("float32"),
    "by integers": lambda paddle, a: a.astype("int32").astype("float32"),
    "floor": lambda paddle, a: paddle.floor(a),
    "round": lambda paddle, a: paddle.round(a),
    "sign": lambda paddle, a: paddle.sign(a),
    "by twos": lambda paddle, a: paddle.scale(a // 2, 1.0),
    "mask": lambda paddle, a: (a > 0.1).astype("float32"),
    "order": lambda paddle, a: paddle.argsort(a).astype("float32"),
    "ones_like": lambda paddle, a: paddle.ones_like(a),
    "zeros_like": lambda paddle, a: paddle.zeros_like(a),
    "full_like": lambda paddle, a: paddle.full_like(a, 0.5),
    "top": lambda paddle, a: paddle.topk(a, 3)[0],
    "split": lambda paddle, a: paddle.concat(list(reversed(paddle.split(a, 3, 1))), 1),
    "gathered": lambda paddle, a: paddle.index_select(a, paddle.to_tensor([2, 0, 1]), 1),
}
BINARY: dict[str, Callable[[Library, Any, Any], Any]] = {
    "add": lambda paddle, a, b: a + b,
    "subtract": lambda paddle, a, b: a - b,
    "multiply": lambda paddle, a, b: a * b,
    "divide": lambda paddle, a, b: a / (paddle.abs(b) + 1.0),
    "maximum": lambda paddle, a, b: paddle.maximum(a, b * 0.7 + 0.013),  # no ties
    "matmul": lambda paddle, a, b: a @ paddle.transpose(b, [1, 0]) @ b,
    "where": lambda paddle, a, b: paddle.where(a > b, a, b),
    "joined": lambda paddle, a, b: paddle.concat([a, b], 0)[:2],
    "cond": lambda paddle, a, b: paddle.static.nn.cond(paddle.sum(a) > 0, lambda: a * b, lambda: a - b),
    "pylayer": lambda paddle, a, b: (
        a if a.stop_gradient else paddle.static.nn.static_pylayer(lambda c: paddle.exp(c), [a], lambda g: g * b)
    ),
}

TWICE = (
    "tanh",
    "exp",
    "square",
    "scale",
    "minus",
    "assign",
    "clone",
    "add",
    "subtract",
    "multiply",
    "matmul",
)
"""What Paddle differentiates twice in static mode, beside which some operations end the process."""

RECORDED_ANYWAY = ("assign", "clone")
"""What keeps its gradient under ``no_grad`` in static mode of Paddle."""


@dataclass(frozen=True)
class Step:
    """One value of a program.

    `operands` are the numbers of the values it is computed of. `stop_gradient` is set on it, unless None.
    """

    table: str
    name: str
    operands: tuple[int, ...] = ()
    no_grad: bool = False
    stop_gradient: bool | None = None


@dataclass(frozen=True)
class StaticProgram:
    """The values, the numbers of those in the loss and of those whose gradients are wanted, and how they are asked for."""

    steps: tuple[Step, ...]
    loss: tuple[int, ...]
    wanted: tuple[int, ...]
    barred: tuple[int, ...] = ()
    ask: str = "gradients"
    cotangent: bool = False


def drawn(seed: int) -> StaticProgram:
    """The program of a number."""
    random = Random(seed)
    steps: list[Step] = []
    for _ in range(random.randint(1, 4)):
        name = random.choice(list(SOURCES))
        steps.append(Step("SOURCES", name, stop_gradient=random.choice([None, False, False, True])))
    for _ in range(random.randint(1, 7)):
        table = random.choice(["UNARY", "BINARY"])
        name = random.choice(list(UNARY if table == "UNARY" else BINARY))
        operands = tuple(random.randrange(len(steps)) for _ in range(1 if table == "UNARY" else 2))
        set_to = random.choice([None] * 10 + [True, False])
        no_grad = random.random() < 0.06 and name not in RECORDED_ANYWAY
        steps.append(Step(table, name, operands, no_grad, set_to))
    numbers = range(len(steps))
    loss = tuple(random.sample(numbers, min(len(steps), random.randint(1, 2))))
    if random.random() < 0.8:
        loss = (len(steps) - 1, *loss[1:])
    wanted = tuple(random.sample(numbers, random.randint(1, min(4, len(steps)))))
    barred = (random.choice(numbers),) if random.random() < 0.15 else ()
    ask = random.choice(["gradients", "gradients", "twice", "append_backward", "append_backward of"])
    if ask == "twice":  # of sources: that of a result depends on whether a formula reads it
        steps = [s for s in steps if s.table == "SOURCES" or s.name in TWICE]
        steps = [replace(s, operands=tuple(k % max(n, 1) for k in s.operands)) for n, s in enumerate(steps)]
        wanted = tuple(k for k, s in enumerate(steps) if s.table == "SOURCES")
        loss, barred = (len(steps) - 1,), ()
    return StaticProgram(tuple(steps), loss, wanted, barred, ask, random.random() < 0.3)


def found(paddle: Library, program: StaticProgram) -> list[Any]:
    """The gradients that a library gives, as arrays, None where it gives none."""
    static = paddle.static
    with in_static_mode(paddle):
        values = list(built(paddle, program))
        loss: Any = 0.0
        for number in program.loss:
            loss = loss + paddle.sum(values[number] * 1.5)
        wanted = [values[number] for number in program.wanted]
        barred = {values[number] for number in program.barred} or None
        if program.ask.startswith("append_backward"):
            own = wanted if program.ask.endswith("of") else None
            pairs = static.append_backward(loss, parameter_list=own, no_grad_set=barred)
            gradients = [next((g for p, g in pairs if p.is_same(w)), None) for w in wanted]
        else:
            cotangent = paddle.full([], 2.0) if program.cotangent else None
            gradients = static.gradients(loss, wanted, cotangent, barred)
            if program.ask == "twice":
                live = [paddle.sum(g * g) for g in gradients if g is not None]
                gradients = gradients + (static.gradients(live, wanted, None, barred) if live else [])
        fetched = [g for g in gradients if g is not None]
        executor = static.Executor(paddle.CPUPlace())
        executor.run(static.default_startup_program())
        arrays = iter(executor.run(static.default_main_program(), feed={"x": VALUES}, fetch_list=fetched))
        return [None if g is None else next(arrays) for g in gradients]


def built(paddle: Library, program: StaticProgram) -> Iterator[Any]:
    """The values of a program, in the default program of a library."""
    values: list[Any] = []
    for step in program.steps:
        function: Any = globals()[step.table][step.name]
        with paddle.no_grad() if step.no_grad else contextlib.nullcontext():
            made = function(paddle, *(values[k] for k in step.operands))
        if step.stop_gradient is not None:
            made.stop_gradient = step.stop_gradient
        values.append(made)
        yield made


@contextlib.contextmanager
def in_static_mode(paddle: Library) -> Iterator[None]:
    """Static mode, with programs of its own."""
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
            yield
    finally:
        paddle.disable_static()
