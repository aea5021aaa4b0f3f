"""Entries of the release files, each shown by a plain program that was written by hand.

A program is about a scenario that is recorded of every release named beside it. It prints one line where the
release does what its file says: a value, the type of an exception, or the signal that ends the process.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from textwrap import dedent
from typing import NamedTuple

import pytest
from installed import variables

from gradcheck.backends.base import version_of
from gradcheck.conformance.releases import deviations_of
from gradcheck.support.resources import release_paths

HEAD = """
import paddle
from paddle.autograd import PyLayer
def layer(forward, backward):
    return type("Layer", (PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
def leaf(*values):
    return paddle.to_tensor(values, stop_gradient=False)
"""


class Entry(NamedTuple):
    """A scenario that deviates, the program that shows it, and what that prints there."""

    scenario: str
    program: str
    printed: str


ENTRIES = [
    Entry(
        "apply-dict-is-not-tracked",
        """
        L = layer(lambda ctx, d: d["x"] * 2, lambda ctx, dy: dy * 2)
        print(L.apply({"x": leaf(1.0)}).stop_gradient)
        """,
        "True",
    ),
    Entry(
        "apply-list-with-stopped-first",
        """
        L = layer(lambda ctx, xs: xs[0] + xs[1], lambda ctx, dy: [None, dy])
        L.apply([paddle.to_tensor([1.0]), leaf(2.0)]).backward()
        """,
        "ValueError",
    ),
    Entry(
        "backward-rules-gradient-in-dtype-of-leaf",
        """
        x = leaf(1.0)
        layer(lambda ctx, x: x * 2, lambda ctx, dy: (dy * 2).astype("float64")).apply(x).backward()
        print(x.dtype, x.grad.dtype)
        """,
        "paddle.float32 paddle.float64",
    ),
    Entry(
        "backward-rules-hook-on-output",
        """
        x = leaf(1.0)
        y = layer(lambda ctx, x: x * 2, lambda ctx, dy: dy * 2).apply(x)
        y.register_hook(lambda g: g * 10)
        y.backward()
        print(x.grad.item())
        """,
        "2.0",
    ),
    Entry(
        "backward-rules-leaves-own-their-gradients",
        """
        x, w = leaf(1.0), leaf(1.0)
        layer(lambda ctx, x, w: x + w, lambda ctx, dy: (dy, dy)).apply(x, w).backward()
        with paddle.no_grad():
            x.grad.scale_(0.5)
        print(w.grad.item())
        """,
        "0.5",
    ),
    Entry(
        "backward-rules-shape-of-same-size-raises",
        """
        x = leaf(1.0, 2.0, 3.0)
        layer(lambda ctx, x: x * 2, lambda ctx, dy: paddle.ones([3, 1])).apply(x).sum().backward()
        print(list(x.grad.shape))
        """,
        "[3, 1]",
    ),
    Entry(
        "backward-rules-list-slot-too-few-raises",
        """
        L = layer(lambda ctx, xs: xs[0] + xs[1], lambda ctx, dy: [dy])
        L.apply([leaf(1.0), leaf(2.0)]).backward()
        """,
        "SystemError",
    ),
    Entry(
        "backward-rules-user-exception-keeps-type",
        """
        def backward(ctx, dy):
            raise KeyError("mine")
        layer(lambda ctx, x: x * 2, backward).apply(leaf(1.0)).backward()
        """,
        "OSError",
    ),
    Entry(
        "backward-rules-twice-with-retain-graph",
        """
        y = layer(lambda ctx, x: (ctx.save_for_backward(x), x * x)[1],
                  lambda ctx, dy: dy * 2 * ctx.saved_tensor()[0]).apply(leaf(1.0))
        y.backward(retain_graph=True)
        y.backward()
        """,
        "killed",
    ),
    Entry(
        "inplace-changed-in-list-raises",
        """
        def forward(ctx, x):
            ctx.save_for_backward([x])
            return x * x
        t = leaf(3.0)
        x = t * 1
        y = layer(forward, lambda ctx, dy: dy * 2 * ctx.saved_tensor()[0][0]).apply(x)
        x.add_(paddle.to_tensor([10.0]))
        y.backward()
        print(t.grad.item())
        """,
        "26.0",
    ),
    Entry(
        "inplace-not-inplace-own-memory",
        """
        def forward(ctx, x):
            ctx.mark_not_inplace(x)
            return x
        x = paddle.to_tensor([1.0])
        y = layer(forward, lambda ctx, dy: dy).apply(x)
        y.add_(paddle.to_tensor([2.0]))
        print(x.item(), y.item())
        """,
        "3.0 3.0",
    ),
    Entry(
        "programs-target-twice",
        """
        paddle.enable_static()
        x = paddle.static.data("X", [2], "float32")
        x.stop_gradient = False
        y = x * x
        found = paddle.static.gradients([y, y], x)
        feed = {"X": __import__("numpy").array([1.0, 2.0], "float32")}
        print(paddle.static.Executor().run(feed=feed, fetch_list=found)[0].tolist())
        """,
        "[2.0, 4.0]",
    ),
    Entry(
        "starts-size-raises-of-backward-too-many",
        """
        x = leaf(1.0, 2.0)
        paddle.autograd.backward([x * x], [paddle.ones([5])])
        print(x.grad.tolist())
        """,
        "[2.0, 4.0]",
    ),
]
IDS = [entry.scenario for entry in ENTRIES]


def what_it_prints(program: str) -> str:
    """The last line of a program, the type of the exception that ends it, or `killed`."""
    source = HEAD + dedent(program)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=variables(), check=False)
    if done.returncode == 0:
        return done.stdout.strip().splitlines()[-1]
    if done.returncode in (-signal.SIGSEGV, -signal.SIGABRT):
        return "killed"
    # Paddle writes an exception as `OSError: (External) …`.
    types = [line.partition(":")[0] for line in done.stderr.splitlines() if "Error:" in line and line[0] != " "]
    return types[-1] if types else done.stderr


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_it_is_recorded_of_every_release(entry: Entry) -> None:
    assert [*deviations_of(entry.scenario)] == [*release_paths()]


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_the_installed_release_does_what_its_file_says(entry: Entry) -> None:
    release = version_of("paddle")
    if release not in release_paths():
        pytest.skip(f"paddle {release or 'is not installed, so nothing'} is recorded here")
    assert what_it_prints(entry.program) == entry.printed
