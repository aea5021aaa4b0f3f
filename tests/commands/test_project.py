"""What a command without a path looks at: the specs of the project that the current folder is in, never gradcheck's own
unless they are asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gradcheck.config import load_project
from gradcheck.support.resources import bundled_files

WRONG = """\
  - id: {id}
    title: A wrong gradient
    source: {{document: d}}
    layer: {{op: tanh}}
    inputs: {{x: {{shape: [2]}}}}
    expect: {{gradient: differs}}
"""
OURS = "apply-tanh-float64-mean"
"""A scenario of gradcheck's own."""


@pytest.fixture
def project(spec, folder):
    """A project with one scenario that fails, in a folder of its own, and no settings."""
    spec(WRONG.format(id="own"), name="specs/own.grad.yaml")
    (folder / "pyproject.toml").write_text("")
    return folder


def ids(done) -> list[str]:
    return [line.split()[0] for line in done.out.splitlines()]


# --------------------------------------------------------------------------------- the project's specs
def test_a_run_without_a_path_fails_where_the_project_fails(project, gradcheck):
    done = gradcheck("run")
    assert done.code == 1
    assert re.match(r"FAIL own@numpy specs/own\.grad\.yaml:3:5 ", done.out)
    assert re.search(r"^1 FAIL in ", done.out, re.MULTILINE)


def test_the_other_commands_look_at_the_same_files(project, gradcheck):
    assert ids(gradcheck("list")) == ["own"]
    assert gradcheck("validate").out == "specs/own.grad.yaml: ok, 1 scenario\n1 file, 1 scenario: all valid\n"
    assert gradcheck("show", "own").out.startswith("# specs/own.grad.yaml:3:5\n")


@pytest.mark.parametrize("marker", ["pyproject.toml", ".git"])
def test_from_a_folder_below_the_whole_project_is_looked_at(project, gradcheck, monkeypatch, marker):
    (project / "pyproject.toml").rename(project / marker)
    (project / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(project / "deep" / "down")
    assert gradcheck("list").out.endswith("  ../../specs/own.grad.yaml:3\n")
    assert gradcheck("validate").out.startswith("../../specs/own.grad.yaml: ok")


def test_without_a_project_the_current_folder_is_looked_at(spec, gradcheck, folder, monkeypatch):
    spec(WRONG.format(id="above"))
    spec(WRONG.format(id="here"), name="sub/b.grad.yaml")
    monkeypatch.chdir(folder / "sub")
    assert ids(gradcheck("list")) == ["here"]


@pytest.mark.parametrize(
    "place", [".hidden", "node_modules", "lib/site-packages", "build", "dist", "env", "ignored", "deep/build"]
)
def test_folders_of_others_are_left_out(project, spec, gradcheck, place):
    spec(WRONG.format(id="theirs"), name=f"{place}/theirs.grad.yaml")
    if place == "env":
        (project / "env" / "pyvenv.cfg").touch()
    (project / ".gitignore").write_text("/ignored/\n")
    assert ids(gradcheck("list")) == ["own"]
    assert ids(gradcheck("list", ".")) == ["own"]
    assert ids(gradcheck("list", place)) == ["theirs"]  # named, it is meant


def test_a_linked_folder_is_not_looked_into(project, spec, gradcheck, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "b.grad.yaml").write_bytes((project / "specs/own.grad.yaml").read_bytes())
    (project / "linked").symlink_to(elsewhere)
    assert ids(gradcheck("list")) == ["own"]


def test_a_gradcheck_that_lies_in_the_project_is_not_the_projects(project, spec, gradcheck, monkeypatch):
    spec(WRONG.format(id="theirs"), name="vendored/gradcheck/specs/theirs.grad.yaml")
    assert ids(gradcheck("list")) == ["own", "theirs"]
    monkeypatch.setattr("gradcheck.spec.folders.bundled_specs", lambda: project / "vendored" / "gradcheck" / "specs")
    assert ids(gradcheck("list")) == ["own"]


def test_the_paths_of_the_settings_go_before_the_search(project, spec, gradcheck):
    spec(WRONG.format(id="named"), name="build/b.grad.yaml")
    (project / "pyproject.toml").write_text('[tool.gradcheck]\npaths = ["build"]\n')
    for command in ("run", "list"):
        assert "named" in gradcheck(command).out
        assert "own" not in gradcheck(command).out
    assert gradcheck("validate").out.startswith("build/b.grad.yaml: ok")


# --------------------------------------------------------------------------------- nothing to look at
@pytest.mark.parametrize(
    ("command", "way"),
    [
        (["run"], "run"),
        (["run", "-k", "tanh"], "run"),
        (["run", "-t", "apply"], "run"),
        (["list"], "list"),
        (["validate"], "validate"),
        (["validate", "--format", "json"], "validate"),
    ],
    ids=" ".join,
)
def test_where_nothing_is_found_the_exit_status_is_5_and_the_way_to_our_own_is_told(gradcheck, folder, command, way):
    said = f"gradcheck: no *.grad.yaml below {folder}; gradcheck's own: gradcheck {way} --bundled\n"
    assert gradcheck(*command) == (5, "", said)


def test_a_folder_called_specs_that_is_not_there_is_not_ours(gradcheck, folder):
    for name in ("specs", "specs/"):
        done = gradcheck("run", name)
        assert (done.code, done.out) == (2, "")


# --------------------------------------------------------------------------------- gradcheck's own
def test_our_own_are_taken_where_they_are_asked_for(project, gradcheck):
    listed = json.loads(gradcheck("list", "--bundled", "--json").out)
    assert OURS in {one["id"] for one in listed}
    assert "own" not in {one["id"] for one in listed}
    count = len(bundled_files())
    assert f"{count} files, {len(listed)} scenarios: all valid" in gradcheck("validate", "--bundled").out
    assert re.match(rf"PASS {OURS}@numpy specs/documents/apply", gradcheck("run", "--bundled", OURS).out)


@pytest.mark.parametrize("command", ["run", "list", "validate"])
def test_paths_and_our_own_exclude_each_other(project, gradcheck, command):
    done = gradcheck(command, "--bundled", "specs")
    assert (done.code, done.out) == (2, "")
    assert done.err == "gradcheck: --bundled takes the specs that come with gradcheck, and specs is not one of them\n"


@pytest.mark.parametrize("kind", ["project", "empty"])
def test_the_id_of_one_of_our_own_is_found_from_anywhere(gradcheck, folder, request, kind):
    if kind == "project":
        request.getfixturevalue("project")
    assert re.match(rf"PASS {OURS}@numpy ", gradcheck("run", f"{OURS}@numpy").out)
    for command in ("list", "show"):
        assert OURS in gradcheck(command, OURS).out


def test_an_id_means_the_projects_own_scenario_first(project, spec, gradcheck):
    spec(WRONG.format(id=OURS), name="specs/other.grad.yaml")
    done = gradcheck("run", OURS)
    assert done.code == 1
    assert re.match(rf"FAIL {OURS}@numpy specs/other\.grad\.yaml:3:5 ", done.out)
    both = gradcheck("run", OURS, "apply-nested-apply", "--format", "plain")
    assert [line.split()[1].partition("@")[0] for line in both.out.splitlines() if re.match("PASS|FAIL", line)] == [
        OURS,
        "apply-nested-apply",
    ]


def test_an_id_that_nobody_has_brings_up_the_nearest(project, gradcheck):
    done = gradcheck("run", "onw")
    assert (done.code, done.err) == (
        2,
        "gradcheck: no file, folder or scenario is called 'onw'; did you mean own?\n",
    )


def test_the_specs_of_this_checkout_are_its_own():
    root = Path(__file__).parents[2]
    folders = ("checker", "design", "documents", "recorded")  # those of Paddle: torch's need torch
    assert load_project(root).config.paths == tuple(str(root / "specs" / folder) for folder in folders)
