"""Import of the layer that the command line names."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from gradcheck.backends.base import Backend
from gradcheck.case.layer_signature import (
    CANNOT_CHECK,
    LayerSignature,
    instance_of,
    signature_of,
)
from gradcheck.case.user_code import NoLayerError, engine, import_anew, with_place
from gradcheck.support.foreign import describe_error
from gradcheck.support.user_error import UserError


def import_signature(reference: str, backend: str = "") -> LayerSignature:
    """Import a layer, and return its signature. Raises UserError: the layer does not exist."""
    return signature_in(reference, *import_layer(reference, backend))


def signature_in(reference: str, target: Any, backend: Backend) -> LayerSignature:
    """Return the signature of a layer. Raises NoLayerError: the layer cannot be called."""
    name = reference.replace(":", ".").rpartition(".")[2]
    return signature_of(instance_of(target, backend), name, backend)


def import_layer(reference: str, named: str = "") -> tuple[Any, Backend]:
    """Import a layer, and return it with its backend: naming it is permission to run its module.

    `named` is a backend or framework that the user names, if any. Output of the module goes to
    stderr. Raises UserError: there is no such layer; its module cannot be imported; its framework
    is not known; or the framework has no backend.
    """
    from gradcheck.case.arguments import backend_of  # needs NumPy, slow to import

    try:
        with engine(always=True), redirect_stdout(sys.stderr):
            target = import_anew(reference)
            return target, backend_of(target, (), is_named=bool(named))
    except NoLayerError:
        raise
    except (Exception, SystemExit) as error:
        problem = with_place(describe_error(error), error, str(Path.cwd() / reference))
        raise UserError(f"{reference} {CANNOT_CHECK}{problem}") from None
