"""What no single call shows: grad mode, hooks, layers, optimizers. Name to a function of a library, and its arguments."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import calls_linalg
import numpy as np
from calls_numbers import labels
from calls_shape import INDEXED
from described import Library
from draws import DISTINCT, FLOATS, Strategy, call, one, tensor, tensors
from hypothesis import strategies as st


class Script(NamedTuple):
    """A function of a library and of arguments."""

    run: Any
    arguments: Strategy[Any] = call()


F = FLOATS
LEAF = ("leaf",)
MATRIX = tensor("float64", (2, 3), DISTINCT)
X = tensors(F, ((2, 3), (3,), ()), DISTINCT)
DTYPE_NAMES = "bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 uint8".split()


# --------------------------------------------------------------------------- grad mode and gradients
def modes(paddle: Library, name: str, x: Any) -> Any:
    mode = getattr(paddle, name)
    with mode() if name != "set_grad_enabled" else mode(False):
        inside = x * 2
        state = paddle.is_grad_enabled()

    @(mode() if name != "set_grad_enabled" else paddle.no_grad())
    def decorated(x: Any) -> Any:
        return x * 3

    return [state, paddle.is_grad_enabled(), inside, decorated(x), x * 1]


def grad(paddle: Library, x: Any, y: Any, **options: Any) -> Any:
    out = x * y + x
    found = paddle.grad(out, [x, y], **options)
    return [found, None if x.grad is None else x.grad]


def grad_of_grad(paddle: Library, x: Any) -> Any:
    (first,) = paddle.grad((x * x * x).sum(), x, create_graph=True)
    (second,) = paddle.grad(first.sum(), x)
    return [first.detach(), second]


def grad_misuse(paddle: Library, x: Any, what: str) -> Any:
    out = (x * 2).sum()
    if what == "unused":
        return paddle.grad(out, paddle.to_tensor([1.0], stop_gradient=False))
    if what == "allowed":
        return paddle.grad(out, [paddle.to_tensor([1.0], stop_gradient=False), x], allow_unused=True)
    if what == "twice":
        return [paddle.grad(out, x, retain_graph=True), paddle.grad(out, x)]
    return paddle.grad([out], [x], grad_outputs=[paddle.to_tensor([1.0, 2.0])])


def backward(paddle: Library, x: Any, **options: Any) -> Any:
    y = (x * x).sum()
    paddle.autograd.backward([y, x.sum()], [None, paddle.to_tensor(2.0, x.dtype)], **options)
    return x.grad


def backward_twice(paddle: Library, x: Any, retain: bool) -> Any:
    y = (x * x).sum()
    y.backward(retain_graph=retain)
    y.backward()
    return x.grad


def backward_with(paddle: Library, x: Any, cotangent: Any) -> Any:
    (x * 3).backward(cotangent)
    return x.grad


def cleared(paddle: Library, x: Any, name: str, zero: Any) -> Any:
    x.sum().backward()
    getattr(x, name)(*zero)
    return x.grad


def hooked(paddle: Library, x: Any, on_result: bool, remove: bool) -> Any:
    y = x * 2
    handle = (y if on_result else x).register_hook(lambda g: g * 10)
    if remove:
        handle.remove()
    y.sum().backward()
    return x.grad


def retained(paddle: Library, x: Any) -> Any:
    y = x * 2
    y.retain_grads()
    (y * y).sum().backward()
    return [y.grad, x.grad]


def py_layer(paddle: Library, x: Any, scale: Any) -> Any:
    class Scaled(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, scale: float) -> Any:
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * scale

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return g * 2 * x * ctx.scale

    out = Scaled.apply(x, scale)
    return [out, isinstance(Scaled, type), out.is_leaf]


def once(paddle: Library, x: Any) -> Any:
    class Twice(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        @paddle.autograd.py_layer.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return Twice.apply(x)


def saved_hooks(paddle: Library, x: Any) -> Any:
    seen = []

    def pack(tensor: Any) -> Any:
        seen.append("pack")
        return tensor.numpy()

    def unpack(values: Any) -> Any:
        seen.append("unpack")
        return paddle.to_tensor(values)

    with paddle.autograd.saved_tensors_hooks(pack, unpack):
        y = x * x
    y.sum().backward()
    return [sorted(set(seen)), x.grad]


# --------------------------------------------------------------------------- Tensors
def attribute(paddle: Library, x: Any, name: str) -> Any:
    found = getattr(x, name)
    return str(found) if name in ("place", "dtype") else found


def conversion(paddle: Library, x: Any, convert: Any) -> Any:
    return convert(x)


def assigned(paddle: Library, x: Any, name: str, value: Any) -> Any:
    setattr(x, name, value)
    return [getattr(x, name), x * 2]


def grad_assigned(paddle: Library, x: Any, value: Any) -> Any:
    x.grad = value
    (x * 2).sum().backward()
    return x.grad


def dtype_named(paddle: Library, name: str) -> Any:
    dtype = getattr(paddle, name)
    return [str(dtype), dtype == getattr(paddle, name), dtype == paddle.float32, paddle.zeros([1], dtype).dtype == dtype,
            isinstance(dtype, paddle.dtype), len({dtype, getattr(paddle, name)})]  # fmt: skip


def default_dtype(paddle: Library, name: Any) -> Any:
    before = paddle.get_default_dtype()
    try:
        paddle.set_default_dtype(name)
        return [before, paddle.get_default_dtype(), paddle.ones([2]), paddle.to_tensor(1.5)]
    finally:
        paddle.set_default_dtype("float32")


def places(paddle: Library) -> Any:
    return [repr(paddle.CPUPlace()), paddle.get_device(), paddle.set_device("cpu") is not None, paddle.in_dynamic_mode(),
            paddle.ones([1]).place.is_cpu_place(), paddle.ones([1]).place.is_gpu_place()]  # fmt: skip


def static_mode(paddle: Library) -> Any:
    paddle.enable_static()
    try:
        inside = paddle.in_dynamic_mode()
    finally:
        paddle.disable_static()
    return [inside, paddle.in_dynamic_mode()]


def size(paddle: Library, x: Any) -> Any:
    shape = x.shape
    return [list(shape), shape == list(shape), shape[:1], len(shape), shape.numel(), isinstance(shape, paddle.Size)]


# --------------------------------------------------------------------------- layers
def layer(paddle: Library, name: str, x: Any, options: Any, others: Any = ()) -> Any:
    made = getattr(paddle.nn, name)(*options)
    for parameter in made.parameters():
        values = (np.arange(parameter.size).reshape(parameter.shape) % 5 - 2) / 2
        parameter.set_value(values.astype("float32"))
    made.eval()
    out = made(x, *others)
    out.sum().backward()
    shapes = [(n, list(p.shape), p.stop_gradient, p.is_leaf) for n, p in made.named_parameters()]
    return [out.detach(), repr(made), repr(shapes), [p.grad for p in made.parameters()]]


def module(paddle: Library, x: Any) -> Any:
    class Net(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = paddle.nn.Linear(3, 2)
            self.scale = self.create_parameter([2], default_initializer=paddle.nn.initializer.Constant(2.0))
            self.register_buffer("offset", paddle.ones([2]))
            self.rest = paddle.nn.LayerList([paddle.nn.ReLU(), paddle.nn.Identity()])

        def forward(self, x: Any) -> Any:
            x = self.first(x) * self.scale + self.offset
            for one_layer in self.rest:
                x = one_layer(x)
            return x

    net = Net()
    for parameter in net.parameters():
        parameter.set_value(np.full(parameter.shape, 0.5, "float32"))
    out = net(x)
    out.sum().backward()
    names = [n for n, _ in net.named_parameters()]
    state = {k: list(v.shape) for k, v in net.state_dict().items()}
    net.eval()
    return [out.detach(), names, repr(state), net.training, net.first.training, len(net.sublayers()), len(list(net.children())),
            [n for n, _ in net.named_sublayers()], net.scale.grad, repr(net.rest)]  # fmt: skip


def layer_misuse(paddle: Library, what: str) -> Any:
    made = paddle.nn.Linear(2, 2)
    if what == "forward":
        return paddle.nn.Layer()(paddle.ones([1]))
    if what == "parameter":
        return made.add_parameter("w", 3)
    if what == "sublayer":
        return made.add_sublayer("w", 3)
    if what == "missing":
        return made.nothing
    return made.register_buffer("b", 3)


def containers(paddle: Library, x: Any) -> Any:
    made = paddle.nn.Sequential(("a", paddle.nn.Tanh()), ("b", paddle.nn.Softmax()))
    plain = paddle.nn.Sequential(paddle.nn.Tanh(), paddle.nn.ReLU())
    kept = paddle.nn.ParameterList([paddle.create_parameter([2], "float32")])
    return [made(x), repr(made), len(made), repr(plain), type(plain[1]).__name__, len(kept), len(kept.parameters())]


def parameter(paddle: Library, shape: Any, options: dict[str, Any]) -> Any:
    made = paddle.create_parameter(shape, "float32", **options)
    return [list(made.shape), made.stop_gradient, made.trainable, made.is_leaf, isinstance(made, paddle.Tensor),
            isinstance(made, paddle.nn.Parameter), float(made.sum()) if options.get("is_bias") else 0.0]  # fmt: skip


def initialised(paddle: Library, name: str, options: Any) -> Any:
    made = paddle.create_parameter(
        [4, 3], "float32", default_initializer=getattr(paddle.nn.initializer, name)(*options)
    )
    fixed = name in ("Constant", "Assign")
    return [list(made.shape), made.detach() if fixed else None, bool(abs(made).max() <= 10)]


def named_parameter(paddle: Library, trainable: bool) -> Any:
    attr = paddle.ParamAttr(name=None, initializer=paddle.nn.initializer.Constant(3.0), trainable=trainable)
    made = paddle.nn.Linear(2, 1, weight_attr=attr, bias_attr=False)
    return [made.weight.detach(), made.weight.stop_gradient, made.bias]


def descended(paddle: Library, x: Any, rate: float, decay: Any, zero: bool) -> Any:
    weight = paddle.create_parameter([3], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
    optimizer = paddle.optimizer.SGD(learning_rate=rate, parameters=[weight], weight_decay=decay)
    for _ in range(2):
        (weight * x).sum().backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=zero)
    return [weight.detach(), weight.grad, optimizer.get_lr()]


LAYERS: dict[str, tuple[Any, ...]] = {
    "BCEWithLogitsLoss": ((), tensor("float32", (3,), (0.0, 1.0), ("constant",))),
    "CrossEntropyLoss": ((), labels((2,))), "MSELoss": ((), tensor("float32", (2, 3))),
    "Dropout": ((0.5,),), "GELU": ((),), "Identity": ((),),
    "LayerNorm": ((3,),), "Linear": ((3, 2),), "ReLU": ((),), "Sigmoid": ((),), "Silu": ((),), "Softmax": ((0,),),
    "Swish": ((),), "Tanh": ((),),
}  # fmt: skip


def layer_script(name: str) -> Script:
    options, *others = LAYERS[name]
    shape = (3,) if name == "BCEWithLogitsLoss" else (2, 3)
    arguments = call(tensor("float32", shape), options, tuple(others))
    return Script(lambda paddle, x, options, others: layer(paddle, name, x, options, others), arguments)


SCRIPTS: dict[str, Script] = {
    **{f"{owner}.{n}": Script(run, arguments) for n, (run, arguments) in calls_linalg.SCRIPTS.items() for owner in ("linalg", "Tensor")},
    **{n: Script(lambda p, x, n=n: modes(p, n, x), call(X)) for n in ("no_grad", "enable_grad", "set_grad_enabled")},
    "is_grad_enabled": Script(lambda p, x: modes(p, "no_grad", x), call(X)),
    "grad": Script(grad, call(tensor("float64", (3,), kinds=LEAF), tensor("float64", (3,), kinds=LEAF), retain_graph=st.booleans(), create_graph=st.booleans())),
    "grad twice": Script(grad_of_grad, call(tensors(F, ((3,), ()), kinds=LEAF))),
    "grad misuse": Script(grad_misuse, call(tensor("float64", (3,), kinds=LEAF), one("unused", "allowed", "twice", "shape"))),
    "backward": Script(backward, call(tensors(F, ((3,), ()), kinds=LEAF), retain_graph=st.booleans())),
    "Tensor.backward": Script(backward_with, call(tensors(("float64",), ((3,), ()), kinds=LEAF), one(None, tensor("float64", (3,)), tensor("float64", (2,)), 1.5))),
    "backward twice": Script(backward_twice, call(tensors(F, ((3,),), kinds=LEAF), one(True, False))),
    **{f"Tensor.{n}": Script(lambda p, x, z, n=n: cleared(p, x, n, z), call(tensor("float64", (3,), kinds=LEAF), one((), (True,), (False,)))) for n in ("clear_grad", "clear_gradient")},
    "Tensor.register_hook": Script(hooked, call(tensors(F, ((3,),)), st.booleans(), st.booleans())),
    "Tensor.retain_grads": Script(retained, call(tensors(F, ((3,),), kinds=LEAF))),
    "PyLayer": Script(py_layer, call(X, one(2.0, 3))), "PyLayerContext": Script(py_layer, call(X, one(2.0))),
    "once_differentiable": Script(once, call(X)),
    "saved_tensors_hooks": Script(saved_hooks, call(tensor("float64", (3,), kinds=LEAF))),
    **{f"Tensor.{n}": Script(lambda p, x, n=n: attribute(p, x, n), call(INDEXED)) for n in "shape dtype ndim size place is_leaf stop_gradient inplace_version grad persistable".split()},
    "Tensor.grad_fn": Script(lambda p, x: [x.grad_fn is None, (x * 2).grad_fn is None], call(X)),
    "Tensor.name": Script(lambda p, x: [isinstance(x.name, str), assigned(p, x, "name", "other")[0]], call(X)),
    "Tensor.stop_gradient": Script(lambda p, x, v: assigned(p, x, "stop_gradient", v), call(X, one(True, False, 1, None))),
    "Tensor.grad": Script(grad_assigned, call(tensor("float64", (3,), kinds=LEAF), one(None, tensor("float64", (3,), kinds=("constant",)), 1.5))),
    **{f"Tensor.{n}": Script(lambda p, x, n=n: getattr(x, n)(), call(INDEXED)) for n in "numpy tolist detach gradient detach_ zero_ dim ndimension element_size cpu is_floating_point is_complex is_integer".split()},
    "Tensor.cuda": Script(lambda p, x: x.cuda(), call(X)),
    "Tensor.to": Script(lambda p, x, d: x.to(d), call(X, one("float64", "int64", tensor("float32", ())))),
    "Tensor.item": Script(lambda p, x, i: x.item(*i), call(INDEXED, one((), (0,), (0, 0), (9,)))),
    "Tensor.fill_": Script(lambda p, x, v: x.fill_(v), call(INDEXED, one(1.5, 2, True, "text", None))),
    "Tensor.copy_": Script(lambda p, x, y: x.copy_(y, True), call(tensors(F, ((2, 3), (3,)), kinds=("constant", "result")), tensors(F, ((2, 3), (3,), ())))),
    "Tensor.set_": Script(lambda p, x, y: x.set_(y), call(tensors(("float64",), ((2, 3),), kinds=("constant", "result")), tensors(("float64",), ((3,), (2, 3)), kinds=("constant", "leaf")))),
    "Tensor.set_value": Script(lambda p, x, v: [x.set_value(v), x], call(tensors(("float64",), ((3,),)), one(np.ones(3), np.ones(2), np.ones(3, "float32"), tensor("float64", (3,)), [1.0]))),
    **{f"Tensor.__{n}__": Script(lambda p, x, f=f: f(x), call(INDEXED)) for n, f in {"float": float, "int": int, "complex": complex, "bool": bool, "len": len, "iter": lambda x: list(iter(x)), "array": np.asarray, "repr": repr}.items()},
    "Tensor.__index__": Script(lambda p, x: [10, 11, 12, 13, 14, 15, 16][x], call(tensors(("int64", "float64", "bool"), ((), (1,), (2,)), (0, 1, 2), ("constant",)))),
    "Tensor.__hash__": Script(lambda p, x: [hash(x) == hash(x), len({x, x})], call(X)),
    "Tensor.__format__": Script(lambda p, x, s: format(x, s), call(tensors(F, ((), (1,), (2,))), one("", ".2f"))),
    "Tensor.__deepcopy__": Script(lambda p, x: copy.deepcopy(x), call(X)),
    **{n: Script(lambda p, n=n: dtype_named(p, n)) for n in DTYPE_NAMES},
    "dtype": Script(lambda p: [p.float32 == p.ones([1]).dtype, isinstance(p.int64, p.dtype)]),
    **{n: Script(default_dtype, call(one("float64", "float32", "int64", np.float64, "nothing"))) for n in ("get_default_dtype", "set_default_dtype")},
    **{n: Script(places) for n in "get_device set_device CPUPlace is_compiled_with_cuda".split()},
    "CUDAPlace": Script(lambda p: callable(p.CUDAPlace)),
    **{n: Script(static_mode) for n in "enable_static disable_static in_dynamic_mode".split()},
    "Size": Script(size, call(INDEXED)),
    "Tensor": Script(lambda p, x: [isinstance(x, p.Tensor), type(x).__name__, isinstance(1.0, p.Tensor)], call(X)),
    **{name: layer_script(name) for name in LAYERS},
    "Embedding": Script(lambda p, x: layer(p, "Embedding", x, (3, 2)), call(labels((2,)))),
    **{n: Script(module, call(tensor("float32", (2, 3)))) for n in ("Layer", "LayerList")},
    "Layer misuse": Script(layer_misuse, call(one("forward", "parameter", "sublayer", "missing", "buffer"))),
    **{n: Script(containers, call(tensor("float32", (2, 3)))) for n in ("Sequential", "ParameterList")},
    **{n: Script(parameter, call(one([2, 3], [2]), one({}, {"is_bias": True}))) for n in ("Parameter", "create_parameter")},
    **{n: Script(lambda p, o, n=n: initialised(p, n, o), call(options)) for n, options in {
        "Constant": (1.5,), "Normal": (0.0, 0.5), "Uniform": (-0.5, 0.5), "XavierNormal": (), "XavierUniform": (), "Assign": (np.ones((4, 3)),)}.items()},
    "Initializer": Script(lambda p: issubclass(p.nn.initializer.Constant, p.nn.initializer.Initializer)),
    "ParamAttr": Script(named_parameter, call(st.booleans())),
    "SGD": Script(descended, call(tensor("float32", (3,), kinds=("constant",)), one(0.5, 0.125), one(None, 0.5), st.booleans())),
}  # fmt: skip
