"""Derived backwards and repairs, measured on layers that they were not made for.

    python tests/bench/derive.py [--only NAME] [--mutants N] [--seed N] [--verbose]

The layers are those of derive_layers.py. Asked of them: at least 34 of 40 are derived, none wrongly; each emitted
module runs alone on the engine and, where one is installed, on Paddle, with the same gradients. Of N random mutants of
the backwards of derive_layers.py and causes_layers/, at least 80 % are repaired by one edit; each repair is checked
again at two further sizes and in two dtypes, and none is wrong. The CPU time of a FAIL with its causes and the search,
as a share of that of a PASS of the right layer, is at most 6 in the median and 20 at worst.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import json
import random
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from inspect import getsource
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine"), str(Path(__file__).resolve().parent)]

import pylayer  # noqa: E402

HAS_PADDLE = importlib.util.find_spec("paddle") is not None
pylayer.install_paddle()

import derive_layers  # noqa: E402
from causes import CASES  # noqa: E402

import gradcheck  # noqa: E402
from gradcheck.deriving.call import CHECKED_DTYPES, LayerCall, is_layer_class  # noqa: E402
from gradcheck.deriving.graph import NotDerived  # noqa: E402
from gradcheck.deriving.repair import Repair  # noqa: E402
from gradcheck.deriving.trace import trace as traced  # noqa: E402
from gradcheck.result import Status  # noqa: E402

GREEN = (Status.PASS, Status.KINK)
NAMES = {  # of modules and of what is no value
    "ctx",
    "paddle",
    "F",
    "np",
}
ON_PADDLE = """\
import json, sys
import numpy as np
import paddle
from importlib import import_module
paddle.set_device("cpu")
for name, arguments, cotangents, keywords in json.load(open(sys.argv[1])):
    layer = getattr(import_module(f"emitted_{name}"), name)
    tensors = []
    for dtype, values in arguments:
        stops = dtype is None or dtype[0] != "f"
        tensors.append(values if dtype is None else paddle.to_tensor(np.array(values, dtype), stop_gradient=stops))
    outputs = layer.apply(*tensors, **keywords)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    floats = [o for o in outputs if not o.stop_gradient]
    starts = [paddle.to_tensor(np.array(c, "float64")).reshape(o.shape) for c, o in zip(cotangents, floats)]
    paddle.autograd.backward(floats, starts)
    gradients = [t.grad for t in tensors if hasattr(t, "grad") and not t.stop_gradient]
    print(json.dumps([None if g is None else g.numpy().tolist() for g in gradients]))
"""


# --------------------------------------------------------------------------- what is derived
def derived_layers(only: str, folder: Path, verbose: bool) -> list[tuple[str, Any]]:
    """Derive every layer, and run each emitted module alone, here and on an installed Paddle."""
    calls, counts, seconds, shares = [], Counter[str](), [], []
    for subject, args, kwargs in derive_layers.LAYERS:
        if only not in subject.__name__:
            continue
        started = time.perf_counter()
        derived = gradcheck.derive(subject, *args, **kwargs)
        seconds.append(time.perf_counter() - started)
        counts["derived" if derived else "refused"] += 1
        if not derived:
            print(f"refused   {subject.__name__}: {derived.refused}")
            continue
        if verbose:
            print(derived.code)
        if is_layer_class(subject):
            by_hand = textwrap.dedent(getsource(inspect.unwrap(subject.backward)))
            shares.append(operations_in(derived.backward) / operations_in(by_hand))
            if verbose:
                print(f"{derived.name}: {shares[-1]:.2f} x the operations of the backward written by hand")
        (folder / f"emitted_{derived.name}.py").write_text(derived.code)
        calls.append((derived.name, LayerCall.of(subject, args, kwargs)))
    share = f"{median(shares):.2f} x the operations of the one written by hand" if shares else ""
    print(f"{dict(counts)}, median {median(seconds):.2f} s, {share}")
    return calls


def operations_in(text: str) -> int:
    """How many operations a text has: operators, and calls but for that of what was saved."""
    nodes = list(ast.walk(ast.parse(textwrap.dedent(text))))
    calls = [n for n in nodes if isinstance(n, ast.Call) and "saved_tensor" not in ast.unparse(n)]
    return len(calls) + sum(isinstance(n, (ast.BinOp, ast.UnaryOp, ast.Compare)) for n in nodes)


def run_alone(calls: list[tuple[str, LayerCall]], folder: Path) -> None:
    """Compare the gradients of the emitted modules, run alone, with those of the trace."""
    rows, wanted = [], []
    for name, call in calls:
        trace = traced(call)
        arguments = [described(value) for value in call.args]
        cotangents = [n.array.tolist() for n in trace.cotangents if n is not None]
        rows.append((name, arguments, cotangents, call.kwargs))
        wanted.append(
            [
                None if gradient is None else gradient.array
                for name, gradient in trace.gradients.items()
                if trace.inputs[name].needs_gradient
            ]
        )
    (folder / "calls.json").write_text(json.dumps(rows))
    (folder / "run.py").write_text(ON_PADDLE)
    engine = "import pylayer; pylayer.install_paddle()\n"
    (folder / "run_engine.py").write_text(engine + ON_PADDLE)
    for program, library in (("run_engine.py", "engine"), ("run.py", "Paddle"))[: 1 + HAS_PADDLE]:
        command = [sys.executable, program, "calls.json"]
        environment = {"PYTHONPATH": f"{folder}:{ROOT}/engine", "PATH": ""}
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
        lines = done.stdout.splitlines()
        same = sum(agree(json.loads(line), right) for line, right in zip(lines, wanted, strict=False))
        print(f"alone on {library}: {same} of {len(rows)} modules with the right gradients")
        if done.returncode:
            print(f"   {rows[len(lines)][0]}: {done.stderr.splitlines()[-1]}")


def described(value: Any) -> tuple[str | None, Any]:
    """An argument as JSON has it."""
    array = getattr(value, "array", value)
    return (str(array.dtype), array.tolist()) if isinstance(array, np.ndarray) else (None, value)


def agree(found: list[Any], wanted: list[Any]) -> bool:
    """Whether gradients are the right ones; none is zeros."""
    if len(found) != len(wanted):
        return False
    return all(
        np.allclose(0.0 if f is None else f, 0.0 if w is None else w, rtol=1e-8, atol=1e-10)
        for f, w in zip(found, wanted, strict=True)
    )


# --------------------------------------------------------------------------- what is repaired
@dataclass(frozen=True)
class Mutant:
    """A layer with a backward in which one expression is another."""

    name: str
    layer: Any
    right: Any
    """The layer as it was, from a file as well."""
    call: LayerCall


def mutants(seed: int) -> Iterator[Mutant]:
    """Mutants drawn at random, without end."""
    draw = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    rows = [(layer, args, kwargs) for layer, args, kwargs in derive_layers.LAYERS if is_layer_class(layer)]
    rows += [(case.layer, tuple(case.inputs(np.random.default_rng(1))), {}) for case in CASES]
    number = 0
    while True:
        number += 1
        layer, args, kwargs = draw.choice(rows)
        tree = ast.parse(textwrap.dedent(getsource(layer)))
        cls = tree.body[0]
        assert isinstance(cls, ast.ClassDef)
        cls.decorator_list = []
        backward = next(n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "backward")
        before, right = ast.unparse(backward), ast.unparse(tree)
        mutate(backward, draw)
        after = ast.unparse(backward)
        if after == before:
            continue
        change = [line for line in after.splitlines() if line not in before.splitlines()]
        call = LayerCall.of(layer, args, kwargs)
        wrong = layer_in_file(folder / f"mutant_{number}.py", ast.unparse(tree), layer)
        right = layer_in_file(folder / f"right_{number}.py", right, layer)
        yield Mutant(f"{layer.__name__}: {'; '.join(c.strip() for c in change)}", wrong, right, call)


def layer_in_file(file: Path, text: str, layer: Any) -> Any:
    """The layer of that name that a text, which is written to a file, defines in its module."""
    file.write_text(text + "\n")
    scope = {**vars(sys.modules[layer.__module__]), "__name__": file.stem}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    return scope[layer.__name__]


def mutate(backward: ast.FunctionDef, draw: random.Random) -> None:
    """Change one expression of a backward."""
    spots = [
        (holder, name, k, item)
        for statement in backward.body
        for holder in ast.walk(statement)
        for name, value in ast.iter_fields(holder)
        for k, item in enumerate(value if isinstance(value, list) else [value])
        if isinstance(item, ast.expr)
        and name not in ("func", "targets")
        and not isinstance(item, (ast.Tuple, ast.Slice))
        and not isinstance(getattr(item, "ctx", None), ast.Store)
        and "saved_tensor" not in ast.unparse(item)
        and ast.unparse(item) not in NAMES
        and not (isinstance(holder, ast.Attribute) and ast.unparse(item) in NAMES)
    ]
    variables = sorted(
        {n.id for n in ast.walk(backward) if isinstance(n, ast.Name)} - NAMES | {a.arg for a in backward.args.args[1:]}
    )
    while True:
        holder, name, k, item = draw.choice(spots)
        text = another(item, variables, draw)
        if text is None:
            continue
        new = ast.parse(text, mode="eval").body
        value = getattr(holder, name)
        if isinstance(value, list):
            value[k] = new
        else:
            setattr(holder, name, new)
        ast.fix_missing_locations(backward)
        return


def another(item: ast.expr, variables: list[str], draw: random.Random) -> str | None:
    """Another text for an expression, as a slip has it; None for one that has no slip."""
    text = ast.unparse(item)
    options = []
    if isinstance(item, ast.Name) and text in variables:
        options += [v for v in variables if v != text]
    if isinstance(item, ast.Constant) and type(item.value) in (int, float):
        options += [repr(item.value + 1), repr(item.value * 2), repr(-item.value)]
    if isinstance(item, ast.BinOp):
        left, right = ast.unparse(item.left), ast.unparse(item.right)
        options += [left, right, f"({right}) - ({left})", f"({left}) + ({right})", f"({left}) * ({right})"]
    if isinstance(item, ast.UnaryOp):
        options.append(ast.unparse(item.operand))
    if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute):
        owner = ast.unparse(item.func.value)
        if owner not in NAMES:
            options.append(owner)
        if item.func.attr in ("sum", "mean"):
            other = {"sum": "mean", "mean": "sum"}[item.func.attr]
            options.append(text.replace(f".{item.func.attr}(", f".{other}(", 1))
        options += [text.replace(", keepdim=True", ""), text.replace("axis=-1", "axis=0")]
        options += [ast.unparse(a) for a in item.args if not isinstance(a, ast.Constant)]
    if isinstance(item, (ast.BinOp, ast.Call, ast.Name)):
        options += [f"-({text})", f"2 * ({text})", f"({text}) ** 2", f"1 - ({text})"]
    options = [option for option in options if option != text]
    return draw.choice(options) if options else None


def repairs(count: int, seed: int, verbose: bool) -> None:
    """Repair mutants; each repair is checked again."""
    counts, seconds, ratios = Counter[str](), list[float](), dict[str, float]()
    for mutant in mutants(seed):
        if sum(counts.values()) - counts["equivalent"] >= count:
            break
        name, layer, call = mutant.name, mutant.layer, mutant.call
        with suppress(Exception):  # a backward that gradcheck cannot call is looked at all the same
            if check(layer, call).verdict in GREEN:
                counts["equivalent"] += 1
                continue
            ratios[name] = cost(layer, call) / median(cost(mutant.right, call) for _ in range(3))
        started = time.process_time()

        def passes(backward: Any, layer: Any = layer, call: LayerCall = call) -> bool:
            changed = type(layer.__name__, (layer,), {"backward": staticmethod(backward)})
            return check(changed, call).verdict in GREEN

        try:
            fix = Repair(call, layer.backward, passes).fix()
        except NotDerived:  # it does not run at other sizes
            fix = None
        seconds.append(time.process_time() - started)
        if fix is None:
            counts["not repaired"] += 1
            if verbose:
                print(f"not repaired  {name}")
            continue
        outcome = "repaired" if is_right(fixed(layer, fix), call) else "wrong"
        counts[outcome] += 1
        if verbose or outcome == "wrong":
            print(f"{outcome}  {name}\n    {fix.source_line}")
    share = counts["repaired"] / count
    print(
        f"mutants: {dict(counts)}; {share:.0%} repaired, CPU median {median(seconds):.3f} s, most {max(seconds):.2f} s"
    )
    shares = sorted((ratio, name) for name, ratio in ratios.items())
    print(f"FAIL with the search / PASS, CPU: median {median(ratios.values()):.1f}, of {len(shares)}; the most:")
    print(*(f"   {ratio:.1f}  {name}" for ratio, name in shares[-3:]), sep="\n")


def cost(layer: Any, call: LayerCall) -> float:
    """The CPU seconds of a check with the usual effort."""
    started = time.process_time()
    check(layer, call, effort="usual")
    return time.process_time() - started


def check(layer: Any, call: LayerCall, dtype: str = "float64", **options: Any) -> Any:
    """gradcheck's result of a layer at a call."""
    options = {"effort": "least", **options}
    return gradcheck.check(lambda *a: layer.apply(*a, **call.kwargs), *call.in_dtype(dtype), **options)


def fixed(layer: Any, fix: Any) -> Any:
    """The layer with the edit, from the text of its file."""
    lines = Path(fix.path).read_text().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text = "".join(lines)
    begin, end = starts[fix.line - 1] + fix.column, starts[fix.end_line - 1] + fix.end_column
    scope = dict(layer.forward.__globals__)
    exec(compile(text[:begin] + fix.replacement + text[end:], "<fixed>", "exec"), scope)
    return scope[layer.__name__]


def is_right(layer: Any, call: LayerCall) -> bool:
    """Whether gradcheck passes a repaired layer at two further sizes and in two dtypes."""
    others = list(islice(filter(LayerCall.runs, call.others(seed=77)), 4))[-2:]
    return all(check(layer, at, dtype, seed=3).verdict in GREEN for at in others for dtype in CHECKED_DTYPES)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="derived-"))
    calls = derived_layers(asked.only, folder, asked.verbose)
    run_alone(calls, folder)
    if asked.mutants:
        repairs(asked.mutants, asked.seed, asked.verbose)


if __name__ == "__main__":
    main()
