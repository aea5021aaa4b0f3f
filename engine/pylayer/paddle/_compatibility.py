"""Paddle's interfaces to modes, automatic casts (`amp`) and compilation (`jit`): there are two
modes; nothing is cast or compiled.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pylayer.static import variable as static
from pylayer.static.recorder import disable_static, enable_static, in_dynamic_mode
from pylayer.tape.grad_mode import grad_mode
from pylayer.tensor.array import always_false
from pylayer.tensor.dtype import as_dtype, bfloat16, float16
from pylayer.tensor.tensor import Tensor
from pylayer.watch import recording_all


@contextlib.contextmanager
def static_guard() -> Iterator[None]:
    """A block in static mode, whatever the mode around it."""
    before = in_dynamic_mode()
    enable_static()
    try:
        yield
    finally:
        (disable_static if before else enable_static)()


class _AnyVariable(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor if in_dynamic_mode() else static.Variable)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, static.Variable)


class Variable(static.Variable, metaclass=_AnyVariable):
    """The class of the current mode's values: instances are Tensors in dynamic mode, and Variables
    in static mode.
    """


# The engine has one intermediate representation.
in_dygraph_mode = in_dynamic_or_pir_mode = enabled = in_dynamic_mode
enable_dygraph, disable_dygraph = disable_static, enable_static


class Tracer:
    """The part of the tracer that layers use: `_has_grad` reads or sets whether calls are
    recorded.
    """

    @property
    def _has_grad(self) -> bool:
        return grad_mode.get()

    @_has_grad.setter
    def _has_grad(self, value: bool) -> None:
        grad_mode.set(value or recording_all())


_dygraph_tracer = functools.cache(Tracer)

_flags: dict[str, Any] = {}


def set_flags(flags: dict[str, Any]) -> None:
    """Store Paddle's flags for `get_flags`; none changes the engine's behaviour."""
    _flags.update(flags)


def get_flags(flags: Any) -> dict[str, Any]:
    """The values of flags that were set, and None for others."""
    return {name: _flags.get(name) for name in ([flags] if isinstance(flags, str) else flags)}


# --------------------------------------------------------------------------- casting
@contextlib.contextmanager
def auto_cast(
    enable: bool = True,
    custom_white_list: Any = None,
    custom_black_list: Any = None,
    level: str = "O1",
    dtype: Any = "float16",
    use_promote: bool = True,
) -> Iterator[None]:
    """A block in which nothing is cast, like Paddle's on a device without arithmetic in `dtype`.

    Raises:
        ValueError: an unknown `level` or `dtype`.
    """
    if level.upper() not in ("O0", "OD", "O1", "O2"):
        raise ValueError("level should be O0, OD, O1 or O2.")
    if as_dtype(dtype.lower() if isinstance(dtype, str) else dtype) not in (float16, bfloat16):
        raise ValueError("If enable amp, dtype should be 'float16' or 'bfloat16'.")
    yield


def autocast(
    device_type: str | None,
    dtype: Any = "float16",
    enabled: bool = True,
    cache_enabled: bool = True,
) -> contextlib.AbstractContextManager[None]:
    """`auto_cast` with torch's arguments: Paddle ignores the device and the switch of the cache."""
    return auto_cast(enabled, dtype=dtype)


def get_autocast_dtype(device_type: Any = None) -> str:
    """The dtype that Paddle reports without casting."""
    return "float16"


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype


def decorate(
    models: Any,
    optimizers: Any = None,
    level: str = "O1",
    dtype: str = "float16",
    master_weight: bool | None = None,
    save_dtype: str | None = None,
    master_grad: bool = False,
    excluded_layers: Any = None,
) -> Any:
    """The models, and the optimizers if given, unchanged: see `auto_cast`."""
    return models if optimizers is None else (models, optimizers)


@dataclass(eq=False, repr=False)
class GradScaler:
    """Scaling of losses against underflow of float16 gradients. Nothing is cast, so nothing is
    scaled.

    It has Paddle's interface and settings, and behaves like Paddle's where float16 is not
    supported.
    """

    enable: bool = True
    init_loss_scaling: float = 65536.0
    incr_ratio: float = 2.0
    decr_ratio: float = 0.5
    incr_every_n_steps: int = 2000
    decr_every_n_nan_or_inf: int = 1
    use_dynamic_loss_scaling: bool = True

    def scale(self, var: Tensor) -> Tensor:
        """Return the loss unchanged."""
        return var

    def unscale_(self, optimizer: Any) -> None:
        """Do nothing: the gradients are not scaled."""

    def minimize(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.minimize``."""
        return optimizer.minimize(*args, **kwargs)

    def step(self, optimizer: Any) -> None:
        """``optimizer.step``."""
        optimizer.step()

    def update(self) -> None:
        """Do nothing: the engine does not scale losses."""

    is_enable = is_use_dynamic_loss_scaling = always_false


# --------------------------------------------------------------------------- compiling
def to_static(
    function: Any = None,
    input_spec: Any = None,
    build_strategy: Any = None,
    backend: Any = None,
    **kwargs: Any,
) -> Any:
    """The function, or the layer, unchanged: the bundled engine runs it eagerly and compiles
    nothing.

    Its results and gradients are those of the function; the effects of compilation are missing:
    `input_spec` checks nothing, and branches on values are ordinary Python.
    """
    return to_static if function is None else function


def not_to_static(func: Callable[..., Any] | None = None) -> Any:
    """Return the function unchanged."""
    return not_to_static if func is None else func
