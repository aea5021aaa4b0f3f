"""The record of a run: every result is there as soon as it is, and torn lines are passed over."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradcheck.result import GradientSummary, Status, WrongEntry
from gradcheck.run.journal import Journal, JournalError, key, known_results, read

WRONG = WrongEntry(
    input="x", index=(0,), output="out", output_index=(1,), analytic=float("nan"), numeric=float("-inf"), bar=1e-300
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".gradcheck" / "last.jsonl"


def test_a_result_is_in_the_file_as_soon_as_it_is_appended(case, path):
    journal = Journal(append=False, path=path)
    result = case("pass").result(Status.PASS, "a line\nand another", seconds=0.25)
    journal.append(case("pass"), result)
    (record,) = read(path)
    assert (record.result, record.seed, record.timeout) == (result, 0, 60.0)


def test_numbers_that_json_lacks_come_back(case, path):
    gradient = GradientSummary(verdict=Status.FAIL, wrong=(WRONG,), wrong_counts={"x": (1, 2)})
    journal = Journal(append=False, path=path)
    journal.append(case("pass"), case("pass").result(Status.FAIL, "wrong", gradient=gradient))
    assert repr(read(path)[0].result.gradient) == repr(gradient)


def test_a_new_run_begins_a_new_file_and_leaves_the_old_run_its_own(case, path):
    old = Journal(append=False, path=path)
    old.append(case("pass", "a"), case("pass", "a").result(Status.PASS, ""))
    new = Journal(append=False, path=path)
    old.append(case("pass", "b"), case("pass", "b").result(Status.PASS, ""))
    new.append(case("pass", "c"), case("pass", "c").result(Status.PASS, ""))
    assert [record.result.scenario for record in read(path)] == ["c"]
    assert sorted(file.name for file in path.parent.iterdir()) == [".gitignore", "last.jsonl"]


def test_of_two_results_of_a_case_the_later_counts(case, path):
    journal = Journal(append=False, path=path)
    for scenario, status in [("a", Status.FAIL), ("b", Status.PASS), ("a", Status.PASS)]:
        journal.append(case("pass", scenario), case("pass", scenario).result(status, ""))
    assert [(record.result.scenario, record.result.status) for record in read(path)] == [("b", "PASS"), ("a", "PASS")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_wherever_the_file_is_cut_whole_lines_count_and_new_ones_can_follow(case, path, cut):
    path.unlink(missing_ok=True)
    journal = Journal(append=False, path=path)
    for name in "abc":
        journal.append(case("pass", name), case("pass", name).result(Status.PASS, name * 50))
    content = path.read_bytes()
    os.truncate(path, min(cut, len(content)))
    whole = [record.result.scenario for record in read(path)]
    assert whole == list("abc")[: content[: min(cut, len(content))].count(b"\n")] or whole == list("abc")[: len(whole)]
    Journal(append=True, path=path).append(case("pass", "d"), case("pass", "d").result(Status.PASS, ""))
    assert [record.result.scenario for record in read(path)] == [*whole, "d"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_a_file_with_anything_in_it_can_be_read(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert read(path) == []


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"timeout": 2.0}, {"memory": 1 << 20}, {"parameters": {"dtype": "float32"}}, {"backend": "paddle"}],
)
def test_a_result_is_known_only_for_the_very_same_case(case, path, change):
    journal, one = Journal(append=False, path=path), case("pass")
    journal.append(one, one.result(Status.PASS, ""))
    assert list(known_results([one], read(path))) == ["one@numpy"]
    assert known_results([one.model_copy(update=change)], read(path)) == {}
    assert known_results([case("pass  # changed")], read(path)) == {}


def test_keys_depend_on_nothing_but_the_case(case):
    assert key(case("pass")) == key(case("pass"))


def test_without_a_file_it_is_said_where_it_should_be(path):
    with pytest.raises(JournalError, match=r"there is no .*last\.jsonl: no run has been recorded in this folder"):
        read(path)


def test_where_nothing_can_be_written_the_problem_is_told_and_no_more(case, tmp_path):
    (tmp_path / "file").write_text("")
    journal = Journal(append=False, path=tmp_path / "file" / "last.jsonl")
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    assert journal.problem.endswith("; this run is not recorded")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_ends_the_record_and_not_the_run(case, path):
    journal = Journal(append=False, path=path)
    os.dup2(os.open("/dev/full", os.O_WRONLY), journal.fd)
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    assert "No space left on device; results from here on are not recorded" in journal.problem
