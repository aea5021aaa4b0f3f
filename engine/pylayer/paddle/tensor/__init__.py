"""`paddle.tensor`."""

from __future__ import annotations

from pylayer.ops.methods import FORMS_IN_PLACE as _FORMS_IN_PLACE
from pylayer.ops.spellings import respelled as _respelled
from pylayer.paddle._functions import FUNCTIONS
from pylayer.paddle._names import aliases as _aliases
from pylayer.paddle._names import exported, missing

_EXPORTS = {
    **FUNCTIONS,
    "ops.conditioning": "cholesky_inverse cholesky_solve cond lstsq pinv",
    "ops.creation": f"{FUNCTIONS['ops.creation']} fill_constant",
    "ops.eigenvalues": "eig eigh eigvals",
    "ops.elimination": "lu lu_solve lu_unpack",
    "ops.factors": "householder_product qr svd svdvals",
    "ops.solving": "inverse matrix_power multi_dot slogdet solve",
}
globals().update(exported(_EXPORTS))
globals().update({name: _respelled(name, form) for name, form in _FORMS_IN_PLACE.items()})
globals().update(_aliases(globals()))

__getattr__ = missing(__name__)
