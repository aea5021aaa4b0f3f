"""What Paddle's own tests import: each name works, or can be imported and is UNSUPPORTED, by name, when it is used."""

from __future__ import annotations

import textwrap

import pytest

import pylayer
from pylayer.invalid import UnsupportedError
from pylayer.release import StandIn, missing_name

NAMES = {
    "": (
        "CUDAPinnedPlace DataParallel _legacy_C_ops core framework gammainc gammainc_ gammaincc gammaincc_ is_empty "
        "metric pir pir_utils set_printoptions tensor version"
    ),
    "autograd": "backward_utils ir_backward",
    "autograd.ir_backward": "grad",
    "autograd.py_layer": "PyLayerBackward",
    "base": (
        "BuildStrategy CompiledProgram Variable backward core data_feeder dygraph executor framework libpaddle "
        "variable_index"
    ),
    "base.backward": "append_backward gradients",
    "base.core": (
        "CUDAPinnedPlace CustomPlace DataType LoDTensor VarDesc _clear_prim_vjp_skip_default_ops "
        "_get_all_register_op_kernels _is_bwd_prim_enabled _is_fwd_prim_enabled _set_prim_all_enabled "
        "_set_prim_backward_enabled call_vjp from_dlpack get_grad_op_desc globals grad_var_suffix has_grad_op_maker "
        "has_infer_inplace has_vjp op_proto_and_checker_maker op_support_gpu set_prim_eager_enabled supports_bfloat16"
    ),
    "base.executor": "Executor global_scope scope_guard",
    "base.framework": (
        "OpProtoHolder Program Variable _current_expected_place _dygraph_guard _dygraph_tracer canonicalize_attrs "
        "dygraph_not_support get_flags set_flags"
    ),
    "device": "cuda",
    "distributed": "init_parallel_env spawn",
    "framework": "random",
    "jit": "load save",
    "nn.layer.layers": "Layer",
    "pir_utils": "IrGuard",
    "static": "CompiledProgram Variable cuda_places",
    "tensor": (
        "add_ create_tensor creation fill_constant math multiply_ random remainder_ subtract_"
    ),
    "tensor.creation": "to_tensor",
    "tensor.math": "add multiply",
    "tensor.random": "uniform",
    "utils": "environments flatten is_sequence pack_sequence_as",
}  # fmt: skip
"""By module below ``paddle``, what 50 files of Paddle's test folder about autograd, and their helpers, import from it.

`base.core.LoDTensorArray` is among what they ask for, and not in Paddle 3.3.1.
"""


LEFT_OUT = {
    "nn": "CTCLoss FractionalMaxPool2D FractionalMaxPool3D HSigmoidLoss RNNTLoss",
    "nn.functional": "ctc_loss fractional_max_pool2d fractional_max_pool3d hsigmoid_loss rnnt_loss",
}
"""Losses over alignments and trees, and pooling at random, which no custom layer seen so far has used."""


@pytest.fixture(autouse=True)
def installed():
    pylayer.install_paddle()
    yield
    pylayer.uninstall_paddle()


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for table in (NAMES, LEFT_OUT) for module, names in table.items() for name in names.split()],
)
def test_what_tests_import_works_or_is_unsupported_when_it_is_used(module: str, name: str) -> None:
    path = f"paddle.{module}".removesuffix(".")
    space: dict[str, object] = {}
    exec(f"from {path} import {name}", space)
    found = space[name]
    if isinstance(found, StandIn):
        with pytest.raises(UnsupportedError) as caught:
            found()
        assert missing_name(caught.value) == f"{path}.{name}"


USES = [
    "C()", "C == 1", "C + 1", "-C", "bool(C)", "len(C)", "list(C)", "C[0]", "1 in C", "C.a.b()", "D()",
    "isinstance(x, C)", "issubclass(paddle.nn.Linear, C)",
]  # fmt: skip


@pytest.mark.parametrize("use", [*USES, "with C: pass", "from paddle.io import *"])
def test_each_use_says_the_name(use: str) -> None:
    program = """
        import paddle
        from paddle.io import Dataset as C
        class D(C): pass
        x = paddle.ones([1])
    """
    with pytest.raises(UnsupportedError, match=r"^paddle\.io(\.Dataset)?(\.a\.b)? is not part of the bundled engine"):
        exec(f"{textwrap.dedent(program)}\n{use}", {})


def test_a_users_object_is_no_instance_of_what_the_engine_lacks() -> None:
    from paddle.io import Dataset  # type: ignore[import-not-found]

    class Mine: ...

    assert not isinstance(Mine(), Dataset)
    assert not isinstance(3, Dataset)

    def annotated(x: Dataset | None) -> Dataset: ...


def test_what_is_defined_inside_a_package_is_what_the_package_hands_on() -> None:
    import paddle  # type: ignore[import-not-found]
    from paddle.base.backward import gradients  # type: ignore[import-not-found]
    from paddle.nn.functional.activation import relu  # type: ignore[import-not-found]
    from paddle.nn.layer.common import Linear  # type: ignore[import-not-found]

    assert (gradients, relu, Linear) == (paddle.static.gradients, paddle.nn.functional.relu, paddle.nn.Linear)


def test_a_typing_error_is_not_unsupported() -> None:
    with pytest.raises(ImportError, match="cannot import name 'tanhh'") as caught:
        exec("from paddle import tanhh", {})
    assert missing_name(caught.value) == ""


def test_variables_are_what_the_mode_computes_with() -> None:
    import paddle
    from paddle.base.framework import Variable, _dygraph_guard, _dygraph_tracer  # type: ignore[import-not-found]

    x, tracer = paddle.ones([1]), _dygraph_tracer()
    assert isinstance(x, Variable)
    assert not isinstance(x.numpy(), Variable)
    with _dygraph_guard(None), paddle.static.program_guard(paddle.static.Program()):
        assert not paddle.in_dynamic_mode()
        assert _dygraph_tracer() is None
        assert isinstance(paddle.static.data("x", [1]), Variable)
        with _dygraph_guard(tracer):
            assert paddle.in_dynamic_mode()
    assert paddle.in_dynamic_mode()
