"""A recurrent cell over the steps of sequences, in one direction or two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pylayer.nn.activations import sequence_mask
from pylayer.nn.layer import Layer
from pylayer.ops.joining import concat, stack
from pylayer.ops.shape import reshape, transpose
from pylayer.static.structure import leaves, rebuilt
from pylayer.tensor import Tensor


def _mapped(function: Callable[..., Any], *structures: Any) -> Any:
    """`function` of the leaves of nested lists and tuples of one structure."""
    return rebuilt(structures[0], [function(*parts) for parts in zip(*map(leaves, structures), strict=True)])


def _beside(mask: Tensor, x: Tensor) -> Tensor:
    """What is known of each sequence, [batch], in the number of axes of `x`."""
    return reshape(mask, [-1, *[1] * (x.ndim - 1)])


def run(
    cell: Any,
    inputs: Any,
    initial_states: Any = None,
    sequence_length: Tensor | None = None,
    time_major: bool = False,
    is_reverse: bool = False,
    zero_padding: bool = False,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """The outputs of a cell at all steps, and the state after the last.

    Args:
        inputs: [batch, time, …], or [time, batch, …] if `time_major`; may be nested.
        sequence_length: [batch]: states stay as they are at steps beyond.
        is_reverse: from the last step to the first.
        zero_padding: outputs beyond a length are zeros; else they are what the cell gives there.

    Raises:
        ValueError: there is no step.
    """
    time = 0 if time_major else 1
    steps = leaves(inputs)[0].shape[time]
    if not steps:
        raise ValueError(f"A recurrent layer needs at least one time step, but the input has none on axis {time}.")
    states = cell.get_initial_states(inputs, batch_dim_idx=1 - time) if initial_states is None else initial_states
    if not time_major:
        inputs = _mapped(lambda x: transpose(x, [1, 0, *range(2, x.ndim)]), inputs)
    masks = None
    if sequence_length is not None:
        masks = transpose(sequence_mask(sequence_length, steps, leaves(inputs)[0].dtype), [1, 0])
    outputs = []
    for k in reversed(range(steps)) if is_reverse else range(steps):
        out, new = cell(_mapped(lambda x, k=k: x[k], inputs), states, **kwargs)
        if masks is not None:
            inside = masks[k]
            kept = lambda x, old, on=inside: x * _beside(on, x) + old * (1 - _beside(on, x))  # noqa: E731
            new = _mapped(kept, new, states)
            if zero_padding:
                out = _mapped(lambda x, on=inside: x * _beside(on, x), out)
        states = new
        outputs.append(out)
    if is_reverse:
        outputs.reverse()
    return _mapped(lambda *parts: stack(list(parts), time), *outputs), states


class RNN(Layer):
    """A cell over the steps of sequences; see `run` for the arguments of the call."""

    def __init__(self, cell: Any, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Tensor | None = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """The outputs, and the state after the last step."""
        return run(self.cell, inputs, initial_states, sequence_length, self.time_major, self.is_reverse, **kwargs)


class BiRNN(Layer):
    """One cell over the steps forwards and one backwards, their outputs side by side in the last axis.

    Raises:
        ValueError: the cells take inputs of different sizes.
    """

    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: bool = False) -> None:
        super().__init__()
        if cell_fw.input_size != cell_bw.input_size:
            raise ValueError(
                f"input size of forward cell({cell_fw.input_size}) does not equal that of backward "
                f"cell({cell_bw.input_size})"
            )
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Tensor | None = None, **kwargs: Any
    ) -> tuple[Any, tuple[Any, Any]]:
        """The outputs, and the two states after the last step.

        Raises:
            AssertionError: `initial_states` are not two.
        """
        if isinstance(initial_states, (list, tuple)) and len(initial_states) != 2:
            raise AssertionError("length of initial_states should be 2 when it is a list/tuple")
        before, after = initial_states or (None, None)
        options = (sequence_length, self.time_major)
        forwards, last = run(self.cell_fw, inputs, before, *options, False, **kwargs)
        backwards, first = run(self.cell_bw, inputs, after, *options, True, **kwargs)
        return _mapped(lambda x, y: concat([x, y], -1), forwards, backwards), (last, first)
