"""The facade: Paddle's names, bound to the engine's objects, and nothing besides."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import pylayer
import pylayer.paddle as paddle

USED_BY_LAYERS = [
    "to_tensor",
    "zeros",
    "ones",
    "full",
    "empty",
    "zeros_like",
    "empty_like",
    "arange",
    "linspace",
    "randn",
    "rand",
    "uniform",
    "normal",
    "randint",
    "seed",
    "bernoulli",
    "clone",
    "reshape",
    "unsqueeze",
    "squeeze",
    "cast",
    "transpose",
    "concat",
    "stack",
    "split",
    "chunk",
    "tile",
    "roll",
    "flip",
    "tril",
    "triu",
    "expand",
    "expand_as",
    "broadcast_to",
    "flatten",
    "t",
    "index_select",
    "gather",
    "gather_nd",
    "scatter",
    "scatter_nd_add",
    "take_along_axis",
    "put_along_axis",
    "index_sample",
    "masked_fill",
    "where",
    "sum",
    "mean",
    "prod",
    "max",
    "min",
    "argmax",
    "std",
    "var",
    "norm",
    "cumsum",
    "logsumexp",
    "numel",
    "abs",
    "clip",
    "divide",
    "floor",
    "sign",
    "exp",
    "log",
    "log1p",
    "expm1",
    "sin",
    "cos",
    "tanh",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "square",
    "sigmoid",
    "erf",
    "pow",
    "scale",
    "maximum",
    "minimum",
    "floor_divide",
    "remainder",
    "matmul",
    "addmm",
    "dot",
    "bmm",
    "mv",
    "outer",
    "einsum",
    "complex",
    "real",
    "imag",
    "isnan",
    "isfinite",
    "allclose",
    "equal",
    "equal_all",
    "logical_and",
    "logical_or",
    "logical_not",
    "sort",
    "argsort",
    "topk",
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "is_grad_enabled",
    "grad",
    "set_device",
    "get_device",
    "tanh_",
    "scatter_",
]

METHODS = [
    "shape",
    "dtype",
    "ndim",
    "stop_gradient",
    "grad",
    "T",
    "numpy",
    "item",
    "tolist",
    "clone",
    "detach",
    "detach_",
    "backward",
    "clear_grad",
    "register_hook",
    "reshape",
    "unsqueeze",
    "sum",
    "sign",
    "cast",
    "transpose",
    "abs",
    "clip",
    "floor",
    "astype",
    "cumsum",
    "flatten",
    "exp",
    "scatter_",
    "take_along_axis",
    "expand",
    "mean",
    "t",
    "masked_fill",
    "numel",
    "scale",
    "expand_as",
    "pow",
    "put_along_axis_",
    "set_",
    "sqrt",
    "is_contiguous",
    "contiguous",
    "index_select",
    "matmul",
    "add_",
    "scale_",
    "fill_",
    "zero_",
    "gather",
    "tanh",
    "argmax",
    "max",
    "min",
    "norm",
]

FUNCTIONAL = [
    "relu",
    "gelu",
    "silu",
    "sigmoid",
    "softmax",
    "log_softmax",
    "softplus",
    "cross_entropy",
    "mse_loss",
    "linear",
    "dropout",
    "layer_norm",
    "one_hot",
    "leaky_relu",
    "elu",
    "pad",
]


@pytest.mark.parametrize("name", USED_BY_LAYERS)
def test_names_that_layers_use(name):
    assert callable(getattr(paddle, name))


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_layers_use(name):
    assert hasattr(paddle.Tensor, name)


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_functions_that_layers_use(name):
    assert callable(getattr(paddle.nn.functional, name))


def test_the_version_is_the_engines_own():
    assert paddle.__version__ == pylayer.__version__


def test_dtypes_are_found_under_their_names():
    for name in ("float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool"):
        assert getattr(paddle, name).name == name
        assert paddle.zeros([1], name).dtype is getattr(paddle, name)
    assert isinstance(paddle.float32, paddle.dtype)


@pytest.mark.parametrize(
    ("module", "name", "phrase"),
    [
        (paddle, "tanhh", r"paddle\.tanhh is not part of the bundled engine\. Did you mean paddle\.tanh"),
        (paddle.nn.functional, "relu7", r"paddle\.nn\.functional\.relu7 .* paddle\.nn\.functional\.relu"),
        (paddle.autograd, "PyLayerr", r"Did you mean paddle\.autograd\.PyLayer"),
        (paddle.autograd.py_layer, "nothing", r"paddle\.autograd\.py_layer\.nothing"),
        (paddle.linalg, "eigvalsh2", r"paddle\.linalg\.eigvalsh2"),
        (paddle.nn.initializer, "Orthogonal2", r"paddle\.nn\.initializer\.Orthogonal2"),
        (paddle.optimizer, "Shampoo", r"paddle\.optimizer\.Shampoo is not part"),
    ],
)
def test_a_name_that_is_missing_is_said_to_be_so(module, name, phrase):
    with pytest.raises(AttributeError, match=phrase):
        getattr(module, name)
    assert not hasattr(module, name)


def test_reexported_names_are_the_same_objects():
    assert paddle.autograd.PyLayer is paddle.autograd.py_layer.PyLayer
    assert paddle.grad is paddle.autograd.grad
    assert paddle.tanh is paddle.Tensor.tanh
    assert paddle.nn.functional.tanh is paddle.tanh


@pytest.mark.parametrize(
    "name", [n for n in USED_BY_LAYERS if n not in ("no_grad", "enable_grad", "set_grad_enabled", "is_grad_enabled")]
)
def test_public_functions_are_documented_and_take_arguments_by_name(name):
    signature = inspect.signature(getattr(paddle, name))
    assert all(p.kind is not p.POSITIONAL_ONLY for p in signature.parameters.values())


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("tanh", {"x": np.ones(2)}),
        ("reshape", {"x": np.ones(2), "shape": [2, 1]}),
        ("transpose", {"x": np.ones((2, 3)), "perm": [1, 0]}),
        ("concat", {"x": [np.ones(2)], "axis": 0}),
        ("sum", {"x": np.ones(2), "axis": 0, "keepdim": True}),
        ("matmul", {"x": np.ones((2, 2)), "y": np.ones((2, 2)), "transpose_y": True}),
        ("clip", {"x": np.ones(2), "min": 0.0, "max": 2.0}),
        ("add", {"x": np.ones(2), "y": np.ones(2)}),
    ],
)
def test_arguments_by_name_with_a_name_of_the_result(function, arguments):
    as_tensors = {
        key: [paddle.to_tensor(v) for v in value] if key == "x" and isinstance(value, list) else
        paddle.to_tensor(value) if isinstance(value, np.ndarray) else value
        for key, value in arguments.items()
    }  # fmt: skip
    assert isinstance(getattr(paddle, function)(**as_tensors, name=None), paddle.Tensor)
