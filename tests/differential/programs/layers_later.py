"""Layers that use names which came to the engine later."""

from __future__ import annotations

from typing import Any

from programs.collected import Library, drawn, layer_program, trained


@layer_program
def reductions_by_dim(paddle: Library) -> Any:
    class Centre(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x - x.mean(dim=-1, keepdim=True)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy - dy.mean(dim=-1, keepdim=True)

    return trained(paddle, lambda x: Centre.apply(x).sum(dim=0), drawn(paddle, 3, 2))


@layer_program
def casts_by_method_and_new_zeros(paddle: Library) -> Any:
    class Cast(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.float() * 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return x.new_zeros(x.shape) + 2 * dy.astype(x.dtype)

    return trained(paddle, Cast.apply, drawn(paddle, 3))


@layer_program
def a_filter_by_fft(paddle: Library) -> Any:
    class Spectrum(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return paddle.fft.irfft(paddle.fft.rfft(x) * w, n=x.shape[-1])

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            return paddle.fft.irfft(paddle.fft.rfft(dy) * w, n=x.shape[-1]), None

    w = paddle.to_tensor([1.0, 0.5, 0.25], dtype="float64")
    return trained(paddle, lambda x: Spectrum.apply(x, w), drawn(paddle, 2, 4))


@layer_program
def a_convolution_with_its_own_backward(paddle: Library) -> Any:
    class Conv(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return paddle.nn.functional.conv2d(x, w, padding=1)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            dx = paddle.nn.functional.conv2d_transpose(dy, w, padding=1)
            dw = paddle.nn.functional.conv2d(x.transpose([1, 0, 2, 3]), dy.transpose([1, 0, 2, 3]), padding=1)
            return dx, dw.transpose([1, 0, 2, 3])

    return trained(paddle, Conv.apply, drawn(paddle, 2, 2, 4, 4), drawn(paddle, 3, 2, 3, 3, seed=1))


@layer_program
def a_recomputed_block(paddle: Library) -> Any:
    recompute = paddle.distributed.fleet.utils.recompute
    return trained(
        paddle,
        lambda x, w: recompute(lambda a, b: paddle.tanh(a @ b), x, w),
        drawn(paddle, 2, 3),
        drawn(paddle, 3, 3, seed=1),
    )


@layer_program
def a_layer_under_auto_cast(paddle: Library) -> Any:
    class Double(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * 2

    def run(x: Any) -> Any:
        with paddle.amp.auto_cast(enable=False):
            return Double.apply(x)

    return trained(paddle, run, drawn(paddle, 3))
