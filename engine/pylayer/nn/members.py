"""Members of a layer: parameters, buffers and sublayers as attributes, and by their dotted
names.
"""

from __future__ import annotations

import functools
import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from pylayer.nn.initializer import parameter_of
from pylayer.nn.words import also
from pylayer.ops.arguments import require
from pylayer.tape.symbol import Parameter
from pylayer.tensor.array import check_place
from pylayer.tensor.dtype import as_dtype, default_dtype
from pylayer.tensor.invalid import check_supported
from pylayer.tensor.tensor import Tensor
from pylayer.tensor.unique_names import generate


@functools.cache
def _scope(name: str) -> str:
    """``DemoNet`` in snake case: ``demo_net``."""
    return re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


def dotted_name(path: str, name: str) -> str:
    """Join a path and a name; the path is empty at the top."""
    return f"{path}.{name}" if path else name


class Members:
    """The base of `Layer` that stores parameters, buffers and sublayers as attributes."""

    def __init__(self, name_scope: str | None = None, dtype: Any = None) -> None:
        attributes = self.__dict__  # set directly: __setattr__ reads these
        attributes["_parameters"] = OrderedDict()
        attributes["_buffers"] = OrderedDict()
        attributes["_sub_layers"] = OrderedDict()
        attributes["_not_saved"] = set()
        attributes["_dtype"] = as_dtype(dtype) if dtype is not None else default_dtype()
        attributes["_full_name"] = generate(name_scope or _scope(type(self).__name__))

    # ----------------------------------------------------------------- attributes
    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            is_member = isinstance(value, (Parameter, Members))
            text = f"{type(self).__name__}: call super().__init__() before setting self.{name}"
            require(not is_member, text, error=RuntimeError)
            object.__setattr__(self, name, value)
            return
        register = self._register_of(name, value)
        if register is None:
            self._forget(name)
            object.__setattr__(self, name, value)
            return
        if register is self._buffers and name not in register:  # not registered, so not saved
            self._not_saved.add(name)
        for other in (self.__dict__, *self._registers()):
            if other is not register:
                other.pop(name, None)
        register[name] = value

    def _register_of(self, name: str, value: Any) -> dict[str, Any] | None:
        """Return the registry for a value that is set as an attribute; None if it belongs to
        none.
        """
        register: dict[str, Any]
        for register, kind, rule in (
            (self._parameters, Parameter, "parameter {!r} should be of type Parameter"),
            (self._sub_layers, Members, "sublayer {!r} should be of type Layer"),
            (self._buffers, Tensor, "buffers {!r} should be of type Tensor"),
        ):
            if isinstance(value, kind) or (value is None and name in register):
                return register
            text = f"assignment to {rule.format(name)} or None, but got {type(value).__name__!r}"
            require(name not in register, text, error=TypeError)
        return None

    def __getattr__(self, name: str) -> Any:
        for register in self._registers():
            if name in register:
                return register[name]
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
        )

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for register in self._registers() for name in register)]

    def _registers(self) -> tuple[dict[str, Any], ...]:
        attributes = self.__dict__
        return tuple(
            attributes[name]
            for name in ("_parameters", "_sub_layers", "_buffers")
            if name in attributes
        )

    def _forget(self, name: str) -> bool:
        return sum(register.pop(name, self) is not self for register in self._registers()) > 0

    def create_parameter(
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Any = None,
        device: Any = None,
    ) -> Any:
        """Return a new parameter, for the caller to set as an attribute; None if `attr` is
        False.
        """
        check_place(device)
        if attr is False:
            return None
        return parameter_of(
            self._full_name, shape, dtype or self._dtype, None, attr, is_bias, default_initializer
        )

    def _check_new(self, role: str, name: str, value: Any, kind: type) -> None:
        """Check the name and the type of a parameter or buffer that is to be registered."""
        text = f"The name of {role} should be a string, but received {type(name).__name__}"
        require(isinstance(name, str), text, error=TypeError)
        require(name != "", f"The name of {role} can not be empty", error=KeyError)
        require("." not in name, f"The name of {role} can not contain `.`", error=KeyError)
        is_new = name in self._parameters or name in self._buffers or not hasattr(self, name)
        require(is_new, f"attribute '{name}' already exists", error=KeyError)
        text = f"The {role} should be a {kind.__name__}, but received {type(value).__name__}"
        require(value is None or isinstance(value, kind), text, error=TypeError)

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Register a parameter (or None, to reserve the name) under `name`.

        Raises:
            TypeError: the value is not a Parameter.
            KeyError: there is an attribute of that name, or it has a dot in it.
        """
        self._check_new("parameter", name, parameter, Parameter)
        self._parameters[name] = parameter
        return parameter

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """`add_parameter`."""
        self.add_parameter(name, param)

    def add_sublayer(self, name: str, sublayer: Any) -> Any:
        """Register a sublayer (or None) under `name`.

        Raises:
            AssertionError: the value is not a Layer.
        """
        check_supported(sublayer)
        fits = sublayer is None or isinstance(sublayer, Members)
        text = f"The sublayer to be added should be a Layer, but received {type(sublayer).__name__}"
        require(fits, text, error=AssertionError)
        self._sub_layers[str(name)] = sublayer
        return sublayer

    def add_module(self, name: str, module: Any) -> None:
        """`add_sublayer`."""
        self.add_sublayer(name, module)

    register_module = add_module

    @also(persistent="persistable")
    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """Register a Tensor that is saved with the layer (if `persistable`) but not trained.

        Raises:
            TypeError: the value is not a Tensor.
            KeyError: there is an attribute of that name, or it has a dot in it.
        """
        self._check_new("buffer", name, tensor, Tensor)
        self._buffers[name] = tensor
        (self._not_saved.discard if persistable else self._not_saved.add)(name)

    # --------------------------------------------------------------- members by name
    def named_sublayers(
        self,
        prefix: str = "",
        include_self: bool = False,
        layers_set: set[Any] | None = None,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """All sublayers, at any depth, with dotted names, each once if `remove_duplicate`;
        `layers_set` has those to skip.
        """
        visited = set() if layers_set is None else layers_set
        if self in visited:
            return
        if include_self:
            if remove_duplicate:
                visited.add(self)
            yield prefix, self
        for name, layer in self.named_children():
            yield from layer.named_sublayers(
                dotted_name(prefix, name), True, visited, remove_duplicate
            )

    def sublayers(self, include_self: bool = False) -> list[Any]:
        """All layers below."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This layer and all its sublayers at any depth, with dotted names."""
        return self.named_sublayers(prefix, True, memo, remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """This layer and all its sublayers at any depth."""
        return (layer for _, layer in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The layers directly below, with their names."""
        return ((name, layer) for name, layer in self._sub_layers.items() if layer is not None)

    def children(self) -> Iterator[Any]:
        """The layers directly below."""
        return (layer for _, layer in self.named_children())

    def _named_tensors(
        self, register: str, prefix: str, include_sublayers: bool, once: bool
    ) -> Iterator[tuple[str, Any]]:
        below = self.named_sublayers(prefix, True, None, once)
        visited: set[int] = set()
        for path, layer in below if include_sublayers else [(prefix, self)]:
            for name, tensor in layer.__dict__[register].items():
                if tensor is None or id(tensor) in visited:
                    continue
                if once:
                    visited.add(id(tensor))
                yield dotted_name(path, name), tensor

    @also(recurse="include_sublayers")
    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with dotted names, each once if `remove_duplicate`."""
        return self._named_tensors("_parameters", prefix, include_sublayers, remove_duplicate)

    @also(recurse="include_sublayers")
    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """The parameters, each once."""
        return [parameter for _, parameter in self.named_parameters("", include_sublayers)]

    @also(recurse="include_sublayers")
    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with dotted names, each once if `remove_duplicate`."""
        return self._named_tensors("_buffers", prefix, include_sublayers, remove_duplicate)

    @also(recurse="include_sublayers")
    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """The buffers, each once."""
        return [buffer for _, buffer in self.named_buffers("", include_sublayers)]

    def _get_name(self) -> str:
        return type(self).__name__

    def full_name(self) -> str:
        """The name of the layer, counted per class or scope: ``linear_0``."""
        return str(self._full_name)
