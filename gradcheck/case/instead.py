"""The outcome of a case in the format of a release file: values, gradients, or an exception."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from gradcheck.case.user_code import compile_expression, phase_of
from gradcheck.support.foreign import text_of, type_name

LONGEST_RECORDED = 80
"""Characters of an exception's text that are recorded."""
_SUMMARY = "Error Message Summary:"
"""The heading after the trace in a message of Paddle; the addresses in a trace differ from run to
run.
"""
_VARYING = re.compile(r"0x[0-9a-fA-F]+|/\S+|\n+|-{5,}|\d{6,}")
"""Parts of a message that may differ from run to run."""


class OutcomeReader:
    """Reads values from the namespace of a program that ran; `on_host` gives a Tensor's array."""

    def __init__(self, namespace: Mapping[str, Any], on_host: Callable[[Any], Any]) -> None:
        self.namespace, self.on_host = namespace, on_host

    def exception(self, error: Exception) -> dict[str, Any]:
        """The exception that ended the run: its type, its phase, and the part of its text that does
        not vary.
        """
        raises = {"type": type_name(error).rpartition(".")[2], "phase": phase_of(error)}
        text = text_of(error).rpartition(_SUMMARY)[2]
        parts = [segment.strip() for segment in _VARYING.split(text)]
        message = max(parts, key=len)[:LONGEST_RECORDED].strip()
        return {"raises": {**raises, "message": message} if message else raises}

    def values(self, expressions: Iterable[str]) -> dict[str, Any]:
        """The values of expressions, without those that cannot be evaluated or written."""
        values = {}
        for expression in expressions:
            with suppress(Exception):  # raised by the scenario's code: anything
                code = compile_expression(expression, "", 1)
                values[expression] = self.plain(eval(code, dict(self.namespace)))
        return values

    def remaining_gradients(self) -> dict[str, Any]:
        """The gradients of the Tensors in the program's namespace, by ``NAME.grad``."""
        names = [name for name, value in self.namespace.items() if hasattr(value, "stop_gradient")]
        leaves = [name for name in names if not self.namespace[name].stop_gradient]
        return self.values(f"{name}.grad" for name in leaves)

    def plain(self, value: Any) -> Any:
        """A value as plain data for YAML. Raises TypeError: it cannot be written."""
        value = self.on_host(value)
        if isinstance(value, (np.ndarray, np.generic)):
            value = np.asarray(value).tolist()
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise TypeError(f"{type_name(value)} cannot be written")
