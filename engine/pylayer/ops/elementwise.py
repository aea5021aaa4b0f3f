"""Elementwise operations. A row: name, vjp(s), and the forward where the array module has no function of that name."""

from __future__ import annotations

from pylayer.op import binary, op, unary

# --------------------------------------------------------------------------- arithmetic
add = binary("add", lambda g: g, lambda g: g)
subtract = binary("subtract", lambda g: g, lambda g: -g)
multiply = binary("multiply", lambda g, y: g * y, lambda g, x: g * x)
divide = binary("divide", lambda g, y: g / y, lambda g, y, out: -g * out / y, floating=True)
negative = unary("neg", lambda g: -g, lambda xp: xp.negative)

# --------------------------------------------------------------------------- powers, exponentials, logarithms
tanh = unary("tanh", lambda g, out: g * (1 - out * out), floating=True)
exp = unary("exp", lambda g, out: g * out, floating=True)
