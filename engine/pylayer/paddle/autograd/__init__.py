"""`paddle.autograd`."""

from __future__ import annotations

from pylayer.autograd import backward as backward
from pylayer.autograd import enable_grad as enable_grad
from pylayer.autograd import grad as grad
from pylayer.autograd import is_grad_enabled as is_grad_enabled
from pylayer.autograd import no_grad as no_grad
from pylayer.autograd import set_grad_enabled as set_grad_enabled
from pylayer.paddle._missing import missing
from pylayer.paddle.autograd import py_layer as py_layer
from pylayer.py_layer import PyLayer as PyLayer
from pylayer.py_layer import PyLayerContext as PyLayerContext
from pylayer.saved import saved_tensors_hooks as saved_tensors_hooks

__getattr__ = missing(__name__)
