"""Layer: a module with parameters, buffers and sublayers."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pylayer.nn.members import Members
from pylayer.ops.inplace import set_value
from pylayer.tape.hooks import HookHandle
from pylayer.tensor.array import check_place
from pylayer.tensor.dtype import as_dtype
from pylayer.tensor.tensor import Tensor


class _IncompatibleKeys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _LayerHook(HookHandle):
    """The handle of a hook on calls; `remove` returns nothing, as in Paddle."""

    def __init__(
        self,
        hooks: dict[int, Any],
        hook: Callable[..., Any],
        options: dict[int, set[str]],
        prepend: bool,
        **on: bool,
    ) -> None:
        super().__init__(hooks, hook)
        self._options = options
        options[self._key] = {name for name, is_on in on.items() if is_on}
        if prepend:
            for key in [key for key in hooks if key != self._key]:
                hooks[key] = hooks.pop(key)

    def remove(self) -> None:  # type: ignore[override]
        """Remove the hook."""
        super().remove()
        self._options.pop(self._key, None)


class Layer(Members):
    """To be subclassed: make parameters and sublayers after ``super().__init__()``, and override `forward`."""

    training: bool

    def __init__(self, name_scope: str | None = None, dtype: Any = None) -> None:
        super().__init__(name_scope, dtype)
        own = self.__dict__
        own["_forward_pre_hooks"] = {}
        own["_forward_post_hooks"] = {}
        own["_hook_options"] = {}
        own["_state_dict_hooks"] = {}
        own["training"] = True

    # ----------------------------------------------------------------- the call
    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """To be overridden: the outputs."""
        raise NotImplementedError(f"{type(self).__name__} must override forward().")

    def backward(self, *inputs: Any) -> Any:
        """Not a layer's: raises ValueError."""
        raise ValueError("Layer shouldn't implement backward")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self._forward_pre_hooks and not self._forward_post_hooks:
            return self.forward(*inputs, **kwargs)
        after = dict(self._forward_post_hooks)
        outputs = None
        try:
            for key, hook in tuple(self._forward_pre_hooks.items()):
                if "with_kwargs" in self._hook_options[key]:
                    inputs, kwargs = _both(hook(self, inputs, kwargs), inputs, kwargs)
                elif (changed := hook(self, inputs)) is not None:
                    inputs = changed if isinstance(changed, tuple) else (changed,)
            outputs = self.forward(*inputs, **kwargs)
            for key, hook in self._forward_post_hooks.copy().items():
                del after[key]
                outputs = self._seen(key, hook, inputs, kwargs, outputs)
        except Exception:
            for key, hook in after.items():
                if "always_call" in self._hook_options[key]:
                    self._seen(key, hook, inputs, kwargs, outputs)
            raise
        return outputs

    def _seen(
        self, key: int, hook: Callable[..., Any], inputs: Any, kwargs: dict[str, Any], outputs: Any
    ) -> Any:
        """The outputs of a call after a hook behind it."""
        named = (kwargs,) if "with_kwargs" in self._hook_options[key] else ()
        changed = hook(self, inputs, *named, outputs)
        return outputs if changed is None else changed

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Have ``hook(layer, inputs)`` see, and unless it returns None replace, the inputs of each call.

        Args:
            prepend: before those that are there.
            with_kwargs: it is called with the arguments by name as well, and may return both.
        """
        return _LayerHook(
            self._forward_pre_hooks, hook, self._hook_options, prepend, with_kwargs=with_kwargs
        )

    def register_forward_post_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Have ``hook(layer, inputs, outputs)`` see, and unless it returns None replace, the outputs of each call.

        Args:
            prepend: before those that are there.
            with_kwargs: the arguments by name stand before the outputs.
            always_call: also when the call raises, with None for outputs.
        """
        on = {"with_kwargs": with_kwargs, "always_call": always_call}
        return _LayerHook(self._forward_post_hooks, hook, self._hook_options, prepend, **on)

    register_forward_hook = register_forward_post_hook

    # ----------------------------------------------------------------- what is done to all of it
    def apply(self, fn: Callable[[Layer], Any]) -> Layer:
        """Call `fn` on every layer, those below first."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Layer:
        """Training mode, or evaluation mode, here and below. Raises ValueError unless `mode` is a bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for layer in self.sublayers(include_self=True):
            layer.training = mode
        return self

    def eval(self) -> Layer:
        """Evaluation mode, here and below."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Layer:
        """Have all parameters take gradients, or none."""
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
        """Change the dtype of parameters and buffers, those of floating point.

        Raises:
            ValueError: `device` is not the current one: layers stay where they were made.
        """
        check_place(device)
        return self if dtype is None else self.float(dtype=dtype)

    def float(self, excluded_layers: Any = None, *, dtype: Any = "float32") -> Layer:
        """Change the dtype of parameters and buffers, but not of layers of the classes `excluded_layers`.

        Raises:
            TypeError: `excluded_layers` is no class, nor a list of them.
        """
        excluded = excluded_layers or ()
        if not isinstance(excluded, (type, list, tuple)):
            raise TypeError(
                f"excluded_layers should be type nn.Layer or list, but got {type(excluded_layers).__name__}."
            )
        wanted = as_dtype(dtype)
        for layer in self.sublayers(include_self=True):
            if isinstance(layer, excluded if isinstance(excluded, type) else tuple(excluded)):
                continue
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
        """The layer as it is, and a warning: as Paddle on a CPU without arithmetic of low precision."""
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

    def _state_dict_impl(
        self,
        destination: dict[str, Tensor] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        include_non_persistable_buffer: bool = False,
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Tensor]:
        saved = OrderedDict() if destination is None else destination
        layers = self.named_sublayers("", True, None, False) if include_sublayers else [("", self)]
        for path, layer in layers:
            start = structured_name_prefix + (f"{path}." if path else "")
            buffers = (
                layer._buffers
                if include_non_persistable_buffer
                else layer._buffers.keys() - layer._not_saved
            )
            for name in (*layer._parameters, *(name for name in layer._buffers if name in buffers)):
                tensor = getattr(layer, name)
                if tensor is not None:
                    saved[start + name] = tensor if keep_vars else tensor.detach()
            for hook in layer._state_dict_hooks.values() if use_hook else ():
                changed = hook(saved)
                saved = saved if changed is None else changed
        return saved

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Parameters and persistable buffers by dotted name.

        Args:
            destination: a dict to put them into.
            include_sublayers: False for those of this layer alone.
            structured_name_prefix: what names start with.
            use_hook: False to leave out the hooks of `register_state_dict_hook`.
            keep_vars: False for detached Tensors; so it is if unsaid, where the name starts with a `prefix`.
        """
        if "prefix" in kwargs or (len(args) > 1 and isinstance(args[1], str)):
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False)) | kwargs
            start = given.pop("prefix", "")
            return self._state_dict_impl(
                structured_name_prefix=start, **{"keep_vars": False, **given}
            )
        return self._state_dict_impl(*args, **kwargs)

    def to_static_state_dict(
        self,
        destination: dict[str, Tensor] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Tensor]:
        """`state_dict` with the buffers that are not persistable."""
        return self._state_dict_impl(
            destination, include_sublayers, structured_name_prefix, True, use_hook, keep_vars
        )

    def register_state_dict_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have ``hook(state)`` see, and unless it returns None replace, what `state_dict` gives."""
        return HookHandle(self._state_dict_hooks, hook)

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Copy values in by dotted name, or by the names of parameters; a warning for each that is missing.

        Returns:
            The names that were missing from `state_dict`, or there with another shape; and those that were in it
            without being asked for.

        Raises:
            AssertionError: a value is of another dtype.
        """
        missing, found = [], {}
        for path, tensor in self._state_dict_impl(use_hook=False).items():
            key = path if use_structured_name else tensor.name
            state = state_dict.get(key)
            if state is not None and list(state.shape) == list(tensor.shape):
                found[key] = (tensor, state)
                continue
            missing.append(key)
            expected = f"but the expected shape is {list(tensor.shape)}"
            problem = (
                f"{key} is not found in the provided dict."
                if state is None
                else f"{key} receives a shape {list(state.shape)}, {expected}."
            )
            warnings.warn(f"Skip loading for {path}. {problem}", stacklevel=2)
        for tensor, state in found.values():
            set_value(tensor, state)
        return missing, [name for name in state_dict if name not in found]

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """`set_state_dict`. Raises RuntimeError for names that are missing or too many, if `strict`."""
        result = _IncompatibleKeys(*self.set_state_dict(state_dict))
        texts = [
            f"{what} key(s) in state_dict: {', '.join(map(repr, names))}. "
            for what, names in zip(("Missing", "Unexpected"), result, strict=True)
            if names
        ]
        if strict and texts:
            raise RuntimeError(
                "\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *texts])
            )
        return result

    load_dict = set_dict = set_state_dict

    def extra_repr(self) -> str:
        """What the repr shows between the brackets."""
        return ""

    def __repr__(self) -> str:
        lines = [
            f"({name}): {layer!r}".replace("\n", "\n  ") for name, layer in self.named_children()
        ]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        return "\n  ".join([f"{type(self).__name__}({self.extra_repr()}", *lines]) + "\n)"


def _both(
    result: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call after a hook before it that sees both kinds."""
    if result is None:
        return inputs, kwargs
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
        )
    return result
