"""Arguments on which every operation of the table is checked, by operation name: arguments in order.

Floating-point arrays in the places of differentiable inputs become Tensors that need a gradient, others plain Tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from samples_more import more_samples
from samples_shape import shape_samples


class Samples(dict[str, list[tuple[Any, ...]]]):
    """Arguments by operation name."""

    def __missing__(self, name: str) -> list[tuple[Any, ...]]:
        raise AssertionError(f"add arguments for {name} to the tables in samples*.py")


def samples(seed: int, sizes: Mapping[int, int] = MappingProxyType({})) -> Samples:
    """The table, with random values that follow from `seed`; `sizes` replaces lengths of axes by others."""
    rng = np.random.default_rng(seed)

    def resized(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sizes.get(n, n) for n in shape)

    def normal(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(resized(shape))

    def positive(*shape: int) -> np.ndarray[Any, Any]:
        return rng.uniform(0.2, 3.0, resized(shape))

    def above_one(*shape: int) -> np.ndarray[Any, Any]:
        """Their whole parts are not 0, beside which no change could be judged small."""
        return rng.uniform(1.2, 4.0, resized(shape))

    def within(*shape: int) -> np.ndarray[Any, Any]:
        return rng.uniform(-0.9, 0.9, resized(shape))

    def distinct(*shape: int) -> np.ndarray[Any, Any]:
        """No two elements alike, none near a half-integer."""
        count = np.prod(resized(shape), dtype=int)
        return rng.permutation(np.arange(float(count))).reshape(resized(shape)) * 0.61 + 0.117

    def regular(*shape: int) -> np.ndarray[Any, Any]:
        """Matrices far from singular ones."""
        matrix = normal(*shape) / 2
        return matrix + 4 * np.eye(matrix.shape[-1])

    BROADCASTS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((2, 3), (2, 3)),
        ((2, 3), (3,)),
        ((2, 1), (1, 3)),
        ((), (3,)),
    ]

    def pairs(left: Any = normal, right: Any = normal) -> list[tuple[Any, ...]]:
        return [(left(*a), right(*b)) for a, b in BROADCASTS]

    def reductions(make: Any = normal, *rest: Any) -> list[tuple[Any, ...]]:
        axes: list[Any] = [None, 0, -1, [0, 2], [1]]
        return [(make(2, 3, 2), axis, *rest, keepdim) for axis in axes for keepdim in (False, True)]

    UNARY = {
        normal: "square exp expm1 sin cos atan sinh cosh tanh asinh sigmoid erf erfc neg sign abs",
        positive: "sqrt rsqrt reciprocal log log2 log10 log1p",
        within: "tan asin acos atanh",
        above_one: "acosh floor ceil trunc",
    }
    NUMBERS = {
        "add": [(normal(3), 2.5)], "subtract": [(2.5, normal(3))], "multiply": [(normal(3), -2)],
        "divide": [(2.5, positive(3))],
    }  # fmt: skip
    INTS = np.array([[1, 2, 3], [4, 0, 6]])
    BOOLS = np.array([[True, False, True]])
    SQUARE = normal(3, 3)
    POSITIVE_DEFINITE = SQUARE @ SQUARE.T + np.eye(len(SQUARE))

    return Samples({
        **shape_samples(normal),
        **more_samples(normal, positive, within, distinct),
        **{name: [(make(2, 3),), (make(),), (make(0, 2),)] for make, names in UNARY.items() for name in names.split()},
        "round": [(distinct(2, 3), 0), (distinct(2, 3), 1)],
        **{name: pairs() + NUMBERS[name] for name in ("add", "subtract", "multiply")},
        "divide": pairs(normal, positive) + NUMBERS["divide"],
        "remainder": [(distinct(2, 3), positive(3) + 3)],
        **{n: [(distinct(2, 3), normal(3)), (distinct(3), 1.234)] for n in ("maximum", "minimum", "fmax", "fmin")},
        "pow": [
            *pairs(positive, normal), (normal(3), 3), (normal(3), 2.0), (positive(3), -1.5), (2.5, normal(3)),
            (normal(3), 0),
        ],
        "atan2": pairs(normal, positive),
        "clip": [(distinct(2, 3), 0.5, 2.5), (distinct(2, 3), None, 2.0), (distinct(2, 3), None, None)],
        "sum": [(normal(2, 3, 2), axis, None, keep) for axis in (None, 0, [0, 2]) for keep in (False, True)],
        **{name: reductions() for name in ("mean", "logsumexp")},
        **{name: reductions(distinct) for name in ("max", "min")},
        "norm": reductions(),
        "fill": [(normal(2, 3), 1.5)],
        "cumsum": [(normal(2, 3), None, None), (normal(2, 3), 0, None), (normal(2, 3), -1, None)],
        "matmul": [
            (normal(2, 3), normal(3, 4)), (normal(3), normal(3)), (normal(3), normal(3, 2)), (normal(2, 3), normal(3)),
            (normal(2, 2, 3), normal(3, 2)), (normal(2, 1, 2, 3), normal(3, 3, 2)), (normal(2, 2, 3), normal(3)),
            (normal(3), normal(2, 3, 2)),
        ],
        "bmm": [(normal(2, 2, 3), normal(2, 3, 4))],
        "einsum_explicit": [
            ([normal(2, 3), normal(3, 4)], "ij,jk->ik"), ([normal(2, 3)], "ij->j"),
            ([normal(2, 3), normal(3)], "ij,j->"), ([normal(2, 3), normal(2, 3, 2), normal(2)], "ab,abc,c->bc"),
        ],
        # Without a vjp: run, and no gradient flows.
        "floor_divide": [(distinct(2, 3), 2.0)],
        **{n: pairs() for n in ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")},
        "tie_share": pairs(),
        **{name: [(BOOLS, BOOLS)] for name in ("logical_and", "logical_or", "logical_xor")},
        **{name: [(INTS, INTS)] for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
        **{name: [(INTS,)] for name in ("bitwise_not", "logical_not")},
        **{name: [(normal(2, 3),)] for name in ("isnan", "isinf", "isfinite")},
        **{name: [(normal(3), normal(3), 1e-5, 1e-8, False)] for name in ("isclose", "allclose")},
        "equal_all": [(normal(3), normal(3))],
        "inside_bounds": [(normal(3), low, high) for low, high in ((-1.0, 1.0), (None, 1.0), (-1.0, None), (0.0, 0.5))],
        "flag_where_found": [(normal(2, 3), normal(2))],
        "positions": [(INTS, INTS.shape, 0, True)],
        "add_n": [([normal(2, 3), normal(2, 3), normal(2, 3)],), ([normal(3)],)],
        "all_reduce": [([normal(2, 3), normal(2, 3)],), ([normal(3)],)],
        "all_gather": [([normal(2, 3), normal(2, 3)],), ([normal()],)],
        "reduce_scatter": [([normal(2, 3), normal(2, 3)],), ([rng.standard_normal((1, 3))],)],
        "all_to_all": [([normal(2, 3), normal(2, 3)],), ([rng.standard_normal((1, 3))],)],
        "broadcast_ranks": [(normal(2, 3), 2), (normal(), 3)],
        "nan_to_num": [(normal(2, 3), 0.0, None, None)],
        **{
            name: [(regular(3, 3),), (regular(2, 2, 2),)]
            for name in ("inv", "det")
        },
        "slogdet": [(regular(3, 3),), (regular(2, 2, 2),), (normal(3, 3),)],
        "cholesky": [(POSITIVE_DEFINITE,)],
        "symmetric_from_lower": [(normal(3, 3),), (normal(2, 2, 2),)],
        "put_reduced": [
            (normal(4), np.array([1, 1, 3]), positive(3), kind, include)
            for kind in ("multiply", "minimum", "maximum") for include in (True, False)
        ],
        "view_dtype": [(normal(2, 4), "int64")],
        "all": [(normal(2, 3), 0, False)],
        "any": [(normal(2, 3), 0, False), (normal(2, 3), 1, True)],
    })  # fmt: skip


SAMPLES = samples(11)
