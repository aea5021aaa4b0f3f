"""NumPy code in layers: how many are recorded whole, and whether the tape is right.

    python tests/bench/recorded.py [--only NAME] [--dtype float64|float32]

Asked: at least 90 % of the layers written in NumPy leave no value out of the recording, and the tape's outputs and
gradients are those of the layer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / place) for place in ("engine", "tests/bench", "tests/engine"))]

from layers import LAYERS  # noqa: E402
from snippets.run import gradients  # noqa: E402

import pylayer.paddle as paddle  # noqa: E402
from gradcheck.backends.recording import Recording, record_call  # noqa: E402
from pylayer.watch.numpy_recording import Code  # noqa: E402


def recording(layer: Any, inputs: list[Any]) -> Recording:
    """The recorded call of a layer."""
    made = layer.py_layer()
    tensors = [paddle.to_tensor(x, stop_gradient=x.dtype.kind not in "fc") for x in inputs]

    def call() -> Any:
        found = made.apply(*tensors)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    return record_call(call, tensors, lines=True, numpy=Code([made]))


def judged(layer: Any, dtype: str) -> tuple[str, float]:
    """What there is to say of a layer, and the largest error of the tape's gradients, relative to the largest."""
    inputs = layer.drawn(0, dtype)
    found = recording(layer, inputs)
    if found.error:
        return f"raised {found.error}", np.nan
    if found.leaks:
        return f"leaks: {'; '.join(dict.fromkeys(found.leaks))}", np.nan
    random = np.random.default_rng(1)
    cotangents = [random.standard_normal(y.shape).astype(y.dtype) for y in found.outputs]
    outputs = list(found.outputs)
    wanted = layer.gradients(inputs, outputs, cotangents)
    tape = gradients(found, cotangents)
    worst = 0.0
    for k, gradient in enumerate(wanted):
        if gradient is not None and inputs[k].dtype.kind in "fc":
            error = np.abs(np.asarray(tape.get(k, 0)) - gradient).max(initial=0)
            worst = max(worst, float(error / max(np.abs(gradient).max(initial=0), 1e-300)))
    return "whole", worst


def main() -> None:
    """Record every layer in NumPy and count."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", default="", help="layers whose names hold this text")
    arguments.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    chosen = arguments.parse_args()
    np.seterr(all="ignore")
    layers = [layer for layer in LAYERS if layer.style == "numpy" and chosen.only in layer.name]
    whole = 0
    for layer in layers:
        verdict, error = judged(layer, chosen.dtype)
        whole += verdict == "whole"
        print(f"{layer.name:34} {verdict} {error:.1e}")
    print(f"{whole} of {len(layers)} recorded whole ({100 * whole / len(layers):.0f} %)")


if __name__ == "__main__":
    main()
