"""`Executor`: running programs, with feeds, fetches and error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pylayer.static.current_program import default_main_program
from pylayer.static.interpreter import Interpreter, uses
from pylayer.static.program import Program
from pylayer.static.sizes import may_be_equal
from pylayer.static.structure import leaves
from pylayer.static.variable import Variable, current
from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.symbol import recording
from pylayer.tensor.array import Place, _device, default_module, device_name, to_numpy
from pylayer.tensor.tensor import Tensor


class Executor:
    """Runs programs on a device.

    Args:
        place: CPUPlace, CUDAPlace, the name of a device, or None for the current one.

    Raises:
        ValueError: `place` is of another type.
    """

    def __init__(self, place: Place | str | None = None) -> None:
        if isinstance(place, str):
            place = Place(device_name(place))
        if not isinstance(place, (Place, type(None))):
            raise ValueError(
                "The place of an Executor must be CPUPlace(), CUDAPlace(id) or the name of a "
                f"device, but got {place!r}."
            )
        self.place = place

    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Any = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Any = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
    ) -> list[Any]:
        """Run `program`, by default the default main program.

        Args:
            feed: values by name for the Variables of `static.data`: arrays, Tensors, numbers or
                nested lists.
            fetch_list: Variables, parameters, or names of them, also in nested lists.
            return_numpy: False for Tensors in place of arrays.

        Returns:
            The values of `fetch_list`, in that order.

        Raises:
            TypeError: `feed` is not a dict, or an item of `fetch_list` not a Variable or a name.
            KeyError: a Variable that the program needs is not fed. ValueError: a fed value has
                another dtype or shape; a name is not in the program; shapes do not match.
        """
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise TypeError(
                f"Executor requires Program as its Parameter. But you passed in {type(program)}."
            )
        if not isinstance(feed, (Mapping, type(None))):
            raise TypeError(f"feed requires dict as its Parameter. But you passed in {type(feed)}.")
        fetches = [
            resolve_fetch(program, k, item)
            for k, item in enumerate(leaves([] if fetch_list is None else fetch_list))
        ]
        device = _device.set(_device.get() if self.place is None else self.place.name)
        recorder, recorded = recording.set(None), grad_mode.set(False)
        try:
            values = run(program, feed or {}, fetches)
        finally:
            recording.reset(recorder)
            grad_mode.reset(recorded)
            _device.reset(device)
        copies = [v.copy() for v in values]
        return list(map(to_numpy if return_numpy else Tensor, copies))

    def close(self) -> None:
        """Do nothing: an executor has no resources to close."""


def resolve_fetch(program: Program, index: int, item: Any) -> Tensor:
    """Resolve an item of a fetch list.

    Raises:
        TypeError: the item is neither a Variable nor a name (key phrase: observed rule 70).
        ValueError: the program has no such Variable, or it may not have run.
    """
    item = current(program.tensor(item) if isinstance(item, str) else item)
    if not isinstance(item, Tensor):
        raise TypeError(
            f"Require fetch_list[{index}] 's type shall be one of (Variable, str), but received "
            f"{type(item).__name__}."
        )
    if isinstance(item, Variable):
        if item.block.program is not program:
            raise ValueError(
                f"fetch_list[{index}] is not of the program that is run: {item.describe()}."
            )
        if not item.block.is_certain_to_run():
            raise ValueError(
                f"fetch_list[{index}] was made in a branch of cond, which may not run: "
                f"{item.describe()}. Return it from the branch."
            )
    return item


def run(program: Program, feed: Mapping[str, Any], fetches: list[Tensor]) -> list[Any]:
    """The fetched arrays of one run."""
    xp = default_module()
    interpreter, ops = Interpreter(type(xp.empty(0))), program.global_block().ops
    for used in {*fetches, *(used for op in ops for used in uses(op))}:
        if isinstance(used, Variable):
            if used.is_data:
                interpreter.values[used] = xp.asarray(fed_array(used, feed))
        elif isinstance(used, Tensor):
            interpreter.values[used] = xp.asarray(used.array)
    interpreter.run_program(ops, set(fetches))
    return [interpreter.values[tensor] for tensor in fetches]


def fed_array(variable: Variable, feed: Mapping[str, Any]) -> Any:
    """The array that is fed for `variable`.

    Raises:
        KeyError: none is.
        ValueError: its dtype or shape differs (key phrase: observed rule 70).
    """
    if variable.fed_as not in feed:
        names = ", ".join(map(repr, feed)) or "nothing"
        raise KeyError(f"{variable.fed_as}: the feed lacks {variable.describe()}; it holds {names}")
    value, spec = feed[variable.fed_as], variable._spec
    value = getattr(value, "array", value)  # the array of a Tensor
    array = value if hasattr(value, "dtype") else np.asarray(value, dtype=spec.dtype)
    if array.dtype != spec.dtype:
        raise ValueError(
            f"(InvalidArgument) feed {variable.fed_as!r}: The type of data we are trying to "
            f"retrieve ({variable.dtype.name}) does not match the type of data ({array.dtype}) "
            f"currently contained in the container: {variable.describe()}. Cast it with astype()."
        )
    if not may_be_equal(array.shape, spec.shape):
        raise ValueError(
            f"(InvalidArgument) feed {variable.fed_as!r}: the shape {list(array.shape)} does not "
            f"fit: {variable.describe()}."
        )
    return array
