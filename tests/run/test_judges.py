"""What gradcheck computes with: changes to it are named, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

import gradcheck.case.execute  # what runs in a worker
from gradcheck.case import gradient_check
from gradcheck.checking.point import Point
from gradcheck.run import tamper_check
from gradcheck.run.tamper_check import Judges


@pytest.fixture(params=[False, True], autouse=True)
def interpreter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """This interpreter, and one that does not tell whether a dict was changed."""
    if request.param:
        monkeypatch.setattr(tamper_check, "VERSIONED", False)


def test_nothing_is_changed_where_nothing_was() -> None:
    assert Judges().changed() == ""


@pytest.mark.parametrize(
    ("owner", "name", "told"),
    [
        (np, "isfinite", "numpy.isfinite"),
        (np.random, "default_rng", "numpy.random.default_rng"),
        (gradient_check, "check_gradient", "gradcheck.case.gradient_check.check_gradient"),
        (Point, "__init__", "gradcheck.checking.point.Point.__init__"),
        (gradcheck.case.execute, "judge", "gradcheck.case.execute.judge"),
    ],
)
def test_a_replaced_function_is_named(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, told: str) -> None:
    judges = Judges()
    monkeypatch.setattr(owner, name, lambda *args, **kwargs: True)
    assert judges.changed() == told


def test_a_removed_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    judges = Judges()
    monkeypatch.delattr(np, "isfinite")
    assert judges.changed() == "numpy.isfinite"


def test_what_gradcheck_does_not_use_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    judges = Judges()
    monkeypatch.setattr(np, "tri", None)
    monkeypatch.setattr(np, "new_name", 1, raising=False)
    assert judges.changed() == ""


def test_what_was_put_back_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    judges = Judges()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Point, "__init__", None)
    assert judges.changed() == ""
