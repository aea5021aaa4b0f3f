"""Layers at hard points (zero rows under an epsilon, joins that are smooth, inputs never seen, subnormal numbers, lost
digits): the verdict wanted, and the verdicts of three seeds.

    python tests/bench/hard_points.py
"""

import sys
from pathlib import Path

import numpy as np

R = str(Path(__file__).resolve().parents[2])
sys.path[:0] = [R, R + "/engine", R + "/tests", R + "/tests/bench", R + "/tests/checking"]

from claims import numpy_layer  # noqa: E402

import gradcheck  # noqa: E402

np.seterr(all="ignore")
rng = np.random.default_rng


def show(name, wanted, layer, *x, seed=0):
    out = []
    why = ""
    for s in range(3):
        try:
            r = gradcheck.check(layer, *[a.copy() for a in x], seed=s)
            out.append(str(r.verdict) + "".join("/" + d.code for d in r.diagnosis[:2]))
            n = r.evaluations
            why = r.why
        except Exception as e:
            out.append("RAISED " + repr(e)[:80])
            n = 0
    print(f"{name:58} wanted {wanted:6}", out, n, why[:200])


def rows(eps, fac=1.0, rowfac=None):
    def f(x):
        return x / np.maximum(np.sqrt((x * x).sum(1, keepdims=True)), eps)

    def b(x, y, g):
        n = np.sqrt((x * x).sum(1, keepdims=True))
        m = np.maximum(n, eps)
        d = (g - y * (g * y).sum(1, keepdims=True) * (n > eps)) / m
        d[1] *= fac
        return d

    return f, b


X = rng(0).standard_normal((4, 5))
X[1] = 0
for eps in (1e-3, 1e-5, 1e-7):
    for fac in (2, 0, 1.1):
        show(f"A rows eps {eps} row x {fac}", "FAIL", numpy_layer(*rows(eps, fac)), X)
show("B rows eps 1e-12 right", "PASS", numpy_layer(*rows(1e-12)), X)
show("B rows eps 1e-12 zero", "FAIL", numpy_layer(*rows(1e-12, 0)), X)
show(
    "B x/(|x|+1e-12) at 0",
    "PASS",
    numpy_layer(lambda x: x / (np.abs(x) + 1e-12), lambda x, y, g: g * 1e-12 / (np.abs(x) + 1e-12) ** 2),
    np.array([0.0, 1.0, -2.0]),
)
show(
    "B 0 in place",
    "FAIL",
    numpy_layer(lambda x: x / (np.abs(x) + 1e-12), lambda x, y, g: g * 1e-12 / (np.abs(x) + 1e-12) ** 2 * (x != 0)),
    np.array([0.0, 1.0, -2.0]),
)
show(
    "A2 clip",
    "FAIL",
    numpy_layer(
        lambda x: np.clip(x / 2e-6, -1, 1).astype(x.dtype) + x,
        lambda x, y, g: g * ((np.abs(x) < 2e-6) / 2e-6 * np.array([1.1, 1, 1]) + 1),
    ),
    np.array([0, 1, -1], "float32"),
)
show(
    "C softsign(100x) at 0",
    "PASS",
    numpy_layer(lambda x: 100 * x / (1 + np.abs(100 * x)), lambda x, y, g: g * 100 / (1 + np.abs(100 * x)) ** 2),
    np.array([0.0, 0.3, -1]),
)
show(
    "C sign log1p",
    "PASS",
    numpy_layer(lambda x: np.sign(x) * np.log1p(255 * np.abs(x)), lambda x, y, g: g * 255 / (1 + 255 * np.abs(x))),
    np.array([0.0, 0.3, -1]),
)
show(
    "C2 softplus b=100 at 0",
    "PASS",
    numpy_layer(
        lambda x: np.maximum(x, 0) + np.log1p(np.exp(-100 * np.abs(x))) / 100,
        lambda x, y, g: g / (1 + np.exp(-100 * x)),
    ),
    np.array([0.0, 0.3, -1]),
)
d = 1e-3
show(
    "C2 Huber at delta",
    "PASS",
    numpy_layer(
        lambda x: np.where(np.abs(x) <= d, x * x / 2, d * (np.abs(x) - d / 2)), lambda x, y, g: g * np.clip(x, -d, d)
    ),
    np.array([d, 0.3, -d]),
)
big = rng(1).standard_normal(16385)
big[7] = 0
show("D relu 16385 right", "KINK", numpy_layer(lambda x: np.maximum(x, 0), lambda x, y, g: g * (x > 0)), big)
show("D relu 16385 doubled", "FAIL", numpy_layer(lambda x: np.maximum(x, 0), lambda x, y, g: 2 * g * (x > 0)), big)
show(
    "E clip finfo",
    "PASS",
    numpy_layer(
        lambda p: np.log(np.clip(p, np.finfo(p.dtype).eps, 1)).astype(p.dtype),
        lambda p, y, g: np.where(p > np.finfo(p.dtype).eps, g / np.clip(p, np.finfo(p.dtype).eps, 1), 0),
    ),
    np.array([1e-9, 0.3, 0.9], "float32"),
)
q, k, v = rng(2).standard_normal((3, 6, 4)) * 1e-6


def att(q, k, v):
    s = q @ k.T / 2
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p @ v


def attb(f):
    def b(q, k, v, y, g):
        s = q @ k.T / 2
        p = np.exp(s - s.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        dp = g @ v.T
        ds = p * (dp - (dp * p).sum(1, keepdims=True)) / 2
        return f * (ds @ k), ds.T @ q, p.T @ g

    return b


show("F attention 1e-6 dq x1.01", "FAIL", numpy_layer(att, attb(1.01)), q, k, v)
show("F right", "PASS", numpy_layer(att, attb(1)), q, k, v)
show(
    "H subnormal",
    "FAIL",
    numpy_layer(lambda x: 2 * x, lambda x, y, g: g * np.array([4, 2, 2, 2])),
    np.array([1e-310, 5e-324, -3e-312, 1]),
)
r = gradcheck.check(
    numpy_layer(lambda a, b: a + b, lambda a, b, y, g: (g * np.array([1.5, 1, 1]), g)), np.ones(3), np.ones(3) + 1
)
print("I", r.verdict, [(d.code, d.text) for d in r.diagnosis])


def g32(x, y, g):
    return (g.astype("float32") * (1 - y.astype("float32") ** 2)).astype(x.dtype)


show("J float32 backward of float64 tanh", "FAIL", numpy_layer(np.tanh, g32), rng(3).standard_normal(8))
show(
    "J x(1+1e-7)", "FAIL", numpy_layer(np.tanh, lambda x, y, g: g * (1 - y * y) * (1 + 1e-7)), rng(3).standard_normal(8)
)
