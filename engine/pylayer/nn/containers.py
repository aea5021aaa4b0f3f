"""Layers that hold layers or parameters: in a row, in lists and in dicts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pylayer.nn.layer import Layer
from pylayer.symbol import Parameter


class Sequential(Layer):
    """Layers called one after the other. Given as arguments, or as (name, layer) pairs."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], list):
            layers = tuple(layers[0])
        for k, layer in enumerate(layers):
            name, member = layer if isinstance(layer, tuple) else (str(k), layer)
            self.add_sublayer(name, member)

    def __getitem__(self, index: int | slice | str) -> Any:
        if isinstance(index, slice):
            return Sequential(*list(self._sub_layers.values())[index])
        return self._sub_layers[index] if isinstance(index, str) else list(self._sub_layers.values())[index]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def forward(self, input: Any) -> Any:
        """What the last layer returns."""
        for layer in self:
            input = layer(input)
        return input


class LayerList(Layer):
    """A list of layers."""

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(sublayers or [])

    def append(self, sublayer: Layer) -> LayerList:
        """Add a layer at the end."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        """Add layers at the end."""
        for sublayer in sublayers:
            self.append(sublayer)
        return self

    def __getitem__(self, index: int | slice) -> Any:
        layers = list(self._sub_layers.values())
        return LayerList(layers[index]) if isinstance(index, slice) else layers[index]

    def __setitem__(self, index: int, sublayer: Layer) -> None:
        self.add_sublayer(str(range(len(self))[index]), sublayer)

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())


class ParameterList(Layer):
    """A list of parameters."""

    def __init__(self, parameters: Iterable[Parameter] | None = None) -> None:
        super().__init__()
        for parameter in parameters or []:
            self.append(parameter)

    def append(self, parameter: Parameter) -> ParameterList:
        """Add a parameter at the end."""
        self.add_parameter(str(len(self)), parameter)
        return self

    def __getitem__(self, index: int) -> Any:
        return list(self._parameters.values())[index]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())


class LayerDict(Layer):
    """A dict of layers."""

    def __init__(self, sublayers: Any = None) -> None:
        super().__init__()
        self.update(sublayers or {})

    def update(self, sublayers: Any) -> None:
        """Take on the layers of a mapping, or of (name, layer) pairs."""
        for key, layer in sublayers.items() if isinstance(sublayers, (Mapping, LayerDict)) else sublayers:
            self.add_sublayer(key, layer)

    def __getitem__(self, key: str) -> Layer:
        return self._sub_layers[key]  # type: ignore[no-any-return]

    def __setitem__(self, key: str, sublayer: Layer) -> None:
        self.add_sublayer(key, sublayer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __contains__(self, key: object) -> bool:
        return key in self._sub_layers

    def keys(self) -> Any:
        """The names."""
        return self._sub_layers.keys()

    def values(self) -> Any:
        """The layers."""
        return self._sub_layers.values()

    def items(self) -> Any:
        """The pairs."""
        return self._sub_layers.items()

    def pop(self, key: str) -> Layer:
        """Take a layer out."""
        return self._sub_layers.pop(key)  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Take all layers out."""
        self._sub_layers.clear()


class ParameterDict(Layer):
    """A dict of parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or OrderedDict())

    def update(self, parameters: Any) -> None:
        """Take on the parameters of a mapping, or of (name, parameter) pairs."""
        for key, parameter in parameters.items() if hasattr(parameters, "items") else parameters:
            self.add_parameter(key, parameter)

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, parameter: Any) -> None:
        self.add_parameter(key, parameter)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)
