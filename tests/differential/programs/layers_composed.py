"""More layers: changes in place, layers in layers, recomputation, mixed precision, indices, matrices, complex numbers."""

from __future__ import annotations

from typing import Any

from programs.collected import Library, drawn, layer_program, trained


@layer_program
def a_chain_of_changes_in_place(paddle: Library) -> Any:
    class Swish(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, beta: float) -> Any:
            s = x.clone().scale_(beta)
            s.neg_().exp_().add_(paddle.ones([], s.dtype)).reciprocal_()
            ctx.beta = beta
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, s = ctx.saved_tensor()
            dx = s + ctx.beta * x * s * (1 - s)
            dx.multiply_(dy)
            return dx

    return trained(paddle, lambda x: Swish.apply(x, 1.5), drawn(paddle, 2, 3))


@layer_program
def a_layer_inside_a_layer(paddle: Library) -> Any:
    class Square(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return 2 * x * dy

    class Norm(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = Square.apply(x).sum().sqrt()
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, out = ctx.saved_tensor()
            return dy * x / out

    return trained(paddle, Norm.apply, drawn(paddle, 4))


@layer_program
def recomputed_in_backward(paddle: Library) -> Any:
    def block(x: Any, w: Any) -> Any:
        return paddle.tanh(paddle.matmul(x, w)) * x.sum(axis=-1, keepdim=True)

    class Recompute(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return block(x, w)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            inputs = [t.detach() for t in ctx.saved_tensor()]
            for t in inputs:
                t.stop_gradient = False
            with paddle.enable_grad():
                out = block(*inputs)
            paddle.autograd.backward([out], [dy])
            return tuple(t.grad for t in inputs)

    return trained(paddle, Recompute.apply, drawn(paddle, 2, 3), drawn(paddle, 3, 3, seed=1))


@layer_program
def in_mixed_precision_by_hand(paddle: Library) -> Any:
    class Half(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.dtype = x.dtype
            low, weight = x.astype("float32"), w.astype("float32")
            ctx.save_for_backward(low, weight)
            return (low * weight).cast(x.dtype)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            low, weight = ctx.saved_tensor()
            dy = dy.astype("float32")
            return (dy * weight).astype(ctx.dtype), (dy * low).astype(ctx.dtype)

    return trained(paddle, Half.apply, drawn(paddle, 3), drawn(paddle, 3, seed=1))


@layer_program
def a_convolution_over_shifts(paddle: Library) -> Any:
    class Conv(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            k, n = w.shape[0], x.shape[-1] - w.shape[0] + 1
            return sum(x[..., i : i + n] * w[i] for i in range(k))

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            k, n = w.shape[0], dy.shape[-1]
            dx = sum(
                paddle.nn.functional.pad(dy.unsqueeze(0), [i, k - 1 - i], data_format="NCL").squeeze(0) * w[i]
                for i in range(k)
            )
            dw = paddle.stack([(x[..., i : i + n] * dy).sum() for i in range(k)])
            return dx, dw

    return trained(paddle, Conv.apply, drawn(paddle, 2, 6), drawn(paddle, 3, seed=1))


@layer_program
def an_embedding_by_index(paddle: Library) -> Any:
    class Embed(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, table: Any, index: Any) -> Any:
            ctx.save_for_backward(index)
            ctx.rows = table.shape[0]
            return paddle.gather(table, index)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (index,) = ctx.saved_tensor()
            zeros = paddle.zeros([ctx.rows, dy.shape[-1]], dy.dtype)
            return paddle.scatter_nd_add(zeros, index.unsqueeze(-1), dy), None

    index = paddle.to_tensor([1, 3, 1])
    return trained(paddle, lambda table: Embed.apply(table, index), drawn(paddle, 4, 2))


@layer_program
def a_matrix_inverse(paddle: Library) -> Any:
    class Solve(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            a = a + 4 * paddle.eye(a.shape[-1], dtype=a.dtype)
            x = paddle.linalg.solve(a, b)
            ctx.save_for_backward(a, x)
            return x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            a, x = ctx.saved_tensor()
            db = paddle.linalg.solve(a.t(), dy)
            return -paddle.matmul(db, x, transpose_y=True), db

    return trained(paddle, Solve.apply, drawn(paddle, 3, 3), drawn(paddle, 3, 2, seed=1))


@layer_program
def a_modulus_of_complex_numbers(paddle: Library) -> Any:
    class Modulus(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, re: Any, im: Any) -> Any:
            z = paddle.complex(re, im)
            out = paddle.sqrt(paddle.real(z * paddle.conj(z)))
            ctx.save_for_backward(z, out)
            return out

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            z, out = ctx.saved_tensor()
            return dy * paddle.real(z) / out, dy * z.imag() / out

    return trained(paddle, Modulus.apply, drawn(paddle, 4), drawn(paddle, 4, seed=1))


@layer_program
def a_layer_in_a_model_with_its_parameter(paddle: Library) -> Any:
    class Scale(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            return dy * w, (dy * x).sum(axis=0)

    class Model(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = self.create_parameter(
                [3], dtype="float64", default_initializer=paddle.nn.initializer.Constant(1.5)
            )

        def forward(self, x: Any) -> Any:
            return Scale.apply(paddle.tanh(x), self.w)

    model, x = Model(), drawn(paddle, 2, 3)
    found = trained(paddle, model, x)
    return [*found, model.w.grad, [n for n, _ in model.named_parameters()]]
