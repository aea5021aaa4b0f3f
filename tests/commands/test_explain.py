"""``gradcheck explain``: codes, scenarios and rules."""

from __future__ import annotations

import pytest

LAYER = """\
  - id: own-square
    title: The square
    source: {document: a book, section: "3", quote: "d x^2 = 2 x dx", url: https://example.org/book}
    tags: [smooth]
    layer: {op: square}
    inputs: {x: {shape: [2]}}
    expect: {order: 2, grads: {x: [2, 4]}, values: {"x.shape": [2]}}
    backends: {paddle: {skip: {reason: too slow}}}
"""


def test_a_code_has_its_cause_and_its_fix(gradcheck):
    done = gradcheck("explain", "gc104")
    assert done.code == 0
    assert done.out.startswith("GC104: permuted, rolled or flipped\n")


def test_a_scenario_is_told_in_words(spec, gradcheck, folder):
    spec(LAYER)
    (folder / "pyproject.toml").write_text('[tool.gradcheck]\npaths = ["a.grad.yaml"]\n')
    assert gradcheck("explain", "own-square").out == (
        "own-square: The square\n"
        "  a.grad.yaml:3\n"
        "  a book, 3: “d x^2 = 2 x dx”\n"
        "  https://example.org/book\n"
        "  holds: backward gives the derivative, and the gradient's own derivative is right\n"
        "  holds: the gradient of x is (2, 4)\n"
        "  holds: x.shape is (2,)\n"
        "  on paddle: not run: too slow\n"
    )


def test_a_rule_has_its_quote_and_the_scenarios_that_assert_it(gradcheck):
    rule = gradcheck("rules").out.split()[0]
    done = gradcheck("explain", rule, "GC101")
    assert done.code == 0
    assert done.out.startswith(f"{rule}: ")
    assert "“" in done.out
    assert "\n\nGC101: constant factor\n" in done.out


def test_a_bundled_scenario_names_the_rules_that_it_asserts(gradcheck):
    assert "\n  rule " in gradcheck("explain", "document-guide-tanh").out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("document-guide-tahn", "did you mean document-guide-tanh?"),
        ("xyzzy", "`gradcheck explain`, `list` and `rules` show what there is"),
    ],
)
def test_what_is_none_of_them_brings_up_the_nearest(gradcheck, name, said):
    assert gradcheck("explain", name) == (
        2,
        "",
        f"gradcheck: there is no code, scenario or rule {name!r}; {said}\n",
    )


@pytest.mark.parametrize("name", ["own", "own@numpy", "a.grad.yaml::own", "a.grad.yaml:3", "own/dtype=float32@numpy"])
def test_a_scenario_is_explained_by_each_of_its_names(spec, gradcheck, name):
    spec("  - id: own\n    layer: {op: tanh}\n    inputs: {x: [2]}\n")
    done = gradcheck("explain", name)
    assert (done.code, done.out.splitlines()[:2]) == (0, ["own", "  a.grad.yaml:3"])
