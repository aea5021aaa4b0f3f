"""gradcheck show ID --reproduce: a program for what a release does otherwise, or why there is none."""

from __future__ import annotations

import pytest

SCENARIO = """\
  - id: one
    title: The sum of two
    source: {document: d}
    layer: |
      class Sum(PyLayer):
          @staticmethod
          def forward(ctx, a, b):
              return a + b
          @staticmethod
          def backward(ctx, dy):
              return dy, dy
    inputs: {a: {values: [1.0, 2.5]}, b: {values: [3.0, 4.0], stop_gradient: true}}
    expect: {gradient: unchecked, grads: {a: [1.0, 1.0], b: null}}
    backends: {paddle: {versions: "<3.0", observed: {grads: {a: null}}, reason: it forgets a}}
"""


def test_a_program_says_what_is_done_and_asserts_what_is_asked_for(spec, gradcheck):
    spec(SCENARIO)
    assert gradcheck("show", "a.grad.yaml", "one", "--reproduce") == (
        0,
        """\
# Paddle <3.0: it forgets a
# Required: the sum of two
import numpy as np
import paddle
from paddle.autograd import PyLayer

class Sum(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        return a + b
    @staticmethod
    def backward(ctx, dy):
        return dy, dy

a = paddle.to_tensor([1.0, 2.5], dtype='float64', stop_gradient=False)
b = paddle.to_tensor([3.0, 4.0], dtype='float64', stop_gradient=True)
out = Sum.apply(a, b)
outs = out if isinstance(out, (list, tuple)) else [out]
ends = [one for one in outs if isinstance(one, paddle.Tensor) and not one.stop_gradient]
if ends:
    paddle.autograd.backward(ends, [None] + [None] * (len(ends) - 1))
assert a.grad is not None and np.allclose(a.grad, [1.0, 1.0]), a.grad
assert (b.grad) is None, b.grad
""",
        "",
    )


def test_what_must_raise_is_wrapped_and_definitions_are_not(spec, gradcheck):
    raising = SCENARIO.partition("    expect")[0].partition("    layer")[0] + (
        "    script: |\n      def f():\n          return 1\n      y = f()\n"
        "    expect: {raises: {type: KeyError}}\n"
        "    backends: {paddle: {observed: {values: {y: 1}}, reason: it goes on}}\n"
    )
    spec(raising)
    code = gradcheck("show", "a.grad.yaml", "one", "--reproduce").out.partition("\n\n")[2]
    assert code == (
        "def f():\n    return 1\ntry:\n    y = f()\nexcept KeyError:\n    pass\n"
        "else:\n    raise AssertionError('nothing was raised, but KeyError is required')\n"
    )


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("apply-tanh-float64-mean", "apply-tanh-float64-mean: every release does as documented"),
        (
            "double-grad-beside-operations",
            "only the gradient check shows it: `gradcheck run double-grad-beside-operations`",
        ),
    ],
)
def test_where_there_is_no_program_the_reason_is_said(gradcheck, scenario, said):
    done = gradcheck("show", scenario, "--reproduce")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
