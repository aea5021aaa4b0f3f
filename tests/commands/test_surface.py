"""``gradcheck surface``: which of Paddle's names files use and the engine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import pylayer.paddle as facade
from gradcheck.commands.surface import surface
from gradcheck.support.missing_names import uses_in


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(surface, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_a_file_of_which_the_engine_has_all_names(folder: Path) -> None:
    (folder / "layer.py").write_text("import paddle\ny = paddle.nn.functional.relu(paddle.ones([2]))\n")
    assert run("layer.py") == (0, "the bundled engine has all names; 1 file read\n")


def test_missing_names_are_told_with_their_places_and_the_nearest(folder: Path) -> None:
    (folder / "layer.py").write_text("import paddle\n\n\ndef f(x):\n    return paddle.tanhh(x) + paddle.tanhh(x)\n")
    code, output = run("layer.py")
    assert code == 1
    assert output.splitlines() == [
        "layer.py:5:12: paddle.tanhh is not part of the bundled engine. Did you mean paddle.tanh or paddle.tanh_ or "
        "paddle.stanh?",
        "layer.py:5:30: paddle.tanhh is not part of the bundled engine. Did you mean paddle.tanh or paddle.tanh_ or "
        "paddle.stanh?",
        "1 name missing, used in 2 places; 1 file read",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import paddle\npaddle.nn.functional.no_such(1)",
        "import paddle as pd\npd.nn.functional.no_such(1)",
        "import paddle.nn.functional as F\nF.no_such(1)",
        "from paddle.nn import functional as F\nF.no_such(1)",
        "from paddle.nn.functional import no_such as f\nf(1)",
        "import paddle\nF = paddle.nn.functional\nF.no_such(1)",
        "import paddle\ndef f(x):\n    return F.no_such(x)\nF = paddle.nn.functional",
        "import paddle\nclass A(paddle.nn.functional.no_such): pass",
        "if False:\n    from paddle.nn.functional import no_such",
        "import paddle\n@paddle.nn.functional.no_such\ndef f(): pass",
    ],
)
def test_however_a_name_is_reached(folder: Path, source: str) -> None:
    (folder / "layer.py").write_text(source)
    code, output = run("layer.py")
    assert code == 1
    assert "paddle.nn.functional.no_such is not part of the bundled engine." in output


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.no_such(1)",
        "from .paddle import no_such",
        "import paddle\ndef f(x):\n    return x.no_such()",  # what x is, only its run shows
        "import paddle, numpy as np\nx = np.ones(2).astype(np.float32).values",
        "import paddle\nx = paddle.ones([1])\nx.own = 3\nx.own.other",
        "import paddle\nx = paddle.ones([1])\nfor x in [1]:\n    x.no_such",
        "import paddle\nfrom paddle.nn.layer.common import Linear\npaddle.base.backward.gradients",
        "import paddle\npaddle.nn.Layer.no_such",
        "x = 'paddle.no_such'",
        "import paddle\npaddle.ones([2, 3]).transpose(dim0=0, dim1=1)",
    ],
)
def test_what_is_no_name_of_paddles_modules(folder: Path, source: str) -> None:
    (folder / "layer.py").write_text(source)
    assert run("layer.py")[0] == 0


LAYER = """
import paddle
from paddle.autograd import PyLayer

class L(PyLayer):
    @staticmethod
    def forward(ctx, x, axis):
        ctx.axis = axis
        {forward}

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensor()
        {backward}
"""
MEMBERS = {
    "i = paddle.arange(3, device='cpu')": "paddle.arange(device=)",
    "x.sum(); paddle.sum(x, dim=0, keepdim=True, name=None)": "",
    "paddle.zeros([1]).reshape([1]).no_such": "paddle.Tensor.no_such",
    "i = paddle.ones([1]); i.no_such()": "paddle.Tensor.no_such",
    "i = paddle.ones([1]); i.sum(no_such=1)": "paddle.Tensor.sum(no_such=)",
    "paddle.nn.Linear(1, 1, no_such=1)": "paddle.nn.Linear(no_such=)",
    "x.to_sparse_coo(2)": "paddle.Tensor.to_sparse_coo",
    "x._clear_data()": "paddle.Tensor._clear_data",
    "axis.no_such": "",
}
IN_BACKWARD = {
    "ctx.saved_tensors": "paddle.autograd.PyLayerContext.saved_tensors",
    "ctx.needs_input_grad[0]": "paddle.autograd.PyLayerContext.needs_input_grad",
    "ctx.axis, ctx.saved_tensor(), ctx.container": "",
    "g.no_such": "paddle.Tensor.no_such",
    "y.no_such": "paddle.Tensor.no_such",
    "g = g or 3; g.no_such": "",
}


@pytest.mark.parametrize(("code", "lacked"), MEMBERS.items())
def test_what_a_forward_uses(folder: Path, code: str, lacked: str) -> None:
    check_lacked(folder, LAYER.format(forward=code, backward="pass"), lacked)


@pytest.mark.parametrize(("code", "lacked"), IN_BACKWARD.items())
def test_what_a_backward_uses(folder: Path, code: str, lacked: str) -> None:
    check_lacked(folder, LAYER.format(forward="pass", backward=code), lacked)


def check_lacked(folder: Path, source: str, lacked: str) -> None:
    (folder / "layer.py").write_text(source)
    lines = run("layer.py")[1].splitlines()[:-1]
    assert [line.split(" ")[1] for line in lines] == ([lacked] if lacked else [])


def test_long_chains_are_read_in_no_time(folder: Path) -> None:
    (folder / "layer.py").write_text(f"import paddle\nx = paddle.ones([1])\nx{'.a' * 2_000}\n")
    assert run("layer.py")[0] in (0, 1)


def test_a_chain_is_one_use() -> None:
    source = "import paddle\npaddle.nn.functional.relu(paddle.abs(1).sum())"
    assert [use.name for use in uses_in(source, "file.py", facade)] == ["nn.functional.relu", "abs"]


def test_nothing_in_a_file_runs(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("open('ran', 'w')\n")
    (folder / "package" / "layer.py").write_text("import paddle\nopen('ran', 'w')\npaddle.no_such\n")
    code, output = run("package.layer")
    assert (code, "1 name missing" in output) == (1, True)
    assert run("package")[0] == 1
    assert not (folder / "ran").exists()


def test_folders_and_packages_mean_all_their_files(folder: Path) -> None:
    (folder / "package").mkdir()
    for name in ("__init__", "one", "two"):
        (folder / "package" / f"{name}.py").write_text("import paddle\npaddle.no_such\n")
    assert "1 name missing, used in 3 places; 3 files read" in run("package")[1]
    assert "1 name missing, used in 3 places; 3 files read" in run("package", "package/one.py")[1]


def test_a_file_that_cannot_be_read_is_said_to_be_so_and_the_others_are_read(folder: Path) -> None:
    (folder / "good.py").write_text("import paddle\npaddle.no_such\n")
    (folder / "bad.py").write_text("x = (\n")
    (folder / "binary.py").write_bytes(b"\xff\xfe\x00")
    code, output = run("good.py", "bad.py", "binary.py")
    assert code == 2
    assert "bad.py:1:5: '(' was never closed: this is no Python" in output
    assert "binary.py: cannot be read" in output
    assert "good.py:2:1: paddle.no_such" in output


def test_what_does_not_exist(folder: Path) -> None:
    code, output = run("no.such.module")
    assert code == 2
    assert "no.such.module: there is no such file, folder or module" in output
