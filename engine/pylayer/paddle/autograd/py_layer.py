"""`paddle.autograd.py_layer`."""

from __future__ import annotations

from pylayer.paddle._missing import missing
from pylayer.py_layer import PyLayer as PyLayer
from pylayer.py_layer import PyLayerContext as PyLayerContext

__getattr__ = missing(__name__)
