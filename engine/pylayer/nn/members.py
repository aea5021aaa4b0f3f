"""What is in a layer: parameters, buffers and sublayers as attributes, and by their dotted names."""

from __future__ import annotations

import functools
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from pylayer.nn.initializer import parameter_of
from pylayer.nn.words import also
from pylayer.ops.creation import empty
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


class Members:
    """Parameters, buffers and sublayers, which are attributes."""

    def __init__(self, name_scope: str | None = None, dtype: Any = None) -> None:
        own = self.__dict__  # straight into it: __setattr__ looks for these
        own["_parameters"] = OrderedDict()
        own["_buffers"] = OrderedDict()
        own["_sub_layers"] = OrderedDict()
        own["_not_saved"] = set()
        own["_dtype"] = as_dtype(dtype) if dtype is not None else default_dtype()
        own["_full_name"] = generate(name_scope or _scope(type(self).__name__))

    # ----------------------------------------------------------------- attributes
    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            if isinstance(value, (Parameter, Members)):
                raise RuntimeError(
                    f"{type(self).__name__}: call super().__init__() before setting self.{name}."
                )
            object.__setattr__(self, name, value)
            return
        for register, kind, what in self._kinds():
            if isinstance(value, kind) or (value is None and name in register):
                for other in (self.__dict__, *(d for d in self._registers() if d is not register)):
                    other.pop(name, None)
                if (
                    kind is Tensor and name not in register
                ):  # not registered as a buffer: one that is not saved
                    self._not_saved.add(name)
                register[name] = value
                return
            if name in register:
                raise TypeError(
                    f"assignment to {what.format(name)} or None, but got {type(value).__name__!r}"
                )
        self._forget(name)
        object.__setattr__(self, name, value)

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

    def _kinds(self) -> tuple[tuple[dict[str, Any], type, str], ...]:
        """The registers, the type of what each holds, and what messages say of an assignment."""
        return (
            (self._parameters, Parameter, "parameter {!r} should be of type Parameter"),
            (self._sub_layers, Members, "sublayer {!r} should be of type Layer"),
            (self._buffers, Tensor, "buffers {!r} should be of type Tensor"),
        )

    def _registers(self) -> tuple[dict[str, Any], ...]:
        own = self.__dict__
        return tuple(
            own[name] for name in ("_parameters", "_sub_layers", "_buffers") if name in own
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
        """A new parameter, for the caller to set as an attribute; None if `attr` is False."""
        check_place(device)
        if attr is False:
            return None
        return parameter_of(
            self._full_name, shape, dtype or self._dtype, None, attr, is_bias, default_initializer
        )

    def create_tensor(
        self, name: str | None = None, persistable: bool | None = None, dtype: Any = None
    ) -> Tensor:
        """A Tensor without elements, for what a forward will set."""
        tensor: Tensor = empty([0], dtype or self._dtype)
        tensor.name = (
            f"{self._full_name}.{name}" if name else generate(f"{self._full_name}._generated_var")
        )
        return tensor

    create_variable = create_tensor

    def _check_new(self, what: str, name: str, register: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"The name of {what} should be a string, but received {type(name).__name__}."
            )
        if not name or "." in name:
            raise KeyError(f"The name of {what} can not {'contain `.`' if name else 'be empty'}.")
        if name not in register and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists.")

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Register a parameter (or None, to reserve the name) under `name`.

        Raises:
            TypeError: it is not a Parameter.
            KeyError: there is an attribute of that name, or it has a dot in it.
        """
        self._check_new("parameter", name, self._parameters)
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(
                f"The parameter to be added should be a Parameter, but received {type(parameter).__name__}."
            )
        self._parameters[name] = parameter
        return parameter

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """`add_parameter`."""
        self.add_parameter(name, param)

    def add_sublayer(self, name: str, sublayer: Any) -> Any:
        """Register a sublayer (or None) under `name`.

        Raises:
            AssertionError: it is not a Layer.
        """
        check_supported(sublayer)
        if sublayer is not None and not isinstance(sublayer, Members):
            raise AssertionError(
                f"The sublayer to be added should be a Layer, but received {type(sublayer).__name__}."
            )
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
            TypeError: it is not a Tensor.
            KeyError: there is an attribute of that name, or it has a dot in it.
        """
        self._check_new("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"The registered buffer should be a Paddle.Tensor, but received {type(tensor).__name__}."
            )
        self._buffers[name] = tensor
        (self._not_saved.discard if persistable else self._not_saved.add)(name)

    # ----------------------------------------------------------------- what has a dotted name
    def get_sublayer(self, target: str) -> Any:
        """The layer of a dotted name; this one for an empty one.

        Raises:
            AttributeError: there is none, or something else.
        """
        found: Any = self
        for name in target.split(".") if target else ():
            found = found._named_member(name, Members, "an nn.Layer")
        return found

    get_submodule = get_sublayer

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of a dotted name. Raises AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        return self.get_sublayer(path)._named_member(name, Tensor, "an nn.Parameter")  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name. Raises AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        layer = self.get_sublayer(path)
        return layer._named_member(name, Tensor, "a buffer", layer._buffers)  # type: ignore[no-any-return]

    def _named_member(
        self, name: str, kind: type, what: str, register: dict[str, Any] | None = None
    ) -> Any:
        if not hasattr(self, name):
            raise AttributeError(f"{self._get_name()} has no attribute `{name}`")
        found = getattr(self, name)
        if not isinstance(found, kind) or (register is not None and name not in register):
            raise AttributeError(f"`{name}` is not {what}")
        return found

    @also(module="layer")
    def set_sublayer(self, target: str, layer: Any, strict: bool = False) -> None:
        """Put a layer where a dotted name is; if `strict` one has to be there already.

        Raises:
            ValueError: the name is empty, or it is no layer.
            AttributeError: what is above is not there, or what is there is no layer.
        """
        if not target:
            raise ValueError("Cannot set the sublayer without a target name!")
        if not isinstance(layer, Members):
            raise ValueError(f"`module` is not an nn.Layer, found {type(layer)}")
        path, _, name = target.rpartition(".")
        parent = self.get_sublayer(path)
        if strict or hasattr(parent, name):
            parent._named_member(name, Members, "an nn.Layer")
        setattr(parent, name, layer)

    set_submodule = set_sublayer

    # ----------------------------------------------------------------- what is in it
    def named_sublayers(
        self,
        prefix: str = "",
        include_self: bool = False,
        layers_set: set[Any] | None = None,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """All layers below with dotted names, each once if `remove_duplicate`; `layers_set` has those passed over."""
        seen = set() if layers_set is None else layers_set
        stack: list[tuple[str, Any]] = [(prefix, self)]
        while stack:
            name, layer = stack.pop()
            if layer in seen:
                continue
            if remove_duplicate and (include_self or layer is not self):
                seen.add(layer)
            if include_self or layer is not self:
                yield name, layer
            below = [
                (f"{name}.{key}" if name else key, child)
                for key, child in layer._sub_layers.items()
                if child is not None
            ]
            stack.extend(reversed(below))

    def sublayers(self, include_self: bool = False) -> list[Any]:
        """All layers below."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This layer and all below, with dotted names."""
        return self.named_sublayers(prefix, True, memo, remove_duplicate)

    def modules(self) -> Iterator[Any]:
        """This layer and all below."""
        return (layer for _, layer in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The layers directly below, with their names."""
        return ((name, layer) for name, layer in self._sub_layers.items() if layer is not None)

    def children(self) -> Iterator[Any]:
        """The layers directly below."""
        return (layer for _, layer in self.named_children())

    def _named(
        self, register: str, prefix: str, include_sublayers: bool, once: bool
    ) -> Iterator[tuple[str, Any]]:
        layers: Iterable[tuple[str, Any]] = (
            self.named_sublayers(prefix, True, None, once)
            if include_sublayers
            else [(prefix, self)]
        )
        seen: set[int] = set()
        for path, layer in layers:
            for name, tensor in layer.__dict__[register].items():
                if tensor is not None and id(tensor) not in seen:
                    if once:
                        seen.add(id(tensor))
                    yield (f"{path}.{name}" if path else name), tensor

    @also(recurse="include_sublayers")
    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with dotted names, each once if `remove_duplicate`."""
        return self._named("_parameters", prefix, include_sublayers, remove_duplicate)

    @also(recurse="include_sublayers")
    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """The parameters, each once."""
        return [parameter for _, parameter in self.named_parameters("", include_sublayers)]

    @also(recurse="include_sublayers")
    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with dotted names, each once if `remove_duplicate`."""
        return self._named("_buffers", prefix, include_sublayers, remove_duplicate)

    @also(recurse="include_sublayers")
    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """The buffers, each once."""
        return [buffer for _, buffer in self.named_buffers("", include_sublayers)]

    def _get_name(self) -> str:
        return type(self).__name__

    def full_name(self) -> str:
        """The name of the layer, counted per class or scope: ``linear_0``."""
        return str(self._full_name)
