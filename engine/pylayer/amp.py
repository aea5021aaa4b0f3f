"""`paddle.amp` as it is on a processor without low-precision arithmetic: everything is computed in the dtype it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pylayer.device import no
from pylayer.dtype import as_dtype, bfloat16, float16
from pylayer.tensor import Tensor


@contextmanager
def auto_cast(
    enable: bool = True,
    custom_white_list: Any = None,
    custom_black_list: Any = None,
    level: str = "O1",
    dtype: Any = "float16",
    use_promote: bool = True,
) -> Iterator[None]:
    """A block in which nothing is cast: as Paddle does where the device has no arithmetic of `dtype`.

    Raises:
        ValueError: another `level` or `dtype`.
    """
    if level.upper() not in ("O0", "OD", "O1", "O2"):
        raise ValueError("level should be O0, OD, O1 or O2.")
    if as_dtype(dtype.lower() if isinstance(dtype, str) else dtype) not in (float16, bfloat16):
        raise ValueError("If enable amp, dtype should be 'float16' or 'bfloat16'.")
    yield


def autocast(
    device_type: str | None, dtype: Any = "float16", enabled: bool = True, cache_enabled: bool = True
) -> AbstractContextManager[None]:
    """`auto_cast` in torch's words: Paddle reads neither the device nor the cache's switch."""
    return auto_cast(enabled, dtype=dtype)


def get_autocast_dtype(device_type: Any = None) -> str:
    """What Paddle says where nothing is cast."""
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
    """The models, and the optimizers if given, as they are: see `auto_cast`."""
    return models if optimizers is None else (models, optimizers)


is_float16_supported = is_bfloat16_supported = is_autocast_enabled = no  # nothing is cast by itself


class GradScaler:
    """Scaling of losses against underflow of float16 gradients. Nothing is cast, so nothing is scaled.

    It has Paddle's interface, and does what Paddle's does where float16 is not supported.
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 65536.0,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        self._ratios = {"incr_ratio": incr_ratio, "decr_ratio": decr_ratio}

    def scale(self, var: Tensor) -> Tensor:
        """The loss as it is."""
        return var

    def unscale_(self, optimizer: Any) -> None:
        """Nothing was scaled."""

    def minimize(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.minimize``."""
        return optimizer.minimize(*args, **kwargs)

    def step(self, optimizer: Any) -> None:
        """``optimizer.step``."""
        optimizer.step()

    def update(self) -> None:
        """There is no scale to change."""

    is_enable = is_use_dynamic_loss_scaling = no

    def state_dict(self) -> dict[str, Any]:
        """Empty: there is no scale."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take an empty state on."""
