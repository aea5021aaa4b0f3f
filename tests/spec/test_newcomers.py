"""Mistakes of somebody who writes a first spec file: each is told once, at its place, with the way to mend it."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.read import read_bytes

BASE = """\
schema: gradcheck/v1
defaults:
  tags: [mine]
layers:
  swish: {op: nn.functional.silu}
scenarios:
  - id: own-tanh
    title: My own tanh
    source: {document: a book}
    layer: |
      class Tanh(PyLayer):
          @staticmethod
          def forward(ctx, x):
              y = paddle.tanh(x)
              ctx.save_for_backward(y)
              return y

          @staticmethod
          def backward(ctx, dy):
              y, = ctx.saved_tensor()
              return dy * (1 - y * y)
    inputs:
      x: {shape: [3, 4]}
    expect:
      gradient: matches
      order: 2
    matrix: {dtype: [float32, float64]}
    backends:
      paddle: {skip: {reason: not here}}
    rtol: 1e-6
    timeout: 10
  - id: own-product
    title: A product
    layer: {op: multiply}
    inputs:
      a: {shape: [2, 3]}
      b: {values: [1.0, 2.0, 3.0]}
    call: paddle.multiply(a, b)
  - id: own-refusal
    title: Shapes that do not fit
    script: |
      paddle.matmul(paddle.ones([2, 3]), paddle.ones([2, 3]))
    expect: {raises: {type: ValueError, message: shapes}}
  - id: own-swish
    layer: swish
    inputs: {x: [4]}
"""


class Mistake(NamedTuple):
    """What is written in place of what, the piece of the file that the message points at, and words of its help."""

    right: str
    wrong: str
    at: str
    words: tuple[str, ...]


def row(right: str, wrong: str, at: str, *words: str) -> Mistake:
    return Mistake(right, wrong, at, words)


MISTAKES = [
    # keys that are not spelt right
    row("schema:", "shema:", "shema", "'schema'"),
    row("scenarios:", "scenario:", "scenario", "'scenarios'"),
    row("defaults:", "default:", "default", "'defaults'"),
    row("- id: own-tanh", "- ID: own-tanh", "ID", "'id'"),
    row("title: My", "tittle: My", "tittle", "'title'"),
    row("layer: |", "layers: |", "layers: |", "'layer'"),
    row("inputs:\n      x", "input:\n      x", "input:\n      x", "'inputs'"),
    row("shape: [3", "shpae: [3", "shpae", "'shape'"),
    row("expect:\n", "expects:\n", "expects", "'expect'"),
    row("gradient:", "gradients:", "gradients", "'gradient'"),
    row("order:", "ordre:", "ordre", "'order'"),
    row("matrix:", "matirx:", "matirx", "'matrix'"),
    row("backends:", "backend:", "backend", "'backends'"),
    row("skip:", "skipp:", "skipp", "'skip'"),
    row("reason:", "because:", "because", "reason"),
    row("rtol:", "tol:", "tol: 1e", "write 'rtol: …'"),
    row("timeout:", "time_out:", "time_out", "'timeout'"),
    row("document:", "doc:", "doc:", "'document'"),
    row("values:", "value:", "value:", "'values'"),
    row("call:", "cal:", "cal:", "'call'"),
    row("script:", "scripts:", "scripts", "'script'"),
    row("raises:", "raise:", "raise:", "'raises'"),
    row("message:", "mesage:", "mesage", "'message'"),
    # values that are not among those there are
    row("gradient: matches", "gradient: match", "match\n", "'matches'"),
    row("gradient: matches", "gradient: true", "true", "matches"),
    row("gradient: matches", "gradient: {x: [1, 2]}", "{x: [1", "'grads: {x: …}'"),
    row("order: 2", "order: 3", "3\n    matrix", "2"),
    row("order: 2", "order: two", "two", "a whole number"),
    row("[float32, float64]", "[float32, flaot64]", "flaot64", "'float64'"),
    row("[float32, float64]", "[fp32]", "fp32", "float32"),
    row("[float32, float64]", "[float]", "float]", "float64"),
    row("[float32, float64]", "[torch.float32]", "torch.float32", "float32"),
    row("[float32, float64]", "[half]", "half", "float16"),
    row("[float32, float64]", "[double]", "double", "float64"),
    row("{op: multiply}", "{op: multpily}", "multpily", "'multiply'"),
    row("{op: multiply}", "{op: paddle.multiply}", "paddle.multiply}", "'multiply'"),
    row("{op: multiply}", "{op: mult}", "mult}", "'mul'"),
    row("nn.functional.silu", "silou", "silou", "'nn.functional.silu'"),
    row("nn.functional.silu", "F.silu", "F.silu", "'nn.functional.silu'"),
    row("nn.functional.silu", "torch.tanh", "torch.tanh", "'tanh'"),
    row("layer: {op: multiply}", "layer: swich", "swich", "'swish'"),
    row("paddle: {skip", "padle: {skip", "padle", "'paddle'"),
    row("paddle: {skip", "pytorch: {skip", "pytorch", "torch"),
    row("gradcheck/v1", "gradcheck/v2", "gradcheck/v2", "'gradcheck/v1'"),
    row("schema: gradcheck/v1", "schema: 1", "1\n", "gradcheck/v1"),
    row("type: ValueError", "type: ValuError", "ValuError", "'ValueError'"),
    # values of another type
    row("order: 2", 'order: "2"', '"2"', "remove the quotes"),
    row("[float32, float64]", "float32", "float32}", "[float32]"),
    row("[3, 4]", "3", "3}", "[3]"),
    row("[3, 4]", "(3, 4)", "(3, 4)", "[3, 4]"),
    row("[3, 4]", "3x4", "3x4", "[3, 4]"),
    row("[3, 4]", '"[3, 4]"', '"[3, 4]"', "write [3, 4]"),
    row("[3, 4]", "3 4", "3 4", "write [3, 4]"),
    row("[3, 4]", "[3x4]", "3x4", "write 3, 4"),
    row("[3, 4]", "M x K", "M x K", "write [M, K]"),
    row("[1.0, 2.0, 3.0]", "[1.0, nan]", "nan", "write .nan"),
    row("[3, 4]", "()", "()}", "write []"),
    row("[3, 4]", "torch.Size([3, 4])", "[3, 4])", "write a list as [2, 3]"),
    row("[3, 4]", "[3, -1]", "-1", "at least 0"),
    row("[3, 4]", "[3.0, 4]", "3.0", "write 3"),
    row("[3, 4]", "[N, 4]", "N, 4", "matrix"),
    row("x: {shape: [3, 4]}", "x: [M, K]\n    sizes: {M: 2, L: 3}", "K]", "rename 'L'"),
    row("[1.0, 2.0, 3.0]", "[1.0, 2.0, x]", "x]}", "number"),
    row("[1.0, 2.0, 3.0]", '["1.0", 2.0, 3.0]', '"1.0"', "remove the quotes"),
    row("[1.0, 2.0, 3.0]", "[[1.0], [2.0, 3.0]]", "[2.0, 3.0]", "same length"),
    row("[1.0, 2.0, 3.0]", "1.0, 2.0, 3.0", "1.0, 2.0", "[1.0, 2.0"),
    row("1e-6", '"1e-6"', '"1e-6"', "remove the quotes"),
    row("1e-6", "1%", "1%", "must be a number"),
    row("1e-6", "-1e-6", "-1e-6", "above 0"),
    row("timeout: 10", "timeout: 10s", "10s", "must be a number", "seconds"),
    row("timeout: 10", "timeout: 0,5", "0,5", "write 0.5"),
    row("timeout: 10", "timeout: 0", "0\n", "above 0"),
    row("    expect: {raises", "      expect: {raises", "expect: {raises", "key of a scenario", "indent it less"),
    row("[2, 3]))\n    expect: {", "[2, 3]))\n      expect:\n        {", "expect:\n        {", "indent it less"),
    row("[2, 3]))\n", "[2, 3]))\n      out.stop_gradient: True\n", "out.stop", "not set", "' = '"),
    row("  - id: own-product", "    id: own-product", "id: own-product", "begin another entry"),
    row("id: own-product", "id: own product", "own product", "'own-product'"),
    row("id: own-product", "id: Own_Product", "Own_Product", "'own-product'"),
    row("id: own-product", "id: own-tanh", "own-tanh\n    title: A", "line 7"),
    row("tags: [mine]", "tags: mine", "mine", "[mine]"),
    row("source: {document: a book}", "source: a book", "a book", "{document: a book}"),
    row("{skip: {reason: not here}}", "{skip: not here}", "not here", "write {reason: not here}"),
    row("{skip: {reason: not here}}", "{skip: true}", "true", "reason"),
    row("{type: ValueError, message: shapes}", "TypeError", "TypeError", "write {type: TypeError}"),
    row("{raises: {type: ValueError, message: shapes}}", "ValueError", "ValueError", "{raises: {type: ValueError}}"),
    row("{dtype: [float32, float64]}", "[float32, float64]", "[float32, float64]", "dtype: [float32, float64]"),
    # things that stand elsewhere
    row("title: A product", "argnums: [0]", "argnums", "'stop_gradient: true'"),
    row("title: A product", "world_size: 2", "world_size", "write 'world: …'"),
    row("title: A product", "label: A product", "label", "the keys of a scenario"),
    row("matrix: {dtype", "matrix: {seed: [0, 1], dtype", "seed", "next to 'id'"),
    row("{raises: {type: ValueError, message: shapes}}", "{phase: any}", "phase", "{type: ValueError, phase: …}"),
    row("gradient: matches", "world: 2", "world", "next to 'id'"),
    row("{skip: {reason: not here}}", "{versions: 3.3}", "3.3", "such as '>=3.0,<3.3'"),
    row("layer: {op: multiply}", "op: multiply", "op: multiply", "layer: {op: …}"),
    row("layer: {op: multiply}", "layer: {name: multiply}", "name: multiply}", "write {op: …}"),
    row("layer: swish", "layer: silu", "silu\n", "one of 'layers': swish"),
    row("tags: [mine]", "tags: [mine]\n  expect: {order: 2}", "expect: {order", "write it there"),
    row("call: paddle.multiply(a, b)", "call: paddle.multiply(a, b):", ":\n  - id: own-ref", "remove the ':'"),
    row("layer: swish", "layer: {ref: swish}", "swish}\n    inputs", "write 'layer: swish'"),
    row("layer: {op: multiply}", "layer: multiply", "multiply\n", "write {op: multiply}"),
    row("layer: {op: multiply}", "layer: own.layers:Own", "own.layers:Own", "{ref: 'own.layers:Own'}"),
    row("layer: {op: multiply}", "layer: {ref: own.layers.Own}", "own.layers.Own", "as pkg.mod:Class"),
    row("    matrix: {dtype", "    kwargs:\n      matrix: {dtype", "matrix", "like 'kwargs'"),
    row("    matrix: {dtype", "      matrix: {dtype", "matrix: {dtype", "write 'matrix: …' next to 'id'"),
    row("    expect:\n      gradient: matches\n      order: 2\n    matrix", "      matrix", "matrix", "like 'inputs'"),
    row("expect:\n      gradient: matches\n      order: 2", "gradient: matches", "gradient", "expect"),
    row("inputs:\n      x: {shape: [3, 4]}", "shape: [3, 4]", "shape: [3", "inputs"),
    row("      x: {shape: [3, 4]}", "      - x: {shape: [3, 4]}", "- x", "must be a mapping", "Name →"),
    # YAML
    row("    title: A product", "\ttitle: A product", "\ttitle", "spaces"),
    row("title: My own tanh", "title My own tanh", "title My own tanh", "':'"),
    row("title: My own tanh", "title:My own tanh", "title:My own tanh", "space"),
    row("title: My own tanh", "title: My own: tanh", "title: My own: tanh", "quotes"),
    row("title: My own tanh", "title: 'It's my own'", "title: 'It's my own'", "''"),
    row("title: My own tanh", "title: [draft] my own", "title: [draft] my own", "quotes"),
    row("title: My own tanh", "title: @me", "@me", "quotes"),
    row("title: My own tanh", "title: &mine", "&mine", "quotes"),
    row("title: My own tanh", "title: ? mine", "? mine", "quotes"),
    row("{document: a book}", "{document: 'it's'}", "'s'}", "write a quote as ''"),
    row("              return y\n", "    z = y\n", "z = y", "indent code"),
    row("schema: gradcheck/v1\n", "schema: gradcheck/v1\nbackend: paddle\n", "backend", "write 'framework: …'"),
    row("title: My own tanh", "title: *mine*", "*mine*", "quotes"),
    row("    title: A product", "   title: A product", "   title: A product", "indent"),
    row("expect: {raises", "expect {raises", "{raises", "a ':' and a space"),
    row("[3, 4]}", "[3, 4]}}", "}\n    expect", "remove it"),
    row("[3, 4]}", "[3,, 4]}", ", 4]}", "remove one"),
    row("[3, 4]}", "[3, 4", "{shape: [3, 4\n", "close it"),
    row("[3, 4]}", "[3, 4}", "x: {shape: [3, 4}", "bracket"),
    row("{shape: [3, 4]}", "{shape: [3, 4] dtype: float32}", "dtype: float32", "','"),
    row("{shape: [3, 4]}", "{shape=[3, 4]}", "shape=[3", "write shape: …"),
    row("{shape: [3, 4]}", "{shape:[3, 4]}", "shape:[3, 4]}", "a space after the ':'"),
    row("{shape: [3, 4]}", "{shape: [3, 4] # rows}", "# rows", "a separate line"),
    row("rtol: 1e-6", "rtol = 1e-6", "rtol = 1e-6", "write ': ' in place of '='"),
    row("rtol: 1e-6", "rtol: {{ rtol }}", "{{ rtol", "write the value itself"),
    row("rtol: 1e-6", "rtol: 1e-6 // why", "1e-6 // why", "write 1e-6"),
    row("  - id: own-product", "  – id: own-product", "– id", "with a '-'"),
    row("  - id: own-product\n", "", "title: A product", "another entry"),
    row("title: A product", "title: A product\n    title: The same", "title: The same", "remove"),
    # words of other tools, and forms that only look alike
    row("{shape: [3, 4]}", "{dims: [3, 4]}", "dims", "write 'shape: …'"),
    row("{shape: [3, 4]}", "{shape: [3, 4], requires_grad: true}", "requires_grad", "write 'stop_gradient: false'"),
    row("{shape: [3, 4]}", "x.npy", "x.npy", "write {from: x.npy}"),
    row("layer: {op: multiply}", "layer: {op: multiply, axis: 0}", "axis", "'kwargs: {axis: …}'"),
    row("layer: {op: multiply}", "layer: own/layers.py", "own/l", "{ref: 'pkg.mod:Class'}"),
    row("      gradient: matches\n      order: 2", "      - order: 2", "- order", "without brackets"),
    row("{shape: [3, 4]}", "{shape: [3, 4], init: randn}", "randn", "'normal'"),
    row("{shape: [3, 4]}", "{shape: [3, 4], min: 0}", "min: 0", "write 'range: …'", "[low, high]"),
    row("rtol: 1e-6", "tolerance: 1e-6", "tolerance", "write 'rtol: …'"),
    row("{shape: [3, 4]}", "{shape: [3, 4], near: zero}", "zero", "[0] for a kink"),
    row("x: {shape: [3, 4]}", "xs: [{shape: [3]}, 3]", "3]\n", "must be a mapping, not 3"),
    row("{skip: {reason: not here}}", "{skip: {reason: no, versions: <3}}", "versions", "next to 'skip'"),
    row("{shape: [3, 4]}", "{shape: [3, 4], range: 1}", "1}\n    expect", "[low, high]"),
    row("{shape: [3, 4]}", "{shape: [3, 4], range: [2, 1]}", "[2, 1]", "smaller one first"),
    row("{shape: [3, 4]}", "{shape: [3, 4], dtype: [float32]}", "[float32]", "dtype must be one word", "float32"),
    row("{shape: [3, 4]}", "{shape: [3, 4], dtype: [int8, float32]}", "[int8, float32]", "'matrix: {dtype: […]}'"),
    row("{dtype: [float32, float64]}", "{shape: [[2]]}", "[2]]", "[N, 4] under inputs", "matrix: {N: [2, 3]}"),
    row("title: My own tanh", "description: My own tanh", "description", "write 'title: …'"),
    row("- id: own-product", "- name: own-product", "name: own-p", "write 'id: …'"),
    row("matrix: {dtype", "parametrize: {dtype", "parametrize", "write 'matrix: …'"),
    row("matrix: {dtype: [float32, float64]}", "strategy: {matrix: {n: [1]}}", "strategy", "only the 'matrix' in it"),
    row("{dtype: [float32, float64]}", "{include: [{dtype: float32}]}", "{dtype: float32}", "list the values"),
    row("type: ValueError", "type: paddle.ValueError", "paddle.V", "write ValueError"),
    row("message: shapes", "match: shapes", "match: shapes", "write 'message: …'"),
    row("call: paddle.multiply(a, b)", "args: [a, b]", "args", "write 'inputs: …'"),
    row("gradient: matches", "fails: true", "fails", "the keys of expect"),
    row("layer: swish", "layer: swish\n    extends: [own-tanh]", "[own-tanh]", "write own-tanh"),
    row("layers:\n  swish", "layers:\n  - swish", "- swish", "'name: layer'"),
    row("{op: nn.functional.silu}", "nn.functional.silu", "nn.functional.silu", "{op: nn.functional.silu}"),
    row("x: {shape: [3, 4]}", "x: [3, 4], w: [4]", ", w: [4]", "a separate line"),
    row("inputs:\n      x: {", "inputs: x: {", ": {shape: [3", "write {key: value}"),
    row("schema:", "```yaml\nschema:", "```", "remove it"),
    row("scenarios:\n", "schema: gradcheck/v1\nscenarios:\n", "schema: gradcheck/v1\nscen", "a separate file"),
    row("defaults:\n", "  defaults:\n", ":\n  tags", "check the indentation"),
    row("scenarios:\n", "", "- id: own-tanh", "such as 'scenarios:'"),
    row("scenarios:", "scenarios: |", "|", "remove the '|'"),
    row("expect:\n      gradient", "expect: |\n      gradient", "|\n      gradient", "remove the '|'"),
    row("- id: own-swish\n    layer", "- id: own-swish\n     layer", ": swish\n", "check the indentation"),
    row("- id: own-swish\n    layer: swish\n    inputs: {x: [4]}", "- silu: {layer: swish}", "silu:", "'- id: silu'"),
    row("inputs: {x: [4]}", "inputs: {x: [4]}\n    extends: own-swis", "own-swis\n", "name a scenario"),
    # Python
    row("def forward(ctx, x):", "def forward(ctx, x)", "def forward(ctx, x)", "':'"),
    row("return dy * (1", "dy * (1", "dy * (1", "does not return", "write 'return'"),
    row("class Tanh(PyLayer):", "class Tanh:", "class Tanh:", "PyLayer"),
    row("def backward(ctx, dy):", "def backwards(ctx, dy):", "class Tanh", "backward"),
    row("def forward(ctx, x):", "def forward(ctx, x, w):", "def forward", "inputs"),
    row("def forward(ctx, x):", "def forward(self, ctx, x):", "def forward", "'def forward(ctx, x):'"),
    row("def forward(ctx, x):", "def forward(x):", "ctx.save", "'def forward(ctx, x):'"),
    row("    @staticmethod\n          def b", "@staticmethod\n      def b", "def b", "indent its 'def'"),
    row("def forward(ctx, x):", "def foward(ctx, x):", "class Tanh", "rename 'foward' to forward"),
    row("def backward(ctx, dy):", "def backward(dy):", "ctx.saved", "take it before"),
    row("[float32, float64]", "[fp16]", "fp16", "float16"),
    row("y = paddle.tanh(x)", "y = math.tanh(x)", "math.tanh", "import or define it"),
    row("call: paddle.multiply(a, b)", "call: torch.multiply(a, b)", "torch.m", "'framework: torch'"),
    row("paddle.matmul(", "torch.matmul(", "torch.m", "'framework: torch'"),
    row("call: paddle.multiply(a, b)", "call: paddle.multiply(a, c)", "c)", "'c'", "a and b"),
    row("call: paddle.multiply(a, b)", "call: c = paddle.multiply(a, b)", "= paddle.mul", "one expression"),
    row("call: paddle.multiply(a, b)", "call: paddle.multiply(a, b", "paddle.multiply(a, b\n", "'('"),
    row("title: My own tanh", "title: 'My own tanh", "'My", "never closed"),
    row("paddle.matmul(paddle", "x = null or paddle.matmul(paddle", "null", "did you mean 'None'?"),
    row("title: A product", "title: A product\n    title: B", "title: B", "another entry"),
    row("rtol: 1e-6", "kwargs: {k 2}", "k 2", "write k: 2"),
    row("{dtype: [float32, float64]}", "{dtype: float32, float64}", "float64}", "[float32, float64]"),
    row("rtol: 1e-6", "kwargs: {k 'a b'}", "k 'a", "write k: 'a b'"),
    row("{dtype: [float32, float64]}", "{dtype: [float32], n: [1 3]}", "1 3", "a ',' between"),
    row("rtol: 1e-6", "call: 'lambda x: Tanh.apply(x)'", "'lambda", "write Tanh.apply(x)"),
    row("shape: [3, 4]}", "shape: [3, 4], range: [0, .inf]}", "[0, .inf]", "must be finite"),
    row("inputs: {x: [4]}", "inputs: {name: x, shape: [4]}", "x, shape", "inputs: {x: {shape: [2, 3]}}"),
    row("gradient: matches", "grad: matches", "grad: m", "write 'gradient: …'"),
    row("gradient: matches", "grad: {x: 1}", "grad: {", "write 'grads: …'"),
    row("x: {shape: [3, 4]}", "x: [3, 4, float32]", "float32]\n", "write {shape: […], dtype: float32}"),
    row("layer: swish", "layer: Swish", "Swish", "did you mean 'swish'"),
    row("layer: swish", "layer: OwnGate", "OwnGate", "{ref: pkg.mod:Class}"),
    row("def forward(ctx, x):", "def forward(ctx, x):\n          pass", "pass", "line 3 of the code"),
    row("rtol: 1e-6", "params: {k: 2}", "params", "write 'kwargs: …'"),
    row("rtol: 1e-6", "reruns: 2", "reruns", "gradcheck run --reruns 2"),
    row("rtol: 1e-6", "kwargs: {k: np.pi}", "np.pi", "'call: …' with k=np.pi in it"),
    row("rtol: 1e-6", "call: Tanh.forward(x)", "Tanh.forward", "write Tanh.apply(…)"),
    row("@staticmethod\n          def forward(ctx, x)", "def forward(self, ctx, x, k=2)", "def forw", "(ctx, x, k=2)"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.wrong.strip().split("\n")[0])
def test_it_is_told_once_at_its_place_with_the_way_to_mend_it(mistake):
    assert mistake.right in BASE
    text = BASE.replace(mistake.right, mistake.wrong, 1)
    with pytest.raises(SpecError) as caught:
        read_bytes(text.encode(), "own.grad.yaml")
    (told,) = caught.value.diagnostics
    before = text[: text.index(mistake.at)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert told.line == line
    assert column <= told.column <= column + len(mistake.at.split("\n")[0])
    assert [word for word in mistake.words if word not in f"{told.message}: {told.help}"] == []


def test_without_the_mistakes_the_file_is_valid():
    assert len(read_bytes(BASE.encode(), "own.grad.yaml").scenarios) == 4
