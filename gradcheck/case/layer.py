"""A layer scenario as a function of Tensors: its code, its call and its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcheck.backends.base import Array, Backend, Tensor
from gradcheck.case.foreign_frameworks import refuse_layer
from gradcheck.case.function import Call, NamespaceCall, TensorFunction
from gradcheck.case.input_arrays import make_input
from gradcheck.case.of_arrays import adapted, function_of_arrays
from gradcheck.case.user_code import Namespace, compile_expression, import_reference, run_source
from gradcheck.checking.precision import NumpyArray
from gradcheck.spec.containers import in_variables, variables
from gradcheck.spec.model import OPERATIONS, Input, LayerOp, LayerRef
from gradcheck.support.entry_points import installed_operations

if TYPE_CHECKING:
    from gradcheck.case.case import Case


class WrongCotangent(Exception):  # noqa: N818 - a mistake in the scenario
    """The cotangent of a scenario does not fit the output of its layer."""


def fitting_cotangent(cotangent: Any, shape: Sequence[int]) -> NumpyArray:
    """The cotangent of an output of a shape. Raises WrongCotangent."""
    given = np.array(cotangent)
    if given.shape != tuple(shape):
        raise WrongCotangent(
            f"the cotangent has shape {list(given.shape)}, the output {list(shape)}"
        )
    return given


def is_of(value: Any, cls: Any) -> bool:
    """Whether a value is an object or a subclass of a class."""
    return issubclass(value, cls) if inspect.isclass(value) else isinstance(value, cls)


class ScenarioLayer(TensorFunction):
    """A scenario's layer, its inputs and its call, on one backend.

    Args:
        counterpart: makes one for this backend of a layer that is imported; None for the layer
            itself.
    """

    default_call = ""
    """The call of a layer whose source defines no class."""

    def __init__(
        self,
        case: Case,
        backend: Backend,
        namespace: Namespace,
        counterpart: Callable[[Any], Any] | None = None,
    ) -> None:
        self.backend, self.namespace, self.counterpart = backend, namespace, counterpart
        self.scenario = scenario = case.scenario
        self.inputs = {name: scenario.input_at(name, case.parameters) for name in scenario.inputs}
        self.folder = Path(scenario.path).parent
        self.latest_leaves: dict[str, tuple[Array, Tensor]] = {}
        """The inputs of the latest call, with their values: an alias has the memory of another."""
        self.documented_outputs: Sequence[Any] = ()
        """What the documented call gave."""
        random = np.random.default_rng(case.seed)
        arrays, dtypes = dict[str, Array](), dict[str, str]()
        for name, spec in self.inputs.items():
            dtypes[name] = self.inputs[spec.alias_of or name].dtype
            arrays[name] = (
                arrays[spec.alias_of]
                if spec.alias_of
                else make_input(spec, dtypes[name], random, self.folder)
            )
        stopped = [name for name, spec in self.inputs.items() if not spec.differentiable]
        call, sources = self.load_call(case)
        super().__init__(backend, call, arrays, dtypes, stopped, next(iter(sources), None))
        self.sources = sources
        self.expects_backward = not isinstance(scenario.layer, LayerOp)

    def load_call(self, case: Case) -> tuple[Call, list[NamespaceCall]]:
        """The call of the inputs, and the calls of the user's code that it consists of."""
        call = self.load(self.namespace)
        return call, [call]

    def load(self, namespace: Namespace) -> NamespaceCall:
        """The call, in a namespace in which the layer's source was run, or that has its import."""
        scenario, layer = self.scenario, self.scenario.layer
        arguments = ", ".join(variables(self.inputs))
        if isinstance(layer, str):
            default = self.default_call.format(inputs=arguments)
            before, base = set(namespace), self.backend.layer_type
            run_source(layer, scenario.path, scenario.line_of("layer"), namespace)
            for name, value in namespace.items():
                if name not in before and inspect.isclass(value) and issubclass(value, base):
                    default = f"{name}.apply({arguments})"  # of the last class
        elif isinstance(layer, LayerRef):
            namespace[layer.name] = target = self.import_layer(layer)
            is_module = is_of(target, self.backend.module_type)
            if is_module and inspect.isclass(target):
                namespace[layer.name] = target()
            is_applied = hasattr(target, "apply") and not is_module
            default = f"{layer.name}{'.apply' if is_applied else ''}({arguments})"
        elif isinstance(layer, LayerOp) and layer.op in OPERATIONS:
            default = f"paddle.{layer.op}({arguments})"
        elif isinstance(layer, LayerOp) and (place := installed_operations().get(layer.op)):
            name = layer.op.rpartition(".")[2]
            namespace[name] = self.imported(place)
            default = f"{name}({arguments})"
        else:  # no spec file gets here
            raise ValueError(f"not a layer, nor an operation that may be named: {layer!r}")
        line = scenario.line_of("call" if scenario.call else "layer")
        code = compile_expression(scenario.call or default, scenario.path, line)
        for name in code.co_names:
            if callable(value := namespace.get(name)):
                namespace[name] = target = adapted(self.backend, value)
                refuse_layer(target, self.backend.packages)
        return NamespaceCall(namespace, code)

    def import_layer(self, layer: LayerRef) -> Any:
        """What a layer refers to, for this backend."""
        target = self.imported(layer.ref, self.folder)
        if layer.backward is None:
            return self.counterpart(target) if self.counterpart else target
        # a function of NumPy arrays is the same on every backend
        return function_of_arrays(self.backend, target, self.imported(layer.backward, self.folder))

    imported = staticmethod(import_reference)
    """Gives what a layer refers to."""

    def tensor(self, name: str, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """One input as a leaf Tensor, in the memory that its layout asks for."""
        leaf = self.laid_out(name, array, dtype, stop_gradient)
        if leaf is None:
            leaf = super().tensor(name, array, dtype, stop_gradient)
        self.latest_leaves[name] = array, leaf
        return leaf

    def laid_out(
        self, name: str, array: Array, dtype: str | None, stop_gradient: bool
    ) -> Tensor | None:
        """An input as a leaf in other memory than its own in the usual order; None for that."""
        if name not in self.inputs:  # what the call reads beside its inputs
            return None
        memory = self.memory(self.inputs[name], array, dtype)
        if memory is None:
            return None
        return self.backend.alias(memory, stop_gradient)

    def memory(self, spec: Input, array: Array, dtype: str | None) -> Tensor | None:
        """The Tensor whose memory an input has; None for its own in the usual order.

        An alias has the other's memory as long as both have the same values: the check moves one
        input at a time.
        """
        if spec.alias_of:
            values, other = self.latest_leaves[spec.alias_of]
            return other if values.dtype == array.dtype and bool((values == array).all()) else None
        if spec.layout == "contiguous" or not array.ndim:
            return None
        if spec.layout == "transposed":
            whole = self.backend.tensor(array.T.copy(), dtype, stop_gradient=True)
            return self.backend.reverse_axes(whole)
        if spec.layout == "strided":
            whole = self.backend.tensor(array.repeat(2, axis=-1), dtype, stop_gradient=True)
            return whole[..., ::2]
        if not len(array) or not bool((array == array[:1]).all()):
            return None
        row, shape = self.backend.tensor(array[:1], dtype, stop_gradient=True), list(array.shape)
        strides = [0, *(prod(shape[k + 1 :]) for k in range(1, len(shape)))]
        return self.backend.strided(row, shape, strides)

    def documented(self, cotangent: Any) -> dict[str, Tensor | None]:
        """Call the layer as its users do and take gradients, if there are any.

        They start from ones or from `cotangent`. `out` in the namespace becomes what the call
        returned. Returns the gradients by input.

        Raises:
            WrongCotangent: it has another shape than the output.
        """
        inputs = self.tensors()
        self.namespace.update(in_variables(inputs))
        returned = self.namespace["out"] = self.backend.call(self.call, inputs)
        self.documented_outputs = self.outputs(returned)
        ends = [t for t in self.documented_outputs if self.backend.needs_gradient(t)]
        starts: list[Tensor | None] = [None] * len(ends)
        if ends and cotangent is not None:
            array = self.backend.array(ends[0])
            given = fitting_cotangent(cotangent, array.shape)
            starts[0] = self.backend.tensor(given, array.dtype.name, stop_gradient=True)
        if ends:
            self.backend.backward(ends, starts)
        return {name: tensor.grad for name, tensor in inputs.items()}
