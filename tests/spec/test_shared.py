"""What the scenarios of a file share: layers by name, cases of one scenario, sizes from the matrix."""

from __future__ import annotations

import pytest

from gradcheck.case.execute import execute
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.read import read

LAYERS = """\
schema: gradcheck/v1
layers:
  tanh: {op: tanh}
  double: |
    class Double(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, dy):
            return dy * 2
scenarios:
"""
USED = """\
  - {id: t, layer: tanh, inputs: {x: [2]}}
  - {id: d, layer: double, inputs: {x: [2]}}
"""
CASES = """\
schema: gradcheck/v1
scenarios:
  - id: tanh
    rules: [any-arguments]
    layer: {op: tanh}
    inputs: {x: [2]}
    cases:
      - {expect: {gradient: matches}}
      - {id: twice, expect: {order: 2}, rules: [each-apply-has-its-own-context, {forward-records-nothing: "a passage"}]}
      - id: of-three
        inputs: {x: {values: [1.0, 2.0, 3.0]}}
        matrix: {dtype: [float32, float64]}
"""


def run(path):
    return [execute(case) for case in plan([read(path)], ["numpy"])]


def test_an_id_and_a_layer_are_all_that_is_required(accept):
    scenario = accept("schema: gradcheck/v1\nscenarios: [{id: one, layer: {op: tanh}, inputs: {x: [2, 3]}}]").scenarios[
        0
    ]
    assert (scenario.title, scenario.source) == (None, None)
    assert scenario.inputs["x"].shape == (2, 3)
    assert scenario.expect.gradient == "matches"


class TestLayers:
    def test_a_layer_that_is_named_is_that_of_the_file_at_its_place(self, accept):
        tanh, double = accept(LAYERS + USED).scenarios
        assert tanh.layer.op == "tanh"
        assert double.layer.startswith("class Double(PyLayer):")
        assert double.line_of("layer") == 5

    def test_a_mistake_in_its_code_is_told_once_where_it_stands(self, mistakes):
        text = LAYERS.replace("return dy * 2", "return dy *") + USED + "  - {id: e, extends: d}\n"
        assert mistakes(text) == ["11:24 the layer is not valid Python: invalid syntax"]

    def test_a_wrong_name_brings_up_the_one_that_was_meant(self, diagnose):
        (one,) = diagnose(LAYERS + USED + "  - {id: e, layer: duble, inputs: {x: [2]}}\n")
        assert (one.line, one.column, one.message) == (15, 20, "this file has no layer 'duble'")
        assert one.help == "did you mean 'double'?"

    def test_a_name_in_a_case_is_looked_up_as_well(self, diagnose):
        (one,) = diagnose(LAYERS + USED + "  - {id: e, inputs: {x: [2]}, cases: [{id: f, layer: nothing}]}\n")
        assert (one.line, one.column) == (15, 54)
        assert "add it to 'layers:'" in one.help

    @pytest.mark.parametrize(
        ("layer", "message"),
        [
            ("{op: tahn}", "3:11 unknown op 'tahn'"),
            ("3", "3:6 layer must be Python source, a layer's name, {ref: …} or {op: …}, not 3"),
            ("{ops: tanh}", "3:7 unknown key 'ops' in layer"),
        ],
    )
    def test_what_is_no_layer_is_told_once(self, mistakes, layer, message):
        text = f"schema: gradcheck/v1\nlayers:\n  a: {layer}\nscenarios:\n  - {{id: a, layer: a, inputs: {{x: [2]}}}}\n"
        assert mistakes(text) == [message]

    def test_a_name_is_kebab_case(self, mistakes):
        text = LAYERS.replace("tanh: {", "Tan_h: {") + USED.replace("layer: tanh", "layer: Tan_h")
        assert mistakes(text) == ["3:3 key 'Tan_h' is malformed"]

    def test_a_program_runs_behind_the_layer_that_it_uses(self, tmp_path):
        path = tmp_path / "t.grad.yaml"
        script = """\
  - id: program
    layer: double
    script: |
      x = paddle.to_tensor([1.0], stop_gradient=False)
      Double.apply(x).backward()
    expect: {values: {x.grad: [2.0]}}
"""
        path.write_text(LAYERS + USED + script)
        assert [one.status for one in run(path)] == [Status.PASS] * 3

    def test_an_error_in_such_a_program_is_told_with_its_line(self, tmp_path):
        path = tmp_path / "t.grad.yaml"
        path.write_text(
            LAYERS + USED + "  - id: p\n    layer: double\n    script: |\n      x = 1\n      Double.aply(x)\n"
        )
        failed = run(path)[-1]
        assert (failed.status, "line 19 of the spec" in failed.message) == (Status.ERROR, True)


class TestCases:
    def test_each_is_a_scenario_with_an_id_behind_the_scenario_s(self, accept):
        first, twice, three = accept(CASES).scenarios
        assert [first.id, twice.id, three.id] == ["tanh", "tanh-twice", "tanh-of-three"]
        assert [first.expect.order, twice.expect.order, three.expect.order] == [1, 2, 1]
        assert three.inputs["x"].values == (1.0, 2.0, 3.0)
        assert (first.begins, first.line, twice.line, three.line) == (3, 8, 9, 10)

    def test_rules_are_tags_too(self, accept):
        first, twice, _ = accept(CASES).scenarios
        assert first.tags == ("any-arguments",)
        assert twice.tags == ("each-apply-has-its-own-context", "forward-records-nothing")
        assert twice.rules[1] == {"forward-records-nothing": "a passage"}

    def test_they_run(self, tmp_path):
        path = tmp_path / "t.grad.yaml"
        path.write_text(CASES)
        results = run(path)
        assert [one.name for one in results] == [
            "tanh@numpy", "tanh-twice@numpy", "tanh-of-three/dtype=float32@numpy", "tanh-of-three/dtype=float64@numpy",
        ]  # fmt: skip
        assert {one.status for one in results} == {Status.PASS}

    def test_a_case_that_is_a_program_runs_behind_the_layer(self, accept):
        shared = LAYERS + USED + "  - id: both\n    layer: double\n    inputs: {x: [2]}\n    cases:\n"
        cases = (
            "      - {id: layer}\n      - {id: program, script: x = Double, expect: {values: {x is Double: true}}}\n"
        )
        program = accept(shared + cases).scenarios[-1]
        assert program.script == "x = Double"
        assert program.layer is not None
        assert program.inputs == {}

    def test_a_scenario_with_cases_can_be_extended(self, accept):
        *_, other = accept(CASES + "  - {id: other, extends: tanh, title: Another}\n").scenarios
        assert (other.id, other.layer.op, other.tags) == ("other", "tanh", ("any-arguments",))

    @pytest.mark.parametrize(
        ("cases", "message", "help"),
        [
            ("[]", "3:45 cases must not be empty", "add an entry"),
            ("{id: a}", "3:45 cases must be a list, not a mapping", "begin each entry with"),
            ("[a]", '3:46 a scenario must be a mapping, not "a"', "write {id"),
            ("[{id: a}, {id: a}]", "3:60 duplicate id 'one-a', first given in line 3", "rename"),
            ("[{}, {}]", "3:50 duplicate id 'one', first given in line 3", "add 'id: …' to the case"),
            ("[{title: a}, {name: b, id: c}]", "3:59 unknown key 'name' in a scenario", "remove it: 'id'"),
            ("[{id: A}]", "3:51 id 'A' is malformed", "such as 'a'"),
            ("[{id: a, cases: []}]", "3:54 a case has no 'cases'", "as a scenario"),
            ("[{id: a, extends: one}]", "3:54 a case has no 'extends'", "as a scenario"),
            ("[{id: a, expct: {}}]", "3:54 unknown key 'expct' in a scenario", "did you mean 'expect'?"),
            ("[{id: a, expect: {grads: {y: [1.0]}}}]", "3:71 grads: there is no input 'y'", "write x"),
            ("[{id: a, begins: 3}]", "3:54 unknown key 'begins' in a scenario", "the keys of a scenario"),
        ],
    )
    def test_a_mistake_is_told_where_it_stands(self, diagnose, cases, message, help):
        keys = "id: one, layer: {op: tanh}, inputs: {x: [2]}"
        head = "schema: gradcheck/v1\nscenarios:\n"
        text = head + "  - {" + keys + ", cases: " + cases + "}\n"
        found = diagnose(text)
        shift = len("  - {" + keys + ", cases: ") + 1 - 45
        line, column = message.split(" ")[0].split(":")
        place = f"{line}:{int(column) + (shift if int(column) > 40 else 0)}"
        assert [f"{one.line}:{one.column} {one.message}" for one in found] == [f"{place} {message.partition(' ')[2]}"]
        assert help in found[0].help

    def test_cases_of_two_scenarios_of_one_id_are_not_told_to_have_an_id(self, diagnose):
        keys = "id: one, layer: {op: tanh}, inputs: {x: [2]}"
        text = "schema: gradcheck/v1\nscenarios:\n  - {" + keys + "}\n  - {" + keys + ", cases: [{title: a}]}\n"
        (duplicate,) = diagnose(text)
        assert (duplicate.line, duplicate.column, duplicate.help) == (4, 10, "rename or remove one of the two")

    @pytest.mark.parametrize("key", ["name: b", "case: b"])
    def test_a_case_without_an_id_is_not_told_that_it_has_one(self, diagnose, key):
        keys = "id: one, layer: {op: tanh}, inputs: {x: [2]}, cases: [{title: a}, {" + key + "}]"
        duplicate, unknown = diagnose("schema: gradcheck/v1\nscenarios:\n  - {" + keys + "}\n")
        assert unknown.help.startswith(("write 'id: …'", "the keys of a scenario are id,"))
        assert duplicate.help == "add 'id: …' to the case"


MATRIX = """\
schema: gradcheck/v1
scenarios:
  - id: one
    layer: {op: tanh}
    inputs: {x: [2, n], y: {shape: [2], layout: transposed, stop_gradient: true}}
    call: paddle.tanh(x) * y.sum()
    matrix: {n: [1, 3], layout: [contiguous, strided], dtype: [float32, float64]}
"""


class TestMatrix:
    def test_it_reaches_shapes_layouts_and_dtypes(self, accept):
        one = accept(MATRIX).scenarios[0]
        point = {"n": 3, "layout": "strided", "dtype": "float32"}
        x, y = (one.inputs[name].at(point) for name in "xy")
        assert (x.shape, x.layout, x.dtype) == ((2, 3), "strided", "float32")
        assert (y.shape, y.layout, y.dtype) == ((2,), "transposed", "float32")

    def test_all_its_points_run(self, tmp_path):
        path = tmp_path / "t.grad.yaml"
        path.write_text(MATRIX)
        assert [one.status for one in run(path)] == [Status.PASS] * 8

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("[2, n]", "[2, m]", "5:21 shape: neither the matrix nor sizes has 'm'"),
            ("[2, n]", "[2, -1]", "5:21 shape[1] must be at least 0, not -1"),
            ("[2, n]", "[2, 2x]", '5:21 shape[1] must be a whole number, not "2x"'),
            ("n: [1, 3]", "n: [1, 3.5]", "7:21 'n' is a size, which must be a whole number, not 3.5"),
            ("n: [1, 3]", "n: [1, -3]", "7:21 'n' is a size, which must be a whole number, not -3"),
            ("n: [1, 3]", "n: [1, 99999999]", "5:17 input 'x' has 199,999,998 elements in 1.49 GiB"),
            ("strided]", "stridded]", "7:46 unknown layout 'stridded'"),
        ],
    )
    def test_a_mistake_in_it(self, mistakes, old, new, message):
        found = [one for one in mistakes(MATRIX.replace(old, new)) if "nothing uses" not in one]
        assert len(found) == 1
        assert found[0].startswith(message)
