"""Residual networks (He et al., 2016), which Paddle's tests of gradients take for a large graph."""

from __future__ import annotations

from typing import Any

from pylayer.nn.containers import Sequential
from pylayer.nn.convolution_layers import Conv2D
from pylayer.nn.layer import Layer
from pylayer.nn.layers import Linear, ReLU
from pylayer.nn.norm_layers import BatchNorm2D
from pylayer.nn.spatial_layers import AdaptiveAvgPool2D, MaxPool2D
from pylayer.ops.shape import flatten
from pylayer.tensor import Tensor

DEPTHS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
"""The number of blocks of each of the four stages, by the depth that is named (He et al., 2016, table 1)."""


def _shortcut(inputs: int, outputs: int, stride: int) -> Layer | None:
    """What brings the input of a block to the shape of its output; None where it has that shape."""
    if stride == 1 and inputs == outputs:
        return None
    return Sequential(Conv2D(inputs, outputs, 1, stride=stride, bias_attr=False), BatchNorm2D(outputs))


class BasicBlock(Layer):
    """Two convolutions and what goes around them."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = Conv2D(inputs, width, 3, stride, 1, bias_attr=False), BatchNorm2D(width)
        self.conv2, self.bn2 = Conv2D(width, width, 3, padding=1, bias_attr=False), BatchNorm2D(width)
        self.relu, self.downsample = ReLU(), _shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """The output."""
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        found: Tensor = self.relu(out + (x if self.downsample is None else self.downsample(x)))
        return found


class BottleneckBlock(Layer):
    """Three convolutions, the one over space between two that narrow and widen, and what goes around them."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1, self.bn1 = Conv2D(inputs, width, 1, bias_attr=False), BatchNorm2D(width)
        self.conv2, self.bn2 = Conv2D(width, width, 3, stride, 1, bias_attr=False), BatchNorm2D(width)
        self.conv3, self.bn3 = Conv2D(width, outputs, 1, bias_attr=False), BatchNorm2D(outputs)
        self.relu, self.downsample = ReLU(), _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """The output."""
        out = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        out = self.bn3(self.conv3(out))
        found: Tensor = self.relu(out + (x if self.downsample is None else self.downsample(x)))
        return found


class ResNet(Layer):
    """A network of images [batch, 3, height, width] to scores [batch, num_classes], its weights not trained.

    Args:
        block: `BasicBlock` or `BottleneckBlock`.
        depth: a key of `DEPTHS`.
        num_classes: 0 for the features before the last layer.
        with_pool: average over space before it.
    """

    def __init__(
        self, block: type[BasicBlock | BottleneckBlock], depth: int = 50, num_classes: int = 1000,
        with_pool: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes, self.with_pool = num_classes, with_pool
        self.conv1, self.bn1, self.relu = Conv2D(3, 64, 7, 2, 3, bias_attr=False), BatchNorm2D(64), ReLU()
        self.maxpool = MaxPool2D(3, 2, 1)
        inputs = 64
        for k, count in enumerate(DEPTHS[depth]):
            width, blocks = 64 * 2**k, []
            for i in range(count):
                blocks.append(block(inputs, width, 2 if k and not i else 1))
                inputs = width * block.expansion
            setattr(self, f"layer{k + 1}", Sequential(*blocks))
        self.avgpool = AdaptiveAvgPool2D((1, 1))
        if num_classes > 0:
            self.fc = Linear(inputs, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.avgpool(x) if self.with_pool else x
        return self.fc(flatten(x, 1)) if self.num_classes > 0 else x


def _resnet(depth: int, block: type[BasicBlock | BottleneckBlock]) -> Any:
    def make(pretrained: bool = False, **kwargs: Any) -> ResNet:
        """The network; its options are those of `ResNet`.

        Raises:
            ValueError: trained weights are asked for: the engine downloads none.
        """
        if pretrained:
            raise ValueError(f"resnet{depth}(): pretrained=True is not part of the bundled engine.")
        return ResNet(block, depth, **kwargs)

    make.__name__ = make.__qualname__ = f"resnet{depth}"
    return make


resnet18, resnet34 = (_resnet(depth, BasicBlock) for depth in (18, 34))
resnet50, resnet101, resnet152 = (_resnet(depth, BottleneckBlock) for depth in (50, 101, 152))
