"""Write docs/derive.md: ten layers, the backward that a person wrote beside the one that gradcheck derives.

python docs/examples/derive/page.py
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

import pylayer

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "derive.md"
HEAD = """# What to write instead: `gradcheck derive`

A FAIL names the mistake. Where one edit of the backward repairs it, the line as it should be follows:

```text
likely: backward takes 1 − y for the derivative of y = `paddle.tanh(x)`
  layers.py:8 │ y = paddle.tanh(x)
              │     ^^^^^^^^^^^^^^ the rule of tanh is wrong (reproduces backward to 1e-16)
fix: layers.py:15 │ return dy * (1 - y * y)
```

The fix is shown in the terminal, in HTML, JSON, Markdown, GitHub annotations and notebooks (`CheckResult.fix`), and
in SARIF as `fixes`. An edit is shown only if the edited backward agrees with the forward's own derivative to 1e-9 at
the given point, at two others, at three other sizes and at other values of plain arguments, and if gradcheck then
passes it. Edits are also found for a pair of NumPy functions, for Functions of [PyTorch](torch.md), and with `-b
paddle` for a layer of an installed Paddle: the search runs on the engine, and the edited backward is checked on the
framework itself. A backward that raises in a scenario, or in `gradcheck check`, gets a fix too: `return dy * ctx.k`
where `k` is not defined. The `backward_fn` of a [static layer](static.md) is edited too, and checked in programs.
Nothing is edited where `expect` says `differs`, `straight-through` or `zero`, nor in a [world](worlds.md) of ranks.

`--effort least` (in Python `effort="least"`) leaves the search out. A FAIL with its causes and the search takes five
to six times the time of a PASS: the search runs only those statements of backward that an edit changes, and stops
once it has run as many as in 200 calls of backward, or in time for the verdict. Far-fetched causes are sought only
where no edit is found.

## A whole backward

`gradcheck derive package.module:Layer -i x=3x4 -i weight=4` prints the class with the backward derived from its
forward. `layers.py:Layer` names a file instead; `gradcheck derive "lambda x, w: paddle.tanh(x @ w)" -i x=3x4 -i w=4x2`
makes a class of a function. A layer whose forward computes with NumPy gets NumPy code. For a function of NumPy arrays,
`gradcheck derive own.losses:norm -i x=3x4 -i w=4` prints the function and `norm_grad(x, w, dy)`, which
[`--backward`](numpy-pairs.md) takes. A `torch.autograd.Function` whose forward takes `ctx` gets torch's operations.
Further options:

| option | meaning |
|---|---|
| `--diff` | print the change of your file: the one edit if there is one, otherwise the backward |
| `--write` | make that change, only in files of the project; everything else stays the same, byte for byte |
| `--order 2` | save only inputs, so that the double backward is right as well |
| `--call CODE` | how the layer is called, where not all arguments are Tensors |

The exit code is 0 if a class was derived or, with `--diff` or `--write`, if backward is right already; otherwise 1.

`FILE::ID` is a scenario; `--diff` and `--write` repair its layer. `gradcheck new --derive module:function` writes a
scenario with the derived class. In Python, `gradcheck.derive(Layer, x, w)` gives `code`, `backward`, `diff`,
`checked_at`, and `refused`, the reason if no code was derived.

A layer that communicates with other ranks gets a backward with its collectives if `--world`, `--outputs` and the words
`:replicated` and `:partial` of its inputs say [what its Tensors represent](worlds.md#the-right-backward).

If the scenario's layer is static, `gradcheck derive FILE::ID` prints the function `backward_fn(dy)`. It reads the
inputs by the names of their Variables, and recomputes the values of `forward_fn` that it needs, because Paddle's
releases do not share them. Sizes that a program does not know (`None`) are read when it runs. Nothing is derived if
such a size is needed for a slice, or if an input of `static_pylayer` is not an input of the scenario.

How it works: the forward runs once with real values, and the engine records each operation with the
names and sizes of your code. The rules of the operations then give the gradients, which are simplified and written in
forward's own names. What is printed has passed `gradcheck` at the given sizes and two others, in float64 and float32;
anything else is refused with the reason: a branch on values, `float()`, a loop over a size, Tensors in lists,
dropout, convolutions and pooling, complex inputs, messages between two ranks, groups of ranks. Where an option selects
a branch of forward, an `assert` in the printed code requires its value. The code holds for inputs with as many axes
as the given ones.

## Ten layers

For each layer: the backward that a person wrote, and the derived one. The counts are of operations in the code.

"""


def inputs_of(layers: Any) -> dict[Any, list[Any]]:
    """The inputs of each layer."""
    random = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return random.standard_normal(shape)

    ids = layers.paddle.to_tensor(random.integers(0, 6, 5))
    return {
        layers.Swish: [normal(3, 4)],
        layers.RMSNorm: [normal(3, 4), normal(4)],
        layers.LayerNorm: [normal(3, 4), normal(4), normal(4)],
        layers.CrossEntropy: [normal(3, 4), normal(3, 4)],
        layers.Attention: [normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)],
        layers.LSTMCell: [normal(3, 8), normal(3, 2)],
        layers.Linear: [normal(3, 4), normal(4, 5), normal(5)],
        layers.PairwiseDistance: [normal(3, 4), normal(5, 4)],
        layers.Embedding: [normal(6, 3), ids],
        layers.NumpyTanh: [normal(3, 4)],
    }


def body_of(source: str, name: str) -> str:
    """The text of a method of a class, without its decorator."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
            return textwrap.dedent("\n".join(lines))
    raise LookupError(name)


def operations_in(text: str) -> int:
    """How many operations a text has: operators, and calls but for that of what was saved."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.BinOp, ast.UnaryOp, ast.Call))]
    return len(nodes) - text.count(".saved_tensor()")


def page() -> str:
    """The whole page."""
    pylayer.install_paddle()
    sys.path.insert(0, str(HERE))
    try:
        import layers

        import gradcheck

        parts = [HEAD]
        for layer, inputs in inputs_of(layers).items():
            derived = gradcheck.derive(layer, *inputs)
            source = textwrap.dedent(inspect.getsource(layer))
            class_text = derived.code[derived.code.index("class ") :]
            hand, own = body_of(source, "backward"), body_of(class_text, "backward")
            parts.append(
                f"### {layer.__name__}\n\n"
                f'```python skip="a part of a class"\n{body_of(class_text, "forward")}\n```\n\n'
                f"Written by hand, {operations_in(hand)} operations:\n\n"
                f'```python skip="a part of a class"\n{hand}\n```\n\n'
                f"Derived, {operations_in(own)} operations:\n\n"
                f'```python skip="a part of a class"\n{own}\n```\n\n'
            )
        return "".join(parts).rstrip() + "\n"
    finally:
        sys.path.remove(str(HERE))
        sys.modules.pop("layers", None)
        pylayer.uninstall_paddle()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
