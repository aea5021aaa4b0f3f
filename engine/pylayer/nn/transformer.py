"""Transformers: encoder, decoder and both (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from typing import Any

from pylayer.dtype import default_dtype
from pylayer.nn.attention import as_added
from pylayer.nn.containers import LayerList
from pylayer.nn.layer import Layer
from pylayer.nn.layers import LayerNorm
from pylayer.nn.transformer_layers import TransformerDecoderLayer, TransformerEncoderLayer
from pylayer.ops.creation import full
from pylayer.ops.shape import triu
from pylayer.tensor import Tensor


class _Stack(Layer):
    """Layers one after the other, and a normalisation at the end, if given."""

    def __init__(self, layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = LayerList([layer if k == 0 else layer.another() for k in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def through(self, x: Tensor, cache: Any, *arguments: Any) -> Any:
        """What comes out at the end; with caches, one per layer, those, too."""
        new = []
        for k, layer in enumerate(self.layers):
            if cache is None:
                x = layer(x, *arguments)
            else:
                x, found = layer(x, *arguments, cache[k])
                new.append(found)
        x = x if self.norm is None else self.norm(x)
        return x if cache is None else (x, new)


class TransformerEncoder(_Stack):
    """`num_layers` encoder layers: the given one, and others like it."""

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Any = None) -> Any:
        """The output of the last; see `TransformerEncoderLayer`."""
        return self.through(src, cache, as_added(src_mask, src.dtype))

    def gen_cache(self, src: Tensor) -> list[Any]:
        """A cache per layer."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoder(_Stack):
    """`num_layers` decoder layers: the given one, and others like it."""

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Any:
        """The output of the last; see `TransformerDecoderLayer`."""
        return self.through(tgt, cache, memory, as_added(tgt_mask, tgt.dtype), as_added(memory_mask, memory.dtype))

    def gen_cache(self, memory: Tensor, do_zip: bool = False) -> list[Any]:
        """The caches per layer; with `do_zip` those of the sequence, and those of `memory`."""
        found = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*found, strict=True)) if do_zip else found


def _attrs(given: Any) -> tuple[Any, Any]:
    """The attrs of an encoder layer (two) and a decoder layer (three), of a list of up to three or one for all.

    Raises:
        AssertionError: the list is longer, or empty.
    """
    if not isinstance(given, (list, tuple)):
        return given, given
    if not 1 <= len(given) <= 3:
        raise AssertionError("length of bias_attr should be 1 or 2 or 3 when it is a list/tuple")
    middle = given[1] if len(given) == 3 else given[0]
    return [given[0], given[-1]], [given[0], middle, given[-1]]


class Transformer(Layer):
    """An encoder and a decoder, both normalised at the end.

    Raises:
        AssertionError: a size below 1, or heads that do not divide the channels.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)
        (for_encoder, for_decoder), (encoder_bias, decoder_bias) = _attrs(weight_attr), _attrs(bias_attr)
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options, for_encoder, encoder_bias), num_encoder_layers, LayerNorm(d_model)
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options, for_decoder, decoder_bias), num_decoder_layers, LayerNorm(d_model)
        )
        self.d_model, self.nhead = d_model, nhead

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Any:
        """The decoder's output, [batch, length of tgt, d_model]."""
        memory = self.encoder(src, src_mask=as_added(src_mask, src.dtype))
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask)

    def generate_square_subsequent_mask(self, length: int) -> Tensor:
        """−∞ above the diagonal, 0 elsewhere: each step sees those before it."""
        return triu(full([length, length], -math.inf, default_dtype()), 1)
