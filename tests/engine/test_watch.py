"""A watch is told of every operation, and may have everything recorded; without one nothing is different."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

import pylayer.paddle as paddle
from pylayer.tape.graph import Node, Output
from pylayer.tape.node import OpNode
from pylayer.tape.op import Op
from pylayer.tensor.tensor import Tensor
from pylayer.watch import observe, recording_all


class Told:
    """A watch that writes down what it is told."""

    def __init__(self, records: bool, backwards: bool = False) -> None:
        self.records, self.backwards = records, backwards
        self.names: list[str] = []

    def made(self, node: Node, arguments: Sequence[Any], out: Any) -> None:
        assert isinstance(node, OpNode)
        self.names.append(node.label)

    def computed(self, op: Op, inputs: Sequence[Any], out: Any) -> None:
        self.names.append(f"({op.name})")

    def left(self, tensor: Tensor, how: str) -> None:
        self.names.append(how)

    def decided(self, tensor: Tensor) -> None:
        self.names.append("bool")

    def applied(self, layer: type, context: Any) -> None:
        self.names.append(layer.__name__)

    def stands_for(self, output: Output, made_by: Any) -> None:
        self.names.append(f"{output.label} is {made_by.label}")


class Square(paddle.autograd.PyLayer):  # type: ignore[name-defined,misc]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return g * 2.0 * x


def leaf() -> Any:
    return paddle.to_tensor([1.0, 2.0], stop_gradient=False)


def everything(x: Any) -> None:
    y = Square.apply(x)
    with paddle.no_grad():
        z = paddle.tanh(y.detach())
    if (z > 0).all():
        f"{float(z.sum()):.3f} {z[0].numpy()} {z[0]:.2f}"


def test_a_watch_may_see_a_gradient_be_taken() -> None:
    told, x = Told(records=True, backwards=True), leaf()
    with observe(told):
        paddle.grad(Square.apply(x), x, create_graph=True)
    assert told.names == [
        "Square", "multiply", "GradNodePyLayer_Square is multiply",
        "grad(create_graph=True)", "multiply", "multiply",
    ]  # fmt: skip


def test_a_watch_that_records_sees_one_graph() -> None:
    told = Told(records=True)
    with observe(told):
        everything(leaf())
    assert told.names == [
        "Square", "multiply", "tanh", "(greater_than)", "(all)", "bool",
        "sum", "float()", "getitem", ".numpy()", "getitem",
    ]  # fmt: skip


def test_a_watch_that_looks_on_changes_nothing() -> None:
    told = Told(records=False)
    x = leaf()
    with observe(told):
        y = Square.apply(x)
        y.sum().backward()
    assert told.names == ["(multiply)", "sum", "backward()", "(multiply)", "(multiply)"]
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])


def test_what_is_changed_in_place_is_as_before_afterwards() -> None:
    x, count = leaf(), paddle.to_tensor([0.0, 0.0])
    memory = count.array
    with observe(Told(records=True)):
        count.add_(x)
        x.multiply_(x)
        assert x.tolist() == [1.0, 4.0]
    assert count.array is memory
    assert (count.tolist(), count.is_leaf, x.tolist(), x.is_leaf) == ([0.0, 0.0], True, [1.0, 2.0], True)


def test_other_threads_are_not_watched() -> None:
    told, seen = Told(records=True), []

    def other() -> None:
        paddle.tanh(leaf())
        seen.append(recording_all())

    with observe(told):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert (told.names, seen) == ([], [False])
