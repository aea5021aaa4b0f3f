"""Taking gradients: backward and grad."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pylayer.fast.walk import backward_walk
from pylayer.tape.grad_mode import grad_mode, grad_mode_set
from pylayer.tape.graph import (
    Cotangent,
    Gradients,
    Output,
    Target,
    nodes_between,
    run_hooks,
    walk,
)
from pylayer.tape.hooks import final_hooks
from pylayer.tape.node import OpNode, with_array_in_order
from pylayer.tape.symbol import recording
from pylayer.tape.vjp import recorded_ops
from pylayer.tape.zeros import recorded_as, recorded_gradients, zero_targets
from pylayer.tensor.array import XP, Array, duplicate, in_order
from pylayer.tensor.invalid import (
    check_switches,
    checked_cotangents,
    checked_tensors,
    repeated,
    wrong_shape,
)
from pylayer.tensor.tensor import Tensor
from pylayer.watch import NOBODY, watchers

quiet_walk = np.errstate(all="ignore")(walk)


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Accumulate into ``grad`` of every leaf the gradient of the sum of `tensors`, each times its
    `grad_tensors`.

    Args:
        tensors: the outputs, without repetition; those with stop_gradient True are skipped
            (observed rule 78).
        grad_tensors: their cotangents, each with as many elements as its output; None for ones.
        retain_graph: keep the saved values of the nodes, so that backward can run again.

    Raises:
        AssertionError: an argument has a wrong type, or a cotangent a wrong size (observed rule
            78).
        RuntimeError: the graph was released by an earlier backward, or a saved tensor was changed
            in place.
    """
    outputs = checked_tensors("tensors", tensors)
    if repeated(outputs):
        raise AssertionError(
            "The argument 'tensors' of paddle.autograd.backward contains duplicate paddle.Tensor "
            "object."
        )
    check_switches(retain_graph=retain_graph)
    run_backward(
        outputs, checked_cotangents("tensors", "grad_tensors", outputs, grad_tensors), retain_graph
    )


def backward_from(
    tensor: Tensor, grad_tensor: Tensor | None = None, retain_graph: bool = False
) -> None:
    """Accumulate the gradient of every leaf that this Tensor depends on; see `backward`.

    Raises:
        AssertionError: `grad_tensor` is not a Tensor, or has another shape (observed rule 78).
        RuntimeError: the graph was released by an earlier backward, or a saved tensor was changed
            in place.
    """
    if not isinstance(grad_tensor, (Tensor, type(None))):
        raise AssertionError(
            f"The type of grad_tensor must be paddle.Tensor, but got {type(grad_tensor).__name__}."
        )
    if grad_tensor is not None and grad_tensor.array.shape != tensor.array.shape:
        raise wrong_shape(tensor, grad_tensor)
    run_backward([tensor], [grad_tensor], retain_graph)


backward_from.__name__ = backward_from.__qualname__ = "backward"


def run_backward(
    outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], retain_graph: bool
) -> None:
    """`backward`, after its arguments were checked."""
    watching = watchers.get()
    if watching is not NOBODY:
        watching.observer.left(outputs[0], "backward()")
    found = Gradients()
    roots = roots_of(outputs, cotangents, create_graph=False)
    owed = zero_targets([root for root, _ in roots]) if recorded_gradients else ()
    token = grad_mode.set(watching.observer.records)
    try:
        with np.errstate(all="ignore"):
            backward_walk(roots, found, retain_graph=retain_graph)
            for leaf in owed:
                if isinstance(leaf, Tensor) and leaf not in found.arrived:
                    found.arrived[leaf] = zeros_like(leaf)
            for leaf, gradient in found.arrived.items():
                if leaf._hooks:  # a hook may return an array that other code holds
                    gradient = duplicate(run_hooks(leaf, gradient))
                leaf.accumulate(gradient)
    finally:
        grad_mode.reset(token)
    while final_hooks:
        final_hooks.pop(0)()


def roots_of(
    outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], create_graph: bool
) -> list[tuple[Target, Cotangent]]:
    """The start of a walk: the outputs through which gradients flow, with their cotangents."""
    roots = []
    for output, given in zip(outputs, cotangents, strict=True):
        if not output._stop_gradient:
            roots.append((target_of(output), cotangent_for(output, given, create_graph)))
    return roots


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
    """The gradients of the sum of `outputs`, each times its `grad_outputs`, with respect to
    `inputs`.

    No Tensor's `grad` is changed, and the graph is kept for another backward (observed rule 38).
    Hooks of leaves do not run, as in Paddle: they belong to the accumulation into `grad`.

    Args:
        grad_outputs: the cotangents, each with as many elements as its output; None for ones.
        retain_graph: accepted, without effect: the graph is kept in any case.
        create_graph: record the computation of the gradients, so that they can be differentiated
            again.
        allow_unused: return None for an input that no output depends on.
        no_grad_vars: Tensors through which no gradient flows. PyLayers return None for every
            gradient that is not needed (observed rule 87).

    Raises:
        AssertionError: an argument has a wrong type, or a cotangent a wrong size; or the mode is
            static.
        ValueError: an input is not in the graph and `allow_unused` is False (observed rule 79).
        RuntimeError: an output or an input is given twice; or as for `backward`.
    """
    ends = checked_tensors("outputs", outputs)
    wanted = checked_tensors("inputs", inputs)
    if recording.get() is not None:
        raise AssertionError(
            "We only support 'grad()' in dynamic graph mode, please call 'paddle.disable_static()' "
            "to enter dynamic graph mode. In a program take paddle.static.gradients."
        )
    given = checked_cotangents("outputs", "grad_outputs", ends, grad_outputs)
    check_switches(
        retain_graph=False if retain_graph is None else retain_graph,
        create_graph=create_graph,
        allow_unused=allow_unused,
    )
    if only_inputs is not True:
        raise AssertionError("only_inputs=False is not supported yet")
    for name, tensors in (("outputs", ends), ("inputs", wanted)):
        for tensor in repeated(tensors):
            raise RuntimeError(
                f"(AlreadyExists) {name} contain duplicate tensor {tensor.name}, please check "
                f"{name} carefully. Give each Tensor once."
            )
    held = () if no_grad_vars is None else no_grad_vars
    if isinstance(held, Tensor):
        held = [held]
    if not isinstance(held, (list, tuple, set, frozenset)) or not all(
        isinstance(t, Tensor) for t in held
    ):
        raise AssertionError(
            f"no_grad_vars must be None, Tensor or list/tuple/set of Tensors, but got {held!r}."
        )
    return gradients_of(ends, wanted, given, create_graph, allow_unused, held)


def gradients_of(
    ends: Sequence[Tensor],
    wanted: Sequence[Tensor],
    given: Sequence[Tensor | None],
    create_graph: bool,
    allow_unused: bool,
    held: Iterable[Tensor] | None = None,
) -> list[Tensor | None]:
    """`grad`, after its arguments were checked. Without `held`, PyLayers may return gradients for
    Tensors that lead to none of `wanted`.
    """
    watching = watchers.get()
    if watching is not NOBODY:
        how = "grad(create_graph=True)" if create_graph else "grad()"
        watching.observer.left(ends[0], how)
    ordered = list(map(target_of, wanted))
    targets = set(ordered)
    roots = roots_of(ends, given, create_graph)
    starts = [root for root, _ in roots]
    no_grad_targets = set(map(target_of, held or ())).difference(starts)
    enter = nodes_between(starts, targets, no_grad_targets)
    if held is not None:
        parents = {parent for node in enter for parent in node.parents if parent is not None}
        no_grad_targets |= parents - enter - targets
    found = Gradients(targets, no_grad_targets)
    token = grad_mode.set(create_graph or watching.observer.records)
    try:
        quiet_walk(roots, found, create_graph=create_graph, retain_graph=True, enter=enter)
    finally:
        grad_mode.reset(token)
    complete = not recorded_gradients or targets <= found.arrived.keys()
    owed = set() if complete else zero_targets(starts, no_grad_targets)
    results: list[Tensor | None] = []
    for k, (tensor, target) in enumerate(zip(wanted, ordered, strict=True)):
        arrived = found.arrived.get(target)
        if arrived is not None:
            result = own_gradient(arrived, tensor, ends, results)
            results.append(recorded_as(result, enter, target) if create_graph else result)
        elif target in owed and not tensor._stop_gradient:
            result = Tensor(zeros_like(tensor), None, not create_graph)
            passed = nodes_between(owed, {target}, no_grad_targets)
            if create_graph and passed:
                with grad_mode_set(True):
                    result = recorded_as(recorded_ops.clone(result), passed, target)
            results.append(result)
        elif allow_unused:
            results.append(None)
        else:
            stopped = ", because its stop_gradient is True" if tensor._stop_gradient else ""
            raise ValueError(  # observed rule 79
                f"The {k}-th input does not appear in the backward graph: no output depends on "
                f"it{stopped}. Pass allow_unused=True to get None for it."
            )
    return results


def zeros_like(tensor: Tensor) -> Array:
    """An array of zeros, of the shape and dtype of `tensor`."""
    return XP[type(tensor.array)].zeros_like(tensor.array)


def own_gradient(
    gradient: Cotangent, tensor: Tensor, ends: Sequence[Tensor], earlier: Sequence[Tensor | None]
) -> Tensor:
    """The cotangent that arrived at `tensor`, as a new Tensor even if it is a given cotangent or
    another gradient.
    """
    if not isinstance(gradient, Tensor):
        return Tensor(duplicate(gradient))
    if gradient.is_leaf and any(tensor is end for end in ends):  # the same leaf, as in Paddle
        return Tensor(gradient.array, gradient, gradient._stop_gradient)
    if gradient.is_leaf or any(gradient is other for other in earlier):
        with grad_mode_set(True):
            return recorded_ops.clone(gradient)  # type: ignore[no-any-return]
    return gradient


def cotangent_for(output: Tensor, given: Tensor | None, create_graph: bool) -> Cotangent:
    """The initial cotangent as an array in the shape of `output`; ones unless given.

    It is cast to the dtype of an operation's output, as in Paddle; layers cast it themselves, and a
    leaf accepts any dtype.

    With `create_graph` it is a Tensor that needs a gradient: values computed from it are part of a
    graph, as in Paddle.

    Raises:
        AssertionError: its number of elements differs. The release continues, and reads beyond the
            memory.
    """
    if given is None:
        ones = XP[type(output.array)].ones_like(output.array, order="C")
        return Tensor(ones, None, False) if create_graph else ones
    if given.array.size != output.array.size:
        raise wrong_shape(output, given)
    shape = output.array.shape
    shaped: Tensor = given.reshape(shape) if given.array.shape != shape else given
    if shaped.array.dtype != output.array.dtype and is_of_operation(output):
        shaped = shaped.astype(output.dtype)
    if not create_graph:
        return in_order(shaped.array)
    if shaped._stop_gradient:
        return Tensor(in_order(shaped.array), None, False)
    return with_array_in_order(shaped)


def is_of_operation(tensor: Tensor) -> bool:
    """Whether an operation, and not a layer or the user, made `tensor`."""
    node = tensor.node
    return isinstance(node.parents[0] if type(node) is Output else node, OpNode)


def target_of(tensor: Tensor) -> Target:
    """The target of a cotangent of `tensor`: its node, or the Tensor itself."""
    return tensor if tensor.node is None else tensor.node
