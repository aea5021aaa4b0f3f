"""Code of spec files that are not gradcheck's runs only with permission."""

from __future__ import annotations

import pytest

from tests.commands.test_run import GOOD, OP, summary_of

TRAP = "open('ran', 'w').close()"
CODE = {
    "script": (f"    script: |\n      {TRAP}\n", "a.grad.yaml:7: trap would run its script, 1 line of Python"),
    "layer": (
        f"    layer: |\n      class A(PyLayer):\n        forward = backward = {TRAP}\n    inputs: {{x: [1]}}\n",
        "a.grad.yaml:7: trap would run its layer, 2 lines of Python",
    ),
    "ref": (
        '    layer: {ref: "trap:Layer"}\n    inputs: {x: {shape: [1]}}\n',
        "a.grad.yaml:6: trap would run what importing trap:Layer runs",
    ),
    "call": (
        f"    layer: {{op: tanh}}\n    inputs: {{x: {{shape: [1]}}}}\n    call: (paddle.tanh(x), {TRAP})\n",
        f"a.grad.yaml:8: trap would run call: (paddle.tanh(x), {TRAP})",
    ),
    "values": (
        f"    layer: {{op: tanh}}\n    inputs: {{x: {{shape: [1]}}}}\n"
        f"    expect:\n      values:\n        {TRAP}: null\n",
        f"a.grad.yaml:10: trap would run the expression {TRAP}",
    ),
    "values of a backend": (
        f"    layer: {{op: tanh}}\n    inputs: {{x: {{shape: [1]}}}}\n    backends:\n      numpy:\n        expect:\n"
        f"          values:\n            {TRAP}: null\n",
        f"a.grad.yaml:12: trap would run the expression {TRAP}",
    ),
}


@pytest.mark.parametrize("kind", CODE)
def test_code_of_others_is_refused_and_named_and_nothing_runs(spec, gradcheck, folder, kind):
    body, message = CODE[kind]
    spec("  - id: trap\n    title: t\n    source: {document: d}\n" + body)
    (folder / "trap.py").write_text(TRAP)
    done = gradcheck("run", "a.grad.yaml")
    assert (done.code, done.out) == (2, "")
    first, last = done.err.splitlines()
    assert first == message
    assert "--allow-code" in last
    assert "`allow-code = true` under [tool.gradcheck] in its pyproject.toml" in last
    assert not (folder / "ran").exists()


def test_what_needs_no_code_and_what_is_not_selected_needs_no_permission(spec, gradcheck):
    spec(OP, GOOD)
    assert gradcheck("run", "a.grad.yaml", "op").code == 0
    assert gradcheck("run", "a.grad.yaml", "-k", "op").code == 0
    assert gradcheck("run", "a.grad.yaml", "good").code == 2


def test_code_that_is_skipped_needs_no_permission(spec, gradcheck):
    spec(GOOD + "    backends: {numpy: {skip: {reason: not today}}}\n")
    done = gradcheck("run", "a.grad.yaml")
    assert (done.code, summary_of(done)) == (5, "1 SKIP")
    assert done.err == "gradcheck: nothing was run: not today\n"


def test_the_project_that_a_command_runs_in_may_allow_code_and_a_spec_may_not(spec, gradcheck, folder, monkeypatch):
    spec(GOOD, name="sub/a.grad.yaml")
    (folder / "sub" / "pyproject.toml").write_text("[tool.gradcheck]\nallow-code = true\n")
    assert gradcheck("run", "sub/a.grad.yaml").code == 2  # what lies beside the spec is not the user's project
    (folder / "pyproject.toml").write_text("[tool.gradcheck]\nallow-code = true\n")
    assert gradcheck("run", "sub/a.grad.yaml").code == 0


def test_a_project_speaks_only_for_the_files_inside_its_folder(spec, gradcheck, folder, monkeypatch):
    spec(GOOD)
    (folder / "inner").mkdir()
    (folder / "inner" / "pyproject.toml").write_text("[tool.gradcheck]\nallow-code = true\n")
    monkeypatch.chdir(folder / "inner")
    done = gradcheck("run", "../a.grad.yaml")
    assert done.code == 2
    assert "the project allows only the files inside its folder" in done.err
    (folder / "inner" / "link.grad.yaml").symlink_to(folder / "a.grad.yaml")
    assert gradcheck("run", "link.grad.yaml").code == 2
    assert gradcheck("run", "../a.grad.yaml", "--allow-code").code == 0


def test_a_link_into_the_bundled_specs_grants_nothing(spec, gradcheck, folder, monkeypatch):
    bundled = folder / "bundle"
    monkeypatch.setattr("gradcheck.commands.permission.bundled_specs", lambda: bundled)
    spec(GOOD, name="mine.grad.yaml")
    bundled.mkdir()
    (bundled / "link.grad.yaml").symlink_to(folder / "mine.grad.yaml")
    assert gradcheck("run", "bundle/link.grad.yaml").code == 2
