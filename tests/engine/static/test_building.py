from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from building import data, fetch
from hypothesis import given
from hypothesis import strategies as st

import pylayer.paddle as paddle

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
PLACE = r"created at .*building\.py:\d+"


# --------------------------------------------------------------------------- the mode
def test_the_mode_is_switched() -> None:
    assert not paddle.in_dynamic_mode()
    paddle.disable_static()
    assert paddle.in_dynamic_mode()
    with pytest.raises(AssertionError, match=r"'data\(\)' is only supported in static graph mode"):
        paddle.static.data("X", [1])


def test_a_variable_computes_nothing_in_dynamic_mode() -> None:
    x = data()
    paddle.disable_static()
    with pytest.raises(RuntimeError, match=r"Variable 'X'.*but the mode is dynamic"):
        paddle.exp(x)


def test_programs_are_kept_apart(program: Any) -> None:
    assert paddle.static.default_main_program() is program
    x = data()
    with paddle.static.program_guard(paddle.static.Program()):
        assert paddle.static.default_main_program() is not program
        with pytest.raises(ValueError, match=f"Variable 'X' .*{PLACE} belongs to another Program"):
            paddle.exp(x)
    with pytest.raises(TypeError, match=r"should be paddle\.static\.Program, but received str"):
        paddle.static.program_guard("main").__enter__()


# --------------------------------------------------------------------------- data
@pytest.mark.parametrize("shape", [[None, 5], [-1, 5], (None, 5)])
def test_none_and_minus_one_are_sizes_known_only_in_the_run(shape: Any) -> None:
    x = paddle.static.data("X", shape)
    assert x.shape == [-1, 5]
    assert (x.dtype, x.stop_gradient, x.ndim) == (paddle.float32, True, 2)
    assert repr(x) == "Variable(name='X', shape=[-1, 5], dtype=float32, stop_gradient=True)"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("X", 5), TypeError, "shape of data 'X' must be a list or tuple, but received int"),
        (("X", ["a"]), TypeError, "must hold ints and None, but received 'a'"),
        (("X", [-2]), ValueError, "must not be below -1"),
        (("X", [1], "floaty"), TypeError, "'floaty' is not a dtype"),
        ((5, [1]), TypeError, "name of data must be a str"),
    ],
)
def test_wrong_data_is_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        paddle.static.data(*arguments)


def test_two_of_one_name_are_fed_the_same_and_are_two() -> None:
    x, y = data(), data()
    gradients = paddle.static.gradients((x * y * y).sum(), [x, y])
    found = fetch([x + y, *gradients], X=A)
    np.testing.assert_array_equal(found, [2 * A, A * A, 2 * A * A])
    with pytest.raises(KeyError, match="X: the feed lacks Variable 'X"):
        fetch(y * 2)


# --------------------------------------------------------------------------- shapes and dtypes
def test_shapes_that_never_fit_are_refused_while_the_program_is_built() -> None:
    x, y = paddle.static.data("X", [None, 3]), paddle.static.data("Y", [None, 4])
    with pytest.raises(ValueError, match=r"Broadcast dimension mismatch.*Variable 'X'.*created at .*; Variable 'Y'"):
        x + y


@pytest.mark.parametrize(
    ("function", "shape", "dtype"),
    [
        (lambda x: x.T, [3, -1], "float64"),
        (lambda x: x.sum(), [], "float64"),
        (lambda x: x.sum(0), [3], "float64"),
        (lambda x: paddle.reshape(x, [-1]), [-1], "float64"),
        (lambda x: paddle.reshape(x, [-1, 6]), [-1, 6], "float64"),
        (lambda x: x > 0, [-1, 3], "bool"),
        (lambda x: paddle.argmax(x, 1), [-1], "int64"),
        (lambda x: x @ paddle.ones([3, 4], "float64"), [-1, 4], "float64"),
        (lambda x: x.astype("float32") * 2, [-1, 3], "float32"),
        (lambda x: x[0], [3], "float64"),
        (lambda x: x[:3], [-1, 3], "float64"),
        (lambda x: x[20:30], [-1, 3], "float64"),
        (lambda x: paddle.concat([x, x], 0)[: x.shape[0]], [-1, 3], "float64"),
        (lambda x: x[x[:, 0] > 0], [-1, 3], "float64"),
        (lambda x: paddle.nonzero(x), [-1, 2], "int64"),
        (lambda x: paddle.zeros_like(x), [-1, 3], "float64"),
        (lambda x: paddle.shape(x), [2], "int64"),
        (lambda x: paddle.nn.functional.cross_entropy(x, paddle.argmax(x, 1)), [], "float64"),
        (lambda x: paddle.topk(x, 2)[1], [-1, 2], "int64"),
    ],
)
def test_shapes_and_dtypes_are_those_of_the_run(function: Any, shape: list[int], dtype: str) -> None:
    out = function(data())
    assert (out.shape, out.dtype.name) == (shape, dtype)
    for rows in (2, 4):
        value = fetch(out, X=np.arange(rows * 3.0).reshape(rows, 3) - 1)
        assert value.dtype.name == dtype
        assert all(n in (-1, m) for m, n in zip(value.shape, shape, strict=True))


def test_unknown_sizes_may_turn_out_equal() -> None:
    x, y = data(), data("Y", [None, None])
    assert (x + y).shape == [-1, -1]
    assert fetch(x + y, X=A, Y=A).shape == (2, 3)
    assert fetch(x * y, X=A, Y=A[:1]).shape == (2, 3)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: x + data("Y", [None, 4]), ValueError, f"add.*mismatch.*'X' of shape .-1, 3. .*{PLACE}; .*'Y'"),
        (lambda x: x @ data("Y", [4, 2]), ValueError, f"matmul.*'X' .*{PLACE}; Variable 'Y' of shape .4, 2."),
        (lambda x: x + data("Y", [None, 3], "int64"), TypeError, f"add.*Type promotion .*'X' .*{PLACE}; .*'Y'"),
        (lambda x: paddle.matmul(x, data("Y", [3, 2], "float32")), ValueError, "type of data .*'X'.*; Variable 'Y'"),
        (lambda x: paddle.reshape(x, [-1, 3])[:, 5], IndexError, "out of bounds for axis 1.*Variable 'X'"),
        (lambda x: paddle.split(x, 2, 0), ValueError, f"computed from the size of axis 0 of Variable 'X' .*{PLACE}"),
        (lambda x: paddle.unbind(x, 0), ValueError, "number of results depends on a size"),
        (lambda x: [*x], ValueError, "the size of axis 0 of Variable 'X'"),
        (lambda x: 1 if x.sum() > 0 else 0, RuntimeError, "cannot decide an if .* Use paddle.static.nn.cond"),
        (lambda x: float(x.sum()), RuntimeError, "has a value only while its program runs. Fetch it"),
        (lambda x: x.is_contiguous(), AttributeError, f"'X' .*{PLACE} has a shape and a dtype, but no strides before"),
    ],
)
def test_what_cannot_work_is_refused_while_building_by_name_and_place(
    function: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        function(data(stop_gradient=True))


# --------------------------------------------------------------------------- sizes
@given(st.integers(1, 6), st.integers(1, 5))
def test_arithmetic_on_sizes_is_done_in_the_run(rows: int, k: int) -> None:
    with paddle.static.program_guard(paddle.static.Program()):
        x = data(stop_gradient=True)
        n = x.shape[0]
        sizes = [n + k, k + n, n * k, k * n, (n * k) // k, (n + k) - n, -n + 2 * n, (n + k) % k, k - n + n]
        assert sizes == [-1] * len(sizes)
        out = paddle.concat([paddle.full([size], 1.0) for size in sizes], 0).sum()
        python = [rows + k, k + rows, rows * k, k * rows, rows, k, rows, rows % k, k]
        assert fetch(out, X=np.ones((rows, 3))) == sum(python)


def test_a_size_is_a_number_in_operations_and_none_in_python() -> None:
    n = data().shape[0]
    assert (n == -1, n == 7, repr(n)) == (True, False, "-1")
    for use in (int, bool, range, lambda size: size < 3):
        with pytest.raises(ValueError, match="is known only while the program runs"):
            use(n)


# --------------------------------------------------------------------------- parameters and layers
@pytest.mark.parametrize("optimizer_has_parameters", [False, True])
def test_minimize_takes_the_steps_that_dynamic_mode_takes(optimizer_has_parameters: bool) -> None:
    batch = A.astype("float32")
    x = data(dtype="float32", stop_gradient=True)
    layer = paddle.nn.Linear(3, 1)
    start = layer.weight.numpy()
    loss = (layer(x) ** 2).mean()
    parameters = layer.parameters() if optimizer_has_parameters else None
    _, pairs = paddle.optimizer.SGD(0.01, parameters).minimize(loss)
    assert {id(p) for p, _ in pairs} == {id(p) for p in layer.parameters()}
    losses = [float(fetch(loss, X=batch)) for _ in range(3)]
    paddle.disable_static()
    layer.weight.set_value(start)
    layer.bias.set_value(np.zeros(1, "float32"))
    optimizer = paddle.optimizer.SGD(0.01, layer.parameters())
    for expected in losses:
        value = (layer(paddle.to_tensor(batch)) ** 2).mean()
        assert float(value) == expected
        value.backward()
        optimizer.step()
        optimizer.clear_grad()


def test_the_startup_program_gives_parameters_first_values() -> None:
    x = data(dtype="float32", stop_gradient=True)
    out = paddle.static.nn.fc(x, 4, activation="relu")
    weight, bias = paddle.static.default_main_program().all_parameters()
    assert (weight.shape, bias.shape, out.shape) == ([3, 4], [4], [-1, 4])
    bias.set_value(np.ones(4, "float32"))
    paddle.static.Executor().run(paddle.static.default_startup_program())
    np.testing.assert_array_equal(bias.numpy(), np.zeros(4))


def test_fc_flattens_and_adds_up_several_inputs() -> None:
    x, y = data(shape=[None, 2, 3], dtype="float32"), data("Y", [None, 2], "float32")
    out = paddle.static.nn.fc([x, y], 4, bias_attr=False)
    first, second = paddle.static.default_main_program().all_parameters()
    assert (first.shape, second.shape) == ([6, 4], [2, 4])
    a, b = np.ones((5, 2, 3), "float32"), np.ones((5, 2), "float32")
    expected = a.reshape(5, 6) @ first.numpy() + b @ second.numpy()
    np.testing.assert_allclose(fetch(out, X=a, Y=b), expected, rtol=1e-6)


# --------------------------------------------------------------------------- programs as text
def test_a_printed_program_shows_operators_and_their_blocks(program: Any) -> None:
    x = data(shape=[None, 5], dtype="float32")
    out = paddle.static.nn.static_pylayer(lambda a: paddle.exp(a), [x], lambda d: 2 * d)
    paddle.static.gradients(out, x)
    lines = [line.strip() for line in str(program).splitlines()]
    shown = [
        "X : float32[-1, 5] = data()",
        "pylayer_2.out_0 : float32[-1, 5] = pylayer(X) {",
        "forward: block 1 {",
        "exp_1.tmp_0 : float32[-1, 5] = exp(X)",
        "backward: block 2 {",
    ]
    assert [line for line in lines if line in shown] == shown
    assert any(line.startswith("X@GRAD : float32[-1, 5] stop_gradient = pylayer_grad(") for line in lines)
    assert str(program).count("{") == str(program).count("}")


def test_a_printed_program_names_the_variables_of_a_list(program: Any) -> None:
    x, y = data("X", [2]), data("Y", [3])
    paddle.concat([x, y])
    assert "= concat([X, Y]" in str(program)


def test_variables_are_found_by_name(program: Any) -> None:
    x = data()
    assert program.global_block().var("X") is x
    assert [v.name for v in program.list_vars()] == ["X"]
    with pytest.raises(ValueError, match=r"no Variable named 'Xs'\. Did you mean 'X'"):
        program.global_block().var("Xs")
