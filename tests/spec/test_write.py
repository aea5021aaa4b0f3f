"""The canonical form: it says the same, keeps every comment, and is its own canonical form."""

from __future__ import annotations

from textwrap import dedent

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gradcheck.resources import bundled_specs
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.read import read, read_bytes
from gradcheck.spec.text import decode
from gradcheck.spec.tree import parse
from gradcheck.spec.write import WIDTH, formatted

BUNDLED = sorted(bundled_specs().glob("*.grad.yaml"))


def form(text: str) -> str:
    return formatted(dedent(text).encode(), "t.grad.yaml")


def data(text: str) -> str:
    """What a text says, keys in any order."""
    read_in = decode(text.encode(), "t.grad.yaml")
    root, _ = parse(read_in)
    read_in.fail_if_any()
    return repr(sorted_keys(root.data()))


def sorted_keys(value):
    if isinstance(value, dict):
        return sorted((key, sorted_keys(one)) for key, one in value.items())
    return [sorted_keys(one) for one in value] if isinstance(value, tuple) else value


def loaded(text: str) -> list[dict[str, object]]:
    """All scenarios, but for where they stand."""
    places = {"path", "line", "column", "begins", "positions"}
    return [one.model_dump(exclude=places) for one in read_bytes(text.encode(), "t.grad.yaml").scenarios]


class TestForm:
    def test_keys_stand_in_the_order_of_the_model_and_short_values_on_one_line(self):
        assert form(
            """\
            scenarios:
            - expect:
                gradient: matches
                order: 2
              layer:
                op: tanh
              inputs:
                x:
                  dtype: float32
                  shape:
                  - 2
                  - 3
              extends: 'two'
              id: "one"
            schema: gradcheck/v1
            """
        ) == (
            "schema: gradcheck/v1\n"
            "scenarios:\n"
            "  - {id: one, extends: two, layer: {op: tanh}, inputs: {x: {shape: [2, 3], dtype: float32}}, "
            "expect: {gradient: matches, order: 2}}\n"
        )

    def test_names_keep_the_order_that_the_author_gave_them(self):
        text = "scenarios:\n  - {id: a, inputs: {values: [1], low: [2], b: [3]}, matrix: {n: [1], a: [2]}}\n"
        assert form(text) == text

    def test_code_is_a_block(self):
        head = "schema: gradcheck/v1\nlayers:\n"
        assert form(head + r'  a: "class A:\n    pass\n"' + "\n") == head + "  a: |\n    class A:\n        pass\n"

    @pytest.mark.parametrize("text", ["a\n\nb\n", "a\nb", "  a\nb\n", "\n a\n", "a\n\n", "a\n \n", "\ta\n", "a #b\n"])
    def test_a_block_keeps_its_blanks_and_line_breaks(self, text):
        written = form(yaml.safe_dump({"schema": text, "layers": {"a": text}}, default_style='"', width=1000))
        assert written.count("|") == 2
        assert yaml.safe_load(written) == {"schema": text, "layers": {"a": text}}

    def test_what_has_no_room_goes_on_below(self):
        words = ", ".join(f"{'abcdefghij'}{k}" for k in range(20))
        assert form(f"schema: [{words}]\n").count("\n") == 2
        assert all(len(line) <= WIDTH for line in form(f"schema: [{words}]\n").split("\n"))

    def test_each_entry_of_a_long_list_of_mappings_has_a_line(self):
        entry = "{a: %s}" % ("b" * 100)
        assert form(f"schema: [{entry}, {entry}]\n") == f"schema:\n  - {entry}\n  - {entry}\n"

    @pytest.mark.parametrize(
        "value",
        ["no", "1e-6", "017", "a: b", "a #b", "'a'", 'a"b', "", " a", "a ", "-", "- a", "[a]", "a,b", "{", "?", "#",
         "~", "null", "true", "1.5", "0x10", "é", "a:", "@a", "%a", "`a", "*a", "&a", "!a", "|", ">", "\\d",
         "2020-01-01", "a\tb"],
    )  # fmt: skip
    def test_text_stays_text(self, value):
        text = yaml.dump({value: [value, {"a": value}]}, default_style='"')
        assert data(form(text)) == data(text)
        assert yaml.load(form(text), Loader=yaml.CBaseLoader) == {value: [value, {"a": value}]}


class TestComments:
    TEXT = """\
    # above all
    schema: gradcheck/v1   # at its end

    # above the scenarios
    scenarios:   # behind a key
      # above a scenario
      - id: a  # the name
        # above the layer
        layer: |  # behind a block
          x = 1  # no comment of ours
          # nor this
        # above the expectations
        expect: {gradient: matches}  # behind a mapping
        # below the last key
      # above another
      - {id: b, script: x}   # behind a flow
      - id: c
        inputs:
          x: [1,  # within
              2]
    # below all
    """

    def test_each_stays_with_what_it_is_about(self):
        assert form(self.TEXT) == dedent(
            """\
            # above all
            schema: gradcheck/v1  # at its end
            # above the scenarios
            scenarios:  # behind a key
              # above a scenario
              - id: a  # the name
                # above the layer
                layer: |  # behind a block
                  x = 1  # no comment of ours
                  # nor this
                # above the expectations
                expect: {gradient: matches}  # behind a mapping
                # below the last key
              # above another
              - {id: b, script: x}  # behind a flow
              - id: c
                inputs:
                  x:
                    - 1  # within
                    - 2
            # below all
            """
        )

    def test_those_of_a_key_move_with_it(self):
        text = "scenarios: [a]  # s\n# above\nschema: x  # behind\n"
        assert form(text) == "# above\nschema: x  # behind\nscenarios:  # s\n  - a\n"


class Quoting(yaml.SafeDumper):
    """Puts all text in quotes, and writes floats as they were."""

    def ignore_aliases(self, data):
        return True


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def plain(node):
    """A tree as what PyYAML writes."""
    if node.kind == "mapping":
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    return [plain(item) for item in node.items] if node.kind == "sequence" else node.value


class TestBundled:
    @pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.name)
    def test_a_bundled_file_is_in_canonical_form(self, path):
        text = path.read_text(encoding="utf-8")
        assert formatted(text.encode(), path.name) == text

    @pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.name)
    def test_what_another_writer_makes_of_it_has_the_same_cases_in_canonical_form(self, path):
        text = path.read_text(encoding="utf-8")
        root, _ = parse(decode(text.encode(), path.name))
        other = yaml.dump(plain(root), default_flow_style=False, allow_unicode=True, width=77, Dumper=Quoting)
        assert other != text
        assert loaded(formatted(other.encode(), path.name)) == loaded(text)

    def test_reading_keeps_every_scenario(self):
        assert sum(len(read(path).scenarios) for path in BUNDLED) >= 260


TEXTS = st.text(st.sampled_from("ab \n\t:#-{}[],'\"|>&*!%@`?~1.é\\"), max_size=12) | st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\ufeff\u2028\u2029\ufffe\uffff"), max_size=8
)
KEYS = st.sampled_from(["id", "layer", "inputs", "cases", "expect", "values", "x", "schema", "scenarios", "a key"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(KEYS | TEXTS.filter(bool), below, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=5)


class NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


@settings(max_examples=300, deadline=None)
@given(
    DOCUMENTS,
    st.sampled_from([False, True, None]),
    st.sampled_from([None, '"', "'", "|"]),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8), st.booleans()), max_size=4),
)
@example({"id": "a\n\n"}, False, "|", [(3, 2, True)])
@example({"id": {"1:?": None}}, False, None, [])
@example({"id": [["1\n"]]}, None, None, [(4, 0, False)])
def test_it_says_the_same_keeps_all_comments_and_stays_as_it_is(document, flow, style, comments):
    lines = yaml.dump(
        document, Dumper=NoAliases, default_flow_style=flow, default_style=style, allow_unicode=True, width=50
    ).split("\n")
    marks = []
    for number, (at, margin, alone) in enumerate(comments):
        mark = f"#mark-{number}."
        at = min(at, len(lines) - 1)
        if alone:
            lines.insert(at, " " * margin + mark)
        else:
            lines[at] += "  " + mark
        marks.append(mark)
    text = "\n".join(lines)
    try:
        said = data(text)
    except SpecError:
        assume(False)  # a comment was put where none can stand, or it is no YAML of ours
    once = formatted(text.encode(), "t.grad.yaml")
    assert data(once) == said
    assert [once.count(mark) for mark in marks] == [text.count(mark) for mark in marks]
    assert formatted(once.encode(), "t.grad.yaml") == once
