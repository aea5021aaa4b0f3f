"""Wrong elements that make up a whole row, column, head or channel, said as such."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcheck.checker.found import Named
from gradcheck.checker.point import Point


def patterns(point: Point, named: Named) -> tuple[str, ...]:
    """Per input whose wrong elements make up whole slices: ``all of x[:, 3]``. Only where all of them are known."""
    if not named.exhaustive:
        return ()
    found = []
    for number, count in named.counts.items():
        x = point.x[number]
        indices = {e.index for e in named.entries if e.input == number}
        if len(indices) != count or not 1 < count < x.size:
            continue
        wrong = np.zeros(x.size, bool)
        wrong[sorted(indices)] = True
        text = whole_slices(wrong.reshape(x.shape), point.problem.names[point.moved[number]])
        if text:
            found.append(text)
    return tuple(found)


def whole_slices(wrong: np.ndarray[Any, Any], name: str) -> str:
    """The slices along one axis that are wrong throughout, if they are all that is wrong."""
    for axis in range(wrong.ndim):
        others = tuple(k for k in range(wrong.ndim) if k != axis)
        whole = wrong.all(axis=others)
        if bool(whole.any()) and int(whole.sum()) * (wrong.size // wrong.shape[axis]) == int(wrong.sum()):
            places = np.flatnonzero(whole).tolist()
            run = f"{places[0]}:{places[-1] + 1}" if places == list(range(places[0], places[-1] + 1)) else str(places)
            shown = str(places[0]) if len(places) == 1 else run
            return f"all of {name}[{', '.join(shown if k == axis else ':' for k in range(wrong.ndim))}]"
    return ""
