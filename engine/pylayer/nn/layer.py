"""Layer: a module with parameters, buffers and sublayers."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from pylayer.nn.members import Members, dotted_name
from pylayer.ops.arguments import require
from pylayer.ops.inplace import set_value
from pylayer.tape.hooks import HookHandle
from pylayer.tensor.array import check_place
from pylayer.tensor.dtype import as_dtype
from pylayer.tensor.tensor import Tensor


class _LayerHook(HookHandle):
    """The handle of a hook on calls; `remove` returns nothing, as in Paddle."""

    def __init__(self, hooks: dict[int, Any], hook: Callable[..., Any], prepend: bool) -> None:
        super().__init__(hooks, hook)
        earlier = [key for key in hooks if key != self._key]
        for key in earlier if prepend else ():
            hooks[key] = hooks.pop(key)

    def remove(self) -> None:  # type: ignore[override]
        """Remove the hook."""
        super().remove()


class Layer(Members):
    """The base class of layers. A subclass creates parameters and sublayers after
    ``super().__init__()``, and overrides `forward`.
    """

    training: bool

    def __init__(self, name_scope: str | None = None, dtype: Any = None) -> None:
        super().__init__(name_scope, dtype)
        attributes = self.__dict__
        attributes["_forward_pre_hooks"] = {}
        attributes["_forward_post_hooks"] = {}
        attributes["training"] = True

    # ----------------------------------------------------------------- the call
    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must override forward().")

    def backward(self, *inputs: Any) -> Any:
        """Raise ValueError: layers have no backward."""
        raise ValueError("Layer shouldn't implement backward")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self._forward_pre_hooks and not self._forward_post_hooks:
            return self.forward(*inputs, **kwargs)
        for hook in tuple(self._forward_pre_hooks.values()):
            inputs, kwargs = hook(self, inputs, kwargs)
        outputs = self.forward(*inputs, **kwargs)
        for hook in tuple(self._forward_post_hooks.values()):
            changed = hook(self, inputs, kwargs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook(layer, inputs)`` before each call of the layer; unless it returns None, its
        result replaces the inputs.

        Args:
            prepend: call it before existing hooks.
            with_kwargs: the hook also gets the keyword arguments, and may return both.
        """

        def replace_both(layer: Layer, inputs: Any, kwargs: Any) -> Any:
            changed = hook(layer, inputs, kwargs)
            if changed is None:
                return inputs, kwargs
            text = "forward pre-hook must return None or a tuple of (new_args, new_kwargs)"
            fits = isinstance(changed, tuple) and len(changed) == 2
            require(fits, f"{text}, but got {changed}", error=RuntimeError)
            return changed

        def replace_inputs(layer: Layer, inputs: Any, kwargs: Any) -> Any:
            changed = hook(layer, inputs)
            if changed is None:
                return inputs, kwargs
            return changed if isinstance(changed, tuple) else (changed,), kwargs

        general = replace_both if with_kwargs else replace_inputs
        return _LayerHook(self._forward_pre_hooks, general, prepend)

    def register_forward_post_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook(layer, inputs, outputs)`` after each call of the layer; unless it returns
        None, its result replaces the outputs.

        Args:
            prepend: call it before existing hooks.
            with_kwargs: the hook gets the keyword arguments before the outputs.
        """

        def general(layer: Layer, inputs: Any, kwargs: Any, outputs: Any) -> Any:
            return hook(layer, inputs, outputs)

        return _LayerHook(self._forward_post_hooks, hook if with_kwargs else general, prepend)

    register_forward_hook = register_forward_post_hook

    # ------------------------------------------------------------------ changes to all sublayers
    def apply(self, fn: Callable[[Layer], Any]) -> Layer:
        """Call `fn` on every layer, sublayers first."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Layer:
        """Set training or evaluation mode for the layer and its sublayers. Raises ValueError unless
        `mode` is a bool.
        """
        require(isinstance(mode, bool), "training mode is expected to be boolean")
        for layer in self.sublayers(include_self=True):
            layer.training = mode
        return self

    def eval(self) -> Layer:
        """Set evaluation mode for the layer and its sublayers."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Layer:
        """Set whether the parameters take gradients."""
        for parameter in self.parameters():
            parameter.stop_gradient = not requires_grad
        return self

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.clear_grad(set_to_zero)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        self.clear_gradients(not set_to_none)

    def to(
        self,
        device: Any = None,
        dtype: Any = None,
        blocking: bool | None = None,
        non_blocking: bool | None = None,
    ) -> Layer:
        """Change the dtype of floating-point parameters and buffers.

        Raises:
            ValueError: `device` is not the current one: layers stay where they were made.
        """
        check_place(device)
        return self if dtype is None else self.float(dtype=dtype)

    def float(self, *, dtype: Any = "float32") -> Layer:
        """Change the dtype of floating-point parameters and buffers."""
        wanted = as_dtype(dtype)
        for layer in self.sublayers(include_self=True):
            layer._dtype = wanted
            for tensor in (*layer._parameters.values(), *layer._buffers.values()):
                if tensor is not None and tensor.dtype.is_floating:
                    tensor.array = tensor.array.astype(wanted.numpy)
        return self

    def double(self) -> Layer:
        """`to` float64."""
        return self.to(dtype="float64")

    def half(self) -> Layer:
        """`to` float16."""
        return self.to(dtype="float16")

    def float16(self, excluded_layers: Any = None) -> Layer:
        """Return the layer unchanged, with a warning, as Paddle does on a CPU without low-precision
        arithmetic.
        """
        warnings.warn(
            "Paddle compiled by the user does not support float16, so keep original data type.",
            stacklevel=2,
        )
        return self

    bfloat16 = float16

    def type(self, dst_type: Any) -> Layer:
        """`to` another dtype."""
        return self.to(dtype=dst_type)

    def astype(self, dtype: Any = None) -> Layer:
        """`to` another dtype."""
        return self.to(dtype=dtype)

    def cpu(self) -> Layer:
        """`to` the CPU."""
        return self.to("cpu")

    def state_dict(
        self,
        destination: dict[str, Tensor] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Tensor]:
        """Parameters and persistable buffers by dotted name.

        Args:
            destination: a dict to put them into.
            include_sublayers: False for only those of this layer.
            structured_name_prefix: the prefix of all names.
            use_hook: ignored, as states have no hooks.
            keep_vars: False for detached Tensors.
        """
        saved = OrderedDict() if destination is None else destination
        layers = self.named_sublayers("", True, None, False) if include_sublayers else [("", self)]
        for path, layer in layers:
            buffers = [name for name in layer._buffers if name not in layer._not_saved]
            for name in (*layer._parameters, *buffers):
                tensor = getattr(layer, name)
                if tensor is not None:
                    key = structured_name_prefix + dotted_name(path, name)
                    saved[key] = tensor if keep_vars else tensor.detach()
        return saved

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Copy values into the layer, by dotted name or by the names of parameters; warn about each
        that is missing.

        Returns:
            The names that are missing from `state_dict` or have another shape there; and the
            unexpected names in it.

        Raises:
            AssertionError: a value has another dtype.
        """
        missing, loaded = [], []
        for path, tensor in self.state_dict().items():
            key = path if use_structured_name else tensor.name
            state = state_dict.get(key)
            if state is not None and list(state.shape) == list(tensor.shape):
                set_value(tensor, state)
                loaded.append(key)
                continue
            missing.append(key)
            problem = f"{key} is not found in the provided dict."
            if state is not None:
                expected = f"but the expected shape is {list(tensor.shape)}"
                problem = f"{key} receives a shape {list(state.shape)}, {expected}."
            warnings.warn(f"Skip loading for {path}. {problem}", stacklevel=2)
        return missing, [name for name in state_dict if name not in loaded]

    load_dict = set_dict = set_state_dict

    def extra_repr(self) -> str:
        """Text between the repr's brackets."""
        return ""

    def __repr__(self) -> str:
        lines = [
            f"({name}): {layer!r}".replace("\n", "\n  ") for name, layer in self.named_children()
        ]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        return "\n  ".join([f"{type(self).__name__}({self.extra_repr()}", *lines]) + "\n)"
