"""A function of NumPy arrays and its backward, by name on the command line and in spec files."""

from __future__ import annotations

import pytest
import yaml

from gradcheck.spec.read import read_bytes

MODULE = """
import numpy as np


def softplus(x, beta=1.0):
    return np.log1p(np.exp(beta * x)) / beta


def softplus_grad(x, g, beta=1.0):
    return g / (1 + np.exp(-beta * x))


def softplus_wrong(x, g, beta=1.0):
    return g / (1 + np.exp(beta * x))


def scaled(x, w):
    y = x * w
    return y, y.sum(axis=0)


def scaled_grad(x, w, g, g_sum):
    dy = g + g_sum
    return dy * w, (dy * x).sum(axis=0)


def not_summed(x, w, g, g_sum):
    dy = g + g_sum
    return dy * w, dy * x


def one_gradient(x, w, g, g_sum):
    return (g + g_sum) * w


def one_cotangent(x, w, g):
    return g * w, (g * x).sum(axis=0)


def scaled_by_keyword(x, g, g_sum, *, w):
    return scaled_grad(x, w, g, g_sum)


RANDOM = np.random.default_rng(0)


def noisy_grad(x, g):
    gradient = softplus_grad(x, g)
    return gradient + 1e-6 * abs(gradient).max() * RANDOM.uniform(-0.5, 0.5, x.shape)


class Layer:
    def forward(self, x):
        return x
"""


@pytest.fixture
def module(folder):
    (folder / "pairs.py").write_text(MODULE)
    return folder


def pair(forward, backward, *inputs):
    """The words that check a pair of the module."""
    words = [word for text in inputs for word in ("-i", text)]
    return ["check", f"pairs:{forward}", "--backward", f"pairs:{backward}", *words]


@pytest.mark.parametrize(
    "words",
    [
        pair("softplus", "softplus_grad", "x=5"),
        [*pair("softplus", "softplus_grad", "x=5"), "--call", "softplus(x, beta=2.0)"],
        pair("scaled", "scaled_grad", "x=3x4", "w=4"),
        [*pair("scaled", "scaled_by_keyword", "x=3x4", "w=4"), "--call", "scaled(x, w=w)"],
    ],
)
def test_a_right_pair_passes(gradcheck, module, words):
    done = gradcheck(*words)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("PASS ")


def test_a_wrong_one_fails_at_its_line(gradcheck, module):
    done = gradcheck(*pair("softplus", "softplus_wrong", "x=5"))
    assert done.code == 1
    assert "pairs.py:6" in done.out
    assert "GC119" in done.out


@pytest.mark.parametrize(("nondet", "code"), [("0", 1), ("1e-8", 1), ("1e-6", 0)])
def test_a_bound_of_what_differs_from_run_to_run(gradcheck, module, nondet, code):
    done = gradcheck(*pair("softplus", "noisy_grad", "x=5"), "--nondet", nondet)
    assert done.code == code
    assert ("GC132" in done.out) is bool(code)
    (module / "noisy.grad.yaml").write_text(
        "schema: gradcheck/v1\nscenarios:\n  - id: noisy\n"
        '    layer: {ref: "pairs:softplus", backward: "pairs:noisy_grad"}\n'
        f"    inputs: {{x: [5]}}\n    nondet: {nondet}\n"
    )
    assert gradcheck("run", "noisy.grad.yaml", "--allow-code").code == code


@pytest.mark.parametrize("nondet", ["1", "-1e-6", "much"])
def test_a_bound_that_cannot_be_is_refused(gradcheck, module, nondet):
    done = gradcheck(*pair("softplus", "noisy_grad", "x=5"), "--nondet", nondet)
    assert done.code == 2
    assert "--nondet" in done.err


@pytest.mark.parametrize(
    ("backward", "code", "text"),
    [
        ("not_summed", 1, "gradient 1 (input `w`): the gradient has shape [3, 4]"),
        ("one_gradient", 1, "1 gradient for 2 arrays"),
        (
            "one_cotangent", 2,
            "backward is called with 4 arguments, those of the function (2) and the gradients "
            "of its outputs (2), but its signature is one_cotangent(x, w, g): too many positional arguments",
        ),
    ],
)  # fmt: skip
def test_what_a_backward_must_take_and_return_is_said(gradcheck, module, backward, code, text):
    done = gradcheck(*pair("scaled", backward, "x=3x4", "w=4"))
    assert done.code != 0
    assert text in done.out


def test_a_backward_that_no_gradient_reaches_is_not_green(gradcheck, module):
    words = pair("softplus", "softplus_grad", "x=5")
    done = gradcheck(*words, "--call", "x * 2 if x.ndim else softplus(x)")
    assert done.code == 1
    assert "INCONCLUSIVE" in done.out
    assert "backward of softplus never ran: another branch was taken" in done.out


def test_a_name_that_is_not_there_is_refused(gradcheck, module):
    done = gradcheck(*pair("softplus", "softplus_gard", "x=5"))
    assert done.code == 2
    assert "did you mean softplus_grad?" in done.err


def test_a_class_has_its_own_backward(gradcheck, module):
    done = gradcheck(*pair("Layer", "softplus_grad", "x=5"))
    assert done.code == 2
    assert "pairs:Layer is a class, but a separate backward belongs to a function of NumPy arrays" in done.err


def test_a_function_of_arrays_alone_is_told_how(gradcheck, module):
    done = gradcheck("check", "pairs:softplus", "-i", "x=5")
    assert done.code != 0
    assert "--backward module:function" in done.out


SPEC = """\
schema: gradcheck/v1
layers:
  softplus: {ref: "pairs:softplus", backward: "pairs:softplus_grad"}
scenarios:
  - id: softplus
    layer: softplus
    inputs: {x: [5]}
    cases:
      - {}
      - {id: steep, call: "softplus(x, beta=3.0)"}
      - {id: wrong, layer: {ref: "pairs:softplus", backward: "pairs:softplus_wrong"}, expect: {differs: {code: GC119}}}
"""


def test_a_spec_file_names_both_functions(gradcheck, module):
    (module / "pairs.grad.yaml").write_text(SPEC)
    done = gradcheck("run", "--allow-code", "pairs.grad.yaml")
    assert (done.code, done.err) == (0, "")
    assert "3 PASS" in done.out


def test_code_of_both_needs_permission(gradcheck, module):
    (module / "pairs.grad.yaml").write_text(SPEC)
    done = gradcheck("run", "pairs.grad.yaml")
    assert done.code == 2
    assert "softplus would run what importing pairs:softplus_grad runs" in done.err


def test_a_backward_is_a_name(gradcheck, module):
    (module / "pairs.grad.yaml").write_text(SPEC.replace('"pairs:softplus_grad"', "softplus_grad"))
    done = gradcheck("run", "--allow-code", "pairs.grad.yaml")
    assert done.code == 2
    assert "backward" in done.err


def test_new_writes_both_names(gradcheck, module):
    done = gradcheck("new", *pair("softplus", "softplus_grad", "x=5")[1:])
    assert (done.code, done.err) == (0, "")
    layer = yaml.safe_load(done.out)["scenarios"][0]["layer"]
    assert layer == {"ref": "pairs:softplus", "backward": "pairs:softplus_grad"}
    assert read_bytes(done.out.encode(), "a.grad.yaml").scenarios[0].layer.backward == "pairs:softplus_grad"


def test_explore_finds_a_wrong_one_and_prints_it_as_a_scenario(gradcheck, module):
    pytest.importorskip("hypothesis")
    words = pair("softplus", "softplus_wrong", "x=N")[1:]
    done = gradcheck("explore", *words, "--examples", "5")
    assert done.code == 1
    assert "backward: 'pairs:softplus_wrong'" in done.out
