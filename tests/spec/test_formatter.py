"""The format: a file that is mended says the same, has the same comments, and needs no more mending."""

from __future__ import annotations

from textwrap import dedent
from unittest.mock import patch

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gradcheck.spec import formatter
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.formatter import WIDTH, formatted
from gradcheck.spec.read import read_bytes
from gradcheck.spec.text import decode
from gradcheck.spec.tree import parse
from gradcheck.support.resources import bundled_specs

SPECS = sorted(bundled_specs().rglob("*.grad.yaml"))
BUNDLED = [*SPECS, *sorted((bundled_specs() / "rules").glob("*.yaml"))]


def form(text: str) -> str:
    return formatted(dedent(text).encode(), "t.grad.yaml").decode()


def data(text: str) -> str:
    """What a text says."""
    read_in = decode(text.encode(), "t.grad.yaml")
    root, _ = parse(read_in)
    if read_in.found:
        raise read_in.error()
    return repr(root.data())


def loaded(text: str) -> list[dict[str, object]]:
    """All scenarios, but for where they stand."""
    places = {"path", "line", "column", "begins", "positions"}
    return [one.model_dump(exclude=places) for one in read_bytes(text.encode(), "t.grad.yaml").scenarios]


class TestWhatStays:
    @pytest.mark.parametrize(
        "text",
        [
            "a: 1\n",
            "# above\n\n\nb:   {c: 1,   d: [ 2 ]}   # behind\n\na: 'quoted'\nc: \"quoted\"\nd: >-\n  folded\n",
            "a:\n  b:\n    - c\n    - d: 1\n      e: 2\n    -\n      f: 3\n",
            "a: [1,\n  2,  # why\n    3]\nb: plain\n  text\n",
            "---\na: |\n  text  \n\n    deeper\n  # no comment\n\nb: |+\n  kept\n\n",
            "? a\n: - b\n",
            "\ufeffa: 1\r\nb: 2\r\n",
            "a:\n  # deep\n  b: 1\n  # of a\n# of the file\n",
            f"a: {'x' * 200}\nb: |\n  {'x ' * 200}x\n",
        ],
    )
    def test_a_file_without_anything_to_mend_stays_as_it_is_byte_for_byte(self, text):
        assert formatted(text.encode(), "t.grad.yaml") == text.encode()

    def test_brackets_with_comments_within_stay_as_their_author_laid_them_out(self):
        text = f"a: [{'x' * 60},  # why\n  {'x' * 60}, {'y' * 60}]\n"
        assert form(text) == text


class TestWhatIsMended:
    def test_each_level_is_indented_by_two_columns_and_comments_move_with_it(self):
        assert form(
            """\
            a:
                # about b
                b: 1   # behind
                c:
                - d: 1
                  # about e
                  e: [1,
                      2]
                -   f:
                     - - 2
                       - 3
                # deep
            g: |
                text
                  deeper
            h: plain
                 text
            """
        ) == dedent(
            """\
            a:
              # about b
              b: 1   # behind
              c:
                - d: 1
                  # about e
                  e: [1,
                      2]
                - f:
                    - - 2
                      - 3
                # deep
            g: |
              text
                deeper
            h: plain
                 text
            """
        )

    def test_spaces_at_the_ends_of_lines_and_of_the_file(self):
        assert form("a: 1  \n   \nb: 2\t\n\n\n") == "a: 1\n\nb: 2\n"
        assert form("a: 1") == "a: 1\n"
        text = b"b: |\n  text  \n   \n\nc: 1\n"
        assert formatted(text, "t.grad.yaml") == text  # there they are part of the text

    def test_brackets_without_room_are_opened_as_far_as_needed(self):
        short, text = "{a: 1, 'b': [x y, z]}", "t" * 70
        assert form(f"k: {{one: {short}, two: {{three: {text}, four: {short}}},\n  five: [{text},\n  {short}]}}\n") == (
            f"k:\n  one: {short}\n  two:\n    three: {text}\n    four: {short}\n  five: [{text}, {short}]\n"
        )

    def test_an_entry_of_a_list_is_opened_behind_its_dash(self):
        text = "t" * 70
        assert form(f"k:\n  - {{id: a, b: {text}, c: {text}}}  # why\n  - d\n") == (
            f"k:\n  # why\n  - id: a\n    b: {text}\n    c: {text}\n  - d\n"
        )

    def test_a_list_of_numbers_goes_on_in_the_next_line(self):
        written = form(f"k: {list(range(60))}\n")
        assert written.startswith("k: [0, 1, ")
        assert written.count("\n") == 3
        assert yaml.safe_load(written) == {"k": list(range(60))}

    @pytest.mark.parametrize("quote", ["", "'", '"'])
    def test_text_goes_on_in_the_next_line(self, quote):
        text = " ".join(["words"] * 30)
        written = form(f"a:\n  - k: {quote}{text}{quote}  # why\n")
        assert written.split("\n")[1] == "  # why"
        assert yaml.safe_load(written) == {"a": [{"k": text}]}
        assert all(len(line) <= WIDTH for line in written.split("\n"))

    def test_a_comment_behind_something_long_stands_above_it(self):
        why = f"# {'why ' * 25}".rstrip()
        assert form(f"a:\n  - b: 1  {why}\n") == f"a:\n  {why}\n  - b: 1\n"
        assert form(f"aaaa: |  {why} {why}\n  text\n") == f"{why} {why}\naaaa: |\n  text\n"


class TestText:
    @pytest.mark.parametrize(
        "value",
        ["no", "1e-6", "017", "a: b", "a #b", "'a'", 'a"b', "", " a", "a ", "-", "- a", "[a]", "a,b", "{", "?", "#",
         "~", "null", "true", "1.5", "0x10", "é", "a:", "@a", "%a", "`a", "*a", "&a", "!a", "|", ">", "\\d",
         "2020-01-01", "a\tb", "a\n\nb", "\n", "a  b"],
    )  # fmt: skip
    @pytest.mark.parametrize("style", ['"', "'", None])
    @pytest.mark.parametrize("width", [20, 2000])
    def test_text_stays_text_when_brackets_are_opened_and_lines_folded(self, value, style, width):
        long = f"{value} {'word ' * 40}{value}"
        said = {f"k{value}": [value, {"a": value, "b": long, "c": {f"k{long[:80]}": [long]}}]}
        text = yaml.dump(said, default_style=style, default_flow_style=True, width=width, allow_unicode=True)
        assert data(form(text)) == data(text)
        assert yaml.load(form(text), Loader=yaml.CBaseLoader) == yaml.load(text, Loader=yaml.CBaseLoader) == said

    def test_odd_characters_stay_escapes(self):
        text = 'k: ["a\\u2028\n\n  b", ' + "c " * 60 + "]\n"
        assert yaml.safe_load(form(text)) == yaml.safe_load(text)

    @pytest.mark.parametrize("text", ["k: |\n  a", "k: |+\n  a", "k: >\n  a", "k: |\n  a\n\n", "k: |2\n    a\n   b\n"])
    def test_a_block_keeps_its_blanks_and_line_breaks(self, text):
        assert yaml.safe_load(form(text)) == yaml.safe_load(text)
        assert form(form(text)) == form(text)


class TestBundled:
    @pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.name)
    def test_a_bundled_file_needs_no_mending_and_has_no_long_line(self, path):
        raw = path.read_bytes()
        assert formatted(raw, path.name) == raw
        assert [line for line in raw.decode().split("\n") if len(line) > WIDTH] == []

    @pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.name)
    def test_both_parsers_of_yaml_read_the_same_in_a_bundled_file(self, path):
        raw = path.read_bytes()
        assert yaml.load(raw, yaml.SafeLoader) == yaml.load(raw, yaml.CSafeLoader)

    @pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
    @pytest.mark.parametrize("flow", [False, True])
    def test_what_another_writer_makes_of_a_bundled_file_has_the_same_cases_when_mended(self, path, flow):
        text = path.read_text(encoding="utf-8")
        root, _ = parse(decode(text.encode(), path.name))
        other = yaml.dump(plain(root), default_flow_style=flow, allow_unicode=True, width=200, Dumper=Quoting, indent=4)
        mended = formatted(other.encode(), path.name)
        assert mended != other.encode()
        assert loaded(mended.decode()) == loaded(text)


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


@given(
    DOCUMENTS,
    st.sampled_from([False, True, None]),
    st.sampled_from([None, '"', "'", "|", ">"]),
    st.sampled_from([20, 1000]),
    st.sampled_from([2, 4, 7]),
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 8), st.sampled_from(["alone", "behind", "spaces"])), max_size=4
    ),
    st.sampled_from([0, 1, 3]),
)
@example({"id": "a\n\n"}, False, "|", 50, 2, [(3, 2, "alone")], 1)
@example({"id": {"1:?": None}}, False, None, 50, 2, [], 1)
@example({"id": [["1\n"]]}, None, None, 50, 2, [(4, 0, "behind")], 1)
def test_a_file_says_the_same_keeps_all_comments_and_stays_once_mended(
    document, flow, style, width, indent, marks, breaks
):
    dumped = yaml.dump(
        document, Dumper=NoAliases, default_flow_style=flow, default_style=style, allow_unicode=True, width=width,
        indent=indent,
    )  # fmt: skip
    lines = dumped.removesuffix("\n").split("\n")
    for number, (at, margin, how) in enumerate(marks):
        at = min(at, len(lines) - 1)
        if how == "alone":
            lines.insert(at, f"{' ' * margin}#mark-{number}.")
        else:
            lines[at] += " " * margin + (f" #mark-{number}." if how == "behind" else "")
    text = "\n".join(lines) + "\n" * breaks
    try:
        said = data(text)
    except SpecError:
        assume(False)  # a comment was put where none can stand, or it is no YAML of ours
    with patch.object(formatter, "WIDTH", 30):  # small documents show what large ones would
        once = formatted(text.encode(), "t.grad.yaml")
        assert formatted(once, "t.grad.yaml") == once
    assert data(once.decode()) == said
    for number in range(len(marks)):
        assert once.count(b"#mark-%d." % number) == text.count(f"#mark-{number}.")
