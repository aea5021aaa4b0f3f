"""Layers on every rank of a world: the verdict by what Tensors are declared to stand for, and the names of entries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest
from cases import case_of

import gradcheck
from gradcheck.backends.bundled import BundledBackend
from gradcheck.case.execute import execute
from gradcheck.report.check_result import CheckResult
from gradcheck.result import Result, Status

paddle: Any = BundledBackend("numpy", "cpu", install=False).paddle
dist = paddle.distributed
PyLayer: Any = paddle.autograd.PyLayer
N = 4
draw = np.random.default_rng(0).standard_normal


# --------------------------------------------------------------------------- what layers are made of
def summed(x: Any) -> Any:
    y = x.clone()
    dist.all_reduce(y)
    return y


def gathered(x: Any) -> Any:
    parts: list[Any] = []
    dist.all_gather(parts, x)
    return paddle.concat(parts, 0)


def own_part(x: Any) -> Any:
    return paddle.split(x, dist.get_world_size(), 0)[dist.get_rank()]


def summed_part(x: Any) -> Any:
    y = paddle.empty([x.shape[0] // dist.get_world_size(), *x.shape[1:]], x.dtype)
    dist.reduce_scatter(y, x)
    return y


def exchanged(x: Any) -> Any:
    y = paddle.empty_like(x)
    dist.alltoall_single(y, x)
    return y


def same(x: Any) -> Any:
    return x.clone()


def all_reduced(x: Any, op: int) -> Any:
    y = x.clone()
    dist.all_reduce(y, op=op)
    return y


def layer(forward: Any, backward: Any) -> Any:
    class Layer(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forward(x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return backward(dy)

    return Layer


def check(forward: Any, backward: Any, stands: str, outputs: str, size: int = N) -> CheckResult:
    rows = 3 * size
    x = draw((rows, 2) if stands != "split" else (size, rows, 2))
    argument = x if stands == "split" else getattr(gradcheck, stands)(x)
    return gradcheck.check(layer(forward, backward), argument, world=size, outputs=outputs)


RIGHT = [
    (same, summed, "replicated", "split"),
    (summed, same, "split", "replicated"),
    (gathered, own_part, "split", "replicated"),
    (gathered, summed_part, "split", "split"),
    (summed_part, gathered, "split", "split"),
    (own_part, gathered, "replicated", "split"),
    (exchanged, exchanged, "split", "split"),
    (summed, summed, "split", "split"),
    (same, same, "split", "split"),
    (same, same, "partial", "split"),
    (same, same, "replicated", "replicated"),
]


def called(one: tuple[Any, Any, str, str]) -> str:
    return f"{one[0].__name__}, {one[1].__name__}: {one[2]} to {one[3]}"


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("one", RIGHT, ids=called)
def test_a_pair_of_collectives_is_right_under_its_declaration(one: tuple[Any, Any, str, str], size: int) -> None:
    assert check(*one, size=size).verdict is Status.PASS


@pytest.mark.parametrize(
    "one",
    [
        (same, same, "replicated", "split"),  # each rank has its part of the sum
        (same, summed, "partial", "split"),  # the trainer sums once more
        (summed, summed, "split", "replicated"),
        (summed, same, "split", "split"),
        (gathered, own_part, "split", "split"),
        (gathered, summed_part, "split", "replicated"),
        (exchanged, same, "split", "split"),
        (same, summed, "replicated", "replicated"),
    ],
    ids=called,
)
def test_the_same_code_is_wrong_under_another_declaration(one: tuple[Any, Any, str, str]) -> None:
    assert check(*one).verdict is Status.FAIL


def test_a_function_may_hook_what_a_layer_gives_on_each_rank() -> None:
    ring = layer(exchanged, exchanged)

    def hooked(times: float) -> Any:
        def function(x: Any) -> Any:
            y = ring.apply(x)
            y.register_hook(lambda g: times * g)
            return y * y

        return function

    assert gradcheck.check(hooked(1.0), draw((N, N, 2)), world=N).verdict is Status.PASS
    assert gradcheck.check(hooked(2.0), draw((N, N, 2)), world=N).verdict is Status.FAIL


def of_paddle(name: str) -> Any:
    """One of Paddle's own layers for the model axis, on ranks that all lie along it."""

    sequence = import_module(f"{paddle.__name__}.distributed.fleet.utils.sequence_parallel_utils")

    def call(x: Any) -> Any:
        group = dist.fleet.get_hybrid_communicate_group().get_model_parallel_group()
        one = getattr(sequence if name.endswith("Op") else dist.fleet.layers.mpu.mp_ops, name)
        return one.apply(x) if name.endswith("Op") else one(x, group=group)

    return call


@pytest.mark.parametrize(
    ("name", "stands", "outputs"),
    [
        ("_c_identity", "replicated", "split"),
        ("_mp_allreduce", "split", "replicated"),
        ("_c_split", "replicated", "split"),
        ("_c_concat", "split", "replicated"),
        ("ScatterOp", "replicated", "split"),
        ("GatherOp", "split", "replicated"),
        ("AllGatherOp", "split", "split"),
        ("ReduceScatterOp", "split", "split"),
    ],
)
def test_paddle_s_own_layers_are_right_under_one_declaration(name: str, stands: str, outputs: str) -> None:
    x = draw((N, N, N)) if stands == "split" else gradcheck.replicated(draw((N, N)))
    found = gradcheck.check(of_paddle(name), x, world={"mp": N}, outputs=outputs)
    assert found.verdict is Status.PASS, found


# --------------------------------------------------------------------------- how it is told
def test_entries_are_named_with_their_ranks() -> None:
    """Rank 2 takes what rank 0 has; where it is wrong there is one entry of each."""

    def onwards(x: Any) -> Any:
        y = x.clone()
        dist.broadcast(y, src=0)
        return y if dist.get_rank() == 2 else x.clone()

    def nothing(dy: Any) -> Any:
        return paddle.zeros_like(dy) if dist.get_rank() == 2 else dy.clone()

    found = gradcheck.check(layer(onwards, nothing), draw((3, 2, 2)), world=3)
    assert found.verdict is Status.FAIL
    named = {(w.output, w.output_index, w.input, w.index) for w in found.wrong}
    assert named == {("out[rank 2]", (i, j), "x[rank 0]", (i, j)) for i in (0, 1) for j in (0, 1)}
    assert "d out[rank 2][0,1] / d x[rank 0][0,1]" in str(found)


def test_a_replicated_tensor_has_no_rank_in_its_name() -> None:
    found = check(same, same, "replicated", "split")
    assert {w.input for w in found.wrong} == {"x"}
    assert {w.output for w in found.wrong} <= {f"out[rank {r}]" for r in range(N)}


def test_outputs_of_different_shapes_are_named_as_any_other() -> None:
    """Rank r gives its first r + 1 elements; backward forgets the last of rank 2."""

    def first(x: Any) -> Any:
        return x[: dist.get_rank() + 1] * 1

    def backward(dy: Any) -> Any:
        rest = paddle.zeros([3 - dy.shape[0]], dy.dtype)
        dx = paddle.concat([dy, rest])
        return dx * paddle.to_tensor([1.0, 1.0, 0.0], dtype="float64") if dist.get_rank() == 2 else dx

    def right(dy: Any) -> Any:
        return paddle.concat([dy, paddle.zeros([3 - dy.shape[0]], dy.dtype)])

    found = gradcheck.check(layer(first, backward), draw((3, 3)), world=3)
    assert {(w.output, w.output_index, w.input, w.index) for w in found.wrong} == {
        ("out[rank 2]", (2,), "x[rank 2]", (2,))
    }
    assert gradcheck.check(layer(first, right), draw((3, 3)), world=3).verdict is Status.PASS


def test_a_replicated_output_that_differs_between_ranks_is_a_broken_contract() -> None:
    found = check(lambda x: x * (dist.get_rank() + 1), same, "replicated", "replicated")
    assert [d.code for d in found.diagnosis] == ["GC161"]
    assert "rank 0 has" in found.diagnosis[0].text


def test_gradients_of_a_replicated_input_that_differ_are_a_broken_contract() -> None:
    found = check(same, same, "replicated", "split")
    assert [d.code for d in found.diagnosis] == ["GC162", "GC152", "GC151"]
    assert "backward is right if they are declared replicated" in found.diagnosis[-1].text


def test_a_layer_that_is_right_for_a_replicated_output_is_told_to_declare_it() -> None:
    split = gradcheck.check(layer(summed, same), draw((N, 3)), world=N)
    assert (split.verdict, "--outputs replicated" in split.diagnosis[-1].text) == ("FAIL", True)
    assert gradcheck.check(layer(summed, same), draw((N, 3)), world=N, outputs="replicated").verdict == "PASS"
    wrong = gradcheck.check(layer(summed, lambda dy: 3 * dy), draw((N, 3)), world=N)
    assert not any("--outputs replicated" in cause.text for cause in wrong.diagnosis)


def test_a_mean_of_gradients_where_a_sum_is_right_is_named() -> None:
    found = check(same, lambda dy: summed(dy) / N, "replicated", "split")
    assert [d.code for d in found.diagnosis] == ["GC151", "GC151"]


def test_causes_speak_of_ranks_and_of_the_inputs_as_the_layer_has_them() -> None:
    def zero_elsewhere(dy: Any) -> Any:
        return dy.clone() if dist.get_rank() == 0 else paddle.zeros_like(dy)

    def said(found: CheckResult) -> str:
        return found.diagnosis[0].text

    assert said(check(summed, zero_elsewhere, "split", "replicated")).endswith("(x[rank 1][0,0] …)")
    largest = check(same, lambda dy: all_reduced(dy, dist.ReduceOp.MAX), "replicated", "split")
    assert largest.diagnosis[0].code == "GC110"  # a maximum is not linear
    mean = gradcheck.check(layer(lambda x: x * 1, lambda dy: dy / 16), draw((N, 16)), world=N)
    assert said(mean) == "backward takes 1/16 times the gradient that flows through `x * 1`"
    of_w = of_arrays(lambda x, w: ((x, w), x * w), lambda dy, x, w: (dy, dy * x), "split", "partial")
    assert said(of_w).startswith("backward forgets to multiply by x1")


def test_arrays_in_lists_stand_for_what_they_or_the_list_are_marked_as() -> None:
    def added(x: Any, y: Any) -> Any:
        return Added.apply(x, y)

    class Added(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy.clone(), summed(dy)

    split, whole = draw((N, 3)), gradcheck.replicated(draw(3))
    assert gradcheck.check(lambda both: added(*both), [split, whole], world=N).verdict is Status.PASS
    again = gradcheck.check(lambda both: added(*both), gradcheck.replicated([draw(3), draw(3)]), world=N)
    assert {name for name, (wrong, _) in again.wrong_counts.items() if wrong} <= {"both[0]"}
    assert "GC162" in {d.code for d in again.diagnosis}
    with pytest.raises(TypeError, match="for a world of ranks"):
        gradcheck.check(lambda both: added(*both), [split, whole])


# --------------------------------------------------------------------------- random numbers
def test_each_rank_draws_its_own_random_numbers_unless_all_draw_the_same() -> None:
    drawn: dict[str, list[Any]] = {"by-rank": [], "same": []}
    for random, found in drawn.items():

        def forward(x: Any, found: list[Any] = found) -> Any:
            if len(found) < 3:
                found.append(paddle.rand([8]).numpy())
            return x.clone()

        gradcheck.check(layer(forward, same), draw((3, 2)), world=3, random=random)
    a, b, c = drawn["by-rank"]
    assert not ((a == b) | (a == c) | (b == c)).any()
    a, b, c = drawn["same"]
    assert ((a == b) & (a == c)).all()


# --------------------------------------------------------------------------- from a file
SOURCE = """\
import paddle.distributed as dist
seen = []
class Sum(PyLayer):
    @staticmethod
    def forward(ctx, x, b):
        assert not seen or seen[0] == dist.get_rank()
        seen.append(dist.get_rank())
        y = x.clone()
        dist.all_reduce(y)
        return y + b
    @staticmethod
    def backward(ctx, dy):
        return dy.clone(), dy.clone()
"""
KEYS = """\
inputs: {x: {values: [[1.0, 2.0], [3.0, 5.0]]}, b: {values: [0.5, 0.5], ranks: replicated}}
outputs: {ranks: replicated}
"""


@pytest.fixture
def run(tmp_path: Path, process_as_before: None) -> Any:
    def result(keys: str, source: str = SOURCE) -> Result:
        file = tmp_path / "t.grad.yaml"
        head = "schema: gradcheck/v1\nscenarios:\n  - id: one\n"
        file.write_text(head + indent(f"layer: |\n{indent(source, '  ')}\n{keys}", " " * 4))
        return execute(case_of(file))

    return result


class TestAScenario:
    def test_each_rank_runs_the_source_in_a_namespace_of_its_own(self, run: Any) -> None:
        found = run("world: 2\n" + KEYS)
        assert (found.status, found.message) == (Status.PASS, "")

    def test_the_documented_run_leaves_the_output_and_gradients_of_the_world(self, run: Any) -> None:
        values = (
            "expect:\n  gradient: matches\n  values: {out: [4.5, 7.5], x.grad: [[1, 1], [1, 1]], b.grad: [1, 1]}\n"
            "  grads: {x: [[1, 1], [1, 1]], b: [1, 1]}\n  calls: {forward: 2, backward: 2}\n"
        )
        found = run("world: 2\n" + KEYS + values)
        assert (found.status, found.message) == (Status.PASS, "")

    def test_split_outputs_are_stacked_along_an_axis_of_ranks(self, run: Any) -> None:
        keys = KEYS.replace("outputs: {ranks: replicated}\n", "")
        wanted = "expect: {gradient: differs, values: {out: [[4.5, 7.5], [4.5, 7.5]], out.shape: [2, 2]}}"
        found = run("world: 2\n" + keys + wanted)
        assert (found.status, found.message) == (Status.PASS, "")

    def test_the_cotangent_of_the_documented_run_is_that_of_the_world(self, run: Any) -> None:
        keys = KEYS + "expect: {grads: {b: [2, 3]}, cotangent: [2.0, 3.0], gradient: matches}\n"
        assert run("world: 2\n" + keys).status is Status.PASS

    def test_a_world_along_axes_has_its_topology(self, run: Any) -> None:
        source = SOURCE.replace(
            "y = x.clone()\n", "y = x.clone()\n        hcg = dist.fleet.get_hybrid_communicate_group()\n"
        ).replace("dist.all_reduce(y)", "dist.all_reduce(y, group=hcg.get_model_parallel_group())")
        keys = "inputs: {x: [2], b: {shape: [2], ranks: replicated}}\n"
        whole = run("world: {mp: 2}\noutputs: {ranks: replicated}\n" + keys, source)
        assert (whole.status, whole.message) == (Status.PASS, "")
        apart = run("world: {mp: 2, dp: 2}\noutputs: {ranks: replicated}\n" + keys, source)
        assert apart.gradient.diagnosis[0].code == "GC161"  # each pair has a sum of its own

    def test_the_layout_is_that_of_each_rank_s_input(self, run: Any) -> None:
        source = SOURCE.replace("seen.append", "assert seen or not x.is_contiguous()\n        seen.append")
        keys = KEYS.replace("values: [[1.0, 2.0], [3.0, 5.0]]", "shape: [2, 3], layout: transposed").replace(
            "values: [0.5, 0.5]", "shape: [2, 3]"
        )
        assert run("world: 2\n" + keys, source).status is Status.PASS

    def test_more_words_than_outputs_are_an_error_that_says_so(self, run: Any) -> None:
        keys = KEYS.replace("{ranks: replicated}\n", "[{ranks: split}, {ranks: split}]\n")
        found = run("world: 2\n" + keys)
        assert found.status is Status.ERROR
        assert "outputs describes 2 Tensors, but the layer returns 1" in found.message

    def test_the_run_s_second_order_leaves_it_alone(self, tmp_path: Path, process_as_before: None) -> None:
        file = tmp_path / "t.grad.yaml"
        file.write_text(
            "schema: gradcheck/v1\nscenarios:\n  - id: one\n    world: 2\n    layer: {op: tanh}\n    inputs: {x: [2]}\n"
        )
        assert execute(case_of(file, order=2)).status is Status.PASS


# --------------------------------------------------------------------------- from a module
STATE = """\
import paddle.distributed as dist
RANK, GROUP = dist.get_rank(), None
def group():
    global GROUP
    made = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])] if GROUP is None else []
    GROUP = GROUP or made[RANK // 2]
    return GROUP
"""
OF_STATE = """\
import paddle.distributed as dist
from paddle.autograd import PyLayer
from state_of_ranks import group
class Sum(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y, group=group())
        return y
    @staticmethod
    def backward(ctx, dy):
        dx = dy.clone()
        dist.all_reduce(dx, group=group())
        return dx
"""


class TestAReference:
    @pytest.fixture
    def project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, process_as_before: None) -> Iterator[Path]:
        (tmp_path / "state_of_ranks.py").write_text(STATE)
        (tmp_path / "sums_of_ranks.py").write_text(OF_STATE)
        monkeypatch.chdir(tmp_path)
        yield tmp_path
        for name in ("state_of_ranks", "sums_of_ranks"):
            sys.modules.pop(name, None)

    def test_what_modules_keep_is_each_rank_s_own(self, project: Path) -> None:
        found = gradcheck.check("sums_of_ranks:Sum", draw((4, 2)), world=4)
        assert found.verdict is Status.PASS, found
        assert sys.modules["state_of_ranks"].GROUP is None  # there it is outside of a world

    def test_so_it_is_in_a_scenario(self, project: Path) -> None:
        file = project / "t.grad.yaml"
        keys = 'world: 4\n    layer: {ref: "sums_of_ranks:Sum"}\n    inputs: {x: [2]}\n'
        file.write_text(f"schema: gradcheck/v1\nscenarios:\n  - id: one\n    {keys}")
        found = execute(case_of(file))
        assert (found.status, found.message) == (Status.PASS, "")

    def test_a_module_that_waits_for_ranks_while_it_is_imported_is_an_error(self, project: Path) -> None:
        (project / "state_of_ranks.py").write_text(f"{STATE}dist.barrier()\n")
        with pytest.raises(ImportError, match="waits for other ranks during its import"):
            gradcheck.check("sums_of_ranks:Sum", draw((4, 2)), world=4)


# --------------------------------------------------------------------------- causes that take more than one collective
def of_arrays(forward: Any, backward: Any, *stands: str, outputs: str = "split") -> CheckResult:
    """The check on four ranks of a layer of several inputs, each of 4 by 4."""

    class Layer(PyLayer):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.saved, y = forward(*inputs)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return backward(dy, *ctx.saved)

    arrays = [draw((N, N, N)) if one == "split" else getattr(gradcheck, one)(draw((N, N))) for one in stands]
    return gradcheck.check(Layer, *arrays, world=N, outputs=outputs)


def codes_and_lines(found: CheckResult) -> list[tuple[str, str]]:
    return [(d.code, d.source_line[d.column : d.end_column]) for d in found.diagnosis]


def test_a_sum_where_each_rank_has_its_own_is_named_at_the_line_of_forward() -> None:
    def forward(x: Any, w: Any) -> Any:
        h = paddle.tanh(x)
        return (x, w, h), summed(paddle.matmul(h, w))

    def backward(dy: Any, x: Any, w: Any, h: Any) -> Any:
        dh = summed(paddle.matmul(dy, w, transpose_y=True))
        return dh * (1 - h * h), paddle.matmul(h, dy, transpose_x=True)

    found = of_arrays(forward, backward, "split", "split", outputs="replicated")
    assert codes_and_lines(found)[:1] == [("GC151", "paddle.matmul(h, w)")]
    assert "summed over the ranks, although each rank has its own" in found.diagnosis[0].text


def test_a_mistake_that_spoils_one_of_two_inputs_alone_is_named() -> None:
    """What the second of two exchanges gives back is right for x, and forgotten for w."""

    def forward(x: Any, w: Any) -> Any:
        y = paddle.empty_like(x)
        dist.alltoall_single(y, x * w)
        return (x, w), y

    def backward(dy: Any, x: Any, w: Any) -> Any:
        return exchanged(dy) * w, dy * x

    found = of_arrays(forward, backward, "split", "split")
    assert codes_and_lines(found) == [("GC152", "dist.alltoall_single(y, x * w)")]
    assert {name for name, (wrong, _) in found.wrong_counts.items() if wrong} == {"x1"}


def test_a_maximum_that_cancels_does_not_hide_what_is_not_summed() -> None:
    """Softmax over the ranks; backward's inner product is each rank's own."""

    def forward(x: Any) -> Any:
        most = x.max(axis=-1, keepdim=True)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        exps = paddle.exp(x - most)
        total = exps.sum(axis=-1, keepdim=True)
        dist.all_reduce(total)
        return (exps / total,), exps / total

    def backward(dy: Any, y: Any) -> Any:
        return y * (dy - (dy * y).sum(axis=-1, keepdim=True))

    assert codes_and_lines(of_arrays(forward, backward, "split")) == [("GC152", "dist.all_reduce(total)")]


def neighbour_s_part(dy: Any) -> Any:
    return paddle.split(dy, N, 0)[(dist.get_rank() + 1) % N]


def gathered_in_reverse(dy: Any) -> Any:
    parts: list[Any] = []
    dist.all_gather(parts, dy)
    return paddle.concat(parts[::-1], 0)


def sent_on(x: Any) -> Any:
    y = paddle.empty_like(x)
    here = dist.get_rank()
    for task in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, (here + 1) % N), dist.P2POp(dist.irecv, y, (here - 1) % N)]
    ):
        task.wait()
    return y


@pytest.mark.parametrize(
    ("forward", "backward", "outputs", "at", "says"),
    [
        (
            gathered,
            neighbour_s_part,
            "replicated",
            "dist.all_gather(parts, x)",
            "the gradient is that of the rank after",
        ),
        (summed_part, gathered_in_reverse, "split", "dist.reduce_scatter(y, x)", "each part is that of the opposite"),
        (sent_on, sent_on, "split", "", "x: the gradient goes to another rank: rank 0 returns that of rank 2"),
    ],
)
def test_a_gradient_of_another_rank_is_named(forward: Any, backward: Any, outputs: str, at: str, says: str) -> None:
    found = check(forward, backward, "split", outputs)
    assert found.diagnosis[0].code == "GC104"
    assert says in found.diagnosis[0].text
    assert not at or codes_and_lines(found)[0] == ("GC104", at)


@pytest.mark.parametrize(
    ("axis", "code", "whose"),
    [("check", "GC151", "all ranks"), ("data", "GC152", "the ranks at the same position of each group")],
)
def test_a_sum_over_another_group_is_named(axis: str, code: str, whose: str) -> None:
    def forward(x: Any) -> Any:
        y = x.clone()
        dist.all_reduce(y, group=dist.fleet.get_hybrid_communicate_group().get_model_parallel_group())
        return y

    def backward(dy: Any) -> Any:
        dx = dy.clone()
        hcg = dist.fleet.get_hybrid_communicate_group()
        dist.all_reduce(dx, group=getattr(hcg, f"get_{axis}_parallel_group")())
        return dx

    assert gradcheck.check(layer(forward, forward), draw((4, 2)), world={"mp": 2, "dp": 2}).verdict is Status.PASS
    found = gradcheck.check(layer(forward, backward), draw((4, 2)), world={"mp": 2, "dp": 2})
    assert found.diagnosis[0].code == code
    assert found.diagnosis[0].text.endswith(f"the gradient is summed over {whose}, not over those of its group")


def test_the_same_mistake_at_two_collectives_is_named_at_both() -> None:
    def forward(x: Any, w: Any) -> Any:
        parts: list[Any] = []
        dist.all_gather(parts, x)
        others: list[Any] = []
        dist.all_gather(others, w)
        whole, other = paddle.concat(parts, 0), paddle.concat(others, 0)
        return (whole, other), whole * other

    def backward(dy: Any, whole: Any, other: Any) -> Any:
        return own_part(dy * other), own_part(dy * whole)

    found = of_arrays(forward, backward, "split", "split")
    assert codes_and_lines(found)[:2] == [
        ("GC152", "dist.all_gather(parts, x)"),
        ("GC152", "dist.all_gather(others, w)"),
    ]


def test_a_factor_at_the_end_is_not_told_at_each_of_two_collectives() -> None:
    def forward(x: Any) -> Any:
        first = summed(paddle.exp(x))
        second = x * x
        dist.all_reduce(second)
        return (x,), first + second

    def backward(dy: Any, x: Any) -> Any:
        return (paddle.exp(x) + 2 * x) * dy / N

    found = of_arrays(forward, backward, "split", outputs="replicated")
    assert [d.text for d in found.diagnosis] == ["x0: the gradient is divided by the number of ranks, 4"]


def test_what_is_summed_again_is_named_at_the_collective() -> None:
    found = check(summed, summed, "split", "replicated")
    assert codes_and_lines(found)[0] == ("GC151", "dist.all_reduce(y)")


def test_a_factor_that_has_nothing_to_do_with_ranks_keeps_its_name() -> None:
    found = check(lambda x: paddle.tanh(x) * 1, lambda dy: dy * 3, "split", "split")
    assert not {d.code for d in found.diagnosis} & {"GC151", "GC152"}


def test_the_largest_world_is_checked_too() -> None:
    found = gradcheck.check(layer(summed, same), draw((64, 2)), world=64, outputs="replicated")
    assert found.verdict is Status.PASS
