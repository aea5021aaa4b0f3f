"""What was likely meant by a name."""

from __future__ import annotations

import pytest

from gradcheck.support.suggest import hint


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("gelou", ["elu", "gelu", "celu"], "gelu"),
        ("apply-tahn", ["apply-tanh", "reply-tanh"], "apply-tanh"),
        ("shpae", ["shape", "space"], "shape"),
        ("tahn", ["tan", "tanh"], "tanh"),
        ("doc", ["document", "section"], "document"),
        ("Float32", ["float64", "float32"], "float32"),
    ],
)
def test_of_names_that_are_about_as_near_one_that_begins_alike_is_meant(name, known, meant):
    assert hint(name, known, "") == f"did you mean {meant}?"


def test_where_none_is_near_something_else_is_said():
    assert hint("xyz", ["tanh"], "there is tanh") == "there is tanh"
    for name, known in (("description", ["script"]), ("repeat", ["expect"]), ("fails", ["calls"])):
        assert hint(name, known, "none") == "none"
    assert hint("x" * 10**6, ["xx"], "there is xx") == "there is xx"
