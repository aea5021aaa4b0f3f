"""The layers of which transformers are made (Vaswani et al., 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from pylayer.nn import activations
from pylayer.nn.attention import MultiHeadAttention, as_added, check_positive
from pylayer.nn.initializer import ParamAttr
from pylayer.nn.layer import Layer
from pylayer.nn.layers import Dropout, LayerNorm, Linear
from pylayer.ops import activation as own_activations
from pylayer.ops import elementwise
from pylayer.tensor import Tensor


def attrs_for(given: Any, count: int) -> list[Any]:
    """The attr of each of `count` parts: those of a list, or one for all, its name numbered.

    Raises:
        AssertionError: the list has another length.
    """
    if isinstance(given, (list, tuple)):
        if len(given) != count:
            raise AssertionError(f"length of param_attr should be {count} when it is a list/tuple")
        return [None if attr is True else attr for attr in given]
    found = [copy.deepcopy(None if given is True else given) for _ in range(count)]
    for k, attr in enumerate(found):
        if isinstance(attr, ParamAttr) and attr.name:
            attr.name = f"{attr.name}_{k}"
    return found


def function_named(name: str) -> Callable[[Tensor], Tensor]:
    """The activation of `paddle.nn.functional` with that name.

    Raises:
        AttributeError: there is none.
    """
    for module in (own_activations, activations, elementwise):
        if name in vars(module):
            return vars(module)[name]  # type: ignore[no-any-return]
    raise AttributeError(f"paddle.nn.functional.{name} is not part of the bundled engine.", name=name)


class _Layer(Layer):
    """What both kinds share: sublayers of attention, named in `attentions`, then two linear maps.

    Each sublayer is added to its input, and normalised after that, or its input before (`normalize_before`).

    Raises:
        AssertionError: a size below 1, or heads that do not divide the channels.
    """

    attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        self._made_with = (
            d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before,
            weight_attr, bias_attr, layer_norm_eps,
        )  # fmt: skip
        self.normalize_before, self.activation = normalize_before, function_named(activation)
        count = len(self.attentions) + 1
        weights, biases = attrs_for(weight_attr, count), attrs_for(bias_attr, count)
        rate = dropout if attn_dropout is None else attn_dropout
        for name, weight, bias in zip(self.attentions, weights, biases, strict=False):
            setattr(self, name, MultiHeadAttention(d_model, nhead, rate, weight_attr=weight, bias_attr=bias))
        self.linear1 = Linear(d_model, dim_feedforward, weights[-1], biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[-1], biases[-1])
        for k in range(1, count + 1):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps))
        for k in range(1, count + 1):
            setattr(self, f"dropout{k}", Dropout(dropout))

    def another(self) -> Any:
        """A layer of the same kind and sizes, with values of its own."""
        return type(self)(*self._made_with)

    def added(self, number: int, sublayer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """`x` plus what sublayer `number` makes of it, normalised before or after."""
        normalised, dropped = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.normalize_before:
            return x + dropped(sublayer(normalised(x)))  # type: ignore[no-any-return]
        return normalised(x + dropped(sublayer(x)))  # type: ignore[no-any-return]

    def feedforward(self, x: Tensor) -> Tensor:
        """The two linear maps with the activation between them."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, and two linear maps."""

    attentions = ("self_attn",)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        """The output, [batch, length, d_model]; with a cache that, too, with the new step."""
        mask, found = as_added(src_mask, src.dtype), None

        def attended(x: Tensor) -> Tensor:
            nonlocal found
            if cache is None:
                return self.self_attn(x, x, x, mask)  # type: ignore[no-any-return]
            x, found = self.self_attn(x, x, x, mask, cache)
            return x

        out = self.added(2, self.feedforward, self.added(1, attended, src))
        return out if cache is None else (out, found)

    def gen_cache(self, src: Tensor) -> Any:
        """An empty cache."""
        return self.self_attn.gen_cache(src)


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself and to the encoder's output, and two linear maps."""

    attentions = ("self_attn", "cross_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        """The output, [batch, length, d_model]; with caches (of this sequence and of `memory`) those, too."""
        tgt_mask, memory_mask = as_added(tgt_mask, tgt.dtype), as_added(memory_mask, memory.dtype)
        found: list[Any] = [None, None]

        def attended(x: Tensor) -> Tensor:
            if cache is None:
                return self.self_attn(x, x, x, tgt_mask)  # type: ignore[no-any-return]
            x, found[0] = self.self_attn(x, x, x, tgt_mask, cache[0])
            return x

        def crossed(x: Tensor) -> Tensor:
            if cache is None:
                return self.cross_attn(x, memory, memory, memory_mask)  # type: ignore[no-any-return]
            x, found[1] = self.cross_attn(x, memory, memory, memory_mask, cache[1])
            return x

        out = self.added(3, self.feedforward, self.added(2, crossed, self.added(1, attended, tgt)))
        return out if cache is None else (out, tuple(found))

    def gen_cache(self, memory: Tensor) -> Any:
        """An empty cache of the sequence, and the static one of `memory`."""
        attention = self.cross_attn
        return self.self_attn.gen_cache(memory), attention.gen_cache(memory, memory, attention.StaticCache)
