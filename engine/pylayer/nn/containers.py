"""Container layers: sequences, lists and dicts of layers or parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from pylayer.nn.layer import Layer
from pylayer.nn.words import also
from pylayer.ops.arguments import require
from pylayer.ops.inplace import assign
from pylayer.tape.symbol import Parameter
from pylayer.tensor.tensor import Tensor


class _Layers(Layer):
    """Layers in order, accessed by number or name."""

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def _place(self, index: int) -> int:
        """Convert an index to a non-negative one. Raises IndexError if it is out of range."""
        text = f"should be an integer in range [{-len(self)}, {len(self)})"
        text = f"index {index} is out of range, {text}"
        require(-len(self) <= index < len(self), text, error=IndexError)
        return index % len(self)

    @also(module="sublayer")
    def append(self, sublayer: Layer) -> Any:
        """Append a layer."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    @also(modules="sublayers")
    def extend(self, sublayers: Iterable[Layer]) -> Any:
        """Append layers."""
        for sublayer in sublayers:
            self.append(sublayer)
        return self

    def _put(self, index: int, sublayer: Layer) -> None:
        """Insert a layer before an index, and renumber the later ones."""
        layers = list(self)
        layers.insert(index, sublayer)
        self._sub_layers.clear()
        self.extend(layers)


class Sequential(_Layers):
    """Layers that are called one after another. They are given as arguments, as (name, layer)
    pairs, or in one OrderedDict.
    """

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        first = layers[0] if layers else None
        if isinstance(first, OrderedDict):
            pairs: Any = first.items()
        else:
            pairs = layers if isinstance(first, (list, tuple)) else enumerate(layers)
        for name, layer in pairs:
            self.add_sublayer(str(name), layer)

    def __getitem__(self, name: int | slice | str) -> Any:
        if isinstance(name, str):
            return self._sub_layers[name]
        layers = list(self._sub_layers.values())
        return type(self)(*layers[name]) if isinstance(name, slice) else layers[self._place(name)]

    def __setitem__(self, name: int | str, layer: Layer) -> None:
        self.add_sublayer(str(name), layer)

    def __delitem__(self, name: int | str) -> None:
        del self._sub_layers[str(name)]

    def insert(self, index: int, module: Layer) -> Sequential:
        """Insert a layer before an index. Raises IndexError if it is out of range."""
        text = f"module should be of type: {Layer}"
        require(isinstance(module, Layer), text, error=AssertionError)
        text = f"Index out of range: {index}"
        require(-len(self) <= index <= len(self), text, error=IndexError)
        self._put(index, module)
        return self

    def forward(self, input: Any) -> Any:
        """Call the layers in order and return the last one's result."""
        for layer in self:
            input = layer(input)
        return input


class LayerList(_Layers):
    """A list of layers."""

    @also(modules="sublayers")
    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(sublayers or [])

    def __getitem__(self, idx: int | slice) -> Any:
        layers = list(self._sub_layers.values())
        return type(self)(layers[idx]) if isinstance(idx, slice) else layers[self._place(idx)]

    def __setitem__(self, idx: int, sublayer: Layer) -> None:
        setattr(self, str(self._place(idx)), sublayer)

    def __delitem__(self, idx: int | slice) -> None:
        gone = range(len(self))[idx] if isinstance(idx, slice) else [self._place(idx)]
        remaining = [layer for k, layer in enumerate(self) if k not in gone]
        self._sub_layers.clear()
        self.extend(remaining)

    def __add__(self, other: Iterable[Layer]) -> LayerList:
        return LayerList([*self, *other])

    def __iadd__(self, other: Iterable[Layer]) -> LayerList:
        return self.extend(other)  # type: ignore[no-any-return]

    @also(module="sublayer")
    def insert(self, index: int, sublayer: Layer) -> None:
        """Insert a layer before an index. Raises AssertionError if it is out of range."""
        text = f"index should be an integer in range [{-len(self)}, {len(self)}]"
        require(-len(self) <= index <= len(self), text, error=AssertionError)
        self._put(index, sublayer)

    def pop(self, key: int | slice) -> Any:
        """Remove and return a layer, or the layers of a slice."""
        removed = self[key]
        del self[key]
        return removed


class ParameterList(Layer):
    """A list of parameters."""

    def __init__(self, parameters: Iterable[Parameter] | None = None) -> None:
        super().__init__()
        for parameter in parameters or []:
            self.append(parameter)

    def append(self, parameter: Parameter) -> ParameterList:
        """Append a parameter."""
        self.add_parameter(str(len(self)), parameter)
        return self

    def __getitem__(self, idx: int) -> Any:
        return self._parameters[str(idx)]

    def __setitem__(self, idx: int, param: Tensor) -> None:
        text = f"param should be 'Parameter' or 'Tensor', but received {type(param)}"
        require(isinstance(param, Tensor), text, error=TypeError)
        assign(param, getattr(self, str(idx)))

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())


class ParameterDict(Layer):
    """A dict of parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or OrderedDict())

    def update(self, parameters: Any) -> None:
        """Add the parameters of a mapping, or of (name, parameter) pairs."""
        pairs = parameters.items() if hasattr(parameters, "items") else parameters
        for key, parameter in pairs:
            self.add_parameter(key, parameter)

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, param: Any) -> None:
        text = f"a parameter should be a Parameter, but is a {type(param).__name__}"
        require(isinstance(param, Parameter), text, error=AssertionError)
        setattr(self, key, param)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)
