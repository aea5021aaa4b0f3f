"""One edit that removes a mistake of a file: it gives back what was written before the slip."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.read import MOST_FIXES, read, read_each

SPEC = """\
schema: gradcheck/v1
scenarios:
  - id: own-tanh
    title: "Tanh: the derivative from the output"
    tags: [mine, smooth]
    layer: |
      class Tanh(PyLayer):
          @staticmethod
          def forward(ctx, x):
              y = paddle.tanh(x)
              # the output
              ctx.save_for_backward(y)
              return y

          @staticmethod
          def backward(ctx, dy):
              y, = ctx.saved_tensor()
              return dy * (1 - y * y)
    inputs:
      x: {shape: [3, 4], dtype: float32}
    expect:
      gradient: matches
      order: 2
      calls: {forward: 1}
  - id: own-product
    title: A product
    layer: {op: multiply}
    inputs:
      a: {shape: [2, 3]}
      b: {values: [1.0, 2.0, 3.0]}
    call: paddle.multiply(a, b)
"""
SLIPS = {
    "key misspelt": ("    inputs:\n      x", "    input:\n      x"),
    "key of another tool": ("matches\n      order", "matches\n      second_order"),
    "key without a similar one": ("      calls: {forward", "      count: {forward"),
    "value misspelt": ("float32", "flaot32"),
    "word of the code misspelt": ("return dy", "retrun dy"),
    "name of the code misspelt": ("paddle.tanh", "padle.tanh"),
    "no space at the top": ("schema: gradcheck/v1\n", "schema:gradcheck/v1\n"),
    "no colon after an id": ("- id: own-product", "- id own-product"),
    "comment that ends the code": ("              # the output\n", "# the output\n"),
    "colon left out": ("title: A product", "title A product"),
    "equals sign": ("title: A product", "title = A product"),
    "space after a colon left out": ("tags: [mine", "tags:[mine"),
    "colon of a block left out": ("def backward(ctx, dy):", "def backward(ctx, dy)"),
    "comma left out": ("[2, 3]", "[2 3]"),
    "colon in a mapping left out": ("{shape: [2, 3]}", "{shape [2, 3]}"),
    "brace not closed": ("{shape: [2, 3]}", "{shape: [2, 3]"),
    "bracket not closed": ("[3, 4], dtype", "[3, 4, dtype"),
    "bracket not opened": ("[mine, smooth]", "mine, smooth]"),
    "parenthesis not closed": ("(1 - y * y)", "(1 - y * y"),
    "sign twice": ("{forward: 1}", "{forward:: 1}"),
    "no quotes": ('"Tanh: the derivative from the output"', "Tanh: the derivative from the output"),
    "quote not closed": ('output"', "output"),
    "block not opened": ("layer: |", "layer:"),
    "dash left out": ("  - id: own-product", "    id: own-product"),
    "dash of the first entry left out": ("  - id: own-tanh", "    id: own-tanh"),
    "no space after the dash": ("- id: own-product", "-id: own-product"),
    "line too far right": ("    title: A", "     title: A"),
    "line too far left": ("      b: {values", "    b: {values"),
    "block too far left": (
        "      gradient: matches\n      order: 2\n      calls",
        "    gradient: matches\n    order: 2\n    calls",
    ),
    "code too far left": ("              return y\n", "             return y\n"),
    "tab": ("    title: A", "\ttitle: A"),
    "line twice": ("    title: A product\n", "    title: A product\n    title: A product\n"),
    "return outside of its function": ("              return y\n", "          return y\n"),
    "quote closed by a later one": ('output"\n    tags: [mine, smooth]', 'output\n    tags: ["mine", smooth]'),
    "line of Markdown": ("schema: gradcheck/v1\n", "```\nschema: gradcheck/v1\n"),
    "plain word for a list": ("[mine, smooth]", "mine, smooth"),
}


def mistakes_of(path: Path, text: str) -> list[Diagnostic]:
    """The mistakes in the text of a file."""
    path.write_text(text)
    try:
        read(path)
    except SpecError as error:
        return error.diagnostics
    return []


@pytest.mark.parametrize(("right", "wrong"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_undone(right: str, wrong: str, tmp_path: Path) -> None:
    assert SPEC.count(right) == 1
    text = SPEC.replace(right, wrong)
    mistake = mistakes_of(tmp_path / "own.grad.yaml", text)[0]
    assert mistake.fix is not None
    fixed = "\n".join(mistake.fix.applied(text.split("\n")))
    assert read_as_data(fixed) == read_as_data(SPEC)


def read_as_data(text: str) -> object:
    """The document, whatever its spaces and quotes."""
    import yaml

    return yaml.safe_load(text)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_fix_leaves_fewer_mistakes(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("spec") / "own.grad.yaml"
    place = data.draw(st.integers(0, len(SPEC) - 1))
    text = SPEC[:place] + data.draw(st.sampled_from(["", " ", ":", "]", "x", "\n"])) + SPEC[place + 1 :]
    mistakes = mistakes_of(path, text)
    for mistake in mistakes:
        if mistake.fix is not None:
            left = mistakes_of(path, "\n".join(mistake.fix.applied(text.split("\n"))))
            assert {other.message for other in left} < {other.message for other in mistakes}


def test_a_mistake_is_corrected_whatever_others_the_file_has(tmp_path: Path) -> None:
    text = SPEC.replace("float32", "flaot32").replace("order: 2", "oder: 2").replace("call:", "cal:")
    fixes = [mistake.fix for mistake in mistakes_of(tmp_path / "own.grad.yaml", text)]
    assert [fix.lines[0].strip() for fix in fixes if fix] == [
        "x: {shape: [3, 4], dtype: float32}",
        "order: 2",
        "call: paddle.multiply(a, b)",
    ]


def test_code_of_candidates_does_not_warn(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    path = tmp_path / "own.grad.yaml"
    (mistake,) = mistakes_of(path, SPEC.replace("(1 - y * y)", "[1, 2][1, y]").replace("order: 2", "oder: 2"))
    assert mistake.fix is not None
    assert not recwarn.list


def test_a_long_sum_is_not_too_deep(tmp_path: Path) -> None:
    text = SPEC.replace("return dy * (1 - y * y)", "return dy * (1 - y * y)" + " + 0 * y" * 600)
    assert mistakes_of(tmp_path / "own.grad.yaml", text) == []


def test_a_return_of_an_asynchronous_function_is_in_a_function(tmp_path: Path) -> None:
    text = SPEC.replace("      class Tanh", "      async def later():\n          return 1\n\n      class Tanh")
    assert mistakes_of(tmp_path / "own.grad.yaml", text) == []


def test_nothing_is_suggested_where_no_edit_helps(tmp_path: Path) -> None:
    (mistake,) = mistakes_of(tmp_path / "own.grad.yaml", SPEC.replace("{op: multiply}", "[1, 2]"))
    assert mistake.fix is None


def test_a_fix_is_printed_as_the_lines_to_write(tmp_path: Path) -> None:
    path = tmp_path / "own.grad.yaml"
    (mistake,) = mistakes_of(path, SPEC.replace("[2, 3]}", "[2, 3]"))
    assert "      fix: line 29 │       a: {shape: [2, 3]}" in mistake.render()
    (mistake,) = mistakes_of(path, SPEC.replace("    title: A product\n", "    title: A product\n" * 2))
    assert mistake.render().endswith("fix: remove line 27")
    lines = "      gradient: matches\n      order: 2\n      calls: {forward: 1}\n"
    (mistake,) = mistakes_of(path, SPEC.replace(lines, lines.replace("      ", "    ")))
    assert mistake.render().splitlines()[-3:] == [
        "      fix: line 22 │       gradient: matches",
        "      fix: line 23 │       order: 2",
        "      fix: line 24 │       calls: {forward: 1}",
    ]


def test_files_after_the_first_mistakes_are_read_without_a_search(tmp_path: Path) -> None:
    text = SPEC.replace("float32", "flaot32")
    files = [tmp_path / f"{number}.grad.yaml" for number in range(MOST_FIXES + 2)]
    for file in files:
        file.write_text(text)
    _, mistakes = read_each(files)
    assert [mistake.fix is not None for mistake in mistakes] == [True] * MOST_FIXES + [False] * 2
