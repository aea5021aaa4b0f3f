"""Running programs: what is fed, what is fetched, and the loop between."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pylayer.array import Place, _device, default_module, to_numpy
from pylayer.grad_mode import grad_mode
from pylayer.static.compile import FILE, Compiled, compiled
from pylayer.static.in_use import default_main_program
from pylayer.static.program import Program
from pylayer.static.structure import leaves
from pylayer.static.variable import Variable, current
from pylayer.symbol import recording
from pylayer.tensor import Tensor


class Executor:
    """Runs programs on a device. A program is compiled once for a list of fetches, and again only when it grew.

    Args:
        place: CPUPlace, CUDAPlace, or None for the current device.

    Raises:
        TypeError: it is something else.
    """

    def __init__(self, place: Place | None = None) -> None:
        if place is not None and not isinstance(place, Place):
            raise TypeError(f"The place of an Executor must be CPUPlace() or CUDAPlace(id), but got {place!r}.")
        self.place = place
        self.compilations = 0
        """How often a program was compiled."""

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
            feed: by name the values of what `static.data` made: arrays, Tensors, numbers or nested lists.
            fetch_list: Variables, parameters, or names of them, also in nested lists.
            return_numpy: False for Tensors in place of arrays.

        Returns:
            The values of what is fetched, in that order.

        Raises:
            TypeError: `feed` is no dict, or something in `fetch_list` is neither Variable nor name.
            KeyError: something that the program needs is not fed.
            ValueError: what is fed has another dtype or shape; a name is not in the program; shapes do not fit.
        """
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise TypeError(f"Executor requires Program as its Parameter. But you passed in {type(program)}.")
        if feed is not None and not isinstance(feed, Mapping):
            raise TypeError(f"feed requires dict as its Parameter. But you passed in {type(feed)}.")
        fetches = [fetched(program, k, item) for k, item in enumerate(as_list(fetch_list))]
        device = _device.set(_device.get() if self.place is None else self.place.name)
        recorder, recorded = recording.set(None), grad_mode.set(False)
        try:
            ready = self.ready(program, fetches)
            values = run(ready, feed or {})
        finally:
            recording.reset(recorder)
            grad_mode.reset(recorded)
            _device.reset(device)
        return [np.array(to_numpy(v)) for v in values] if return_numpy else [Tensor(v.copy()) for v in values]

    def ready(self, program: Program, fetches: Sequence[Tensor]) -> Compiled:
        """The compiled program, from the last run if it had the same operators and fetches."""
        empty = default_module().empty(0)
        key = (type(empty), *map(id, fetches))
        version, found, _ = program.compiled.get(key, (None, None, None))
        if version != program.version or found is None:
            self.compilations += 1
            found = compiled(program, fetches, type(empty))
            program.compiled[key] = program.version, found, fetches  # the key holds only if they live
        return found  # type: ignore[no-any-return]

    def close(self) -> None:
        """Nothing is held open."""


def as_list(fetch_list: Any) -> list[Any]:
    """A list of one, or what is in nested lists, in order."""
    return [] if fetch_list is None else leaves(fetch_list)


def fetched(program: Program, index: int, item: Any) -> Tensor:
    """What an item of a fetch list means.

    Raises:
        TypeError: it is neither a Variable nor a name (key phrase: observed rule 70).
        ValueError: the program has no such Variable, or it may not have run.
    """
    if isinstance(item, str):
        named = [t for t in program.captured() if t.name == item]
        item = named[0] if named else program.variable(item)
    item = current(item)
    if not isinstance(item, Tensor):
        raise TypeError(
            f"Require fetch_list[{index}] 's type shall be one of (Variable, str), but received {type(item).__name__}."
        )
    if isinstance(item, Variable):
        if item.block.program is not program:
            raise ValueError(f"fetch_list[{index}] is not of the program that is run: {item.described()}.")
        block = item.block
        while block.parent is not None:
            if block.branch:
                raise ValueError(
                    f"fetch_list[{index}] was made in a branch of cond, which may not run: {item.described()}. "
                    f"Return it from the branch."
                )
            block = block.parent
    return item


def run(ready: Compiled, feed: Mapping[str, Any]) -> list[Any]:
    """The fetched arrays of one run."""
    xp = default_module()
    slots: list[Any] = [None] * ready.size
    for variable, slot in ready.feeds:
        slots[slot] = xp.asarray(fed(variable, feed))
    for tensor, slot in ready.captured:
        slots[slot] = xp.asarray(tensor.array)
    try:
        ready.run(slots)
    except Exception as error:
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == FILE and (op := ready.operators[line - 1]) is not None:
                error.add_note(f"in {op.type}({op.shown()}) of the program, recorded at {op.where}")
        raise
    return [slots[slot] for slot in ready.fetched]


def fed(variable: Variable, feed: Mapping[str, Any]) -> Any:
    """The array that is fed for `variable`.

    Raises:
        KeyError: none is.
        ValueError: its dtype or shape is another (key phrase: observed rule 70).
    """
    if variable.fed_as not in feed:
        given = ", ".join(map(repr, feed)) or "nothing"
        raise KeyError(f"{variable.fed_as}: the feed lacks {variable.described()}; it holds {given}")
    value = feed[variable.fed_as]
    spec = variable._spec
    if isinstance(value, Tensor):
        value = value.array
    array = value if hasattr(value, "dtype") else np.asarray(value, dtype=spec.dtype)
    if array.dtype != spec.dtype:
        raise ValueError(
            f"(InvalidArgument) feed {variable.fed_as!r}: The type of data we are trying to retrieve "
            f"({variable.dtype.name}) does not match the type of data ({array.dtype}) currently contained in the "
            f"container: {variable.described()}. Cast it with astype()."
        )
    if len(array.shape) != len(spec.shape) or any(
        isinstance(n, int) and m != n for m, n in zip(array.shape, spec.shape, strict=True)
    ):
        raise ValueError(
            f"(InvalidArgument) feed {variable.fed_as!r}: the shape {list(array.shape)} does not fit: "
            f"{variable.described()}."
        )
    return array
