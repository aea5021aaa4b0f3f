"""The tape: nodes, and the newest-first walk that pulls cotangents back through them.

A node points at its parents and never at its outputs, so a graph has no reference cycles and dies
with its last tensor.
Creation order is a topological order: the walk pops the newest node from a heap, needs no visited
set and no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

from pylayer.tape.versions import clock
from pylayer.tensor.array import XP, as_array, duplicate, in_order

Cotangent = Any
"""A raw array in an ordinary walk; a Tensor with ``create_graph``."""

Target = Any
"""The target of a cotangent: a Node, or the leaf Tensor itself. The walk does not read a leaf."""


class Node:
    """One recorded call.

    `parents` holds, per input, the node it came from, the leaf Tensor itself, or None if no
    gradient is needed. `age` is the creation stamp, which counts down, so that a heap yields the
    newest node first. `saved` are the values that `pullback` needs; None once a walk released them.
    `_hooks` take the accumulated cotangent of the node's output and return the one to continue
    with.
    """

    __slots__ = ("__weakref__", "_hooks", "age", "parents", "saved")

    outputs = 1
    """The number of outputs of the call. With several, each output Tensor has its own `Output`
    node, and `pullback` gets a list of cotangents, None where an output took no part.
    """

    def __init__(self, parents: Sequence[Target | None], saved: Any) -> None:
        self.age = next(clock)
        self.parents = parents
        self.saved = saved
        self._hooks: dict[int, Callable[[Cotangent], Cotangent]] | None = None

    @property
    def label(self) -> str:
        """The node's name in messages."""
        raise NotImplementedError

    def pullback(
        self, cotangent: Cotangent, create_graph: bool, found: Gradients
    ) -> Iterable[tuple[Target, Cotangent]]:
        """The parents that need a gradient, each with its cotangent, for a walk that stores
        gradients in `found`.

        Raises:
            RuntimeError: a value that the node saved was changed in place.
        """
        raise NotImplementedError

    def name(self) -> str:
        """The result of ``Tensor.grad_fn.name()``."""
        return self.label

    def already_released(self) -> RuntimeError:
        """The error of a second backward through a released node (key phrase: observed rule 38)."""
        return RuntimeError(
            f"{self.label}: you calculate backward twice for the same subgraph without setting "
            f"retain_graph=True. The first backward released what {self.label} had saved; pass "
            "retain_graph=True to the first one."
        )


class Output(Node):
    """One output of a node with several outputs."""

    __slots__ = ("index",)

    def __init__(self, parent: Node, index: int) -> None:
        super().__init__((parent,), ())
        self.index = index

    @property
    def label(self) -> str:
        return self.parents[0].label  # type: ignore[no-any-return, union-attr]


class Gradients:
    """Gradients found by a walk, and the targets whose gradients it returns.

    `arrived` has the cotangents of leaves and of the nodes in `capture`; no gradient flows through
    `no_grad_targets`.
    """

    def __init__(
        self, capture: Iterable[Node] = (), no_grad_targets: Collection[Target] = ()
    ) -> None:
        self.arrived: dict[Target, Cotangent] = {}
        self.capture = frozenset(capture)
        self.no_grad_targets = no_grad_targets

    def settle(self, node: Node, cotangent: Cotangent) -> Cotangent:
        """Apply a node's hooks to its complete cotangent, and keep the result if it is
        requested.
        """
        if node._hooks:
            cotangent = run_hooks(node, cotangent)
        if node in self.capture:
            self.arrived[node] = cotangent
        return cotangent


def run_hooks(holder: Any, cotangent: Cotangent) -> Cotangent:
    """Apply the hooks of a node or leaf to its complete cotangent."""
    for hook in tuple(holder._hooks.values()):
        cotangent = hook(cotangent)
    return cotangent


class Pending:
    """Cotangents by the targets that they have reached, with the newest node first."""

    def __init__(self) -> None:
        self.held: dict[Target, Cotangent] = {}
        self.heap: list[tuple[int, Node]] = []

    def arrive(self, target: Target, cotangent: Cotangent) -> None:
        """Add a cotangent."""
        if target in self.held:
            self.held[target] = summed(self.held[target], cotangent)
            return
        self.held[target] = cotangent
        if isinstance(target, Node):
            heappush(self.heap, (target.age, target))

    def arrive_at_output(self, node: Output, cotangent: Cotangent) -> None:
        """Store the cotangent of one of a node's outputs, together with those of its other
        outputs.
        """
        parent: Any = node.parents[0]
        if parent not in self.held:
            self.arrive(parent, [None] * parent.outputs)
        add_to(self.held[parent], node.index, cotangent)

    def pop(self) -> tuple[Node, Cotangent]:
        """Remove and return the newest node; all its cotangents have arrived by then."""
        _, node = heappop(self.heap)
        return node, self.held.pop(node)


def walk(
    roots: Iterable[tuple[Target, Cotangent]],
    found: Gradients,
    *,
    create_graph: bool = False,
    retain_graph: bool = False,
    enter: set[Node] | None = None,
) -> None:
    """Pull the cotangents of `roots` back to the leaves, each node once, after all its outputs'
    cotangents are in.

    Args:
        found: collects the cotangents of leaves and captured nodes.
        enter: the only nodes to pull back through; None for all.

    Raises:
        RuntimeError: a node was released by an earlier walk, or a value that it saved was changed
            in place.
    """
    pending = Pending()
    for target, cotangent in roots:
        pending.arrive(target, cotangent)
    while pending.heap:
        node, arrived = pending.pop()
        arrived = found.settle(node, arrived)
        if enter is not None and node not in enter:
            continue
        if node.saved is None:
            raise node.already_released()
        if type(node) is Output:
            pending.arrive_at_output(node, arrived)
            continue
        for target, cotangent in node.pullback(arrived, create_graph, found):
            pending.arrive(target, cotangent)
        if not retain_graph:
            node.saved = None
    found.arrived.update(pending.held)


def walk_to_leaves(
    roots: Iterable[tuple[Target, Cotangent]], found: Gradients, *, retain_graph: bool = False
) -> None:
    """The walk of a backward. Gradients are copied, because two leaves might otherwise share one
    array.
    """
    walk(roots, found, retain_graph=retain_graph)
    for target, gradient in found.arrived.items():
        found.arrived[target] = duplicate(gradient)


def summed(total: Cotangent, cotangent: Cotangent) -> Cotangent:
    """The sum of the earlier and the new gradient of a target, with its elements in memory order as
    in Paddle.
    """
    total = as_array(total + cotangent, type(cotangent))
    return in_order(total) if type(total) in XP else total  # Tensors are in order


def add_to(cotangents: list[Cotangent | None], index: int, cotangent: Cotangent) -> None:
    """Add the cotangent of one of several outputs."""
    before = cotangents[index]  # that of another node for the same saved output
    cotangents[index] = cotangent if before is None else summed(before, cotangent)


def reachable(roots: Iterable[Target], no_grad_targets: Collection[Target] = ()) -> set[Target]:
    """The nodes and leaves that a gradient from `roots` reaches, without passing
    `no_grad_targets`.
    """
    reached: set[Target] = set()
    stack = list(roots)
    while stack:
        target = stack.pop()
        if target is None or target in reached or target in no_grad_targets:
            continue
        reached.add(target)
        if isinstance(target, Node):
            stack.extend(target.parents)
    return reached


def nodes_between(
    roots: Iterable[Target], targets: set[Any], no_grad_targets: set[Any]
) -> set[Node]:
    """The nodes through which a gradient flows from `roots` to `targets`, without passing
    `no_grad_targets`.
    """
    reached = [t for t in reachable(roots, no_grad_targets) if isinstance(t, Node)]
    between: set[Node] = set()
    for node in sorted(reached, key=attrgetter("age"), reverse=True):  # parents before children
        if not targets.isdisjoint(node.parents) or not between.isdisjoint(node.parents):
            between.add(node)
    return between
