"""The errors of wrong arguments, in Paddle's words."""

from __future__ import annotations

from typing import Any


def invalid(text: str) -> ValueError:
    """The error of a wrong argument; the last full stop is left out of the text."""
    return ValueError(f"(InvalidArgument) {text}.")


def no_tensor(name: str, argument: str, position: int, value: Any) -> ValueError:
    """The error of an argument that is no Tensor (key phrase: observed rule 77)."""
    return invalid(
        f"{name}(): argument '{argument}' (position {position}) must be Tensor, but got {type(value).__name__}. "
        f"Convert it with paddle.to_tensor"
    )
