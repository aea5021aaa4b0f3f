"""Run one case in this process: its code, its expectations, its gradient check."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcheck.backends.base import Backend, kind_of, load_backend
from gradcheck.case.broken_contracts import drop_library_place
from gradcheck.case.engine_twin import Translation, builtins_of, matching_twin
from gradcheck.case.foreign_frameworks import ForeignFrameworkError
from gradcheck.case.function import output_names
from gradcheck.case.gradient_check import (
    SEVERITY,
    Expectation,
    Finding,
    Settings,
    as_expected,
    fix_search,
    judge,
    refusal_of,
)
from gradcheck.case.input_arrays import NoInputError
from gradcheck.case.instead import OutcomeReader
from gradcheck.case.layer import (
    ScenarioLayer,
    WrongCotangent,
    keep_layer,
    place_of_generated_call,
)
from gradcheck.case.layer_calls import LayerCalls
from gradcheck.case.layer_signature import CANNOT_CHECK
from gradcheck.case.naming import is_file
from gradcheck.case.never_ran import refuse_foreign_layers
from gradcheck.case.of_arrays import without_backward
from gradcheck.case.saved_tensors import hint_of_saved_tensors
from gradcheck.case.static_layer import EagerStaticLayer, StaticLayer
from gradcheck.case.user_code import (
    Namespace,
    NoLayerError,
    compile_expression,
    frames_of,
    hint_of_dtype,
    hint_of_framework,
    innermost_place,
    new_namespace,
    phase_of,
    raised_by_scenario,
    run_source,
    with_place,
)
from gradcheck.case.values import has_drawn, message_matches, mismatch, value_of, values_of_program
from gradcheck.case.world_call import WorldLayer
from gradcheck.result import GREEN, Fix, GradientSummary, Result, Status, Value
from gradcheck.spec.model import Message, Raises, Warns, is_static
from gradcheck.support.foreign import describe_error, text_of
from pylayer.layer.py_layer import as_releases

if TYPE_CHECKING:
    from gradcheck.case.case import Case
    from gradcheck.spec.model import Expect, Scenario


TIME_TO_NAME = 0.75
"""Share of a case's time limit after which the search for causes ends; the rest is for the
report.
"""


def execute(case: Case) -> Result:
    """Run `case` in this process and return its result; `run.server` gives each case a process.

    An exception of the scenario's code becomes an ERROR with its place in the spec; only bugs of
    gradcheck propagate.
    """
    scenario = case.scenario
    started = perf_counter()
    findings: list[Finding] = []
    gradient: GradientSummary | None = None
    raised_at = ""
    with np.errstate(all="ignore"):
        try:
            backend = load_backend(case.backend)
        except RuntimeError as error:  # it is installed, but has no device
            return case.result(Status.SKIP, str(error))
        settings = backend.settings()
        run = Run(case, backend, started)
        try:
            findings, gradient = run.findings()
        except ForeignFrameworkError as error:
            return case.result(Status.ERROR, error.message, details=(error.recipe,))
        except NoLayerError as error:
            message = with_place(str(error), error, scenario.path, scenario.line_of("layer"))
            return case.result(Status.ERROR, f"{CANNOT_CHECK}{message}")
        except (NoInputError, WrongCotangent) as error:
            message = with_place(str(error), error, scenario.path, scenario.line_of(error.key))
            findings = [Finding(Status.ERROR, message)]
        except (Exception, SystemExit) as error:
            if not raised_by_scenario(scenario.path, error):
                raise
            drop_library_place(error, place_of_generated_call(scenario))
            message = text_of(error)
            if hint := (
                hint_of_framework(error)
                or hint_of_saved_tensors(error)
                or without_backward(message)
                or hint_of_dtype(message, scenario.inputs)
            ):
                error.add_note(hint)
            raised_at = innermost_place(frames_of(error), scenario.path)
            name = backend.lacks(error)
            message = f"{name} is not part of the bundled engine" if name else describe_error(error)
            message = with_place(message, error, scenario.path, scenario.line)
            if name:
                return case.result(Status.UNSUPPORTED, message, missing_name=name)
            findings = [Finding(Status.ERROR, message)]
            if run.fix is not None:
                gradient = GradientSummary(verdict=Status.ERROR, fix=run.fix)
        finally:
            backend.restore_settings(settings)  # a program may have changed them
    findings.sort(key=lambda finding: SEVERITY.index(finding.status))
    status = findings[0].status if findings else Status.PASS
    status, messages = with_known_failure(case, status, [f.message for f in findings])
    result = case.result(
        status,
        messages[0] if messages else "",
        details=tuple(messages[1:]),
        gradient=gradient,
        values=run.values,
        instead=run.instead(gradient) if case.recorded and not status.green else {},
        raised_at=raised_at,
        seconds=perf_counter() - started,
    )
    line = 0 if is_file(scenario.path) else run.defined_line
    return result.model_copy(update={"line": line}) if line else result


def with_known_failure(case: Case, status: Status, messages: list[str]) -> tuple[Status, list[str]]:
    """XFAIL and XPASS for a case whose scenario expects it to fail on this backend.

    ERROR stays ERROR.
    """
    known = case.entry.xfail
    if known and status is Status.FAIL:
        return Status.XFAIL, [known.reason, *messages]
    if known and known.strict and status in GREEN:
        text = f"passes, but is expected to fail: {known.reason}. Remove the xfail."
        return Status.XPASS, [text, *messages]
    return status, messages


def class_names(cls: type) -> set[str]:
    """The names of a class and of its bases."""
    return {base.__name__ for base in cls.__mro__}


class Run:
    """One case while it runs; `started` is its start time by ``time.perf_counter``."""

    def __init__(self, case: Case, backend: Backend, started: float) -> None:
        self.case, self.backend, self.started = case, backend, started
        self.scenario: Scenario = case.scenario
        self.expect: Expect = case.expect
        self.in_world = case.scenario.world_at(case.parameters) is not None
        self.values: tuple[Value, ...] = ()
        """Outputs and gradients of the documented run, if they are kept."""
        self.calls = LayerCalls(backend)
        """The layers of the documented run."""
        self.raised: Exception | None = None
        """The exception of the documented run."""
        self.gradients: dict[str, Any] = {}
        """The gradients of the documented run, by input."""
        self.namespace: Namespace = {**new_namespace(backend), **case.variables}
        self.defined_line = 0
        """The line of the layer in its module, once it is imported; 0 if it is not known."""
        self.fix: Fix | None = None
        """The edit of a backward that raises in the documented run, or is rejected there."""
        self.initial_names = dict(self.namespace)
        """Names that are defined for the code."""
        backend.seed(case.seed)

    def findings(self) -> tuple[list[Finding], GradientSummary | None]:
        """Everything that is not as expected, and the summary of the gradient check if there was
        one.
        """
        gradient = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if self.scenario.script is not None:
                findings = self.run_script(self.scenario.script)
            else:
                layer = self.make_layer(self.backend, self.namespace)
                self.defined_line = layer.defined_line
                # If gradients are checked, backward's results are interpreted as Paddle's releases
                # do, otherwise as the documents say.
                of_gradients = self.expect.gradient != "unchecked" or self.expect.grads
                with as_releases() if of_gradients else nullcontext():
                    findings, gradient = self.run_and_check(layer)
        return [*findings, *self.check_warnings(caught)], gradient

    def make_layer(
        self,
        backend: Backend,
        namespace: Namespace,
        counterpart: Callable[[Any], Any] = keep_layer,
        eager: bool = False,
    ) -> ScenarioLayer:
        """The scenario's layer on a backend.

        An imported layer is replaced by the result of `counterpart`; if `eager`, the functions of a
        static layer are called on Tensors.
        """
        arguments = self.case, backend, namespace, counterpart
        if is_static(self.scenario.layer) and not eager:
            return StaticLayer(*arguments, make_eager=self.make_twin)
        if is_static(self.scenario.layer):
            return EagerStaticLayer(*arguments)
        return (WorldLayer if self.in_world else ScenarioLayer)(*arguments)

    # ----------------------------------------------------------------- the documented run
    def run_script(self, script: str) -> list[Finding]:
        """Run the program, then compare the values that it computed."""
        scenario, paddle = self.scenario, self.backend.paddle
        with self.expected_exception() as findings, self.backend.observing(self.calls):
            if isinstance(scenario.layer, str):
                run_source(scenario.layer, scenario.path, scenario.line_of("layer"), self.namespace)
            run_source(script, scenario.path, scenario.line_of("script"), self.namespace)
        findings = findings or [*self.check_values(), *self.check_calls()]
        if self.case.compared and not findings and self.expect.raises is None:
            values = [*values_of_program(self.namespace, self.initial_names, self.backend)]
            paddle.disable_static()
            if not has_drawn(paddle, self.case.seed):  # random numbers differ between backends
                self.keep_values(values)
        return findings

    def run_and_check(self, layer: ScenarioLayer) -> tuple[list[Finding], GradientSummary | None]:
        """The documented run and, where the scenario asks for it, the gradient check.

        If the backend rejects gradients in the documented run, the gradient check reports a broken
        contract. Of a backward that raises there, only a fix is searched for.
        """
        is_checked = self.expect.gradient != "unchecked"
        findings: list[Finding] = []
        try:
            findings = self.run_layer(layer)
            if not is_checked or any(f.status is Status.ERROR for f in findings):
                return findings, None
        except Exception as error:
            if not is_checked:
                refuse_foreign_layers(layer)
                raise
            if phase_of(error) == "backward" and not self.backend.lacks(error):
                self.fix = self.find_fix(layer)
            gradient = refusal_of(layer, error, self.calls)
            gradient = gradient.model_copy(update={"fix": self.fix})
        else:
            gradient = self.check(layer)
        return [*findings, *judge(gradient, self.expect)], gradient

    def run_layer(self, layer: ScenarioLayer) -> list[Finding]:
        """Call the layer once as its users do, take gradients, and check the results."""
        with self.expected_exception() as findings:
            cotangent = self.expect.cotangent
            self.gradients = self.calls.run(layer.run_documented, cotangent)
            if self.case.compared:
                outputs = layer.documented_outputs
                named = [*zip(output_names(len(outputs)), outputs, strict=True)]
                for name, gradient in self.gradients.items():
                    named.append((f"gradient of {name}", gradient))
                self.keep_values(named)
        if findings or self.expect.raises:
            return findings
        for name, expected in self.expect.grads.items():
            text = mismatch(self.on_host(self.gradients[name]), expected, self.scenario.rtol)
            if text:
                line = self.scenario.line_of(f"expect.grads.{name}")
                findings.append(self.unexpected(f"gradient of {name}: {text}", line))
        return [*findings, *self.check_values(), *self.check_calls()]

    def keep_values(self, named: Iterable[tuple[str, Any]]) -> None:
        """Keep values for the comparison with those of other backends."""
        self.values = tuple(value_of(name, self.on_host(value)) for name, value in named)

    @contextmanager
    def expected_exception(self) -> Iterator[list[Finding]]:
        """Compare the exception of the block with `raises`; findings are added to the yielded
        list.
        """
        findings: list[Finding] = []
        expected, text = self.expect.raises, ""
        try:
            yield findings
        except Exception as error:
            self.raised = error
            if expected is None or self.backend.lacks(error):
                raise
            phase = phase_of(error)
            where = with_place(describe_error(error), error, self.scenario.path)
            if expected.type not in class_names(type(error)):
                text = f"expected {expected.type}, but the code raised {where}"
            elif expected.phase not in ("any", phase):
                text = f"expected {expected.type} in {expected.phase}, but {phase} raised {where}"
            elif lacking := self.missing_words(expected, text_of(error)):
                wanted = getattr(lacking, "re", lacking)
                text = f"expected a message with {wanted!r}, but got {where}"
        else:
            if expected is not None:
                text = f"expected {expected.type} in {expected.phase}, but nothing was raised"
        if text:
            findings.append(self.unexpected(text, self.scenario.line_of("expect.raises")))

    def missing_words(self, expected: Raises | Warns, message: str) -> Message | None:
        """The expected words that a message lacks, for all implementations or for this one."""
        of_backend = self.expect.wording.words_of(kind_of(self.case.backend))
        for words in (expected.message, of_backend):
            if words is not None and not message_matches(words, message):
                return words
        return None

    # ----------------------------------------------------------- values after the run
    def check_values(self) -> list[Finding]:
        """The expressions under `values`, evaluated in the namespace of the code that ran."""
        findings, scenario = [], self.scenario
        for expression, expected in self.expect.values.items():
            value = getattr(expected, "value", expected)
            rtol = getattr(expected, "rtol", scenario.rtol)
            line = scenario.line_of(f"expect.values.{expression}")
            got = eval(compile_expression(expression, scenario.path, line), self.namespace)
            try:
                text = mismatch(self.on_host(got), value, rtol)
            except Exception as error:  # raised by the value's own code, which reading it runs
                text = f"{expression} cannot be compared: {describe_error(error)}"
                findings.append(Finding(Status.ERROR, text))
                continue
            if text:
                findings.append(self.unexpected(f"{expression}: {text}", line))
        return findings

    def unexpected(self, text: str, line: int) -> Finding:
        """A FAIL with the line of the expectation that does not hold."""
        has_place = text.endswith("of the spec)")
        if is_file(self.scenario.path) and line > self.scenario.line and not has_place:
            text += f" (line {line} of the spec)"
        return Finding(Status.FAIL, text)

    def check_calls(self) -> list[Finding]:
        """The differences between expected and actual calls of forward and backward."""
        return [
            self.unexpected(
                f"{name} ran {count} times, expected {expected}",
                self.scenario.line_of(f"expect.calls.{name}"),
            )
            for name, (count, expected) in self.counted_calls().items()
            if count != expected
        ]

    def counted_calls(self) -> dict[str, tuple[int, int]]:
        """How often functions ran and how often they should have, for those that the scenario
        counts.
        """
        counters = {"forward": self.calls.forwards, "backward": self.calls.backwards}
        return {
            name: (self.calls.count(counters[name]), expected)
            for name, expected in self.expect.calls.counted.items()
        }

    def check_warnings(self, caught: list[warnings.WarningMessage]) -> list[Finding]:
        """Compare the warnings that the code issued with `warns`."""
        wanted = self.expect.warns
        if wanted is None:
            return []
        for warning in caught:
            is_type = wanted.type in class_names(warning.category)
            if is_type and not self.missing_words(wanted, text_of(warning.message)):
                return []
        warned = "; ".join(f"{w.category.__name__}: {text_of(w.message)}" for w in caught) or "none"
        return [Finding(Status.FAIL, f"expected a {wanted.type}, but the warnings were: {warned}")]

    def instead(self, gradient: GradientSummary | None) -> dict[str, Any]:
        """The behaviour of the backend that differs from the expected, in the form of `observed` in
        release files.
        """
        reader = OutcomeReader(self.namespace, self.on_host)
        if self.raised is not None:
            return reader.exception(self.raised)
        observed: dict[str, Any] = {}
        if values := reader.values(self.expect.values):
            observed["values"] = values
        if self.expect.grads:
            observed["grads"] = {
                name: reader.plain(self.gradients[name]) for name in self.expect.grads
            }
        if gradient is not None:
            observed["gradient"] = "differs" if gradient.verdict is Status.FAIL else "matches"
        if calls := self.counted_calls():
            observed["calls"] = {name: count for name, (count, _) in calls.items()}
        return observed or {"values": reader.remaining_gradients()}

    def on_host(self, value: Any) -> Any:
        """A Tensor's values as a NumPy array; anything else unchanged."""
        return self.backend.array(value) if isinstance(value, self.backend.tensor_type) else value

    # ----------------------------------------------------------------- the gradient
    def check(self, layer: ScenarioLayer) -> GradientSummary:
        """The gradient check; also of second order if the scenario has `order: 2` and the first
        order is right.
        """
        wanted = self.expect.gradient
        declared: Expectation = wanted if wanted in ("straight-through", "zero") else "matches"
        if declared != "matches":  # a claim about the inputs only
            layer.close_over({})
        with self.checking(layer):
            return as_expected(layer, self.check_settings(), declared)

    def find_fix(self, layer: ScenarioLayer) -> Fix | None:
        """The edit that repairs a backward that raises, or is rejected; None if none is found."""
        if self.expect.gradient != "matches":
            return None
        with suppress(Exception), self.checking(layer):  # the first exception is reported
            return fix_search(layer, self.check_settings())()
        return None

    @contextmanager
    def checking(self, layer: ScenarioLayer) -> Iterator[None]:
        """A block in which the layer's gradient is checked."""
        if self.backend.translates or isinstance(layer, StaticLayer):
            layer.twin = matching_twin(layer, self.make_twin)
        try:
            with self.backend.session():
                yield
        finally:
            layer.restore()

    def check_settings(self) -> Settings:
        """The settings of the gradient check."""
        case, wanted = self.case, self.expect.gradient
        is_asked = wanted == "matches" and not self.in_world
        return Settings(
            seed=case.seed,
            rtol=self.scenario.rtol,
            mode=case.mode,
            order=max(self.expect.order, case.order if is_asked else 1),
            # a backward that is meant to differ needs no fix
            effort="least" if wanted == "differs" else case.effort,
            precision=self.expect.precision,
            nondet=self.scenario.nondet,
            seconds=TIME_TO_NAME * case.timeout - (perf_counter() - self.started),
        )

    def make_twin(self, engine: Backend) -> ScenarioLayer:
        """The scenario's layer on the engine, in place of Paddle."""
        namespace = {**new_namespace(engine), **self.case.variables}
        counterpart: Callable[[Any], Any] = keep_layer
        if engine is not self.backend:
            namespace["__builtins__"] = builtins_of(engine)
            counterpart = Translation(self.backend, engine).translate
        return self.make_layer(engine, namespace, counterpart, eager=True)
