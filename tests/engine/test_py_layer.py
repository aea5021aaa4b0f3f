"""PyLayer and PyLayerContext by the documents' rules; the bundled scenarios cover the documents' own examples."""

from __future__ import annotations

import gc
import re
import weakref
from collections import deque, namedtuple
from threading import Thread
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle
from pylayer.paddle.autograd import PyLayer, PyLayerContext


def leaf(values: object, dtype: str = "float64") -> paddle.Tensor:
    return paddle.to_tensor(values, dtype=dtype, stop_gradient=False)


def constant(values: object) -> paddle.Tensor:
    return paddle.to_tensor(values, dtype="float64")


def layer(forward: Any, backward: Any) -> type[PyLayer]:
    """A layer named Layer of two functions."""
    return type("Layer", (PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


class Double(PyLayer):
    @staticmethod
    def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: PyLayerContext, g: paddle.Tensor) -> paddle.Tensor:
        return g * 2


class Cube(PyLayer):
    @staticmethod
    def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: PyLayerContext, g: paddle.Tensor) -> paddle.Tensor:
        (x,) = ctx.saved_tensor()
        return g * 3 * x * x


class CubeOfOutput(PyLayer):
    """exp, whose backward reads the saved output."""

    @staticmethod
    def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
        y = paddle.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: PyLayerContext, g: paddle.Tensor) -> paddle.Tensor:
        (y,) = ctx.saved_tensor()
        return g * y


class TestForward:
    def test_runs_with_grad_mode_off_and_the_context_reaches_backward(self) -> None:
        seen: list[Any] = []

        def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
            seen.extend([ctx, paddle.is_grad_enabled(), (x * 2).stop_gradient])
            ctx.scale = 2
            return x * 2

        def backward(ctx: PyLayerContext, g: paddle.Tensor) -> paddle.Tensor:
            seen.append(ctx)
            return g * ctx.scale

        y = layer(forward, backward).apply(leaf([1.0]))
        assert (y.stop_gradient, y.is_leaf, paddle.is_grad_enabled()) == (False, False, True)
        y.backward()
        assert seen[1:3] == [False, True]
        assert seen[0] is seen[3]

    def test_grad_mode_is_restored_after_an_error(self) -> None:
        def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            layer(forward, None).apply(leaf([1.0]))
        assert paddle.is_grad_enabled()

    @pytest.mark.parametrize("container", [tuple, list, namedtuple("Pair", ["a", "b"])])
    def test_the_container_of_the_outputs_is_kept(self, container: Any) -> None:
        def forward(ctx: PyLayerContext, x: paddle.Tensor) -> Any:
            return container(x * 2, 7) if hasattr(container, "_fields") else container([x * 2, 7])

        out = layer(forward, lambda ctx, g: g * 2).apply(leaf([1.0]))
        assert (type(out), out[0].stop_gradient, out[1]) == (container, False, 7)

    @pytest.mark.parametrize("returned", [None, 3, "text", [1, 2], {"a": 1}])
    def test_at_least_one_output_is_a_tensor(self, returned: Any) -> None:
        with pytest.raises(ValueError, match=r"At least one output of `PyLayer.forward` is a `Tensor`"):
            layer(lambda ctx, x: returned, None).apply(constant([1.0]))

    def test_nothing_is_recorded_if_no_input_needs_a_gradient(self) -> None:
        def backward(ctx: PyLayerContext, g: paddle.Tensor) -> None:
            raise AssertionError("must not run")

        y = layer(lambda ctx, x: x * 2, backward).apply(constant([1.0]))
        assert (y.stop_gradient, y.is_leaf) == (True, True)
        y.backward()

    def test_missing_forward_and_backward(self) -> None:
        with pytest.raises(NotImplementedError, match="implement the forward function"):
            PyLayer.apply(leaf([1.0]))
        only_forward = type("Half", (PyLayer,), {"forward": staticmethod(lambda ctx, x: x * 2)})
        with pytest.raises(NotImplementedError, match="implement the backward function"):
            only_forward.apply(leaf([1.0])).backward()

    def test_an_instance_applies_too_and_inheritance_takes_the_most_derived(self) -> None:
        class Triple(Double):
            @staticmethod
            def backward(ctx: PyLayerContext, g: paddle.Tensor) -> paddle.Tensor:
                return g * 3

        x = leaf([1.0])
        Triple().apply(x).backward()
        assert x.grad.item() == 3.0


class TestSlots:
    def test_follow_the_order_of_the_call(self) -> None:
        order = layer(lambda ctx, a, b, c: a + b + c, lambda ctx, g: (g, g * 2, g * 3))
        a, b, c = leaf([1.0]), leaf([1.0]), leaf([1.0])
        order.apply(a, c=c, b=b).backward()
        assert (a.grad.item(), c.grad.item(), b.grad.item()) == (1.0, 2.0, 3.0)

    def test_the_same_tensor_twice_has_two(self) -> None:
        x = leaf([1.0])
        layer(lambda ctx, a, b: a + b, lambda ctx, g: (g * 2, g * 5)).apply(x, x).backward()
        assert x.grad.item() == 7.0

    def test_a_list_of_tensors_has_one_each_element_judged_for_itself(self) -> None:
        x, y = constant([1.0]), leaf([1.0])
        layer(lambda ctx, xs: xs[0] + xs[1], lambda ctx, g: [None, g * 4]).apply([x, y]).backward()
        assert (x.grad, y.grad.item()) == (None, 4.0)

    @pytest.mark.parametrize("container", [tuple, list])
    def test_gradients_come_as_a_tuple_or_a_list(self, container: Any) -> None:
        x, y = leaf([1.0]), leaf([1.0])
        layer(lambda ctx, a, b: a + b, lambda ctx, g: container([g, g * 2])).apply(x, y).backward()
        assert (x.grad.item(), y.grad.item()) == (1.0, 2.0)

    def test_of_nested_outputs_arrive_as_lists(self) -> None:
        seen: list[Any] = []

        def backward(ctx: PyLayerContext, pair: list[paddle.Tensor], last: paddle.Tensor) -> paddle.Tensor:
            seen.append([pair[0].item(), pair[1].item(), last.item()])
            return pair[0] + pair[1] + last

        x = leaf([1.0])
        (first, second), _ = layer(lambda ctx, x: ([x * 2, x * 3], x * 4), backward).apply(x)
        (first * 5 + second * 7).backward()
        assert seen == [[5.0, 7.0, 0.0]]

    def test_tensors_in_dicts_and_deeper_lists_are_not_tracked_and_that_is_said(self) -> None:
        x = leaf([1.0])
        with pytest.warns(UserWarning, match="not tracked"):
            y = layer(lambda ctx, d: d["x"] * 2, None).apply({"x": x})
        assert y.stop_gradient
        with pytest.warns(UserWarning, match="a list inside a list"):
            layer(lambda ctx, xs: xs[0][0] * 2, None).apply([[x]])


class TestWhatBackwardReturns:
    @pytest.mark.parametrize(
        ("returned", "message"),
        [
            (lambda g: (g,), r"should be 2, but received 1.*`a`, `b`"),
            (lambda g: (g, g, g), r"should be 2, but received 3"),
            (lambda g: (g, None, None), r"drop the None for `alpha`"),
            (lambda g: (g, 3.0), r"gradient 1 \(input `b`\).*Tensor or None for backward output, , but got float"),
            (lambda g: (g, None), r"input `b`.*should not return empty at 1 position"),
            (lambda g: (g, paddle.ones([3], "float64")), r"shape \[3\], but the input has shape \[1\]"),
        ],
    )
    def test_is_held_to_the_rules(self, returned: Any, message: str) -> None:
        y = layer(lambda ctx, a, alpha, b: a + b, lambda ctx, g: returned(g)).apply(leaf([1.0]), 0.5, leaf([1.0]))
        with pytest.raises(ValueError, match=message) as raised:
            y.backward()
        assert "GradNodePyLayer_Layer" in str(raised.value)
        assert f"{__file__}:" in str(raised.value)

    @pytest.mark.parametrize(
        ("keywords", "named"),
        [(False, "`*rest[0]`"), (True, "`weight`")],
        ids=["star", "keyword"],
    )
    def test_a_missing_gradient_is_of_an_argument_with_a_name(self, keywords: bool, named: str) -> None:
        def forward(ctx: PyLayerContext, first: paddle.Tensor, *rest: paddle.Tensor, **more: paddle.Tensor) -> Any:
            return first + sum(rest) + sum(more.values())

        a, b = leaf([1.0]), leaf([1.0])
        made = layer(forward, lambda ctx, g: (g, None))
        y = made.apply(a, weight=b) if keywords else made.apply(a, b)
        with pytest.raises(ValueError, match=re.escape(f"(input {named})")):
            y.backward()

    def test_a_missing_gradient_in_a_list_is_named_by_its_place(self) -> None:
        y = layer(lambda ctx, tensors: tensors[0] + tensors[1], lambda ctx, g: [g, None]).apply(
            [leaf([1.0]), leaf([1.0])]
        )
        with pytest.raises(ValueError, match=re.escape("(input `tensors[1]`)")):
            y.backward()

    def test_non_tensor_arguments_are_spoken_of_only_where_there_are_some(self) -> None:
        y = layer(lambda ctx, a, b: a + b, lambda ctx, g: (g, g, None)).apply(leaf([1.0]), leaf([1.0]))
        with pytest.raises(ValueError, match=r"received 3\. One gradient per Tensor argument of apply: `a`, `b`\. \("):
            y.backward()

    def test_a_tensor_for_an_input_that_stops_gradients_is_an_error(self) -> None:
        y = layer(lambda ctx, a, b: a + b, lambda ctx, g: (g, g)).apply(leaf([1.0]), constant([1.0]))
        with pytest.raises(ValueError, match="should return None at 1 position"):
            y.backward()

    def test_is_cast_to_the_dtype_of_the_input(self) -> None:
        x = leaf([1.0], "float32")
        layer(lambda ctx, x: x * 2, lambda ctx, g: g.astype("float64") * 2).apply(x).backward()
        assert x.grad.dtype is paddle.float32

    def test_may_share_memory_with_what_was_saved(self) -> None:
        x = leaf([3.0])
        z = layer(lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], lambda ctx, g: ctx.saved_tensor()[0]).apply(x)
        z.backward()
        with paddle.no_grad():
            x.grad.zero_()
        assert x.item() == 3.0

    def test_the_users_exception_keeps_its_type_and_gets_a_note(self) -> None:
        def backward(ctx: PyLayerContext, g: paddle.Tensor) -> None:
            raise LookupError("mine")

        y = layer(lambda ctx, x: x * 2, backward).apply(leaf([1.0]))
        with pytest.raises(LookupError, match="mine") as raised:
            y.backward()
        assert "in backward of GradNodePyLayer_Layer, applied at" in raised.value.__notes__[0]


class TestCotangents:
    def test_backward_may_change_its_own_in_place(self) -> None:
        x, y = leaf([1.0]), leaf([1.0])
        z = layer(lambda ctx, x: x * 2, lambda ctx, g: g.scale_(2.0)).apply(x)
        (z + y).backward()
        assert (x.grad.item(), y.grad.item()) == (2.0, 1.0)

    @pytest.mark.parametrize("materialize", [True, False])
    def test_undefined_ones_are_zeros_or_none(self, materialize: bool) -> None:
        seen: list[Any] = []

        def forward(ctx: PyLayerContext, x: paddle.Tensor) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 2, paddle.argmax(x), x.astype("float32")

        def backward(ctx: PyLayerContext, g: paddle.Tensor, *rest: Any) -> paddle.Tensor:
            seen.extend(rest)
            return g * 2

        layer(forward, backward).apply(leaf([1.0, 2.0]))[0].sum().backward()
        if materialize:
            assert [(g.dtype.name, g.shape, g.sum().item()) for g in seen] == [("int64", [], 0), ("float32", [2], 0.0)]
        else:
            assert seen == [None, None]

    def test_are_cast_to_the_outputs_dtype_unless_that_is_switched_off(self) -> None:
        seen: list[Any] = []

        def forward(ctx: PyLayerContext, x: paddle.Tensor, consistent: bool) -> paddle.Tensor:
            ctx.set_grad_in_dtype_consistent(consistent)
            return x * 2

        watching = layer(forward, lambda ctx, g: (seen.append(g.dtype.name), g * 2)[1])
        for consistent in (True, False):
            watching.apply(leaf([1.0], "float32"), consistent).backward(constant([1.0]))
        assert seen == ["float32", "float64"]

    def test_a_hook_on_an_output_changes_what_backward_gets(self) -> None:
        x = leaf([1.0])
        y = Double.apply(x)
        y.register_hook(lambda g: g * 100)
        y.backward()
        assert x.grad.item() == 200.0

    def test_backward_runs_once_for_several_uses(self) -> None:
        calls: list[int] = []
        x = leaf([1.0])
        y = layer(lambda ctx, x: x * 2, lambda ctx, g: (calls.append(1), g * 2)[1]).apply(x)
        paddle.autograd.backward([y * 3, y * 4])
        assert (len(calls), x.grad.item()) == (1, 14.0)


class TestContext:
    @pytest.mark.parametrize("method", ["save_for_backward", "mark_not_inplace", "mark_non_differentiable"])
    def test_called_twice(self, method: str) -> None:
        def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
            getattr(ctx, method)(x)
            getattr(ctx, method)(x)
            return x * 2

        with pytest.raises(RuntimeError, match=f"{method} must be called at most once"):
            layer(forward, None).apply(leaf([1.0]))

    @pytest.mark.parametrize(
        "method",
        ["save_for_backward", "mark_not_inplace", "mark_non_differentiable", "set_materialize_grads"],
    )
    def test_called_in_backward(self, method: str) -> None:
        y = layer(lambda ctx, x: x * 2, lambda ctx, g: getattr(ctx, method)(True)).apply(leaf([1.0]))
        with pytest.raises(RuntimeError, match=f"{method} must be called inside forward"):
            y.backward()

    @pytest.mark.parametrize("value", [0, 1, None, "yes"])
    @pytest.mark.parametrize("method", ["set_materialize_grads", "set_grad_in_dtype_consistent"])
    def test_switches_take_only_bools(self, method: str, value: Any) -> None:
        with pytest.raises(TypeError, match="must be bool"):
            layer(lambda ctx, x: getattr(ctx, method)(value), None).apply(leaf([1.0]))

    def test_saved_tensors_keep_their_identity(self) -> None:
        x = leaf([1.0])
        seen: list[Any] = []

        def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        y = layer(forward, lambda ctx, g: (seen.extend(ctx.saved_tensor()), g * 2)[1]).apply(x)
        y.backward()
        assert seen[0] is x
        assert seen[1] is y

    def test_saved_tensor_without_a_save_is_none(self) -> None:
        seen: list[Any] = []
        layer(lambda ctx, x: x * 2, lambda ctx, g: (seen.append(ctx.saved_tensor()), g)[1]).apply(
            leaf([1.0])
        ).backward()
        assert seen == [None]

    def test_a_saved_tensor_changed_in_place_is_an_error(self) -> None:
        x = leaf([1.0])
        y = CubeOfOutput.apply(x)
        y.detach().zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()

    @pytest.mark.parametrize(
        "keep",
        [
            lambda x: [x],
            lambda x: (x, 1),
            lambda x: [[x], None],
            lambda x: {"x": x},
            lambda x: {"x": [(x,)]},
            lambda x: namedtuple("Kept", "x")(x),
            lambda x: deque([x]),
            lambda x: frozenset([x]),
        ],
        ids=["list", "tuple", "nested", "dict", "list in a dict", "namedtuple", "deque", "set"],
    )
    def test_one_in_a_saved_container_changed_in_place_is_an_error(self, keep: Any) -> None:
        seen: list[Any] = []
        square = layer(
            lambda ctx, x: (ctx.save_for_backward(keep(x)), x * x)[1],
            lambda ctx, g: (seen.append(ctx.saved_tensor()), g)[1],
        )
        kept, changed = leaf([3.0]) * 1, leaf([3.0]) * 1
        square.apply(kept).backward()
        assert len(seen) == 1
        y = square.apply(changed)
        changed.add_(constant([10.0]))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
        assert len(seen) == 1

    def test_pack_and_unpack_hooks(self) -> None:
        log: list[str] = []

        def pack(t: paddle.Tensor) -> np.ndarray:
            log.append("pack")
            return t.numpy()

        def unpack(a: np.ndarray) -> paddle.Tensor:
            log.append("unpack")
            return paddle.to_tensor(a)

        x = leaf([2.0])
        with paddle.autograd.saved_tensors_hooks(pack, unpack):
            y = Cube.apply(x)
            z = paddle.tanh(y * 0)
        (y + z).backward()
        assert (log, x.grad.item()) == (["pack", "pack", "unpack", "unpack"], 12.0)

    @pytest.mark.parametrize("apply", [Cube.apply, paddle.tanh], ids=["layer", "operation"])
    def test_an_unpack_hook_returns_a_tensor(self, apply: Any) -> None:
        with paddle.autograd.saved_tensors_hooks(lambda t: t.numpy(), lambda a: a):
            y = apply(leaf([2.0]))
        with pytest.raises(TypeError, match="must return a Tensor, but got ndarray"):
            y.backward()

    def test_the_hooks_of_a_thread_are_not_those_of_another(self) -> None:
        x = leaf([2.0])

        def run() -> None:
            (x * x).backward()

        with paddle.autograd.saved_tensors_hooks(pytest.fail, pytest.fail):
            thread = Thread(target=run)
            thread.start()
            thread.join()
        assert x.grad.item() == 4.0


class TestInPlace:
    def test_a_leaf_returned_unchanged_is_an_error_that_names_the_way_out(self) -> None:
        with pytest.raises(ValueError, match=r"can't use inplace strategy.*mark_not_inplace"):
            layer(lambda ctx, x: x, None).apply(leaf([1.0]))

    def test_a_result_returned_unchanged_is_the_same_object_with_a_new_node(self) -> None:
        x = leaf([1.0])
        y = x * 3
        z = layer(lambda ctx, y: y, lambda ctx, g: g * 7).apply(y)
        assert (z is y, y.inplace_version) == (True, 1)
        z.backward()
        assert x.grad.item() == 21.0

    def test_mark_not_inplace_returns_a_new_tensor_and_leaves_the_input_alone(self) -> None:
        x = leaf([1.0])
        y = layer(lambda ctx, x: (ctx.mark_not_inplace(x), x)[1], lambda ctx, g: g * 5).apply(x)
        assert (y is x, x.is_leaf) == (False, True)
        y.backward()
        assert x.grad.item() == 5.0


class TestNonDifferentiable:
    def test_the_output_stops_gradients_but_keeps_its_slot(self) -> None:
        seen: list[Any] = []

        def forward(ctx: PyLayerContext, x: paddle.Tensor) -> Any:
            a, b = x * 2, x * 3
            ctx.mark_non_differentiable(a)
            return a, b

        x = leaf([1.0])
        a, b = layer(forward, lambda ctx, ga, gb: (seen.append(ga.item()), gb * 3)[1]).apply(x)
        assert (a.stop_gradient, b.stop_gradient) == (True, False)
        (b + a).backward()
        assert (seen, x.grad.item()) == ([0.0], 3.0)

    def test_a_sole_output_means_backward_never_runs(self) -> None:
        x = leaf([1.0])
        layer(lambda ctx, x: (ctx.mark_non_differentiable(y := x * 2), y)[1], None).apply(x).backward()
        assert x.grad is None


class TestOrders:
    @pytest.mark.parametrize(("order", "expected"), [(1, 12.0), (2, 12.0), (3, 6.0)])
    def test_of_a_layer_that_saves_its_input(self, order: int, expected: float) -> None:
        x = leaf(2.0)
        y = Cube.apply(x)
        for _ in range(order):
            (y,) = paddle.grad(y, x, create_graph=True)
        assert y.item() == expected

    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    def test_of_a_layer_that_saves_its_output(self, order: int) -> None:
        x = leaf(0.5)
        y = CubeOfOutput.apply(x)
        for _ in range(order):
            (y,) = paddle.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(np.exp(0.5), rel=1e-15)

    def test_gradients_through_an_output_that_was_restored_more_than_once_are_summed(self) -> None:
        x = leaf(0.5)
        (first,) = paddle.grad(CubeOfOutput.apply(x), x, create_graph=True)
        (second,) = paddle.grad(first, x, create_graph=True)
        assert paddle.grad(first + second, x)[0].item() == pytest.approx(2 * np.exp(0.5), rel=1e-15)

    def test_once_differentiable_stops_at_the_first(self) -> None:
        once = layer(Cube.forward, paddle.autograd.py_layer.once_differentiable(Cube.backward))
        x = leaf(2.0)
        (g,) = paddle.grad(once.apply(x), x, create_graph=True)
        assert g.item() == 12.0
        with pytest.raises(ValueError, match="does not appear in the backward graph"):
            paddle.grad(g, x)

    def test_a_backward_inside_backward(self) -> None:
        def backward(ctx: PyLayerContext, g: paddle.Tensor) -> paddle.Tensor:
            (x,) = ctx.saved_tensor()
            again = x.detach()
            again.stop_gradient = False
            with paddle.enable_grad():
                (again * again).backward(g)
            return again.grad

        x = leaf([3.0])
        layer(lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], backward).apply(x).backward()
        assert x.grad.item() == 6.0

    def test_retain_graph_allows_a_second_backward(self) -> None:
        x = leaf([1.0])
        y = Double.apply(x)
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.item() == 4.0
        with pytest.raises(RuntimeError, match=r"GradNodePyLayer_Double.*retain_graph=True"):
            y.backward()


def test_nothing_is_left_for_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf([1.0])
        contexts: list[weakref.ref[Any]] = []

        def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
            contexts.append(weakref.ref(ctx))
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        saving = layer(forward, lambda ctx, g: g * 2)
        saving.apply(x).backward()
        saving.apply(x)  # dropped without a backward
        assert [context() for context in contexts] == [None, None]
    finally:
        gc.enable()


def test_an_output_that_forward_made_a_leaf_dies_with_its_last_name() -> None:
    def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
        y = x * 2
        y.stop_gradient = False
        return y

    gc.disable()
    try:
        y = layer(forward, lambda ctx, g: g * 2).apply(leaf([1.0]))
        alive = weakref.ref(y)
        y.backward()
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_a_gradient_of_a_subclass_that_was_not_initialised_is_refused():
    class Hollow(paddle.Tensor):
        def __init__(self):
            pass

    class Layer(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return Hollow()

    x = paddle.ones([2])
    x.stop_gradient = False
    with pytest.raises(ValueError, match="We can only support Tensor or None for backward output"):
        Layer.apply(x).sum().backward()


def test_where_backward_fails_on_a_gradient_of_another_shape_the_layer_that_returned_it_is_named() -> None:
    inner = layer(lambda ctx, x: x * 2, lambda ctx, g: g * paddle.ones([3], dtype="float64"))
    outer = layer(lambda ctx, x: x * 3, lambda ctx, g: paddle.ones([2], dtype="float64"))
    y = outer.apply(inner.apply(leaf([1.0, 2.0, 3.0]))).sum()
    with pytest.raises(ValueError, match=r"the gradient has shape \[2\], but the input has shape \[3\]"):
        y.backward()


def test_a_gradient_of_another_shape_is_named_for_the_backward_that_it_reached_alone() -> None:
    sizes = iter([1, 3])
    failing = iter([False, True])

    def inner_backward(ctx: PyLayerContext, g: paddle.Tensor) -> paddle.Tensor:
        if next(failing):
            raise RuntimeError("of its own")
        return paddle.ones([3], dtype="float64")

    inner = layer(lambda ctx, x: x * 2, inner_backward)
    outer = layer(lambda ctx, x: x * 3, lambda ctx, g: paddle.ones([next(sizes)], dtype="float64"))
    y = outer.apply(inner.apply(leaf([1.0, 2.0, 3.0]))).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="of its own"):
        y.backward()
