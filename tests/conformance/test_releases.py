"""Release files: what a release does in place of what the suite expects, from runs."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

import pytest
from cases import cases_of

from gradcheck.case.case import Case
from gradcheck.case.execute import execute
from gradcheck.conformance import release_writer
from gradcheck.conformance.release_writer import UNREAD, file_text, new_entry, release_entry
from gradcheck.conformance.releases import find_release, read_release, with_recorded_deviations
from gradcheck.conformance.suite import suite_version
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.model import NO_DEVIATION
from gradcheck.spec.read import load
from gradcheck.support.resources import SUITES, bundled_files, bundled_specs, release_paths
from gradcheck.support.user_error import UserError

FRAMEWORKS = ["paddle", "torch"]
RELEASES = ["2.6.2", "3.0.0", "3.1.0", "3.1.1", "3.2.0", "3.2.1", "3.2.2", "3.3.0", "3.3.1"]


@functools.cache
def ids(framework: str) -> set[str]:
    return {scenario.id for spec in load(bundled_files(framework)) for scenario in spec.scenarios}


def test_there_is_a_file_for_each_release_of_the_index() -> None:
    assert [*release_paths()] == RELEASES


def test_every_spec_is_of_the_suite_of_its_framework() -> None:
    assert [*SUITES] == FRAMEWORKS
    files = {framework: bundled_files(framework) for framework in FRAMEWORKS}
    assert sorted(itertools.chain(*files.values())) == sorted(bundled_specs().rglob("*.grad.yaml"))
    for framework in FRAMEWORKS:
        assert {spec.framework for spec in load(files[framework])} == {framework}


@pytest.mark.parametrize(
    ("framework", "release"),
    [(framework, release) for framework in FRAMEWORKS for release in release_paths(framework)],
)
class TestEachFile:
    def test_it_is_about_its_release_and_from_a_run(self, framework: str, release: str) -> None:
        file = read_release(release_paths(framework)[release])
        assert (file.backend, file.release) == (framework, release)
        assert file.run.suite == f"gradcheck {suite_version(framework)}"

    def test_it_is_about_scenarios_that_there_are_each_once(self, framework: str, release: str) -> None:
        file = read_release(release_paths(framework)[release])
        assert {*file.deviates, *file.holds} <= ids(framework)
        assert file.holds_set.isdisjoint(file.deviates)
        assert len(file.holds_set) == len(file.holds)

    def test_somebody_has_read_every_reason(self, framework: str, release: str) -> None:
        entries = read_release(release_paths(framework)[release]).deviates
        assert [name for name, entry in entries.items() if entry.why.startswith(UNREAD.strip())] == []


class TestWhichFileIsRead:
    def test_a_version_has_its_own(self) -> None:
        assert find_release("3.2.2") == "3.2.2"
        assert find_release("3.2.2+cu118") == "3.2.2"

    @pytest.mark.parametrize("version", ["0.0.0", "3.4.0", "", "develop"])
    def test_a_develop_build_and_what_was_not_run_have_the_newest(self, version: str) -> None:
        assert find_release(version) == RELEASES[-1]

    def test_another_can_be_chosen(self) -> None:
        cases = plan(load([bundled_specs() / "documents"]), ["paddle@3.3.1"])
        named = {case.scenario.id: case for case in with_recorded_deviations(cases, "2.6.2")}
        entry = named["error-backward-missing"].entry
        assert entry is not None
        assert entry.reason
        with pytest.raises(UserError, match=r"paddle 9\.9\.9 was not run; releases that were run: 2\.6\.2, "):
            with_recorded_deviations(cases, "9.9.9")

    def test_a_framework_without_files_has_none(self) -> None:
        assert find_release("2.13.0+cpu", "torch") == "2.13.0"
        assert find_release("0.10.2", "jax") == ""
        [case] = plan(load([bundled_specs() / "torch"]), ["torch"])[:1]
        with pytest.raises(UserError, match=r"torch 3\.3\.1 was not run; releases that were run: 2\.13\.0$"):
            with_recorded_deviations([case], "3.3.1")
        with pytest.raises(UserError, match=r"jax 3\.3\.1 was not run; releases that were run: none$"):
            with_recorded_deviations([case.model_copy(update={"backend": "jax"})], "3.3.1")

    def test_a_deviation_of_torch_reaches_the_process_of_its_case(self) -> None:
        cases = with_recorded_deviations(plan(load([bundled_specs() / "torch"]), ["torch"]), "2.13.0")
        received = [Case.model_validate_json(case.model_dump_json()) for case in cases]
        reasons = {case.scenario.id: case.entry.why for case in received if case.entry.observed}
        deviates = read_release(release_paths("torch")["2.13.0"]).deviates
        assert reasons == {name: entry.why for name, entry in deviates.items()}

    def test_what_is_not_of_the_suite_is_left_alone(self) -> None:
        [case] = cases_of(
            "schema: gradcheck/v1\nscenarios: [{id: backward-rules-list-return, layer: {op: tanh}, inputs: {x: [2]}}]"
        )
        assert with_recorded_deviations([case.model_copy(update={"backend": "paddle@3.3.1"})])[0].entry is NO_DEVIATION


class TestRecording:
    SPEC = """
schema: gradcheck/v1
scenarios:
  - id: one
    title: t
    source: {document: d}
    script: |
      x = paddle.to_tensor([1.0], stop_gradient=False)
      (x * 2).backward()
    expect: EXPECT
"""

    def outcome(self, expect: str):
        [case] = cases_of(self.SPEC.replace("EXPECT", expect))
        case = case.model_copy(update={"recorded": True})
        return case, execute(case)

    @pytest.mark.parametrize(
        ("expect", "observed"),
        [
            ("{values: {x.grad: [3.0]}}", {"values": {"x.grad": [2.0]}}),
            ("{raises: {type: ValueError}}", {"values": {"x.grad": [2.0]}}),
            (
                "{values: {x.grad: [2.0]}, calls: {backward: 1}}",
                {"values": {"x.grad": [2.0]}, "calls": {"backward": 0}},
            ),
        ],
    )
    def test_what_is_seen_is_recorded_as_it_is_seen(self, expect: str, observed: dict[str, object]) -> None:
        case, result = self.outcome(expect)
        entry = release_entry([(case, result)])
        assert entry is not None
        assert entry["observed"] == observed
        assert entry["reason"].startswith(UNREAD)

    def test_an_exception_is_recorded_with_its_type_phase_and_text(self) -> None:
        [case] = cases_of(
            self.SPEC.replace("(x * 2).backward()", "raise KeyError('gone')").replace("EXPECT", "{values: {'1': 1}}")
        )
        case = case.model_copy(update={"recorded": True})
        observed = new_entry(execute(case))["observed"]
        assert observed == {"raises": {"type": "KeyError", "phase": "forward", "message": "'gone'"}}

    def test_what_holds_has_no_entry(self) -> None:
        assert release_entry([self.outcome("{values: {x.grad: [2.0]}}")]) is None

    def test_a_crash_and_a_run_without_end_are_recorded_by_how_they_end(self) -> None:
        case, _ = self.outcome("{values: {x.grad: [2.0]}}")
        crash = case.result(Status.CRASH, "killed", signal="SIGSEGV")
        assert new_entry(crash)["observed"] == {"crash": ["SIGSEGV"]}
        assert new_entry(case.result(Status.TIMEOUT, "late"))["observed"] == {"hang": True}

    def test_what_is_written_can_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(release_writer, "python_of", lambda case: "3.11.7")
        case, result = self.outcome("{values: {x.grad: [3.0]}}")
        case = case.model_copy(update={"backend": "paddle@3.3.1"})
        path = tmp_path / "paddle-3.3.1.yaml"
        entries = {"one": new_entry(result)}
        path.write_text(
            file_text(case, path.name, release_writer.run_of(case), entries, ["other", "third"]), encoding="utf-8"
        )
        file = read_release(path)
        assert file.deviates["one"].observed is not None
        assert file.holds == ("other", "third")

    def test_a_run_of_a_few_scenarios_changes_their_entries_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(release_writer, "python_of", lambda case: "3.11.7")
        path = tmp_path / "paddle-3.3.1.yaml"
        text = release_paths()["3.3.1"].read_text(encoding="utf-8")
        path.write_text(re.sub(r"date: '[\d-]+'", "date: '2020-01-01'", text), encoding="utf-8")
        before = read_release(path)
        documents = plan(load([bundled_specs() / "documents"]), ["paddle@3.3.1"])
        [case] = [case for case in documents if case.scenario.id == "backward-rules-list-return"]
        release_writer.write_release_file(path, [case], [case.result(Status.PASS, "")])
        read_release.cache_clear()
        after = read_release(path)
        assert before.deviates.keys() - after.deviates.keys() == {"backward-rules-list-return"}
        assert after.holds_set - before.holds_set == {"backward-rules-list-return"}
        assert all(after.deviates[id].observed == before.deviates[id].observed for id in after.deviates)
        assert after.run.date == "2020-01-01"  # that of the last run of the whole suite

    def test_an_entry_needs_a_reason(self, tmp_path: Path) -> None:
        path = tmp_path / "paddle-3.3.1.yaml"
        run = "{date: '2026-11-26', python: '3', system: s, suite: s}"
        path.write_text(
            "format: gradcheck-release/1\nbackend: paddle\nrelease: '3.3.1'\n"
            f"run: {run}\ndeviates:\n  one:\n    observed: {{values: {{x: 1}}}}\n"
        )
        with pytest.raises(SpecError, match="'observed' needs a 'reason' next to it"):
            read_release(path)
