"""The call of a scenario's layer, as a function of Tensors: the layer's code, its call and its
inputs.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcheck.backends.base import Array, Backend, Tensor
from gradcheck.case.foreign_frameworks import refuse_layer
from gradcheck.case.function import Call, NamespaceCall, TensorFunction
from gradcheck.case.input_arrays import make_input
from gradcheck.case.layer_signature import first_line, instance_of, signature_of
from gradcheck.case.naming import is_file
from gradcheck.case.of_arrays import adapt_primitive, function_of_arrays
from gradcheck.case.reachable import names_in
from gradcheck.case.user_code import (
    Namespace,
    NoLayerError,
    compile_expression,
    find_in_module,
    module_of_reference,
    require_known,
    run_source,
)
from gradcheck.checking.precision import NumpyArray
from gradcheck.spec.containers import in_variables, variables
from gradcheck.spec.model import OPERATIONS, Input, LayerOp, LayerRef
from gradcheck.spec.python import called_with_arguments, written_arguments
from gradcheck.support.entry_points import installed_operations

if TYPE_CHECKING:
    from gradcheck.case.case import Case
    from gradcheck.spec.model import Scenario


class WrongCotangent(Exception):  # noqa: N818 - a mistake in the scenario
    """The cotangent of a scenario does not fit the output of its layer."""

    key = "expect.cotangent"
    """The key of the scenario that has the mistake."""


def fitting_cotangent(cotangent: Any, shape: Sequence[int]) -> NumpyArray:
    """The scenario's cotangent for an output of a shape. Raises WrongCotangent."""
    array = np.array(cotangent)
    if array.shape != tuple(shape):
        raise WrongCotangent(
            f"the cotangent has shape {list(array.shape)}, the output {list(shape)}"
        )
    return array


def require_functions(layer: LayerRef, function: Any, gradient: Any) -> None:
    """Require that a function of arrays and its backward are functions. Raises NoLayerError."""
    for reference, value in ((layer.ref, function), (f"backward {layer.backward}", gradient)):
        if inspect.isclass(value):
            raise NoLayerError(
                f"{reference} is a class, but a separate backward belongs to a function of NumPy "
                "arrays; check the class without one"
            )


def keep_layer(value: Any) -> Any:
    """Return an imported layer unchanged, for the backend that it was written for."""
    return value


def place_of_generated_call(scenario: Scenario) -> str:
    """``file:line`` of the call that gradcheck writes for a scenario without ``call``; otherwise
    empty. It is the layer's line.
    """
    has_call = scenario.layer is None or scenario.call
    return "" if has_call else f"{scenario.path}:{scenario.line_of('layer')}"


class ScenarioLayer(TensorFunction):
    """A scenario's layer, its inputs and its call, on one backend.

    Args:
        counterpart: converts an imported layer to this backend.
    """

    default_call = ""
    """The call for a layer whose source defines no class."""

    def __init__(
        self,
        case: Case,
        backend: Backend,
        namespace: Namespace,
        counterpart: Callable[[Any], Any] = keep_layer,
    ) -> None:
        self.backend, self.namespace, self.counterpart = backend, namespace, counterpart
        self.scenario = scenario = case.scenario
        self.generated_call = place_of_generated_call(scenario)
        self.inputs = {name: scenario.input_at(name, case.parameters) for name in scenario.inputs}
        self.folder = Path(scenario.path).parent
        self.defined_line = 0
        """The line of an imported layer in its module; 0 if it is not known."""
        self.latest_leaves: dict[str, tuple[Array, Tensor]] = {}
        """The inputs of the latest call, with their values: an alias shares the memory of another
        input.
        """
        self.documented_outputs: Sequence[Any] = ()
        """Outputs of the documented call."""
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
        """The layer's call on the inputs, and the parts of it that are the user's code."""
        call = self.load(self.namespace)
        return call, [call]

    def load(self, namespace: Namespace) -> NamespaceCall:
        """The call, in a namespace in which the layer's source has run or the layer was
        imported.
        """
        scenario, layer = self.scenario, self.scenario.layer
        arguments = written_arguments(variables(self.inputs), scenario.kwargs)
        if isinstance(layer, str):
            default = self.default_call.format(inputs=arguments)
            before, base = set(namespace), self.backend.layer_type
            run_source(layer, scenario.path, scenario.line_of("layer"), namespace)
            for name, value in namespace.items():
                if name not in before and inspect.isclass(value) and issubclass(value, base):
                    default = f"{name}.apply({arguments})"  # the last class wins
        elif isinstance(layer, LayerRef):
            default = self.load_reference(layer, namespace)
        else:
            assert layer is not None
            default = self.load_operation(layer, namespace, arguments)
        code = self.compile_call(scenario.call or default)
        for name in code.co_names:
            if callable(value := namespace.get(name)):
                namespace[name] = target = adapt_primitive(self.backend, value)
                refuse_layer(target, self.backend.packages)
        return NamespaceCall(namespace, code)

    def load_operation(self, layer: LayerOp, namespace: Namespace, arguments: str) -> str:
        """Return the call of an operation of Paddle, or of one that an installed package adds."""
        if layer.op in OPERATIONS:
            return f"paddle.{layer.op}({arguments})"
        place = installed_operations()[layer.op]  # the model accepts no other kind
        namespace[layer.name] = find_in_module(self.import_module(place), place)
        return f"{layer.name}({arguments})"

    import_module = staticmethod(module_of_reference)
    """Return the module that a layer refers to."""

    def load_reference(self, layer: LayerRef, namespace: Namespace) -> str:
        """Import a layer, with the names of its module that the call uses; return its usual call.

        Raises NoLayerError: the layer does not exist, or cannot be called with the inputs.
        """
        scenario = self.scenario
        module = self.import_module(layer.ref, self.folder)
        target, wanted = find_in_module(module, layer.ref), dict[str, Any]()
        if scenario.call:
            known = {*namespace, *variables(self.inputs), layer.name}
            wanted = self.names_from_module(scenario.call, module, known)
            self.require_apply(scenario.call, layer.name, target)
        else:
            target = instance_of(target, self.backend)
        self.defined_line = first_line(target)
        for name, value in {layer.name: target, **wanted}.items():
            namespace[name] = self.counterpart(value)
        if layer.backward is not None:  # a function of NumPy arrays is the same on every backend
            gradient = self.import_module(layer.backward, self.folder)
            pull = find_in_module(gradient, layer.backward)
            require_functions(layer, target, pull)
            namespace[layer.name] = function_of_arrays(self.backend, target, pull)
        if scenario.call:
            return scenario.call
        refuse_layer(adapt_primitive(self.backend, target), self.backend.packages)
        signature = signature_of(target, layer.name, self.backend)
        if not is_file(scenario.path):  # named on the command line, with inputs by name
            signature.require_call(self.inputs, scenario.kwargs)
        return signature.call_of(self.inputs, scenario.kwargs)

    def require_apply(self, call: str, name: str, target: Any) -> None:
        """Raise NoLayerError if a scenario's ``call`` calls a layer directly, not by its
        ``apply``.
        """
        is_applied = self.backend.layer_of(target) is target
        called = called_with_arguments(ast.parse(call.strip(), mode="eval"))
        if is_applied and name in called and self.scenario.expect.raises is None:
            raise NoLayerError(f"call: {name} is applied, not called: write {name}.apply(…)")

    def names_from_module(self, call: str, module: ModuleType, known: set[str]) -> dict[str, Any]:
        """Return the objects that a call reads from a module, by name; `known` are names from
        elsewhere.

        Raises NoLayerError: there is no such name.
        """
        values = {}
        for name in sorted(names_in(self.compile_call(call)).variables - known):
            if hasattr(module, name):
                values[name] = getattr(module, name)
            elif not hasattr(builtins, name):
                require_known(name, call, [*known, *vars(module)], module.__name__)
        return values

    def compile_call(self, call: str) -> CodeType:
        """Compile the call, at its line in the spec."""
        line = self.scenario.line_of("call" if self.scenario.call else "layer")
        return compile_expression(call, self.scenario.path, line)

    def tensor(self, name: str, array: Array, dtype: str | None, stop_gradient: bool) -> Tensor:
        """One input as a leaf Tensor, in memory of the requested layout."""
        leaf = self.input_in_layout(name, array, dtype, stop_gradient)
        if leaf is None:
            leaf = super().tensor(name, array, dtype, stop_gradient)
        self.latest_leaves[name] = array, leaf
        return leaf

    def input_in_layout(
        self, name: str, array: Array, dtype: str | None, stop_gradient: bool
    ) -> Tensor | None:
        """An input as a leaf in the memory of its layout or alias; None for contiguous memory of
        its own.
        """
        if name not in self.inputs:  # other values that the call reads
            return None
        memory = self.memory(self.inputs[name], array, dtype)
        if memory is None:
            return None
        return self.backend.alias(memory, stop_gradient)

    def memory(self, spec: Input, array: Array, dtype: str | None) -> Tensor | None:
        """The Tensor whose memory an input uses; None for contiguous memory of its own.

        An alias shares the other's memory only while both have the same values, because the check
        perturbs one input at a time.
        """
        if spec.alias_of:
            values, other = self.latest_leaves[spec.alias_of]
            return other if values.dtype == array.dtype and (values == array).all() else None
        if spec.layout == "contiguous" or not array.ndim:
            return None
        if spec.layout == "transposed":
            base = self.backend.tensor(array.T.copy(), dtype, stop_gradient=True)
            return self.backend.reverse_axes(base)
        if spec.layout == "strided":
            base = self.backend.tensor(array.repeat(2, axis=-1), dtype, stop_gradient=True)
            return base[..., ::2]
        if not len(array) or not (array == array[:1]).all():
            return None
        row, shape = self.backend.tensor(array[:1], dtype, stop_gradient=True), list(array.shape)
        strides = [0, *(prod(shape[k + 1 :]) for k in range(1, len(shape)))]
        return self.backend.strided_view(row, shape, strides)

    def run_documented(self, cotangent: Any) -> dict[str, Tensor | None]:
        """Call the layer like user code and take gradients, if there are any.

        They start from ones or from `cotangent`. `out` in the namespace becomes the result of the
        call. Returns the gradients by input.

        Raises:
            WrongCotangent: the cotangent and the output differ in shape.
        """
        inputs = self.tensors()
        self.namespace.update(in_variables(inputs))
        returned = self.namespace["out"] = self.backend.call(self.call, inputs)
        self.documented_outputs = self.outputs(returned)
        ends = [t for t in self.documented_outputs if self.backend.needs_gradient(t)]
        if ends:
            starts: list[Tensor | None] = [None] * len(ends)
            if cotangent is not None:
                array = self.backend.array(ends[0])
                start = fitting_cotangent(cotangent, array.shape)
                starts[0] = self.backend.tensor(start, array.dtype.name, stop_gradient=True)
            self.backend.backward(ends, starts)
        return {name: tensor.grad for name, tensor in inputs.items()}
