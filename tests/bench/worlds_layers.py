"""Layers of many ranks, each with five mistakes of one kind or place, for `worlds.py`.

A mistake is a part of the source that is written otherwise. With it stand the codes that name it rightly, and pieces of
the lines that a cause may point at: the line with the mistake, or the line of forward whose gradient it spoils.
"""

# ruff: noqa: E501 - a piece of source is a line
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

HEAD = """\
import pylayer.paddle as paddle

dist = paddle.distributed


class Layer(paddle.autograd.PyLayer):
"""


class Mistake(NamedTuple):
    """What is written otherwise, and how it may rightly be told."""

    says: str
    old: str
    new: str
    codes: str
    """Those that name it, with spaces between; beside them, any that says which entries are wrong is no cause."""
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Parallel:
    """A layer.

    Args:
        source: of its forward and backward.
        inputs: by name, the shape of a rank's, and what it stands for; a shape that ends in ``i`` holds whole numbers.
        outputs: what the outputs stand for.
    """

    name: str
    source: str
    inputs: dict[str, tuple[tuple[int, ...], str]]
    outputs: str
    mistakes: tuple[Mistake, ...]


M = Mistake
LAYERS = (
    Parallel(
        "column-parallel linear",
        '''
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return paddle.matmul(x, w) + b

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        dx = paddle.matmul(dy, w, transpose_y=True)
        dist.all_reduce(dx)
        dw = paddle.matmul(x, dy, transpose_x=True)
        return dx, dw, dy.sum(0)
''',
        {"x": ((3, 4), "replicated"), "w": ((4, 2), "split"), "b": ((2,), "split")},
        "split",
        (
            M("dx is not summed", "        dist.all_reduce(dx)\n", "", "GC152", ("def backward", "dx = ")),
            M("dx is averaged", "dist.all_reduce(dx)", "dist.all_reduce(dx, op=dist.ReduceOp.AVG)", "GC151",
              ("def backward", "all_reduce(dx")),
            M("dw is summed too", "transpose_x=True)\n", "transpose_x=True)\n        dist.all_reduce(dw)\n",
              "GC151 GC152",
              ("def backward", "all_reduce(dw)", "paddle.matmul(x, w)", "dw = ")),
            M("db is a mean", "dy.sum(0)", "dy.mean(0)", "GC101 GC118 GC116 GC113", ("dy.mean", "+ b", "def backward")),
            M("dx is doubled", "w, transpose_y=True)", "w * 2, transpose_y=True)", "GC101 GC118 GC116",
              ("w * 2", "paddle.matmul(x, w)", "def backward")),
        ),
    ),
    Parallel(
        "row-parallel linear",
        '''
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        y = paddle.matmul(x, w)
        dist.all_reduce(y)
        return y + b

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        dx = paddle.matmul(dy, w, transpose_y=True)
        dw = paddle.matmul(x, dy, transpose_x=True)
        return dx, dw, dy.sum(0)
''',
        {"x": ((3, 2), "split"), "w": ((2, 4), "split"), "b": ((4,), "replicated")},
        "replicated",
        (
            M("y is not summed", "        dist.all_reduce(y)\n", "", "GC161", ()),
            M("the cotangent is summed", "x, w = ctx.saved_tensor()\n",
              "x, w = ctx.saved_tensor()\n        dy = dy.clone()\n        dist.all_reduce(dy)\n", "GC151",
              ("def backward", "all_reduce(y)", "all_reduce(dy)")),
            M("db is summed", "        return dx, dw, dy.sum(0)",
              "        db = dy.sum(0)\n        dist.all_reduce(db)\n        return dx, dw, db", "GC151",
              ("def backward", "all_reduce(db)")),
            M("dx is divided by the ranks", "w, transpose_y=True)", "w, transpose_y=True) / dist.get_world_size()",
              "GC151", ("def backward", "dx = ", "all_reduce(y)")),
            M("the bias is added on each", "        dist.all_reduce(y)\n        return y + b",
              "        y = y + b\n        dist.all_reduce(y)\n        return y", "GC151 GC152",
              ("y + b", "def backward", "all_reduce(y)")),
        ),
    ),
    Parallel(
        "sequence-parallel column linear",
        '''
    @staticmethod
    def forward(ctx, x, w):
        parts = []
        dist.all_gather(parts, x)
        whole = paddle.concat(parts, 0)
        ctx.save_for_backward(whole, w)
        return paddle.matmul(whole, w)

    @staticmethod
    def backward(ctx, dy):
        whole, w = ctx.saved_tensor()
        dwhole = paddle.matmul(dy, w, transpose_y=True)
        dx = paddle.empty([whole.shape[0] // dist.get_world_size(), whole.shape[1]], dy.dtype)
        dist.reduce_scatter(dx, dwhole)
        return dx, paddle.matmul(whole, dy, transpose_x=True)
''',
        {"x": ((2, 3), "split"), "w": ((3, 2), "split")},
        "split",
        (
            M("dx is a slice", "dist.reduce_scatter(dx, dwhole)",
              "dx = paddle.split(dwhole, dist.get_world_size(), 0)[dist.get_rank()]", "GC152",
              ("all_gather", "dx = paddle.split", "def backward")),
            M("dx is averaged", "(dx, dwhole)", "(dx, dwhole, op=dist.ReduceOp.AVG)", "GC151",
              ("all_gather", "reduce_scatter", "def backward")),
            M("the sum is summed again", "dist.reduce_scatter(dx, dwhole)",
              "dist.all_reduce(dwhole)\n        dist.reduce_scatter(dx, dwhole)", "GC151",
              ("all_gather", "reduce", "def backward")),
            M("the neighbour's part", "dist.reduce_scatter(dx, dwhole)",
              "dist.all_reduce(dwhole)\n        parts = paddle.split(dwhole, dist.get_world_size(), 0)\n"
              "        dx = parts[dist.get_rank() - 1]", "GC104 GC152 GC105",
              ("all_gather", "dx = parts", "def backward")),
            M("dw is divided", "transpose_x=True)", "transpose_x=True) / dist.get_world_size()", "GC151 GC101 GC118",
              ("paddle.matmul(whole, w)", "return dx", "def backward")),
        ),
    ),
    Parallel(
        "sequence-parallel row linear",
        '''
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        whole = paddle.matmul(x, w)
        y = paddle.empty([x.shape[0] // dist.get_world_size(), w.shape[1]], x.dtype)
        dist.reduce_scatter(y, whole)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        parts = []
        dist.all_gather(parts, dy)
        g = paddle.concat(parts, 0)
        return paddle.matmul(g, w, transpose_y=True), paddle.matmul(x, g, transpose_x=True)
''',
        {"x": ((8, 2), "split"), "w": ((2, 3), "split")},
        "split",
        (
            M("only the own rows", "dist.all_gather(parts, dy)",
              "parts = [paddle.zeros_like(dy) for _ in range(dist.get_world_size())]\n"
              "        parts[dist.get_rank()] = dy", "GC152", ("reduce_scatter", "parts", "def backward")),
            M("the parts in reverse", "paddle.concat(parts, 0)", "paddle.concat(parts[::-1], 0)", "GC104 GC105 GC103",
              ("reduce_scatter", "parts", "def backward")),
            M("divided by the ranks", "paddle.concat(parts, 0)", "paddle.concat(parts, 0) / dist.get_world_size()",
              "GC151", ("reduce_scatter", "parts", "def backward")),
            M("dw forgets the cotangent", "paddle.matmul(x, g, transpose_x=True)",
              "paddle.matmul(x, paddle.ones_like(g), transpose_x=True)", "GC116 GC107 GC106 GC110 GC111",
              ("ones_like", "paddle.matmul(x, w)")),
            M("dw of the own rows", "paddle.matmul(x, g, transpose_x=True)",
              "paddle.matmul(paddle.split(x, dist.get_world_size(), 0)[dist.get_rank()], dy, transpose_x=True)",
              "GC152", ("reduce_scatter", "paddle.split", "paddle.matmul(x, w)", "def backward")),
        ),
    ),
    Parallel(
        "two-layer block",
        '''
    @staticmethod
    def forward(ctx, x, w1, w2):
        h = paddle.tanh(paddle.matmul(x, w1))
        ctx.save_for_backward(x, w1, w2, h)
        y = paddle.matmul(h, w2)
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w1, w2, h = ctx.saved_tensor()
        dh = paddle.matmul(dy, w2, transpose_y=True)
        da = dh * (1 - h * h)
        dx = paddle.matmul(da, w1, transpose_y=True)
        dist.all_reduce(dx)
        return dx, paddle.matmul(x, da, transpose_x=True), paddle.matmul(h, dy, transpose_x=True)
''',
        {"x": ((3, 2), "replicated"), "w1": ((2, 3), "split"), "w2": ((3, 2), "split")},
        "replicated",
        (
            M("dx is not summed", "        dist.all_reduce(dx)\n", "", "GC152", ("def backward", "dx = ")),
            M("dh is summed", "w2, transpose_y=True)\n", "w2, transpose_y=True)\n        dist.all_reduce(dh)\n",
              "GC151 GC152", ("def backward", "all_reduce(dh)", "paddle.matmul(h, w2)", "all_reduce(y)")),
            M("the tanh is forgotten", "dh * (1 - h * h)", "dh", "GC116 GC114 GC118 GC119", ("paddle.tanh", "da = ")),
            M("the square of tanh is forgotten", "(1 - h * h)", "(1 - h)", "GC116 GC112 GC117 GC118 GC119",
              ("paddle.tanh", "da = ")),
            M("dw2 is summed", "        return dx, paddle.matmul(x, da, transpose_x=True), paddle.matmul(h, dy, transpose_x=True)",
              "        dw2 = paddle.matmul(h, dy, transpose_x=True)\n        dist.all_reduce(dw2)\n"
              "        return dx, paddle.matmul(x, da, transpose_x=True), dw2", "GC151 GC152",
              ("def backward", "all_reduce(dw2)", "paddle.matmul(h, w2)")),
        ),
    ),
    Parallel(
        "vocabulary-parallel embedding",
        '''
    @staticmethod
    def forward(ctx, ids, w):
        own = ids - dist.get_rank() * w.shape[0]
        here = paddle.logical_and(own >= 0, own < w.shape[0])
        ctx.own, ctx.rows = paddle.where(here, own, paddle.zeros_like(own)), w.shape[0]
        ctx.here = here.unsqueeze(-1).astype(w.dtype)
        y = paddle.nn.functional.embedding(ctx.own, w) * ctx.here
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        dy = dy * ctx.here
        onehot = paddle.nn.functional.one_hot(ctx.own, ctx.rows).astype(dy.dtype)
        return None, paddle.matmul(onehot, dy, transpose_x=True)
''',
        {"ids": ((6,), "replicated i"), "w": ((3, 2), "split")},
        "replicated",
        (
            M("no mask in backward", "        dy = dy * ctx.here\n", "", "GC116 GC114", ("* ctx.here",)),
            M("the cotangent is summed", "        dy = dy * ctx.here\n",
              "        dy = dy * ctx.here\n        dist.all_reduce(dy)\n", "GC152 GC151 GC116",
              ("all_reduce", "ctx.here", "def backward")),
            M("dw is divided", "dy, transpose_x=True)", "dy, transpose_x=True) / dist.get_world_size()", "GC151",
              ("all_reduce(y)", "return None", "def backward")),
            M("no mask in forward", "ctx.own, w) * ctx.here", "ctx.own, w)", "GC116 GC114 GC112",
              ("ctx.own, w)", "dy * ctx.here")),
            M("y is not summed", "        dist.all_reduce(y)\n", "", "GC161", ()),
        ),
    ),
    Parallel(
        "vocabulary-parallel cross-entropy",
        '''
    @staticmethod
    def forward(ctx, label, x):
        most = x.max(axis=-1)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        exps = paddle.exp(x - most.unsqueeze(-1))
        total = exps.sum(axis=-1)
        dist.all_reduce(total)
        classes = paddle.arange(x.shape[-1]) + dist.get_rank() * x.shape[-1]
        onehot = (label.unsqueeze(-1) == classes).astype(x.dtype)
        picked = (x * onehot).sum(axis=-1)
        dist.all_reduce(picked)
        ctx.save_for_backward(exps, total, onehot)
        return paddle.log(total) + most - picked

    @staticmethod
    def backward(ctx, g):
        exps, total, onehot = ctx.saved_tensor()
        softmax = exps / total.unsqueeze(-1)
        return None, g.unsqueeze(-1) * (softmax - onehot)
''',
        {"label": ((3,), "replicated i"), "x": ((3, 2), "split")},
        "replicated",
        (
            M("each part's own softmax", "total.unsqueeze(-1)", "exps.sum(axis=-1, keepdim=True)", "GC152 GC116 GC112",
              ("all_reduce(total)", "exps.sum", "paddle.log", "softmax =")),
            M("the labels are forgotten", "(softmax - onehot)", "softmax", "GC117 GC116 GC113 GC109",
              ("(x * onehot)", "softmax", "- picked", "all_reduce(picked)")),
            M("the gradient is summed", "        return None, g.unsqueeze(-1) * (softmax - onehot)",
              "        dx = g.unsqueeze(-1) * (softmax - onehot)\n        dist.all_reduce(dx)\n        return None, dx",
              "GC152 GC151", ("all_reduce", "def backward")),
            M("the cotangent is divided", "g.unsqueeze(-1)", "g.unsqueeze(-1) / dist.get_world_size()", "GC151",
              ("def backward", "return None", "all_reduce")),
            M("the sign is turned", "(softmax - onehot)", "(onehot - softmax)", "GC102 GC101 GC118", ("return None", "paddle.log")),
        ),
    ),
    Parallel(
        "experts",
        '''
    @staticmethod
    def forward(ctx, x, w):
        there = paddle.empty_like(x)
        dist.alltoall_single(there, x)
        ctx.save_for_backward(there, w)
        y = paddle.empty_like(x)
        dist.alltoall_single(y, there * w)
        return y

    @staticmethod
    def backward(ctx, dy):
        there, w = ctx.saved_tensor()
        g = paddle.empty_like(dy)
        dist.alltoall_single(g, dy)
        dx = paddle.empty_like(dy)
        dist.alltoall_single(dx, g * w)
        return dx, (g * there).sum(0)
''',
        {"x": ((8, 2), "split"), "w": ((2,), "split")},
        "split",
        (
            M("cotangents are not sent to the experts", "dist.alltoall_single(g, dy)", "g = dy", "GC152",
              ("alltoall_single(y", "g = dy", "def backward")),
            M("gradients are not sent back", "dist.alltoall_single(dx, g * w)", "dx = g * w", "GC152",
              ("alltoall_single(there", "dx = g * w", "def backward")),
            M("dw is summed", "        return dx, (g * there).sum(0)",
              "        dw = (g * there).sum(0)\n        dist.all_reduce(dw)\n        return dx, dw", "GC151 GC152",
              ("def backward", "all_reduce(dw)", "there * w")),
            M("the weight is forgotten", "(dx, g * w)", "(dx, g)", "GC116 GC114 GC118", ("there * w", "(dx, g)")),
            M("dw of what was sent", "(g * there)", "(dy * there)", "GC152 GC116",
              ("alltoall_single(y", "there * w", "(dy * there)", "def backward")),
        ),
    ),
    Parallel(
        "step around a ring",
        '''
    @staticmethod
    def forward(ctx, x, w):
        rank, size = dist.get_rank(), dist.get_world_size()
        before = paddle.empty_like(x)
        ops = [dist.P2POp(dist.isend, x, (rank + 1) % size), dist.P2POp(dist.irecv, before, (rank - 1) % size)]
        for task in dist.batch_isend_irecv(ops):
            task.wait()
        ctx.save_for_backward(before, w)
        return x + before * w

    @staticmethod
    def backward(ctx, dy):
        rank, size = dist.get_rank(), dist.get_world_size()
        before, w = ctx.saved_tensor()
        g, after = dy * w, paddle.empty_like(dy)
        ops = [dist.P2POp(dist.isend, g, (rank - 1) % size), dist.P2POp(dist.irecv, after, (rank + 1) % size)]
        for task in dist.batch_isend_irecv(ops):
            task.wait()
        return dy + after, (dy * before).sum(0)
''',
        {"x": ((2, 3), "split"), "w": ((3,), "split")},
        "split",
        (
            M("gradients go on, not back", "g, (rank - 1) % size), dist.P2POp(dist.irecv, after, (rank + 1) % size)",
              "g, (rank + 1) % size), dist.P2POp(dist.irecv, after, (rank - 1) % size)", "GC104 GC152",
              ("ops = ", "def backward", "dy + after")),
            M("nothing is sent back", "return dy + after", "return dy", "GC117 GC109 GC152 GC108",
              ("before * w", "return dy", "batch_isend_irecv", "ops = ")),
            M("what came is kept", "return dy + after", "return dy + g", "GC152 GC104", ("ops = ", "return dy + g", "def backward")),
            M("both send first", "        ops = [dist.P2POp(dist.isend, g, (rank - 1) % size), dist.P2POp(dist.irecv, after, (rank + 1) % size)]\n"
              "        for task in dist.batch_isend_irecv(ops):\n            task.wait()\n",
              "        dist.send(g, (rank - 1) % size)\n        dist.recv(after, (rank + 1) % size)\n", "GC164",
              ("dist.send(g",)),
            M("the weight is forgotten on the way back", "g, after = dy * w,", "g, after = dy * 1,", "GC116 GC114 GC118",
              ("before * w", "g, after")),
        ),
    ),
    Parallel(
        "weight of a root",
        '''
    @staticmethod
    def forward(ctx, x, w):
        shared = w.clone()
        dist.broadcast(shared, src=0)
        ctx.save_for_backward(x, shared)
        return x * shared

    @staticmethod
    def backward(ctx, dy):
        x, shared = ctx.saved_tensor()
        dw = (dy * x).sum(0)
        dist.reduce(dw, dst=0)
        if dist.get_rank() != 0:
            dw = paddle.zeros_like(dw)
        return dy * shared, dw
''',
        {"x": ((2, 3), "split"), "w": ((3,), "split")},
        "split",
        (
            M("dw is not reduced", "        dist.reduce(dw, dst=0)\n", "", "GC152", ("broadcast", "dw = ", "def backward")),
            M("others keep theirs", "        if dist.get_rank() != 0:\n            dw = paddle.zeros_like(dw)\n", "",
              "GC151 GC152 GC108", ("broadcast", "dw", "def backward")),
            M("dw on all ranks", "        dist.reduce(dw, dst=0)\n        if dist.get_rank() != 0:\n            dw = paddle.zeros_like(dw)\n",
              "        dist.all_reduce(dw)\n", "GC151 GC152", ("broadcast", "dw", "def backward")),
            M("dw goes to another root", "dist.reduce(dw, dst=0)", "dist.reduce(dw, dst=1)", "GC152",
              ("broadcast", "dist.reduce", "def backward")),
            M("dx of the own weight", "        shared = w.clone()\n        dist.broadcast(shared, src=0)\n        ctx.save_for_backward(x, shared)",
              "        shared = w.clone()\n        dist.broadcast(shared, src=0)\n        ctx.save_for_backward(x, w)",
              "GC116 GC112 GC114", ("x * shared", "dy * shared", "save_for_backward")),
        ),
    ),
    Parallel(
        "normalisation over all ranks",
        '''
    @staticmethod
    def forward(ctx, x):
        n = x.shape[0] * dist.get_world_size()
        mean = x.sum(0)
        dist.all_reduce(mean)
        mean = mean / n
        var = paddle.square(x - mean).sum(0)
        dist.all_reduce(var)
        scale = paddle.rsqrt(var / n + 1e-5)
        h = (x - mean) * scale
        ctx.n = n
        ctx.save_for_backward(h, scale)
        return h

    @staticmethod
    def backward(ctx, dy):
        h, scale = ctx.saved_tensor()
        s1, s2 = dy.sum(0), (dy * h).sum(0)
        dist.all_reduce(s1)
        dist.all_reduce(s2)
        return (dy - s1 / ctx.n - h * s2 / ctx.n) * scale
''',
        {"x": ((2, 3), "split")},
        "split",
        (
            M("the sum is not over ranks", "        dist.all_reduce(s1)\n", "", "GC152",
              ("all_reduce(mean)", "s1", "def backward")),
            M("the product is not summed over ranks", "        dist.all_reduce(s2)\n", "", "GC152",
              ("all_reduce(var)", "s2", "def backward")),
            M("the variance counts as constant", " - h * s2 / ctx.n", "", "GC117 GC109 GC112",
              ("all_reduce(var)", "return (dy", "paddle.square", "rsqrt", "(x - mean) * scale")),
            M("the mean counts as constant", "dy - s1 / ctx.n - h", "dy - h", "GC117 GC109 GC112",
              ("all_reduce(mean)", "return (dy", "x.sum(0)", "(x - mean)", "mean = mean / n")),
            M("n of one rank", "n = x.shape[0] * dist.get_world_size()\n        mean = x.sum(0)",
              "n = x.shape[0]\n        mean = x.sum(0)", "GC151 GC152 GC117 GC116",
              ("n = x.shape", "all_reduce", "mean / n", "var / n", "return (dy")),
        ),
    ),
    Parallel(
        "softmax over the ranks",
        '''
    @staticmethod
    def forward(ctx, x):
        most = x.max(axis=-1, keepdim=True)
        dist.all_reduce(most, op=dist.ReduceOp.MAX)
        exps = paddle.exp(x - most)
        total = exps.sum(axis=-1, keepdim=True)
        dist.all_reduce(total)
        y = exps / total
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        inner = (dy * y).sum(axis=-1, keepdim=True)
        dist.all_reduce(inner)
        return y * (dy - inner)
''',
        {"x": ((3, 2), "split")},
        "split",
        (
            M("the inner product is not summed", "        dist.all_reduce(inner)\n", "", "GC152",
              ("all_reduce(total)", "inner", "def backward")),
            M("the inner product is averaged", "dist.all_reduce(inner)", "dist.all_reduce(inner, op=dist.ReduceOp.AVG)",
              "GC151", ("all_reduce(total)", "inner", "def backward")),
            M("the inner product is forgotten", "(dy - inner)", "dy", "GC117 GC109 GC112 GC116",
              ("exps.sum", "all_reduce(total)", "exps / total", "return y")),
            M("the largest, not the sum", "dist.all_reduce(inner)", "dist.all_reduce(inner, op=dist.ReduceOp.MAX)",
              "GC152", ("all_reduce(total)", "inner", "def backward")),
            M("on rank 0 alone", "        dist.all_reduce(inner)\n",
              "        if dist.get_rank() == 0:\n            dist.all_reduce(inner)\n", "GC164", ("dist.all_reduce(inner)",)),
        ),
    ),
)  # fmt: skip
