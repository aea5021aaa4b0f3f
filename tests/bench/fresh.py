"""Layers that nobody has tuned a checker by, in all dtypes and precisions: how often the verdict is right.

    python tests/bench/fresh.py [--style numpy|paddle] [--dtype float64|float32|float16|bfloat16] [--what right|wrong]
                                [--mixed inside|backward|half|sums] [--public|--later] [--only NAME]
                                [--first N --count M] [--seconds S] [--verify]

``--verify`` judges the rows without the checker: right backwards by central differences, and that every mistake
changes an entry of a gradient by 1 % (10 % in half dtypes).
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import re
import sys
import tempfile
import textwrap
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from fresh_later import LATER  # noqa: E402
from fresh_layers import FRESH, Fresh, Mistake  # noqa: E402
from fresh_public import PUBLIC  # noqa: E402

import gradcheck  # noqa: E402
import pylayer.paddle as paddle  # noqa: E402
from gradcheck.backends.recording import record_call  # noqa: E402
from pylayer.watch.numpy_recording import Code  # noqa: E402

FOLDER = Path(tempfile.mkdtemp(prefix="fresh-"))
DTYPES = ("float64", "float32", "float16", "bfloat16")
HALVES = ("float16", "bfloat16")
MIXED = ("inside", "backward", "half", "sums")

NUMPY = """\
import math

import numpy as np

import pylayer.paddle as paddle


{forward}

{backward}

class Layer(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, {names}):
        {names}, = {arrays},
        y = forward({names})
        ctx.saved = {names}, y
        if isinstance(y, tuple):
            return tuple(paddle.to_tensor(np.asarray(v).astype({first}.dtype)) for v in y)
        return paddle.to_tensor(np.asarray(y).astype({first}.dtype))

    @staticmethod
    def backward(ctx, *g):
        {names}, y = ctx.saved
        g = tuple(v.numpy() for v in g)
        found = backward({names}, y, g if len(g) > 1 else g[0])
        found = found if isinstance(found, tuple) else (found,)
        {rows}
        given = [
            None if d is None else paddle.to_tensor(np.asarray(d).astype(v.dtype).reshape(v.shape))
            for d, v in zip(found, ({names},))
        ]
        return given[0] if len(given) == 1 else tuple(given)
"""

PADDLE = """\
import pylayer.paddle as paddle


{forward}

{backward}

class Layer(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, {names}):
        y = forward({names})
        if isinstance(y, tuple):
            y = tuple(v.astype({first}.dtype) for v in y)
            ctx.save_for_backward({names}, *y)
        else:
            y = y.astype({first}.dtype)
            ctx.save_for_backward({names}, y)
        return y

    @staticmethod
    def backward(ctx, *g):
        {names}, *y = ctx.saved_tensor()
        found = backward({names}, tuple(y) if len(y) > 1 else y[0], g if len(g) > 1 else g[0])
        found = found if isinstance(found, tuple) else (found,)
        {rows}
        given = [
            None if d is None else d.astype(v.dtype).reshape(v.shape) for d, v in zip(found, ({names},))
        ]
        return given[0] if len(given) == 1 else tuple(given)
"""


# --------------------------------------------------------------------------- the programs
def text_of(function: Callable[..., Any], name: str) -> str:
    """The source of a row's function without its annotations."""
    text = textwrap.dedent(inspect.getsource(function)).replace(": Any", "").replace(" -> Any", "")
    return re.sub(r"def \w+\(", f"def {name}(", text, count=1)


def names_of(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def in_style(text: str, style: str) -> str:
    """The text with the module's name, and what Paddle spells otherwise."""
    if style == "numpy":
        spelled = {"m.acos": "m.arccos", "m.asin(": "m.arcsin(", "m.asinh": "m.arcsinh", "m.acosh": "m.arccosh"}
        for ours, theirs in spelled.items():
            text = text.replace(ours, theirs)
        return re.sub(r"\bm\.", "np.", text)
    return re.sub(r"\bm\.", "paddle.", text.replace("keepdims=", "keepdim="))


def with_casts(text: str, names: Sequence[str], style: str) -> str:
    """The text computing in float32 whatever it is given; integers stay."""
    if style == "numpy":
        cast = "tuple(v.astype('float32') for v in {0}) if isinstance({0}, tuple) else {0}.astype('float32')"
    else:
        cast = (
            "tuple(paddle.cast(v, 'float32') for v in {0}) if isinstance({0}, tuple) else paddle.cast({0}, 'float32')"
        )
    head, body = text.split("\n", 1)
    return "\n".join([head, *(f"    {n} = {cast.format(n)}" for n in names), body])


def sums_in_float32(text: str) -> str:
    """Every sum and mean of a plain name or bracket with one level taken in float32."""
    return re.sub(
        r"(\b[a-z]\w*|\([^()]*(?:\([^()]*\)[^()]*)*\))\.(sum|mean)\(((?:[^()]|\([^()]*\))*)\)",
        r"\1.astype('float32').\2(\3).astype(x.dtype)",
        text,
    )


def mutated(layer: Fresh, mistake: Mistake | None) -> str:
    text = text_of(layer.backward, "backward")
    if mistake is None or mistake[0] == "row":
        return text
    if mistake[0] not in text:
        raise ValueError(f"{layer.name}: no {mistake[0]!r}")
    return text.replace(mistake[0], mistake[1], 1)


def row_mistake(style: str, which: int, size: float) -> str:
    """One row of a gradient is wrong by a share."""
    scaled = f"[{1 + size} if k == len(d) // 3 else 1.0 for k in range(len(d))]"
    made = f"np.array({scaled})" if style == "numpy" else f"paddle.to_tensor({scaled}).astype(d.dtype)"
    shape = "[-1] + [1] * (d.ndim - 1)"
    return f"d = found[{which}]; found = (*found[:{which}], d * {made}.reshape({shape}), *found[{which} + 1 :])"


def program(layer: Fresh, style: str, mistake: Mistake | None = None, mixed: str = "", half: bool = False) -> str:
    names = names_of(layer.forward)
    forward, backward = text_of(layer.forward, "forward"), mutated(layer, mistake)
    floats = [n for n, x in zip(names, drawn(layer), strict=True) if x.dtype.kind == "f"]
    forward, backward = in_style(forward, style), in_style(backward, style)
    if mixed in ("inside", "half"):
        forward = with_casts(forward, floats, style)
    if mixed in ("inside", "half", "backward"):
        backward = with_casts(backward, [*floats, "y", "g"], style)
    if mixed == "sums":
        forward, backward = (sums_in_float32(t).replace("x.dtype", f"{floats[0]}.dtype") for t in (forward, backward))
    rows = "pass"
    if mistake is not None and mistake[0] == "row":
        rows = row_mistake(style, int(mistake[1]), 0.3 if half else 0.06)
    return (NUMPY if style == "numpy" else PADDLE).format(
        forward=forward,
        backward=backward,
        names=", ".join(names),
        first=floats[0],
        arrays=", ".join(f"{n}.numpy()" for n in names),
        rows=rows,
    )


COUNT = iter(range(10**9))


def module(text: str) -> Any:
    """The program as a module in a file of its own."""
    number = next(COUNT)
    file = FOLDER / f"layer_{number}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"fresh_layer_{number}", file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def drawn(layer: Any, dtype: str = "float64", seed: int = 0) -> list[Any]:
    """Inputs, floating ones rounded to a dtype."""
    arrays = [np.asarray(x) for x in layer.inputs(np.random.default_rng(seed + 1000 * len(layer.name)))]
    kind = in_numpy(dtype)
    return [x.astype(kind) if x.dtype.kind == "f" else x for x in arrays]


def in_numpy(dtype: str) -> Any:
    if dtype == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(dtype)


def mistakes_of(layer: Fresh) -> list[Mistake]:
    """The row's own and one wrong row of one gradient."""
    floats = [k for k, x in enumerate(drawn(layer)) if x.dtype.kind == "f"]
    return [*layer.mistakes, ("row", str(floats[len(layer.name) % len(floats)]))]


def told(mistake: Mistake | None) -> str:
    if mistake is None:
        return "right"
    return " → ".join(repr(t) for t in mistake[:2])


# --------------------------------------------------------------------------- without the checker
def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def plain(layer: Fresh, inputs: list[Any], mistake: Mistake | None = None, g: Any = None) -> tuple[Any, Any, Any]:
    """Outputs, cotangents and gradients of the NumPy program on arrays."""
    made = module(program(layer, "numpy", mistake))
    y = made.forward(*inputs)
    random = np.random.default_rng(5)
    if g is None:
        g = tuple(random.standard_normal(np.shape(v)) for v in as_tuple(y))
    if mistake is not None and mistake[0] == "row":
        found = list(as_tuple(made.backward(*inputs, y, g if len(g) > 1 else g[0])))
        k = int(mistake[1])
        found[k] = np.array(found[k])
        found[k].reshape(len(found[k]), -1)[len(found[k]) // 3] *= 1.3
        return y, g, found
    return y, g, as_tuple(made.backward(*inputs, y, g if len(g) > 1 else g[0]))


def error_of_right(layer: Fresh, inputs: list[Any]) -> float:
    """The largest error of the right backward beside central differences, relative to the largest entry."""
    made = module(program(layer, "numpy"))
    _, g, found = plain(layer, inputs)
    worst = 0.0
    random = np.random.default_rng(1)

    def value(k: int, x: Any) -> Any:
        outputs = as_tuple(made.forward(*inputs[:k], x, *inputs[k + 1 :]))
        return sum(float((a * b).sum()) for a, b in zip(outputs, g, strict=True))

    for k, (x, d) in enumerate(zip(inputs, found, strict=True)):
        if x.dtype.kind != "f":
            assert d is None
            continue
        d = np.asarray(d).reshape(x.shape)
        tries = [random.standard_normal(x.shape) for _ in range(3)]
        for at in random.integers(0, x.size, 8):
            one = np.zeros(x.size)
            one[at] = 1
            tries.append(one.reshape(x.shape))
        for t in tries:
            h = 1e-5
            slope = (
                8 * (value(k, x + h * t) - value(k, x - h * t)) - value(k, x + 2 * h * t) + value(k, x - 2 * h * t)
            ) / (12 * h)
            size = np.abs(d).max() * np.abs(t).sum() ** 0.5 + 1e-9
            worst = max(worst, abs(slope - float((d * t).sum())) / size)
    return worst


def effect(layer: Fresh, inputs: list[Any], mistake: Mistake) -> float:
    """The largest relative change of an entry that is not tiny beside the largest of its gradient."""
    wide = [np.asarray(x, dtype="float64") if x.dtype.kind not in "biu" else x for x in inputs]
    _, g, right = plain(layer, wide)
    _, _, wrong = plain(layer, wide, mistake, g)
    found = 0.0
    for a, b in zip(right, wrong, strict=True):
        if a is None:
            continue
        a, b = np.broadcast_arrays(np.asarray(a), np.asarray(b).reshape(np.shape(a)) if np.size(a) == np.size(b) else b)
        large = np.abs(a) >= 1e-3 * np.abs(a).max()
        found = max(found, float((np.abs(b - a)[large] / np.abs(a)[large]).max()))
    return found


def ran(layer: Fresh, style: str, dtype: str, mistake: Mistake | None = None, mixed: str = "") -> list[Any]:
    """The gradients of the PyLayer, run as Paddle runs it."""
    inputs = drawn(layer, dtype)
    made = module(program(layer, style, mistake, mixed)).Layer
    tensors = [tensor(x) for x in inputs]
    y = as_tuple(made.apply(*tensors))
    _, g, _ = plain(layer, [np.asarray(x, "float64") if x.dtype.kind not in "biu" else x for x in inputs])
    paddle.autograd.backward(list(y), [tensor(c.astype(v.numpy().dtype)) for c, v in zip(g, y, strict=True)])
    return [None if t.stop_gradient else t.grad.numpy() for t in tensors]


def tensor(x: Any) -> Any:
    if x.dtype.name == "bfloat16":
        made = paddle.to_tensor(x.astype("float32")).astype("bfloat16").detach()
        made.stop_gradient = False
        return made
    return paddle.to_tensor(x, stop_gradient=x.dtype.kind in "biu")


def verify(chosen: Any) -> None:
    """Every row: the right backward, Paddle beside NumPy, every mistake's effect, and the errors in low precision."""
    for number, layer in selected(chosen):
        try:
            inputs = drawn(layer)
            error = error_of_right(layer, inputs)
            bad = [] if error < 1e-7 else [f"right backward off by {error:.1e}"]
            _, _, right = plain(layer, inputs)
            styles = ("numpy",) if chosen.public else ("numpy", "paddle")
            both = [ran(layer, style, "float64") for style in styles]
            for found in both:
                for a, b in zip(right, found, strict=True):
                    if b is not None:
                        off = np.abs(np.asarray(a).reshape(b.shape) - b).max() / np.abs(a).max()
                        bad += [f"a style is off by {off:.1e}"] if off > 1e-10 else []
            for mistake in layer.mistakes if chosen.public else mistakes_of(layer):
                for dtype, least in (("float64", 0.01),) if chosen.public else (("float64", 0.01), ("bfloat16", 0.1)):
                    try:
                        share = effect(layer, drawn(layer, dtype), mistake)
                    except Exception as failure:
                        bad.append(f"{told(mistake)}: {type(failure).__name__} {failure}")
                        continue
                    if not share >= least:
                        bad.append(f"{told(mistake)} changes {share:.1e} in {dtype}")
            for mistake in layer.mistakes:
                known = mistake[2].split("|") if len(mistake) > 2 else []
                if known and not any(k in text_of(layer.forward, "forward") for k in known):
                    bad.append(f"no line {mistake[2]!r}")
            lost = ""
            for style in () if chosen.public else styles:
                for dtype in HALVES if layer.halves else ():
                    try:
                        off = low_error(layer, style, dtype)
                        lost += f" {style[0]}{dtype[0]} {off:.1e}"
                    except Exception as failure:
                        lost += f" {style[0]}{dtype[0]} {type(failure).__name__}"
                        bad.append(f"{style} {dtype}: {failure}"[:150])
            print(f"{number:3} {layer.name:40} {error:.0e} {lost}", flush=True)
            for line in bad:
                print("      ", line)
        except Exception:
            print(number, layer.name)
            traceback.print_exc(limit=-3)


def low_error(layer: Fresh, style: str, dtype: str, mixed: str = "") -> float:
    """The largest error of a right backward in low precision, relative to the largest entry of its gradient."""
    inputs = drawn(layer, dtype)
    wide = [np.asarray(x, "float64") if x.dtype.kind not in "biu" else x for x in inputs]
    _, _, right = plain(layer, wide)
    found = ran(layer, style, dtype, mixed=mixed)
    return max(
        float(np.abs(np.asarray(b, "float64") - np.asarray(a).reshape(b.shape)).max() / np.abs(a).max())
        for a, b in zip(right, found, strict=True)
        if b is not None
    )


def beside_autograd(layer: Fresh, style: str, dtype: str, mixed: str = "") -> str:
    """What is lost by a right backward, and by autograd on its forward in operations, for each input."""
    inputs = drawn(layer, dtype)
    wide = [np.asarray(x, "float64") if x.dtype.kind not in "biu" else x for x in inputs]
    try:
        _, g, right = plain(layer, wide)
        own = ran(layer, style, dtype, mixed=mixed)
        made = module(program(layer, "paddle", mixed=mixed))
        tensors = [tensor(x) for x in inputs]
        y = as_tuple(made.forward(*tensors))
        paddle.autograd.backward(list(y), [tensor(c.astype(v.numpy().dtype)) for c, v in zip(g, y, strict=True)])
    except Exception as failure:
        return f"cannot tell: {failure}"[:60]
    said = []
    for exact, c, t in zip(right, own, tensors, strict=True):
        if c is not None:
            exact = np.asarray(exact).reshape(c.shape)
            lost = [float(np.abs(np.asarray(v, "float64") - exact).max()) for v in (c, t.grad.numpy())]
            said.append(f"{lost[0] / np.abs(exact).max():.0e} ({lost[0] / (lost[1] or 1):.1f} times autograd)")
    return ", ".join(said)


# --------------------------------------------------------------------------- the checker
class Tally:
    """Verdicts, names of what is not as wanted, and seconds."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.odd: list[str] = []
        self.ratios: list[float] = []
        self.passing: list[float] = []
        self.failing: list[float] = []
        self.lines: Counter[str] = Counter()
        self.whole: Counter[str] = Counter()

    def show(self) -> None:
        if self.whole:
            print("recorded:", dict(self.whole))
        print("right:", dict(self.right))
        print("wrong:", dict(self.wrong))
        for name, seconds in (("passing", self.passing), ("failing", self.failing)):
            if seconds:
                print(f"seconds {name}: {median(seconds):.2f} in the median, {max(seconds):.2f} at worst")
        if self.ratios:
            print(f"failing / passing: {median(self.ratios):.1f} in the median, {max(self.ratios):.1f} at worst")
        if self.lines:
            print("lines:", dict(self.lines))
        for line in self.odd:
            print("  *", line)


def check(made: Any, inputs: list[Any], **options: Any) -> tuple[str, float, Any]:
    started = time.perf_counter()
    arguments = [x if x.dtype.kind in "fc" else tensor(x) for x in inputs]
    try:
        found = gradcheck.check(made, *arguments, **options)
        verdict = "green" if found.verdict.green else str(found.verdict)
    except Exception as error:
        found, verdict = None, f"raised {type(error).__name__}: {str(error)[:100]}"
    return verdict, time.perf_counter() - started, found


def codes(found: Any) -> str:
    if found is None:
        return ""
    return "; ".join(f"{d.code} {Path(d.line).name} {d.text[:90]}" for d in found.diagnosis[:2])


def leaks(made: Any, inputs: list[Any]) -> list[str]:
    """What a layer in NumPy leaves out of the recording."""
    tensors = [tensor(x) for x in inputs]
    found = record_call(lambda: list(as_tuple(made.apply(*tensors))), tensors, lines=True, numpy=Code([made]))
    return [str(found.error)] if found.error else list(dict.fromkeys(found.leaks))


def line_is_right(found: Any, text: str, wanted: str) -> str:
    """Whether a diagnosis names a line of the forward that holds a text."""
    named = [int(d.line.rsplit(":", 1)[1]) for d in found.diagnosis if d.line]
    if not named:
        return next((mark for mark in found.marks if mark.startswith("diagnosis stopped")), "no line named")
    lines = text.splitlines()
    return "right line" if any(w in lines[n - 1] for n in named for w in wanted.split("|")) else "other line"


def judge(layer: Fresh, style: str, dtype: str, mixed: str, what: str, tally: Tally, until: float) -> None:
    half = dtype in HALVES
    if half and not layer.halves:
        return
    inputs = drawn(layer, dtype)
    where = f"{layer.name} ({style}, {dtype}{', ' + mixed if mixed else ''})"
    passing = None
    if what != "wrong":
        text = program(layer, style, mixed=mixed)
        try:
            ran(layer, style, dtype, mixed=mixed)
        except Exception as failure:
            tally.right["cannot run"] += 1
            tally.odd.append(f"cannot run {where}: {type(failure).__name__} {failure}"[:160])
            return
        made = module(text)
        if style == "numpy" and not mixed:
            left_out = leaks(made.Layer, inputs)
            tally.whole["with a leak" if left_out else "whole"] += 1
            tally.odd += [f"leak of {where}: {'; '.join(left_out)[:200]}"] if left_out else []
        verdict, passing, found = check(made.Layer, inputs)
        loses = mixed == "backward" and dtype == "float64"
        if loses:
            named = found is not None and any(d.code == "GC113" for d in found.diagnosis)
            verdict += " GC113" if named else ""
            loose, _, _ = check(made.Layer, inputs, precision="loose")
            verdict += f", loose {loose}"
        tally.right[verdict] += 1
        wanted = "FAIL GC113, loose green" if loses else "green"
        if verdict == "green":
            tally.passing.append(passing)
        if verdict != wanted:
            off = "" if layer in PUBLIC else beside_autograd(layer, style, dtype, mixed)
            tally.odd.append(
                f"{verdict} of right {where}, {passing:.1f} s, loses {off}: {codes(found)} [{made.__file__}]"
            )
    if what == "right":
        return
    for mistake in mistakes_of(layer)[: 2 if mixed or layer in PUBLIC else None]:
        if time.perf_counter() > until:
            return
        if effect(layer, inputs, mistake) < (0.1 if half else 0.01):
            tally.wrong["too small, left out"] += 1
            continue
        text = program(layer, style, mistake, mixed, half)
        made = module(text)
        verdict, seconds, found = check(made.Layer, inputs)
        if mixed == "backward":
            loose, _, _ = check(made.Layer, inputs, precision="loose")
            verdict += "" if loose == verdict else f", loose {loose}"
        tally.wrong[verdict] += 1
        if verdict == "FAIL":
            tally.failing.append(seconds)
            if passing:
                tally.ratios.append(seconds / passing)
            if len(mistake) > 2:
                said = line_is_right(found, text, in_style(mistake[2], style))
                tally.lines[said] += 1
                if said != "right line":
                    tally.odd.append(f"{said}: {told(mistake)} in {where}: {codes(found)}")
        else:
            tally.odd.append(f"{verdict} of {told(mistake)} in {where}: {codes(found)} [{made.__file__}]")


def selected(chosen: Any) -> Iterator[tuple[int, Fresh]]:
    rows = list(enumerate(PUBLIC if chosen.public else FRESH[:: 3 if chosen.mixed else 1]))
    for number, layer in rows[chosen.first : chosen.first + chosen.count if chosen.count else None]:
        if chosen.only in layer.name:
            yield number, layer


def main() -> None:
    """Judge the rows that are asked for, and count."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--style", choices=["numpy", "paddle"])
    arguments.add_argument("--dtype", choices=DTYPES, default="float64")
    arguments.add_argument("--what", choices=["right", "wrong"])
    arguments.add_argument("--mixed", choices=MIXED, default="")
    arguments.add_argument("--public", action="store_true", help="the small layers in NumPy alone")
    arguments.add_argument("--later", action="store_true", help="those that were written later, in their place")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--count", type=int)
    arguments.add_argument("--seconds", type=float, default=170)
    arguments.add_argument("--live", action="store_true", help="say which row is done")
    arguments.add_argument("--verify", action="store_true")
    chosen = arguments.parse_args()
    np.seterr(all="ignore")
    if chosen.later:
        chosen.public, PUBLIC[:] = True, LATER
    if chosen.verify:
        verify(chosen)
        return
    styles = ("numpy",) if chosen.public else (chosen.style,) if chosen.style else ("numpy", "paddle")
    for style in styles:
        tally = Tally()
        started = time.perf_counter()
        number = chosen.first
        for number, layer in selected(chosen):
            if time.perf_counter() - started > chosen.seconds:
                print(f"stopped before {number} after {chosen.seconds} s")
                break
            began = time.perf_counter()
            judge(layer, style, chosen.dtype, chosen.mixed, chosen.what or "", tally, started + chosen.seconds)
            if time.perf_counter() - began > 15:
                tally.odd.append(f"{time.perf_counter() - began:.0f} s for all of {layer.name}")
            if chosen.live:
                print(number, layer.name, f"{time.perf_counter() - began:.1f} s", flush=True)
        print(f"--- {style}, {chosen.dtype}{' ' + chosen.mixed if chosen.mixed else ''}, rows {chosen.first}–{number}")
        tally.show()


if __name__ == "__main__":
    main()
