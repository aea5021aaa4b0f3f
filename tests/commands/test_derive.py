"""derive: the class on stdout, its checks on stderr; a change of the user's file that leaves the rest byte for byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

RMS_NORM = """\
import paddle
from paddle.autograd import PyLayer


class RMSNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        r = paddle.rsqrt((x * x).mean(axis=-1, keepdim=True) + eps)
        return x * r * weight
"""
DERIVED = """\
import paddle
from paddle.autograd import PyLayer


class RMSNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        r = paddle.rsqrt((x * x).mean(axis=-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, r)
        return x * r * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight, r = ctx.saved_tensor()
        g = dy * weight
        dx = g * r - (g * x).mean(axis=-1, keepdim=True) * r * r * r * x
        dweight = (dy * x * r).sum(axis=0)
        return dx, dweight
"""
INPUTS = ["-i", "x=3x4", "-i", "weight=4"]
TANH = """\
# before
import paddle
from paddle.autograd import PyLayer


def kept(cls):
    return cls


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensor()   # the output
        return dy * (1 - y)  # of tanh


last = "größer"
"""


@pytest.fixture
def module(folder: Path):
    """Writes a module of the project; gives its file and how it is named."""
    count = 0

    def write(text: str, encoding: str = "utf-8") -> tuple[Path, str]:
        nonlocal count
        count += 1
        (folder / "pyproject.toml").touch()
        file = folder / f"derived_{folder.name}_{count}".replace("-", "_")
        file = file.with_suffix(".py")
        file.write_bytes(text.encode(encoding))
        return file, file.stem

    return write


def test_the_class_is_printed_and_what_it_was_checked_at(gradcheck, module):
    _, name = module(RMS_NORM)
    done = gradcheck("derive", f"{name}:RMSNorm", *INPUTS)
    assert (done.code, done.out) == (0, DERIVED)
    assert done.err == "# PASS at x=3x4, weight=4; x=4x5, weight=5; x=6x8, weight=8, in float64 and float32\n"


def test_a_file_may_be_named_in_place_of_a_module(gradcheck, module):
    file, _ = module(RMS_NORM)
    assert gradcheck("derive", f"{file.name}:RMSNorm", *INPUTS).out == DERIVED


def test_a_function_in_the_command_line(gradcheck, folder):
    done = gradcheck("derive", "lambda x, w: paddle.tanh(x @ w)", "-i", "x=3x4", "-i", "w=4x2")
    assert done.code == 0, done.err
    assert done.out.startswith("import paddle\nfrom paddle.autograd import PyLayer\n\n\nclass Layer(PyLayer):\n")
    assert "        g = dy * (1 - y * y)\n        dx = paddle.matmul(g, w, transpose_y=True)\n" in done.out


def test_arguments_that_are_not_tensors_come_with_the_call(gradcheck, module):
    _, name = module(RMS_NORM)
    done = gradcheck("derive", f"{name}:RMSNorm", *INPUTS, "--call", "RMSNorm.apply(x, weight, 0.1)")
    assert (done.code, done.out) == (0, DERIVED)
    done = gradcheck("derive", f"{name}:RMSNorm", *INPUTS, "--call", "1 + 1")
    assert (done.code, done.err) == (2, "gradcheck: --call 1 + 1: write the call of RMSNorm, once\n")


def test_what_cannot_be_derived_says_why(gradcheck, module):
    _, name = module("import paddle\n\n\ndef loud(x):\n    return x * float(x.max())\n")
    done = gradcheck("derive", f"{name}:loud", "-i", "x=3x4")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "no backward of Loud was derived: forward reads values by float(): the code would hold only for these values\n"
    )


def test_a_layer_that_is_not_there(gradcheck, module):
    _, name = module(TANH)
    done = gradcheck("derive", f"{name}:Tahn", "-i", "x=3x4")
    assert done.code == 2
    assert "has no 'Tahn'; did you mean Tanh?" in done.err


def test_diff_prints_the_one_edit(gradcheck, module):
    file, name = module(TANH)
    done = gradcheck("derive", f"{name}:Tanh", "-i", "x=3x4", "--diff")
    assert done.code == 1
    assert "-        return dy * (1 - y)  # of tanh\n+        return dy * (1 - y * y)  # of tanh\n" in done.out
    assert file.read_text() == TANH


def test_diff_prints_the_backward_where_no_edit_is_enough(gradcheck, module):
    _, name = module(RMS_NORM)
    done = gradcheck("derive", f"{name}:RMSNorm", *INPUTS, "--diff")
    assert done.code == 1
    assert "+        ctx.save_for_backward(x, weight, r)\n" in done.out
    assert "+    def backward(ctx, dy):\n" in done.out


def test_a_right_backward_gives_no_diff(gradcheck, module):
    file, name = module(TANH.replace("(1 - y)", "(1 - y * y)"))
    before = file.read_bytes()
    for option in ("--diff", "--write"):
        done = gradcheck("derive", f"{name}:Tanh", "-i", "x=3x4", option)
        assert (done.code, done.out, done.err) == (0, "", "backward of Tanh is right\n")
    assert file.read_bytes() == before


TABS = TANH.replace("        ", "\t\t").replace("    ", "\t")
DECORATED = TANH.replace("class Tanh", "@kept\nclass Tanh").replace(
    "    @staticmethod\n    def backward", "    @staticmethod\n    @paddle.no_grad()\n    def backward"
)
TWICE = (
    TANH
    + "\n\nFirst = Tanh\n"
    + TANH[TANH.index("class Tanh") : TANH.index("\n\nlast")]
    .replace("tanh(x)", "tanh(2 * x)")
    .replace("(1 - y)", "2 * (1 - y * y)")
)


@pytest.mark.parametrize(
    ("text", "layer"),
    [
        (TANH, "Tanh"),
        (TANH.replace("\n", "\r\n"), "Tanh"),
        (TABS, "Tanh"),
        (DECORATED, "Tanh"),
        (TWICE, "First"),
        (TANH.replace('"größer"', '"größer"  # ' + "x" * 200), "Tanh"),
    ],
    ids=["plain", "CRLF", "tabs", "decorators", "two classes of one name", "long lines"],
)
def test_write_changes_the_one_expression_and_nothing_else(gradcheck, module, text, layer):
    file, name = module(text)
    done = gradcheck("derive", f"{name}:{layer}", "-i", "x=3x4", "--write")
    assert done.code == 1, done.err
    assert file.read_bytes() == text.replace("(1 - y)", "(1 - y * y)", 1).encode()


def test_write_keeps_the_encoding_of_the_file(gradcheck, module):
    text = "# -*- coding: latin-1 -*-\n" + TANH
    file, name = module(text, "latin-1")
    assert gradcheck("derive", f"{name}:Tanh", "-i", "x=3x4", "--write").code == 1
    assert file.read_bytes() == text.replace("(1 - y)", "(1 - y * y)").encode("latin-1")


def test_write_adds_a_backward_in_the_indent_and_line_ends_of_the_file(gradcheck, module):
    text = RMS_NORM.replace("        ", "\t\t").replace("    ", "\t").replace("\n", "\r\n") + "\r\n\r\nlast = 1\r\n"
    file, name = module(text)
    done = gradcheck("derive", f"{name}:RMSNorm", *INPUTS, "--write")
    assert done.code == 1, done.err
    written = file.read_bytes()
    assert b"\n" not in written.replace(b"\r\n", b"")
    assert b"    " not in written
    assert b"\tdef backward(ctx, dy):\r\n\t\tx, weight, r = ctx.saved_tensor()\r\n" in written
    assert written.endswith(b"\t\treturn dx, dweight\r\n\r\n\r\nlast = 1\r\n")


def test_write_changes_no_file_outside_of_the_project(gradcheck, folder, tmp_path_factory, monkeypatch):
    outside = tmp_path_factory.mktemp("elsewhere")
    (outside / "tanh_of_others.py").write_text(TANH)
    (folder / "pyproject.toml").touch()
    monkeypatch.syspath_prepend(str(outside))
    done = gradcheck("derive", "tanh_of_others:Tanh", "-i", "x=3x4", "--write")
    assert done.code == 2
    assert "is not in the project" in done.err
    assert (outside / "tanh_of_others.py").read_text() == TANH


SPEC = """\
schema: gradcheck/v1
scenarios:
  - id: tanh-own   # mine
    layer: |
      class Own(PyLayer):
          @staticmethod
          def forward(ctx, x):
              y = paddle.tanh(x)
              ctx.save_for_backward(y)
              return y

          @staticmethod
          def backward(ctx, dy):
              y, = ctx.saved_tensor()
              return dy * (1 - y)
    inputs: {x: {shape: [2, 3]}}
"""


@pytest.mark.parametrize("text", [SPEC, SPEC.replace("\n", "\r\n")], ids=["plain", "CRLF"])
def test_write_repairs_the_block_of_a_spec(gradcheck, folder, text):
    file = folder / "own.grad.yaml"
    file.write_bytes(text.encode())
    refused = gradcheck("derive", "own.grad.yaml::tanh-own", "--write")
    assert refused.code == 2
    assert "it was not run" in refused.err
    assert file.read_bytes() == text.encode()
    done = gradcheck("derive", "own.grad.yaml::tanh-own", "--write", "--allow-code")
    assert done.code == 1, done.err
    assert file.read_bytes() == text.replace("(1 - y)", "(1 - y * y)").encode()
    assert gradcheck("run", "own.grad.yaml", "--allow-code").code == 0
    assert gradcheck("derive", "own.grad.yaml::tanh-own", "--diff", "--allow-code").code == 0


STATIC = """\
schema: gradcheck/v1
scenarios:
  - id: tanh-own
    layer: |
      def forward_fn(x):
          y = paddle.tanh(x)
          return y
      def backward_fn(dy):
          return dy
    inputs: {x: [2, 3]}   # mine
"""
PRODUCT = """\
schema: gradcheck/v1
scenarios:
  - id: tanh-own
    layer: |
      def forward_fn(a, b):
          return a * b
      def backward_fn(dy):
          return dy, dy
    inputs: {x: [2, 3], w: [2, 3]}
"""


def test_a_world_in_which_no_edit_is_searched_for_says_so(gradcheck, folder):
    (folder / "own.grad.yaml").write_text(SPEC + "    world: 2\n")
    done = gradcheck("derive", "own.grad.yaml::tanh-own", "--diff", "--allow-code")
    assert done.code == 1
    assert "no edit is searched for in a world of ranks: FAIL" in done.err


def test_the_backward_fn_of_a_static_layer_is_printed(gradcheck, folder):
    (folder / "own.grad.yaml").write_text(STATIC)
    done = gradcheck("derive", "own.grad.yaml::tanh-own", "--allow-code")
    assert (done.code, done.out) == (
        0,
        "def backward_fn(dy):\n    y = paddle.tanh(x)\n    return dy * (1 - y * y)\n",
    )
    assert done.err == "# PASS at x=2x3; x=3x4; x=4x6, in float64 and float32\n"


def test_what_a_static_layer_raises_is_the_reason(gradcheck, folder):
    (folder / "own.grad.yaml").write_text(STATIC.replace("y = paddle.tanh(x)", "y = {}['mine']"))
    done = gradcheck("derive", "own.grad.yaml::tanh-own", "--allow-code")
    assert (done.code, done.out) == (1, "")
    assert "no backward of tanh-own was derived: forward_fn does not run on Tensors: KeyError" in done.err


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (STATIC, STATIC.replace("return dy", "return dy * (1 - paddle.tanh(x) * paddle.tanh(x))")),
        (PRODUCT, PRODUCT.replace("return dy, dy", "dx = dy * w\n          dw = dy * x\n          return dx, dw")),
    ],
    ids=["an edit", "the whole"],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["plain", "CRLF"])
def test_write_repairs_a_static_layer_in_the_block_of_a_spec(gradcheck, folder, text, changed, newline):
    file = folder / "own.grad.yaml"
    file.write_bytes(text.replace("\n", newline).encode())
    done = gradcheck("derive", "own.grad.yaml::tanh-own", "--write", "--allow-code")
    assert done.code == 1, done.err
    assert file.read_bytes() == changed.replace("\n", newline).encode()
    assert gradcheck("run", "own.grad.yaml", "--allow-code").code == 0
    done = gradcheck("derive", "own.grad.yaml::tanh-own", "--diff", "--allow-code")
    assert (done.code, done.err) == (0, "backward of tanh-own is right\n")


def test_order_2_saves_inputs_alone(gradcheck, module):
    _, name = module(RMS_NORM)
    done = gradcheck("derive", f"{name}:RMSNorm", *INPUTS, "--order", "2")
    assert done.code == 0, done.err
    assert "        ctx.save_for_backward(x, weight)\n        ctx.eps = eps\n" in done.out


def test_new_writes_a_scenario_with_the_derived_class(gradcheck, module, folder):
    _, name = module("import paddle\n\n\ndef mix(x, w, k=2.0):\n    return (paddle.tanh(x @ w) * k).mean()\n")
    done = gradcheck("new", f"{name}:mix", "--derive", "-i", "x=3x4", "-i", "w=4x2", "-o", "mix.grad.yaml")
    assert done.code == 0, done.err
    assert "      class Mix(PyLayer):\n" in (folder / "mix.grad.yaml").read_text()
    assert gradcheck("run", "mix.grad.yaml", "--allow-code").out.startswith("PASS mix@numpy")


ROW_LINEAR = """\
import paddle
import paddle.distributed as dist
from paddle.autograd import PyLayer


class RowLinear(PyLayer):
    @staticmethod
    def forward(ctx, x, w, b):
        y = paddle.matmul(x, w)
        dist.all_reduce(y)
        return y + b
"""
RANKS = ["-i", "x=3x2", "-i", "w=2x5", "-i", "b=5:replicated"]


def test_a_layer_of_a_world_gets_its_backward(gradcheck, module):
    _, name = module(ROW_LINEAR)
    done = gradcheck("derive", f"{name}:RowLinear", *RANKS, "--world", "4", "--outputs", "replicated")
    assert done.code == 0, done.err
    assert done.err.startswith("# PASS at x=3x2, w=2x5, b=5 on 4 ranks; ")
    assert "x=3x2, w=2x5, b=5 on 5 ranks, in float64 and float32" in done.err
    counted = gradcheck("derive", f"{name}:RowLinear", *RANKS, "--world", "4")
    assert "        paddle.distributed.all_reduce(" in counted.out


def test_placements_are_for_a_world(gradcheck, module):
    _, name = module(ROW_LINEAR)
    refused = gradcheck("derive", f"{name}:RowLinear", *RANKS)
    assert refused.code == 2
    assert "add --world 4, for example" in refused.err
    wrong = gradcheck("derive", f"{name}:RowLinear", *RANKS, "--world", "4", "--outputs", "same")
    assert wrong.code == 2
    assert "outputs must be 'split' or 'replicated', not 'same'" in wrong.err


def test_a_forward_that_does_not_run_at_the_inputs_is_the_reason(gradcheck, module):
    _, name = module(TANH.replace("paddle.tanh(x)", "paddle.tanh(x @ x)"))
    done = gradcheck("derive", f"{name}:Tanh", "-i", "x=3x4")
    assert done.code == 1, done.err
    assert "forward fails at x=3x4: ValueError: " in done.err
    assert re.search(r"\(line \d+ of [^ ]+\.py\)\n", done.err)


def test_a_layer_may_be_named_by_its_file(gradcheck, module, folder, monkeypatch):
    _, name = module(TANH)
    file = folder / f"{name}.py"
    assert gradcheck("derive", f"{file}:Tanh", "-i", "x=3x4").code == 0
    (folder / "other").mkdir()
    (folder / "other" / "pyproject.toml").touch()
    monkeypatch.chdir(folder / "other")
    assert gradcheck("derive", f"../{name}.py:Tanh", "-i", "x=3x4").err == (
        f"gradcheck: ../{name}.py cannot be imported from here: go to its folder, and name {name}:Tanh\n"
    )
