"""Layers over images as users of Paddle write them: norms, sampling, convolution, spectra, regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from programs.collected import Library, constant, drawn, layer_program, trained


@layer_program
def group_norm_by_hand(paddle: Library) -> Any:
    class GroupNorm(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
            n, c, *_ = x.shape
            grouped = x.reshape([n, groups, -1])
            mean = grouped.mean(axis=-1, keepdim=True)
            rstd = paddle.rsqrt(grouped.var(axis=-1, unbiased=False, keepdim=True) + eps)
            normed = ((grouped - mean) * rstd).reshape(x.shape)
            ctx.groups = groups
            ctx.save_for_backward(normed, rstd, weight)
            return normed * weight.reshape([1, c, 1, 1]) + bias.reshape([1, -1, 1, 1])

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            normed, rstd, weight = ctx.saved_tensor()
            n = dy.shape[0]
            dweight = (dy * normed).sum(axis=[0, 2, 3])
            dbias = dy.sum([0, 2, 3])
            g = (dy * weight.unsqueeze(0).unsqueeze(-1).unsqueeze(-1)).reshape([n, ctx.groups, -1])
            y = normed.reshape([n, ctx.groups, -1])
            dx = rstd * (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True))
            return dx.reshape(dy.shape), dweight, dbias

    return trained(
        paddle, lambda x, w, b: GroupNorm.apply(x, w, b, 2, 1e-5),
        drawn(paddle, 2, 4, 3, 2), drawn(paddle, 4, seed=1), drawn(paddle, 4, seed=2),
    )  # fmt: skip


@layer_program
def a_convolution_with_weight_norm(paddle: Library) -> Any:
    F = paddle.nn.functional

    class WeightNormConv(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self, fan_in: int, fan_out: int, size: int) -> None:
            super().__init__()
            draw = np.random.default_rng(3)
            assign = paddle.nn.initializer.Assign
            values = draw.standard_normal((fan_out, fan_in, size, size))
            self.v = self.create_parameter(
                values.shape, attr=paddle.ParamAttr(initializer=assign(values)), dtype="float64"
            )
            self.g = self.create_parameter(
                [fan_out], dtype="float64", default_initializer=assign(np.arange(1.0, fan_out + 1))
            )
            self.b = self.create_parameter([fan_out], dtype="float64", is_bias=True)
            self.register_buffer("calls", paddle.zeros([1], dtype="int64"))

        def forward(self, x: Any) -> Any:
            norm = paddle.sqrt(paddle.sum(self.v * self.v, axis=[1, 2, 3], keepdim=True))
            weight = self.v * (self.g.reshape([-1, 1, 1, 1]) / norm)
            self.calls += 1
            return F.conv2d(x, weight, self.b, stride=2, padding=1)

    layer = WeightNormConv(2, 3, 3)
    x = drawn(paddle, 2, 2, 5, 4)
    found = trained(paddle, lambda x: layer(layer(x)[:, :2]), x)
    return [*found, *(p.grad for p in layer.parameters()), layer.calls, sorted(layer.state_dict())]


@layer_program
def a_complex_filter_by_fft(paddle: Library) -> Any:
    class GlobalFilter(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            values = np.random.default_rng(5).standard_normal((3, 2, 2, 2))
            self.weight = self.create_parameter(
                [3, 2, 2, 2], dtype="float64", default_initializer=paddle.nn.initializer.Assign(values)
            )

        def forward(self, x: Any) -> Any:
            spectrum = paddle.fft.rfft2(x, axes=(1, 2), norm="ortho")
            spectrum = spectrum * paddle.as_complex(self.weight)
            power = spectrum.abs().sum()
            shifted = paddle.roll(spectrum, 1, axis=1)
            phase = paddle.angle(shifted).cos()
            return paddle.fft.irfft2(spectrum, s=(3, 2), axes=(1, 2), norm="ortho") * phase.mean(), power

    layer = GlobalFilter()
    return [*trained(paddle, layer, drawn(paddle, 2, 3, 2, 2)), layer.weight.grad]


@layer_program
def roi_pooling_in_loops(paddle: Library) -> Any:
    class RoIPool(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, boxes: Any, size: int) -> Any:
            outs, positions = [], []
            for box in boxes.tolist():
                x0, y0, x1, y1 = (int(v) for v in box)
                region = x[0, :, y0:y1, x0:x1]
                rows, columns = paddle.split(region, size, axis=1), None
                for row in rows:
                    columns = paddle.split(row, size, axis=2)
                    for cell in columns:
                        flat = cell.reshape([cell.shape[0], -1])
                        outs.append(flat.max(axis=1))
                        positions.append(flat.argmax(axis=1))
            ctx.size = size
            ctx.shape = x.shape
            ctx.save_for_backward(boxes, paddle.stack(positions))
            return paddle.stack(outs).reshape([len(boxes), size, size, x.shape[1]]).transpose([0, 3, 1, 2])

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            boxes, positions = ctx.saved_tensor()
            dx = paddle.zeros(ctx.shape, dtype=dy.dtype)
            flat = dy.transpose([0, 2, 3, 1]).reshape([-1, dy.shape[1]])
            row = 0
            for x0, y0, x1, y1 in boxes.numpy().astype(int):
                height, width = (y1 - y0) // ctx.size, (x1 - x0) // ctx.size
                for i in range(ctx.size):
                    for j in range(ctx.size):
                        for c in range(dy.shape[1]):
                            at = int(positions[row, c])
                            dx[0, c, y0 + i * height + at // width, x0 + j * width + at % width] += flat[row, c]
                        row += 1
            return dx, None

    boxes = constant(paddle, [[0, 0, 4, 4], [1, 2, 5, 4]], "int32")
    return trained(paddle, lambda x: RoIPool.apply(x, boxes, 2), drawn(paddle, 1, 2, 5, 6))
