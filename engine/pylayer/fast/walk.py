"""The backward walk with its calls inlined: the backward of a chain of small operations takes a
third of the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace
from sys import getrefcount
from typing import Any

from pylayer.fast import ON, ElementwiseNode
from pylayer.tape import graph
from pylayer.tape.graph import Cotangent, Gradients, Node, Output, Target
from pylayer.tape.versions import changes
from pylayer.tensor.array import Array, as_array, duplicate, gradient_in_order, in_order

Owned = list[Any]
"""A cotangent in a list, so that a caller that takes it out with `pop` may hold the only
reference.
"""


def spelled_out(
    roots: Iterable[tuple[Target, Cotangent]], found: Gradients, *, retain_graph: bool = False
) -> None:
    """Do the work of `graph.walk` for arrays; `pull` proceeds directly from one elementwise call to
    the next, as in a chain.
    """
    pending: dict[Target, Owned] = {}
    heap: list[tuple[int, Node]] = []
    shaped = True

    def arrive(target: Target, cotangent: Cotangent) -> None:
        if target not in pending:
            pending[target] = [cotangent]
            if isinstance(target, Node):
                heappush(heap, (target.age, target))
            return
        held = pending[target]
        held.append(
            held.pop() + cotangent
        )  # NumPy adds in place to a large array without other references
        held[0] = in_order(as_array(held[0], type(cotangent)))

    for target, cotangent in roots:
        arrive(target, cotangent)
    while heap:
        node: Any = heappop(heap)[1]
        held = pending.pop(node)
        cotangent = None
        simple = shaped and not changes
        while (
            simple and type(node) is ElementwiseNode and not node._hooks and node.saved is not None
        ):
            other = node.op.pull(held, node.saved)
            if not retain_graph:
                node.saved = None
            node, target = node.parent_x, node.parent_y
            straight = type(node) is ElementwiseNode and node is not target and node not in pending
            if not straight:
                arrive(node, gradient_in_order(held[0]))
            if target is not None:
                if target in pending:
                    sum_ = pending[target]
                    sum_.append(sum_.pop() + other)
                    if sum_[0].ndim > 1:  # a 1-D sum is always in order
                        sum_[0] = in_order(sum_[0])
                else:
                    arrive(target, gradient_in_order(other))
                other = None
            if not straight:
                break
            if heap and heap[0][0] < node.age:
                pending[node] = held
                node = heapreplace(heap, (node.age, node))[1]
                held = pending.pop(node)
        else:
            if node._hooks:
                held[0] = found.settle(node, held[0])
                shaped = shaped and bool(held[0].ndim)  # NumPy turns 0-d results into scalars
            if node.saved is None:
                raise node.already_released()
            if type(node) is Output:
                parent: Any = node.parents[0]
                if parent not in pending:
                    arrive(parent, [None] * parent.outputs)
                graph.add_to(pending[parent][0], node.index, held[0])
                continue
            for target, cotangent in node.pullback(held[0], False, found):
                arrive(target, cotangent)
            if not retain_graph:
                node.saved = None
    for target, held in pending.items():
        found.arrived[target] = own(held)


def own(held: Owned) -> Array:
    """The held array in a form that the caller may keep and change: the array itself if nothing
    else refers to it or its memory, otherwise a copy.
    """
    return held[0] if held[0].base is None and holders(held) == ALONE else duplicate(held[0])


def holders(held: Owned) -> int:
    """The reference count of the held array, including the reference made by counting."""
    return getrefcount(held[0])


ALONE = holders([object()])

backward_walk = spelled_out if ON else graph.walk_to_leaves
"""The walk that a backward uses."""
