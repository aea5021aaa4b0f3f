"""Functions, modules and operations of torch, right and wrong, each with something special about it."""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

F = torch.nn.functional


class KeptIntermediate(Function):
    """z² for z = 3 x. Backward reads z as a constant: right once, wrong when it is differentiated again."""

    @staticmethod
    def forward(ctx, x):
        ctx.z = 3.0 * x
        return ctx.z * ctx.z

    @staticmethod
    def backward(ctx, g):
        return 6.0 * ctx.z * g


class KeptRatio(Function):
    """5 x by way of z = x / 2; backward has the factor as a ratio of what was kept."""

    @staticmethod
    def forward(ctx, x):
        ctx.z, ctx.x = x / 2, x
        return 10.0 * ctx.z

    @staticmethod
    def backward(ctx, g):
        return 10.0 * g * ctx.z / ctx.x


class Spectrum(Function):
    @staticmethod
    def forward(ctx, x):
        r = np.abs(np.fft.rfft2(x.detach().numpy()))
        ctx.save_for_backward(x)
        return torch.from_numpy(r.astype(x.detach().numpy().dtype))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        z = np.fft.rfft2(x.numpy())
        n = np.abs(z)
        full = np.zeros(x.shape, complex)
        full[:, : z.shape[1]] = g.numpy() * z / n
        return torch.from_numpy(np.real(np.fft.fft2(full.conj()).conj()).astype(x.numpy().dtype))


class Exp2Numpy(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.from_numpy(np.exp(x.detach().numpy()))
        ctx.save_for_backward(y)
        return y * y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return 2 * g * y * y


class Exp2NumpyBad(Exp2Numpy):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return 2 * g * y


class Conv2d(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = F.conv2d(x, w, padding=1)
        return torch.tanh(y)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = torch.tanh(F.conv2d(x, w, padding=1))
        g = g * (1 - t * t)
        return torch.nn.grad.conv2d_input(x.shape, w, g, padding=1), torch.nn.grad.conv2d_weight(
            x, w.shape, g, padding=1
        )


class Conv2dBad(Conv2d):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = torch.tanh(F.conv2d(x, w, padding=1))
        g = g * (1 - t)
        return torch.nn.grad.conv2d_input(x.shape, w, g, padding=1), torch.nn.grad.conv2d_weight(
            x, w.shape, g, padding=1
        )


class Conv2dBad2(Conv2d):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = torch.tanh(F.conv2d(x, w, padding=1))
        g = g * (1 - t * t)
        return torch.nn.grad.conv2d_input(x.shape, w, g, padding=1), 2 * torch.nn.grad.conv2d_weight(
            x, w.shape, g, padding=1
        )


class Relu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g.clone()
        g[x < 0] = 0
        return g


class BackwardOnly(Function):
    """A checkpoint as memcnn's, which refuses ``torch.autograd.grad`` in other words than torch's own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError("BackwardOnly is not compatible with .grad(), please use .backward() if possible")
        (x,) = ctx.saved_tensors
        return 2 * x * g


class SetsLeaf(BackwardOnly):
    """As memcnn's does, it sets the gradient of its input and returns it as well: a leaf gets it twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return BackwardOnly.forward(ctx, x)

    @staticmethod
    def backward(ctx, g):
        ctx.x.grad = BackwardOnly.backward(ctx, g)
        return ctx.x.grad


class NoneGrad(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        _, y = ctx.saved_tensors
        return g * y, None


class WrongShape(NoneGrad):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y).sum(0)[None, None][..., :2], g * x


class WrongCount(NoneGrad):
    @staticmethod
    def backward(ctx, g):
        _, y = ctx.saved_tensors
        return g * y


class MutatesGrad(NoneGrad):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        gx = g * x
        g.mul_(y)
        return g, gx


class MutatesSaved(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        x.mul_(2)
        return g * x


class RandomBackward(NoneGrad):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * (1 + 1e-3 * torch.rand(())), g * x


class OnceDiff(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g


class UpcastNorm(Function):
    """As fused kernels do: computes in float32 whatever comes in."""

    @staticmethod
    def forward(ctx, x, w):
        xf = x.float()
        r = torch.rsqrt(xf.square().mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, w, r)
        return ((xf * r) * w.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        x, w, r = ctx.saved_tensors
        xf, g = x.float(), dy.float() * w.float()
        dx = r * g - xf * r**3 * (g * xf).mean(-1, keepdim=True)
        return dx.to(x.dtype), (dy.float() * xf * r).sum(0).to(w.dtype)


class UpcastNormBad(UpcastNorm):
    @staticmethod
    def backward(ctx, dy):
        x, w, r = ctx.saved_tensors
        xf, g = x.float(), dy.float() * w.float()
        dx = r * g - xf * r**2 * (g * xf).mean(-1, keepdim=True)
        return dx.to(x.dtype), (dy.float() * xf * r).sum(0).to(w.dtype)


def dropped(ctx, x, drawn):
    mask = (drawn > 0.5).to(x.dtype)
    ctx.save_for_backward(mask)
    return x * mask / 0.5


class Dropout(Function):
    @staticmethod
    def forward(ctx, x):
        return dropped(ctx, x, torch.rand_like(x))

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 2


class DropoutSeeded(Dropout):
    @staticmethod
    def forward(ctx, x):
        return dropped(ctx, x, torch.rand(x.shape, generator=torch.Generator().manual_seed(7)))


class DropoutBad(Dropout):
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class FlatSine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g.view(-1) * torch.cos(x).view(-1)).view(x.shape)


class KernelSine(FlatSine):
    """As a kernel that gets a pointer."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.as_strided(g.shape, torch.empty(g.shape).stride()) * torch.cos(x)


class ContiguousSine(FlatSine):
    @staticmethod
    def backward(ctx, g):
        return FlatSine.backward(ctx, g.contiguous())


class StraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Nested(Function):
    """Double backward by another Function, right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return NestedBackward.apply(g, x)


class NestedBackward(Function):
    @staticmethod
    def forward(ctx, g, x):
        ctx.save_for_backward(g, x)
        return g * torch.cos(x)

    @staticmethod
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        return gg * torch.cos(x), -gg * g * torch.sin(x)


class NestedBad(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return NestedBackwardBad.apply(g, x)


class NestedBackwardBad(NestedBackward):
    @staticmethod
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        return gg * torch.cos(x), gg * g * torch.sin(x)


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(4, 4, dtype=torch.float64))
        self.norm = torch.nn.LayerNorm(4).double()

    def forward(self, x):
        return torch.sigmoid(NoneGradFixed.apply(self.norm(x @ self.w), x))


class NoneGradFixed(NoneGrad):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


class Detached(Function):
    """Autograd inside of backward, which computes again."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with torch.no_grad():
            return torch.log(torch.cosh(x)).sum(-1)

    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = torch.log(torch.cosh(x)).sum(-1)
        (gx,) = torch.autograd.grad(y, x, g)
        return gx


@torch.library.custom_op("gradcheck_tests::mysin", mutates_args=())
def mysin(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x)


def sin_backward(ctx, g):
    return g * torch.cos(ctx.saved_tensors[0])


def keep_input(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


torch.library.register_autograd("gradcheck_tests::mysin", sin_backward, setup_context=keep_input)


@torch.library.custom_op("gradcheck_tests::mysin2", mutates_args=())
def mysin2(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x)


def wrong_backward(ctx, g):
    return g * torch.sin(ctx.saved_tensors[0])


torch.library.register_autograd("gradcheck_tests::mysin2", wrong_backward, setup_context=keep_input)


class Sparse(Function):
    @staticmethod
    def forward(ctx, v, x):
        i = torch.tensor([[0, 1, 2], [1, 0, 2]])
        a = torch.sparse_coo_tensor(i, v, (3, 3))
        ctx.save_for_backward(v, x, i)
        return torch.sparse.mm(a, x)

    @staticmethod
    def backward(ctx, g):
        v, x, i = ctx.saved_tensors
        return (g[i[0]] * x[i[1]]).sum(1), torch.zeros_like(x).index_add_(0, i[1], g[i[0]] * v[:, None])


class ItemScale(Function):
    @staticmethod
    def forward(ctx, x):
        s = x.abs().max().item()
        ctx.save_for_backward(x)
        ctx.s = s
        return x / s

    @staticmethod
    def backward(ctx, g):
        (x,), s = ctx.saved_tensors, ctx.s
        gx = (g / s).contiguous()
        i = x.abs().argmax()
        gx.view(-1)[i] -= (g * x).sum() / s**2 * x.view(-1)[i].sign()
        return gx


class ItemScaleBad(ItemScale):
    @staticmethod
    def backward(ctx, g):
        return g / ctx.s


class SetupContext(Function):
    """The newer style: forward without a context."""

    @staticmethod
    def forward(x, k):
        return x.exp() * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y, None


class SetupContextBad(SetupContext):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y / ctx.k, None


class NeedsInputGrad(Function):
    """Gradients only where they are needed."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g @ w.T if ctx.needs_input_grad[0] else None
        gw = x.T @ g if ctx.needs_input_grad[1] else None
        return gx, gw


class NeedsInputGradBad(NeedsInputGrad):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g @ w.T if ctx.needs_input_grad[1] else None
        gw = x.T @ g if not ctx.needs_input_grad[0] else None
        return gx, gw


class NeedOfAnotherInput(NeedsInputGrad):
    """Right while both inputs need a gradient, as in a model none of whose weights is frozen."""

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g @ w.T if ctx.needs_input_grad[0] else None
        gw = x.T @ g if ctx.needs_input_grad[0] else None
        return gx, gw


class SavedByNeed(NeedsInputGrad):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x if ctx.needs_input_grad[0] else None, w)
        return x @ w


class InPlace(Function):
    """Writes into its input, and says so."""

    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class InPlaceBad(InPlace):
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] ** 2


class InPlaceUnsaid(Function):
    """Writes into its argument without mark_dirty."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        x.mul_(2)
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        return 2 * g * torch.ones_like(ctx.saved_tensors[0])


class NonDifferentiable(Function):
    """A second output that has no gradient, and is marked so."""

    @staticmethod
    def forward(ctx, x):
        steps = x.round()
        ctx.mark_non_differentiable(steps)
        ctx.save_for_backward(x)
        return x * x, steps

    @staticmethod
    def backward(ctx, g, g_steps):
        return 2 * g * ctx.saved_tensors[0]


class Unmaterialised(Function):
    """Two outputs, of which one may have no cotangent."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        found = torch.zeros_like(x)
        if g is not None:
            found = found + g * x.cos()
        if h is not None:
            found = found - h * x.sin()
        return found


class UnmaterialisedBad(Unmaterialised):
    """Fails where one output is not used."""

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * x.cos() - h * x.sin()


class Complex(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z.conj() * z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z * z.conj() + g.conj() * z * z


class ComplexBad(Complex):
    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z * z.conj() + g * z * z


class Options(Function):
    """Arguments that are no tensors."""

    @staticmethod
    def forward(ctx, x, mode, factors, flag=True):
        ctx.save_for_backward(x)
        ctx.factor = sum(factors) if mode == "sum" and flag else 1.0
        return x.sin() * ctx.factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos() * ctx.factor, None, None, None


class WritesIntoViews(Function):
    """In-place operations on views of its result."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[0].mul_(3)
        y[:, 1] = x[:, 0] * x[:, 2]
        y.t()[2].exp_()
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g, gx = g.clone(), torch.zeros_like(x)
        row = x[:, 2].clone()
        row[0] = row[0] * 3
        g[:, 2] = g[:, 2] * row.exp()
        gx[:, 0] += g[:, 1] * x[:, 2]
        gx[:, 2] += g[:, 1] * x[:, 0]
        g[:, 1] = 0
        g[0] = g[0] * 3
        return gx + g


class WritesIntoViewsBad(WritesIntoViews):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g, gx = g.clone(), torch.zeros_like(x)
        row = x[:, 2].clone()
        g[:, 2] = g[:, 2] * row.exp()
        gx[:, 0] += g[:, 1] * x[:, 2]
        gx[:, 2] += g[:, 1] * x[:, 0]
        g[:, 1] = 0
        g[0] = g[0] * 3
        return gx + g


class MaxPool(Function):
    @staticmethod
    def forward(ctx, x):
        y, ctx.at = F.max_pool2d(x, 2, return_indices=True)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        found = torch.zeros_like(x).flatten(2)
        return found.scatter_(2, ctx.at.flatten(2), g.flatten(2)).view_as(x)


class SortedSum(Function):
    """A weighted sum of sorted values."""

    @staticmethod
    def forward(ctx, x):
        values, ctx.places = x.sort(-1)
        ctx.weights = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
        return (values * ctx.weights).sum(-1)

    @staticmethod
    def backward(ctx, g):
        gs = g[..., None] * ctx.weights
        return torch.zeros_like(gs).scatter_(-1, ctx.places, gs)


class Detached2(Function):
    """An output that is cut off from its input without being marked."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return None


class OwnApply(Function):
    """Its apply calls the forward itself: backward never runs."""

    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        raise AssertionError("never")

    @classmethod
    def apply(cls, x):
        return cls.forward(None, x)


class Gate(torch.nn.Module):
    """A Function that only training uses."""

    def forward(self, x):
        return NoneGradFixed.apply(x, x) if self.training else x * x


class Linear(torch.nn.Module):
    """A Function with the module's parameter."""

    def __init__(self, layer):
        super().__init__()
        self.w = torch.nn.Parameter(torch.linspace(-1, 1, 8, dtype=torch.float64).reshape(4, 2))
        self.layer = layer

    def forward(self, x):
        return self.layer.apply(x, self.w)


class NeedsGradWrongWeight(NeedsInputGrad):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.T, 2 * x.T @ g


class WritesUnseen(Function):
    """Operations that write into tensors that they do not return."""

    @staticmethod
    def forward(ctx, x):
        a, b = x.clone(), x * 2
        torch._foreach_mul_([a, b], 3)
        torch._foreach_exp_([a])
        ctx.save_for_backward(a)
        return a + b

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * (3 * a + 6)


class WritesUnseenBad(WritesUnseen):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * (3 * a + 2)


class RunningMean(Function):
    """What a normalisation writes into its running mean is returned."""

    @staticmethod
    def forward(ctx, x):
        mean, var = torch.zeros(x.shape[1], dtype=x.dtype), torch.ones(x.shape[1], dtype=x.dtype)
        F.batch_norm(x, mean, var, training=True, momentum=0.5)
        ctx.save_for_backward(x, mean)
        return mean.sin()

    @staticmethod
    def backward(ctx, g):
        x, mean = ctx.saved_tensors
        return (0.5 * g * mean.cos() / x.shape[0]).expand_as(x)


class RunningMeanBad(RunningMean):
    @staticmethod
    def backward(ctx, g):
        x, mean = ctx.saved_tensors
        return (g * mean.cos() / x.shape[0]).expand_as(x)


class WrittenOut(Function):
    """Results that are written with out=."""

    @staticmethod
    def forward(ctx, x):
        y, z = torch.empty_like(x), torch.empty_like(x)
        torch.exp(x, out=y)
        torch.add(y, x.sin(), alpha=2, out=z)
        ctx.save_for_backward(x, y)
        return z

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (y + 2 * x.cos())


class WrittenOutBad(WrittenOut):
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (y + x.cos())


ORDER = np.random.default_rng(5)


def sums_in_any_order(values: torch.Tensor, places: torch.Tensor, count: int) -> torch.Tensor:
    """Sums of the values at each place, added up in an order that chance decides, as atomic additions are."""
    order = torch.as_tensor(ORDER.permutation(len(values)))
    return torch.zeros(count, dtype=values.dtype).index_add(0, places[order], values[order])


class SegmentSum(Function):
    @staticmethod
    def forward(ctx, x, places):
        ctx.save_for_backward(x, places)
        return sums_in_any_order(x * x, places, 5)

    @staticmethod
    def backward(ctx, g):
        x, places = ctx.saved_tensors
        return 2 * x * g[places], None


class Pick(Function):
    @staticmethod
    def forward(ctx, x, places):
        y = torch.exp(x)
        ctx.save_for_backward(y, places)
        return y[places]

    @staticmethod
    def backward(ctx, g):
        y, places = ctx.saved_tensors
        return sums_in_any_order(g, places, len(y)) * y, None


class PickBad(Pick):
    @staticmethod
    def backward(ctx, g):
        y, places = ctx.saved_tensors
        return sums_in_any_order(g, places, len(y)) * y * 1.01, None


class GridSample(Function):
    @staticmethod
    def forward(ctx, image, grid):
        ctx.save_for_backward(image, grid)
        return torch.nn.functional.grid_sample(image, grid, align_corners=False)

    @staticmethod
    def backward(ctx, g):
        image, grid = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        with torch.enable_grad():
            out = torch.nn.functional.grid_sample(image, grid, align_corners=False)
        return torch.autograd.grad(out, (image, grid), g)
