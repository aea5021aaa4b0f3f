"""Recurrent layers: one upon the other, each a cell over the steps of the sequences below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.nn.containers import LayerList
from pylayer.nn.functional import dropout
from pylayer.nn.recurrent import RNN, BiRNN, run
from pylayer.nn.recurrent_cells import GRUCell, LSTMCell, SimpleRNNCell
from pylayer.ops.creation import zeros
from pylayer.ops.joining import concat, stack, unstack
from pylayer.tensor import Tensor


class _Recurrent(LayerList):
    """`num_layers` recurrent layers, each over the outputs of the one before, with dropout between them in training.

    The parameters are also attributes: `weight_ih_l0`, `weight_ih_l0_reverse`, …

    Args:
        direction: forward; or bidirect, also bidirectional.
        options: what the cells take beside their sizes.

    Raises:
        ValueError: another direction.
    """

    parts = 1
    """Of how many Tensors the state consists."""

    def __init__(
        self,
        cell: type[Any],
        sizes: tuple[int, int, int],
        direction: str,
        time_major: bool,
        dropout: float,
        **options: Any,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = sizes
        self.dropout, self.time_major = dropout, time_major
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ValueError(
                f"direction should be forward or bidirect (or bidirectional), received direction = {direction}"
            )
        self.num_directions = 1 if direction == "forward" else 2
        self.proj_size = options.get("proj_size", 0)
        size = self.input_size
        for _ in range(self.num_layers):
            cells = [cell(size, self.hidden_size, **options) for _ in range(self.num_directions)]
            self.append(BiRNN(cells[0], cells[1], time_major) if cells[1:] else RNN(cells[0], False, time_major))
            size = self.num_directions * (self.proj_size or self.hidden_size)
        self._name_parameters(options)

    def _name_parameters(self, options: dict[str, Any]) -> None:
        """Make the parameters attributes, in order; with a projection the names slip by one per cell, as in Paddle."""
        kinds = [
            kind
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            if kind.startswith("weight") or options[f"{kind}_attr"] is not False
        ]
        suffixes = ("", "_reverse")[: self.num_directions]
        names = [f"{kind}_l{k}{suffix}" for k in range(self.num_layers) for suffix in suffixes for kind in kinds]
        for name, parameter in zip(names, self.parameters(), strict=False):
            setattr(self, name, parameter)

    def forward(
        self, inputs: Tensor, initial_states: Any = None, sequence_length: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """The outputs of the last layer, and the states of all layers and directions after the last step.

        Args:
            inputs: [batch, time, input_size], or [time, batch, input_size] if `time_major`.
            initial_states: [layers · directions, batch, hidden_size], two of them for LSTM; zeros unless given.
            sequence_length: [batch]: outputs beyond are zeros (with a projection as they come, as in Paddle).

        Raises:
            ValueError: shapes or numbers of states that do not fit.
        """
        if inputs.ndim != 3:
            raise ValueError(f"(InvalidArgument) The input should have 3 axes, but its shape is {inputs.shape}.")
        states = self._split(self._initial(inputs) if initial_states is None else initial_states)
        x, last = inputs, []
        for k, layer in enumerate(self):
            x = dropout(x, self.dropout, training=self.training) if k else x
            outs = []
            for cell, back in zip(layer.children(), (False, True), strict=False):
                before = states[k * self.num_directions + back]
                out, after = run(cell, x, before, sequence_length, self.time_major, back, not self.proj_size)
                outs.append(out)
                last.append(after if isinstance(after, tuple) else (after,))
            x = outs[0] if len(outs) == 1 else concat(outs, -1)
        joined = tuple(stack(list(part)) for part in zip(*last, strict=True))
        return x, joined if len(joined) > 1 else joined[0]

    def _initial(self, inputs: Tensor) -> list[Tensor]:
        batch = inputs.shape[1 if self.time_major else 0]
        sizes = [self.proj_size or self.hidden_size, self.hidden_size][: self.parts]
        return [zeros([self.num_layers * self.num_directions, batch, size], inputs.dtype) for size in sizes]

    def _split(self, given: Any) -> Sequence[Any]:
        """The states by layer and direction."""
        parts = [given] if isinstance(given, Tensor) else list(given)
        count = self.num_layers * self.num_directions
        if len(parts) != self.parts or any(part.shape[0] != count for part in parts):
            raise ValueError(
                f"(InvalidArgument) The number of tensors in initial_states of {type(self).__name__} should be "
                f"{self.parts}, each with {count} on the first axis, but received {[list(p.shape) for p in parts]}."
            )
        split = [unstack(part) for part in parts]
        return split[0] if self.parts == 1 else list(zip(*split, strict=True))

    def extra_repr(self) -> str:
        """What the repr shows."""
        shown = f"{self.input_size}, {self.hidden_size}"
        shown += f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        shown += f", time_major={self.time_major}" if self.time_major else ""
        return shown + (f", dropout={self.dropout}" if self.dropout else "")


class SimpleRNN(_Recurrent):
    """Layers of `SimpleRNNCell`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        if activation not in ("tanh", "relu"):
            raise ValueError(f"Unknown activation '{activation}'")
        super().__init__(
            SimpleRNNCell, (input_size, hidden_size, num_layers), direction, time_major, dropout,
            activation=activation, weight_ih_attr=weight_ih_attr, weight_hh_attr=weight_hh_attr,
            bias_ih_attr=bias_ih_attr, bias_hh_attr=bias_hh_attr,
        )  # fmt: skip
        self.activation = activation


class LSTM(_Recurrent):
    """Layers of `LSTMCell`."""

    parts = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            LSTMCell, (input_size, hidden_size, num_layers), direction, time_major, dropout,
            weight_ih_attr=weight_ih_attr, weight_hh_attr=weight_hh_attr, bias_ih_attr=bias_ih_attr,
            bias_hh_attr=bias_hh_attr, proj_size=proj_size,
        )  # fmt: skip


class GRU(_Recurrent):
    """Layers of `GRUCell`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            GRUCell, (input_size, hidden_size, num_layers), direction, time_major, dropout,
            weight_ih_attr=weight_ih_attr, weight_hh_attr=weight_hh_attr, bias_ih_attr=bias_ih_attr,
            bias_hh_attr=bias_hh_attr,
        )  # fmt: skip
