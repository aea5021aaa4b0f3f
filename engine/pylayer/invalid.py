"""Arguments checked, and the errors of wrong ones, in Paddle's words, and of what the engine does not do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.tensor import Tensor


def invalid(text: str) -> ValueError:
    """The error of a wrong argument; the last full stop is left out of the text."""
    return ValueError(f"(InvalidArgument) {text}.")


def no_tensor(name: str, argument: str, position: int, value: Any) -> ValueError:
    """The error of an argument that is no Tensor (key phrase: observed rule 77)."""
    return invalid(
        f"{name}(): argument '{argument}' (position {position}) must be Tensor, but got {type(value).__name__}. "
        f"Convert it with paddle.to_tensor"
    )


class UnsupportedError(NotImplementedError):
    """What Paddle does and the engine does not, where the name alone does not tell.

    Args:
        what: the name, and when; for the verdict.
        advice: what to do instead, a sentence.
    """

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what} is not part of the bundled engine. {advice}".rstrip())
        self.what = what


# --------------------------------------------------------------------------- of backward and grad
def checked_tensors(name: str, value: Any) -> list[Tensor]:
    """A Tensor or a list of some, as a list. Raises AssertionError if it is neither, or empty."""
    if value is None:
        raise AssertionError(f"{name} should not be None")
    if not isinstance(value, (Tensor, list, tuple)):
        raise AssertionError(f"{name} must be Tensor or list of Tensor, but got {type(value).__name__}.")
    tensors = [value] if isinstance(value, Tensor) else list(value)
    if not tensors:
        raise AssertionError(f"{name} cannot be empty")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"Elements of {name} must be paddle.Tensor, but got {type(tensor).__name__}.")
    return tensors


def check_switches(**switches: Any) -> None:
    """Raise AssertionError unless each is True or False."""
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise AssertionError(f"{name} must be True or False, but got {value!r}.")


def repeated(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Those that are given before as well."""
    return [t for k, t in enumerate(tensors) if any(t is earlier for earlier in tensors[:k])]


def checked_cotangents(name: str, own: str, outputs: Sequence[Tensor], value: Any) -> list[Tensor | None]:
    """One cotangent or None per output, of the argument `own`; none at all for None and an empty list.

    Raises AssertionError if they are not as many, or one is neither a Tensor nor None.
    """
    cotangents = [value] if isinstance(value, Tensor) else value
    if not isinstance(cotangents, (list, tuple, type(None))) or not all(
        isinstance(c, (Tensor, type(None))) for c in cotangents or ()
    ):
        raise AssertionError(f"{own} must be None, a Tensor or a list containing None or Tensors, but got {value!r}.")
    if not cotangents:
        return [None] * len(outputs)
    if len(cotangents) != len(outputs):
        raise AssertionError(
            f"The length of {own} must be equal to {name}: {len(outputs)} outputs, but {len(cotangents)} cotangents."
        )
    return list(cotangents)


def wrong_shape(output: Tensor, given: Tensor) -> AssertionError:
    """The error for a cotangent that does not fit."""
    return AssertionError(
        f"Tensor shape not match, Tensor of grad_tensor [ {given.name} ] with shape {list(given.shape)} mismatch "
        f"Tensor [ {output.name} ] with shape {list(output.shape)}"
    )
