"""Cells: one step of a recurrent layer, from an input and the state before to an output and the state after."""

from __future__ import annotations

import math
from typing import Any

from pylayer.dtype import default_dtype
from pylayer.nn.functional import linear
from pylayer.nn.initializer import Constant, Uniform
from pylayer.nn.layer import Layer
from pylayer.ops.activation import relu
from pylayer.ops.creation import full
from pylayer.ops.elementwise import sigmoid, tanh
from pylayer.ops.joining import split
from pylayer.ops.linalg import matmul
from pylayer.static.structure import leaves
from pylayer.tensor import Tensor


def _filled(shape: Any, batch: int, value: float, dtype: Any) -> Any:
    """Tensors of the shapes in nested tuples, each with the batch before it (in place of a −1, if there is one)."""
    if any(not isinstance(size, int) for size in shape):
        return type(shape)(_filled(part, batch, value, dtype) for part in shape)
    return full([batch, *shape[shape[0] == -1 :]], value, dtype)


class RNNCellBase(Layer):
    """To be subclassed: a cell says what its state is by `state_shape`."""

    def get_initial_states(
        self, batch_ref: Any, shape: Any = None, dtype: Any = None, init_value: float = 0.0, batch_dim_idx: int = 0
    ) -> Any:
        """The state before the first step: `init_value` for each element, in the default dtype unless told otherwise.

        Args:
            batch_ref: a Tensor (or several) whose axis `batch_dim_idx` is the batch.
            shape: in place of `state_shape`: sizes, or nested tuples of them.
        """
        batch = leaves(batch_ref)[0].shape[batch_dim_idx]
        return _filled(self.state_shape if shape is None else shape, batch, init_value, dtype or default_dtype())

    @property
    def state_shape(self) -> Any:
        """The sizes of the state without the batch; a tuple of such, if the state has parts."""
        raise NotImplementedError("Please add implementation for `state_shape` in the used cell.")


class _Cell(RNNCellBase):
    """A cell of `gates` linear maps of the input, and as many of the hidden state: each one block of rows of a weight.

    Weights and biases start evenly distributed within 1 / sqrt(hidden_size). One whose attr is False is not trained:
    ones for a weight, zeros for a bias.
    """

    gates = 1

    def __init__(self, input_size: int, hidden_size: int, hidden_in: int, attrs: tuple[Any, Any, Any, Any]) -> None:
        super().__init__()
        if hidden_size <= 0:
            raise ValueError(
                f"hidden_size of {type(self).__name__} must be greater than 0, but now equals to {hidden_size}"
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = self.gates * hidden_size
        shapes = {
            "weight_ih": [rows, input_size], "weight_hh": [rows, hidden_in], "bias_ih": [rows], "bias_hh": [rows],
        }  # fmt: skip
        for (name, shape), attr in zip(shapes.items(), attrs, strict=True):
            setattr(self, name, self._started(shape, attr, Constant(float(name.startswith("weight")))))

    def _started(self, shape: list[int], attr: Any, fixed: Constant) -> Any:
        limit = 1.0 / math.sqrt(self.hidden_size)
        if attr is not False:
            return self.create_parameter(shape, attr, default_initializer=Uniform(-limit, limit))
        parameter = self.create_parameter(shape, None, default_initializer=fixed)
        parameter.stop_gradient = True
        return parameter

    def from_input(self, inputs: Tensor) -> Tensor:
        """The maps of the input, beside each other."""
        return matmul(inputs, self.weight_ih, transpose_y=True) + self.bias_ih  # type: ignore[no-any-return]

    def from_hidden(self, hidden: Tensor) -> Tensor:
        """The maps of the hidden state."""
        return matmul(hidden, self.weight_hh, transpose_y=True) + self.bias_hh  # type: ignore[no-any-return]

    @property
    def state_shape(self) -> Any:
        """The hidden size."""
        return (self.hidden_size,)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_Cell):
    """h = tanh (or relu) of W x + b + W' h + b' (Elman, 1990).

    Raises:
        ValueError: another `activation`, or a hidden size below 1.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        )
        if activation not in ("tanh", "relu"):
            raise ValueError(f"activation for SimpleRNNCell should be tanh or relu, but get {activation}")
        self.activation = activation

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, Tensor]:
        """The hidden state twice: as the output, and as the state. `inputs` is [batch, input_size]."""
        hidden = self.get_initial_states(inputs) if states is None else states
        total = self.from_input(inputs) + self.from_hidden(hidden)
        out: Tensor = tanh(total) if self.activation == "tanh" else relu(total)
        return out, out

    def extra_repr(self) -> str:
        """What the repr shows."""
        return super().extra_repr() + ("" if self.activation == "tanh" else f", activation={self.activation}")


class LSTMCell(_Cell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), gates in the order input, forget, cell, output.

    Args:
        proj_size: unless 0, the hidden state is projected to that many elements.

    Raises:
        ValueError: a hidden size below 1, or a `proj_size` that is negative or not below it.
    """

    gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, proj_size or hidden_size,
            (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr),
        )  # fmt: skip
        if proj_size < 0:
            raise ValueError(f"proj_size of {type(self).__name__} must not be negative, but now equals to {proj_size}")
        if proj_size >= hidden_size:
            raise ValueError("proj_size must be smaller than hidden_size")
        self.proj_size = proj_size
        if proj_size:
            self.weight_ho = self.create_parameter([hidden_size, proj_size], weight_hh_attr)

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The hidden state as the output, and as the state itself and the cell's memory."""
        hidden, memory = self.get_initial_states(inputs) if states is None else states
        i, f, c, o = split(self.from_input(inputs) + self.from_hidden(hidden), 4, -1)
        memory = sigmoid(f) * memory + sigmoid(i) * tanh(c)
        out = sigmoid(o) * tanh(memory)
        if self.proj_size:
            out = linear(out, self.weight_ho)
        return out, (out, memory)

    @property
    def state_shape(self) -> Any:
        """Of the hidden state and of the memory; with a projection in that order, as in Paddle: give states then."""
        return (self.hidden_size,), (self.proj_size or self.hidden_size,)


class GRUCell(_Cell):
    """A gated recurrent unit (Cho et al., 2014), gates in the order reset, update, candidate.

    Raises:
        ValueError: a hidden size below 1.
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        )

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, Tensor]:
        """The hidden state twice: as the output, and as the state."""
        hidden = self.get_initial_states(inputs) if states is None else states
        x_reset, x_update, x_candidate = split(self.from_input(inputs), 3, 1)
        h_reset, h_update, h_candidate = split(self.from_hidden(hidden), 3, 1)
        update = sigmoid(x_update + h_update)
        candidate = tanh(x_candidate + sigmoid(x_reset + h_reset) * h_candidate)
        out = (hidden - candidate) * update + candidate
        return out, out
