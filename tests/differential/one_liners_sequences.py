"""Programs of layers over sequences: recurrent ones, attention and transformers; see `one_liners`."""

from __future__ import annotations

import textwrap


def _in_double(made: str, rest: str) -> str:
    """A layer made in double precision and with parameters that are set, in `l`, and what follows.

    Epsilons are numbers that single precision holds, in which the release has them.
    """
    body = f"""
l = paddle.nn.{made}
for n_, p_ in enumerate(l.parameters()):
    p_.set_value(np.cos(np.arange(p_.size).reshape(p_.shape) * 0.7 + n_) / 2)
for q in l.sublayers(include_self=True):
    q.epsilon = q._epsilon = 2.0**-17
l.eval()
t = seq.transpose([0, 2, 1])
{rest}
"""
    return f"""
paddle.set_default_dtype("float64")
try:
{textwrap.indent(body, "    ")}
finally:
    paddle.set_default_dtype("float32")
"""


_ALL = "out = [h, s, repr(l), [f'{n} {list(q.shape)}' for n, q in l.state_dict().items()]] + gradients()"
_GRADIENTS = """
def gradients():
    others = s if isinstance(s, (list, tuple)) else [s]
    found = paddle.grad([h, *(q for q in others if q is not h)], [t, *l.parameters()], allow_unused=True, retain_graph=True)
    return [None if g is None else g.detach() for g in found]
"""

_LAYERS = {
    "SimpleRNN(4, 3)": "t", "SimpleRNN(4, 3, 2, activation='relu', time_major=True) relu": "t", "SimpleRNN(4, 2, direction='bidirect') both": "t",
    "LSTM(4, 3)": "t", "LSTM(4, 2, 2, 'bidirectional') both": "t", "LSTM(4, 3) states": "t, (p[:, :3].unsqueeze(0), x[:, :3].unsqueeze(0))", "LSTM(4, 3) lengths": "t, None, paddle.to_tensor([5, 2])",
    "LSTM(4, 2, 2, 'bidirect') both lengths": "t, None, paddle.to_tensor([3, 7])", "LSTM(4, 3, proj_size=2) projected": "t, None, paddle.to_tensor([3, 7])", "LSTM(4, 3, 2, 'bidirect', proj_size=2) projected both": "t",
    "GRU(4, 3)": "t", "GRU(4, 3, 2, 'bidirect', dropout=1.0) both lengths": "t, None, paddle.to_tensor([7, 4])", "GRU(4, 3, time_major=True) states": "t, seq.transpose([0, 2, 1])[:1, :, :3]",
    "RNN(paddle.nn.GRUCell(4, 3), is_reverse=True)": "t, None, paddle.to_tensor([5, 2])", "RNN(paddle.nn.LSTMCell(4, 3), time_major=True) major": "t", "RNN(paddle.nn.SimpleRNNCell(4, 3)) state": "t, x",
}  # fmt: skip
_CELLS = {
    "SimpleRNNCell(3, 2)": "x", "SimpleRNNCell(3, 2, 'relu', bias_ih_attr=False) relu": "x, w[:2].expand([2, 2])", "LSTMCell(3, 2)": "x, (y[:, :2], p[:, :2])", "GRUCell(3, 2)": "x, y[:, :2]", "GRUCell(3, 2, weight_hh_attr=False) fixed": "x",
}  # fmt: skip
_ATTENTION = {
    "MultiHeadAttention(4, 2)": "t", "MultiHeadAttention(4, 2, need_weights=True) weights": "t, t * 2, t + 1, paddle.to_tensor(np.tril(np.ones((7, 7), bool)))", "MultiHeadAttention(4, 1, kdim=7, vdim=4, bias_attr=False) sizes": "t, seq.transpose([0, 1, 2]), t[:, :4]",
    "MultiHeadAttention(4, 2) mask": "t, None, None, paddle.to_tensor(np.triu(np.ones((7, 7), 'int64')))", "MultiHeadAttention(4, 2) added": "t, None, None, paddle.to_tensor(np.triu(np.ones((7, 7), 'float32')))",
    "TransformerEncoderLayer(4, 2, 6)": "t", "TransformerEncoderLayer(4, 2, 6, activation='gelu', normalize_before=True) before": "t, paddle.to_tensor(np.tril(np.ones((7, 7), bool)))", "TransformerEncoderLayer(4, 1, 6, bias_attr=[False, None]) attrs": "t",
    "TransformerDecoderLayer(4, 2, 6)": "t, t[:, :3] * 2", "TransformerDecoderLayer(4, 2, 6, normalize_before=True) before": "t, t[:, :3] * 2, paddle.to_tensor(np.tril(np.ones((7, 7), bool)))",
    "TransformerEncoder(paddle.nn.TransformerEncoderLayer(4, 2, 6), 2)": "t", "TransformerEncoder(paddle.nn.TransformerEncoderLayer(4, 2, 6), 2, paddle.nn.LayerNorm(4)) norm": "t", "TransformerDecoder(paddle.nn.TransformerDecoderLayer(4, 2, 6), 2)": "t, t[:, :3] * 2",
    "Transformer(4, 2, 1, 2, 6)": "t, t[:, :3] * 2", "Transformer(4, 2, 1, 1, 6, normalize_before=True, weight_attr=[None, None, None], bias_attr=[None]) attrs": "t, t[:, :3] * 2, paddle.to_tensor(np.ones((7, 7), bool))",
}  # fmt: skip


def _name(made: str) -> str:
    return made.partition("(")[0] + made.rpartition(")")[2]


PROGRAMS: dict[str, str] = {
    **{f"nn.{_name(m)}": _in_double(m.rpartition(")")[0] + ")", f"l.train()  # the release has no gradient without\nh, s = l({i})\n{_GRADIENTS}{_ALL}") for m, i in _LAYERS.items()},
    **{f"nn.{_name(m)}": _in_double(m.rpartition(")")[0] + ")", f"h, s = l({i})\nt = x\n{_GRADIENTS}{_ALL}\nout += [q.stop_gradient for q in l.parameters()] + [l.state_shape]") for m, i in _CELLS.items()},
    **{f"nn.{_name(m)}": _in_double(m.rpartition(")")[0] + ")", f"h = l({i})\nh, s = h if isinstance(h, tuple) else (h, [])\n{_GRADIENTS}{_ALL}") for m, i in _ATTENTION.items()},
    # ------------------------------------------------------------------- steps, caches and states
    "nn.BiRNN": _in_double("BiRNN(paddle.nn.GRUCell(4, 3), paddle.nn.GRUCell(4, 3))", "h, s = l(t, None, paddle.to_tensor([5, 2]))\nout = [h, s, repr(l)]"), "nn.BiRNN states": _in_double("BiRNN(paddle.nn.LSTMCell(4, 3), paddle.nn.LSTMCell(4, 3))", "h, s = l(t, ((x, y), (p, x)))\nout = [h, s]"),
    "nn.BiRNN raises": "paddle.nn.BiRNN(paddle.nn.GRUCell(4, 3), paddle.nn.GRUCell(5, 3))", "nn.BiRNN states raises": "paddle.nn.BiRNN(paddle.nn.GRUCell(4, 3), paddle.nn.GRUCell(4, 3))(seq.transpose([0, 2, 1]), [x])",
    "nn.RNNCellBase": "class Sum(paddle.nn.RNNCellBase):\n    state_shape = property(lambda self: (3,))\n    def forward(self, a, s):\n        return a * s, s + a\nh, s = paddle.nn.RNN(Sum())(seq[:, :, :3].astype('float32'))\nout = [h, s, Sum().get_initial_states(x, [-1, 4], 'float64', 2.0), Sum().get_initial_states(x, ((2,), (3,)), batch_dim_idx=1)]",
    "nn.RNNCellBase raises": "paddle.nn.RNNCellBase().state_shape", "nn.RNN nested": "class Both(paddle.nn.RNNCellBase):\n    state_shape = property(lambda self: (3,))\n    def forward(self, a, s, factor):\n        return (a[0] * s, a[1]), s + a[1] * factor\nout = paddle.nn.RNN(Both())((seq[:, :, :3], seq[:, :, 3:6]), x, factor=2.0)",
    "nn.SimpleRNN raises": "paddle.nn.SimpleRNN(4, 3, activation='other')", "nn.SimpleRNNCell raises": "paddle.nn.SimpleRNNCell(4, 3, activation='other')", "nn.LSTM direction raises": "paddle.nn.LSTM(4, 3, direction='other')", "nn.LSTM size raises": "paddle.nn.LSTM(3, 3)(seq.astype('float32'))", "nn.LSTM axes raises": "paddle.nn.LSTM(3, 3)(f)",
    "nn.LSTM states raises": "paddle.nn.LSTM(7, 3)(seq.astype('float32'), f.unsqueeze(0))", "nn.LSTMCell raises": "paddle.nn.LSTMCell(4, 3, proj_size=3)", "nn.LSTMCell size raises": "paddle.nn.LSTMCell(4, 0)", "nn.LSTMCell projected raises": "paddle.nn.LSTMCell(3, 4, proj_size=2)(f)",
    "nn.GRU weights": "l = paddle.nn.GRU(3, 2, 2, 'bidirect'); out = [n for n, _ in l.named_parameters()] + [l.weight_ih_l1_reverse is l[1].cell_bw.weight_ih, len(l), bool((l.weight_hh_l0.abs() <= 2 ** -0.5).all())]",
    "nn.GRU training": _in_double("GRU(4, 3, 2, dropout=1.0)", "l.train()\nh, s = l(t)\nout = [h, s]"),
    "nn.MultiHeadAttention cache": _in_double("MultiHeadAttention(4, 2)", "c = l.gen_cache(t)\na, c = l(t[:, :1], t[:, :1], t[:, :1], None, c)\nb_, c = l(t[:, 1:3], t[:, 1:3], t[:, 1:3], None, c)\ne = l(t, cache=l.gen_cache(t * 2, t * 3, l.StaticCache))\nout = [a, b_, c.k, c.v, e[0], l.gen_cache(t, t)[1]]"),
    "nn.MultiHeadAttention raises": "paddle.nn.MultiHeadAttention(4, 3)", "nn.MultiHeadAttention size raises": "paddle.nn.MultiHeadAttention(0, 3)", "nn.TransformerEncoderLayer raises": "paddle.nn.TransformerEncoderLayer(4, 2, 0)", "nn.TransformerEncoderLayer attrs raises": "paddle.nn.TransformerEncoderLayer(4, 2, 6, bias_attr=[None] * 3)", "nn.TransformerEncoderLayer activation raises": "paddle.nn.TransformerEncoderLayer(4, 2, 6, activation='no_such')", "nn.Transformer raises": "paddle.nn.Transformer(4, 2, 1, 1, 6, bias_attr=[None] * 4)",
    "nn.TransformerEncoder cache": _in_double("TransformerEncoder(paddle.nn.TransformerEncoderLayer(4, 2, 6), 2)", "c = l.gen_cache(t)\na, c = l(t[:, :1], None, c)\nb_, c = l(t[:, 1:3], None, c)\nout = [a, b_, c[1].k]"),
    "nn.TransformerDecoder cache": _in_double("TransformerDecoder(paddle.nn.TransformerDecoderLayer(4, 2, 6), 2, paddle.nn.LayerNorm(4))", "c = l.gen_cache(t[:, :2])\na, c = l(t[:, :1], t[:, :2], cache=c)\nb_, c = l(t[:, 1:3], t[:, :2], cache=c)\nout = [a, b_, c[1][0].k, c[1][1].v, len(l.gen_cache(t, do_zip=True))]"),
    "nn.Transformer mask": "paddle.nn.Transformer(4, 2, 1, 1, 6).generate_square_subsequent_mask(3)", "nn.TransformerEncoder names": "l = paddle.nn.Transformer(4, 2, 1, 1, 6, custom_encoder=paddle.nn.Identity()); out = [repr(l), [n for n, _ in l.named_parameters()]]",
}  # fmt: skip

DIFFERS: dict[str, tuple[str, str]] = {}
