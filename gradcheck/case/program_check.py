"""Check of a scenario's static layer with another function in place of `backward_fn`."""

from __future__ import annotations

from time import perf_counter
from types import FunctionType
from typing import TYPE_CHECKING, Any

from gradcheck.backends.base import load_backend
from gradcheck.case.execute import Run
from gradcheck.case.gradient_check import gradient_summary
from gradcheck.case.static_calls import applied_functions, replaced_backward_fn
from gradcheck.case.static_layer import StaticLayer
from gradcheck.deriving.call import raw_array, static_call
from gradcheck.deriving.graph import NotDerived
from gradcheck.result import GradientSummary

if TYPE_CHECKING:
    from gradcheck.case.case import Case


class ProgramCheck:
    """A check of functions that replace `backward_fn`, in programs.

    Raises:
        NotDerived: the layer's functions run only in programs, or do not take the scenario's
            inputs.
        Exception: whatever the scenario's code raises.
    """

    def __init__(self, case: Case) -> None:
        run = Run(case, load_backend(case.backend), perf_counter())
        self.settings = run.check_settings()._replace(effort="least")
        layer = run.make_layer(run.backend, run.namespace)
        assert isinstance(layer, StaticLayer)
        self.layer, self.backward_fn = layer, layer.eager.namespace["backward_fn"]
        applied = applied_functions(layer)
        calls = [arguments for arguments in applied if arguments[2] is self.backward_fn]
        if not calls:
            raise NotDerived("no static_pylayer is called with backward_fn")
        self.call = static_call(*calls[0])
        if not {*self.call.names} <= {*layer.arrays}:
            raise NotDerived("static_pylayer has an input that the scenario does not have")

    def __call__(self, backward: FunctionType, *args: Any) -> GradientSummary:
        """Check a function in place of `backward_fn`, with `args` as arguments of the call."""
        arguments = zip(self.call.names, map(raw_array, args), strict=True)
        arrays = {**self.layer.arrays, **dict(arguments)}
        dtypes = {name: array.dtype.name for name, array in arrays.items()}
        with replaced_backward_fn(self.layer, self.backward_fn, backward) as changed:
            return gradient_summary(changed.at(arrays, dtypes), self.settings)
