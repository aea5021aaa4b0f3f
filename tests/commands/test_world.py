"""check and new: a layer of one's own on the ranks of a world, from the command line."""

from __future__ import annotations

import pytest

from gradcheck.spec.read import read_bytes

LAYERS = """
import paddle
import paddle.distributed as dist
from paddle.autograd import PyLayer


class RowLinear(PyLayer):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        y = paddle.matmul(x, w)
        dist.all_reduce(y)
        return y + b

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        return paddle.matmul(dy, w, transpose_y=True), paddle.matmul(x, dy, transpose_x=True), dy.sum(0)


class ModelSum(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y, group=dist.fleet.get_hybrid_communicate_group().get_model_parallel_group())
        return y, x * 2

    @staticmethod
    def backward(ctx, dy, dz):
        return dy + dz * 2
"""
ROW = ("acme.parallel:RowLinear", "-i", "x=3x2", "-i", "w=2x5", "-i")


@pytest.fixture(autouse=True)
def acme(folder):
    """A package with layers, in the current folder."""
    (folder / "acme").mkdir()
    (folder / "acme" / "__init__.py").touch()
    (folder / "acme" / "parallel.py").write_text(LAYERS)


def test_a_layer_is_checked_on_four_ranks(gradcheck):
    done = gradcheck("check", *ROW, "b=5:replicated", "--world", "4", "--outputs", "replicated")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("PASS row-linear@numpy acme.parallel:RowLinear:7:1 ")


def test_under_another_declaration_it_is_wrong_and_entries_have_ranks(gradcheck):
    done = gradcheck("check", *ROW, "b=5:float32:replicated", "--world", "4")
    assert done.code == 1
    assert "x[rank " in done.out


def test_ranks_along_axes_and_a_word_for_each_output(gradcheck):
    arguments = ("check", "acme.parallel:ModelSum", "-i", "x=3", "--world", "mp=2", "--outputs", "replicated,split")
    assert gradcheck(*arguments).code == 0
    assert gradcheck(*arguments, "--random", "same").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("b=5:replicated",), "'ranks' has no effect without a world; give the number of ranks"),
        (("b=5", "--outputs", "replicated"), "'outputs' has no effect without a world"),
        (("b=5", "--random", "same"), "'random' has no effect without a world"),
        (("b=5", "--world", "0"), "world must be at least 1, not 0"),
        (("b=5", "--world", "many"), "--world many: write a number of ranks, or ranks along axes, such as mp=2,dp=2"),
        (("b=5", "--world", "mp=2,mp=2"), "--world mp=2,mp=2: write a number of ranks"),
        (("b=5", "--world", "xp=2"), "unknown key 'xp'; write dp, pp, sharding, sep or mp"),
        (("b=5", "--world", "mp=16,dp=8"), "the world has 128 ranks, at most 64 are allowed"),
        (("b=5", "--world", "2", "--outputs", "both"), "unknown ranks 'both'; write split or replicated"),
        (("b=5", "--world", "2", "--outputs", "partial"), "unknown ranks 'partial'; write split or replicated"),
        (("b=5", "--world", "2", "--order", "2"), "'order: 2' is not supported with a world"),
        (("b=5:everywhere", "--world", "2"), "unknown option 'everywhere'"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_explained(gradcheck, arguments, said):
    done = gradcheck("check", *ROW, *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_new_writes_the_world_into_the_scenario(gradcheck):
    done = gradcheck("new", *ROW, "b=5:partial", "--world", "mp=2,dp=2", "--outputs", "replicated", "--random", "same")
    (one,) = read_bytes(done.out.encode(), "t.grad.yaml").scenarios
    assert (one.world, one.output_placements, one.random) == ({"mp": 2, "dp": 2}, ("replicated",), "same")
    assert {name: input.ranks for name, input in one.inputs.items()} == {"x": "split", "w": "split", "b": "partial"}
    assert "order" not in done.out


def test_list_and_show_know_scenarios_in_worlds(gradcheck, folder):
    text = gradcheck("new", *ROW, "b=5:replicated", "--world", "4", "--outputs", "replicated").out
    (folder / "row.grad.yaml").write_text(text)
    assert gradcheck("list", "row.grad.yaml").out.startswith("row-linear")
    assert "world: 4" in gradcheck("show", "row.grad.yaml", "row-linear").out
    assert gradcheck("run", "row.grad.yaml", "--allow-code").code == 0
