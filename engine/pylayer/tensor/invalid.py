"""Checks of arguments, their common dtype, and the errors for invalid ones, with Paddle's
messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from pylayer.tape.vjp import OPS
from pylayer.tensor.dtype import common_dtype, default_dtype
from pylayer.tensor.tensor import Tensor


def invalid(text: str) -> ValueError:
    """Make the error for an invalid argument, without the text's last full stop."""
    return ValueError(f"(InvalidArgument) {text}.")


class UnsupportedError(NotImplementedError):
    """The error for a feature of Paddle that the engine lacks, although the engine has a function
    of that name.

    Args:
        feature: the name, and the condition; reported with the status.
        advice: a sentence on the alternative.
    """

    def __init__(self, feature: str, advice: str = "") -> None:
        super().__init__(f"{feature} is not part of the bundled engine. {advice}".rstrip())
        self.feature = feature


class Unsupported:
    """A placeholder for a name that the engine lacks."""

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise UnsupportedError with the name."""
        raise NotImplementedError


def check_supported(value: Any) -> None:
    """Check that a value is not a placeholder for a name that the engine lacks.

    Raises:
        UnsupportedError: it does.
    """
    if isinstance(value, Unsupported):
        value.refuse()


def no_tensor(name: str, argument: str, position: int, value: Any) -> ValueError:
    """The error for an argument that is not a Tensor (key phrase: observed rule 77)."""
    check_supported(value)
    expected = f"{name}(): argument '{argument}' (position {position}) must be Tensor"
    return invalid(wrong_type(expected, value))


PLAIN: tuple[Any, ...] = (int, float, complex, bool)


def wrong_type(expected: str, value: Any) -> str:
    """The sentence on a value in place of a Tensor, with advice for numbers, and lists and arrays
    of them.

    A tuple is rather Tensors that were not unpacked.
    """
    text = f"{expected}, but got {type(value).__name__}"
    converts = isinstance(value, (list, *PLAIN, np.generic, np.ndarray))
    return f"{text}. Convert it with paddle.to_tensor" if converts else text


def plain_number(value: Any) -> Any:
    """A number as a plain Python number: NumPy treats other classes as arrays, whose dtype counts.

    These are numbers of derived classes, such as ``x.size`` and members of an IntEnum, NumPy's
    scalars and 0-d arrays. Anything else is returned unchanged, and so are NumPy's booleans, which
    may be a condition.
    """
    if type(value) in PLAIN or (type(value) is np.ndarray and value.ndim):
        return value
    if isinstance(value, np.generic) or type(value) is np.ndarray:
        return value if value.dtype.kind == "b" else value.item()
    for kind in PLAIN[:3]:
        if isinstance(value, kind):
            return kind(value)
    return value


def as_floating(value: Any) -> Any:
    """An integer or bool Tensor cast to the default floating dtype; anything else unchanged."""
    if isinstance(value, Tensor) and value.array.dtype.kind in "iub":
        return OPS["cast"].apply(value, default_dtype())
    return value


COUNTS_ZERO_DIM = {"atan2", "fmax", "fmin", "logaddexp", "maximum", "minimum"}
"""Operations in which a 0-d Tensor counts like any other for the dtype of the result."""


def reconciled(name: str, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of an elementwise operation in a common dtype (observed rule 76).

    Floating and complex Tensors are cast to the widest; a 0-d Tensor is cast like the others unless
    its kind is higher. A Python number takes the Tensor's dtype, except that a float casts an
    integer Tensor to the default floating dtype, and a complex number to the complex dtype of that
    precision.

    Raises:
        TypeError: Tensors of different dtypes that are not all floating or complex.
    """
    inputs = [plain_number(v) for v in inputs]
    tensors = [t for t in inputs if isinstance(t, Tensor)]
    if len({t.array.dtype for t in tensors}) == 1:
        weak_float = any(isinstance(value, (float, complex)) for value in inputs)
        return [as_floating(value) for value in inputs] if weak_float else list(inputs)
    dtypes = {t.dtype for t in tensors}
    shaped = {t.dtype for t in tensors if t.ndim or name in COUNTS_ZERO_DIM}
    if name == "floor_divide" and not all(t.ndim for t in tensors):
        shaped = set()  # a 0-d Tensor counts, and may be of another kind
    common = common_dtype(name, shaped, dtypes - shaped)
    return [
        OPS["cast"].apply(v, common) if isinstance(v, Tensor) and v.dtype is not common else v
        for v in inputs
    ]


# ----------------------------------------------------------------- arguments of backward and grad
def checked_tensors(name: str, value: Any) -> list[Tensor]:
    """A Tensor or a list of Tensors, as a list. Raises AssertionError if it is neither, or
    empty.
    """
    if value is None:
        raise AssertionError(f"{name} should not be None")
    check_supported(value)
    if not isinstance(value, (Tensor, list, tuple)):
        raise AssertionError(
            f"{name} must be Tensor or list of Tensor, but got {type(value).__name__}."
        )
    tensors = [value] if isinstance(value, Tensor) else list(value)
    if not tensors:
        raise AssertionError(f"{name} cannot be empty")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise AssertionError(
                f"Elements of {name} must be paddle.Tensor, but got {type(tensor).__name__}."
            )
    return tensors


def check_switches(**switches: Any) -> None:
    """Raise AssertionError unless each option is True or False."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise AssertionError(f"{name} must be True or False, but got {value!r}.")


def repeated(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The Tensors that occur more than once in the list."""
    return [t for k, t in enumerate(tensors) if any(t is earlier for earlier in tensors[:k])]


def checked_cotangents(
    name: str, argument: str, outputs: Sequence[Tensor], value: Any
) -> list[Tensor | None]:
    """One cotangent or None per output, of `argument`; none at all for None and an empty
    list.

    Raises AssertionError if their number differs, or one is neither a Tensor nor None.
    """
    cotangents = [value] if isinstance(value, Tensor) else [] if value is None else value
    if not isinstance(cotangents, (list, tuple)) or not all(
        isinstance(c, (Tensor, type(None))) for c in cotangents
    ):
        raise AssertionError(
            f"{argument} must be None, a Tensor or a list containing None or Tensors, but got "
            f"{value!r}."
        )
    if cotangents and len(cotangents) != len(outputs):
        raise AssertionError(
            f"The length of {argument} must be equal to {name}: {len(outputs)} outputs, but "
            f"{len(cotangents)} cotangents."
        )
    return list(cotangents) or [None] * len(outputs)


def wrong_shape(output: Tensor, cotangent: Tensor) -> AssertionError:
    """The error for a cotangent that does not match its output."""
    return AssertionError(
        f"Tensor shape not match, Tensor of grad_tensor [ {cotangent.name} ] with shape "
        f"{list(cotangent.shape)} mismatch Tensor [ {output.name} ] with shape {list(output.shape)}"
    )
