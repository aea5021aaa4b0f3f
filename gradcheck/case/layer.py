"""A layer scenario as a function of Tensors: its code, its call and its inputs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcheck.backends.base import Array, Backend, Tensor
from gradcheck.case.function import TensorFunction
from gradcheck.case.input_arrays import make_input
from gradcheck.case.namespace import Namespace, compile_expression, run_source
from gradcheck.case.reference import import_reference
from gradcheck.spec.containers import in_variables, variables
from gradcheck.spec.model import OPERATIONS, Input, LayerOp, LayerRef

if TYPE_CHECKING:
    from gradcheck.case.case import Case


class WrongCotangent(Exception):  # noqa: N818 - a mistake in the scenario
    """The cotangent of a scenario does not fit the output of its layer."""


def fitting_cotangent(cotangent: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The cotangent of an output of a shape. Raises WrongCotangent."""
    given = np.array(cotangent)
    if given.shape != tuple(shape):
        raise WrongCotangent(f"the cotangent has shape {list(given.shape)}, the output {list(shape)}")
    return given


class ScenarioLayer(TensorFunction):
    """A scenario's layer, its inputs and its call, on one backend."""

    default_call = ""
    """The call of a layer whose source defines no class."""

    def __init__(
        self,
        case: Case,
        backend: Backend,
        namespace: Namespace,
        counterpart: Callable[[Any], Any] = lambda layer: layer,
    ) -> None:
        self.counterpart = counterpart
        """Makes one for this backend of a layer that is imported."""
        self.scenario = scenario = case.scenario
        self.namespace = namespace
        self.inputs = {name: scenario.input_at(name, case.parameters) for name in scenario.inputs}
        aliases = {name: one.alias_of for name, one in self.inputs.items() if one.alias_of}
        dtypes: dict[str, str] = {name: self.inputs[aliases.get(name, name)].dtype for name in self.inputs}
        random, folder, arrays = np.random.default_rng(case.seed), Path(scenario.path).parent, dict[str, Array]()
        for name, spec in self.inputs.items():
            other = aliases.get(name)
            arrays[name] = make_input(spec, dtypes[name], random, folder) if other is None else arrays[other]
        stopped = [name for name, spec in self.inputs.items() if not spec.differentiable]
        super().__init__(backend, self.__call__, arrays, dtypes, stopped)
        laid_out = {name: spec for name, spec in self.inputs.items() if spec.layout != "contiguous"}
        self.memory = {name: functools.partial(self.in_memory, spec) for name, spec in laid_out.items()}
        self.nested = variables(self.inputs) != list(self.inputs)
        """Whether some are in lists or dicts."""
        self.begin(case)

    def begin(self, case: Case) -> None:
        """Run what is needed before the first call."""
        self.code = self.load(self.namespace)

    def load(self, namespace: Namespace) -> CodeType:
        """Run the layer's source or import it, in a namespace, and compile the call."""
        scenario, layer, arguments = self.scenario, self.scenario.layer, ", ".join(variables(self.inputs))
        if isinstance(layer, str):
            before = set(namespace)
            run_source(layer, scenario.path, scenario.line_of("layer"), namespace)
            base = self.backend.paddle.autograd.PyLayer
            new = [n for n, v in namespace.items() if n not in before and inspect.isclass(v) and issubclass(v, base)]
            default = f"{new[-1]}.apply({arguments})" if new else self.default_call.format(inputs=arguments)
        elif isinstance(layer, LayerRef):
            target = import_reference(layer.ref, Path(scenario.path).parent)
            name = layer.ref.rpartition(":")[2].rpartition(".")[2]
            namespace[name] = target = self.counterpart(target)
            default = f"{name}{'.apply' if hasattr(target, 'apply') else ''}({arguments})"
        elif isinstance(layer, LayerOp) and layer.op in OPERATIONS:
            default = f"paddle.{layer.op}({arguments})"
        else:  # no spec file gets here
            raise ValueError(f"not a layer, nor an operation that may be named: {layer!r}")
        call = scenario.call or default
        return compile_expression(call, scenario.path, scenario.line_of("call" if scenario.call else "layer"))

    def __call__(self, tensors: dict[str, Tensor]) -> Any:
        """What the scenario's call returns with the inputs bound to `tensors`."""
        self.namespace.update(in_variables(tensors) if self.nested else tensors)
        return eval(self.code, self.namespace)

    def in_memory(self, spec: Input, array: Array, dtype: str | None) -> Tensor | None:
        """The Tensor whose memory an input has, with the scenario's layout; None for memory of its own in the usual
        order. An alias has the other's memory as long as both have the same values: the check moves one at a time.
        """
        make, shape = self.backend.tensor, list(array.shape)
        if spec.alias_of:
            values, other = self.leaves[spec.alias_of]
            return other if values.dtype == array.dtype and bool((values == array).all()) else None
        if not shape:
            return None
        if spec.layout == "transposed":
            return make(array.T.copy(), dtype, True).transpose([*range(array.ndim)][::-1])
        if spec.layout == "strided":
            return make(array.repeat(2, axis=-1), dtype, True)[..., ::2]
        if not shape[0] or not bool((array == array[:1]).all()):
            return None
        row = make(array[:1], dtype, True)
        return self.backend.paddle.as_strided(row, shape, [0, *(prod(shape[k + 1 :]) for k in range(1, len(shape)))])

    def documented_outputs(self) -> Sequence[Any]:
        """What the documented call gave."""
        return self.outputs(self.namespace["out"])

    def results(self, gradients: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """The outputs of the documented call, and the gradients that it gave, each with what reports call it."""
        outputs = self.documented_outputs()
        for k, output in enumerate(outputs):
            yield "out" if len(outputs) == 1 else f"out[{k}]", output
        for name, gradient in gradients.items():
            yield f"gradient of {name}", gradient

    def documented(self, cotangent: Any) -> dict[str, Tensor | None]:
        """Call the layer once as its users do and take gradients, if there are any, from ones or from `cotangent`.

        `out` in the namespace becomes what the call returned. Returns the gradients by input.

        Raises:
            WrongCotangent: it has another shape than the output.
        """
        inputs = self.tensors()
        returned = self.namespace["out"] = self(inputs)
        ends = [t for t in self.outputs(returned) if not t.stop_gradient]
        if ends:
            starts: list[Tensor | None] = [None] * len(ends)
            if cotangent is not None:
                array = self.backend.array(ends[0])
                starts[0] = self.backend.tensor(fitting_cotangent(cotangent, array.shape), array.dtype.name, True)
            self.backend.paddle.autograd.backward(ends, starts)
        return {name: tensor.grad for name, tensor in inputs.items()}
