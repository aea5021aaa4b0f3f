"""The record of a run: every result is there at once; torn lines are skipped."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gradcheck.result import GradientSummary, Status, WrongEntry
from gradcheck.run.journal import key, open_journal, read_journal
from gradcheck.support.user_error import UserError

WRONG = WrongEntry(
    input="x",
    index=(0,),
    output="out",
    output_index=(1,),
    analytic=float("nan"),
    numeric=float("-inf"),
    error_bound=1e-300,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".gradcheck" / "last.jsonl"


def test_a_result_is_in_the_file_as_soon_as_it_is_appended(case, path):
    journal = open_journal(path=path)
    result = case("pass").result(Status.PASS, "a line\nand another", seconds=0.25)
    journal.append(case("pass"), result)
    (record,) = read_journal(path).records
    assert (record.result, record.seed, record.timeout) == (result, 0, 60.0)


def test_numbers_that_json_lacks_come_back(case, path):
    gradient = GradientSummary(verdict=Status.FAIL, wrong=(WRONG,), wrong_counts={"x": (1, 2)})
    journal = open_journal(path=path)
    journal.append(case("pass"), case("pass").result(Status.FAIL, "wrong", gradient=gradient))
    assert repr(read_journal(path).records[0].result.gradient) == repr(gradient)


def test_a_new_run_begins_a_new_file_and_leaves_the_old_run_its_own(case, path):
    old = open_journal(path=path)
    old.append(case("pass", "a"), case("pass", "a").result(Status.PASS, ""))
    new = open_journal(path=path)
    old.append(case("pass", "b"), case("pass", "b").result(Status.PASS, ""))
    new.append(case("pass", "c"), case("pass", "c").result(Status.PASS, ""))
    assert [record.result.scenario for record in read_journal(path).records] == ["c"]
    assert sorted(file.name for file in path.parent.iterdir()) == [".gitignore", "last.jsonl"]


def test_of_two_results_of_a_case_the_later_counts(case, path):
    journal = open_journal(path=path)
    for scenario, status in [("a", Status.FAIL), ("b", Status.PASS), ("a", Status.PASS)]:
        journal.append(case("pass", scenario), case("pass", scenario).result(status, ""))
    assert [(record.result.scenario, record.result.status) for record in read_journal(path).records] == [
        ("b", "PASS"),
        ("a", "PASS"),
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.integers(0, 2_000))
@example(1)
def test_wherever_the_file_ends_whole_lines_count_and_new_ones_can_follow(case, path, lost):
    path.unlink(missing_ok=True)
    journal = open_journal(path=path)
    for name in "abc":
        journal.append(case("pass", name), case("pass", name).result(Status.PASS, name * 50))
    content = path.read_bytes()
    kept = max(0, len(content) - lost)
    os.truncate(path, kept)
    ends = [found.start() for found in re.finditer(b"\n", content)]  # a line whose end of line is lost is whole
    whole = [record.result.scenario for record in read_journal(path).records]
    assert whole == [name for name, end in zip("abc", ends, strict=True) if end <= kept]
    open_journal(go_on=True, path=path).append(case("pass", "d"), case("pass", "d").result(Status.PASS, ""))
    assert [record.result.scenario for record in read_journal(path).records] == [*whole, "d"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_a_file_with_anything_in_it_can_be_read(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert read_journal(path).records == ()


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"timeout": 2.0}, {"memory": 1 << 20}, {"parameters": {"dtype": "float32"}}, {"backend": "paddle"}],
)
def test_a_result_is_known_only_for_the_very_same_case(case, path, change):
    journal, one = open_journal(path=path), case("pass")
    journal.append(one, one.result(Status.PASS, ""))
    assert list(read_journal(path).known_results([one])) == ["one@numpy"]
    assert read_journal(path).known_results([one.model_copy(update=change)]) == {}
    assert read_journal(path).known_results([case("pass  # changed")]) == {}


def test_keys_depend_on_nothing_but_the_case(case):
    assert key(case("pass")) == key(case("pass"))


def test_without_a_file_it_is_said_where_it_should_be(path):
    with pytest.raises(UserError, match=r"no last run is recorded in this folder \(.*last\.jsonl\)"):
        read_journal(path)


def test_where_nothing_can_be_written_the_problem_is_told_and_no_more(case, tmp_path):
    (tmp_path / "file").write_text("")
    journal = open_journal(path=tmp_path / "file" / "last.jsonl")
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    assert journal.problem.endswith("; this run is not recorded")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_ends_the_record_and_not_the_run(case, path):
    journal = open_journal(path=path)
    os.dup2(os.open("/dev/full", os.O_WRONLY), journal.descriptor)
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    assert "No space left on device; results from here on are not recorded" in journal.problem
