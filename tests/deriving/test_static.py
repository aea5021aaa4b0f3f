"""The backward_fn of a static layer: derived from its forward_fn, and repaired by one edit in the block of the spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent

import pytest
from cases import case_of, cases_of

from gradcheck.case.case import Case
from gradcheck.case.execute import execute
from gradcheck.commands.derive import derived_static
from gradcheck.deriving.source import source_of_file
from gradcheck.result import Status
from pylayer import uninstall_paddle

SPECS = Path(__file__).parents[2] / "specs"
BUNDLED = {
    "static-two-in-two-out": "documents",
    "static-chained-is-the-derivative": "recorded",
    "static-second-gradients-are-the-derivative": "design",
    "static-cond-inside-is-the-derivative": "design",
    "static-closures": "design",
}
"""The static layers whose gradient is checked, and the folders of their specs."""

Write = Callable[..., Case]


@pytest.fixture(autouse=True)
def no_paddle_is_left() -> Iterator[None]:
    yield
    uninstall_paddle()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """The case of a spec that is written to a file, with one layer."""

    def write_spec(layer: str, inputs: str = "{x: [2, 3]}", *keys: str) -> Case:
        head = "schema: gradcheck/v1\nscenarios:\n  - id: own\n    title: t\n    source: {document: d}\n    layer: |\n"
        lines = indent("\n".join([f"inputs: {inputs}", *keys]), " " * 4)
        path = tmp_path / "own.grad.yaml"
        path.write_text(f"{head}{indent(layer.strip(), ' ' * 6)}\n{lines}\n")
        return case_of(path)

    return write_spec


@pytest.fixture
def bundled(tmp_path: Path) -> Write:
    """A bundled case, in a copy of its spec with other text."""

    def copy(name: str, **replaced: str) -> Case:
        text = (SPECS / BUNDLED[name] / "static.grad.yaml").read_text()
        for old, new in replaced.items():
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "static.grad.yaml"
        path.write_text(text)
        return next(case for case in cases_of(path) if case.scenario.id == name)

    return copy


def code_of(case: Case) -> str:
    derived = derived_static(case)
    assert derived, derived.refused
    assert len(derived.checked_at) == 6  # three sizes in two dtypes
    return derived.code


def with_change(case: Case, changed: str) -> Case:
    """The case in the changed text of its file."""
    Path(case.scenario.path).write_text(changed)
    return next(c for c in cases_of(Path(case.scenario.path)) if c.scenario.id == case.scenario.id)


def at_other_sizes(case: Case) -> Case:
    return with_change(case, Path(case.scenario.path).read_text().replace("[2, 3]", "[4, 5]"))


def shown_line(case: Case) -> str:
    """The line that a fix shows, after which the case passes, at other sizes too."""
    result = execute(case)
    assert result.status is Status.FAIL, result.message
    assert result.gradient is not None
    fix = result.gradient.fix
    assert fix is not None
    repaired = with_change(case, source_of_file(fix.path).with_fix(fix))
    for other in (repaired, at_other_sizes(repaired)):
        assert execute(other).status is Status.PASS
    return fix.source_line


# --------------------------------------------------------------------------- one edit
@pytest.mark.parametrize(
    ("name", "right", "wrong", "line"),
    [
        (
            "static-two-in-two-out",
            "d * y + e * (1 - t * t)",
            "d * y - e * (1 - t * t)",
            "return d * y + e * (1 - t * t), d * x + e",
        ),
        ("static-two-in-two-out", "1 - t * t", "1 - t", "return d * y + e * (1 - t * t), d * x + e"),
        (
            "static-chained-is-the-derivative",
            "d * paddle.cos(x)",
            "d * paddle.sin(x)",
            "def backward_fn(d): return d * paddle.cos(x)",
        ),
        ("static-second-gradients-are-the-derivative", "1 - y * y", "1 + y * y", "return d * (1 - y * y)"),
        (
            "static-cond-inside-is-the-derivative",
            "d * paddle.exp(x) * (x + 1)",
            "d * paddle.exp(d) * (x + 1)",
            "def above(): return d * paddle.exp(x) * (x + 1)",
        ),
        (
            "static-closures",
            'return d * kept["power"] * w',
            'return d * kept["power"]',
            'def backward_fn(d): return d * w * kept["power"]',
        ),
    ],
)
def test_one_edit_repairs_a_bundled_backward_fn(bundled: Write, name: str, right: str, wrong: str, line: str) -> None:
    assert shown_line(bundled(name, **{right: wrong})) == line


def test_the_inputs_of_the_program_are_names_that_an_edit_may_use(write: Write) -> None:
    layer = "def forward_fn(a, b): return a * b\ndef backward_fn(d): return d * y, d * y"
    line = "def backward_fn(d): return d * y, d * x"
    assert shown_line(write(layer, "{x: [2, 3], y: [2, 3]}")) == line


def test_a_nested_result_has_a_cotangent_for_each_variable(write: Write) -> None:
    layer = "def forward_fn(a): return a, [paddle.sin(a)]\ndef backward_fn(d, e): return d + e * paddle.sin(x)"
    line = "def backward_fn(d, e): return d + e * paddle.cos(x)"
    assert shown_line(write(layer)) == line


@pytest.mark.parametrize("keys", [["expect: {gradient: differs}"], ["call: layer(x)"]])
def test_no_edit_of_what_is_meant_so_or_has_no_name(write: Write, keys: list[str]) -> None:
    """A lambda, or a function inside of another, cannot be replaced while the gradient is checked."""
    layer = "def forward_fn(a): return paddle.sin(a)\ndef backward_fn(d): return d"
    inner = "\ndef layer(x): return paddle.static.nn.static_pylayer(forward_fn, [x], lambda d: backward_fn(d))"
    result = execute(write(layer + inner, "{x: [2, 3]}", *keys))
    assert result.gradient is not None
    assert result.gradient.verdict is Status.FAIL
    assert result.gradient.fix is None


# --------------------------------------------------------------------------- the whole backward_fn
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "static-two-in-two-out",
            ["t = paddle.tanh(x)", "dx = e * (1 - t * t) + d * y", "dy = e + d * x", "return dx, dy"],
        ),
        ("static-chained-is-the-derivative", ["return d * paddle.cos(x)"]),
        ("static-second-gradients-are-the-derivative", ["t = paddle.tanh(x)", "return d * (1 - t * t)"]),
        # what forward_fn keeps is computed anew, because a released Paddle does not share it
        ("static-closures", ["return d * w * paddle.exp(x)"]),
    ],
)
def test_a_bundled_backward_fn_is_derived(bundled: Write, name: str, lines: list[str]) -> None:
    head, *body = code_of(bundled(name)).splitlines()
    assert head == ("def backward_fn(d, e):" if "two-in" in name else "def backward_fn(d):")
    assert [line.strip() for line in body] == lines


NORM = """
def forward_fn(a, scale):
    r = paddle.rsqrt((a * a).mean(axis=-1, keepdim=True) + 1e-6)
    return a * r * scale
def backward_fn(dy): return dy, dy
"""


def test_values_of_forward_are_computed_anew_under_their_names(write: Write) -> None:
    assert code_of(write(NORM, "{x: [2, 3], w: [3]}")) == (
        "def backward_fn(dy):\n"
        "    r = paddle.rsqrt((x * x).mean(axis=-1, keepdim=True) + 1e-06)\n"
        "    g = dy * w\n"
        "    dx = g * r - (g * x).mean(axis=-1, keepdim=True) * r * r * r * x\n"
        "    dw = (dy * x * r).sum(axis=0)\n"
        "    return dx, dw\n"
    )


@pytest.mark.parametrize(
    ("forward", "line"),
    [
        ("a.sum(axis=0)", "return dy.expand_as(x)"),
        ("(a * a).mean(axis=0)", "return 2 * dy / paddle.shape(x)[0] * x"),
        ("(a * a).mean()", "return 2 * dy / x.size * x"),
        ("a.reshape([-1])", "return dy.reshape(x.shape)"),
        ("a.detach() * a", "return 2 * dy * x"),  # only backward_fn says what the gradient is
    ],
)
def test_sizes_hold_for_a_program_that_does_not_know_them(write: Write, forward: str, line: str) -> None:
    """In such a program of a released Paddle, `x.shape` has -1, and `expand` refuses it."""
    layer = f"def forward_fn(a): return {forward}\ndef backward_fn(dy): return dy"
    assert code_of(write(layer)).splitlines()[-1].strip() == line


BRANCH = "paddle.static.nn.cond(a.sum() > 0, lambda: a * a, lambda: a * 2)"
INNER = """
def forward_fn(a): return paddle.sin(a)
def backward_fn(d): return d
def layer(x):
    return paddle.static.nn.static_pylayer(forward_fn, [2 * x], backward_fn)
"""
UNUSED = """
def forward_fn(a): return paddle.sin(a)
def backward_fn(d): return d
def layer(x):
    return paddle.static.nn.static_pylayer(forward_fn, [x], lambda d: d)
"""
PLAIN = "def forward_fn(a): return {}\ndef backward_fn(d): return d"


@pytest.mark.parametrize(
    ("layer", "keys", "reason"),
    [
        (PLAIN.format(BRANCH), [], "forward reads values by a branch"),
        (PLAIN.format("paddle.nn.functional.dropout(a, 0.5)"), [], "draws random numbers"),
        (PLAIN.format("paddle.concat([a, a * a])"), [], "a slice at a size that a program may not know"),
        (PLAIN.format("sum(a[k] * a[k] for k in range(a.shape[0]))"), [], "did not pass at x=3x4 in float64"),
        (PLAIN.format("a * [2][paddle.in_dynamic_mode()]"), [], "forward_fn does not run on Tensors: IndexError"),
        (INNER, ["call: layer(x)"], "static_pylayer has an input that the scenario does not have"),
        (UNUSED, ["call: layer(x)"], "no static_pylayer is called with backward_fn"),
    ],
)
def test_what_cannot_be_derived_says_why(write: Write, layer: str, keys: list[str], reason: str) -> None:
    derived = derived_static(write(layer, "{x: [2, 3]}", *keys))
    assert not derived
    assert derived.code == ""
    assert reason in derived.refused
