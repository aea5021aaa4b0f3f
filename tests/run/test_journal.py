"""The record of a run: every result is there at once; torn lines and those of other hands are passed over."""

from __future__ import annotations

import json
import os
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gradcheck.result import GradientSummary, Status, WrongEntry
from gradcheck.run.journal import Journal, key, known_results, passed_over, read_journal
from gradcheck.support.user_dirs import config_folder, state_folder
from gradcheck.support.user_error import UserError

WRONG = WrongEntry(
    input="x", index=(0,), output="out", output_index=(1,), analytic=float("nan"), numeric=float("-inf"), bar=1e-300
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".gradcheck" / "last.jsonl"


def test_a_result_is_in_the_file_as_soon_as_it_is_appended(case, path):
    journal = Journal(path=path)
    result = case("pass").result(Status.PASS, "a line\nand another", seconds=0.25)
    journal.append(case("pass"), result)
    (record,) = read_journal(path).records
    assert (record.result, record.seed, record.timeout) == (result, 0, 60.0)


def test_numbers_that_json_lacks_come_back(case, path):
    gradient = GradientSummary(verdict=Status.FAIL, wrong=(WRONG,), wrong_counts={"x": (1, 2)})
    journal = Journal(path=path)
    journal.append(case("pass"), case("pass").result(Status.FAIL, "wrong", gradient=gradient))
    assert repr(read_journal(path).records[0].result.gradient) == repr(gradient)


def test_a_new_run_begins_a_new_file_and_leaves_the_old_run_its_own(case, path):
    old = Journal(path=path)
    old.append(case("pass", "a"), case("pass", "a").result(Status.PASS, ""))
    new = Journal(path=path)
    old.append(case("pass", "b"), case("pass", "b").result(Status.PASS, ""))
    new.append(case("pass", "c"), case("pass", "c").result(Status.PASS, ""))
    assert [record.result.scenario for record in read_journal(path).records] == ["c"]
    assert sorted(file.name for file in path.parent.iterdir()) == [".gitignore", "last.jsonl"]


def test_of_two_results_of_a_case_the_later_counts(case, path):
    journal = Journal(path=path)
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
    journal = Journal(path=path)
    for name in "abc":
        journal.append(case("pass", name), case("pass", name).result(Status.PASS, name * 50))
    content = path.read_bytes()
    kept = max(0, len(content) - lost)
    os.truncate(path, kept)
    ends = [found.start() for found in re.finditer(b"\n", content)]  # a line whose end of line is lost is whole
    whole = [record.result.scenario for record in read_journal(path).records]
    assert whole == [name for name, end in zip("abc", ends, strict=True) if end <= kept]
    Journal(read_journal(path).run, path).append(case("pass", "d"), case("pass", "d").result(Status.PASS, ""))
    assert [record.result.scenario for record in read_journal(path).records] == [*whole, "d"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_a_file_with_anything_in_it_can_be_read(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert read_journal(path).records == []


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"timeout": 2.0}, {"memory": 1 << 20}, {"parameters": {"dtype": "float32"}}, {"backend": "paddle"}],
)
def test_a_result_is_known_only_for_the_very_same_case(case, path, change):
    journal, one = Journal(path=path), case("pass")
    journal.append(one, one.result(Status.PASS, ""))
    assert list(known_results([one], read_journal(path).records)) == ["one@numpy"]
    assert known_results([one.model_copy(update=change)], read_journal(path).records) == {}
    assert known_results([case("pass  # changed")], read_journal(path).records) == {}


def test_keys_depend_on_nothing_but_the_case(case):
    assert key(case("pass")) == key(case("pass"))


def test_without_a_file_it_is_said_where_it_should_be(path):
    with pytest.raises(UserError, match=r"no last run is recorded in this folder \(.*last\.jsonl\)"):
        read_journal(path)


def test_where_nothing_can_be_written_the_problem_is_told_and_no_more(case, tmp_path):
    (tmp_path / "file").write_text("")
    journal = Journal(path=tmp_path / "file" / "last.jsonl")
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    assert journal.problem.endswith("; this run is not recorded")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_ends_the_record_and_not_the_run(case, path):
    journal = Journal(path=path)
    os.dup2(os.open("/dev/full", os.O_WRONLY), journal.fd)
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    assert "No space left on device; results from here on are not recorded" in journal.problem


# --------------------------------------------------------------------------------- lines of others
def recorded(case, path, *names):
    """A record of FAILs, and its journal."""
    journal = Journal(path=path)
    for name in names:
        journal.append(case("pass", name), case("pass", name).result(Status.FAIL, "wrong"))
    return journal


def test_a_line_that_a_case_appends_is_not_believed(case, path):
    recorded(case, path, "a")
    forged = path.read_text().replace('"FAIL"', '"PASS"')
    assert '"PASS"' in forged
    bare = json.dumps(json.loads(forged)["record"]) + "\n"
    with path.open("a") as file:
        file.write(forged + bare)
    last = read_journal(path)
    assert [(one.result.scenario, one.result.status) for one in last.records] == [("a", "FAIL")]
    assert last.passed_over == 2
    assert passed_over(last).endswith("2 lines not written by this user's run, or not whole: they are passed over")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(st.data())
def test_no_changed_byte_of_a_line_is_believed(case, path, data):
    if not path.exists():
        recorded(case, path, "a", "b")
        path.with_name("whole").write_bytes(path.read_bytes())
    first, second = path.with_name("whole").read_bytes().splitlines(keepends=True)
    at = data.draw(st.integers(0, len(second) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte not in (second[at], 10)))
    path.write_bytes(first + second[:at] + bytes([byte]) + second[at + 1 :])
    assert [one.result.scenario for one in read_journal(path).records] == ["a"]


def test_a_line_of_an_earlier_run_is_not_believed_in_this_one(case, path):
    recorded(case, path, "a")
    earlier = path.read_bytes()
    recorded(case, path, "b")
    with path.open("ab") as file:
        file.write(earlier)
    assert [one.result.scenario for one in read_journal(path).records] == ["b"]


def test_a_record_that_came_with_the_folder_is_not_believed(case, path, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody else"))
    recorded(case, path, "a")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "me"))
    assert read_journal(path) == ("", [], 1)


def test_a_run_that_goes_on_keeps_its_name(case, path):
    journal = recorded(case, path, "a")
    resumed = Journal(read_journal(path).run, path)
    assert resumed.run == journal.run != recorded(case, path).run


def test_the_file_is_not_open_in_a_program_that_is_started(case, path):
    journal = recorded(case, path, "a")
    assert not os.get_inheritable(journal.fd)


# -------------------------------------------------------------------------------- links and the like
def plant(path, target):
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("go_on", ["", "a run"])
def test_a_linked_folder_is_refused_and_nothing_is_written_where_it_leads(case, path, tmp_path, go_on):
    (tmp_path / "elsewhere").mkdir()
    path.parent.symlink_to(tmp_path / "elsewhere")
    journal = Journal(go_on, path)
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    assert journal.problem == f"{path.parent} is a link, which is not followed: remove it; this run is not recorded"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with pytest.raises(UserError, match="is a link"):
        read_journal(path)


def test_a_new_run_replaces_a_link_and_leaves_alone_what_it_leads_to(case, path, tmp_path):
    (tmp_path / "precious").write_text("mine")
    plant(path, tmp_path / "precious")
    plant(path.with_name(".gitignore"), tmp_path / "nothing yet")
    assert recorded(case, path, "a").problem == ""
    assert not path.is_symlink()
    assert [one.result.scenario for one in read_journal(path).records] == ["a"]
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "nothing yet").exists()


@pytest.mark.parametrize("kind", ["link", "dangling link", "second name", "pipe", "folder"])
def test_a_run_goes_on_with_nothing_but_a_plain_file(case, path, tmp_path, kind):
    recorded(case, path, "a")
    precious = tmp_path / "precious"
    os.replace(path, precious)
    before = precious.read_bytes()
    if kind == "link":
        path.symlink_to(precious)
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "nothing yet")
    elif kind == "second name":
        path.hardlink_to(precious)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(UserError, match=r"remove it|directory"):
        read_journal(path)
    journal = Journal("a run", path)
    journal.append(case("pass"), case("pass").result(Status.PASS, ""))
    assert journal.problem.endswith("; this run is not recorded")
    assert precious.read_bytes() == before
    assert not (tmp_path / "nothing yet").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_a_folder_of_another_user_is_refused(case, path, monkeypatch):
    recorded(case, path, "a")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr("gradcheck.run.journal.Seal", lambda: None)
    assert Journal(path=path).problem == f"{path.parent} belongs to another user: remove it; this run is not recorded"
    with pytest.raises(UserError, match="belongs to another user"):
        read_journal(path)


def test_without_open_folders_as_on_windows_links_are_refused_too(case, path, tmp_path, monkeypatch):
    monkeypatch.setattr("gradcheck.run.folder.CAN_HOLD_FOLDER", False)
    monkeypatch.setattr("gradcheck.run.folder.NO_LINK", 0)
    recorded(case, path, "a")
    os.replace(path, tmp_path / "precious")
    path.symlink_to(tmp_path / "precious")
    assert "is a link" in Journal("a run", path).problem
    assert recorded(case, path, "b").problem == ""
    assert [one.result.scenario for one in read_journal(path).records] == ["b"]


# ------------------------------------------------------------------------------------------ the key
def test_the_key_is_this_users_alone_and_outside_the_project(case, path, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    recorded(case, path, "a")
    key_file = tmp_path / "state" / "gradcheck" / "journal.key"
    assert (key_file.stat().st_size, key_file.stat().st_mode & 0o777) == (32, 0o600)
    key_file.chmod(0o644)
    problem = f"{key_file} is open to other users: remove it, and a new one is made"
    assert Journal(path=path).problem == f"{problem}; this run is not recorded"
    with pytest.raises(UserError, match="is open to other users"):
        read_journal(path)


@pytest.mark.parametrize("left", [b"", b"x" * 31])
def test_a_key_that_was_not_finished_is_finished(case, path, monkeypatch, tmp_path, left):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    key_file = tmp_path / "state" / "gradcheck" / "journal.key"
    key_file.parent.mkdir(parents=True)
    key_file.write_bytes(left)
    key_file.chmod(0o600)
    recorded(case, path, "a")
    assert len(read_journal(path).records) == 1
    assert key_file.stat().st_size >= 32


def test_where_no_key_can_be_kept_the_run_is_not_recorded(case, path, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert recorded(case, path, "a").problem.endswith("; this run is not recorded")
    assert not path.exists()


@pytest.mark.parametrize("value", ["", "state", "./state"])
def test_a_folder_of_the_project_cannot_be_the_users_own(monkeypatch, tmp_path, value):
    monkeypatch.chdir(tmp_path)
    for variable, folder in (("XDG_STATE_HOME", state_folder), ("XDG_CONFIG_HOME", config_folder)):
        monkeypatch.setenv(variable, value)
        assert folder().is_absolute()
        assert not folder().is_relative_to(tmp_path)


def test_a_record_of_three_gigabytes_is_refused_before_it_is_read(path):
    Journal(path=path).close()
    os.truncate(path, 3 << 30)
    with pytest.raises(UserError, match=r"last\.jsonl is larger than 1G: remove it"):
        read_journal(path)


def test_a_file_in_which_next_to_nothing_is_a_record_is_refused(path):
    Journal(path=path).close()
    path.write_bytes(b"\n" * 200_000)
    with pytest.raises(UserError, match="is no record of a run: remove it"):
        read_journal(path)


def test_a_line_that_is_longer_than_an_answer_is_none_and_those_after_it_are_read(case, path, monkeypatch):
    monkeypatch.setattr("gradcheck.run.journal.MOST_LINE", 4_000)
    journal = Journal(path=path)
    journal.append(case("pass", "a"), case("pass", "a").result(Status.PASS, "x" * 9_000))
    journal.append(case("pass", "b"), case("pass", "b").result(Status.PASS, ""))
    found = read_journal(path)
    assert [record.result.scenario for record in found.records] == ["b"]
    assert found.passed_over == 3


def test_a_recorded_result_of_another_case_is_not_taken_over(case, path):
    one, other = case("pass", "a"), case("pass", "b")
    journal = Journal(path=path)
    journal.append(one, other.result(Status.PASS, ""))
    assert known_results([one, other], read_journal(path).records) == {}
