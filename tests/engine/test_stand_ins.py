"""Names that the engine lacks: harmless at import, UNSUPPORTED by name where a value is needed."""

from __future__ import annotations

import importlib
import textwrap

import pytest

import pylayer
from pylayer.release import StandIn, missing_name
from pylayer.tensor.invalid import UnsupportedError

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


REMOVED = {
    "": "load save",
    "autograd": "jacobian hessian",
    "base.dygraph": "guard",
    "base.framework": "_dygraph_guard",
    "incubate.autograd": "Hessian Jacobian jvp vjp",
    "jit": "enable_to_static ignore_module set_code_level set_verbosity",
    "static": "InputSpec Scope accuracy cpu_places device_guard global_scope name_scope scope_guard",
    "static.nn": "case switch_case while_loop",
    "utils": "try_import",
    "nn": (
        "AdaptiveAvgPool2D AdaptiveLogSoftmaxWithLoss AvgPool2D BCELoss Bilinear CTCLoss Conv2DTranspose Dropout2D "
        "Flatten FractionalMaxPool2D GRU HSigmoidLoss KLDivLoss LSTM LeakyReLU MaxPool2D MultiHeadAttention "
        " NLLLoss PReLU Pad2D PixelShuffle RNNTLoss SpectralNorm Transformer TransformerEncoderLayer Upsample"
    ),
    "nn.functional": (
        "adaptive_log_softmax_with_loss affine_grid ctc_loss fractional_max_pool2d grid_sample hsigmoid_loss "
        "interpolate rnnt_loss upsample"
    ),
    "nn.init": "orthogonal_ trunc_normal_",
    "nn.initializer": "Bilinear Dirac Orthogonal TruncatedNormal set_global_initializer",
    "nn.utils": "clip_grad_norm_ clip_grad_value_ parameters_to_vector spectral_norm vector_to_parameters",
    "optimizer": "ASGD Adadelta Adagrad AdamW Adamax LBFGS Lamb NAdam RAdam RMSProp Rprop lr",
    "optimizer.lr": "CosineAnnealingDecay LRScheduler OneCycleLR ReduceOnPlateau StepDecay",
    "vision": "models ops transforms",
    "vision.models": "ResNet resnet18",
}  # fmt: skip
"""Of each group of names that the engine does not have any more, some."""


@pytest.fixture(autouse=True)
def installed():
    pylayer.install_paddle()
    yield
    pylayer.uninstall_paddle()


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for table in (NAMES, REMOVED) for module, names in table.items() for name in names.split()],
)
def test_what_tests_import_works_or_is_unsupported_when_it_is_used(module: str, name: str) -> None:
    path = f"paddle.{module}".removesuffix(".")
    space: dict[str, object] = {}
    exec(f"from {path} import {name}", space)
    found = space[name]
    if isinstance(found, StandIn):
        assert found() is found
        with pytest.raises(UnsupportedError, match="Install Paddle and run with -b paddle") as caught:
            bool(found)
        assert missing_name(caught.value) == f"{path}.{name}"


def test_a_class_derived_from_one_lacks_what_that_has() -> None:
    from paddle.incubate.distributed.models.moe.moe_layer import MoEScatter

    class Mended(MoEScatter):
        pass

    with pytest.raises(AttributeError) as caught:
        Mended.apply(1)
    assert missing_name(caught.value) == "paddle.incubate.distributed.models.moe.moe_layer.MoEScatter"


def test_what_only_builds_for_gpus_have_is_a_stand_in() -> None:
    from paddle.incubate.fp8 import deep_gemm

    with pytest.raises(UnsupportedError, match=r"paddle\.incubate\.fp8\.deep_gemm"):
        bool(deep_gemm)


@pytest.mark.parametrize("table", [REMOVED])
def test_what_was_removed_is_a_stand_in(table: dict[str, str]) -> None:
    for module, names in table.items():
        owner = importlib.import_module(f"paddle.{module}".removesuffix("."))
        assert all(isinstance(getattr(owner, name), StandIn) for name in names.split())


AT_IMPORT = {
    "called": "y = C(3, key='value')",
    "called twice": "y = C()()",
    "an attribute of what was called": "y = C().split(2).first",
    "subclassed": "class D(C):\n    limit = 3\ny = D(1)\nassert D.limit == 3",
    "subclassed with another": "class D(C, paddle.nn.Layer): pass\ny = D()",
    "subclassed with keywords": "class D(C, flag=1): pass\ny = D()",
    "a base that was called": "class D(C()): pass\ny = D()",
    "a decorator": "@C\ndef y(): pass",
    "a decorator with arguments": "@C('name', static=True)\ndef y(): pass",
    "a decorator of a class": "@C\nclass y: pass",
    "a default": "def f(value=C(), *, other: C | None = C): return value\ny = f()",
    "a type": "import typing as t\nkinds = t.Optional[C], t.Union[int, C], t.List[t.Tuple[C, 'C']]\ny = C[int]",
    "compared": "y = C == 1\nz = C() < C",
    "iterated": "y, = [item.type for item in C()]\nz = {item: 1 for item in C}",
    "unpacked": "y, = [*C]",
    "computed with": "y = -(2 * C + 1) // C | 4",
    "an item": "y = C()['name']\nC['name'] = 3",
    "an attribute that is set": "C.limit = 3\ny = C",
    "in a dict": "y = {C: C}[C]",
}
"""Uses at module level, which leave a stand-in in ``y``."""


@pytest.mark.parametrize("use", AT_IMPORT.values(), ids=AT_IMPORT.keys())
@pytest.mark.parametrize(
    "path", ["io.Dataset", "nn.LSTM", "base.core.get_all_op_protos", "utils.environments.BooleanEnvironmentVariable"]
)
def test_it_does_no_harm_at_import(path: str, use: str) -> None:
    module, _, name = path.rpartition(".")
    space: dict[str, object] = {}
    exec(f"import paddle\nfrom paddle.{module} import {name} as C\n{use}", space)
    assert isinstance(space["y"], StandIn)


NEEDS_A_VALUE = [
    "bool(C)",
    "2 if C() == 1 else 3",
    "len(C)",
    "int(C())",
    "float(C)",
    "complex(C)",
    "range(C)",
    "1 in C",
    "np.asarray(C)",
    "np.ones(2) + C",
    "C(x)",
    "C(paddle.nn.Linear(1, 1).parameters())",
    "C(1, inputs={'x': [x]})",
    "C()(x)",
    "D()(x)",
    "D(x)",
    "deco(x)",
    "C().shape",
    "C().numpy()",
    "C.dtype",
    "x * C",
    "C() * x",
    "x[C]",
    "x == C",
    "x.reshape(C)",
    "x.sum(C)",
    "x.astype(C)",
    "x.set_value(C())",
    "paddle.matmul(x, C())",
    "paddle.concat([x, C])",
    "paddle.to_tensor(C)",
    "paddle.full([2], C)",
    "paddle.where(x > 0, x, C())",
    "paddle.nn.functional.dropout(x, C())",
    "paddle.nn.Sequential(C())",
    "paddle.nn.Linear(1, 1, weight_attr=C())",
    "paddle.nn.Linear(1, 1, weight_attr=paddle.ParamAttr(initializer=C()))",
    "paddle.optimizer.SGD(C(), parameters=[x])",
    "paddle.grad(x, C())",
    "Given.apply(x)",
    "Returned.apply(x).backward()",
    "isinstance(x, C)",
    "issubclass(paddle.nn.Linear, C)",
]


@pytest.mark.parametrize("use", [*NEEDS_A_VALUE, "with C(): pass", "from paddle.io import *"])
def test_where_a_value_is_needed_it_says_the_name(use: str) -> None:
    program = """
        import numpy as np
        import paddle
        from paddle.io import Dataset as C
        class D(C): pass
        @C
        def deco(x): return x
        class Given(paddle.autograd.PyLayer):
            forward = staticmethod(lambda ctx, x: C(2))
        class Returned(paddle.autograd.PyLayer):
            forward = staticmethod(lambda ctx, x: x * 2)
            backward = staticmethod(lambda ctx, g: C())
        x = paddle.ones([1])
        x.stop_gradient = False
    """
    expected = r"^paddle\.io(\.Dataset)? is not part of the bundled engine\. Install Paddle and run with -b paddle\.$"
    with pytest.raises(UnsupportedError, match=expected):
        exec(f"{textwrap.dedent(program)}\n{use}", {})


PUBLIC = {
    "a flag from the environment": """
        from paddle.utils.environments import BooleanEnvironmentVariable
        ENV_DEBUG = BooleanEnvironmentVariable("DEBUG", False)
    """,
    "all operators of Paddle by name": """
        from paddle.base import core
        PROTOS = {proto.type: proto for proto in core.get_all_op_protos()}
    """,
    "a guard as a decorator": """
        from paddle.pir_utils import OldIrGuard
        from paddle.jit import not_to_static
        class Test:
            @OldIrGuard(True)
            @not_to_static
            def check(self): ...
    """,
    "kernels with a way around them": """
        try:
            from paddle.incubate.nn.functional import fused_rotary_position_embedding as rope, swiglu
        except ImportError:
            rope = None
    """,
    "a schedule with a class of its own": """
        from paddle.optimizer.lr import LambdaDecay, LRScheduler
        class Warmup(LRScheduler):
            def get_lr(self): return self.base_lr
        class Later(LambdaDecay): ...
    """,
    "recurrent and attention layers in a layer": """
        class Net(paddle.nn.Layer):
            def __init__(self):
                super().__init__()
                self.rnn = paddle.nn.LSTM(4, 4, direction="bidirect")
                self.attention = paddle.nn.MultiHeadAttention(4, 2)
        Net()
    """,
    "groups of processes": """
        from paddle.distributed import fleet
        from paddle.distributed.fleet.meta_parallel import ParallelCrossEntropy, get_rng_state_tracker
        TRACKER = get_rng_state_tracker()
        class Loss(ParallelCrossEntropy): ...
    """,
    "an activation by name": """
        ACTIVATIONS = {"relu": paddle.nn.ReLU, "leaky": paddle.nn.LeakyReLU(0.1), "prelu": paddle.nn.PReLU}
    """,
}
"""What files with a PyLayer in released packages do when they are imported, in short."""


@pytest.mark.parametrize("source", PUBLIC.values(), ids=PUBLIC.keys())
def test_a_file_imports_and_its_layer_is_computed(source: str) -> None:
    layer = """
        class Double(paddle.autograd.PyLayer):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 2
        x = paddle.ones([2])
        x.stop_gradient = False
        Double.apply(x).sum().backward()
        assert x.grad.tolist() == [2, 2]
    """
    exec(f"import paddle\n{textwrap.dedent(source)}\n{textwrap.dedent(layer)}", {"__name__": "public"})


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
    from paddle.base.framework import Variable  # type: ignore[import-not-found]

    x = paddle.ones([1])
    assert isinstance(x, Variable)
    assert not isinstance(x.numpy(), Variable)
    with paddle.pir_utils.IrGuard(), paddle.static.program_guard(paddle.static.Program()):
        assert not paddle.in_dynamic_mode()
        assert isinstance(paddle.static.data("x", [1]), Variable)
    assert paddle.in_dynamic_mode()
