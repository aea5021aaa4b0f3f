"""The facade for type checkers, as its modules are made from a table: Tensor; the rest is Any."""

from typing import Any

from pylayer import __version__ as __version__
from pylayer.tensor.tensor import Tensor as Tensor

def __getattr__(name: str) -> Any: ...
