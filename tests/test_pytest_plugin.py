"""Spec files as tests, and the fixture for tests of one's own, under pytest itself."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from releases import make_environment
from square import layer, module

from gradcheck import pytest_plugin

pytest_plugins = ["pytester"]

for name in ("api", "report.result_text", "run.plan", "spec.read"):
    import_module(f"gradcheck.{name}")  # pytester forgets what is first imported while a test runs

ROOT = Path(__file__).parents[1]
HEAD = "schema: gradcheck/v1\ndefaults: {source: {document: own}}\nscenarios:\n"


def scenario(id: str, tag: str, factor: object, more: str = "") -> str:
    """A scenario with a layer whose gradient is right for a factor of 2."""
    head = f"  - id: {id}\n    title: t\n    tags: [{tag}]\n{layer(factor)}    inputs: {{x: {{shape: [3]}}}}\n"
    return head + (f"    {more}\n" if more else "")


GOOD = scenario("good", "smooth", 2, "matrix: {dtype: [float32, float64]}")
BAD = scenario("bad", "wrong-one", 3)
KNOWN = scenario("known", "known", 3, "backends: {numpy: {xfail: {reason: told upstream}}}")
BETTER = scenario("better", "known", 2, "backends: {numpy: {xfail: {reason: told upstream}}}")
LEFT_OUT = scenario("left-out", "known", 2, "backends: {numpy: {skip: {reason: not today}}}")


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Runs pytest with the plugin on files that are given by name: in this process, unless it has others do it."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'engine'}")
    options = ["-p", "no:gradcheck", "-p", pytest_plugin.__name__, "-p", "no:cacheprovider"]

    def run_files(*arguments: str, **files: str) -> pytest.RunResult:
        # other plugins that are installed take their time, and no part
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        for name, text in files.items():
            monkeypatch.delitem(sys.modules, name.removesuffix("_py"), raising=False)  # other tests have a `layers`
            (pytester.path / name.replace("_yaml", ".grad.yaml").replace("_py", ".py")).write_text(text)
        start = pytester.runpytest_subprocess if "-n" in arguments else pytester.runpytest_inprocess
        return start(*options, *arguments)

    return run_files


def test_each_case_is_a_test_with_its_status(run) -> None:
    result = run("-v", "-rsx", a_yaml=HEAD + GOOD + BAD + KNOWN + LEFT_OUT)
    result.assert_outcomes(passed=2, failed=1, xfailed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*a.grad.yaml::good/dtype=float32@numpy PASSED*",
            "*a.grad.yaml::bad@numpy FAILED*",
            "gradient of x: 3 of 3 entries wrong",
            "*likely:*",
            "*│*x * x*",
            "again: gradcheck run a.grad.yaml bad@numpy --allow-code -v",
            "scenario: a.grad.yaml:20:5",
        ]
    )
    result.stdout.fnmatch_lines(["*not today*"])
    result.stdout.fnmatch_lines(["*told upstream*"])
    assert "Traceback" not in result.stdout.str()


def test_an_xfail_that_passes_fails(run) -> None:
    run(a_yaml=HEAD + BETTER).assert_outcomes(failed=1)


def test_cases_are_selected_by_name_by_tag_and_by_node(run) -> None:
    run("-k", "float32", a_yaml=HEAD + GOOD + BAD).assert_outcomes(passed=1, deselected=2)
    collected = ("--collect-only", "-q")
    float32, float64, bad = (
        f"a.grad.yaml::{name}@numpy" for name in ("good/dtype=float32", "good/dtype=float64", "bad")
    )
    for selection, selected in {
        ("-m", "smooth", "--strict-markers"): [float32, float64],
        ("-m", "wrong_one"): [bad],
        (float64,): [float64],
    }.items():
        assert [line for line in run(*collected, *selection).outlines if "::" in line] == selected


BUILT_IN = [
    "skip", "skipif", "xfail", "usefixtures", "parametrize", "filterwarnings", "tryfirst", "trylast", "xdist-group",
]  # fmt: skip


def test_a_tag_is_never_taken_for_a_marker_that_pytest_acts_on(run) -> None:
    spec = HEAD + "".join(scenario(f"bad-{tag}", tag, 3) for tag in BUILT_IN)
    xdist = ("-p", "xdist.plugin")
    run(*xdist, "--strict-markers", a_yaml=spec).assert_outcomes(failed=len(BUILT_IN))
    for selection, selected in {
        "tag_xfail or tag_xdist_group": ["xfail", "xdist-group"],
        "xfail or xdist_group": [],
    }.items():
        result = run(*xdist, "--collect-only", "-q", "-m", selection, "--strict-markers")
        assert [line for line in result.outlines if "::" in line] == [
            f"a.grad.yaml::bad-{tag}@numpy" for tag in selected
        ]


def test_a_tag_is_never_taken_for_a_marker_of_another_plugin(run) -> None:
    hides = """
import pytest
def pytest_configure(config):
    config.addinivalue_line("markers", "tomorrow(when): skip it")
def pytest_runtest_setup(item):
    if item.get_closest_marker("tomorrow"):
        pytest.skip("tomorrow")
"""
    spec = HEAD + scenario("bad", "tomorrow", 3)
    run(a_yaml=spec, conftest_py=hides).assert_outcomes(failed=1)
    run("-m", "tag_tomorrow").assert_outcomes(failed=1)


def test_a_tag_may_have_the_name_of_a_label_in_the_ini_file(run, pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\nmarkers =\n    smooth: a label of the user's, for tests of their own too\n    xfail: one too many\n"
    )
    plain = "import pytest\n@pytest.mark.smooth\ndef test_it(): pass\n"
    xfail = scenario("bad", "xfail", 3)
    run("-m", "smooth", "--strict-markers", a_yaml=HEAD + GOOD + xfail, test_a_py=plain).assert_outcomes(
        passed=3, deselected=1
    )
    run("-m", "tag_xfail").assert_outcomes(failed=1, deselected=3)


def test_collecting_runs_nothing(run, pytester: pytest.Pytester) -> None:
    script = '  - {id: one, title: t, script: \'open("ran", "w")\'}\n'
    result = run("--collect-only", "-q", a_yaml=HEAD + script)
    result.stdout.fnmatch_lines(["a.grad.yaml::one@numpy"])
    assert not (pytester.path / "ran").exists()
    assert run().ret == 0
    assert (pytester.path / "ran").exists()


def test_a_file_with_mistakes_is_an_error_that_shows_them(run) -> None:
    result = run(a_yaml=HEAD + "  - {id: one, title: t, layer: {op: tahn}, inputs: {x: {shape: [2]}}}\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*a.grad.yaml:4:*unknown op 'tahn'*", "*did you mean 'tanh'*"])


def test_junit_names_the_file_and_the_case(run, pytester: pytest.Pytester) -> None:
    run("--junitxml=r.xml", a_yaml=HEAD + BAD)
    text = (pytester.path / "r.xml").read_text()
    assert 'name="bad@numpy"' in text
    assert "gradient of x: 3 of 3 entries wrong" in text


def test_with_xdist_each_of_its_processes_has_a_worker_and_the_summary_says_what_is_wrong_once(run) -> None:
    pytest.importorskip("xdist")  # which carries what is said from one process to another
    raises = scenario("raises", "wrong-one", "(1 / 0)")
    result = run("-p", "xdist.plugin", "-n", "2", a_yaml=HEAD + GOOD + BAD + raises)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["gradient of x: 3 of 3 entries wrong", "*│*x * x*", "scenario: a.grad.yaml:20:5"])
    lines = sorted(line for line in result.stdout.lines if line.startswith("FAILED "))
    assert lines[0] == "FAILED a.grad.yaml::bad@numpy - gradient of x: 3 of 3 entries wrong"
    assert lines[1].startswith("FAILED a.grad.yaml::raises@numpy - ERROR: ZeroDivisionError: ")
    assert len(lines) == 2


TEST = """
import numpy as np

def test_square(gradcheck):
    from layers import Square
    gradcheck(Square, np.ones(3))
"""


@pytest.mark.parametrize(("factor", "outcome"), [(2, "passed"), (3, "failed")])
def test_the_fixture_checks_a_layer_of_a_module_that_imports_paddle(run, factor: int, outcome: str) -> None:
    result = run(layers_py=module(factor), test_own_py=TEST)
    result.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        result.stdout.fnmatch_lines(["*gradcheck(Square, np.ones(3))*", "*GradientMismatch: FAIL*", "*x * x*"])
        result.stdout.no_fnmatch_line("*def assert_gradients*")


@pytest.mark.parametrize("arguments", ["Square, np.ones(3), order=3", "Square, np.ones(3)"])
def test_an_error_is_shown_in_the_user_s_code_alone(run, arguments: str) -> None:
    files = {"layers_py": module("np.oops"), "test_own_py": TEST.replace("Square, np.ones(3)", arguments)}
    shown = run(**files)
    shown.assert_outcomes(failed=1)
    shown.stdout.fnmatch_lines(["*Error: *"])
    shown.stdout.no_fnmatch_line("*/gradcheck/*")
    shown.stdout.no_fnmatch_line("*/pylayer/*")
    run("--full-trace").stdout.fnmatch_lines(["*gradcheck/api.py:*"])


def test_an_ini_setting_lets_test_files_import_such_modules_at_their_top(run, pytester: pytest.Pytester) -> None:
    test = "import numpy as np\nimport gradcheck\nfrom layers import Square\n\ndef test_square():\n"
    files = {
        "layers_py": module(2),
        "test_own_py": f"{test}    gradcheck.assert_gradients(Square, np.ones(3))\n",
    }
    (pytester.path / "pytest.ini").write_text("[pytest]\ngradcheck_engine = true\n")
    run(**files).assert_outcomes(passed=1)


def test_a_release_runs_in_its_interpreter_which_is_not_started_while_tests_are_collected(run, tmp_path) -> None:
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ntouch {tmp_path}/started\nexec {make_environment(tmp_path / "nine", "9.0.0")} "$@"\n'
    )
    python.chmod(0o755)
    text = (
        f'[tool.gradcheck]\nbackends = ["paddle@9.0.0"]\n[tool.gradcheck.environments]\n"paddle@9.0.0" = "{python}"\n'
    )
    Path("pyproject.toml").write_text(text)
    run("--collect-only", "-q", a_yaml=HEAD + GOOD).stdout.fnmatch_lines(["*good/dtype=float32@paddle@9.0.0"])
    assert not (tmp_path / "started").exists()
    run(a_yaml=HEAD + GOOD).assert_outcomes(passed=2)
    assert (tmp_path / "started").exists()
