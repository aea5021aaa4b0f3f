"""What type checkers know of `paddle.autograd`: the classes of a layer; all else may be anything."""

from typing import Any

from pylayer.py_layer import PyLayer as PyLayer
from pylayer.py_layer import PyLayerContext as PyLayerContext

def __getattr__(name: str) -> Any: ...
