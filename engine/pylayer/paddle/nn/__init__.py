"""`paddle.nn`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.nn import functional as functional
from pylayer.paddle.nn import init as init
from pylayer.paddle.nn import initializer as initializer
from pylayer.paddle.nn import utils as utils

_EXPORTS = {
    "nn.attention": "MultiHeadAttention",
    "nn.containers": "LayerDict LayerList ParameterDict ParameterList Sequential",
    "nn.convolution_layers": "Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose",
    "nn.function_layers": (
        "AlphaDropout BCELoss CELU CTCLoss CosineEmbeddingLoss CosineSimilarity Dropout2D Dropout3D GLU "
        "GaussianNLLLoss Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss KLDivLoss LogSigmoid "
        "MarginRankingLoss Maxout Mish MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PReLU PairwiseDistance "
        "PoissonNLLLoss RNNTLoss RReLU ReLU6 SELU SmoothL1Loss SoftMarginLoss Softmax2D Softshrink Softsign Swish "
        "Tanhshrink ThresholdedReLU TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "nn.hierarchical": "HSigmoidLoss",
    "nn.layer": "Layer",
    "nn.layers": (
        "BCEWithLogitsLoss CrossEntropyLoss Dropout ELU Embedding Flatten GELU Identity L1Loss LayerNorm "
        "LeakyReLU Linear LogSoftmax MSELoss ReLU Sigmoid Silu Softmax Softplus Tanh"
    ),
    "nn.norm_layers": (
        "BatchNorm BatchNorm1D BatchNorm2D BatchNorm3D Bilinear GroupNorm InstanceNorm1D InstanceNorm2D InstanceNorm3D "
        "SyncBatchNorm"
    ),
    "nn.recurrent": "BiRNN RNN",
    "nn.recurrent_cells": "GRUCell LSTMCell RNNCellBase SimpleRNNCell",
    "nn.recurrent_layers": "GRU LSTM SimpleRNN",
    "nn.reparametrisation": "SpectralNorm",
    "nn.spatial_layers": (
        "AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveMaxPool1D AdaptiveMaxPool2D "
        "AdaptiveMaxPool3D AvgPool1D AvgPool2D AvgPool3D ChannelShuffle Fold FractionalMaxPool2D "
        "FractionalMaxPool3D LPPool1D LPPool2D LocalResponseNorm MaxPool1D MaxPool2D "
        "MaxPool3D MaxUnPool1D MaxUnPool2D MaxUnPool3D Pad1D Pad2D Pad3D PixelShuffle PixelUnshuffle Unflatten "
        "Unfold Upsample UpsamplingBilinear2D UpsamplingNearest2D ZeroPad1D ZeroPad2D ZeroPad3D"
    ),
    "nn.transformer": "Transformer TransformerDecoder TransformerEncoder",
    "nn.transformer_layers": "TransformerDecoderLayer TransformerEncoderLayer",
    "optimizer.clip": "ClipGradByGlobalNorm ClipGradByNorm ClipGradByValue",
    "parameter": "Parameter",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
