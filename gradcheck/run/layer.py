"""A layer scenario as something to call: on Tensors as its users do, on arrays as the gradient check does."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcheck.backends.base import Array, Backend, Tensor, flat_tensors
from gradcheck.check.problem import Problem
from gradcheck.run.inputs import laid_out, make_input
from gradcheck.run.program import Namespace, compile_expression, import_reference, run_source
from gradcheck.spec.model import LayerRef

if TYPE_CHECKING:
    from gradcheck.run.plan import Case
    from gradcheck.spec.model import Scenario


class Layer:
    """A scenario's layer, its inputs and its call, on one backend."""

    def __init__(self, case: Case, backend: Backend, namespace: Namespace) -> None:
        scenario = case.scenario
        self.backend = backend
        self.namespace = namespace
        self.inputs = scenario.inputs
        self.dtypes = {name: scenario.dtype_of(name, case.parameters) for name in self.inputs}
        random = np.random.default_rng(case.seed)
        self.arrays = {name: make_input(spec, self.dtypes[name], random) for name, spec in self.inputs.items()}
        self.code = self.load(scenario)
        self.claimed: list[bool] = []
        """Per output, whether the layer claims a gradient for it; known once `problem` was called."""

    def load(self, scenario: Scenario) -> CodeType:
        """Run the layer's source or import it, and compile the call."""
        layer, arguments = scenario.layer, ", ".join(self.inputs)
        if isinstance(layer, str):
            before = set(self.namespace)
            run_source(layer, scenario.path, scenario.line_of("layer"), self.namespace)
            base = self.backend.paddle.autograd.PyLayer
            new = [
                n for n, v in self.namespace.items() if n not in before and inspect.isclass(v) and issubclass(v, base)
            ]
            default = f"{new[-1]}.apply({arguments})" if new else ""
        elif isinstance(layer, LayerRef):
            target = import_reference(layer.ref, Path(scenario.path).parent)
            name = layer.ref.rpartition(":")[2].rpartition(".")[2]
            self.namespace[name] = target
            default = f"{name}{'.apply' if hasattr(target, 'apply') else ''}({arguments})"
        else:
            assert layer is not None
            default = f"paddle.{layer.op}({arguments})"
        call = scenario.call or default
        return compile_expression(call, scenario.path, scenario.line_of("call" if scenario.call else "layer"))

    def __call__(self, tensors: dict[str, Tensor]) -> Any:
        """What the call returns with the inputs bound to `tensors`."""
        self.namespace.update(tensors)
        return eval(self.code, self.namespace)

    def tensors(self) -> dict[str, Tensor]:
        """The inputs as fresh leaf Tensors with the dtype, layout and stop_gradient of the scenario."""
        return {
            name: self.tensor(name, self.arrays[name], self.dtypes[name], spec.stop_gradient)
            for name, spec in self.inputs.items()
        }

    def tensor(self, name: str, array: Array, dtype: str, stop_gradient: bool) -> Tensor:
        """One input as a leaf Tensor that owns its memory."""
        spec = self.inputs[name]
        return self.backend.tensor(laid_out(array, spec.layout), dtype, stop_gradient)

    def outputs(self, returned: Any) -> list[Tensor]:
        """The Tensors among what the call returned."""
        tensor_type = self.backend.paddle.Tensor
        return flat_tensors(returned, lambda value: isinstance(value, tensor_type))

    # ----------------------------------------------------------------- as the gradient check sees it
    def problem(self) -> Problem:
        """The layer on arrays, with the vjp that its backward claims."""
        start = self.tensors()
        differentiable = [not t.stop_gradient and is_differentiable(self.backend.array(t)) for t in start.values()]
        outputs = self.outputs(self(self.tensors()))
        # Outputs that the layer marks as non-differentiable make no claim. One that is cut off from its inputs is a
        # leaf, and claims a gradient of zero.
        self.claimed = [output.is_leaf or not output.stop_gradient for output in outputs]
        names = ["out"] if len(outputs) == 1 else [f"out[{k}]" for k in range(len(outputs))]
        return Problem(
            names=list(self.inputs),
            inputs=[self.backend.array(t) for t in start.values()],
            differentiable=differentiable,
            output_names=[name for name, claimed in zip(names, self.claimed, strict=True) if claimed],
            forward=self.forward,
            vjp=lambda inputs, cotangents: self.vjp(inputs, cotangents, differentiable),
        )

    def checked_outputs(self, tensors: dict[str, Tensor]) -> list[Tensor]:
        """The outputs that claim a gradient, with the inputs bound to `tensors`."""
        outputs = self.outputs(self(tensors))
        if len(outputs) != len(self.claimed):
            raise ValueError(f"the layer returned {len(self.claimed)} Tensors the first time, but {len(outputs)} now")
        return [output for output, claimed in zip(outputs, self.claimed, strict=True) if claimed]

    def bound(self, arrays: Sequence[Array], needed: Sequence[bool]) -> dict[str, Tensor]:
        """The inputs as leaf Tensors of the arrays' own dtypes."""
        return {
            name: self.tensor(name, array, array.dtype.name, not need)
            for name, array, need in zip(self.inputs, arrays, needed, strict=True)
        }

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, nothing recorded."""
        with self.backend.paddle.no_grad():
            outputs = self.checked_outputs(self.bound(arrays, [False] * len(arrays)))
            return [self.backend.array(t) for t in outputs]

    def vjp(
        self, arrays: Sequence[Array], cotangents: Sequence[Array | None], needed: Sequence[bool]
    ) -> list[Array | None]:
        """The gradients of the inputs; None where none is needed or defined."""
        inputs = self.bound(arrays, needed)
        ends = [
            (out, self.backend.tensor(cotangent, cotangent.dtype.name, True))
            for out, cotangent in zip(self.checked_outputs(inputs), cotangents, strict=True)
            if cotangent is not None and not out.stop_gradient
        ]
        wanted = [t for t, need in zip(inputs.values(), needed, strict=True) if need]
        if not ends or not wanted:
            return [None] * len(arrays)
        outputs, starts = zip(*ends, strict=True)
        found = iter(self.backend.paddle.grad(list(outputs), wanted, list(starts), allow_unused=True))
        gradients = [next(found) if need else None for need in needed]
        return [None if g is None else self.backend.array(g) for g in gradients]

    def second_order(self) -> Problem:
        """The first vjp as a function of the inputs and the cotangents, with its vjp by double backward."""
        first = self.problem()
        outs = self.forward(first.inputs)
        active = [k for k, out in enumerate(outs) if is_differentiable(out)]
        count, needed = len(first.inputs), list(first.differentiable)
        random = np.random.default_rng(1)
        cotangents = [laid_out(outs[k] * 0, "contiguous") + random.standard_normal(outs[k].shape) for k in active]

        def split(arrays: Sequence[Array]) -> tuple[Sequence[Array], list[Array | None]]:
            given = iter(arrays[count:])
            return arrays[:count], [next(given) if k in active else None for k in range(len(outs))]

        def forward(arrays: Sequence[Array]) -> list[Array]:
            inputs, given = split(arrays)
            found = self.vjp(inputs, given, needed)
            return [x * 0 if g is None else g for x, g, need in zip(inputs, found, needed, strict=True) if need]

        def vjp(arrays: Sequence[Array], second: Sequence[Array | None]) -> list[Array | None]:
            return self.double_vjp(split(arrays), second, needed)

        return Problem(
            names=[*first.names, *(f"cotangent of {first.output_names[k]}" for k in active)],
            inputs=[*first.inputs, *cotangents],
            differentiable=[*needed, *(True for _ in active)],
            output_names=[f"d/d{name}" for name, need in zip(first.names, needed, strict=True) if need],
            forward=forward,
            vjp=vjp,
        )

    def double_vjp(
        self,
        point: tuple[Sequence[Array], Sequence[Array | None]],
        second: Sequence[Array | None],
        needed: Sequence[bool],
    ) -> list[Array | None]:
        """The gradients, with respect to inputs and cotangents, of the first gradients times `second`."""
        grad, tensor = self.backend.paddle.grad, self.backend.tensor
        inputs = self.bound(point[0], needed)
        starts = [None if c is None else tensor(c, c.dtype.name, False) for c in point[1]]
        ends = [
            (out, start)
            for out, start in zip(self.checked_outputs(inputs), starts, strict=True)
            if start is not None and not out.stop_gradient
        ]
        wanted = [t for t, need in zip(inputs.values(), needed, strict=True) if need]
        targets = [*wanted, *(s for s in starts if s is not None)]
        nothing: list[Array | None] = [None] * (len(inputs) + len(targets) - len(wanted))
        if not ends:
            return nothing
        firsts = grad([o for o, _ in ends], wanted, [s for _, s in ends], create_graph=True, allow_unused=True)
        pairs = [
            (first, tensor(c, c.dtype.name, True))
            for first, c in zip(firsts, second, strict=True)
            if first is not None and c is not None and not first.stop_gradient
        ]
        if not pairs:
            return nothing
        found = iter(grad([f for f, _ in pairs], targets, [c for _, c in pairs], allow_unused=True))
        gradients = [next(found) if need else None for need in [*needed, *(True for s in starts if s is not None)]]
        return [None if g is None else self.backend.array(g) for g in gradients]


def is_differentiable(array: Array) -> bool:
    """Whether an array holds real floating-point or complex numbers; NumPy's kind V is bfloat16."""
    return array.dtype.kind in "fcV"
