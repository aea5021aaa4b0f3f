"""Whatever a file holds: `read` returns or raises SpecError, with diagnostics that can be shown and located."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.model import Scenario
from gradcheck.spec.read import read_bytes

VALID = b"""\
schema: gradcheck/v1
defaults: {dtype: float32, tags: [a], source: {document: d}}
scenarios:
  - id: one
    title: One
    layer: |
      class A(PyLayer):
          pass
    inputs:
      x: {shape: [2, 3], init: uniform, low: -1, high: 1}
      y: {values: [[1, 2], [3, .nan]]}
    call: A.apply(x, y)
    matrix: {dtype: [float32, float64]}
    expect:
      grads: {y: [[1, 2], [3, 4]]}
      values: {"x.grad is None": true, y: {value: [1], rtol: 1e-3}}
    backends: {paddle: {xfail: {reason: why}, expect: {order: 2}}}
  - id: two
    extends: one
    title: Two
    rtol: 1e-6
"""
FRAGMENTS = [
    b"\t", b"\n", b"  ", b": ", b"- ", b"{", b"}", b"[", b"]", b"'", b'"', b"|", b">", b"&a ", b"*a", b"!!x ", b"<<: ",
    b"? ", b"# ", b"---\n", b"...\n", b"%YAML 1.2\n", b"\x00", b"\xff", b"\xef\xbb\xbf", "中\u2028".encode(), b"~",
    b"1e999", b"-1", b"path: 1\n", b"null", b"yes", b"extends: two\n", b"{re: '('}", b"\\", b"@", b"\r",
]  # fmt: skip


def check(raw: bytes) -> None:
    spec, diagnostics = None, []
    try:
        spec = read_bytes(raw, "t.grad.yaml")
    except SpecError as error:
        diagnostics = error.diagnostics
    if spec is None:
        assert diagnostics
        lines = raw.count(b"\n") + raw.count(b"\r") + 1
        for one in diagnostics:
            assert one.render().replace("\n", "").isprintable()
            assert one.message
            assert 0 <= one.line <= lines
            assert one.column >= (1 if one.line else 0)
            assert one.column <= len(one.source_line) + 2
    else:
        for scenario in spec.scenarios:
            assert repr(Scenario.model_validate_json(scenario.model_dump_json())) == repr(scenario)


QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(st.lists(st.tuples(st.integers(0, len(VALID)), st.integers(0, 12), st.sampled_from(FRAGMENTS)), max_size=4))
def test_a_valid_file_with_pieces_replaced(edits):
    raw = VALID
    for start, length, fragment in edits:
        raw = raw[:start] + fragment + raw[start + length :]
    check(raw)


@QUICK
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=3), st.integers(0, 8))
def test_a_valid_file_with_lines_moved_and_indented_anew(moves, indent):
    lines = VALID.split(b"\n")
    for source, target in moves:
        lines.insert(target, b" " * indent + lines.pop(source).lstrip() if indent else lines.pop(source))
    check(b"\n".join(lines))


@QUICK
@given(st.text(max_size=80))
@example("- " * 20_000)
@example("{" * 20_000)
@example("? " * 5_000)
@example("!" * 100)
@example("&" + "a" * 5000)
def test_any_text(text):
    check(text.encode(errors="surrogatepass"))


@QUICK
@given(st.binary(max_size=60))
def test_any_bytes(raw):
    check(raw)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["id", "x", "no"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
KEYS = [
    "id", "title", "source", "tags", "layer", "script", "inputs", "call", "matrix", "expect", "backends", "seed",
    "timeout", "rtol", "extends", "path", "positions",
]  # fmt: skip


@QUICK
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6), VALUES, st.sampled_from(["expect", "inputs", ""]))
def test_any_value_in_any_field(scenario, value, nested):
    import json

    if nested:
        scenario[nested] = {"x": value, "grads": value, "values": {"x": value}, "calls": value, "raises": value}
    check(json.dumps({"schema": "gradcheck/v1", "defaults": value, "scenarios": [scenario]}).encode())
