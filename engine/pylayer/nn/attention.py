"""Attention with several heads (Vaswani et al., 2017)."""

from __future__ import annotations

from typing import Any, NamedTuple

from pylayer.nn.functional import dropout
from pylayer.nn.layer import Layer
from pylayer.nn.layers import Linear
from pylayer.ops.activation import softmax
from pylayer.ops.creation import zeros
from pylayer.ops.joining import concat
from pylayer.ops.linalg import matmul
from pylayer.ops.shape import cast, reshape, transpose
from pylayer.tensor import Tensor


def as_added(mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A mask to be added to scores: of bools and integers, −1e9 where they are 0; floats as they are."""
    if mask is None or mask.dtype == dtype:
        return mask
    number: Tensor = cast(mask, dtype)
    return number if mask.dtype.is_floating else (number - 1.0) * 1e9


class MultiHeadAttention(Layer):
    """Weighted sums of values, for each of `num_heads` parts of the channels by its own weights.

    Args:
        embed_dim: the size of queries and outputs; `kdim` and `vdim` are those of keys and values, if others.
        dropout: of the weights, in training.
        need_weights: the call returns the weights, too.

    Raises:
        AssertionError: a size below 1, or one that the heads do not divide.
    """

    class Cache(NamedTuple):
        """Keys and values of the steps so far: a call appends its own."""

        k: Tensor
        v: Tensor

    class StaticCache(NamedTuple):
        """Keys and values that stay the same."""

        k: Tensor
        v: Tensor

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        need_weights: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        check_positive(embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(self.kdim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(self.vdim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x: Tensor) -> Tensor:
        """[batch, length, channels] as [batch, heads, length, channels of one head]."""
        return transpose(reshape(x, [0, 0, self.num_heads, self.head_dim]), [0, 2, 1, 3])

    def compute_kv(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values by head: [batch, heads, length, channels of one head]."""
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def gen_cache(self, key: Tensor, value: Tensor | None = None, type: Any = Cache) -> Any:
        """A cache: of these keys and values, static or not, or an empty one for the batch of `key`."""
        if type is self.StaticCache:
            return self.StaticCache(*self.compute_kv(key, value))  # type: ignore[arg-type]
        if value is not None:
            return self.Cache(key, value)
        empty = [key.shape[0], self.num_heads, 0, self.head_dim]
        return self.Cache(zeros(empty, key.dtype), zeros(empty, key.dtype))

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        """The output, [batch, length, embed_dim]; with it the weights and the cache, if asked for.

        Args:
            key: that of `query` unless given, as is `value`.
            attn_mask: broadcast to [batch, heads, length, length of the keys]; see `as_added`.
        """
        q = self._heads(self.q_proj(query))
        if isinstance(cache, self.StaticCache):
            k, v = cache
        else:
            k, v = self.compute_kv(query if key is None else key, query if value is None else value)
        if isinstance(cache, self.Cache):
            k, v = cache = self.Cache(concat([cache.k, k], 2), concat([cache.v, v], 2))
        scores = matmul(q * self.head_dim**-0.5, k, transpose_y=True)
        mask = as_added(attn_mask, scores.dtype)
        weights = softmax(scores if mask is None else scores + mask)
        if self.dropout:
            weights = dropout(weights, self.dropout, training=self.training)
        joined = transpose(matmul(weights, v), [0, 2, 1, 3])
        outs = [self.out_proj(reshape(joined, [0, 0, self.embed_dim]))]
        outs += [weights] * self.need_weights + [cache] * (cache is not None)
        return outs[0] if len(outs) == 1 else tuple(outs)


def check_positive(**sizes: int) -> None:
    """Raise an AssertionError for a size below 1."""
    for name, size in sizes.items():
        if size <= 0:
            raise AssertionError(f"Expected {name} to be greater than 0, but received {size}")
