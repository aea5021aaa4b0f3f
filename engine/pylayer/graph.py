"""The tape: nodes, and the newest-first walk that pulls cotangents back through them.

A node points at its parents and never at its outputs, so a graph has no reference cycles and dies with its last tensor.
Creation order is a topological order: the walk pops the newest node from a heap, needs no visited set and no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Any, NamedTuple

from pylayer.array import XP
from pylayer.versions import changes, clock

Cotangent = Any
"""A raw array in an ordinary walk; a Tensor with ``create_graph``."""

Held = list[Any]
"""Whether a cotangent is a sum, which nobody else holds, and the cotangent, the last so that `pop` takes it out."""

Target = Any
"""Where a cotangent goes: a Node, or the leaf Tensor itself. The walk asks a leaf for nothing."""


class Node:
    """One recorded call.

    `parents` holds, per input, the node it came from, the leaf Tensor itself, or None where no gradient is needed.
    `age` is the creation stamp, which counts down, so that a heap yields the newest node first.
    `saved` is what `pullback` needs; None once a walk released it.
    `hooks` take the accumulated cotangent of the node's output and return the one to go on with.
    """

    __slots__ = ("__weakref__", "age", "hooks", "parents", "saved")

    pull: Callable[[Held, Node, Any], Iterable[tuple[Target, Cotangent]]] | None = None
    """For a node that needs no check at all: `pullback` in one call, of what is held, the node and its `saved`."""

    outputs = 1
    """How many outputs the call has. With several, each output Tensor belongs to an `Output` node of its own and the
    cotangent handed to `pullback` is a list, None where an output took no part."""

    def __init__(self, parents: Sequence[Target | None], saved: Any) -> None:
        self.age = next(clock)
        self.parents = parents
        self.saved = saved
        self.hooks: dict[int, Callable[[Cotangent], Cotangent]] | None = None

    @property
    def label(self) -> str:
        """What messages call the node."""
        raise NotImplementedError

    def pullback(
        self, held: Held, create_graph: bool, found: Gradients | None = None
    ) -> Iterable[tuple[Target, Cotangent]]:
        """The parents that need a gradient, each with its cotangent, for a walk that has `found` others.

        The walk lets go of `held`, so whoever takes the cotangent out of it may be the only one to hold it.

        Raises:
            RuntimeError: something that the node saved was changed in place.
        """
        raise NotImplementedError

    def name(self) -> str:
        """What ``Tensor.grad_fn.name()`` gives."""
        return self.label

    def already_released(self) -> RuntimeError:
        """The error of a second backward through a released node (key phrase: observed rule 38)."""
        return RuntimeError(
            f"{self.label}: you calculate backward twice for the same subgraph without setting retain_graph=True. "
            f"The first backward released what {self.label} had saved; pass retain_graph=True to the first one."
        )


class Output(Node):
    """One output of a node that has several."""

    __slots__ = ("index",)

    def __init__(self, parent: Node, index: int) -> None:
        super().__init__((parent,), ())
        self.index = index

    @property
    def label(self) -> str:
        parent = self.parents[0]
        assert isinstance(parent, Node)
        return parent.label


class Gradients(NamedTuple):
    """What a walk found: the cotangents of leaves and of the nodes asked for, and what no gradient flows through."""

    leaves: dict[Target, Held]
    nodes: dict[Node, Cotangent]
    barred: Collection[Target]


def walk(
    roots: Iterable[tuple[Target, Cotangent]],
    *,
    create_graph: bool = False,
    retain_graph: bool = False,
    enter: set[Node] | None = None,
    capture: Iterable[Node] = (),
    barred: Collection[Target] = (),
) -> Gradients:
    """Pull the cotangents of `roots` back to the leaves, each node once, after all its outputs' cotangents are in.

    Args:
        enter: the only nodes to pull back through; None for all.
        capture: nodes whose accumulated cotangent is wanted.
        barred: what no gradient flows through.

    Raises:
        RuntimeError: a node was released by an earlier walk, or something it saved was changed in place.
    """
    captured: dict[Node, Cotangent] = dict.fromkeys(capture)
    found = Gradients({}, captured, barred)
    pending: dict[Target, Held] = {}
    heap: list[tuple[int, Node]] = []
    at_once = not create_graph

    newest: Any = None  # a node that need not go through the heap, nor what it holds through `pending`: in a chain none
    newest_held: Any = None
    arriving: Iterable[tuple[Any, Cotangent]] = roots
    while True:
        for target, cotangent in arriving:
            held = newest_held if target is newest else pending.get(target)
            if held is None:
                if newest is None and isinstance(target, Node):
                    newest, newest_held = target, [False, cotangent]
                else:
                    pending[target] = [False, cotangent]
                    if isinstance(target, Node):
                        heappush(heap, (target.age, target))
            else:  # NumPy adds in place to a large array that nobody else holds: it sees that of a popped one
                held.append(held.pop() + cotangent)
                held[0] = True
                if type(held[1]) is not type(cotangent):  # NumPy turns 0-d results into scalars
                    held[1] = XP[type(cotangent)].asarray(held[1])
        if newest is None:
            if not heap:
                found.leaves.update(pending)
                return found
            node = heappop(heap)[1]
            held = pending.pop(node)
        elif heap and heap[0][0] < newest.age:
            pending[newest] = newest_held
            node = heapreplace(heap, (newest.age, newest))[1]
            held = pending.pop(node)
        else:
            node, held = newest, newest_held
        newest = newest_held = None
        arriving = cotangent = ()
        if node.hooks:
            for hook in tuple(node.hooks.values()):
                held[1] = hook(held[1])
            at_once = at_once and bool(held[1].ndim)  # NumPy turns 0-d results into scalars
        if captured and node in captured:
            captured[node] = held[1]
        if enter is not None and node not in enter:
            continue
        if node.saved is None:
            raise node.already_released()
        if node.pull and at_once and not changes:
            arriving = node.pull(held, node, node.saved)
        elif type(node) is Output:
            parent: Any = node.parents[0]
            if parent not in pending:
                pending[parent] = [True, [None] * parent.outputs]
                heappush(heap, (parent.age, parent))
            cotangent = pending[parent][1][node.index]  # of another node that stands for the same, saved output
            cotangent = held[1] if cotangent is None else cotangent + held[1]
            pending[parent][1][node.index] = cotangent if create_graph else XP[type(held[1])].asarray(cotangent)
            continue
        else:
            arriving = node.pullback(held, create_graph, found)
        if not retain_graph:
            node.saved = None


def nodes_between(roots: Iterable[Node], targets: set[Any], barred: set[Any]) -> set[Node]:
    """The nodes through which a gradient flows from `roots` to `targets`, none of them in `barred`."""
    reachable: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in reachable and node not in barred:
            reachable.add(node)
            stack.extend(parent for parent in node.parents if isinstance(parent, Node))
    between: set[Node] = set()
    for node in sorted(reachable, key=lambda n: -n.age):  # parents before children
        if any(parent in targets or parent in between for parent in node.parents if parent is not None):
            between.add(node)
    return between
