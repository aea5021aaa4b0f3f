"""Scenarios in a world of ranks: what they say of it, and what is told of mistakes in that."""

from __future__ import annotations

import pytest

LAYER = "layer: {op: tanh}\n"
INPUT = LAYER + "inputs: {x: {shape: [2]}}\n"
PY_LAYER = """\
layer: |
  class L(PyLayer):
      @staticmethod
      def forward(ctx, x):
          return x
      @staticmethod
      def backward(ctx, dy):
          return dy
"""
STATIC = "layer: |\n  def forward_fn(x):\n      return x\n  def backward_fn(dy):\n      return dy\n"


def scenario(accept, body: str):
    head = "schema: gradcheck/v1\nscenarios:\n  - id: one\n"
    return accept(head + "".join(f"    {line}\n" for line in body.splitlines())).scenarios[0]


class TestWhatIsSaid:
    def test_a_world_is_a_number_of_ranks_or_of_ranks_along_axes(self, accept):
        assert scenario(accept, INPUT + "world: 4").world_at({}) == 4
        assert scenario(accept, INPUT + "world: {mp: 2, dp: 2}").world_at({}) == {"mp": 2, "dp": 2}
        assert scenario(accept, INPUT).world_at({}) is None

    def test_the_matrix_may_give_it_also_as_a_size(self, accept):
        one = scenario(accept, LAYER + "inputs: {x: {shape: [world, 2], ranks: replicated}}\nmatrix: {world: [2, 4]}")
        assert one.world_at({"world": 4}) == 4
        assert one.input_at("x", {"world": 4}).shape == (4, 2)

    @pytest.mark.parametrize(
        ("ranks", "shape"), [("", (4, 2)), ("split", (4, 2)), ("replicated", (2,)), ("partial", (2,))]
    )
    def test_a_split_input_has_an_axis_of_the_ranks_in_front(self, accept, ranks, shape):
        said = f", ranks: {ranks}" if ranks else ""
        one = scenario(accept, f"{LAYER}inputs: {{x: {{shape: [2]{said}}}}}\nworld: {{mp: 2, dp: 2}}")
        assert one.input_at("x", {}).shape == shape

    def test_an_input_of_no_world_has_its_own_shape(self, accept):
        assert scenario(accept, INPUT).input_at("x", {}).shape == (2,)

    def test_outputs_are_split_unless_it_is_said_of_all_or_each(self, accept):
        assert scenario(accept, INPUT + "world: 2").output_placements == ("split",)
        assert scenario(accept, INPUT + "world: 2\noutputs: {ranks: replicated}").output_placements == ("replicated",)
        each = "outputs: [{ranks: split}, {ranks: replicated}]"
        assert scenario(accept, INPUT + f"world: 2\n{each}").output_placements == ("split", "replicated")

    def test_gradients_of_split_inputs_have_the_axis_too(self, accept):
        grads = "expect: {grads: {x: [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]}}"
        assert scenario(accept, INPUT + f"world: 3\n{grads}").expect.grads["x"]

    def test_a_case_and_one_that_extends_take_the_world_over(self, accept):
        spec = accept(
            "schema: gradcheck/v1\nscenarios:\n"
            "  - {id: one, world: 4, random: same, layer: {op: tanh}, inputs: {x: [2]}, cases: [{world: 2}, {id: b}]}\n"
            "  - {id: two, extends: one, world: 8}\n"
        )
        assert [(s.id, s.world, s.random) for s in spec.scenarios] == [
            ("one", 2, "same"), ("one-b", 4, "same"), ("two", 8, "same")
        ]  # fmt: skip

    def test_a_script_that_extends_a_layer_in_a_world_is_in_none(self, accept):
        spec = accept(
            "schema: gradcheck/v1\nscenarios:\n"
            "  - {id: one, world: 4, outputs: {ranks: replicated}, layer: {op: tanh}, inputs: {x: [2]}}\n"
            "  - {id: two, extends: one, script: 'x = 1', expect: {values: {x: 1}}}\n"
        )
        assert spec.scenarios[1].world is None


@pytest.mark.parametrize(
    ("body", "message", "help"),
    [
        # without a world
        (INPUT + "outputs: {ranks: split}", "3:1 'outputs' has no effect without a world", "such as 'world: 4'"),
        (INPUT + "random: same", "3:1 'random' has no effect without a world", "such as 'world: 4'"),
        (LAYER + "inputs: {x: {shape: [2], ranks: split}}", "2:26 'ranks' has no effect without a world", "remove it"),
        # the world
        (INPUT + "world: 0", "3:8 world must be at least 1, not 0", "a number, or ranks along"),
        (INPUT + "world: 65", "3:8 world must be at most 64, not 65", "a number, or ranks along"),
        (INPUT + "world: 2.0", "3:8 world must be a whole number, not 2.0", "write 2"),
        (INPUT + "world: '2'", '3:8 world must be a whole number, not "2"', "remove the quotes"),
        (INPUT + "world: true", "3:8 world must be a whole number, not true", ""),
        (INPUT + "world: [2]", "3:8 world must be a whole number, not a list", ""),
        (INPUT + "world: {}", "3:8 world must not be empty", "such as {mp: 2, dp: 2}"),
        (INPUT + "world: {xp: 2}", "3:9 unknown key 'xp'", "write dp, pp, sharding, sep or mp"),
        (INPUT + "world: {tensor: 2}", "3:9 unknown key 'tensor'", "write dp, pp, sharding, sep or mp"),
        (INPUT + "world: {mp: 0}", "3:13 mp must be at least 1, not 0", ""),
        (INPUT + "world: {mp: x}", '3:13 mp must be a whole number, not "x"', ""),
        (INPUT + "world: {mp: 16, dp: 8}", "3:8 the world has 128 ranks, at most 64 are allowed", "2, 3 or 4 ranks"),
        (INPUT + "matrix: {world: [2, 0]}", "3:21 matrix: '0' is not a number of ranks", "from 1 to 64"),
        (INPUT + "matrix: {world: [two]}", "3:18 matrix: 'two' is not a number of ranks", "from 1 to 64"),
        (
            INPUT + "world: 2\nmatrix: {world: [2]}",
            "3:1 both the matrix and the scenario give a world",
            "keep one of the two",
        ),
        # what Tensors stand for
        (
            LAYER + "inputs: {x: {shape: [2], ranks: replicate}}\nworld: 2",
            "2:33 unknown ranks 'replicate'",
            "did you mean 'replicated'?",
        ),
        (
            INPUT + "world: 2\noutputs: replicated",
            '4:10 an output must be a mapping, not "replicated"',
            "{ranks: replicated}",
        ),
        (INPUT + "world: 2\noutputs: []", "4:10 outputs must not be empty", "add an entry, or remove the key"),
        (INPUT + "world: 2\noutputs: {}", "4:10 an output needs the key 'ranks'", "add 'ranks: …'"),
        (INPUT + "world: 2\noutputs: {ranks: partial}", "4:18 unknown ranks 'partial'", "split or replicated"),
        (INPUT + "world: 2\noutputs: [{rank: split}]", "4:12 unknown key 'rank' in an output", "did you mean 'ranks'"),
        (INPUT + "world: 2\nrandom: by-ranks", "4:9 unknown random 'by-ranks'", "did you mean 'by-rank'?"),
        # values and gradients of all ranks
        (
            LAYER + "inputs: {x: {values: [1.0, 2.0, 3.0]}}\nworld: 2",
            "2:22 input 'x' is split: its values need a first axis of length 2, with an",
            "'ranks: replicated'",
        ),
        (
            LAYER + "inputs: {x: {values: 1.0}}\nworld: 1",
            "2:22 input 'x' is split: its values need a first axis of length 1, with an",
            "list the values of each rank",
        ),
        (
            LAYER + "inputs: {x: {values: [1.0, 2.0]}}\nmatrix: {world: [2, 4]}",
            "2:22 input 'x' is split: its values need a first axis of length 4, with an",
            "list the values of each rank",
        ),
        (
            INPUT + "world: 3\nexpect: {grads: {x: [1.0, 1.0]}}",
            "4:21 grads: the gradient of 'x' has shape [2], the input [3, 2]",
            "a gradient has the shape of its input",
        ),
        (
            LAYER + "inputs: {x: [99999999]}\nworld: 2",
            "2:13 input 'x' has 199,999,998 elements in 1.49 GiB",
            "at most 134,217,728 (2**27) in 1",
        ),
        # what is not done
        (
            INPUT + "world: 2\nexpect: {order: 2}",
            "4:10 'order: 2' is not supported with a world",
            "only the derivative",
        ),
        (
            INPUT + "world: 2\nbackends: {paddle: {observed: {order: 2}, reason: r}}",
            "4:32 'order: 2' is not supported with a world",
            "only the derivative",
        ),
        (
            "script: x = 1\nworld: 2\nexpect: {values: {x: 1}}",
            "2:1 a script does not run in a world: only a 'layer' does",
            "as 'layer'",
        ),
        (
            PY_LAYER + "script: x = 1\nworld: 2",
            "10:1 a script does not run in a world: only a 'layer' does",
            "as 'layer'",
        ),
        (
            "script: x = world\nmatrix: {world: [2]}\nexpect: {values: {x: 2}}",
            "2:10 a script does not run in a world: only a 'layer' does",
            "as 'layer'",
        ),
        (
            STATIC + "inputs: {x: [2]}\nworld: 2",
            "7:1 a static layer (forward_fn) does not run in a world",
            "as a PyLayer",
        ),
        (STATIC + "inputs: {x: [2]}\nmatrix: {world: [2]}", "7:10 a static layer (forward_fn) does not run", "PyLayer"),
    ],
)
def test_a_mistake_is_told_where_it_stands_and_once(diagnose, body, message, help):
    head = "schema: gradcheck/v1\nscenarios:\n  - id: one\n"
    found = diagnose(head + "".join(f"    {line}\n" for line in body.splitlines()))
    assert [f"{one.line - 3}:{one.column - 4} {one.message}"[: len(message)] for one in found] == [message]
    assert help in found[0].help
