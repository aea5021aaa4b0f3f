"""Files whose scenarios have the layers of one framework: what runs where, and what is left out with a word.

What runs them is in tests/backends/torch and tests/backends/jax, where these are installed."""

from __future__ import annotations

import json

import pytest
from square import layer

from gradcheck.backends.base import BACKENDS
from gradcheck.spec.literals import NAMES_OF_FRAMEWORKS

OF_TORCH = f"  - id: of-torch\n{layer(base='Function')}    inputs: {{x: [2]}}\n"
OF_PADDLE = f"  - id: of-paddle\n{layer()}    inputs: {{x: [2]}}\n"
TORCH = "framework: torch\n"


@pytest.fixture
def both(spec, monkeypatch):
    """A project with a file of Paddle's layers, and one of torch's; its code may run."""
    monkeypatch.setenv("GRADCHECK_ALLOW_CODE", "1")
    spec(OF_PADDLE)
    spec(OF_TORCH, name="b.grad.yaml", head=TORCH)


# ------------------------------------------------------------------------------------------- the key
@pytest.mark.parametrize(
    ("head", "mistake", "help"),
    [
        ("framework: tourch\n", "a.grad.yaml:2:12: error: unknown framework 'tourch'", "did you mean 'torch'?"),
        ("framework: mxnet\n", "a.grad.yaml:2:12: error: unknown framework 'mxnet'", "paddle, torch"),
        ("framework: 3\n", "a.grad.yaml:2:12: error: unknown framework '3'", "write paddle, torch or jax"),
        ("frame: torch\n", "a.grad.yaml:2:1: error: unknown key 'frame' in a spec file", "framework"),
    ],
)
def test_another_word_is_a_mistake_at_its_place(spec, gradcheck, head, mistake, help):
    spec(OF_TORCH, head=head)
    done = gradcheck("validate")
    assert done.code == 2
    assert mistake in done.out
    assert help in done.out


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ("layer: {op: tanh}\n    inputs: {x: [2]}", "5:12: error: {op: …} is"),
        ('world: 2\n    layer: {ref: "own:Sum"}\n    inputs: {x: [2]}', "5:12: error: a world of ranks is"),
        ('matrix: {world: [2]}\n    layer: {ref: "own:Sum"}\n    inputs: {x: [2]}', "a world of ranks is"),
        (
            "layer: |\n      def forward_fn(x):\n        return x\n      def backward_fn(g):\n        return g\n"
            "    inputs: {x: [2]}",
            "5:12: error: forward_fn of static_pylayer is",
        ),
    ],
)
def test_what_only_paddle_has_is_a_mistake_in_a_file_of_another(spec, gradcheck, keys, mistake):
    spec(f"  - id: a\n    {keys}\n", head=TORCH)
    done = gradcheck("validate")
    assert done.code == 2
    assert f"{mistake} for layers of Paddle, but this file is torch's" in done.out
    spec(f"  - id: a\n    {keys}\n")
    assert gradcheck("validate").code == 0


@pytest.mark.parametrize("keys", ["inputs: {x: {shape: [2], layout: strided}}", "matrix: {layout: [strided]}"])
def test_arrays_of_jax_have_no_layout(spec, gradcheck, keys):
    inputs = "" if keys.startswith("inputs") else "    inputs: {x: [2]}\n"
    text = f"  - id: a\n    layer: {{ref: 'own:f'}}\n    {keys}\n{inputs}"
    spec(text, head="framework: jax\n")
    done = gradcheck("validate")
    assert done.code == 2
    assert "error: an array of JAX has no layout in memory" in done.out
    spec(text, head=TORCH)
    assert gradcheck("validate").code == 0


@pytest.mark.parametrize(("head", "owner", "other"), [(TORCH, "torch", "paddle"), ("", "paddle", "torch")])
def test_what_is_observed_on_a_backend_that_never_runs_it_is_a_mistake(spec, gradcheck, head, owner, other):
    text = (
        "  - id: a\n    script: y = 1\n    expect: {values: {y: 1}}\n    backends: {%s: {skip: {reason: no kernel}}}\n"
    )
    spec(text % other, head=head)
    done = gradcheck("validate")
    assert done.code == 2
    assert f"scenarios of this file are {owner}'s, and do not run on {other}" in " ".join(done.out.split())
    spec(text % owner, head=head)
    assert gradcheck("validate").code == 0


def test_every_framework_has_a_backend_and_names(spec):
    assert {row.framework for row in BACKENDS.values()} == {*NAMES_OF_FRAMEWORKS}


# ------------------------------------------------------------------------------------------- what runs
def test_a_backend_of_another_framework_leaves_it_out_with_a_word(both, gradcheck):
    done = gradcheck("run", "-b", "numpy")
    assert done.code == 0
    assert done.out.startswith("PASS of-paddle@numpy ")
    assert "1 PASS in " in done.out
    assert "gradcheck: left out: 1 scenario of torch, as -b torch is not given\n" in done.err


@pytest.mark.parametrize(
    ("arguments", "left_out"),
    [
        (["run", "-b", "numpy", "b.grad.yaml"], "1 scenario of torch, as -b torch is not given"),
        (["run", "of-torch@numpy"], "1 scenario of torch, as -b torch is not given"),
        (["explore", "b.grad.yaml", "of-torch", "-b", "numpy"], "1 scenario of torch, as -b torch is not given"),
    ],
    ids=" ".join,
)
def test_it_is_an_error_where_nothing_else_is_selected(both, gradcheck, arguments, left_out):
    done = gradcheck(*arguments)
    assert (done.code, done.out) == (5, "")
    assert done.err.startswith(f"gradcheck: left out: {left_out}; ")
    assert "'framework: paddle' at their top" in done.err


def test_nothing_is_said_of_scenarios_that_were_not_asked_for(both, gradcheck):
    assert "left out" not in gradcheck("run", "of-paddle@numpy").err
    assert "left out" not in gradcheck("run", "a.grad.yaml", "-b", "numpy").err


@pytest.mark.parametrize("command", ["list", "validate"])
def test_what_runs_nothing_has_the_scenarios_of_all(both, gradcheck, command):
    assert gradcheck(command).code == 0
    ids = {row["id"] for row in json.loads(gradcheck("list", "--json").out)}
    assert ids == {"of-paddle", "of-torch"}
    assert "class Square(Function)" in gradcheck("show", "of-torch").out


def test_a_framework_that_is_not_installed_is_an_error_that_says_what_to_install(both, gradcheck, monkeypatch):
    monkeypatch.setitem(BACKENDS, "torch", BACKENDS["torch"]._replace(needs=("no_such_module",)))
    done = gradcheck("run")
    needed = "backend torch: not installed: no_such_module; pip install torch"
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"gradcheck: {needed}\n")


def test_code_of_another_framework_is_told_the_key(spec, gradcheck, monkeypatch):
    monkeypatch.setenv("GRADCHECK_ALLOW_CODE", "1")
    spec(OF_TORCH)
    done = gradcheck("run")
    assert done.code == 2
    assert "there is no 'Function'" in done.err
    assert "if the file's layers are torch's, write 'framework: torch' at its top" in done.err


# ------------------------------------------------------------------------------------------- init
@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_init_lays_out_a_project_of_a_framework(gradcheck, folder, framework):
    assert gradcheck("init", "--framework", framework).code == 0
    assert f"framework: {framework}\n" in (folder / "specs" / "example.grad.yaml").read_text()
    workflow = (folder / ".github" / "workflows" / "gradcheck.yml").read_text()
    assert f"[{framework}]" in workflow
    assert ("download.pytorch.org/whl/cpu" in workflow) == (framework == "torch")
    assert gradcheck("validate").out.startswith("specs/example.grad.yaml: ok, 1 scenario")


def test_the_workflow_has_the_extra_behind_a_git_address(gradcheck, folder, monkeypatch):
    monkeypatch.setattr("gradcheck.commands.init.source_of_gradcheck", lambda: "git+https://example.org/g.git@abc")
    gradcheck("init", "--framework", "jax")
    workflow = (folder / ".github" / "workflows" / "gradcheck.yml").read_text()
    assert '- run: pip install "gradcheck[jax] @ git+https://example.org/g.git@abc"\n' in workflow
