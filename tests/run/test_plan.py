"""What is run: names and order of cases, seeds and limits, and selection by id, -k and -t."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.backends.base import BACKENDS
from gradcheck.result import Status
from gradcheck.run.plan import Case, SelectionError, plan, select, select_ids, select_names, select_tags
from gradcheck.spec.read import read_bytes

SPEC = """
    schema: gradcheck/v1
    scenarios:
      - id: tanh
        title: t
        source: {document: d}
        tags: [apply, smooth]
        layer: {op: tanh}
        inputs: {x: {shape: [2]}}
        matrix: {dtype: [float32, float64], flag: [true, false]}
        seed: 7
        timeout: 5
      - id: skipped
        title: t
        source: {document: d}
        tags: [slow]
        layer: {op: exp}
        inputs: {x: {shape: [2]}}
        expect: {grads: {x: [.nan, .inf]}}
        backends: {numpy: {skip: {reason: not yet}}}
    """


@pytest.fixture
def specs():
    return [read_bytes(dedent(SPEC).encode(), "a.grad.yaml")]


def names(cases):
    return [case.name for case in cases]


def test_cases_come_by_scenario_then_matrix_point_then_backend(specs):
    assert names(plan(specs, ["numpy", "cupy"])) == [
        "tanh/dtype=float32,flag=True@numpy",
        "tanh/dtype=float32,flag=True@cupy",
        "tanh/dtype=float32,flag=False@numpy",
        "tanh/dtype=float32,flag=False@cupy",
        "tanh/dtype=float64,flag=True@numpy",
        "tanh/dtype=float64,flag=True@cupy",
        "tanh/dtype=float64,flag=False@numpy",
        "tanh/dtype=float64,flag=False@cupy",
        "skipped@numpy",
        "skipped@cupy",
    ]


@pytest.mark.parametrize(
    ("options", "seeds", "timeouts"),
    [
        ({}, [7, 0], [5, 60]),
        ({"seed": 0}, [0, 0], [5, 60]),
        ({"default_timeout": 9.0}, [7, 0], [5, 9]),
        ({"timeout": 2.0, "default_timeout": 9.0}, [7, 0], [2, 2]),
    ],
)
def test_seed_and_timeout_are_the_scenario_s_unless_the_command_line_gives_one(specs, options, seeds, timeouts):
    cases = {case.scenario.id: case for case in plan(specs, ["numpy"], **options)}
    assert [case.seed for case in cases.values()] == seeds
    assert [case.timeout for case in cases.values()] == timeouts


def test_a_case_survives_the_way_to_a_worker(specs):
    for case in plan(specs, ["numpy"]):
        again = Case.model_validate_json(case.model_dump_json())
        assert repr(again) == repr(case)
        assert again.scenario.line_of("inputs.x") == case.scenario.line_of("inputs.x")


def test_a_skip_carries_its_reason(specs):
    tanh, *_, skipped = plan(specs, ["numpy"])
    assert tanh.not_run() is None
    result = skipped.not_run()
    assert (result.status, result.message, result.line) == (Status.SKIP, "not yet", 13)


@pytest.mark.parametrize(
    ("found", "status", "message"),
    [
        (False, Status.SKIP, 'not installed: paddle; pip install "gradcheck[paddle]"'),
        (True, Status.UNSUPPORTED, "this version does not run scenarios on paddle yet"),
    ],
)
def test_a_backend_that_cannot_be_used_is_never_a_pass(specs, monkeypatch, found, status, message):
    monkeypatch.setattr("gradcheck.backends.base.find_spec", lambda name: object() if found else None)
    monkeypatch.setitem(BACKENDS, "paddle", BACKENDS["paddle"]._replace(implementation=""))
    result = plan(specs, ["paddle"])[0].not_run()
    assert (result.status, result.message) == (status, message)


@pytest.mark.parametrize(
    ("ids", "count"),
    [([], 5), (["tanh"], 4), (["skipped@numpy"], 1), (["skipped", "tanh/dtype=float64,flag=True@numpy"], 2)],
)
def test_ids_and_case_names_select(specs, ids, count):
    assert len(select_ids(plan(specs, ["numpy"]), ids)) == count


@pytest.mark.parametrize(
    ("id", "hint"),
    [
        ("tanhh", "did you mean tanh?"),
        ("skipped@cupy", "did you mean skipped@numpy?"),
        ("@", "`gradcheck list` shows what there is"),
    ],
)
def test_an_unknown_id_brings_up_the_nearest_one(specs, id, hint):
    with pytest.raises(SelectionError) as error:
        select_ids(plan(specs, ["numpy"]), [id])
    assert str(error.value) == f"no file, folder or scenario is called {id!r}; {hint}"


def test_all_unknown_ids_are_reported(specs):
    with pytest.raises(SelectionError, match=r"'one'(.|\n)*'two'"):
        select_ids(plan(specs, ["numpy"]), ["one", "two", "tanh"])


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("tanh", 4),
        ("TANH", 4),
        ("dtype=float32", 2),
        ("not tanh", 1),
        ("tanh and not float32", 2),
        ("skipped or float32 and flag=True", 2),
        ("(skipped or float32) and flag=True", 1),
        ("not (skipped or float32)", 2),
        ("not not tanh", 4),
        ("@numpy", 5),
        ("nothing", 0),
    ],
)
def test_k_selects_by_parts_of_the_name(specs, expression, count):
    assert len(select_names(plan(specs, ["numpy"]), expression)) == count


@pytest.mark.parametrize(("expression", "count"), [("apply", 4), ("app", 0), ("smooth or slow", 5), ("not slow", 4)])
def test_t_selects_by_whole_tags(specs, expression, count):
    assert len(select_tags(plan(specs, ["numpy"]), expression)) == count


def test_all_selections_must_hold(specs):
    assert names(select(plan(specs, ["numpy"]), ["tanh"], "float32", "apply and not slow")) == [
        "tanh/dtype=float32,flag=True@numpy",
        "tanh/dtype=float32,flag=False@numpy",
    ]
    assert select(plan(specs, ["numpy"]), ["tanh"], "skipped") == []


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "-k '': expected a word but found its end;"),
        ("a and", "-k 'a and': expected a word but found its end;"),
        ("a or or b", "-k 'a or or b': expected a word but found 'or';"),
        ("(a", "-k '(a': expected ')' but found its end;"),
        ("a)", "-k 'a)': expected and, or, or the end but found ')';"),
        ("a b", "-k 'a b': expected and, or, or the end but found 'b';"),
        ("not", "-k 'not': expected a word but found its end;"),
        ("(" * 5000, "-k: the expression has more than 200 words"),
    ],
)
def test_a_malformed_expression_is_explained(specs, expression, message):
    with pytest.raises(SelectionError) as error:
        select_names(plan(specs, ["numpy"]), expression)
    assert str(error.value).startswith(message)


WORDS = ["tanh", "skipped", "float32", "true", "numpy", "nothing"]
expressions = st.recursive(
    st.sampled_from(WORDS),
    lambda inner: st.one_of(
        inner.map(lambda e: f"not {e}"),
        inner.map(lambda e: f"({e})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
    ),
    max_leaves=12,
)


@given(expressions)
def test_expressions_mean_what_they_mean_in_python(expression):
    cases = plan([read_bytes(dedent(SPEC).encode(), "a.grad.yaml")], ["numpy"])
    truth = [case for case in cases if eval(expression, {}, {word: word in case.name.lower() for word in WORDS})]
    assert select_names(cases, expression) == truth
