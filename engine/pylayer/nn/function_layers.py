"""Activations, losses and the like as layers: one row each, with its options and what its repr shows."""

from __future__ import annotations

from typing import Any

from pylayer.nn import activations, common_losses, functional, losses
from pylayer.nn.checks import check_positive, check_reduction
from pylayer.nn.initializer import Constant
from pylayer.nn.layer import Layer
from pylayer.nn.layers import REQUIRED, BCEWithLogitsLoss, L1Loss, MSELoss, function_layer
from pylayer.ops import activation
from pylayer.tensor import Tensor

CELU = function_layer("CELU", activation.celu, alpha=1.0)
GLU = function_layer("GLU", activation.glu, axis=-1)
Hardshrink = function_layer("Hardshrink", activations.hardshrink, threshold=0.5)
Hardsigmoid = function_layer("Hardsigmoid", activation.hardsigmoid)
Hardswish = function_layer("Hardswish", activation.hardswish)
Hardtanh = function_layer("Hardtanh", activation.hardtanh, min=-1.0, max=1.0)
LogSigmoid = function_layer("LogSigmoid", activation.log_sigmoid)
Maxout = function_layer("Maxout", activations.maxout, groups=REQUIRED, axis=1)
Mish = function_layer("Mish", activation.mish)
ReLU6 = function_layer("ReLU6", activation.relu6)
SELU = function_layer("SELU", activation.selu, scale=1.0507009873554805, alpha=1.6732632423543772)
Softshrink = function_layer("Softshrink", activations.softshrink, threshold=0.5)
Softsign = function_layer("Softsign", activation.softsign)
Swish = function_layer("Swish", activation.swish)
Tanhshrink = function_layer("Tanhshrink", activation.tanhshrink)
ThresholdedReLU = function_layer("ThresholdedReLU", activations.thresholded_relu, threshold=1.0, value=0.0)
CosineSimilarity = function_layer("CosineSimilarity", functional.cosine_similarity, axis=1, eps=1e-8)


def _pairwise(x: Tensor, y: Tensor, p: float, epsilon: float, keepdim: bool) -> Tensor:
    return losses.pairwise_distance(x, y, p, epsilon, keepdim)


PairwiseDistance = function_layer("PairwiseDistance", _pairwise, "p", p=2.0, epsilon=1e-6, keepdim=False)

BCELoss = function_layer("BCELoss", common_losses.binary_cross_entropy, False, weight=None, reduction="mean")
KLDivLoss = function_layer("KLDivLoss", common_losses.kl_div, False, reduction="mean", log_target=False)
NLLLoss = function_layer("NLLLoss", common_losses.nll_loss, False, weight=None, ignore_index=-100, reduction="mean")
SmoothL1Loss = function_layer(
    "SmoothL1Loss", common_losses.smooth_l1_loss, False, reduction="mean", delta=1.0, is_huber=True
)
MarginRankingLoss = function_layer("MarginRankingLoss", losses.margin_ranking_loss, False, margin=0.0, reduction="mean")
HingeEmbeddingLoss = function_layer(
    "HingeEmbeddingLoss", losses.hinge_embedding_loss, False, margin=1.0, reduction="mean"
)
CosineEmbeddingLoss = function_layer(
    "CosineEmbeddingLoss", losses.cosine_embedding_loss, False, margin=0, reduction="mean"
)
TripletMarginLoss = function_layer(
    "TripletMarginLoss", losses.triplet_margin_loss, False, margin=1.0, p=2.0, epsilon=1e-6, swap=False,
    reduction="mean",
)  # fmt: skip
TripletMarginWithDistanceLoss = function_layer(
    "TripletMarginWithDistanceLoss", losses.triplet_margin_with_distance_loss, False, distance_function=None,
    margin=1.0, swap=False, reduction="mean",
)  # fmt: skip
PoissonNLLLoss = function_layer(
    "PoissonNLLLoss", losses.poisson_nll_loss, False, log_input=True, full=False, epsilon=1e-8, reduction="mean"
)
GaussianNLLLoss = function_layer(
    "GaussianNLLLoss", losses.gaussian_nll_loss, False, full=False, epsilon=1e-6, reduction="mean"
)
SoftMarginLoss = function_layer("SoftMarginLoss", losses.soft_margin_loss, False, reduction="mean")
MultiLabelSoftMarginLoss = function_layer(
    "MultiLabelSoftMarginLoss", losses.multi_label_soft_margin_loss, False, weight=None, reduction="mean"
)
MultiMarginLoss = function_layer(
    "MultiMarginLoss", losses.multi_margin_loss, False, p=1, margin=1.0, weight=None, reduction="mean"
)
MultiLabelMarginLoss = function_layer("MultiLabelMarginLoss", losses.multi_label_margin_loss, False, reduction="mean")

# Not SmoothL1Loss, CrossEntropyLoss, HingeEmbeddingLoss, KLDivLoss and CTCLoss, whose constructors Paddle lets pass.
for _loss in (
    MSELoss, L1Loss, BCELoss, BCEWithLogitsLoss, NLLLoss, MarginRankingLoss, CosineEmbeddingLoss, TripletMarginLoss,
    TripletMarginWithDistanceLoss, PoissonNLLLoss, GaussianNLLLoss, SoftMarginLoss, MultiLabelSoftMarginLoss,
    MultiMarginLoss, MultiLabelMarginLoss,
):  # fmt: skip
    _loss.checks = {"reduction": check_reduction}
PoissonNLLLoss.checks = {
    "reduction": check_reduction,
    "epsilon": lambda epsilon: check_positive("PoissonNLLLoss", epsilon=epsilon),
}


class Softmax2D(Layer):
    """The softmax over channels of images, with or without a batch."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """The output, of the shape of `x`."""
        if x.ndim not in (3, 4):
            raise AssertionError(f"Softmax2D requires a 3D or 4D tensor as input. Received: {x.ndim}D.")
        return activation.softmax(x, -3)


class _InTraining(Layer):
    """A function that is the identity outside training."""

    function: Any

    def __init__(self, p: float = 0.5, data_format: str | None = None, name: str | None = None) -> None:
        super().__init__()
        self.p, self.data_format = p, data_format or self.usual_format

    usual_format: str | None = None

    def forward(self, input: Tensor) -> Tensor:
        """The input, some of it dropped."""
        options = {} if self.data_format is None else {"data_format": self.data_format}
        found: Tensor = type(self).function(input, self.p, self.training, **options)
        return found

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"p={self.p}" + ("" if self.data_format is None else f", data_format={self.data_format}")


class AlphaDropout(_InTraining):
    """`nn.functional.alpha_dropout`, in training mode only."""

    function = staticmethod(activations.alpha_dropout)


class FeatureAlphaDropout(_InTraining):
    """`nn.functional.feature_alpha_dropout`, in training mode only."""

    function = staticmethod(activations.feature_alpha_dropout)


class Dropout2D(_InTraining):
    """`nn.functional.dropout2d`, in training mode only."""

    function = staticmethod(activations.dropout2d)
    usual_format = "NCHW"


class Dropout3D(_InTraining):
    """`nn.functional.dropout3d`, in training mode only."""

    function = staticmethod(activations.dropout3d)
    usual_format = "NCDHW"


class RReLU(Layer):
    """`nn.functional.rrelu`, its slopes drawn in training mode only."""

    def __init__(self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, name: str | None = None) -> None:
        super().__init__()
        self._lower, self._upper = lower, upper

    def forward(self, x: Tensor) -> Tensor:
        """The output, of the shape of `x`."""
        return activations.rrelu(x, self._lower, self._upper, self.training)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return f"lower={self._lower}, upper={self._upper}, training={self.training}, dtype={self._dtype.name}"


class PReLU(Layer):
    """`nn.functional.prelu` with one slope, or one per channel, `init` to start with."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_parameters, self._init, self._data_format = num_parameters, init, data_format
        self._weight = self.create_parameter([num_parameters], weight_attr, default_initializer=Constant(init))

    def forward(self, x: Tensor) -> Tensor:
        """The output, of the shape of `x`."""
        return activation.prelu(x, self._weight, self._data_format)

    def extra_repr(self) -> str:
        """What the repr shows."""
        return (
            f"num_parameters={self._num_parameters}, data_format={self._data_format}, init={self._init}, "
            f"dtype={self._dtype.name}"
        )
