"""The layers of the findings with the backward fixed: the same forward, inherited from the released class."""

from __future__ import annotations

import paddle
import released
from paddle.distributed.fleet.layers.mpu import mp_ops
from paddle.distributed.fleet.utils.sequence_parallel_utils import scatter
from paddle.incubate.distributed.models.moe import moe_layer
from paddleformers.transformers.ernie4_5_moe_vl.model.distributed.common_dist_utils import all_gather_varlen


class MoEScatter(moe_layer.MoEScatter):
    """A row that was sent to several experts gets the sum of their gradients."""

    @staticmethod
    def backward(ctx, grad):
        rows, *_ = ctx.saved_tensor()
        length, *_ = ctx.moe_args
        return paddle.index_add(paddle.zeros([length, grad.shape[-1]], grad.dtype), rows, 0, grad), None, None, None


class ReverseSort(released.ReverseSort):
    """Second comes the gradient of the logits, not the index that they are sorted by."""

    @staticmethod
    def backward(ctx, dvectors, dlogits):
        order = ctx.sorted_bucket_idx
        rows = order.unsqueeze(-1).expand_as(dvectors)
        return paddle.take_along_axis(dvectors, rows, 2), paddle.take_along_axis(dlogits, order, 2), None, None


class HadaWeightCP(released.HadaWeightCP):
    """The gradients of w1a and w2a are each taken with the other factors of their own product."""

    @staticmethod
    def backward(ctx, grad):
        t1, w1a, w1b, t2, w2a, w2b, scale = ctx.saved_tensor()
        first = paddle.einsum("ijkl,jr,ip->prkl", t1, w1b, w1a)
        second = paddle.einsum("ijkl,jr,ip->prkl", t2, w2b, w2a)
        gradients = []
        for of_product, t, a, b in ((grad * scale * second, t1, w1a, w1b), (grad * scale * first, t2, w2a, w2b)):
            gradients += [
                paddle.einsum("prkl,jr,ip->ijkl", of_product, b, a),
                paddle.einsum("prkl,ijkl,jr->ip", of_product, t, b),
                paddle.einsum("prkl,ijkl,ip->jr", of_product, t, a),
            ]
        return (*gradients, None)


class GeLUFunction(released.GeLUFunction):
    """Paddle's name is `saved_tensor`, a method; the formula itself is kept."""

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensor()
        tanh = paddle.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        slope = 0.79788456 * (1 + 3 * 0.044715 * x * x)
        return grad * (0.5 * x * (1 - tanh * tanh) * slope + 0.5 * (1 + tanh))


class XDropout(released.XDropout):
    """One gradient, for the one Tensor; the other argument is a number."""

    @staticmethod
    def backward(ctx, grad):
        if ctx.scale == 1:
            return grad
        (mask,) = ctx.saved_tensor()
        return grad.masked_fill(mask, 0) * ctx.scale


class CSplit(mp_ops.c_split_eager):
    """The parts are joined along the axis that was split, the last."""

    @staticmethod
    def backward(ctx, grad):
        parts = []
        paddle.distributed.all_gather(parts, grad, group=ctx.group)
        return paddle.concat(parts, -1)


class FusedHeadParallelCrossEntropy(released.HeadLossOfVision):
    """Without a bias there are three Tensors, so at most three gradients."""

    @staticmethod
    def backward(ctx, *grads):
        gradients = released.HeadLossOfVision.backward(ctx, *grads)
        _, _, bias, _ = ctx.saved_tensor()
        return gradients[:2] if bias is None else gradients


class AllGatherVarlenOp(released.AllGatherVarlenOfErnie):
    """Rows are put back by their numbers alone, however many axes they have."""

    @staticmethod
    def backward(ctx, grad):
        shape = [ctx.max_shape0 * len(ctx.shape0_all), *grad.shape[1:]]
        padded = paddle.scatter(paddle.zeros(shape, grad.dtype), ctx.indices.flatten(), grad)
        return scatter(padded)[: ctx.shape0]


class SliceVarlenOp(released.SliceVarlenOp):
    """The parts of all ranks are gathered by the sizes that forward has kept."""

    @staticmethod
    def backward(ctx, grad):
        return all_gather_varlen(grad, ctx.indices, group=ctx.group)
