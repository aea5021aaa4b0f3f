"""What Paddle has and the engine lacks: a status of its own, with the name, wherever code asks for it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest
from cases import case_of

from gradcheck.case.execute import execute
from gradcheck.result import Result, Status

pytestmark = pytest.mark.usefixtures("process_as_before")


METHOD = "paddle.Tensor.to_sparse_coo"
PUSH = "paddle.device.cuda.nvprof_nvtx_push"
X = "inputs: {x: {shape: [2]}}\n"


def layer(forward: str = "return x * 2", backward: str = "return dy * 2", before: str = "") -> str:
    """The keys of a scenario with a PyLayer with these bodies."""
    code = (
        f"{before}\nclass L(PyLayer):\n    @staticmethod\n    def forward(ctx, x):\n{indent(forward, ' ' * 8)}\n\n"
        f"    @staticmethod\n    def backward(ctx, dy):\n{indent(backward, ' ' * 8)}\n"
    )
    return f"layer: |\n{indent(code, '  ')}\n{X}"


def run(tmp_path: Path, body: str) -> Result:
    """The result of the one scenario with this body."""
    head = "schema: gradcheck/v1\nscenarios:\n  - id: mine\n    title: Mine\n    source: {document: none}\n"
    file = tmp_path / "mine.grad.yaml"
    file.write_text(head + indent(body, " " * 4) + "\n", encoding="utf-8")
    return execute(case_of(file))


BODIES = {
    "a script": ("script: |\n  paddle.io.DataLoader([])\n", "paddle.io.DataLoader"),
    "a script that expects an error": (
        "script: |\n  paddle.onnx.export(1)\nexpect: {raises: {type: ValueError, message: no}}\n", "paddle.onnx.export"
    ),
    "an import": (
        "script: |\n  import paddle.audio.functional as F\n  F.get_window()\n", "paddle.audio.functional.get_window"
    ),
    "a name imported": ("script: |\n  from paddle import baddbmm\n  baddbmm(1, 2, 3)\n", "paddle.baddbmm"),
    "a name of a package imported": (
        "script: |\n  from paddle.nn import quant\n  quant.Stub()\n", "paddle.nn.quant.Stub"
    ),
    "a function that was not imported": ("script: |\n  paddle.baddbmm(1, 2, 3)\n", "paddle.baddbmm"),
    "a method of Tensor": ("script: |\n  paddle.ones([1]).to_sparse_coo(1)\n", METHOD),
    "a method of the class Tensor": ("script: |\n  paddle.Tensor.to_sparse_coo\n", METHOD),
    "a method of Layer": ("script: |\n  paddle.nn.Linear(1, 1).cuda()\n", "paddle.nn.Layer.cuda"),
    "a layer's forward": (layer("return paddle.sparse.add(x, x)"), "paddle.sparse.add"),
    "a layer's backward": (layer(backward="return dy.to_sparse_coo(1)"), METHOD),
    "a call for nothing in forward": (layer("paddle.device.cuda.nvprof_nvtx_push('a'); return x * 2"), PUSH),
    "a call": (f"{layer()}call: L.apply(x).to_sparse_coo(1)\n", METHOD),
    "a reference into Paddle": (f"layer: {{ref: 'paddle.nn:quant.Stub'}}\n{X}", "paddle.nn.quant.Stub"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "name"), BODIES.values(), ids=BODIES)
def test_a_name_that_the_engine_lacks_is_unsupported(tmp_path: Path, body: str, name: str) -> None:
    result = run(tmp_path, body)
    assert (result.status, result.message.partition(" (line ")[0]) == (
        Status.UNSUPPORTED,
        f"{name} is not part of the bundled engine",
    )


MODULE = """
import paddle
from paddle.autograd import PyLayer
{before}
class L(PyLayer):
    @staticmethod
    def forward(ctx, x):
        {forward}
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2
"""


def test_so_it_is_in_a_module_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "user_module_in_forward.py").write_text(MODULE.format(before="", forward="x.to_sparse_coo(1)"))
    result = run(tmp_path, f"layer: {{ref: 'user_module_in_forward:L'}}\n{X}")
    assert result.status is Status.UNSUPPORTED
    assert METHOD in result.message


def test_what_is_called_at_import_is_no_obstacle(tmp_path: Path) -> None:
    text = MODULE.format(before="paddle.sparse.nn.ReLU()", forward="pass")
    (tmp_path / "user_module_at_import.py").write_text(text)
    assert run(tmp_path, f"layer: {{ref: 'user_module_at_import:L'}}\n{X}").status is Status.PASS
    assert run(tmp_path, layer(before="from paddle.io import DataLoader\nDataLoader([])")).status is Status.PASS


def test_what_is_imported_and_not_used_is_no_obstacle(tmp_path: Path) -> None:
    before = "import paddle.audio\nfrom paddle.io import DataLoader\nclass Mine(DataLoader):\n    pass\n"
    assert run(tmp_path, layer(before=before)).status is Status.PASS


MISTAKES = {
    "a name that Paddle has not": "script: |\n  paddle.tahn\n",
    "a method that Paddle has not": "script: |\n  paddle.ones([1]).reshap([1])\n",
    "a module that Paddle has not": "script: |\n  import paddle.visoin\n",
    "a module of somebody else": "script: |\n  import no_such_module\n",
    "an attribute of something else": "script: |\n  [].vision\n",
}


@pytest.mark.parametrize("body", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_stays_an_error(tmp_path: Path, body: str) -> None:
    assert run(tmp_path, body).status is Status.ERROR


def test_code_that_asks_first_goes_on(tmp_path: Path) -> None:
    body = dedent(
        """
        script: |
          x = paddle.ones([1])
          found = hasattr(paddle, "baddbmm"), getattr(x, "to_sparse_coo", None)
        expect: {values: {"found": [false, null]}}
        """
    )
    result = run(tmp_path, body.strip() + "\n")
    assert result.status is not Status.UNSUPPORTED
