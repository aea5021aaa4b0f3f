"""Programs of dynamic mode, drawn at random: views, changes in place, stop_gradient set and hooks set along the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from described import Library
from static_programs import BINARY, SHAPE, UNARY, VALUES

SOURCES: dict[str, Callable[[Library], Any]] = {
    "leaf": lambda paddle: paddle.to_tensor(VALUES, stop_gradient=False),
    "constant": lambda paddle: paddle.to_tensor(VALUES + 0.25),
    "parameter": lambda paddle: paddle.create_parameter(
        list(SHAPE), "float32", default_initializer=paddle.nn.initializer.Assign(VALUES + 0.5)
    ),
    "zeros": lambda paddle: paddle.zeros(list(SHAPE)),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda a: a.reshape([-1]).reshape(list(SHAPE)),
    "detach": lambda a: a.detach(),
    "flatten": lambda a: a.flatten().unflatten(0, list(SHAPE)),
    "unsqueeze": lambda a: a.unsqueeze(0).squeeze(0),
}
CHANGES: dict[str, Callable[[Library, Any, Any], Any]] = {
    "add_": lambda paddle, a, b: a.add_(b),
    "multiply_": lambda paddle, a, b: a.multiply_(b),
    "tanh_": lambda paddle, a, b: a.tanh_(),
    "scale_": lambda paddle, a, b: a.scale_(1.5),
    "zero_": lambda paddle, a, b: a.zero_(),
    "row": lambda paddle, a, b: a.__setitem__(0, b[1]),
    "number": lambda paddle, a, b: a.__setitem__((slice(None), 1), 0.5),
    "part": lambda paddle, a, b: a.reshape([-1]).add_(b.reshape([-1])),
    "slice": lambda paddle, a, b: a[0].scale_(2.0),
    "assign into": lambda paddle, a, b: None if b.stop_gradient else paddle.assign(b, a),
}
"""Left out is what the release does not do by its documents: `copy_` that backward does not notice, a constant that is
assigned to a result and leaves its gradient as it was.
"""
SETTINGS: dict[str, Callable[[Any], Any]] = {
    "stop": lambda a: setattr(a, "stop_gradient", True),
    "start": lambda a: setattr(a, "stop_gradient", False),
    "hook": lambda a: a.register_hook(lambda g: g * 2),
    "hook without result": lambda a: a.register_hook(lambda g: None),
    "retain": lambda a: a.retain_grads(),
}
OPERATIONS = [n for n in (*UNARY, *BINARY) if n not in ("cond", "pylayer")]


@dataclass(frozen=True)
class Act:
    """What is done to the values of these numbers: a new value, a change, or a setting."""

    name: str
    operands: tuple[int, ...]
    no_grad: bool = False


@dataclass(frozen=True)
class DynamicProgram:
    """The sources, what is done, and the numbers of the values in the loss and of those whose gradients are wanted."""

    sources: tuple[str, ...]
    acts: tuple[Act, ...]
    loss: tuple[int, ...]
    wanted: tuple[int, ...]
    backward: bool


def drawn(seed: int) -> DynamicProgram:
    """The program of a number."""
    random = Random(seed)
    sources = ["leaf", *(random.choice(list(SOURCES)) for _ in range(random.randint(0, 2)))]
    count = len(sources)
    acts = []
    for _ in range(random.randint(1, 8)):
        table: Any = random.choice([OPERATIONS, OPERATIONS, VIEWS, CHANGES, SETTINGS])
        operands = tuple(random.randrange(count) for _ in range(2))
        acts.append(Act(random.choice(list(table)), operands, random.random() < 0.1))
        count += table in (OPERATIONS, VIEWS)
    loss = (count - 1, *random.sample(range(count), random.randint(0, min(2, count))))
    wanted = tuple(random.sample(range(count), random.randint(1, min(4, count))))
    return DynamicProgram(tuple(sources), tuple(acts), loss, wanted, random.random() < 0.5)


def found(paddle: Library, program: DynamicProgram) -> list[Any]:
    """The values and gradients that a library gives, as arrays, None where it gives none."""
    values = [SOURCES[name](paddle) for name in program.sources]
    for act in program.acts:
        a, b = (values[k] for k in act.operands)
        with paddle.no_grad() if act.no_grad else contextlib.nullcontext():
            if act.name in CHANGES:
                CHANGES[act.name](paddle, a, b)
            elif act.name in SETTINGS:
                SETTINGS[act.name](a)
            elif act.name in VIEWS:
                values.append(VIEWS[act.name](a))
            else:
                values.append(UNARY[act.name](paddle, a) if act.name in UNARY else BINARY[act.name](paddle, a, b))
    loss: Any = 0.0
    for number in dict.fromkeys(program.loss):
        loss = loss + paddle.sum(values[number] * 1.5)
    wanted = list({id(v): v for v in (values[0], *(values[k] for k in program.wanted)) if not v.stop_gradient}.values())
    states = [np.array([float(v.stop_gradient), float(v.is_leaf)]) for v in values]
    if program.backward:
        loss.backward()
        gradients = []
    else:
        gradients = paddle.grad(loss, wanted, allow_unused=True) if wanted else []
    kept = {act.operands[0] for act in program.acts if act.name == "retain" and not act.no_grad}
    if program.backward:  # a constant that was changed in place has one in the release: that of its first values
        gradients = [v.grad if v.is_leaf or k in kept else None for k, v in enumerate(values)]
    return [*states, *(v.numpy() for v in values), *(None if g is None else g.numpy() for g in gradients)]
