"""``gradcheck list`` and ``gradcheck show``: what there is, without running any of it."""

from __future__ import annotations

import json

import pytest

from gradcheck.commands.listing import row_of
from gradcheck.commands.specs import bundled_scenarios

FIRST = """\
  # about the first
  - id: first
    title: "The \u202efirst [red]one[/]"
    source: {document: d, quote: "So it is."}
    tags: [apply, smooth]
    layer: |
      class First(PyLayer):
          forward = backward = staticmethod(lambda ctx, x: x)
      # the end of the code
    inputs: {x: {shape: [2]}}
    matrix: {dtype: [float32, float64]}
"""
SECOND = """
  # about the second
  - id: second
    extends: first
    title: The second
"""


@pytest.fixture
def files(spec):
    spec(FIRST, SECOND, head="defaults: {tags: [all]}\n")
    spec(
        SECOND.replace("second", "third").replace(
            "extends: first", "source: {document: d}\n    layer: {op: tanh}\n    inputs: {x: {shape: [2]}}"
        ),
        name="b.grad.yaml",
    )


def test_list_has_a_line_for_each_scenario_in_order(files, gradcheck):
    assert gradcheck("list", ".") == (
        0,
        "first   The \\u202efirst [red]one[/]  [all, apply, smooth]  a.grad.yaml:5\n"
        "second  The second  [all, apply, smooth]  a.grad.yaml:17\n"
        "third   The third  b.grad.yaml:5\n",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["a.grad.yaml"], ["first", "second"]),
        ([".", "third"], ["third"]),
        ([".", "-k", "ir"], ["first", "third"]),
        ([".", "-k", "float32 and not second"], ["first"]),
        ([".", "-t", "smooth"], ["first", "second"]),
        ([".", "-t", "not smooth"], ["third"]),
    ],
)
def test_list_narrows_down_as_run_does(files, gradcheck, arguments, ids):
    assert [line.split()[0] for line in gradcheck("list", *arguments).out.splitlines()] == ids


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-k", "frist"], 5, "gradcheck: nothing is selected: no case has 'frist' in its name; did you mean first?\n"),
        (["frist"], 2, "gradcheck: no file, folder or scenario is called 'frist'; did you mean first?\n"),
        (["-t", "("], 2, "gradcheck: -t '(': combine words with and, or, not"),
    ],
)
def test_list_says_what_cannot_be_found(files, gradcheck, arguments, code, message):
    done = gradcheck("list", ".", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(message)


def test_of_the_bundled_specs_list_reads_no_more_than_it_shows_and_that_rightly(gradcheck):
    listed = json.loads(gradcheck("list", "--bundled", "--json").out)
    assert listed == [row_of(scenario).data for scenario in bundled_scenarios()]
    one = listed[len(listed) // 2]
    assert json.loads(gradcheck("list", "--bundled", "--json", one["id"]).out) == [one]


@pytest.mark.parametrize(
    "wrong", ["tags: smooth", "id: [1]", "title: {a: 1}", "matrix: {n: 1}", "extends: absent", "- ]"]
)
def test_a_mistake_in_what_is_listed_is_shown(files, gradcheck, folder, monkeypatch, wrong):
    file = folder / "b.grad.yaml"
    file.write_text(file.read_text().replace("    layer:", f"    {wrong}\n    layer:"))
    expected = gradcheck("list", ".")
    assert (expected.code, expected.out) == (2, "")
    for module in ("specs",):
        monkeypatch.setattr(f"gradcheck.commands.{module}.bundled_files", lambda: sorted(folder.glob("*.grad.yaml")))
    assert gradcheck("list", "--bundled").code == 2


def test_list_and_show_read_the_files_of_the_configuration(files, gradcheck, folder):
    (folder / "pyproject.toml").write_text('[tool.gradcheck]\npaths = ["b.grad.yaml"]\n')
    assert gradcheck("list").out.split()[0] == "third"
    assert gradcheck("show", "third").out.startswith("# b.grad.yaml:5:5\n  - id: third\n")


def test_show_gives_the_scenario_as_written_but_harmless(files, gradcheck):
    done = gradcheck("show", "a.grad.yaml", "first")
    assert done.code == 0
    shown = '# defaults: {"tags": ["all"]}\n# a.grad.yaml:5:5\n' + ("  - id" + FIRST.partition("  - id")[2]).replace(
        "\u202e", "\\u202e"
    )
    assert done.out == shown


def test_show_gives_what_a_scenario_extends_as_well(files, gradcheck):
    out = gradcheck("show", "second", "a.grad.yaml").out
    assert out.index("# a.grad.yaml:17:5\n  - id: second\n") < out.index("# a.grad.yaml:5:5\n  - id: first\n")
    assert "about the second" not in out


def test_show_takes_the_name_of_a_case(files, gradcheck):
    assert "id: first\n" in gradcheck("show", "a.grad.yaml", "first/dtype=float32@numpy").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.grad.yaml"], "gradcheck: name the scenario to show; `gradcheck list` lists all\n"),
        (
            ["a.grad.yaml", "thrid"],
            "gradcheck: there is no scenario, rule or code 'thrid'; `gradcheck list`",
        ),
        ([], "Missing argument"),
    ],
)
def test_show_says_what_it_needs(files, gradcheck, arguments, message):
    done = gradcheck("show", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
