"""The errors of wrong arguments, in Paddle's words."""

from __future__ import annotations

from typing import Any


def invalid(name: str, text: str) -> ValueError:
    """The error of an argument of the function `name`; its last full stop is left out of the text."""
    return ValueError(f"(InvalidArgument) {name}(): {text}.")


def no_tensor(name: str, argument: str, position: int, value: Any) -> ValueError:
    """The error of an argument that is no Tensor (key phrase: observed rule 77)."""
    which = f"argument '{argument}' (position {position})"
    text = f"{which} must be Tensor, but got {type(value).__name__}. Convert it with paddle.to_tensor"
    return invalid(name, text)
