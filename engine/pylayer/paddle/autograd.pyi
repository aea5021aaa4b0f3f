"""`paddle.autograd` for type checkers: the classes of a layer; the rest is Any."""

from typing import Any

from pylayer.layer.py_layer import PyLayer as PyLayer
from pylayer.layer.py_layer import PyLayerContext as PyLayerContext

def __getattr__(name: str) -> Any: ...
