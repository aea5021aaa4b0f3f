"""Functions of JAX with backwards written by hand: each right, and with five mistakes.

A row has the primal, its inputs, the right backward, and the wrong ones by what is wrong. A
backward takes the arguments and the cotangent, and returns a tuple of gradients; `made` puts the
three together as a custom_vjp. Beside each mistake stands a part of the line of the primal that it
is about, or several, separated by " | ", where the gradient cannot tell them apart; empty where it
is about no line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Backward = Callable[..., tuple[Any, ...]]
RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape)


class Function(NamedTuple):
    """A row, as the head of this file says."""

    primal: Callable[..., Any]
    inputs: tuple[Any, ...]
    right: Backward
    wrong: dict[str, tuple[Backward, str]]


def made(primal: Callable[..., Any], backward: Backward) -> Any:
    """A custom_vjp whose residuals are its arguments."""
    function = jax.custom_vjp(primal)
    function.defvjp(
        lambda *arguments: (function(*arguments), arguments),
        lambda arguments, cotangent: backward(*arguments, cotangent),
    )
    return function


# --------------------------------------------------------------------------- dense layers
def dense(x, w, b):
    product = x @ w
    shifted = product + b
    return jnp.tanh(shifted)


def dense_vjp(slope=lambda y: 1 - y**2, dw=lambda x, d: x.T @ d, db=lambda d: d.sum(0), dx=lambda d, w: d @ w.T):
    def backward(x, w, b, g):
        d = g * slope(jnp.tanh(x @ w + b))
        return dx(d, w), dw(x, d), db(d)

    return backward


DENSE = Function(
    dense, (normal(3, 4), normal(4, 2), normal(2)), dense_vjp(),
    {
        "a sign": (dense_vjp(slope=lambda y: 1 + y**2), "jnp.tanh(shifted)"),
        "no slope": (dense_vjp(slope=lambda y: 1.0), "jnp.tanh(shifted)"),
        "half of dw": (dense_vjp(dw=lambda x, d: x.T @ d / 2), "x @ w"),
        "a mean for a sum": (dense_vjp(db=lambda d: d.mean(0)), "product + b"),
        "dx negated": (dense_vjp(dx=lambda d, w: -d @ w.T), "x @ w"),
    },
)  # fmt: skip


def swiglu(a, b):
    gate = jax.nn.sigmoid(a)
    swish = a * gate
    return swish * b


def swiglu_vjp(da=lambda a, s: s + a * s * (1 - s), db=lambda a, s: a * s):
    def backward(a, b, g):
        s = jax.nn.sigmoid(a)
        return g * b * da(a, s), g * db(a, s)

    return backward


SWIGLU = Function(
    swiglu, (normal(3, 4), normal(3, 4)), swiglu_vjp(),
    {
        "gate taken as constant": (swiglu_vjp(da=lambda a, s: s), "jax.nn.sigmoid(a)"),
        "a taken as constant": (swiglu_vjp(da=lambda a, s: a * s * (1 - s)), "a * gate"),
        "sigmoid's slope": (swiglu_vjp(da=lambda a, s: s + a * s), "jax.nn.sigmoid(a)"),
        "db without a": (swiglu_vjp(db=lambda a, s: s), "a * gate | swish * b"),
        "db twice": (swiglu_vjp(db=lambda a, s: 2 * a * s), "swish * b"),
    },
)  # fmt: skip


@jax.jit
def jitted_square(x):
    doubled = x + x
    return doubled * x


def silu_squared(x):
    silu = x * jax.nn.sigmoid(x)
    return jitted_square(silu)


def silu_squared_vjp(outer=lambda y: 4 * y, s=lambda x: jax.nn.sigmoid(x) * (1 + x * (1 - jax.nn.sigmoid(x)))):
    return lambda x, g: (g * outer(x * jax.nn.sigmoid(x)) * s(x),)


SILU = Function(
    silu_squared, (normal(5),), silu_squared_vjp(),
    {
        "half a square": (silu_squared_vjp(outer=lambda y: 2 * y), "doubled = | doubled * x"),
        "silu's slope is sigmoid": (silu_squared_vjp(s=jax.nn.sigmoid), "jax.nn.sigmoid(x)"),
        "no product rule": (
            silu_squared_vjp(s=lambda x: x * jax.nn.sigmoid(x) * (1 - jax.nn.sigmoid(x))), "x * jax.nn.sigmoid(x)"
        ),
        "negated": (silu_squared_vjp(outer=lambda y: -4 * y), ""),
        "sigmoid's slope": (
            silu_squared_vjp(s=lambda x: jax.nn.sigmoid(x) * (1 + x)), "jax.nn.sigmoid(x)"
        ),
    },
)  # fmt: skip


def gelu(x):
    inner = 0.7978845608 * (x + 0.044715 * x**3)
    t = jnp.tanh(inner)
    return 0.5 * x * (1 + t)


def gelu_vjp(cubic=lambda x: 3 * 0.044715 * x**2, slope=lambda t: 1 - t**2, direct=lambda t: 0.5 * (1 + t), half=0.5):
    def backward(x, g):
        t = jnp.tanh(0.7978845608 * (x + 0.044715 * x**3))
        return (g * (direct(t) + half * x * slope(t) * 0.7978845608 * (1 + cubic(x))),)

    return backward


GELU = Function(
    gelu, (normal(6),), gelu_vjp(),
    {
        "cube's factor": (gelu_vjp(cubic=lambda x: 0.044715 * x**2), "x**3"),
        "cube ignored": (gelu_vjp(cubic=lambda x: 0.0), "x**3"),
        "tanh's slope": (gelu_vjp(slope=lambda t: 1 + t**2), "jnp.tanh(inner)"),
        "no direct part": (gelu_vjp(direct=lambda t: 0.0), "0.5 * x * (1 + t)"),
        "inner part twice": (gelu_vjp(half=1.0), "inner = | jnp.tanh(inner) | 0.5 * x"),
    },
)  # fmt: skip


def softplus(x):
    small = jnp.exp(-jnp.abs(x))
    tail = jnp.log1p(small)
    return jnp.maximum(x, 0.0) + tail


SOFTPLUS = Function(
    softplus, (normal(6),), lambda x, g: (g * jax.nn.sigmoid(x),),
    {
        "sigmoid of -x": (lambda x, g: (g * jax.nn.sigmoid(-x),), ""),
        "relu alone": (lambda x, g: (g * (x > 0),), "small = | jnp.log1p(small)"),
        "tail alone": (lambda x, g: (g * (jax.nn.sigmoid(x) - (x > 0)),), "jnp.maximum(x, 0.0)"),
        "abs ignored": (
            lambda x, g: (g * ((x > 0) - jnp.exp(-jnp.abs(x)) / (1 + jnp.exp(-jnp.abs(x)))),), "jnp.abs(x)"
        ),
        "log1p's slope": (
            lambda x, g: (g * ((x > 0) - jnp.sign(x) * jnp.exp(-jnp.abs(x))),), "jnp.log1p(small)"
        ),
    },
)  # fmt: skip


# --------------------------------------------------------------------------- normalization
def layer_norm(x, w, b):
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered * centered).mean(-1, keepdims=True)
    scale = jax.lax.rsqrt(variance + 1e-5)
    return centered * scale * w + b


def layer_norm_vjp(mean=True, var=True, factor=1.0, dw=lambda g, n: (g * n).sum(0), db=lambda g: g.sum(0)):
    def backward(x, w, b, g):
        centered = x - x.mean(-1, keepdims=True)
        scale = jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
        n, d = centered * scale, g * w
        dx = d
        if var:
            dx = dx - factor * n * (d * n).mean(-1, keepdims=True)
        if mean:
            dx = dx - d.mean(-1, keepdims=True)
        return dx * scale, dw(g, n), db(g)

    return backward


LAYER_NORM = Function(
    layer_norm, (normal(3, 5), normal(5), normal(5)), layer_norm_vjp(),
    {
        "mean taken as constant": (layer_norm_vjp(mean=False), "x.mean"),
        "variance taken as constant": (
            layer_norm_vjp(var=False), "variance = | jax.lax.rsqrt | centered * scale"
        ),
        "variance twice": (layer_norm_vjp(factor=2.0), "variance = | jax.lax.rsqrt | centered * scale"),
        "dw not normalized": (layer_norm_vjp(dw=lambda g, n: g.sum(0)), "* w + b"),
        "db of one row": (layer_norm_vjp(db=lambda g: g[0]), "+ b"),
    },
)  # fmt: skip


def rms_norm(x, w):
    square = jnp.square(x)
    mean = jnp.mean(square, axis=-1, keepdims=True)
    return x / jnp.sqrt(mean) * w


def rms_norm_vjp(count=5.0, through=True, power=3, dw=lambda g, x, r: (g * x / r).sum(0)):
    def backward(x, w, g):
        r = jnp.sqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True))
        d = g * w
        dx = d / r
        if through:
            dx = dx - x * (d * x).sum(-1, keepdims=True) / (count * r**power)
        return dx, dw(g, x, r)

    return backward


RMS_NORM = Function(
    rms_norm, (normal(3, 5), normal(5)), rms_norm_vjp(),
    {
        "sum for mean": (rms_norm_vjp(count=1.0), "square = | jnp.mean | jnp.sqrt(mean)"),
        "root taken as constant": (rms_norm_vjp(through=False), "square = | jnp.mean | jnp.sqrt(mean)"),
        "a power too few": (rms_norm_vjp(power=2), "jnp.sqrt(mean)"),
        "dw without the root": (rms_norm_vjp(dw=lambda g, x, r: (g * x).sum(0)), "jnp.sqrt(mean) * w"),
        "dw halved": (rms_norm_vjp(dw=lambda g, x, r: (g * x / r).sum(0) / 2), "* w"),
    },
)  # fmt: skip


def softmax(x):
    e = jnp.exp(x - jax.lax.stop_gradient(x.max(-1, keepdims=True)))
    total = e.sum(-1, keepdims=True)
    return e / total


def softmax_vjp(inner=lambda g, y: (g * y).sum(-1, keepdims=True), outer=lambda y: y):
    def backward(x, g):
        y = jax.nn.softmax(x)
        return (outer(y) * (g - inner(g, y)),)

    return backward


SOFTMAX = Function(
    softmax, (normal(3, 4),), softmax_vjp(),
    {
        "total taken as constant": (softmax_vjp(inner=lambda g, y: 0.0), "e.sum | e / total"),
        "a mean for a sum": (
            softmax_vjp(inner=lambda g, y: (g * y).mean(-1, keepdims=True)), "e.sum | e / total"
        ),
        "the sum of g": (softmax_vjp(inner=lambda g, y: g.sum(-1, keepdims=True)), ""),
        "not times y": (softmax_vjp(outer=lambda y: 1.0), ""),
        "the other axis": (softmax_vjp(inner=lambda g, y: (g * y).sum(0, keepdims=True)), "e.sum | e / total"),
    },
)  # fmt: skip


def logsumexp(x):
    return jax.nn.logsumexp(x, axis=-1)


LOGSUMEXP = Function(
    logsumexp, (normal(3, 4),), lambda x, g: (g[:, None] * jax.nn.softmax(x),),
    {
        "exp alone": (lambda x, g: (g[:, None] * jnp.exp(x),), "jax.nn.logsumexp"),
        "twice": (lambda x, g: (2 * g[:, None] * jax.nn.softmax(x),), "jax.nn.logsumexp"),
        "softmax of the other axis": (
            lambda x, g: (g[:, None] * jax.nn.softmax(x, axis=0),), "jax.nn.logsumexp"
        ),
        "ones": (lambda x, g: (g[:, None] * jnp.ones_like(x),), "jax.nn.logsumexp"),
        "negated": (lambda x, g: (-g[:, None] * jax.nn.softmax(x),), "jax.nn.logsumexp"),
    },
)  # fmt: skip


def cosine(x, y):
    dot = (x * y).sum(-1)
    length = jnp.sqrt((x * x).sum(-1)) * jnp.linalg.norm(y, axis=-1)
    return dot / length


def cosine_vjp(through_x=1.0, through_y=1.0, sign=1.0, swap=False):
    def backward(x, y, g):
        a, b = jnp.linalg.norm(x, axis=-1, keepdims=True), jnp.linalg.norm(y, axis=-1, keepdims=True)
        c = (x * y).sum(-1, keepdims=True) / (a * b)
        dx = y / (a * b) - through_x * c * x / a**2
        dy = sign * x / (a * b) - through_y * c * y / b**2
        dx, dy = (dy, dx) if swap else (dx, dy)
        return g[:, None] * dx, g[:, None] * dy

    return backward


COSINE = Function(
    cosine, (normal(3, 4), normal(3, 4)), cosine_vjp(),
    {
        "length of x taken as constant": (cosine_vjp(through_x=0.0), "length ="),
        "length of y taken as constant": (cosine_vjp(through_y=0.0), "length ="),
        "length of x twice": (cosine_vjp(through_x=2.0), "length ="),
        "a sign in dy": (cosine_vjp(sign=-1.0), "dot ="),
        "gradients swapped": (cosine_vjp(swap=True), ""),
    },
)  # fmt: skip


# --------------------------------------------------------------------------- losses
def cross_entropy(logits, labels):
    log_probabilities = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    picked = jnp.take_along_axis(log_probabilities, labels[:, None], axis=-1)
    return -jnp.mean(picked)


def cross_entropy_vjp(scale=1 / 4, hot=1.0, soft=1.0, log=False):
    def backward(logits, labels, g):
        p = jax.nn.log_softmax(logits) if log else jax.nn.softmax(logits)
        one_hot = jax.nn.one_hot(labels, 3, dtype=p.dtype)
        return g * scale * (soft * p - hot * one_hot), None

    return backward


CROSS_ENTROPY = Function(
    cross_entropy, (normal(4, 3), np.array([0, 2, 1, 2])), cross_entropy_vjp(),
    {
        "sum for mean": (cross_entropy_vjp(scale=1.0), "jnp.mean(picked)"),
        "label left out": (cross_entropy_vjp(hot=0.0), "logits - | take_along_axis"),
        "softmax left out": (cross_entropy_vjp(soft=0.0), "jax.nn.logsumexp"),
        "a sign": (cross_entropy_vjp(scale=-1 / 4), "logits - | jnp.mean(picked)"),
        "log of the probabilities": (cross_entropy_vjp(log=True), "jax.nn.logsumexp"),
    },
)  # fmt: skip


def huber(x, y):
    error = x - y
    size = jnp.abs(error)
    return jnp.where(size < 1.0, 0.5 * error**2, size - 0.5)


def huber_vjp(slope=lambda e: jnp.clip(e, -1, 1), dy=-1.0):
    def backward(x, y, g):
        d = g * slope(x - y)
        return d, dy * d

    return backward


HUBER = Function(
    huber, (2 * normal(6), normal(6)), huber_vjp(),
    {
        "square everywhere": (huber_vjp(slope=lambda e: e), "jnp.where | jnp.abs(error)"),
        "linear everywhere": (huber_vjp(slope=jnp.sign), "error**2"),
        "square's factor": (
            huber_vjp(slope=lambda e: jnp.where(jnp.abs(e) < 1, 2 * e, jnp.sign(e))), "error**2"
        ),
        "dy not negated": (huber_vjp(dy=1.0), "x - y"),
        "no sign": (huber_vjp(slope=lambda e: jnp.where(jnp.abs(e) < 1, e, 1.0)), "jnp.abs(error)"),
    },
)  # fmt: skip


# --------------------------------------------------------------------------- products
def attention(q, k, v):
    scores = q @ k.T / 2.0
    weights = jax.nn.softmax(scores, axis=-1)
    return weights @ v


def attention_vjp(scale=0.5, through=True, transposed=True, dk=1.0):
    def backward(q, k, v, g):
        p = jax.nn.softmax(q @ k.T / 2.0, axis=-1)
        dp = g @ v.T
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) if through else p * dp
        dv = p.T @ g if transposed else p @ g
        return scale * ds @ k, dk * scale * ds.T @ q, dv

    return backward


ATTENTION = Function(
    attention, (normal(3, 4), normal(3, 4), normal(3, 2)), attention_vjp(),
    {
        "scale left out": (attention_vjp(scale=1.0), "q @ k.T / 2.0"),
        "softmax's sum ignored": (attention_vjp(through=False), "jax.nn.softmax"),
        "not transposed": (attention_vjp(transposed=False), "weights @ v"),
        "dk twice": (attention_vjp(dk=2.0), "q @ k.T"),
        "dk left out": (attention_vjp(dk=0.0), ""),
    },
)  # fmt: skip


def bilinear(x, t, y):
    left = jnp.einsum("bi,ijk->bjk", x, t)
    return jnp.einsum("bjk,bj->bk", left, y)


def bilinear_vjp(dx="bk,ijk,bj->bi", dt="bk,bi,bj->ijk", dy="bk,bi,ijk->bj", scale=(1.0, 1.0, 1.0)):
    def backward(x, t, y, g):
        return (
            scale[0] * jnp.einsum(dx, g, t, y),
            scale[1] * jnp.einsum(dt, g, x, y),
            scale[2] * jnp.einsum(dy, g, x, t),
        )

    return backward


BILINEAR = Function(
    bilinear, (normal(4, 3), normal(3, 3, 2), normal(4, 3)), bilinear_vjp(),
    {
        "dt transposed": (bilinear_vjp(dt="bk,bi,bj->jik"), ""),
        "dx transposed": (bilinear_vjp(dx="bk,jik,bj->bi"), ""),
        "dy left out": (bilinear_vjp(scale=(1.0, 1.0, 0.0)), ""),
        "dx twice": (bilinear_vjp(scale=(2.0, 1.0, 1.0)), 'jnp.einsum("bi,ijk->bjk"'),
        "dt negated": (bilinear_vjp(scale=(1.0, -1.0, 1.0)), 'jnp.einsum("bi,ijk->bjk"'),
    },
)  # fmt: skip


def embedding(table, places):
    rows = table[places]
    return rows * rows


def embedding_vjp(slope=lambda r: 2 * r, add=True, shift=0):
    def backward(table, places, g):
        at = jnp.zeros_like(table).at[(places + shift) % len(table)]
        d = g * slope(table[places])
        return (at.add(d) if add else at.set(d)), None

    return backward


EMBEDDING = Function(
    embedding, (normal(5, 3), np.array([0, 3, 3, 1])), embedding_vjp(),
    {
        "places overwritten": (embedding_vjp(add=False), "table[places]"),
        "shifted": (embedding_vjp(shift=1), "table[places]"),
        "half": (embedding_vjp(slope=lambda r: r), "rows * rows"),
        "slope 2": (embedding_vjp(slope=lambda r: 2 * jnp.ones_like(r)), "rows * rows"),
        "negated": (embedding_vjp(slope=lambda r: -2 * r), ""),
    },
)  # fmt: skip


def convolution(x, w):
    return jax.lax.conv_general_dilated(x, w, (1,), "VALID")


def convolution_vjp(flip=True, dw=1.0, dx=1.0):
    def backward(x, w, g):
        _, back = jax.vjp(lambda x, w: jax.lax.conv_general_dilated(x, w, (1,), "VALID"), x, w)
        of_x = (
            back(g)[0]
            if flip
            else jax.vjp(lambda x: jax.lax.conv_general_dilated(x, w[:, :, ::-1], (1,), "VALID"), x)[1](g)[0]
        )
        of_w = back(g)[1]
        return dx * of_x, (dw * of_w if dw else of_w[:, :, ::-1])

    return backward


CONVOLUTION = Function(
    convolution, (normal(2, 2, 6), normal(3, 2, 3)), convolution_vjp(),
    {
        "kernel not flipped": (convolution_vjp(flip=False), "conv_general_dilated"),
        "dw flipped": (convolution_vjp(dw=None), "conv_general_dilated"),
        "dw halved": (convolution_vjp(dw=0.5), "conv_general_dilated"),
        "dx twice": (convolution_vjp(dx=2.0), "conv_general_dilated"),
        "dx negated": (convolution_vjp(dx=-1.0), "conv_general_dilated"),
    },
)  # fmt: skip


# --------------------------------------------------------------------------- control flow, trees
def decay(x, a):
    def step(state, row):
        state = a * state + row
        return state, jnp.tanh(state)

    return jax.lax.scan(step, jnp.zeros(x.shape[1:], x.dtype), x)[1]


def decay_vjp(carry=1.0, slope=lambda y: 1 - y**2, da=1.0, reverse=True):
    def backward(x, a, g):
        def step(state, row):
            state = a * state + row
            return state, state

        states = jax.lax.scan(step, jnp.zeros(x.shape[1:], x.dtype), x)[1]
        d = g * slope(jnp.tanh(states))

        def pull(later, row):
            now = row + carry * a * later
            return now, now

        ds = jax.lax.scan(pull, jnp.zeros(x.shape[1:], x.dtype), d, reverse=reverse)[1]
        before = jnp.concatenate([jnp.zeros_like(states[:1]), states[:-1]])
        return ds, da * (ds * before).sum(0)

    return backward


DECAY = Function(
    decay, (normal(5, 2), np.array([0.5, 0.8])), decay_vjp(),
    {
        "no carry": (decay_vjp(carry=0.0), "a * state + row"),
        "tanh's slope": (decay_vjp(slope=lambda y: 1 + y**2), "jnp.tanh(state)"),
        "no slope": (decay_vjp(slope=lambda y: 1.0), "jnp.tanh(state)"),
        "da twice": (decay_vjp(da=2.0), "a * state + row"),
        "the wrong way": (decay_vjp(reverse=False), "a * state + row"),
    },
)  # fmt: skip


def branches(x):
    total = x.sum()
    return jax.lax.cond(total > 0, lambda x: jnp.sin(x) * x, lambda x: x**2, x)


def branches_vjp(first=lambda x: jnp.cos(x) * x + jnp.sin(x)):
    def backward(x, g):
        return (g * jnp.where(x.sum() > 0, first(x), 2 * x),)

    return backward


BRANCHES = Function(
    branches, (np.abs(normal(4)),), branches_vjp(),
    {
        "no product rule": (branches_vjp(lambda x: jnp.cos(x) * x), "jnp.sin(x) * x"),
        "sine taken as constant": (branches_vjp(jnp.sin), "jnp.sin(x) * x"),
        "a sign of the cosine": (branches_vjp(lambda x: -jnp.cos(x) * x + jnp.sin(x)), "jnp.sin(x) * x"),
        "the other branch": (branches_vjp(lambda x: 2 * x), ""),
        "sine for cosine": (branches_vjp(lambda x: jnp.sin(x) * x + jnp.sin(x)), "jnp.sin(x) * x"),
    },
)  # fmt: skip


def newton_root(a):
    def step(state):
        x, number = state
        return (x + a / x) / 2, number + 1

    start = (jnp.ones_like(a), 0)
    return jax.lax.while_loop(lambda state: state[1] < 8, step, start)[0]


NEWTON = Function(
    newton_root, (np.array([0.5, 2.0, 3.0]),), lambda a, g: (g / (2 * jnp.sqrt(a)),),
    {
        "twice": (lambda a, g: (g / jnp.sqrt(a),), ""),
        "root for its inverse": (lambda a, g: (g * jnp.sqrt(a) / 2,), ""),
        "negated": (lambda a, g: (-g / (2 * jnp.sqrt(a)),), ""),
        "of a itself": (lambda a, g: (g / (2 * a),), ""),
        "of one step": (lambda a, g: (g / 2,), ""),
    },
)  # fmt: skip


def tree(parameters, x):
    hidden = jnp.tanh(x @ parameters["w"])
    return {"y": hidden + parameters["b"], "size": (hidden**2).sum()}


def tree_vjp(square=2.0, both=True, db=lambda g: g.sum(0), dw=lambda x, d: x.T @ d, slope=lambda h: 1 - h**2):
    def backward(parameters, x, g):
        hidden = jnp.tanh(x @ parameters["w"])
        d = (g["y"] + square * hidden * g["size"] if both else g["y"]) * slope(hidden)
        return {"w": dw(x, d), "b": db(g["y"])}, d @ parameters["w"].T

    return backward


TREE = Function(
    tree, ({"w": normal(4, 2), "b": normal(2)}, normal(3, 4)), tree_vjp(),
    {
        "square's factor": (tree_vjp(square=1.0), "hidden**2"),
        "one output ignored": (tree_vjp(both=False), "hidden**2"),
        "db of one row": (tree_vjp(db=lambda g: g[0]), 'parameters["b"]'),
        "dw halved": (tree_vjp(dw=lambda x, d: x.T @ d / 2), 'x @ parameters["w"]'),
        "tanh's slope": (tree_vjp(slope=lambda h: 1 + h**2), "jnp.tanh(x @"),
    },
)  # fmt: skip

FUNCTIONS = {
    "dense": DENSE, "swiglu": SWIGLU, "silu, jitted": SILU, "gelu": GELU, "softplus": SOFTPLUS,
    "layer norm": LAYER_NORM, "rms norm": RMS_NORM, "softmax": SOFTMAX, "logsumexp": LOGSUMEXP,
    "cosine": COSINE, "cross entropy": CROSS_ENTROPY, "huber": HUBER, "attention": ATTENTION,
    "bilinear": BILINEAR, "embedding": EMBEDDING, "convolution": CONVOLUTION, "scan": DECAY,
    "cond": BRANCHES, "while": NEWTON, "trees": TREE,
}  # fmt: skip
