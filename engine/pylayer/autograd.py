"""Taking gradients: backward and grad."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pylayer.array import XP
from pylayer.grad_mode import grad_mode_set
from pylayer.graph import Cotangent, Node, nodes_between, walk
from pylayer.tensor import Tensor
from pylayer.watch import tell_left, watching


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Accumulate into ``grad`` of every leaf the gradient of the sum of `tensors`, each times its `grad_tensors`.

    Args:
        tensors: the outputs; those with stop_gradient True are passed over (observed rule 78).
        grad_tensors: their cotangents, of the same shapes; None for ones.
        retain_graph: keep what the nodes saved, so that backward can run again.

    Raises:
        AssertionError: a cotangent is not a Tensor or has another shape (observed rule 78).
        RuntimeError: the graph was released by an earlier backward, or a saved tensor was changed in place.
    """
    outputs = as_list(tensors)
    if watching and outputs:
        tell_left(outputs[0], "backward()")
    roots = [
        (output if output.node is None else output.node, cotangent_for(output, given))
        for output, given in zip(outputs, cotangents_for(outputs, grad_tensors), strict=True)
        if not output._stop_gradient
    ]
    with grad_mode_set(False):
        found = walk(roots, retain_graph=retain_graph)
        for leaf, cotangent in found.leaves.items():
            final = run_leaf_hooks(leaf, cotangent)
            leaf.accumulate(final if leaf in found.owned and final is cotangent else final.copy())


def backward_from(tensor: Tensor, grad_tensor: Tensor | None = None, retain_graph: bool = False) -> None:
    """Accumulate the gradient of every leaf that this Tensor depends on; see `backward`."""
    backward([tensor], [grad_tensor], retain_graph)


backward_from.__name__ = backward_from.__qualname__ = "backward"


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
    no_grad_vars: Tensor | Iterable[Tensor] | None = None,
) -> list[Tensor | None]:
    """The gradients of the sum of `outputs`, each times its `grad_outputs`, with respect to `inputs`.

    The `grad` of no Tensor is touched.

    Args:
        retain_graph: keep the graph for another backward; None means `create_graph`.
        create_graph: record the computation of the gradients, so that they can be differentiated in turn.
        allow_unused: give None for an input that no output depends on.
        no_grad_vars: Tensors through which no gradient flows.

    Raises:
        ValueError: an input is not in the graph and `allow_unused` is False (observed rule 79).
        RuntimeError: as for `backward`.
    """
    ends = as_list(outputs)
    wanted = as_list(inputs)
    if watching and ends:
        tell_left(ends[0], "grad()")
    barred = {t if t.node is None else t.node for t in as_list(no_grad_vars or [])}
    targets = {t if t.node is None else t.node for t in wanted if not t._stop_gradient}
    roots = [
        (end if end.node is None else end.node, cotangent_for(end, given, create_graph))
        for end, given in zip(ends, cotangents_for(ends, grad_outputs), strict=True)
        if not end._stop_gradient
    ]
    enter = nodes_between([node for node, _ in roots if isinstance(node, Node)], targets, barred)
    with grad_mode_set(create_graph):
        found = walk(
            roots,
            create_graph=create_graph,
            retain_graph=create_graph if retain_graph is None else retain_graph,
            enter=enter,
            capture=[t for t in targets if isinstance(t, Node)],
        )
        cotangents: dict[Any, Cotangent] = {**found.nodes}
        for leaf in wanted:
            if leaf.is_leaf and leaf in found.leaves:
                cotangents[leaf] = run_leaf_hooks(leaf, found.leaves[leaf])
    results: list[Tensor | None] = []
    for k, tensor in enumerate(wanted):
        cotangent = None if tensor._stop_gradient else cotangents.get(tensor if tensor.node is None else tensor.node)
        if cotangent is None and not allow_unused:
            raise ValueError(
                f"The {k}-th input does not appear in the backward graph: no output depends on it"
                f"{', because its stop_gradient is True' if tensor._stop_gradient else ''}. "
                f"Pass allow_unused=True to get None for it."
            )
        if cotangent is None or isinstance(cotangent, Tensor):
            results.append(cotangent)
        else:
            results.append(Tensor(cotangent.copy()))
    return results


def as_list(tensors: Any) -> list[Any]:
    """A list of one, or a list."""
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def cotangents_for(outputs: Sequence[Tensor], given: Any) -> list[Any]:
    """One cotangent or None per output."""
    cotangents = [None] * len(outputs) if given is None else as_list(given)
    if len(cotangents) != len(outputs):
        raise ValueError(f"{len(outputs)} outputs need as many cotangents, but got {len(cotangents)}.")
    return cotangents


def cotangent_for(output: Tensor, given: Tensor | None, create_graph: bool = False) -> Cotangent:
    """The cotangent to start from, ones unless given: a Tensor with `create_graph`, else an array."""
    if given is None:
        ones = XP[type(output.array)].ones_like(output.array)
        return Tensor(ones) if create_graph else ones
    if not isinstance(given, Tensor):
        raise AssertionError(f"The type of grad_tensor must be paddle.Tensor, but got {type(given).__name__}.")
    if given.shape != output.shape:
        raise AssertionError(
            f"Tensor shape not match, Tensor of grad_tensor [ {given.name} ] with shape {given.shape} mismatch "
            f"Tensor [ {output.name} ] with shape {output.shape}"
        )
    return given if create_graph else given.array


def run_leaf_hooks(leaf: Tensor, cotangent: Cotangent) -> Cotangent:
    """What the hooks of a leaf make of its accumulated gradient."""
    for hook in tuple((leaf._hooks or {}).values()):
        cotangent = hook(cotangent)
    return cotangent
