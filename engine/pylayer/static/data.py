"""Inputs of a program: fed Variables and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.nn.initializer import create_parameter as new_parameter
from pylayer.static.current_program import default_main_program, default_startup_program
from pylayer.static.recorder import check_static
from pylayer.static.sizes import UnknownSize
from pylayer.static.update import Initialize
from pylayer.static.variable import Variable
from pylayer.tape.symbol import Parameter
from pylayer.tensor.dtype import as_dtype
from pylayer.tensor.tensor import Tensor


def data(name: str, shape: Sequence[int | None], dtype: Any = None, lod_level: int = 0) -> Variable:
    """A Variable that is fed in each run under `name`, with stop_gradient True (observed rule 69).

    A second Variable of the same name is fed the same values but is a different Variable, as in
    Paddle; its own name has a number.

    Args:
        shape: None and -1 mean a size that may differ from run to run.
        dtype: float32 unless given.

    Raises:
        RuntimeError: the mode is dynamic.
        TypeError: the name is not a string, the shape not a list of sizes, or the dtype unknown.
        ValueError: a size is below -1.
    """
    check_static("paddle.static.data")
    if not isinstance(name, str):
        raise TypeError(f"The name of data must be a str, but received {type(name).__name__}.")
    if not isinstance(shape, (list, tuple)):
        raise TypeError(
            f"The shape of data {name!r} must be a list or tuple, but received "
            f"{type(shape).__name__}."
        )
    for n in shape:
        if n is not None and (not isinstance(n, int) or isinstance(n, bool)):
            raise TypeError(
                f"The shape of data {name!r} must hold ints and None, but received {n!r} in "
                f"{list(shape)}."
            )
        if n is not None and n < -1:
            raise ValueError(
                f"The sizes of data {name!r} must not be below -1, but the shape is {list(shape)}."
            )
    sizes = [UnknownSize() if n in (None, -1) else n for n in shape]
    program = default_main_program()
    wanted = as_dtype("float32" if dtype is None else dtype)
    variable = program.global_block().variable(name, tuple(sizes), wanted.numpy, True)
    variable.is_data, variable.fed_as = True, name
    program.version += 1
    return variable


def create_parameter(
    shape: Sequence[int],
    dtype: Any = "float32",
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Parameter:
    """A parameter with its initial values set immediately; the startup program draws them again."""
    parameter = new_parameter(shape, dtype, name, attr, is_bias, default_initializer)
    program = default_main_program()
    program.created_parameters.append(parameter)

    def values() -> Tensor:
        return new_parameter(shape, dtype, name, attr, is_bias, default_initializer)

    default_startup_program().current.append(Initialize(parameter, values))
    return parameter
