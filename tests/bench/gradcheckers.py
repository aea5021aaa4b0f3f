"""This checker beside torch's and HIPS autograd's on the same right layers, in one run.

    python tests/bench/gradcheckers.py [--rounds 5] [--cases tanh-100,xent] [--json FILE]
    python tests/bench/gradcheckers.py --million       # tanh of 1,000,000 elements: seconds and peak memory

Peers that are not installed are left out. Seconds are medians over rounds that go through all checkers in turn.
`tanh-n`: n elements, `matmul-n`: n × n, both inputs, `xent`: softmax cross-entropy of 32 × 10 with a mean,
`softmax-n`: of n elements, whose Jacobian has no entry that is 0. Those named `numpy:` compute in NumPy, within a
PyLayer here and within a torch.autograd.Function there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine"), str(ROOT / "tests" / "bench")]
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from mutants import LAYERS, Layer  # noqa: E402

CASES: dict[str, tuple[str, Any]] = {
    "tanh-100": ("tanh", 100), "tanh-1000": ("tanh", 1000), "tanh-5000": ("tanh", 5000), "matmul-16": ("matmul", 16),
    "matmul-32": ("matmul", 32), "xent": ("xent", (32, 10)), "softmax-100": ("softmax", 100),
    "softmax-500": ("softmax", 500),
}  # fmt: skip
LABELS = np.random.default_rng(1).integers(0, 10, 32)
Check = Callable[[], Any]


# --------------------------------------------------------------------------- layers with NumPy inside
def recurrence(x: Any, w: Any) -> Any:
    """The state after all rows of x: h ← tanh(w h + row)."""
    h = np.zeros(w.shape[0])
    for row in x:
        h = np.tanh(w @ h + row)
    return h


def recurrence_vjp(x: Any, w: Any, y: Any, g: Any) -> tuple[Any, ...]:
    states = [np.zeros(w.shape[0])]
    for row in x:
        states.append(np.tanh(w @ states[-1] + row))
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for t in reversed(range(len(x))):
        dx[t] = g * (1 - states[t + 1] ** 2)
        dw += np.outer(dx[t], states[t])
        g = w.T @ dx[t]
    return dx, dw


IN_NUMPY = ("tanh", "sigmoid", "swish", "quotient", "matmul", "linear", "softmax", "layer norm", "rms norm", "cumsum")
"""Layers of the bench of mutants, which are functions of arrays."""
LAYERS_IN_NUMPY = {layer.name: layer for layer in LAYERS if layer.name in IN_NUMPY}
LAYERS_IN_NUMPY["recurrence"] = Layer("recurrence", recurrence, recurrence_vjp, ((40, 3), (3, 3)))
CASES |= {f"numpy:{name}".replace(" ", "-"): ("numpy", layer) for name, layer in LAYERS_IN_NUMPY.items()}


def data(case: tuple[str, Any]) -> list[Any]:
    kind, n = case
    if kind == "numpy":
        inputs: list[Any] = n.inputs(7)
        return inputs
    random = np.random.default_rng(0)
    return [random.standard_normal((n, n)) for _ in range(2)] if kind == "matmul" else [random.standard_normal(n)]


# --------------------------------------------------------------------------- ours
def our_layer_in_numpy(layer: Layer) -> Any:
    import pylayer.paddle as paddle

    class InNumpy(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            ctx.arrays = [t.numpy() for t in x]
            ctx.out = layer.forward(*ctx.arrays)
            return paddle.to_tensor(ctx.out)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return tuple(map(paddle.to_tensor, layer.backward(*ctx.arrays, ctx.out, dy.numpy())))

    return InNumpy


def our_layer(kind: str) -> Any:
    import pylayer.paddle as paddle

    class Tanh(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = paddle.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensor()
            return dy * (1 - y * y)

    class MatMul(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            a, b = ctx.saved_tensor()
            return dy @ b.t(), a.t() @ dy

    class CrossEntropy(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            log_p = paddle.nn.functional.log_softmax(x, 1)
            ctx.save_for_backward(log_p)
            return -log_p[np.arange(32), LABELS].mean()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (log_p,) = ctx.saved_tensor()
            d = paddle.exp(log_p)
            d[np.arange(32), LABELS] = d[np.arange(32), LABELS] - 1
            return dy * d / 32

    class Softmax(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = paddle.nn.functional.softmax(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensor()
            return y * (dy - (y * dy).sum())

    return {"tanh": Tanh, "matmul": MatMul, "xent": CrossEntropy, "softmax": Softmax}[kind]


def ours(mode: str) -> Callable[[tuple[str, Any]], Check]:
    def prepare(case: tuple[str, Any]) -> Check:
        import gradcheck

        layer = our_layer_in_numpy(case[1]) if case[0] == "numpy" else our_layer(case[0])
        inputs = data(case)

        def check() -> None:
            result = gradcheck.check(layer, *inputs, mode=mode)  # type: ignore[arg-type]
            assert result.verdict == "PASS", result

        return check

    return prepare


# --------------------------------------------------------------------------- peers
def torch_function_in_numpy(layer: Layer) -> Any:
    import torch

    class InNumpy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            ctx.arrays = [t.detach().numpy() for t in x]
            ctx.out = layer.forward(*ctx.arrays)
            return torch.from_numpy(np.asarray(ctx.out))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            found = layer.backward(*ctx.arrays, ctx.out, g.numpy())
            return tuple(torch.from_numpy(np.ascontiguousarray(d)) for d in found)

    return InNumpy.apply


def torch_function(kind: str) -> Any:
    import torch

    labels = torch.as_tensor(LABELS)

    class Tanh(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = torch.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * (1 - y * y)

    class MatMul(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g @ b.T, a.T @ g

    class CrossEntropy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            log_p = torch.log_softmax(x, 1)
            ctx.save_for_backward(log_p)
            return -log_p[torch.arange(32), labels].mean()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (log_p,) = ctx.saved_tensors
            d = log_p.exp().clone()
            d[torch.arange(32), labels] -= 1
            return g * d / 32

    class Softmax(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = torch.softmax(x, -1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return y * (g - (y * g).sum())

    return {"tanh": Tanh, "matmul": MatMul, "xent": CrossEntropy, "softmax": Softmax}[kind].apply


def torch(fast: bool) -> Callable[[tuple[str, Any]], Check]:
    def prepare(case: tuple[str, Any]) -> Check:
        import torch

        torch.set_num_threads(1)
        function = torch_function_in_numpy(case[1]) if case[0] == "numpy" else torch_function(case[0])
        inputs = [torch.tensor(a, requires_grad=True) for a in data(case)]
        return lambda: torch.autograd.gradcheck(function, inputs, fast_mode=fast)

    return prepare


def autograd(case: tuple[str, Any]) -> Check:
    from autograd.extend import defvjp, primitive
    from autograd.test_util import check_grads

    def cross_entropy(x: Any) -> Any:
        shifted = x - x.max(1, keepdims=True)
        return -(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))[np.arange(32), LABELS].mean()

    def cross_entropy_vjp(y: Any, x: Any) -> Any:
        e = np.exp(x - x.max(1, keepdims=True))
        d = e / e.sum(1, keepdims=True)
        d[np.arange(32), LABELS] -= 1
        return lambda g: g * d / 32

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max())
        return e / e.sum()

    def in_numpy(layer: Any) -> list[Any]:
        def gradient(k: int) -> Any:
            return lambda y, *x: lambda g: layer.backward(*x, y, g)[k]

        return [layer.forward, *map(gradient, range(len(layer.shapes)))]

    forward, *vjps = {
        "tanh": (np.tanh, lambda y, x: lambda g: g * (1 - y * y)),
        "matmul": (lambda a, b: a @ b, lambda y, a, b: lambda g: g @ b.T, lambda y, a, b: lambda g: a.T @ g),
        "xent": (cross_entropy, cross_entropy_vjp),
        "softmax": (softmax, lambda y, x: lambda g: y * (g - (y * g).sum())),
        "numpy": in_numpy(case[1]) if case[0] == "numpy" else [],
    }[case[0]]
    function = primitive(lambda *x: forward(*x))
    defvjp(function, *vjps)
    inputs = data(case)
    return lambda: check_grads(function, modes=["rev"], order=1)(*inputs)


CHECKERS: dict[str, tuple[str, Callable[[tuple[str, Any]], Check]]] = {
    "ours, auto": ("numpy", ours("auto")),
    "ours, full": ("numpy", ours("full")),
    "torch, slow": ("torch", torch(False)),
    "torch, fast": ("torch", torch(True)),
    "HIPS autograd": ("autograd", autograd),
}


def seconds(check: Check) -> float:
    started = time.perf_counter()
    check()
    return time.perf_counter() - started


def million() -> None:
    """tanh of 1,000,000 elements, right, and with one wrong element, found again with the printed seed."""
    import gradcheck
    import pylayer.paddle as paddle

    layer, x = our_layer("tanh"), np.random.default_rng(0).standard_normal(1_000_000)

    class OneWrong(layer):  # type: ignore[misc, valid-type]
        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            gradient = layer.backward(ctx, dy)
            gradient[123_456] = gradient[123_456] * 1.001
            return gradient

    del paddle
    for name, tried in (("right", layer), ("one element wrong by 0.1 %", OneWrong)):
        started = time.perf_counter()
        result = gradcheck.check(tried, x, seed=7)
        took = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        named = [(entry.input, entry.index) for entry in result.wrong]
        print(
            f"{name}: {result.verdict} {named} in {took:.2f} s, {result.evaluations} evaluations, peak {peak:.0f} MiB"
        )
    again = gradcheck.check(OneWrong, x, seed=result.seed)
    print("found again with seed", result.seed, [(entry.input, entry.index) for entry in again.wrong])


def main() -> None:
    """Time all checkers in turn, and print medians and ratios."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--cases", default=",".join(CASES), help="which, with commas between")
    arguments.add_argument("--million", action="store_true")
    arguments.add_argument("--json", type=Path, help="also write the figures to this file")
    chosen = arguments.parse_args()
    if chosen.million:
        million()
        return
    here = {n: make for n, (module, make) in CHECKERS.items() if importlib.util.find_spec(module)}
    print(
        f"{'':18}" + "".join(f"{n:>15}" for n in here) + "      torch slow / ours auto, full    ours auto / torch fast"
    )
    measured: dict[str, dict[str, list[float]]] = {}
    for name in chosen.cases.split(","):
        case = CASES[name]
        checks = {n: make(case) for n, make in here.items()}
        for check in checks.values():
            check()
        rounds = [{n: seconds(check) for n, check in checks.items()} for _ in range(chosen.rounds)]
        measured[name] = {n: [r[n] for r in rounds] for n in checks}
        medians = {n: statistics.median(times) for n, times in measured[name].items()}
        line = f"{name:18}" + "".join(f"{medians[n] * 1e3:12.2f} ms" for n in checks)
        if "torch, slow" in checks:
            slow = [statistics.median(r["torch, slow"] / r[f"ours, {m}"] for r in rounds) for m in ("auto", "full")]
            fast = statistics.median(r["ours, auto"] / r["torch, fast"] for r in rounds)
            line += f"{slow[0]:20.0f} ×{slow[1]:8.0f} ×{fast:20.1f} ×"
        print(line, flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps({"seconds": measured}), encoding="utf-8")


if __name__ == "__main__":
    main()
