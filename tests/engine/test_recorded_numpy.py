"""NumPy code is recorded: what NumPy does to the values of a Tensor is on the tape, or it is told as a leak."""

from __future__ import annotations

import builtins
import functools
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import zeros as zeros_by_name
from snippets import first, scipy_code, second, third
from snippets.run import function_of, inputs, on_tensors, prelude, snippets, tape_of, told

import pylayer.paddle as paddle
from gradcheck.backends.recording import PerturbingWatch, Recording, record_call
from gradcheck.checking.kinks import kinks
from gradcheck.checking.tape import Tape
from pylayer.watch import numpy_array, numpy_dispatch, observe
from pylayer.watch.numpy_recording import Code, recording_numpy

HELD = np.linspace(0.0, 1.0, 4)


def leaf(values: Any) -> Any:
    return paddle.to_tensor(np.asarray(values, dtype=float), stop_gradient=False)


def tape(function: Callable[..., Any], *arrays: Any) -> Recording:
    """A function of arrays, recorded."""
    tensors = [leaf(v) for v in arrays]
    return record_call(lambda: [on_tensors(function)(*tensors)], tensors, lines=True, numpy=Code([function]))


def names(found: Recording) -> list[str]:
    return [step.name for step in found.steps]


def gradient(function: Callable[..., Any], x: Any, order: int = 1) -> Any:
    """The derivative of the sum of a function of one array, by the engine's backward over the recording."""
    tensor = leaf(x)
    with recording_numpy(Code([function])):
        out = on_tensors(function)(tensor).sum()
    for _ in range(order):
        (found,) = paddle.grad([out], [tensor], create_graph=True)
        out = (found * paddle.to_tensor(np.arange(1.0, 1.0 + found.size).reshape(found.shape))).sum()
    return found.numpy()


def numeric(function: Callable[..., Any], x: Any, order: int = 1) -> Any:
    """The same by differences of plain NumPy."""

    def total(at: Any) -> float:
        if order == 1:
            return float(np.sum(function(at)))
        inner = numeric(function, at, order - 1)
        return float(np.sum(inner * np.arange(1.0, 1.0 + inner.size).reshape(inner.shape)))

    found, step = np.zeros_like(x), 1e-4 if order == 1 else 1e-3
    for k in np.ndindex(x.shape):
        ends = []
        for times in (1, -1, 2, -2):
            moved = x.copy()
            moved[k] += times * step
            ends.append(total(moved))
        found[k] = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)
    return found


# --------------------------------------------------------------------------- the interface
def test_what_numpy_does_is_on_the_tape_at_the_line_of_the_users_code() -> None:
    def f(x: Any) -> Any:
        y = np.exp(x)
        return y * x

    found = tape(f, [1.0, 2.0])
    assert names(found)[:2] == ["exp", "multiply"]
    first_line = f.__code__.co_firstlineno
    lines = [
        next(at for _, end, at in reversed(list(step.spot[0].co_lines())) if end is not None and at is not None)
        for step in found.steps[:1]
    ]
    assert found.steps[0].spot[0] is f.__code__
    assert lines[0] > first_line
    assert found.leaks == []


def test_the_outputs_are_those_of_a_plain_run() -> None:
    def f(x: Any) -> Any:
        return np.sort(x) / np.std(x)

    x = np.array([3.0, 1.0, 2.5])
    np.testing.assert_allclose(tape(f, x).outputs[0], f(x), rtol=1e-15)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.tanh(x) * x,
        lambda x: (x - x.mean(0)) / np.sqrt(x.var(0) + 0.1),
        lambda x: np.linalg.solve(x @ x.T + np.eye(2), x),
        lambda x: np.einsum("ij,kj->ik", x, np.cumprod(x, 1)),
        lambda x: np.abs(np.fft.rfft(x)) ** 2,
        lambda x: np.logaddexp.reduce(x, 1),
        lambda x: np.linalg.eigvalsh(x @ x.T) + np.linalg.svd(x, compute_uv=False),
        lambda x: np.interp(x, [0.0, 1.0, 3.0], [0.0, 2.0, 1.0]) * x,
    ],
    ids=["tanh", "batch norm", "solve", "einsum", "power spectrum", "logsumexp", "eigenvalues", "interpolation"],
)
def test_derivatives_of_the_recording_are_those_of_the_function(function: Callable[..., Any], order: int) -> None:
    x = np.array([[0.3, 1.2, 0.7], [0.9, 0.4, 1.6]])
    np.testing.assert_allclose(gradient(function, x, order), numeric(function, x, order), rtol=1e-5, atol=1e-6)


def test_a_recording_of_numpy_is_that_of_the_same_operations_of_the_engine() -> None:
    x = np.array([[0.3, 1.2], [0.9, 0.4]])
    in_numpy = tape(lambda v: np.exp(v @ v).sum(axis=0), x)
    tensor = leaf(x)
    in_paddle = record_call(lambda: [paddle.exp(tensor @ tensor).sum(axis=0)], [tensor], lines=False)
    assert names(in_numpy)[:3] == names(in_paddle) == ["matmul", "exp", "sum"]


def test_a_cast_to_fewer_digits_is_the_engines_cast() -> None:
    found = tape(lambda x: (x.astype("float32") * 2).astype("float64"), [1.0, 2.0])
    assert names(found)[:1] == ["cast"]
    assert [step.values[0].dtype.name for step in found.steps[:3]] == ["float32", "float32", "float64"]


def test_the_watch_is_told_of_a_leak_with_its_line_and_what_took_the_values() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return float(y[0]) * x

    assert tape(f, [1.0, 2.0]).leaks == [f"float() in line {f.__code__.co_firstlineno + 2}"]


def test_what_raises_only_where_it_is_recorded_is_told_at_that_line() -> None:
    def f(x: Any) -> Any:
        return memoryview(x)

    error = tape(f, [1.0]).error
    assert isinstance(error, TypeError)
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code is f.__code__]
    assert lines == [f.__code__.co_firstlineno + 1]


def test_plain_integers_and_truths_are_no_leaks_and_decisions_are_told() -> None:
    def f(x: Any) -> Any:
        if x[0] > 1 and np.argmax(x) == 1:
            return x[x > 1.5] * x.shape[0]
        return x

    found = tape(f, [1.2, 2.0])
    assert found.leaks == []
    assert {"greater_than", "argmax"} <= {decision.name for decision in found.decisions}


@pytest.mark.parametrize(
    ("code", "name"),
    [("(x > 1) * x", "greater_than"), ("(1 > x) * x", "less_than"), ("x[np.argsort(x[:, 0])]", "argsort"),
     ("np.argmax(x, axis=1)[0] * x", "argmax"), ("np.searchsorted(np.sort(w), 1.0) * x", "searchsorted"),
     ("np.digitize(x, [0.5, 1]) * x", "searchsorted"), ("np.isclose(x, 1.0) * x", "isclose"),
     ("np.lexsort((w,)) * w", "argsort"), ("np.nonzero(x)[0] * 1.0", "nonzero"), ("np.any(x) * x", "any"),
     ("np.array_equal(x, x) * x", "equal_all"), ("np.where(x, x, w)", "nonzero")],
)  # fmt: skip
def test_a_decision_has_the_engines_name_and_what_a_kink_is_looked_for_in(code: str, name: str) -> None:
    found = tape_of(function_of(code, prelude()), inputs())
    assert found.leaks == []
    assert name in [decision.name for decision in found.decisions]
    assert isinstance(kinks(Tape(found)), list)  # which reads the operands by their places


def test_without_a_session_nothing_is_different() -> None:
    assert type(leaf([1.0]).numpy()) is np.ndarray


def test_numpy_code_that_is_not_recorded_can_be_moved_operation_by_operation() -> None:
    moved: list[str] = []

    def move(name: str, out: Any, number: int) -> None:
        if out.dtype.kind == "f":
            moved.append(name)
            out *= 1 + 1e-6

    def f(x: Any) -> Any:
        return np.exp(x) * 2 * (x > 0)

    leaks: list[str] = []
    with observe(PerturbingWatch(move, leaks)), paddle.no_grad(), recording_numpy(Code([f]), exact=False):
        found = on_tensors(f)(leaf([1.0]))
    assert moved[:2] == ["exp", "multiply"]
    assert leaks == []
    assert found.node is None
    np.testing.assert_allclose(found.numpy(), 2 * np.exp(1.0) * (1 + 1e-6) ** len(moved), rtol=1e-12)


# --------------------------------------------------------------------------- the names
def test_the_users_names_are_as_before_also_after_an_error() -> None:
    inner, seen = np, []

    def f(x: Any, module: Any = np, *, make: Any = np.ones) -> Any:
        seen.extend([np, inner, module, make, zeros_by_name])
        raise ArithmeticError

    before = [np, np, np, np.ones, np.zeros]
    importing = builtins.__import__
    with pytest.raises(ArithmeticError), recording_numpy(Code([f])):
        f(leaf([1.0]).numpy())
    assert all(now is not then for now, then in zip(seen, before, strict=True))
    after = [np, inner, f.__defaults__[0], f.__kwdefaults__["make"], zeros_by_name]  # type: ignore[index]
    assert all(now is then for now, then in zip(after, before, strict=True))
    assert builtins.__import__ is importing


def test_numpys_own_module_is_never_changed() -> None:
    before = dict(vars(np))

    def f(x: Any) -> Any:
        assert vars(np.__wrapped__) == before
        return np.zeros(3) + x

    with recording_numpy(Code([f])):
        f(leaf([1.0, 2.0, 3.0]).numpy())
    assert vars(np) == before


def test_names_stay_replaced_until_the_last_of_several_recordings_ends() -> None:
    def f() -> Any:
        return np.zeros

    with recording_numpy(Code([f])):
        with recording_numpy(Code([f])):
            inside = f()
        assert f() is inside
    assert f() is not inside


def test_a_stand_in_kept_beyond_the_recording_is_numpys_function() -> None:
    kept = []

    def f(x: Any) -> Any:
        kept.append(np.zeros)
        return x

    with recording_numpy(Code([f])):
        f(leaf([1.0]).numpy())
    assert type(kept[0](3)) is np.ndarray


def test_an_array_kept_beyond_the_recording_behaves_as_an_array() -> None:
    with recording_numpy(Code([])):
        kept = leaf([1.0, 2.0]).numpy() * 2
    assert type(kept + 1) is np.ndarray
    assert np.array_equal(np.asarray(kept), [2.0, 4.0])
    assert paddle.to_tensor(kept).tolist() == [2.0, 4.0]
    kept[0] = 7
    assert kept.sum() == 11.0


def test_what_an_earlier_recording_left_is_a_constant_of_a_later_one() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2)
        return kept[0] * x

    assert gradient(f, np.array([3.0])) == [12.0]
    assert gradient(f, np.array([3.0])) == [6.0]


def test_only_the_thread_that_records_may_touch_an_array() -> None:
    def f(x: Any) -> Any:
        out: list[Any] = []
        thread = threading.Thread(target=lambda: out.append(x * 2))
        thread.start()
        thread.join()
        return out[0]

    assert [text[:14] for text in tape(f, [1.0]).leaks] == ["another thread"]


def test_two_threads_record_side_by_side() -> None:
    def f(x: Any) -> Any:
        z = np.zeros(3)
        z += x
        return z * x

    found: list[Any] = []

    def run(factor: float) -> None:
        found.append(gradient(f, np.full(3, factor)))

    threads = [threading.Thread(target=run, args=(k,)) for k in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(g[0] for g in found) == [2.0, 4.0]
    assert type(np).__name__ == "module"


def test_a_plain_array_from_outside_stays_itself() -> None:
    def f(x: Any) -> Any:
        assert np.asarray(HELD) is HELD
        return HELD * x

    assert tape(f, [1.0, 2.0, 3.0, 4.0]).leaks == []


def test_code_that_a_function_reaches_in_other_places_sees_the_stand_ins() -> None:
    helper = function_of("z = np.zeros((3, 4)); z += x; return z", prelude())
    reached = functools.partial(helper, w=None, a=None)
    found = tape(lambda x: reached(x) * 2, inputs()[0])
    assert found.leaks == []


# --------------------------------------------------------------------------- what it is taken for
def test_a_recorded_array_is_an_array_and_its_elements_are_numbers() -> None:
    with recording_numpy(Code([])):
        x = leaf([[1.0, 2.0]]).numpy()
        assert isinstance(x, np.ndarray)
        assert isinstance(x[0, 0], np.float64)
        assert isinstance(x[0, 0], float)
        assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes, x.strides) == ((1, 2), 2, 2, 8, 16, (16, 8))
        with pytest.raises(AttributeError, match=r"'numpy.ndarray' object has no attribute 'nothing'"):
            _ = x.nothing
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        with pytest.raises(IndexError):
            _ = x[3]
        with pytest.raises(ValueError, match="broadcast"):
            _ = x + np.ones(3)
        with pytest.raises(ValueError, match="ambiguous"):
            bool(x)


@pytest.mark.parametrize(
    ("dtype", "other"),
    [("float32", 2.5), ("float32", np.float64(2.5)), ("float16", np.float32(2)), ("float32", np.ones(2, "float16")),
     ("float64", 2), ("float32", np.arange(1, 3)), ("float16", np.arange(1, 3)), ("float32", 1j)],
)  # fmt: skip
def test_promotion_is_numpys_own(dtype: str, other: Any) -> None:
    plain = np.array([1.0, 2.0], dtype)
    with recording_numpy(Code([])):
        x = paddle.to_tensor(plain, stop_gradient=False).numpy()
        for ufunc in (np.add, np.multiply, np.true_divide):
            assert ufunc(x, other).dtype == ufunc(plain, other).dtype
            assert ufunc(other, x).dtype == ufunc(other, plain).dtype


class Gone:
    """What a weak reference was to."""


class Stubborn:
    """Something that raises whatever it is asked."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize("make", [lambda: weakref.proxy(Gone()), Stubborn], ids=["gone", "stubborn"])
def test_what_code_holds_is_asked_nothing(make: Callable[[], Any]) -> None:
    """Objects that Numba makes of functions hold references to what is gone."""

    def doubled(x: Any, held: Any = make(), more: Any = (make(), [make()])) -> Any:  # noqa: B008 - one for each test
        return np.add(x, x)

    assert "add" in names(tape(doubled, [1.0, 2.0]))


def test_a_keyword_without_a_rule_is_a_leak_with_the_right_values() -> None:
    def f(x: Any) -> Any:
        return np.pad(x, 1, mode="mean")

    x = np.array([2.0, 2.0, 2.0])  # of which each element is the mean
    found = tape(f, x)
    assert found.leaks
    np.testing.assert_array_equal(found.outputs[0], f(x))


def test_a_rule_whose_result_is_not_numpys_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(numpy_dispatch.UFUNCS, np.cbrt, lambda dtype, x: x * 2)
    found = tape(lambda x: np.cbrt(x) * 1.0, [1.0])
    assert found.outputs[0] == np.cbrt(1.0)
    assert [text[:7] for text in found.leaks] == ["np.cbrt"]


# --------------------------------------------------------------------------- the usual calls
CONSTANT = np.linspace(0.2, 0.7, 3)
OPERANDS: dict[int, list[Callable[..., Any]]] = {
    1: [lambda u, x: u(x), lambda u, x: u(x.T), lambda u, x: u(x[1]), lambda u, x: u(x[0, 1])],
    2: [
        lambda u, x: u(x, x),
        lambda u, x: u(x, x[0]),
        lambda u, x: u(x.T, x[:, 0]),
        lambda u, x: u(x, 0.5),
        lambda u, x: u(1, x),
        lambda u, x: u(np.float64(0.5), x[0, 1]),
        lambda u, x: u(CONSTANT, x),
        lambda u, x: u(x, np.zeros(3)),
        lambda u, x: u(x, np.arange(3)),
    ],
}
UFUNCS = sorted({ufunc for ufunc, _ in numpy_dispatch.OPERATIONS} - {np.matmul}, key=repr)
USUAL = [
    *((ufunc, form) for ufunc in UFUNCS for form in OPERANDS[ufunc.nin]),
    *((np.matmul, form) for form in (lambda u, x: u(x, x.T), lambda u, x: u(x, x[0]), lambda u, x: u(CONSTANT, x.T))),
    *(
        (function, form)
        for function in numpy_dispatch.REDUCTIONS
        for form in (
            lambda u, x: u(x),
            lambda u, x: u(x, axis=0),
            lambda u, x: u(x, axis=-1, keepdims=True),
            lambda u, x: u(x.T, axis=0),
            lambda u, x: u(x, axis=(0, 1)),
            lambda u, x: u(x, 1),
        )
    ),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("function", "form"), USUAL)
def test_a_usual_call_records_what_the_general_way_does(
    function: Any, form: Callable[..., Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3)).astype(dtype)

    def recorded_bits() -> list[Any]:
        layouts = []

        def call(x: Any) -> Any:
            out = form(function, x)
            layouts.append((np.shape(out), getattr(out, "strides", None), type(out)))
            return out * 1.0

        tensor = paddle.to_tensor(x, stop_gradient=False)
        found = record_call(lambda: [on_tensors(call)(tensor)], [tensor], lines=True, numpy=Code([call]))
        gradients = Tape(found).gradient([np.ones_like(found.outputs[0])])
        arrays = [*found.arrays, *found.outputs, *gradients]
        return [names(found), found.leaks, layouts, *((a.shape, a.dtype, a.tobytes()) for a in arrays)]

    with np.errstate(all="ignore"):
        usual = recorded_bits()
        monkeypatch.setattr(numpy_dispatch, "OPERATIONS", {})
        monkeypatch.setattr(numpy_dispatch, "REDUCTIONS", {})
        assert usual == recorded_bits()


def written(x: Any, *writes: tuple[Any, Any]) -> Any:
    out = np.zeros((2, 3))
    for index, value in writes:
        out[index] = value
    return out


def added(x: Any, index: Any, value: Any) -> Any:
    out = x * 1.0
    out[index] += value
    return out


PLACES = [
    lambda x: x[1],
    lambda x: x[:, 0] * x[:, -1],
    lambda x: x[0, 1],
    lambda x: x[None, ..., 1:],
    lambda x: x[::-1, 1:] * x.T[1:, ::-1].T,
    lambda x: x.T @ x,
    lambda x: np.outer(x[0], x[:, 1]),
    lambda x: np.outer(x[0], np.arange(3.0)),
    lambda x: np.outer(x, x[0]),
    lambda x: written(x, (0, x[1]), (0, 2 * x[0])),
    lambda x: written(x, ((slice(None), 1), x[:, 0]), (..., x)),
    lambda x: written(x, (..., x[0])),
    lambda x: written(x, ((1, 2), x[0, 0])).T[2] * x[:, 0],
    lambda x: written(x, (slice(None), x), ((0, slice(0, 2)), 7.0)),
    lambda x: added(x, 0, x[1]),
    lambda x: added(x, ..., x[0]),
    lambda x: added(x, (slice(None), slice(1, None)), x[:, :-1]),
    lambda x: added(x, (0, 1), x[1, 2]),
]


@pytest.mark.parametrize("function", PLACES)
def test_items_and_writes_record_what_the_general_way_does(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3))

    def recorded_bits() -> list[Any]:
        found = tape(function, x)
        cotangent = np.linspace(0.5, 1.5, found.outputs[0].size).reshape(found.outputs[0].shape)
        return [found.leaks, *((a.shape, a.tobytes()) for a in (*found.outputs, *Tape(found).gradient([cotangent])))]

    usual = recorded_bits()
    assert usual[1] == (np.shape(function(x)), function(x).tobytes())
    monkeypatch.setattr(numpy_array, "is_usual_index", lambda parts: False)
    assert usual == recorded_bits()


# --------------------------------------------------------------------------- adversaries
HARMLESS = ("right", "leak", "unequal", "raises", "not finite")


def endings(*tables: str) -> dict[str, tuple[str, str]]:
    """How each snippet of the tables ends, and what there is to say of it."""
    return {code: told(code) for table in tables for _, code in snippets(table)}


def test_adversarial_snippets_are_right_or_leaks_or_not_believed_and_most_are_recorded_whole() -> None:
    ends = endings(first.TEXT, second.TEXT, third.TEXT)
    assert {code: end for code, end in ends.items() if end[0] not in HARMLESS} == {}
    verdicts = [verdict for verdict, _ in ends.values()]
    assert verdicts.count("right") >= 575
    assert verdicts.count("raises") <= 6


def test_adversarial_snippets_of_scipy_are_right_or_leaks_or_not_believed() -> None:
    pytest.importorskip("scipy")
    assert {code: end for code, end in endings(scipy_code.TEXT).items() if end[0] not in HARMLESS} == {}


def test_the_tape_of_a_snippet_has_no_step_outside_its_code() -> None:
    f = function_of("np.gradient(np.median(x, 1)) * w[:3]", prelude())
    found = tape_of(f, inputs())
    assert found.leaks == []
    assert {step.spot[0].co_filename for step in found.steps[:-1]} == {"<snippet>"}


USUAL_CALLS: list[Callable[[Any], Any]] = [
    lambda a: (a - a.mean(axis=-1, keepdims=True)) / np.sqrt((a**2).mean(axis=-1, keepdims=True) + 1e-5),
    lambda a: np.tanh(a @ HELD[:, None] + a[:, :1]) * 2.0 - HELD[:3, None],
    lambda a: np.exp(a).sum(axis=0) + a.ravel()[:4] * a.T[:, 0] - np.max(a) * a[0][None].std(),
    lambda a: np.add.reduce(a * (a > 0), axis=1) + np.where(a > 0.5, a, 1 / a)[:, 1],
    lambda a: np.zeros(3) + np.zeros(3) * 2.0 + np.abs(a)[1:, 0].sum() + np.cos(np.float64(0.5)),
    lambda a: np.outer(a[0], a[1]) + np.frexp(a[0])[0] + np.spacing(a[0]),
    lambda a: np.array([a[0, 0], a[1, 1]]) * np.clip(a, 0.2, 0.8)[:2, 2] + a[[0, 1], [1, 2]],
]


@pytest.mark.parametrize("inputs", [(0.5,), (0.5, 2.0)])
def test_a_function_of_the_user_runs_once_for_each_element(inputs):
    calls = []
    counted = np.frompyfunc(lambda *values: calls.append(values) or sum(values), len(inputs), 1)
    tape(lambda a: a * 2 + counted(*[a + v for v in inputs]).astype("float64"), np.arange(3.0))
    assert len(calls) == 3


@pytest.mark.parametrize("k", range(len(USUAL_CALLS)))
def test_usual_calls_are_recorded_as_all_others(monkeypatch, k):
    array = np.random.default_rng(k).uniform(0.1, 1.0, (3, 4))
    found = tape(USUAL_CALLS[k], array)
    for table in ("OPERATIONS", "REDUCTIONS"):
        monkeypatch.setattr(numpy_dispatch, table, {})
    expected = tape(USUAL_CALLS[k], array)
    assert names(found) == names(expected)
    assert found.taken_out == expected.taken_out
    assert [s.edges for s in found.steps] == [s.edges for s in expected.steps]
    for mine, theirs in zip(found.arrays, expected.arrays, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
