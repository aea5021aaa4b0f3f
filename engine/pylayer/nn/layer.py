"""Layer: a module with parameters, buffers and sublayers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pylayer.array import XP, check_place
from pylayer.dtype import as_dtype, default_dtype
from pylayer.hooks import HookHandle
from pylayer.nn.initializer import create_parameter
from pylayer.ops.creation import to_tensor
from pylayer.symbol import Parameter, at_once
from pylayer.tensor import Tensor


class Layer:
    """To be subclassed: make parameters and sublayers after ``super().__init__()``, and override `forward`."""

    training: bool

    def __init__(self, name_scope: str | None = None, dtype: Any = None) -> None:
        own = self.__dict__  # straight into it: __setattr__ looks for these
        own["_parameters"] = OrderedDict()
        own["_buffers"] = OrderedDict()
        own["_sub_layers"] = OrderedDict()
        own["_not_saved"] = set()
        own["_forward_pre_hooks"] = {}
        own["_forward_post_hooks"] = {}
        own["_dtype"] = as_dtype(dtype) if dtype is not None else default_dtype()
        own["_name"] = name_scope or type(self).__name__.lower()
        own["training"] = True

    # ----------------------------------------------------------------- attributes
    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            if isinstance(value, (Parameter, Layer)):
                raise RuntimeError(f"{type(self).__name__}: call super().__init__() before setting self.{name}.")
            object.__setattr__(self, name, value)
            return
        for register, kind, what in self._kinds():
            if isinstance(value, kind) or (value is None and name in register):
                for other in (self.__dict__, *(d for d in self._registers() if d is not register)):
                    other.pop(name, None)
                if kind is Tensor and name not in register:  # not registered as a buffer: one that is not saved
                    self._not_saved.add(name)
                register[name] = value
                return
            if name in register:
                raise TypeError(
                    f"assignment to {what} '{name}' should be of type {kind.__name__} or None, but got "
                    f"{type(value).__name__!r}"
                )
        self._forget(name)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for register in self._registers():
            if name in register:
                return register[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for register in self._registers() for name in register)]

    def _kinds(self) -> tuple[tuple[dict[str, Any], type, str], ...]:
        """The registers, the type of what each holds, and what messages call it."""
        return (
            (self._parameters, Parameter, "parameter"),
            (self._sub_layers, Layer, "sublayer"),
            (self._buffers, Tensor, "buffers"),
        )

    def _registers(self) -> tuple[dict[str, Any], ...]:
        own = self.__dict__
        return tuple(own[name] for name in ("_parameters", "_sub_layers", "_buffers") if name in own)

    def _forget(self, name: str) -> bool:
        return sum(register.pop(name, self) is not self for register in self._registers()) > 0

    def create_parameter(
        self, shape: Any, attr: Any = None, dtype: Any = None, is_bias: bool = False, default_initializer: Any = None
    ) -> Any:
        """A new parameter, for the caller to set as an attribute; None if `attr` is False."""
        if attr is False:
            return None
        return create_parameter(shape, dtype or self._dtype, None, attr, is_bias, default_initializer)

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Register a parameter (or None, to reserve the name) under `name`.

        Raises:
            TypeError: it is not a Parameter.
        """
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(f"The parameter to be added should be Parameter, but received {type(parameter).__name__}.")
        self._parameters[name] = parameter
        return parameter

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        """Register a sublayer under `name`.

        Raises:
            TypeError: it is not a Layer.
        """
        if not isinstance(sublayer, Layer):
            raise TypeError(f"The sublayer to be added should be Layer, but received {type(sublayer).__name__}.")
        self._sub_layers[str(name)] = sublayer
        return sublayer

    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """Register a Tensor that is saved with the layer (if `persistable`) but not trained.

        Raises:
            TypeError: it is not a Tensor.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"The registered buffer should be a Tensor, but received {type(tensor).__name__}.")
        self._buffers[name] = tensor
        (self._not_saved.discard if persistable else self._not_saved.add)(name)

    # ----------------------------------------------------------------- the call
    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """To be overridden: the outputs."""
        raise NotImplementedError(f"{type(self).__name__} must override forward().")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        for hook in tuple(self._forward_pre_hooks.values()):
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in tuple(self._forward_post_hooks.values()):
            changed = hook(self, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have ``hook(layer, inputs)`` see, and unless it returns None replace, the inputs of each call."""
        return HookHandle(self._forward_pre_hooks, hook)

    def register_forward_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have ``hook(layer, inputs, outputs)`` see, and unless it returns None replace, the outputs of each call."""
        return HookHandle(self._forward_post_hooks, hook)

    # ----------------------------------------------------------------- what is in it
    def named_sublayers(self, prefix: str = "", include_self: bool = False) -> Iterator[tuple[str, Layer]]:
        """All layers below, each once, with dotted names."""
        seen: set[int] = set()
        stack: list[tuple[str, Layer]] = [(prefix, self)]
        while stack:
            name, layer = stack.pop()
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            if include_self or layer is not self:
                yield name, layer
            below = [
                (f"{name}.{key}" if name else key, child)
                for key, child in layer._sub_layers.items()
                if child is not None
            ]
            stack.extend(reversed(below))

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """All layers below."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """The layers directly below, with their names."""
        return ((name, layer) for name, layer in self._sub_layers.items() if layer is not None)

    def children(self) -> Iterator[Layer]:
        """The layers directly below."""
        return (layer for _, layer in self.named_children())

    def _named(self, register: str, prefix: str, include_sublayers: bool) -> Iterator[tuple[str, Any]]:
        layers: Iterable[tuple[str, Layer]] = (
            self.named_sublayers(prefix, True) if include_sublayers else [(prefix, self)]
        )
        seen: set[int] = set()
        for path, layer in layers:
            for name, tensor in layer.__dict__[register].items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield (f"{path}.{name}" if path else name), tensor

    def named_parameters(self, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with dotted names."""
        return self._named("_parameters", prefix, include_sublayers)

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """The parameters, each once."""
        return [parameter for _, parameter in self.named_parameters("", include_sublayers)]

    def named_buffers(self, prefix: str = "", include_sublayers: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers, each once, with dotted names."""
        return self._named("_buffers", prefix, include_sublayers)

    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """The buffers, each once."""
        return [buffer for _, buffer in self.named_buffers("", include_sublayers)]

    # ----------------------------------------------------------------- what is done to all of it
    def apply(self, fn: Callable[[Layer], Any]) -> Layer:
        """Call `fn` on every layer, those below first."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self) -> Layer:
        """Training mode, here and below."""
        for layer in self.sublayers(include_self=True):
            layer.training = True
        return self

    def eval(self) -> Layer:
        """Evaluation mode, here and below."""
        for layer in self.sublayers(include_self=True):
            layer.training = False
        return self

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.clear_grad(set_to_zero)

    def to(self, device: Any = None, dtype: Any = None, blocking: bool | None = None) -> Layer:
        """Change the floating-point dtype of parameters and buffers.

        Raises:
            ValueError: `device` is not the current one: layers stay where they were made.
        """
        check_place(device)
        if dtype is not None:
            wanted = as_dtype(dtype)
            for layer in self.sublayers(include_self=True):
                layer._dtype = wanted
            for tensor in (*self.parameters(), *self.buffers()):
                if tensor.dtype.is_floating:
                    tensor.array = tensor.array.astype(wanted.numpy)
        return self

    def astype(self, dtype: Any = None) -> Layer:
        """`to` another dtype."""
        return self.to(dtype=dtype)

    def state_dict(self) -> OrderedDict[str, Tensor]:
        """Parameters and persistable buffers by dotted name."""
        saved: OrderedDict[str, Tensor] = OrderedDict()
        for path, layer in self.named_sublayers(include_self=True):
            for name, parameter in layer.named_parameters("", include_sublayers=False):
                saved[f"{path}.{name}" if path else name] = parameter
            for name, buffer in layer._buffers.items():
                if buffer is not None and name not in layer._not_saved:
                    saved[f"{path}.{name}" if path else name] = buffer
        return saved

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Copy values in by name.

        Returns:
            The names that were missing from `state_dict`, and those that were in it without being asked for.

        Raises:
            ValueError: a shape differs.
        """
        own = self.state_dict()
        for name, tensor in own.items():
            if name not in state_dict:
                continue
            values = at_once(to_tensor)(state_dict[name], tensor.dtype)
            if values.shape != tensor.shape:
                raise ValueError(f"{name} receives a shape {values.shape}, but the expected shape is {tensor.shape}.")
            tensor.array = XP[type(tensor.array)].asarray(values.array)
        return [n for n in own if n not in state_dict], [n for n in state_dict if n not in own]

    load_dict = set_dict = set_state_dict

    def full_name(self) -> str:
        """The name of the layer."""
        return str(self._name)

    def extra_repr(self) -> str:
        """What the repr shows between the brackets."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {layer!r}".replace("\n", "\n  ") for name, layer in self.named_children()]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        return "\n  ".join([f"{type(self).__name__}({self.extra_repr()}", *lines]) + "\n)"
