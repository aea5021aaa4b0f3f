"""Selection by id, -k and -t."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.run.plan import plan
from gradcheck.run.select import select, select_ids, select_names
from gradcheck.support.user_error import UserError


@pytest.mark.parametrize(
    ("ids", "count"),
    [
        ([], 5),
        (["tanh"], 4),
        (["skipped@numpy"], 1),
        (["skipped", "tanh/dtype=float64,flag=True@numpy"], 2),
        (["tanh@numpy"], 4),
        (["tanh/dtype=float64,flag=True"], 1),
    ],
)
def test_ids_and_case_names_select(specs, ids, count):
    assert len(select_ids(plan(specs, ["numpy"]), ids)) == count


@pytest.mark.parametrize(
    ("id", "hint"),
    [
        ("tanhh", "did you mean tanh?"),
        ("skipped@cupy", "did you mean skipped@numpy?"),
        ("@", "`gradcheck list` lists all, with tags and files"),
    ],
)
def test_an_unknown_id_brings_up_the_nearest_one(specs, id, hint):
    with pytest.raises(UserError) as error:
        select_ids(plan(specs, ["numpy"]), [id])
    assert str(error.value) == f"no file, folder or scenario is called {id!r}; {hint}"


def test_an_unknown_id_is_reported(specs):
    with pytest.raises(UserError, match="'one'"):
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


@pytest.mark.parametrize(("expression", "count"), [("apply", 4), ("smooth or slow", 5), ("not slow", 4)])
def test_t_selects_by_whole_tags(specs, expression, count):
    assert len(select(plan(specs, ["numpy"]), tags=expression)) == count


def test_an_unknown_tag_brings_up_the_nearest_one(specs):
    with pytest.raises(UserError, match=r"no scenario has the tag 'app'; did you mean apply\?"):
        select(plan(specs, ["numpy"]), tags="smooth and app")


def test_all_selections_must_hold(specs):
    selected = select(plan(specs, ["numpy"]), ["tanh"], "float32", "apply and smooth")
    assert [case.name for case in selected] == [
        "tanh/dtype=float32,flag=True@numpy",
        "tanh/dtype=float32,flag=False@numpy",
    ]
    assert select(plan(specs, ["numpy"]), ["tanh"], "skipped") == []
    # The tag slow is that of the other scenario.
    assert select(plan(specs, ["numpy"]), ["tanh"], "float32", "slow") == []


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        *((text, f"-k {text!r}: combine words with") for text in ("", "a and", "a or or b", "(a", "a)", "a b", "not")),
        *((text, f"-k {text!r}: combine words with") for text in ("a (b)", "()", "a ()", "(a) (b)")),
        ("(" * 5000, f"-k {'(' * 5000!r}: combine words with"),
    ],
)
def test_a_malformed_expression_is_explained(specs, expression, message):
    with pytest.raises(UserError) as error:
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
def test_expressions_mean_what_they_mean_in_python(specs, expression):
    cases = plan(specs, ["numpy"])
    truth = [case for case in cases if eval(expression, {}, {word: word in case.name.lower() for word in WORDS})]
    assert select_names(cases, expression) == truth
