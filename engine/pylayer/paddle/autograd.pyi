"""What type checkers know of `paddle.autograd`: the classes of a layer; all else may be anything."""

from typing import Any

from pylayer.layer.py_layer import PyLayer as PyLayer
from pylayer.layer.py_layer import PyLayerContext as PyLayerContext

def __getattr__(name: str) -> Any: ...
