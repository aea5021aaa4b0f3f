"""Functions whose hand-written backward runs, does not run, or is not there, on the engine or an installed Paddle.

As a script it prints, as JSON, what a check of each says with the installed Paddle.
"""

from __future__ import annotations

import functools
import json
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import gradcheck

X = np.linspace(0.1, 1.0, 4)
OVERRIDDEN = "its apply is overridden and does not call PyLayer's apply"
DIRECT = "its forward was called directly, not through apply"
NOT_TAKEN = "another branch was taken"
NO_BACKWARD = "no hand-written backward: {}'s own rules were checked"


class Member(NamedTuple):
    """A function of `X`, and what a check of it has to say."""

    function: Any
    verdict: str
    text: str = ""
    """The reason of an INCONCLUSIVE, or the mark of a PASS."""
    options: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it


def never(layer: str, why: str) -> str:
    return f"backward of {layer} never ran: {why}"


def layers_of(paddle: Any) -> dict[str, Any]:
    """A right layer of tanh, and classes derived from it."""
    base = paddle.autograd.PyLayer

    class Own(base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = paddle.tanh(x)
            if ctx is not None:
                ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensor()
            return dy * (1 - y * y)

    class Other(base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return 2 * x * dy

    class ByClass(Own):
        @classmethod
        def apply(cls, x: Any) -> Any:
            return paddle.tanh(x)

    class ByStatic(Own):
        @staticmethod
        def apply(x: Any) -> Any:
            return paddle.tanh(x)

    class ByForward(Own):
        @classmethod
        def apply(cls, x: Any) -> Any:
            return cls.forward(None, x)

    class Passing(Own):
        @classmethod
        def apply(cls, x: Any) -> Any:
            return super().apply(x * 1.0)

    class Within(base):
        """Its forward calls another layer's, which is part of it."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return Own.forward(ctx, x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return Own.backward(ctx, dy)

    return {cls.__name__: cls for cls in (Own, Other, ByClass, ByStatic, ByForward, Passing, Within)}


def modules_of(paddle: Any, layers: dict[str, Any]) -> dict[str, Any]:
    """Classes of an ``nn.Layer`` that use the layers."""
    Own, Other = layers["Own"], layers["Other"]

    class Branching(paddle.nn.Layer):
        """Training takes its layer, evaluation does not."""

        def __init__(self, fused: bool = True) -> None:
            super().__init__()
            self.fused = fused

        def forward(self, x: Any) -> Any:
            return Own.apply(x) if self.training and self.fused else paddle.tanh(x)

    class Forgetting(paddle.nn.Layer):
        """It holds a layer, and does not call it."""

        def __init__(self) -> None:
            super().__init__()
            self.act = Own.apply

        def forward(self, x: Any) -> Any:
            return paddle.tanh(x)

    class Either(paddle.nn.Layer):
        """One of two layers."""

        def forward(self, x: Any) -> Any:
            return Own.apply(x) if self.training else Other.apply(x)

    class Choosing(paddle.nn.Layer):
        """It has a table of layers, of which it takes none."""

        table = {"own": Own.apply, "tanh": paddle.tanh}  # noqa: RUF012 - nobody changes it

        def forward(self, x: Any) -> Any:
            return self.table["tanh"](x)

    class Helping(paddle.nn.Layer):
        """Its layer is applied in a method of a method."""

        def outer(self, x: Any) -> Any:
            return self.inner(x)

        def inner(self, x: Any) -> Any:
            return Own.apply(x)

        def forward(self, x: Any) -> Any:
            return self.outer(x)

    return {cls.__name__: cls for cls in (Branching, Forgetting, Either, Choosing, Helping)}


def members(paddle: Any) -> dict[str, Member]:
    """The members, by name."""
    layers = layers_of(paddle)
    Own, Other = layers["Own"], layers["Other"]
    module = modules_of(paddle, layers)
    training, evaluating, off = module["Branching"](), module["Branching"]().eval(), module["Branching"](False)
    nested = paddle.nn.Sequential(module["Helping"](), module["Helping"]())
    forward = Own.forward

    def recomputed(x: Any) -> Any:
        return paddle.distributed.fleet.utils.recompute(lambda x: Own.apply(x), x)

    own = NO_BACKWARD.format("the engine" if paddle.__name__.startswith("pylayer") else "Paddle")
    eval_mode = "backward of Own did not run: eval mode"
    return {
        "layer": Member(Own, "PASS"),
        "its apply": Member(Own.apply, "PASS"),
        "applied": Member(lambda x: Own.apply(x * 2.0), "PASS"),
        "order 2": Member(Own, "PASS", options={"order": 2}),
        "points": Member(Own, "PASS", options={"points": 2}),
        "apply that passes on": Member(layers["Passing"], "PASS"),
        "a forward within a layer": Member(layers["Within"], "PASS"),
        "recompute": Member(recomputed, "PASS"),
        "arrays": Member(np.tanh, "PASS", options={"backward": lambda x, dy: dy * (1 - np.tanh(x) ** 2)}),
        "nn.Layer": Member(training, "PASS"),
        "nested nn.Layer": Member(nested, "PASS"),
        "lambda of an nn.Layer": Member(lambda x: training(x), "PASS"),
        "one of two": Member(module["Either"](), "PASS", "backward of Other did not run"),
        "directly": Member(lambda x: Own.forward(None, x), "INCONCLUSIVE", never("Own", DIRECT)),
        "directly, with a context": Member(
            lambda x: Own.forward(SimpleNamespace(save_for_backward=str), x), "INCONCLUSIVE", never("Own", DIRECT)
        ),
        "another name": Member(lambda x: forward(None, x), "INCONCLUSIVE", never("Own", DIRECT)),
        "partial": Member(functools.partial(Own.forward, None), "INCONCLUSIVE", never("Own", DIRECT)),
        "directly beside one that ran": Member(
            lambda x: Own.forward(None, x) + Other.apply(x), "INCONCLUSIVE", never("Own", DIRECT)
        ),
        "order 2, directly": Member(lambda x: Own.forward(None, x), "INCONCLUSIVE", never("Own", DIRECT), {"order": 2}),
        "apply by class": Member(layers["ByClass"], "INCONCLUSIVE", never("ByClass", OVERRIDDEN)),
        "apply by static": Member(layers["ByStatic"], "INCONCLUSIVE", never("ByStatic", OVERRIDDEN)),
        "apply by forward": Member(layers["ByForward"], "INCONCLUSIVE", never("ByForward", OVERRIDDEN)),
        "its overridden apply": Member(layers["ByClass"].apply, "INCONCLUSIVE", never("ByClass", OVERRIDDEN)),
        "no input needs one": Member(
            lambda x: x * Own.apply(paddle.ones([4], "float64")),
            "INCONCLUSIVE",
            never("Own", "none of its inputs needs a gradient"),
        ),
        "branch": Member(off, "INCONCLUSIVE", never("Own", NOT_TAKEN)),
        "branch of a function": Member(
            lambda x: Own.apply(x) if x.shape[0] > 9 else paddle.tanh(x), "INCONCLUSIVE", never("Own", NOT_TAKEN)
        ),
        "forgotten": Member(
            module["Forgetting"](), "INCONCLUSIVE", never("Own", "its module holds it but does not call it")
        ),
        "eval mode": Member(evaluating, "PASS", eval_mode),
        "lambda of eval mode": Member(lambda x: evaluating(x), "PASS", eval_mode),
        "chosen from a table": Member(module["Choosing"](), "PASS", own),
        "plain": Member(lambda x: paddle.tanh(x), "PASS", own),
        "operation": Member(paddle.tanh, "PASS"),
        "expected to differ": Member(
            layers["ByStatic"], "INCONCLUSIVE", never("ByStatic", OVERRIDDEN), {"expect": "differs"}
        ),
    }


def said(member: Member) -> tuple[str, str]:
    """What a check of a member says: the verdict, and its reason or marks."""
    found = gradcheck.check(member.function, X, **member.options)
    return str(found.verdict), found.why or ", ".join(found.marks)


if __name__ == "__main__":
    import paddle

    print(json.dumps({name: said(member) for name, member in members(paddle).items()}))
