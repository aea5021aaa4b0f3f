"""Random Tensors from one generator for all devices, separate from NumPy's and CuPy's global ones;
the numbers differ from Paddle's.

Only `normal` is differentiable, with respect to its Tensors.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from pylayer.ops.arguments import Ints, require
from pylayer.ops.creation import DTypeLike, sizes_of
from pylayer.ops.shape import broadcast_shape
from pylayer.tape.op import composed, unwrap
from pylayer.tape.symbol import draws
from pylayer.tensor.array import XP, Array, default_module
from pylayer.tensor.dtype import as_dtype, default_dtype
from pylayer.tensor.tensor import Tensor


class Generator:
    """A random number generator: NumPy's for all devices, as the state of CuPy's cannot be
    copied.
    """

    def __init__(self, seed: int = 0) -> None:
        self.manual_seed(seed if isinstance(seed, int) else 0)  # Paddle names a device here

    def manual_seed(self, seed: int) -> Generator:
        """Start again from `seed`."""
        self._seed = int(seed)
        self.source = np.random.default_rng(self._seed)
        return self

    def initial_seed(self) -> int:
        """The seed that the generator started from."""
        return self._seed

    def seed(self) -> int:
        """Start again from a seed from the operating system, and return the seed."""
        self.manual_seed(int(np.random.SeedSequence().generate_state(1, np.uint32)[0]))
        return self._seed

    def get_state(self) -> Generator:
        """A copy of the state, for `set_state`."""
        return copy.deepcopy(self)

    def set_state(self, state: Generator) -> None:
        """Continue from a saved state."""
        self.source = copy.deepcopy(state.source)


process_generator = Generator()
process_generator.seed()
current: ContextVar[Generator] = ContextVar("generator", default=process_generator)
"""The generator of a process, with a first seed from the operating system, or of a rank of a
world.
"""
generator = current.get


def draw(method: str, *args: Any, rng: Generator | None = None) -> Array:
    """An array on the current device with numbers drawn by a `method` of a NumPy generator."""
    return default_module().asarray(getattr((rng or generator()).source, method)(*args))


get_rng_state = composed("get_rng_state", lambda device=None: [generator().get_state()], "list")


def set_rng_state(state_list: Sequence[Generator], device: str | None = None) -> None:
    """Continue from a state that `get_rng_state` returned."""
    text = "Length of state list should be equal to the number of generators, 1, but is"
    require(len(state_list) == 1, f"{text} {len(state_list)}")
    generator().set_state(state_list[0])


def seed(seed: int) -> Generator:
    """Make the following random numbers of every device reproducible."""
    return generator().manual_seed(seed)


def _float(dtype: Any) -> Any:
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    text = f"random floating-point numbers cannot be of dtype {wanted.name}"
    require(wanted.is_floating, text, error=TypeError)
    return wanted.numpy


# --------------------------------------------------------------------------- distributions
@draws
def uniform(
    shape: Ints, dtype: DTypeLike = None, min: float = 0.0, max: float = 1.0, seed: int = 0
) -> Tensor:
    """Uniform numbers in [min, max); a `seed` other than 0 applies only to this call."""
    values = draw("random", sizes_of(shape), rng=Generator(seed) if seed else None)
    # A 0-d sum is a scalar.
    return Tensor(default_module().asarray(min + (max - min) * values, _float(dtype)))


rand = draws(composed("rand", lambda shape, dtype=None: uniform(shape, dtype)))


@draws
def randn(shape: Ints, dtype: DTypeLike = None) -> Tensor:
    """Normally distributed numbers of mean 0 and variance 1."""
    return Tensor(draw("standard_normal", sizes_of(shape)).astype(_float(dtype)))


standard_normal = composed("standard_normal", lambda shape, dtype=None: randn(shape, dtype))


@draws
def normal(mean: Any = 0.0, std: Any = 1.0, shape: Ints | None = None) -> Tensor:
    """Normally distributed numbers, of `shape` or of the shape of Tensors `mean` and `std`, with
    respect to which it is differentiable.
    """
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors:
        return randn([1] if shape is None else shape) * std + mean  # type: ignore[no-any-return]
    sizes: list[int] = functools.reduce(broadcast_shape, (list(t.shape) for t in tensors))
    return randn(sizes, tensors[0].dtype) * std + mean  # type: ignore[no-any-return]


@draws
def randint(
    low: int = 0, high: int | None = None, shape: Ints = (1,), dtype: DTypeLike = None
) -> Tensor:
    """Integers from [low, high), or from [0, low) if one number is given; int64 by default."""
    low, high = (0, low) if high is None else (low, high)
    require(
        low < high,
        f"randint(): low must be less than high, but received low = {low}, high = {high}",
    )
    wanted = as_dtype("int64" if dtype is None else dtype).numpy
    return Tensor(draw("integers", low, high, sizes_of(shape)).astype(wanted))


randint_like = composed(
    "randint_like",
    lambda x, low=0, high=None, dtype=None: randint(low, high, x.shape, dtype or x.dtype),
)


@draws
def randperm(n: int, dtype: DTypeLike = "int64") -> Tensor:
    """The integers from 0 to n - 1 in random order."""
    order = default_module().argsort(draw("random", n))
    return Tensor(order.astype(as_dtype(dtype).numpy))


@draws
def bernoulli(x: Tensor, p: float | None = None) -> Tensor:
    """Ones with the probabilities in `x` (or `p`), otherwise zeros; an IndexError if a probability
    is not in [0, 1].
    """
    array: Array = x.array
    outside = p is None and bool(((array > 1) | (array < 0)).any())
    text = "bernoulli(): the probabilities should be from 0 to 1"
    require(not outside, text, error=IndexError)
    ones = draw("random", x.shape) < (array if p is None else p)
    return Tensor(XP[type(array)].asarray(ones, array.dtype))


# ----------------------------------------------------------------------- values for in-place fills
def _normal_fill(x: Tensor, mean: Any = 0.0, std: Any = 1.0) -> Any:
    """Normal numbers; each part of a complex number has the mean, and half of the variance.

    Raises:
        ValueError: a complex mean whose parts differ.
    """
    if not x.dtype.is_complex:
        return mean + std * draw("standard_normal", x.shape)
    if isinstance(mean, complex):
        text = "The mean of complex gaussian distribution should be a complex number"
        text = f"{text} with real part equal imaginary part"
        require(mean.real == mean.imag, f"{text}, but got {mean.real} != {mean.imag}")
        mean = mean.real
    parts = [mean + std / math.sqrt(2) * draw("standard_normal", x.shape) for _ in range(2)]
    return parts[0] + 1j * parts[1]


FILLS: dict[str, Callable[..., Any]] = {
    "bernoulli": lambda x, p=0.5: draw("random", x.shape) < unwrap(p),
    "exponential": lambda x, lam=1.0: draw("standard_exponential", x.shape) / lam,
    "random": lambda x, from_=0, to=None: (
        from_ + XP[type(x.array)].floor(draw("random", x.shape) * ((to or 1 << 24) - from_))
    ),
    "normal": _normal_fill,
    "uniform": lambda x, min=0.0, max=1.0, seed=0: uniform(x.shape, x.dtype, min, max, seed),
}
"""Random values for ``x.bernoulli_()`` and the other in-place fills, by name."""


@draws
def multinomial(x: Tensor, num_samples: int = 1, replacement: bool = False) -> Tensor:
    """The positions of `num_samples` draws for each row of weights `x`."""
    fits = 1 <= x.ndim <= 2 and num_samples > 0
    require(
        fits,
        f"multinomial(): needs weights of one or two dimensions and a sample, not {num_samples}",
        x,
    )
    weights: Array = x.array.astype("float64")
    xp = XP[type(weights)]
    fits = bool((weights >= 0).all()) and bool((weights.sum(-1) > 0).all())
    require(fits, "multinomial(): the weights must not be negative, and not all zero")
    fits = replacement or num_samples <= int((weights > 0).sum(-1).min())
    require(
        fits, f"multinomial(): too few positive weights to draw {num_samples} without replacement"
    )
    if replacement:
        shares = draw("random", (*weights.shape[:-1], num_samples, 1))
        draws = shares * weights.sum(-1)[..., None, None]
        chosen = (xp.cumsum(weights, -1)[..., None, :] <= draws).sum(-1)
    else:  # Gumbel's trick: the largest sums of log weight and noise are drawn without replacement
        noise = draw("standard_exponential", weights.shape) / xp.where(weights > 0, weights, 1)
        chosen = xp.argsort(xp.where(weights > 0, noise, xp.inf), -1)[..., :num_samples]
    return Tensor(chosen.astype("int64"))
