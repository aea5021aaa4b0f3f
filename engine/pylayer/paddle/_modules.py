"""The modules of `paddle`, and where in the engine their names are: the facade's one table."""

from __future__ import annotations

MODULES = {
    "": (
        "ops array autograd compatibility device dtype grad_mode nn.initializer saving size "
        "static.recorder tensor dtype=dtype:DType bool=dtype:bool_ half=dtype:float16 float=dtype:float32 "
        "double=dtype:float64 short=dtype:int16 int=dtype:int32 long=dtype:int64 cfloat=dtype:complex64 "
        "cdouble=dtype:complex128 complex=ops.complexes:complex_"
    ),
    "amp": "compatibility device",
    "autograd": "autograd derivatives grad_mode py_layer saved Function=py_layer:PyLayer",
    "autograd.py_layer": "py_layer",
    "base": (
        "compatibility device nn.initializer:ParamAttr static.backward static.executor static.in_use "
        "static.program static.scope tensor"
    ),
    "base.core": ("compatibility:grad_var_suffix device ops.random:Generator static.scope:Scope DataType=dtype:DType"),
    "base.core.eager": "py_layer:PyLayer tensor:Tensor _add_backward_final_hook=hooks:at_end_of_backward",
    "base.dygraph": "autograd grad_mode compatibility",
    "base.dygraph.base": "autograd grad_mode compatibility",
    "base.framework": (
        "compatibility device static.in_use static.program parameter EagerParamBase=parameter:Parameter "
        "_current_expected_place=device:current_place"
    ),
    "base.unique_name": "compatibility:generate guard=compatibility:name_guard",
    "base.wrapped_decorator": "compatibility:signature_safe_contextmanager,wrap_decorator",
    "device": "array device",
    "distributed": "distributed.communication distributed.group is_available=device:yes",
    "distributed.collective": (
        "distributed.communication distributed.group _get_default_group=distributed.group:world_group "
        "distributed.model_parallel:_c_concat,_c_identity,_c_split,_mp_allreduce"
    ),
    "distributed.communication": "distributed.communication distributed.group",
    "distributed.communication.batch_isend_irecv": (
        "distributed.communication:P2POp,_coalescing_manager,batch_isend_irecv"
    ),
    "distributed.communication.group": (
        "distributed.communication distributed.group _get_global_group=distributed.group:world_group"
    ),
    "distributed.communication.reduce": (
        "distributed.communication:reduce distributed.group:ReduceOp _get_reduce_op=distributed.group:same_reduction"
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
        "distributed.model_parallel:c_identity_eager,c_split_eager,mp_allreduce_eager,_c_concat,_c_identity,_c_split,_mp_allreduce"
    ),
    "distributed.fleet.meta_parallel": "",
    "distributed.fleet.recompute": "recompute",
    "distributed.fleet.utils": "recompute",
    "distributed.fleet.utils.sequence_parallel_utils": "distributed.model_parallel",
    "distributed.parallel": "distributed.group",
    "fft": "ops.fourier",
    "framework": (
        "autograd grad_mode compatibility device dtype nn.initializer:ParamAttr ops.random:seed saving "
        "static.program static.recorder parameter dtype=dtype:DType"
    ),
    "geometric": "ops.positions",
    "incubate": "ops.positions",
    "incubate.autograd": (
        "Jacobian=derivatives:FunctionJacobian Hessian=derivatives:FunctionHessian derivatives:jvp,vjp"
    ),
    "incubate.autograd.utils": "derivatives:as_tensors",
    "jit": "compatibility",
    "linalg": "ops",
    "nn": "nn parameter optimizer.clip",
    "nn.functional": "nn ops",
    "nn.init": "nn.gains nn.initializer",
    "nn.initializer": "nn.gains nn.initializer",
    "nn.utils": "nn.reparametrisation nn.vectors optimizer.clip",
    "optimizer": "optimizer",
    "optimizer.lr": "optimizer.cycles optimizer.schedules",
    "pir": "static.program Value=static.variable:Variable",
    "pir_utils": "IrGuard=compatibility:static_guard DygraphPirGuard=compatibility:nullcontext",
    "regularizer": "optimizer.regularizer",
    "special": "ops",
    "static": (
        "compatibility:Variable,InputSpec static.backward static.data static.executor static.in_use "
        "static.program static.scope setitem=ops.inplace:set_items"
    ),
    "static.nn": "static.cond static.nn static.scope static.pylayer_op",
    "tensor": (  # after the first, the names of modules in it
        "ops ops:erf_,expm1_,fill_diagonal_ ops.creation:logspace,tril_indices,triu_indices ops.norms:pdist "
        "ops.inplace:assign ops.random:Generator,bernoulli,get_rng_state,seed,set_rng_state "
        "ops.joining:cat,concatenate,crop ops.shape:clone"
    ),
    "utils": "compatibility",
    "vision": "",
    "vision.models": "nn.resnet",
}
"""By module, below ``paddle``, where its names come from, the first that has one:

    ops.fourier       what the module of the engine, or all modules of the package, have of the release's names there
    dtype:a,b         these, whatever the release has
    bool=dtype:bool_  the one, under another name
"""

ALSO = {
    "core": "base.core",
    "framework.core": "base.core",
    "utils.unique_name": "base.unique_name",
    "distributed.stream": "distributed.communication.stream",
}
"""Modules that stand in another as well."""
