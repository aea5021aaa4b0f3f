"""What a valid file reads as: defaults, extends, positions, the JSON round trip."""

from __future__ import annotations

import math

import pytest

from gradcheck.spec.model import NO_DEVIATION, Scenario
from gradcheck.spec.read import load, read

FULL = """\
schema: gradcheck/v1
defaults: {dtype: float32, seed: 7, tags: [common], source: {document: The document, url: "https://d.org"}}
scenarios:
  - id: tanh
    title: A tanh layer
    source: {section: apply}
    tags: [own]
    layer: |

      class Tanh(PyLayer):
          backward = staticmethod(lambda ctx, dy: dy)
          def forward(ctx, x): return x
    inputs:
      x: {shape: [2, 3]}
      labels: {shape: [2], dtype: int64, init: integers, high: 3}
    call: Tanh.apply(x, labels)
    matrix: {dtype: [float32, float64]}
    rtol: 1e-6
    expect:
      grads: {x: [[1, 2, 3], [.inf, -.inf, 0]], labels: null}
      values:
        x.grad is None: true
        "out": {value: [1.5, null, "no"], rtol: 1e-3}
    backends:
      paddle:
        xfail: {reason: it differs}
        expect: {order: 2}
  - id: script
    title: "12"
    source: {document: Another}
    script: x = 1
    expect: {raises: {type: ValueError, phase: backward, message: {re: "a+"}}}
"""


def test_every_part_of_the_format(accept):
    tanh, script = accept(FULL).scenarios
    assert (tanh.seed, tanh.tags, tanh.rtol) == (7, ("common", "own"), 1e-6)
    assert (tanh.source.document, tanh.source.section, tanh.source.url) == ("The document", "apply", "https://d.org")
    assert tanh.layer.lstrip().startswith("class Tanh")
    assert tanh.inputs["x"].shape == (2, 3)
    assert tanh.inputs["labels"].limits == (0.0, 3)
    assert tanh.expect.grads == {"x": ((1, 2, 3), (math.inf, -math.inf, 0)), "labels": None}
    assert tanh.expect.values["x.grad is None"] is True
    assert tanh.expect.values["out"].value == (1.5, None, "no")
    assert script.source.url is None, "a url of the defaults does not belong to another document"
    assert script.expect.raises.message.re == "a+"


def test_defaults_give_the_dtype_and_the_matrix_changes_only_what_does_not_name_its_own(accept):
    tanh = accept(FULL).scenarios[0]
    assert (tanh.inputs["x"].dtype, tanh.inputs["labels"].dtype) == ("float32", "int64")
    assert tanh.inputs["x"].at({"dtype": "float64"}).dtype == "float64"
    assert tanh.inputs["x"].at({}).dtype == "float32"
    assert tanh.inputs["labels"].at({"dtype": "float64"}).dtype == "int64"


def test_the_matrix_of_the_defaults_is_every_layer_s_unless_it_says_otherwise_and_no_program_s(accept):
    text = """
        schema: gradcheck/v1
        defaults: {matrix: {dtype: [float32, float64]}}
        scenarios:
          - {id: plain, layer: {op: tanh}, inputs: {x: [2]}}
          - {id: own, layer: {op: tanh}, inputs: {x: [n]}, matrix: {dtype: [bfloat16], n: [0, 1]}}
          - {id: added, extends: plain, inputs: {x: [n]}, matrix: {n: [3]}}
          - {id: program, script: x = 1}
    """
    plain, own, added, program = (scenario.matrix for scenario in accept(text).scenarios)
    assert plain == {"dtype": ("float32", "float64")}
    assert own == {"dtype": ("bfloat16",), "n": (0, 1)}
    assert added == {"dtype": ("float32", "float64"), "n": (3,)}
    assert program == {}


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("layer: {op: tanh}\n    inputs: {x: {shape: [2]}}", "matches"),
        ("layer: {op: tanh}\n    inputs: {x: {shape: [2]}}\n    expect: {gradient: differs}", "differs"),
        ("layer: {op: tanh}\n    inputs: {x: {shape: [2]}}\n    expect: {raises: {type: E}}", "unchecked"),
        (
            "layer: {op: tanh}\n    inputs: {x: {shape: [2], stop_gradient: true}}\n    expect: {values: {x: 1}}",
            "unchecked",
        ),
        (
            "layer: {op: tanh}\n    inputs: {x: {shape: [2], dtype: int64, init: ones}}\n    expect: {values: {x: 1}}",
            "unchecked",
        ),
        ("script: x = 1", "unchecked"),
    ],
)
def test_the_gradient_is_checked_by_default_where_there_is_one(accept, body, verdict):
    head = "schema: gradcheck/v1\nscenarios:\n  - id: a\n    title: A\n    source: {document: d}\n    "
    assert accept(head + body).scenarios[0].expect.gradient == verdict


def test_a_backend_s_expectations_are_complete(accept):
    tanh = accept(FULL).scenarios[0]
    assert tanh.on("numpy") is NO_DEVIATION
    special = tanh.on("paddle").expect
    assert (special.order, special.grads, special.gradient) == (2, tanh.expect.grads, "matches")


def test_each_version_of_a_backend_has_what_is_said_of_it(accept):
    text = """
        schema: gradcheck/v1
        scenarios:
          - id: a
            title: A
            source: {document: d}
            layer: {op: tanh}
            inputs: {x: {shape: [1]}}
            expect: {order: 2, grads: {x: [3.0]}}
            backends:
              paddle:
                - {versions: "<3.0", observed: {grads: {x: null}}, reason: old}
                - {versions: ">=3.0,<3.3", expect: {grads: {x: [4.0]}}}
        """
    scenario = accept(text).scenarios[0]
    old, new = scenario.on("paddle", "2.6.2"), scenario.on("paddle", "3.2.2")
    assert (old.reason, old.observed.grads) == ("old", {"x": None})
    assert (old.observed.order, old.observed.gradient) == (1, "unchecked")  # complete by itself
    assert (new.expect.order, new.expect.grads, new.expect.gradient) == (2, {"x": (4.0,)}, "matches")
    assert scenario.on("paddle", "3.3.1") is NO_DEVIATION
    assert scenario.on("paddle", "") is NO_DEVIATION  # a version that is not known is in no range
    assert scenario.on("numpy", "3.0") is NO_DEVIATION
    assert ">=3.0,<3.3" in text.split("\n")[scenario.line_of("backends.paddle.1.expect") - 1]


def test_positions_lead_back_to_the_file(accept):
    tanh, script = accept(FULL).scenarios
    lines = FULL.split("\n")
    assert (tanh.line, tanh.column, tanh.path) == (4, 5, "t.grad.yaml")
    assert tanh.line_of("layer") == 9
    code_line = 2  # of the layer, as a traceback has it
    assert "class Tanh" in lines[tanh.line_of("layer") + code_line - 2]
    assert "x.grad is None" in lines[tanh.line_of("expect.values.x.grad is None") - 1]
    assert "grads:" in lines[tanh.line_of("expect.grads") - 1]
    assert "order: 2" in lines[tanh.line_of("backends.paddle.expect.order") - 1]
    assert script.line_of("script") == lines.index("    script: x = 1") + 1
    assert script.line_of("timeout") == script.line, "what is not there has the scenario's line"


def test_scenarios_survive_json(accept):
    for scenario in accept(FULL).scenarios:
        again = Scenario.model_validate_json(scenario.model_dump_json())
        assert again == scenario
        assert repr(again) == repr(scenario), "1 and 1.0 and true stay what they are"


def test_nan_survives_json(accept):
    text = FULL.replace("[[1, 2, 3], [.inf, -.inf, 0]]", "[[.nan, 2, 3], [1.0, 1, 0]]")
    scenario = accept(text).scenarios[0]
    again = Scenario.model_validate_json(scenario.model_dump_json())
    assert repr(again.expect.grads) == "{'x': ((nan, 2, 3), (1.0, 1, 0)), 'labels': None}"


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("1e-6", 1e-6), ("1E5", 1e5), (".5", 0.5), ("-3", -3), ("+2.", 2.0), ("true", True), ("False", False),
        ("null", None), ("~", None), ("'1e-6'", "1e-6"), ("text", "text"), (".inf", math.inf), ("'yes'", "yes"),
    ],
)  # fmt: skip
def test_plain_scalars_are_read_as_yaml_1_2_does(accept, written, read_as):
    text = FULL.replace("x.grad is None: true", f"x: {written}")
    value = accept(text).scenarios[0].expect.values["x"]
    assert value == read_as
    assert type(value) is type(read_as)


@pytest.mark.parametrize("title", ["yes", "off", "017", "0x1f", "1_000", "12:30:00", "2020-01-01", "1e", "=", "0o7"])
def test_text_fields_keep_what_yaml_1_1_took_for_something_else(accept, title):
    assert accept(FULL.replace('"12"', title)).scenarios[1].title == title


EXTENDS = """\
schema: gradcheck/v1
scenarios:
  - id: child
    extends: parent
    title: Child
    inputs: {y: {shape: [4]}}
    expect: {raises: {type: ValueError}}
  - id: parent
    title: Parent
    source: {document: d}
    layer: |
      class A(PyLayer): forward = backward = lambda ctx, x, y: x
    inputs: {x: {shape: [2]}, y: {shape: [2]}}
    expect: {gradient: matches, values: {x: 1}}
  - id: other
    extends: child
    script: x = 1
    expect: {gradient: unchecked}
"""


def test_extends_takes_over_what_is_not_given_and_drops_what_is_ruled_out(accept):
    child, parent, other = accept(EXTENDS).scenarios
    assert (child.id, child.title, child.layer) == ("child", "Child", parent.layer)
    assert {name: input.shape for name, input in child.inputs.items()} == {"x": (2,), "y": (4,)}
    assert child.expect.gradient == "unchecked", "raises replaces gradient: matches"
    assert child.expect.values == {"x": 1}
    assert child.line_of("layer") == parent.line_of("layer") == 12
    assert (other.title, other.script, other.layer, other.inputs) == ("Child", "x = 1", None, {})
    assert other.expect.raises is None


def test_load_finds_files_below_folders_once_and_in_order(tmp_path):
    below = tmp_path / "deep"
    below.mkdir()
    for name, id in (("b", "bb"), ("a", "aa")):
        (below / f"{name}.grad.yaml").write_text(
            EXTENDS.replace("child", f"{id}-c").replace("parent", f"{id}-p").replace("other", id)
        )
    (below / "not-a-spec.yaml").write_text("x: 1")
    specs = load([tmp_path, below / "a.grad.yaml"])
    assert [spec.scenarios[2].id for spec in specs] == ["aa", "bb"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_change_nothing(tmp_path, newline, mark):
    file = tmp_path / "a.grad.yaml"
    file.write_bytes((mark + FULL.replace("\n", newline)).encode())
    assert read(file).scenarios[0].line_of("layer") == 9
    assert read(file).scenarios[0].layer.count("\n") == 4


def test_code_is_never_executed(accept, tmp_path):
    trap = tmp_path / "executed"
    code = f"open({str(trap)!r}, 'w')"
    accept(FULL.replace("x = 1", code).replace("x.grad is None", code))
    assert not trap.exists()
