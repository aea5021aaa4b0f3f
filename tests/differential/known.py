"""Where the engine is known to differ from Paddle 3.3.1, and why: a row each, with a call that shows it.

A difference without a row fails, and so does a row whose call shows none any more. `known_odd` has those of odd inputs.
"""

from __future__ import annotations

import math

import numpy as np
from described import Arguments, T, args
from known_odd import ODD, ODD_CRASHES
from outcome import Outcome
from rows import (
    FLAGS,
    GRADIENT,
    LABELS,
    RESERVED,
    UNINITIALISED,
    Crash,
    Known,
    f64,
    first,
    i64,
    last_word,
    leaf,
    mask,
    ndim,
    no_kernel,
    result,
)

__all__ = ["CRASHES", "KNOWN", "Crash", "Known", "crashes", "excused", "label", "last_word"]

KNOWN: tuple[Known, ...] = (
    Known("PyLayer PyLayerContext once_differentiable", r"gradient \d stop_gradient", "The guide prints the gradient that a layer gave with stop_gradient False; Paddle 3.3.1 gives True.", args(leaf(1.5), 2.0), path="autograd.PyLayer"),
    # ------------------------------------------------------------------- all names
    Known("*", rf"error nothing\|RuntimeError|backward error|{GRADIENT}", "The CPU build has no kernel for this dtype; the engine computes.", args(f64(1.0, dtype="float16")), no_kernel, "nn.functional.relu"),
    Known("*", r"error \w+\|RuntimeError", "The CPU build has no kernel for this dtype; the engine refuses the call for another reason.", args(i64(1, 2), axis=3), no_kernel, "nn.functional.softmax"),
    Known("*", r"error (ValueError|TypeError|AxisError|OutOfRange\w*|RuntimeError)\|(AttributeError|AssertionError|SystemError|RuntimeError|EnforceNotMet|OverflowError)", "Both refuse. Paddle fails inside its Python wrapper or a kernel; the engine raises what the argument's check raises.", args(f64(1.0), [1.0]), lambda a, o, r: not no_kernel(a, o, r), "Tensor.add_"),
    Known("equal empty ones zeros norm cast_ scatter_ take pow_ cuda to_tensor eye remainder_ mod_ floor_divide_ equal_ __and__ __or__ __xor__ full stop_gradient less_than_ less_equal_ greater_than_ greater_equal_ not_equal_ add_ subtract_ multiply_ divide_ logical_and_ logical_or_ logical_xor_", r"error (?!nothing)\w+\|(TypeError|IndexError|ValueError)", "Both refuse, but report another error first, or name it differently.", args(f64(1.0), [1.0])),
    Known("*", r".* (value|repr|object)", "Complex numbers with a part that is infinite or NaN: each library's own.", args(T(np.array(complex(-3, math.inf)), "complex128")), lambda a, o, r: any(t.dtype.startswith("complex") and not np.isfinite(t.values).all() for t in a.tensors()), "neg"),
    # ------------------------------------------------------------------- results without a gradient
    Known("logical_not_ equal_ not_equal_ less_than_ less_equal_ greater_than_ greater_equal_ logical_and_ logical_or_ logical_xor_", rf"{FLAGS}|error ValueError\|nothing", "A Tensor that becomes bool has no gradient, and a leaf that needs one is not changed; Paddle keeps its flags.", args(result(1.0, 2.0))),
    Known("unique", rf"{FLAGS}|{GRADIENT}", "unique takes no gradient in the engine; in Paddle only that of an empty Tensor does.", args(leaf(shape=(0,)), return_counts=True)),
    Known("diag_embed", rf"{FLAGS}|{GRADIENT}", "Paddle's diag_embed has no gradient; the engine's has.", args(leaf(1.0, 2.0))),
    Known("lerp lerp_", rf"{FLAGS}|{GRADIENT}", "Paddle's lerp gives the weight no gradient.", args(f64(1.0, 2.0), f64(2.0, 2.0), leaf(0.5, 0.5))),
    Known("__getitem__", FLAGS, "Paddle returns a leaf for an empty index.", args(leaf(1.0, shape=()), ())),
    Known("view", rf"{FLAGS}|{GRADIENT}", "Paddle reads the bytes of the gradient as the other dtype too, which is no derivative.", args(leaf(1.0, 2.0), "float32")),
    Known("binary_cross_entropy binary_cross_entropy_with_logits kl_div cross_entropy", rf"{FLAGS}|{GRADIENT}", LABELS, args(f64(0.5, 0.25), leaf(0.5, 0.5))),
    # ------------------------------------------------------------------- gradients
    Known("scatter scatter_ index_put index_put_", GRADIENT, "Of several values for one place the last counts; Paddle gives those overwritten a gradient too.", args(f64(1.0, 2.0), i64(1, 1), leaf(3.0, 4.0))),
    Known("put_along_axis put_along_axis_", GRADIENT, "Values for one place that are overwritten, or equal: Paddle gives each the whole gradient.", args(result(-3.0, -3.0), i64(0, 0), f64(-3.0, -3.0), 0, reduce="amax")),
    Known("matmul", rf"{GRADIENT}|backward error", "Paddle's backward fails for a vector that is to be transposed.", args(f64(1.0, 2.0), leaf(1.0, 2.0, 3.0, 4.0, shape=(2, 2)), transpose_x=True)),
    Known("atan2", rf"{GRADIENT}|backward error", "Paddle's backward fails for Tensors without elements.", args(f64(shape=(0,)), leaf(shape=(0,)))),
    Known("log_sigmoid asinh", r".* value", "At infinities Paddle gives NaN.", args(f64(-math.inf)), lambda a, o, r: not np.isfinite(first(a).values).all()),
    Known("cross_entropy", "out value", "Paddle divides by the number of logits, not of labels, with label_smoothing and ignore_index.", args(f64(1.0, 2.0, 3.0, 4.0, shape=(2, 2)), i64(0, 0), ignore_index=1, label_smoothing=0.1)),
    Known("round round_", "(out|input 0) value", "Paddle does not round integers.", args(i64(1), decimals=-1)),
    Known("equal_all", r"error ValueError\|nothing", "Paddle does not look at the dtypes of Tensors without elements.", args(f64(shape=(0,)), f64(shape=(0,), dtype="float32"))),
    Known("reshape reshape_ tile", r"error ValueError\|nothing", "Which size -1 stands for beside a 0 is not determined; Paddle takes one.", args(f64(shape=(0, 3)), [0, -1])),
    Known("inverse inv", r"error nothing\|ValueError", "Whether a matrix is singular is decided by rounding.", args(f64(-7.29, -7.29, -6.18, -6.18, shape=(2, 2)))),
    Known("slogdet det", ".* value", "Whether a matrix is singular is decided by rounding.", args(f64(-7.29, -7.29, -6.18, -6.18, shape=(2, 2)))),
    Known("clip_", r"error nothing\|ValueError", "Paddle takes a missing bound of integers for the least integer.", args(i64(-4), min=0)),
    Known("index_select", GRADIENT, "Paddle loses the gradient of a negative position.", args(leaf(1.0, 2.0, 3.0), i64(-1, 0))),
    Known("masked_fill masked_fill_", GRADIENT, "Paddle's gradient of the value is wrong if `x` needs one too.", args(result(1.0, 2.0, 3.0), mask(True, False, True), leaf(1.0, shape=()))),
    Known("kthvalue", GRADIENT, "Paddle's gradient of a 0-d Tensor is 1, whatever the cotangent.", args(leaf(1.0, shape=()), 1)),
    Known("median", GRADIENT, "Equal elements: Paddle gives the gradient to others of them.", args(leaf(2.0, 1.0, 5.0, 5.0)), ),
    Known("norm vector_norm", GRADIENT, "Elements that reach the extreme together share its gradient; Paddle gives each all of it.", args(leaf(0.25, -1.5, -0.25), -math.inf, 0)),
    Known("normalize", GRADIENT, "Paddle's p-norm adds epsilon in backward.", args(leaf(3.44, -7.29, 5.29, 4.18, shape=(2, 2)), p=1, epsilon=0.001)),
    Known("multi_dot broadcast_tensors slogdet det", rf"{GRADIENT}|backward error", "Paddle's backward fails, or gives NaN, for some arguments (a first factor without gradient; a single Tensor; a singular matrix).", args([f64(1.0, 2.0, shape=(1, 2)), leaf(1.0, 2.0, shape=(2, 1))])),
    Known("triangular_solve", GRADIENT, "Paddle's gradient of the matrix is wrong with `transpose`.", args(leaf(2.0, 3.0, 5.0, 7.0, shape=(2, 2)), f64(1.0, 2.0, shape=(2, 1)), upper=True, transpose=True)),
    # ------------------------------------------------------------------- in place
    Known("floor_divide_", rf"{FLAGS}|{GRADIENT}|error ValueError\|nothing", "floor_divide has no gradient; in place Paddle passes that of the result on unchanged, and changes leaves.", args(result(1.0, 2.0), f64(2.0, 2.0))),
    Known("exponential_", r"error ValueError\|nothing", "Paddle does not protect leaves from this change.", args(leaf(1.0))),
    Known("copy_", rf"out is|{FLAGS}|{GRADIENT}|backward error", "Neither library's graph sees copy_; Paddle returns another object for the Tensor.", args(f64(1.0), f64(2.0))),
    Known("set_", rf"{FLAGS}|{GRADIENT}|input 0 changed", "The Tensor takes the source's place in the graph; in Paddle gradients still go to what it was before.", args(result(1.0, 2.0), f64(3.0, 4.0))),
    Known("clip", "out value", "Paddle clips infinities at the largest number if a bound is missing.", args(f64(math.inf))),
    Known("selu", GRADIENT, "Paddle's gradient of selu takes NaN for a positive number.", args(leaf(math.nan)), lambda a, o, r: bool(np.isnan(first(a).values).any())),
    Known("clip clip_", GRADIENT, "Paddle gives NaN and infinities no gradient.", args(leaf(math.nan)), lambda a, o, r: not np.isfinite(first(a).values).all()),
    Known("layer_norm", GRADIENT, "Paddle's backward leaves a weight out that needs no gradient itself.", args(leaf(1.0, 2.0, 4.0, 3.0, shape=(2, 2)), [2], weight=f64(-3.0, 2.0)), lambda a, o, r: any(t.kind == "constant" for t in a.tensors()[1:])),
    Known("abs abs_ __abs__", GRADIENT, "Paddle divides by the absolute value in backward: NaN at infinity.", args(leaf(math.inf))),
    Known("cumprod cumprod_", r"error nothing\|ValueError", "The engine takes axis -1 of a 0-d Tensor, as everywhere.", args(f64(1.0, shape=()), dim=-1)),
    Known("std var", GRADIENT, "Paddle gives a 0-d Tensor no gradient.", args(leaf(1.0, shape=()), unbiased=False)),
    Known("where_ masked_fill_", r"error ValueError\|nothing", "Paddle lets the Tensor grow.", args(mask(True, False), f64(1.0, shape=()), f64(2.0, shape=()))),
    Known("pad", r"error nothing\|ValueError", "Pairs for all axes: Paddle takes them with mode constant only.", args(f64(1.0, 2.0, shape=(1, 1, 2)), [1, 0, 0, 1, 1, 1], mode="replicate", data_format="NCL")),
    Known("__bool__", "out object", "Paddle takes negative numbers for false.", args(f64(-3.0))),
    Known("__eq__ __ne__", "out .*", "A text equals no Tensor; Paddle reads it as 0.", args(f64(1.0), "text")),
    Known("clip_", "(out|input 0) value", "Paddle takes a missing bound of int32 for the least integer.", args(i64(0, 3, dtype="int32"))),
    Known("cumsum_", "(out|input 0) (dtype|repr)", "The sum of int32 is int64, in place too.", args(i64(1, 2, dtype="int32"), 0)),
    Known("equal_ remainder_ mod_ floor_divide_", r"error nothing\|AttributeError", "In place Paddle takes Tensors only, by accident: it asks a number for its shape.", args(f64(1.0), 2.0)),
    Known("pow_", r"error nothing\|TypeError", "In place Paddle takes numbers only; the engine Tensors too.", args(f64(2.0), f64(3.0))),
    Known("reshape_", r"error nothing\|ValueError", "In place Paddle takes lists only.", args(f64(1.0, 2.0), 2, 1)),
    Known("flatten_", r"error nothing\|ValueError", "In place Paddle refuses the axes of a 0-d Tensor that it takes otherwise.", args(f64(1.0, shape=()), stop_axis=0)),
    # ------------------------------------------------------------------- arguments
    Known("as_strided", r"error ValueError\|nothing|.* value", "Paddle does not check that the view lies inside the Tensor.", args(f64(1.0, 2.0), [2], [1, 1])),
    Known("broadcast_to expand", r"error ValueError\|nothing", RESERVED, args(f64(1.0, 2.0), [])),
    Known("index_add index_add_ index_put", r"error ValueError\|nothing", RESERVED, args(f64(1.0, 2.0, 3.0), i64(0, 1), 0, f64(1.0, 2.0, 3.0))),
    Known("full", r"error ValueError\|nothing", "Paddle fills with 0 for a text.", args([1], "text")),
    Known("add_n", r"error ValueError\|nothing", "Paddle leaves empty Tensors out.", args([f64(shape=(0, 3)), f64(1.0, 2.0, 3.0, shape=(1, 3))])),
    Known("argmax argmin amax amin max min", r"error ValueError\|nothing", f"Nothing is the largest of none. {UNINITIALISED}", args(f64(shape=(0, 3)))),
    Known("dropout kl_div", r"error ValueError\|nothing", RESERVED, args(f64(1.0), p=0.0, mode="other")),
    Known("embedding", r"error ValueError\|nothing", "Paddle notices a position out of range in backward only.", args(i64(4), f64(1.0, 2.0, shape=(2, 1)), padding_idx=-1)),
    Known("pad", r"error ValueError\|nothing", RESERVED, args(f64(1.0, 2.0), [0, 1, 2, 0])),
    Known("to_tensor", r"error TypeError\|nothing", "uint16 is how Paddle stores bfloat16; the engine has no such integers.", args(np.ones(2, "uint16"))),
    Known("__add__ __lt__ __le__ __gt__ __ge__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __div__ __rdiv__ __floordiv__ __rfloordiv__ __mod__ __rmod__", r"error TypeError\|nothing", "Paddle reads a text as 0.", args(f64(1.0), "text")),
    Known("index_fill index_fill_ lerp lerp_ kron put_along_axis put_along_axis_ binary_cross_entropy_with_logits", r"error nothing\|ValueError", "Paddle takes only values of the Tensor's own dtype, and makes numbers float32; the engine casts or promotes.", args(f64(1.0, 2.0), i64(0), 0, f64(1.0, shape=(), dtype="float32"))),
    Known("meshgrid", r"error nothing\|ValueError", "Paddle takes 1-D Tensors only; the engine flattens.", args(f64(1.0, 2.0, shape=(1, 2)))),
    Known("repeat_interleave", r"error nothing\|ValueError", "No repeats at all: an empty Tensor.", args(f64(1.0, 2.0), 0)),
    Known("nan_to_num nan_to_num_", r"error nothing\|AssertionError", "Paddle takes no integers; the engine gives them back.", args(i64(1, 2))),
    Known("standard_normal normal uniform rand randn", r"error nothing\|\w+", "Paddle fails on the defaults that it documents, and on an int as shape.", args(3)),
    Known("__setitem__", r"error nothing\|ValueError", "An empty list selects nothing.", args(mask(True, False), [], 1.5)),
    Known("__mod__ __truediv__ __rtruediv__ __div__ __rdiv__ __rfloordiv__ __floordiv__ __rmod__ remainder mod floor_divide remainder_ mod_ floor_divide_ divide", r"error nothing\|(EnforceNotMet|SystemError)", "Integer division by zero; the engine does what the array module does.", args(i64(1), i64(0))),
    Known("clear_grad", r"error nothing\|TypeError", "The engine's clear_grad takes the option of clear_gradient.", args(leaf(1.0), (False,))),
    Known("__index__", r"error (TypeError\|nothing|nothing\|TypeError)", "Floats are not valid indices; a bool with one element is.", args(f64(1.0, shape=()))),
    Known("logical_and floor_divide_ mod_ remainder_ logical_or logical_xor logical_and_ logical_or_ logical_xor_ add_ subtract_ multiply_ divide_ add subtract multiply divide", r"error nothing\|TypeError", "0-d Tensors promote in all operations of the engine.", args(i64(1, shape=()), f64(1.0, shape=()))),
    # ------------------------------------------------------------------- values, shapes, dtypes
    Known("isclose allclose", "out value", "Infinities of both signs are close in Paddle.", args(f64(math.inf), f64(-math.inf), rtol=0.1)),
    Known("__floordiv__ floor_divide __rfloordiv__", r"out (shape|dtype|repr|value)", "Paddle makes a 0-d Tensor 1-D beside a number, and its dtype count beside a Tensor.", args(f64(3.0, shape=()), 2)),
    Known("__matmul__", "out (dtype|repr)", "Paddle does not promote two vectors.", args(f64(1.0, 2.0, dtype="float32"), f64(1.0, 2.0))),
    Known("__truediv__ divide", "out value", "A complex number by zero: infinite, or NaN.", args(T(np.array([1 + 1j]), "complex128"), f64(0.0))),
    Known("seed", "out object", "The generator is the engine's own.", args(3)),
    Known("size", "out object", "In Paddle a number that can be called as well.", args(f64(1.0))),
    Known("grad_fn", r"out\[0\] object", "In Paddle a leaf has a node that accumulates.", args(leaf(1.0))),
    Known("register_hook", FLAGS, "Whether a gradient that a hook returned is a leaf is not documented.", args(leaf(1.0), False, False)),
    *ODD,
)  # fmt: skip

CRASHES: tuple[Crash, ...] = (
    Crash("meshgrid broadcast_tensors", "SIGSEGV in backward if some of the Tensors need no gradient.", args([leaf(1.0, 2.0), f64(3.0, 4.0)]), lambda a: len({t.kind == "constant" for t in a.tensors()}) > 1),
    Crash("norm", "SIGSEGV for a 0-d Tensor with an axis.", args(T(np.array(-3 + 0.5j), "complex128", "leaf"), axis=-1, keepdim=False), lambda a: ndim(first(a)) == 0),
    Crash("__getitem__ __setitem__", "SIGSEGV for positions into an axis of size 0.", args(leaf(shape=(0, 3)), ([0], 0)), lambda a: isinstance(first(a), T) and first(a).values.size == 0),
    Crash("prelu", "SIGSEGV in backward if only the slope needs a gradient.", args(f64(*range(4), shape=(2, 2)), leaf(1.0, 2.0)), lambda a: first(a).kind == "constant"),
    Crash("matmul mm __matmul__", "Heap corruption for batches of which one has an axis more, of size 1.", args(i64(*range(12), shape=(2, 1, 2, 3)), i64(*range(6), shape=(2, 3, 1))), lambda a: any(t.values.ndim > 3 for t in a.tensors())),
    Crash("solve", "SIGSEGV in backward if one of the two needs no gradient.", args(leaf(1.0, 2.0, 3.0, 5.0, shape=(2, 2)), f64(1.0, 2.0, 3.0, 5.0, shape=(2, 2))), lambda a: len({t.kind == "constant" for t in a.tensors()}) > 1),
    Crash("misuse", "Heap corruption for a cotangent of another shape.", args(leaf(1.0, 2.0, 3.0), "shape"), lambda a: a.args[1:] == ("shape",)),
    Crash("pow pow_ __pow__", "An integer Tensor to a negative number never ends.", args(i64(2, 3), -1), lambda a: isinstance(first(a), T) and first(a).dtype.startswith(("int", "uint")) and isinstance(a.args[1], (int, float)) and a.args[1] < 0),
    *ODD_CRASHES,
)  # fmt: skip


def label(fact: str, ours: Outcome, real: Outcome) -> str:
    """A fact as rows name it: of errors, both types as well."""
    return fact if fact != "error" else f"error {ours.error or 'nothing'}|{real.error or 'nothing'}"


def excused(path: str, arguments: Arguments, fact: str, ours: Outcome, real: Outcome) -> Known | None:
    """The row about a difference, if there is one."""
    named = label(fact, ours, real)
    return next((row for row in KNOWN if row.covers(path, named, arguments, ours, real)), None)


def crashes(path: str, arguments: Arguments) -> bool:
    """Whether a call must not be made on Paddle."""
    return any(row.covers(path, arguments) for row in CRASHES)
