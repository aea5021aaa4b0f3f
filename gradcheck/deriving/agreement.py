"""The right gradients of a layer at some arguments, and whether a backward gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.deriving.call import LayerCall
from gradcheck.deriving.graph import NotDerived
from gradcheck.deriving.points import as_tensor
from gradcheck.deriving.trace import grad_mode_as
from pylayer.layer.py_layer import PyLayerContext
from pylayer.tape.autograd import grad
from pylayer.tape.grad_mode import grad_mode
from pylayer.tensor.tensor import Tensor

AGREEMENT = 1e-9
"""The share of the largest entry by which a gradient may be off: float64 leaves some 1e-13, and no
slip of a formula is so small."""
LEAVES_TAPE = ("numpy", "detach", "no_grad", "stop_gradient", "np", "item", "tolist")
"""Names in the code of a forward whose operations the engine's own tape may miss."""


@dataclass(frozen=True)
class KnownPoint:
    """Right gradients of a layer at some arguments, and what its backward gets there."""

    context: PyLayerContext
    cotangents: list[Any]
    gradients: list[Any]

    @classmethod
    def of(cls, call: LayerCall, seed: int = 0) -> KnownPoint:
        """The point of a call; the seed is that of the cotangents.

        Raises:
            NotDerived: the gradients are not known.
        """
        code = call.subject.forward.__code__
        if any(name in LEAVES_TAPE for name in code.co_names):
            return cls.by_trace(call, seed)
        try:
            return cls.by_tape(call, seed)
        except Exception:  # of an operation in place, say, which a tape does not allow
            return cls.by_trace(call, seed)

    @classmethod
    def by_trace(cls, call: LayerCall, seed: int) -> KnownPoint:
        """The point of a call, by a trace, which follows NumPy code too."""
        traced = call.trace(seed, simplifies=False)
        context = PyLayerContext(call.subject.__name__)
        with unrecorded():
            call.subject.forward(context, *map(as_tensor, call.args), **call.kwargs)
        cotangents = [None if node is None else node.array for node in traced.cotangents]
        gradients = [None if node is None else node.array for node in traced.gradients.values()]
        return cls(context, cotangents, gradients)

    @classmethod
    def by_tape(cls, call: LayerCall, seed: int) -> KnownPoint:
        """The point of a call, by the engine's own tape, which takes a tenth of the time."""
        random, context = np.random.default_rng(seed), PyLayerContext(call.subject.__name__)
        args = list(map(as_tensor, call.args))
        inputs = [v for v in (*args, *call.kwargs.values()) if isinstance(v, Tensor)]
        needed = [t for t in inputs if not t.stop_gradient and t.array.dtype.kind == "f"]
        with grad_mode_as(True), np.errstate(all="ignore"):
            returned = call.subject.forward(context, *args, **call.kwargs)
        outputs = [t for t in values_in(returned) if isinstance(t, Tensor)]
        cotangents = [cotangent_of(t, random) for t in outputs]
        pairs = zip(outputs, cotangents, strict=True)
        started = [(t, Tensor(c)) for t, c in pairs if c is not None and not t.stop_gradient]
        if not started or not needed:
            raise NotDerived("no input takes a gradient")
        ends, starts = map(list, zip(*started, strict=True))
        found = dict(
            zip(map(id, needed), grad(ends, needed, starts, allow_unused=True), strict=True)
        )
        gradients = [found.get(id(t)) for t in inputs]
        return cls(context, cotangents, [None if g is None else g.array for g in gradients])

    def arguments(self) -> list[Any]:
        """The arguments of a backward."""
        arrays = self.cotangents
        return [self.context, *(None if a is None else Tensor(a.copy()) for a in arrays)]

    def agreement(self, backward: Callable[..., Any]) -> list[bool]:
        """Which gradients of a backward are right; none of them where it raises."""
        try:
            with unrecorded():
                return self.agreement_of(backward(*self.arguments()))
        except Exception:
            return [False] * len(self.gradients)

    def agreement_of(self, returned: Any) -> list[bool]:
        """Which of some returned gradients are right."""
        found = list(values_in(returned))
        if len(found) > len(self.gradients):
            return [False] * len(self.gradients)
        found += [None] * (len(self.gradients) - len(found))
        return [is_gradient_right(*pair) for pair in zip(found, self.gradients, strict=True)]

    def is_right(self, backward: Callable[..., Any]) -> bool:
        """Whether all gradients are right."""
        return all(self.agreement(backward))


def values_in(returned: Any) -> Sequence[Any]:
    """What a function returns, as a sequence."""
    return returned if isinstance(returned, (list, tuple)) else [returned]


def cotangent_of(output: Tensor, random: np.random.Generator) -> Any:
    """A random cotangent of an output; None for one that is not of floats."""
    if output.array.dtype.kind != "f":
        return None
    drawn = random.standard_normal(output.array.shape)
    return np.asarray(drawn, output.array.dtype)


class unrecorded:  # noqa: N801 - reads as a block
    """A block in which nothing is recorded, and NumPy is quiet."""

    def __enter__(self) -> None:
        self.token = grad_mode.set(False)
        self.quiet = np.errstate(all="ignore")
        self.quiet.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.quiet.__exit__(*raised)
        grad_mode.reset(self.token)


def is_gradient_right(found: Any, wanted: Any) -> bool:
    """Whether a gradient is right. One that is not wanted may be anything but of a wrong kind."""
    if wanted is None:
        return found is None or isinstance(found, Tensor)
    if not isinstance(found, Tensor) or found.array.shape != wanted.shape:
        return False
    largest = float(abs(wanted).max(initial=0))
    with np.errstate(all="ignore"):
        return bool((abs(found.array - wanted) <= AGREEMENT * largest + 1e-300).all())
