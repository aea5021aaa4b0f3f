"""What type checkers know of the facade, whose modules are made from a table: a Tensor; all else may be anything."""

from typing import Any

from pylayer import __version__ as __version__
from pylayer.tensor.tensor import Tensor as Tensor

def __getattr__(name: str) -> Any: ...
