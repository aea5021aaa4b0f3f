"""A known failure stays known while it is the same mistake; a new mistake in it is a new failure."""

from __future__ import annotations

import json
import textwrap

import pytest

SPEC = """\
schema: gradcheck/v1
defaults: {source: {document: own}}
scenarios:
  - id: one
    title: t
    layer: |
      class Layer(PyLayer):
          @staticmethod
          def forward(ctx, x, w):
              ctx.save_for_backward(x, w)
              return x * w, x + 2 * w

          @staticmethod
          def backward(ctx, a, b):
              x, w = ctx.saved_tensor()
BACKWARD
    inputs: {x: {shape: [3]}, w: {shape: [3]}}
"""
RIGHT = "return a * w + b, a * x + 2 * b"
W_WRONG = "return a * w + b, 3 * a * x + 2 * b"
"""The gradient of w is wrong, through the first output."""
VALUES = "    expect: {values: {'out[0].shape': [4]}}\n"


@pytest.fixture
def suite(folder):
    """Writes a spec of one layer with a backward, and more lines."""

    def write(backward: str, more: str = "") -> None:
        body = textwrap.indent(backward, " " * 14)
        (folder / "a.grad.yaml").write_text(SPEC.replace("BACKWARD", body) + more)

    return write


@pytest.fixture
def run(gradcheck):
    return lambda *options: gradcheck("run", "a.grad.yaml", "--allow-code", *options)


NEW = [
    (W_WRONG, "return 2 * a * w + b, 3 * a * x + 2 * b", "", "gradient of x"),
    ("return 2 * a * w + b, a * x + 2 * b", "return 2 * a * w + b, a * w + 2 * b", "", "gradient of w"),
    (W_WRONG, "return a * w + b, 3 * a * x + 3 * b", "", "gradient of w through out[1]"),
    (W_WRONG, "return 2 * a * w + b, a * x + 2 * b", "", "gradient of x"),
    (W_WRONG, "a.scale_(2.0)\nreturn a * w / 2 + b, 3 * a * x / 2 + 2 * b", "", "GC134"),
    ("a.scale_(2.0)\nreturn a * w / 2 + b, a * x / 2 + 2 * b", W_WRONG, "", "gradient of w"),
    (RIGHT, W_WRONG, VALUES, "gradient of w"),
]
SAME = [
    (W_WRONG, "return a * w + b, 5 * a * x + 2 * b", ""),
    (W_WRONG, "# moved\nother = a * x\n\nreturn a * w + b, other * 0 + 2 * b", ""),
    (W_WRONG, "return a * w + b, a * (x * x * x).tanh() + 2 * b", ""),
    ("return a * w + b, a * (x * x * x).tanh() + 2 * b", W_WRONG, ""),
    ("return a * w * 3 + b, 3 * a * x + 2 * b", W_WRONG, ""),
    ("return a * w + b, 3 * a * x + 3 * b", W_WRONG, ""),
    ("return a * w + b, a * x * (x > 0).astype(x.dtype) + 2 * b", W_WRONG, ""),
    (W_WRONG, W_WRONG, VALUES),
]


@pytest.mark.parametrize(("before", "after", "more", "what"), NEW)
def test_a_new_mistake_in_a_known_failure_is_a_new_failure(suite, run, gradcheck, before, after, more, what):
    suite(before, more)
    run("--baseline", "base.json", "--baseline-update", "--report", "json:a.json")
    suite(after, more)
    done = run("--baseline", "base.json", "--report", "json:b.json")
    assert (done.code, done.out[:4]) == (1, "FAIL")
    assert f"in the baseline, but not with this: {what}" in done.out
    compared = gradcheck("compare", "a.json", "b.json")
    assert compared.code == 1
    assert compared.out.startswith(f"FAIL → FAIL ({what} as well)  one@numpy")
    assert "1 new failure, 0 the same of 1" in compared.out


@pytest.mark.parametrize(("before", "after", "more"), SAME)
def test_another_explanation_or_less_that_is_wrong_is_no_new_failure(suite, run, before, after, more):
    suite(before, more)
    run("--baseline", "base.json", "--baseline-update")
    suite(after, more)
    assert run("--baseline", "base.json").code == 0


def test_two_reports_of_the_same_mistake_are_the_same(suite, run, gradcheck):
    for name, backward in (("a", W_WRONG), ("b", "return a * w + b, a * (x * x * x).tanh() + 2 * b")):
        suite(backward)
        run("--report", f"json:{name}.json")
    assert gradcheck("compare", "a.json", "b.json") == (0, "0 new failures, 1 the same of 1\n", "")


def test_what_is_held_is_what_is_wrong_and_no_words(suite, run, folder):
    suite(W_WRONG)
    run("--baseline", "base.json", "--baseline-update")
    held = json.loads((folder / "base.json").read_text())
    assert held == {
        "format": "gradcheck-baseline/2",
        "failures": {"one@numpy": {"status": "FAIL", "codes": [], "wrong": {"w": ["out[0]"]}}},
    }


def test_less_that_is_wrong_is_held_by_an_update(suite, run):
    both = "return 2 * a * w + b, 3 * a * x + 2 * b"
    for backward in (both, W_WRONG):
        suite(backward)
        run("--baseline", "base.json", "--baseline-update")
    suite(both)
    assert run("--baseline", "base.json").code == 1
