"""What validates can be checked: scenarios that would check nothing, or could only end in an error, are mistakes."""

from __future__ import annotations

from textwrap import indent

import pytest

from gradcheck.conformance.catalogue import iterate_rules, load_catalogue
from gradcheck.spec.value_rules import rule_ids
from gradcheck.support.resources import bundled_specs

TANH = "layer: {op: tanh}\n"
X = "inputs: {x: [2]}\n"


def layer(*lines: str) -> str:
    """A layer's source, from the third line on within the class."""
    return "layer: |\n" + indent("\n".join(["class L(PyLayer):", *(f"  {line}" for line in lines)]), "  ") + "\n"


FORWARD, BACKWARD = "def forward(ctx, x): return x * 2", "def backward(ctx, dy): return dy * 2"
WHOLE = layer("@staticmethod", FORWARD, "@staticmethod", BACKWARD)
STATIC = "layer: |\n  def forward_fn(x): return x * 2\n"
RAISES = "expect: {raises: {type: TypeError}}\n"


# --------------------------------------------------------------------------- rules
def test_the_ids_that_are_known_are_those_of_the_catalogue() -> None:
    assert rule_ids() == [rule.id for rule, _ in iterate_rules(load_catalogue())]
    assert list((bundled_specs() / "rules").glob("*.yaml"))


@pytest.mark.parametrize(
    ("rules", "message", "help"),
    [
        ("[save-at-most-onec]", "1:9 there is no rule 'save-at-most-onec'", "did you mean 'save-at-most-once'?"),
        ("[any-arguments, {save-at-most-onec: a}]", "1:25 there is no rule 'save-at-most-onec'", "save-at-most-once"),
        (
            "[of-my-own]",
            "1:9 there is no rule 'of-my-own'",
            "`gradcheck list rules` lists them",
        ),
        ("[Save]", "1:9 rules[0] 'Save' is malformed", "kebab-case"),
    ],
)
def test_a_rule_that_is_cited_is_in_the_catalogue(scenario_mistakes, rules, message, help) -> None:
    ((found, said),) = scenario_mistakes(f"rules: {rules}\n{TANH}{X}")
    assert found.startswith(message)
    assert help in said


def test_rules_that_are_there_are_taken(scenario_mistakes) -> None:
    assert scenario_mistakes(f"rules: [any-arguments, {{each-apply-has-its-own-context: a passage}}]\n{TANH}{X}") == []


# --------------------------------------------------------------------------- scenarios
@pytest.mark.parametrize(
    ("body", "message", "help"),
    [
        # arguments
        (WHOLE, "4:5 the number of inputs is 0, but forward takes at least 1", "list them under 'inputs'"),
        (WHOLE + "inputs: {x: [2], y: [2]}", "4:5 the number of inputs is 2, but forward takes at most 1", ""),
        (STATIC, "2:3 the number of inputs is 0, but forward_fn takes at least 1", ""),
        # backward
        (layer("@staticmethod", FORWARD) + X, "2:3 L has no backward, but its gradient is checked", "add it, or"),
        (STATIC + X, "2:3 forward_fn has no backward_fn, but its gradient is checked", "add it, or"),
        (
            layer("@staticmethod", FORWARD) + X + "expect: {gradient: unchecked, grads: {x: [1.0, 1.0]}}",
            "2:3 L has no backward", "'gradient: unchecked'",
        ),
        (layer("@staticmethod", FORWARD) + X + "call: L.apply(x)", "2:3 L has no backward", "add it"),
        # what is left out
        (TANH + "inputs: {x: [2], y: [2]}\ncall: paddle.tanh(x)", "2:18 nothing uses the input 'y'", "remove it"),
        (WHOLE + X + "call: x * 2", "8:7 call: it does not use the layer", "the layer defines: L"),
        (WHOLE + X + "call: 2 * L(x)", "8:7 call: L is applied, not called", "write L.apply(…)"),
        (TANH + X + "call: x * 2", "3:7 call: it does not use the layer", "use what the layer defines: tanh"),
        # nothing to hold
        (TANH + "inputs: {x: {shape: [2], stop_gradient: true}}", "-2:5 this would check nothing", "floating dtype"),
        (TANH + "inputs: {x: {shape: [2], dtype: bool, init: ones}}", "-2:5 this would check nothing", "unchecked"),
        (
            TANH + "inputs: {x: {shape: [2], stop_gradient: true}}\nexpect: {calls: {}, values: {}}",
            "-2:5 this would check nothing", "say in 'expect'",
        ),
        (TANH + "inputs: {x: [0, 3]}", "2:10 no input that takes a gradient has an element", "larger shape"),
    ],
)  # fmt: skip
def test_what_can_check_nothing_is_a_mistake(scenario_mistakes, body, message, help) -> None:
    ((found, said),) = scenario_mistakes(body)
    assert found.startswith(message)
    assert help in said


@pytest.mark.parametrize(
    "body",
    [
        # errors that are expected
        TANH + RAISES,
        WHOLE + RAISES,
        layer("pass") + X + RAISES,
        # methods from elsewhere, or not known to be missing
        layer("forward = backward = staticmethod(abs)") + X,
        layer("@staticmethod", FORWARD) + "  L.backward = staticmethod(abs)\n" + X,
        layer("@staticmethod", FORWARD) + "  setattr(L, 'backward', abs)\n" + X,
        layer("@staticmethod", FORWARD).replace("(PyLayer)", "(PyLayer, dict)") + X,
        "layer: |\n  @print\n  class L(PyLayer): pass\n" + X,
        layer("@staticmethod", "def forward(ctx, *all): return all[0]", BACKWARD) + X,
        layer("@print", "def forward(x): return x", BACKWARD) + X,
        layer("@staticmethod", "def forward(ctx, x, /): return x", BACKWARD) + X,
        layer("@staticmethod", "def forward(ctx, x, n=2): return x", BACKWARD) + X,
        WHOLE + "  class M(L): pass\n" + X + "call: M.apply(x)",
        # what is asked for without a gradient
        layer("@staticmethod", FORWARD) + X + "expect: {gradient: unchecked, values: {out.shape: [2]}}",
        TANH + "inputs: {x: {shape: [2], stop_gradient: true}}\nexpect: {gradient: unchecked}",
        TANH + "inputs: {x: {shape: [2], stop_gradient: true}}\nexpect: {values: {out.stop_gradient: true}}",
        TANH + "inputs: {x: {shape: [2], stop_gradient: true}}\nbackends: {numpy: {expect: {values: {out.ndim: 1}}}}",
        TANH + "inputs: {x: [n]}\nmatrix: {n: [0, 2]}",
        # inputs that are used, if not in the call
        WHOLE + "  def go(): return L.apply(x)\n" + X + "call: go()",
        TANH + "inputs: {x: [2], y: [2]}\ncall: paddle.tanh(x)\nexpect: {values: {y.ndim: 1}}",
        # shapes that are not known
        WHOLE + X + "expect: {grads: {x: [1.0, 1.0]}, cotangent: [1.0, 1.0, 1.0]}",
        "layer: {op: sum}\n" + X + "expect: {grads: {x: [1.0, 1.0]}, cotangent: 1.0}",
        TANH + X + "expect: {grads: {x: [1.0, 1.0]}, cotangent: [1.0, 1.0]}",
    ],
)
def test_what_may_well_be_checked_is_none(scenario_mistakes, body) -> None:
    assert scenario_mistakes(body) == []
