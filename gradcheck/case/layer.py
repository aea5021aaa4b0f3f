"""A layer scenario as a function of Tensors: its code, its call and its inputs; of a static layer, its programs."""

from __future__ import annotations

import functools
import inspect
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Backend, Tensor, flat_tensors, is_differentiable
from gradcheck.case.foreign_frameworks import refuse_layer
from gradcheck.case.function import NamespaceCall, TensorFunction, output_names, placed
from gradcheck.case.reachable import leaves_of
from gradcheck.case.user_code import Namespace, compile_expression, import_reference, run_source
from gradcheck.checking.precision import NumpyArray
from gradcheck.checking.problem import Problem
from gradcheck.spec.containers import in_variables, variables
from gradcheck.spec.model import OPERATIONS, Input, LayerOp, LayerRef
from gradcheck.support.entry_points import installed_operations
from pylayer.static.pylayer_op import running_eagerly

if TYPE_CHECKING:
    from gradcheck.case.case import Case
    from gradcheck.spec.model import Input


class WrongCotangent(Exception):  # noqa: N818 - a mistake in the scenario
    """The cotangent of a scenario does not fit the output of its layer."""


def fitting_cotangent(cotangent: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The cotangent of an output of a shape. Raises WrongCotangent."""
    given = np.array(cotangent)
    if given.shape != tuple(shape):
        raise WrongCotangent(f"the cotangent has shape {list(given.shape)}, the output {list(shape)}")
    return given


class ScenarioLayer(TensorFunction):
    """A scenario's layer, its inputs and its call, on one backend.

    Args:
        counterpart: makes one for this backend of a layer that is imported; None for the layer itself.
    """

    default_call = ""
    """The call of a layer whose source defines no class."""
    documented_outputs: Sequence[Any] = ()
    """What the documented call gave."""

    def __init__(
        self,
        case: Case,
        backend: Backend,
        namespace: Namespace,
        counterpart: Callable[[Any], Any] | None = None,
    ) -> None:
        self.counterpart, self.namespace = counterpart, namespace
        self.scenario = scenario = case.scenario
        self.inputs = {name: scenario.input_at(name, case.parameters) for name in scenario.inputs}
        aliases = {name: one.alias_of for name, one in self.inputs.items() if one.alias_of}
        dtypes: dict[str, str] = {name: self.inputs[aliases.get(name, name)].dtype for name in self.inputs}
        random, folder, arrays = np.random.default_rng(case.seed), Path(scenario.path).parent, dict[str, Array]()
        for name, spec in self.inputs.items():
            other = aliases.get(name)
            arrays[name] = make_input(spec, dtypes[name], random, folder) if other is None else arrays[other]
        stopped = [name for name, spec in self.inputs.items() if not spec.differentiable]
        self.variables = variables(self.inputs)
        super().__init__(backend, None, arrays, dtypes, stopped)
        laid_out = {name: spec for name, spec in self.inputs.items() if spec.layout != "contiguous"}
        self.memory = {name: functools.partial(self.in_memory, spec) for name, spec in laid_out.items()}
        self.begin(case)

    def begin(self, case: Case) -> None:
        """Run what is needed before the first call."""
        call = self.call = self.subject = self.load(self.namespace)
        self.sources = [call]
        self.leaves_named = functools.partial(self.leaves_beside_inputs, call)
        self.expects_backward = not isinstance(self.scenario.layer, LayerOp)

    def leaves_beside_inputs(self, call: NamespaceCall) -> dict[str, Tensor]:
        """The leaves that the call's code refers to."""
        found = leaves_of(self.backend, FunctionType(call.code, call.namespace))
        return {name: leaf for name, leaf in found.items() if name not in self.inputs}

    def load(self, namespace: Namespace) -> NamespaceCall:
        """The call, in a namespace in which the layer's source was run, or that it was imported into."""
        scenario, layer, arguments = self.scenario, self.scenario.layer, ", ".join(self.variables)
        if isinstance(layer, str):
            before = set(namespace)
            run_source(layer, scenario.path, scenario.line_of("layer"), namespace)
            base = self.backend.paddle.autograd.PyLayer
            new = [n for n, v in namespace.items() if n not in before and inspect.isclass(v) and issubclass(v, base)]
            default = f"{new[-1]}.apply({arguments})" if new else self.default_call.format(inputs=arguments)
        elif isinstance(layer, LayerRef):
            target = self.imported(layer.ref, Path(scenario.path).parent)
            name = layer.ref.rpartition(":")[2].rpartition(".")[2]
            namespace[name] = target = self.counterpart(target) if self.counterpart else target
            default = f"{name}{'.apply' if hasattr(target, 'apply') else ''}({arguments})"
        elif isinstance(layer, LayerOp) and layer.op in OPERATIONS:
            default = f"paddle.{layer.op}({arguments})"
        elif isinstance(layer, LayerOp) and layer.op in installed_operations():
            name = layer.op.rpartition(".")[2]
            namespace[name] = self.imported(installed_operations()[layer.op])
            default = f"{name}({arguments})"
        else:  # no spec file gets here
            raise ValueError(f"not a layer, nor an operation that may be named: {layer!r}")
        line = scenario.line_of("call" if scenario.call else "layer")
        code = compile_expression(scenario.call or default, scenario.path, line)
        for name in code.co_names:
            if callable(value := namespace.get(name)):
                refuse_layer(value)
        return NamespaceCall(namespace, code, self.variables != list(self.inputs))

    imported = staticmethod(import_reference)
    """Gives what a layer refers to."""

    def in_memory(self, spec: Input, array: Array, dtype: str | None) -> Tensor | None:
        """The Tensor whose memory an input has, with the scenario's layout; None for memory of its own in the usual
        order. An alias has the other's memory as long as both have the same values: the check moves one at a time.
        """
        make, shape = functools.partial(self.backend.tensor, stop_gradient=True), list(array.shape)
        if spec.alias_of:
            values, other = self.leaves[spec.alias_of]
            return other if values.dtype == array.dtype and bool((values == array).all()) else None
        if not shape:
            return None
        if spec.layout == "transposed":
            return make(array.T.copy(), dtype).transpose([*range(array.ndim)][::-1])
        if spec.layout == "strided":
            return make(array.repeat(2, axis=-1), dtype)[..., ::2]
        if not shape[0] or not bool((array == array[:1]).all()):
            return None
        row = make(array[:1], dtype)
        return self.backend.paddle.as_strided(row, shape, [0, *(prod(shape[k + 1 :]) for k in range(1, len(shape)))])

    def documented(self, cotangent: Any) -> dict[str, Tensor | None]:
        """Call the layer once as its users do and take gradients, if there are any, from ones or from `cotangent`.

        `out` in the namespace becomes what the call returned. Returns the gradients by input.

        Raises:
            WrongCotangent: it has another shape than the output.
        """
        inputs = self.tensors()
        self.namespace.update(in_variables(inputs) if self.variables != list(self.inputs) else inputs)
        returned = self.namespace["out"] = self.call(inputs)
        self.documented_outputs = self.outputs(returned)
        ends = [t for t in self.documented_outputs if not t.stop_gradient]
        if ends:
            starts: list[Tensor | None] = [None] * len(ends)
            if cotangent is not None:
                array = self.backend.array(ends[0])
                given = fitting_cotangent(cotangent, array.shape)
                starts[0] = self.backend.tensor(given, array.dtype.name, stop_gradient=True)
            self.backend.paddle.autograd.backward(ends, starts)
        return {name: tensor.grad for name, tensor in inputs.items()}


HERE = Path()
MOST_INPUT_BYTES = 2**30
"""Of a file: as much as an input may take."""


class NoInputError(ValueError):
    """A file does not have the values of an input; the message says why."""


def make_input(spec: Input, dtype: str, random: np.random.Generator, folder: Path = HERE) -> NumpyArray:
    """The values of an input of `dtype`, in float64, int64, bool or complex128: the backend casts them.

    `near` shifts the drawn values, scaled to 1e-3, to the given points in turn. Complex inputs draw both parts. The
    rows of an expanded input are its first. Files lie below the `folder` of the spec.

    Raises:
        NoInputError: a file does not have the values.
    """
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype).kind
    given = spec.from_ is not None or spec.values is not None
    if spec.from_ is not None:
        values = loaded(folder, spec.from_, spec.key)
        if values.dtype.kind == "c" and kind != "c":
            raise NoInputError(f"{spec.from_} holds complex numbers: give the input 'dtype: complex128'")
    elif spec.values is not None:
        values = np.array(spec.values)
    else:
        values = draw(spec, random)
        values = values + 1j * draw(spec, random) if kind == "c" else values
    if spec.layout == "expanded" and values.ndim and len(values):
        if given and not (values == values[:1]).all():
            raise NoInputError("an input with 'layout: expanded' must have equal rows along its first axis")
        values = np.repeat(values[:1], len(values), 0)
    return values.astype({"f": np.float64, "c": np.complex128, "b": np.bool_}.get(kind, np.int64))


def draw(spec: Input, random: np.random.Generator) -> NumpyArray:
    """Values of the input's shape as its `init` says."""
    shape = tuple(int(size) for size in spec.shape or ())
    count = prod(shape)
    match spec.drawn:
        case "zeros" | "ones":
            values = np.full(shape, float(spec.drawn == "ones"))
        case "uniform":
            values = random.uniform(*spec.limits, shape)
        case "linspace":
            values = np.linspace(*spec.limits, count).reshape(shape)
        case "integers":
            low, high = spec.limits
            values = random.integers(int(low), int(high), shape).astype(np.float64)
        case "sorted" if shape:
            values = np.sort(random.standard_normal(shape), -1)
        case "distinct":
            values = (random.permutation(count) - count // 2 + random.uniform(0.1, 0.4, count)).reshape(shape) / 8
        case "ties":
            values = random.choice([-1.5, -0.5, 0.5, 1.5], shape)
        case "positive-definite":
            factor = random.standard_normal(shape)
            values = factor @ factor.swapaxes(-1, -2) / max(shape[-1], 1) + np.eye(shape[-1])
        case "orthogonal":
            values = np.linalg.qr(random.standard_normal((*shape[:-2], max(shape[-2:]), max(shape[-2:]))))[0]
            values = values[..., : shape[-2], : shape[-1]]
        case "one-hot" if count:
            values = np.eye(shape[-1])[random.integers(0, shape[-1], shape[:-1])]
        case "probabilities":
            values = np.exp(random.standard_normal(shape))
            values /= values.sum(-1, keepdims=True)
        case _:
            values = random.standard_normal(shape)
    if spec.near:
        centres = np.resize(np.asarray(spec.near, dtype=np.float64), values.size).reshape(shape)
        values = centres + 1e-3 * values
    return values


def loaded(folder: Path, name: str, key: str | None) -> NumpyArray:
    """The array in a file below the folder of a spec.

    Raises:
        NoInputError: there is no such file there, it is too large, or it holds no such array of numbers.
    """
    file = folder / name
    if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder)):
        raise NoInputError(f"{name} leads out of the spec's folder: copy the file there")
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for somebody who writes to it
            raise NoInputError(f"{name} is {kind_of_file(status.st_mode)}: 'from' reads a file of np.save or np.savez")
        if status.st_size > MOST_INPUT_BYTES:
            raise NoInputError(f"{name} has {status.st_size / 2**30:.1f} GiB, at most 1 GiB is allowed")
        found = np.load(file, allow_pickle=False)
        if key is not None:
            if key not in found:
                raise NoInputError(f"{name} has no {key!r}: it has {', '.join(found.files) or 'nothing'}")
            found = found[key]
    except OSError as error:
        raise NoInputError(f"{file}: {error.strerror or error}") from None
    except (ValueError, EOFError, zipfile.BadZipFile, TypeError) as error:
        if isinstance(error, NoInputError):
            raise
        raise NoInputError(f"{name} is no file that np.save or np.savez has written: {error}") from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fciub":
        raise NoInputError(f"{name} holds no array of numbers")
    return found


def kind_of_file(mode: int) -> str:
    """What a file is that is not a regular one."""
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


InputTypes = tuple[tuple[tuple[int, ...], str], ...]
"""Shapes and dtypes of the inputs."""
Active = tuple[bool, ...] | None
"""Which of the outputs that claim a gradient take part; None for all."""


class Program(NamedTuple):
    """A program built for one signature: the names of what is fed, and what is fetched."""

    program: Any
    feeds: list[str]
    fetches: list[Any]


class StaticLayer(ScenarioLayer):
    """The layer in static mode. Its gradients are those that ``paddle.static.gradients`` gives, run by an Executor."""

    closes_over = False
    default_call = "paddle.static.nn.static_pylayer(forward_fn, [{inputs}], backward_fn)"

    def begin(self, case: Case) -> None:
        super().begin(case)
        self.namespace.setdefault("backward_fn", None)
        self.programs: dict[Any, Program] = {}
        self.executor = self.backend.paddle.static.Executor()
        """One for all runs: it keeps what it compiled."""

    def run(
        self,
        order: int,
        active: Active,
        arrays: Sequence[Array],
        cotangents: Sequence[Array] = (),
        seconds: Sequence[Array] = (),
    ) -> list[Array]:
        """A derivative: 0 for the outputs, 1 for the gradients, 2 for the gradients of those; None where there is none.

        Args:
            cotangents: of the active outputs.
            seconds: of the first gradients.
        """
        paddle, backend = self.backend.paddle, self.backend
        key = tuple((tuple(a.shape), a.dtype.name) for a in arrays), order, active
        if key not in self.programs:
            main = paddle.static.Program()
            building = paddle.static.program_guard(main, paddle.static.Program())
            with mode(paddle, static=True), building, backend.observing(self.calls):
                self.programs[key] = Program(main, *self.built(*key))
        program, feeds, fetches = self.programs[key]
        values = dict(zip(self.inputs, arrays, strict=True))
        values |= {f"cotangent_{k}": one for k, one in enumerate(cotangents)}
        values |= {f"second_{k}": one for k, one in enumerate(seconds)}
        with mode(paddle, static=True):
            feed = {name: values[name] for name in feeds}
            found = self.executor.run(program, feed=feed, fetch_list=[f for f in fetches if f is not None])
        fetched = placed(found, [f is not None for f in fetches])
        return [
            None if v is None else backend.array(backend.tensor(v, v.dtype.name, stop_gradient=True)) for v in fetched
        ]

    def built(self, signature: InputTypes, order: int, active: Active) -> tuple[list[str], list[Any]]:
        """Names to feed and Variables to fetch of the program that is being built."""
        data = self.backend.paddle.static.data
        inputs = {}
        for (name, spec), (shape, dtype) in zip(self.inputs.items(), signature, strict=True):
            inputs[name] = data(name, list(shape), dtype)
            inputs[name].stop_gradient = spec.stop_gradient or not dtype.startswith(("float", "bfloat", "complex"))
        outputs = self.outputs(self.call(inputs))
        if not self.claimed:
            self.claimed = [not output.stop_gradient for output in outputs]
        if order == 0:
            return list(inputs), outputs

        def fed(name: str, like: Any, stop_gradient: bool) -> Any:
            variable = data(name, list(like.shape), like.dtype)
            variable.stop_gradient = stop_gradient
            return variable

        checked = [output for output, claimed in zip(outputs, self.claimed, strict=True) if claimed]
        ends = [out for k, out in enumerate(checked) if active is None or active[k]]
        starts = [fed(f"cotangent_{k}", out, order == 1) for k, out in enumerate(ends)]
        wanted = [v for v in inputs.values() if not v.stop_gradient]
        first = static_gradients(self.backend, ends, wanted, starts)
        feeds = [*inputs, *(s.name for s in starts)]
        if order == 1:
            return feeds, first
        present = [(k, g) for k, g in enumerate(first) if g is not None and not g.stop_gradient]
        seconds = [fed(f"second_{k}", g, True) for k, g in present]
        found = static_gradients(self.backend, [g for _, g in present], [*wanted, *starts], seconds)
        return [*feeds, *(s.name for s in seconds)], found

    def outputs(self, returned: Any) -> list[Any]:
        """The Variables among what the call returned."""
        return flat_tensors(returned, lambda value: hasattr(value, "stop_gradient"))

    def begun(self) -> list[Array]:
        """The inputs, once it is known which take a gradient."""
        arrays = [self.backend.array(t) for t in self.tensors().values()]
        pairs = zip(self.inputs.values(), arrays, strict=True)
        self.needed = [not spec.stop_gradient and is_differentiable(x) for spec, x in pairs]
        return arrays

    def documented(self, cotangent: Any) -> dict[str, Any]:
        """Run forward and gradients once; `out` in the namespace becomes the outputs' values."""
        arrays = self.begun()
        outs = self.documented_outputs = self.run(0, None, arrays)
        self.namespace["out"] = outs[0] if len(outs) == 1 else outs
        starts = [np.ones_like(out) for out, claimed in zip(outs, self.claimed, strict=True) if claimed]
        if not starts or not any(self.needed):
            return dict.fromkeys(self.inputs)
        if cotangent is not None:
            starts[0] = fitting_cotangent(cotangent, starts[0].shape).astype(starts[0].dtype)
        found = self.run(1, None, arrays, starts)
        return dict(zip(self.inputs, placed(found, self.needed), strict=True))

    # ----------------------------------------------------------------- as the gradient check sees it
    def problem(self) -> Problem:
        """The layer on arrays, with the vjp that ``backward_fn`` claims."""
        arrays = self.begun()
        outputs = self.forward(arrays)
        return Problem(
            names=list(self.inputs),
            inputs=arrays,
            differentiable=self.needed,
            output_names=output_names(len(outputs)),
            forward=self.forward,
            vjp=self.vjp,
            outputs=outputs,
            reruns=None if self.twin is None else self.reruns(self.twin.problem().reruns, self.forward, self.vjp),
        )

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        outs = self.run(0, None, arrays)
        return [out for out, claimed in zip(outs, self.claimed, strict=True) if claimed]

    def vjp(self, arrays: Sequence[Array], cotangents: Sequence[Array | None]) -> list[Array | None]:
        active = tuple(c is not None for c in cotangents)
        if not any(active):
            return [None] * len(arrays)
        return placed(self.run(1, active, arrays, [c for c in cotangents if c is not None]), self.needed)

    def double_vjp(
        self, arrays: Sequence[Array], cotangents: Sequence[Array | None], second: Sequence[Array | None]
    ) -> list[Array | None]:
        given = [c for c in cotangents if c is not None]
        wanted = [x for x, need in zip(arrays, self.needed, strict=True) if need]
        seconds = [x * 0 if c is None else c for x, c in zip(wanted, second, strict=True)]
        found = self.run(2, tuple(c is not None for c in cotangents), arrays, given, seconds)
        return placed(found, [*self.needed, *(True for _ in given)])


class EagerStaticLayer(ScenarioLayer):
    """The functions of a static layer, called as those of a PyLayer, whose operations can be recorded."""

    closes_over = False
    default_call = StaticLayer.default_call

    def called(self, tensors: dict[str, Tensor]) -> Any:
        with mode(self.backend.paddle, static=False), running_eagerly():
            return super().called(tensors)


def static_gradients(backend: Backend, outputs: list[Any], inputs: list[Any], cotangents: list[Any]) -> list[Any]:
    """As ``paddle.static.gradients`` gives them.

    Before 3.0 Paddle finds no cotangents that are given for the outputs of a static_pylayer: there they come from the
    sum of the products of both.
    """
    gradients: Callable[..., list[Any]] = backend.paddle.static.gradients
    if backend.name == "paddle" and int(backend.paddle.__version__.partition(".")[0]) < 3:
        return gradients([(out * cotangent).sum() for out, cotangent in zip(outputs, cotangents, strict=True)], inputs)
    return gradients(outputs, inputs, cotangents)


@contextmanager
def mode(paddle: ModuleType, static: bool) -> Iterator[None]:
    """Static or dynamic mode within the ``with`` block."""
    switch: tuple[Callable[[], None], Callable[[], None]] = paddle.disable_static, paddle.enable_static
    before = switch[not paddle.in_dynamic_mode()]
    switch[static]()
    try:
        yield
    finally:
        before()
