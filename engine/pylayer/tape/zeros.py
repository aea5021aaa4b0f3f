"""Zeros for missing gradients: the second gradients of products that do not depend on a factor.

Paddle computes the second gradient of multiply, divide and bmm in one kernel, which gives zeros for
the factors that the first gradient does not depend on. So ``grad(grad(x * y, x), x)`` is zeros,
while the same for ``x + y`` is "not in the graph". Vjps and walks do not handle this: after a walk,
`zero_targets` finds the targets that the walk missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

from pylayer.tape.graph import Node, Target, nodes_between, reachable
from pylayer.tape.node import OpNode
from pylayer.tensor.nested import leaves_in
from pylayer.tensor.tensor import Tensor

PRODUCTS = {"multiply", "divide", "bmm"}

recorded_gradients: WeakKeyDictionary[Node, tuple[set[Node], Target]] = WeakKeyDictionary()
"""By the node of a recorded gradient: the nodes that the walk went through, and its target."""


def recorded_as(gradient: Tensor, walked: set[Node], target: Target) -> Tensor:
    """Return a recorded gradient of `target`, and remember the nodes that it came through."""
    if gradient.node is not None:
        recorded_gradients[gradient.node] = walked, target
    return gradient


def zero_targets(roots: Iterable[Target], no_grad_targets: Collection[Any] = ()) -> set[Target]:
    """The targets that must get zeros, by the recorded gradients that `roots` depend on."""
    zeros: set[Target] = set()
    reached = reachable(roots, no_grad_targets)
    while reached:
        recorded = [recorded_gradients[node] for node in reached if node in recorded_gradients]
        factors = chain.from_iterable(
            node.parents
            for walked, target in recorded
            for node in nodes_between(walked, {target}, set())
            if node in walked and is_product(node)
        )
        reached = reachable(factors, no_grad_targets) - zeros
        zeros |= reached
    return zeros


def is_product(node: Node) -> bool:
    """Whether a node belongs to a product of two Tensors; for a product with a number, Paddle
    records a `scale`.
    """
    if not isinstance(node, OpNode) or node.op.name not in PRODUCTS:
        return False
    return not any(type(value) in (int, float) for value in leaves_in(node.saved))
