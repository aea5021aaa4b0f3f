"""The modules of `paddle`: a table of where their names are in the engine, and the error for
missing names.
"""

from __future__ import annotations

import difflib
import functools
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pylayer.ops.methods import FORMS_IN_PLACE
from pylayer.ops.spellings import ALIASES, accept_spellings
from pylayer.release import (
    FACADE,
    StandIn,
    engine_objects,
    paddles,
    release_names,
    shared_names,
    stand_in,
)

MODULES = {
    "": (
        "ops tensor.array tape.autograd paddle._compatibility tensor.dtype tape.grad_mode "
        "nn.initializer tensor.size static.recorder tensor.tensor "
        "dtype=tensor.dtype:DType bool=tensor.dtype:bool_ half=tensor.dtype:float16 "
        "float=tensor.dtype:float32 double=tensor.dtype:float64 short=tensor.dtype:int16 "
        "int=tensor.dtype:int32 long=tensor.dtype:int64 cfloat=tensor.dtype:complex64 "
        "cdouble=tensor.dtype:complex128 complex=ops.complexes:complex_ "
        "as_tensor=ops.creation:to_tensor asarray=ops.creation:to_tensor "
        "from_numpy=ops.creation:to_tensor broadcast_shapes=ops.shape:broadcast_shape"
    ),
    "amp": "paddle._compatibility tensor.array",
    "autograd": (
        "tape.autograd tape.grad_mode layer.py_layer "
        "tape.node:saved_tensors_hooks Function=layer.py_layer:PyLayer"
    ),
    "autograd.py_layer": "layer.py_layer",
    "base": (
        "paddle._compatibility tensor.array nn.initializer:ParamAttr static.backward "
        "static.executor static.current_program static.program tensor.tensor"
    ),
    "base.core": ("tensor.array ops.random:Generator DataType=tensor.dtype:DType"),
    "base.core.eager": (
        "layer.py_layer:PyLayer tensor.tensor:Tensor "
        "_add_backward_final_hook=tape.hooks:at_end_of_backward"
    ),
    "base.dygraph": (
        "no_grad=tape.grad_mode:no_grad_around tape.autograd tape.grad_mode paddle._compatibility"
    ),
    "base.dygraph.base": (
        "no_grad=tape.grad_mode:no_grad_around tape.autograd tape.grad_mode paddle._compatibility"
    ),
    "base.wrapped_decorator": "",
    "base.framework": (
        "paddle._compatibility tensor.array static.current_program static.program "
        "tape.symbol:Parameter "
        "EagerParamBase=tape.symbol:Parameter _current_expected_place=tensor.array:current_place"
    ),
    "base.unique_name": "tensor.unique_names:generate guard=tensor.unique_names:name_guard",
    "device": "tensor.array",
    "distributed": (
        "distributed.communication distributed.group is_available=tensor.array:always_true"
    ),
    "distributed.collective": (
        "distributed.communication distributed.group "
        "_get_default_group=distributed.group:world_group "
        "distributed.model_parallel:_c_concat,_c_identity,_c_split,_mp_allreduce"
    ),
    "distributed.communication": "distributed.communication distributed.group",
    "distributed.communication.batch_isend_irecv": (
        "distributed.communication:P2POp,_coalescing_manager,batch_isend_irecv"
    ),
    "distributed.communication.group": (
        "distributed.communication distributed.group "
        "_get_global_group=distributed.group:world_group"
    ),
    "distributed.communication.reduce": (
        "distributed.communication:reduce distributed.group:ReduceOp "
        "_get_reduce_op=distributed.group:same_reduction"
    ),
    "distributed.communication.stream": (
        "alltoall_single=distributed.communication:stream_alltoall_single distributed.communication"
    ),
    "distributed.fleet": "distributed.topology",
    "distributed.fleet.base": "",
    "distributed.fleet.base.topology": "distributed.topology",
    "distributed.fleet.layers": "",
    "distributed.fleet.layers.mpu": "",
    "distributed.fleet.layers.mpu.mp_ops": (
        ""
        "distributed.model_parallel:c_identity_eager,c_split_eager,mp_allreduce_eager,_c_concat,_c_identity,_c_split,_mp_allreduce"
    ),
    "distributed.fleet.meta_parallel": "",
    "distributed.fleet.recompute": "layer.recompute",
    "distributed.fleet.utils": "layer.recompute",
    "distributed.fleet.utils.sequence_parallel_utils": "distributed.model_parallel",
    "distributed.parallel": "distributed.group",
    "distributed.utils": "",
    "distributed.utils.moe_utils": "distributed.experts:global_gather,global_scatter",
    "fft": "ops.fourier",
    "framework": (
        "tape.autograd tape.grad_mode paddle._compatibility tensor.array tensor.dtype "
        "nn.initializer:ParamAttr ops.random:seed static.program static.recorder "
        "tape.symbol:Parameter dtype=tensor.dtype:DType "
        "_dygraph_tracer=paddle._compatibility:_dygraph_tracer"
    ),
    "geometric": "ops.positions",
    "incubate": "ops.positions",
    "incubate.autograd": "",
    "incubate.autograd.utils": "",
    "jit": "paddle._compatibility",
    "linalg": "ops",
    "nn": (
        "nn tape.symbol:Parameter Module=nn.layer:Layer "
        "ModuleList=nn.containers:LayerList SiLU=nn.layers:Silu"
    ),
    "nn.functional": "nn ops logsigmoid=ops.activation:log_sigmoid",
    "nn.init": "nn.initializer",
    "nn.initializer": "nn.initializer",
    "nn.utils": "",
    "optimizer": "optimizer",
    "pir": "static.program Value=static.variable:Variable",
    "pir_utils": "IrGuard=paddle._compatibility:static_guard",
    "regularizer": "optimizer.regularizer",
    "special": "softmax=ops.activation:legacy_softmax ops",
    "static": (
        "paddle._compatibility:Variable static.backward static.data static.executor "
        "static.current_program "
        "static.program setitem=ops.inplace:set_items"
    ),
    "static.nn": "static.cond static.nn static.pylayer_op",
    "tensor": (  # after the first, the names of modules in it
        "ops ops:erf_,expm1_,fill_diagonal_ ops.creation:logspace,tril_indices,triu_indices "
        "ops.inplace:assign "
        "ops.random:Generator,bernoulli,get_rng_state,seed,set_rng_state "
        "ops.joining:cat,concatenate ops.shape:clone"
    ),
    "utils": "",
}
"""The modules that provide the names of a module below ``paddle``; the first that has a name
provides it:

    ops.fourier                  the release's names that the module of the engine, or any module of
                                 the package, has
    tensor.dtype:a,b             these names, even if the release lacks them
    bool=tensor.dtype:bool_      one name, under another name
"""

ALSO = {
    "core": "base.core",
    "framework.core": "base.core",
    "utils.unique_name": "base.unique_name",
    "distributed.stream": "distributed.communication.stream",
}
"""Modules that are also attributes of other modules."""


class Facade(ModuleType):
    """A module of the facade. Imports set no stand-ins as its attributes, so that none hides a
    function of the same name.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, StandIn):
            super().__setattr__(name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`paddle.tensor` is also a function."""
        if paddles(self.__name__) != "paddle.tensor":
            raise TypeError(f"{paddles(self.__name__)} is a module, which cannot be called")
        return vars(self)["to_tensor"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """A stand-in for a missing name that the release has; otherwise raise the error, with the
        most similar name.
        """
        shown = paddles(self.__name__)
        if name.startswith("__"):  # names that Python itself looks up
            raise AttributeError(f"module {shown!r} has no attribute {name!r}")
        if name in release_names().get(shown, ()):
            return stand_in(f"{shown}.{name}")
        near = difflib.get_close_matches(
            name, [n for n in vars(self) if not n.startswith("_")], n=3
        )
        hint = f" Did you mean {' or '.join(f'{shown}.{n}' for n in near)}?" if near else ""
        text = f"{shown}.{name} is not part of the bundled engine.{hint}"
        raise AttributeError(text, name=name, obj=self)


@functools.cache
def names_in(source: str) -> dict[str, Any]:
    """Names that a module or package of the engine provides to the facade."""
    return {**engine_objects(source), **(FORMS_IN_PLACE if source == "ops" else {})}


def engine_name(name: str) -> str:
    """The engine's name of an object: the release has functions under other names, and classes in
    PyTorch's spelling.
    """
    if name.endswith(("1d", "2d", "3d")) and name[0].isupper():
        return name.removesuffix("d").replace("Unpool", "UnPool") + "D"
    return ALIASES.get(name, name)


def module_objects(owner: str, sources: Iterable[str]) -> dict[str, Any]:
    """The names of a module of the facade, with their objects, from its row of the table.

    Functions accept Paddle's alternative names of their arguments too.
    """
    objects: dict[str, Any] = {}
    wanted = {name: engine_name(name) for name in shared_names(owner)}
    for source in sources:
        renamed, _, place = source.rpartition("=")
        module, _, names = place.partition(":")
        if names:
            available = vars(import_module(f"pylayer.{module}")) | names_in(module)
            new = {renamed or name: available[name] for name in names.split(",")}
        else:
            available = names_in(module)
            new = {name: available[its] for name, its in wanted.items() if its in available}
        objects = {
            **{name: accept_spellings(name, value) for name, value in new.items()},
            **objects,
        }
    return objects


def fill() -> None:
    """Make the modules of the facade, each as an attribute of its parent and in `sys.modules`."""
    for path, sources in MODULES.items():
        name = f"{FACADE}.{path}".removesuffix(".")
        parent, _, last = name.rpartition(".")
        if path:
            module: ModuleType = Facade(name, f"`{paddles(name)}`.")
            sys.modules[name] = module
            module.__file__, module.__spec__ = __file__, ModuleSpec(name, None, is_package=True)
            module.__path__ = []  # so that imports of names that it lacks are looked up
            # two modules share their names with functions, which take precedence
            vars(sys.modules[parent]).setdefault(last, module)
        else:
            module = sys.modules[name]
            module.__class__ = Facade
        vars(module).update(module_objects(paddles(name), sources.split()))
    for path, place in ALSO.items():
        owner, _, last = path.rpartition(".")
        setattr(
            sys.modules[f"{FACADE}.{owner}".removesuffix(".")],
            last,
            sys.modules[f"{FACADE}.{place}"],
        )
