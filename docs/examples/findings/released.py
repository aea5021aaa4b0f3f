"""Layers of released packages, as `ref:` names them: `released:ReverseSort`.

A layer is taken out of the file in which its package ships it: each statement of that file is executed as it stands,
and statements that fail, such as an import of a package that is not installed, are left out. So a layer can be checked
without the dozens of packages that the rest of its package asks for, and no code of others is kept here.
"""

from __future__ import annotations
import __future__

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = Path(__file__).parents[3] / "build" / "findings" / "packages"
"""Where `run.py` installs the packages."""

NLP, DIFFUSERS, SPEECH, FORMERS = "paddlenlp/transformers", "ppdiffusers", "paddlespeech", "paddleformers"
VISION = f"{FORMERS}/transformers/ernie4_5_moe_vl/model"
ERNIE, DEEPSEEK = f"{FORMERS}/cli/train/ernie_pretrain/models", f"{FORMERS}/cli/train/deepseek_v3_pretrain"
FILES = {
    "ReverseSort": f"{NLP}/reformer/modeling.py",
    "GeLUFunction": f"{NLP}/bloom/modeling.py",
    "XDropout": f"{NLP}/deberta/modeling.py",
    "XDropoutV2": f"{NLP}/deberta_v2/modeling.py:XDropout",
    "QuickLora": "paddlenlp/peft/lora/lora_quick_layers.py",
    "HadaWeight": f"{DIFFUSERS}/peft/tuners/loha/layer.py",
    "HadaWeightCP": f"{DIFFUSERS}/peft/tuners/loha/layer.py",
    "BackwardHookFunction": f"{DIFFUSERS}/accelerate/paddle_hooks.py",
    "SlimLsqFunc": "paddleslim/quant/quanters/lsq_func.py:LsqFunc",
    "SlimLsqPlusActFunc": "paddleslim/quant/quanters/lsq_func.py:LsqPlusActFunc",
    "GradMultiply": f"{SPEECH}/s2t/models/wav2vec2/modules/wav2vec2_model.py",
    "ReversalOfSpeech": f"{SPEECH}/t2s/modules/adversarial_loss/gradient_reversal.py:GradientReversalFunction",
    "ReversalOfVector": f"{SPEECH}/vector/modules/layer.py:GradientReversalFunction",
    "FakeGateOfPretrain": f"{DEEPSEEK}/modeling.py:FakeGate",
    "AuxiliaryLossOfPretrain": f"{DEEPSEEK}/modeling.py:AddAuxiliaryLoss",
    "MPScaleOfErnie": f"{ERNIE}/sequence_parallel_utils.py:MPScale",
    "FakeCloneOfErnie": f"{ERNIE}/utils.py:FakeClone",
    "FakeGather": f"{ERNIE}/utils.py",
    "RouterLossOfErnie": f"{ERNIE}/ernie/modeling_moe.py:FakeMoERouterLoss",
    "ReshapeKeepGradDtype": f"{ERNIE}/moe/moe_layer.py",
    "GateMatmulOfErnie": f"{ERNIE}/moe/top2_gate.py:FusedGateDetachMatmul",
    "GateMatmul": f"{FORMERS}/nn/moe/topk_gate.py:FusedGateDetachMatmul",
    "GateMatmulOfVision": f"{VISION}/moe/topk_gate.py:FusedGateDetachMatmul",
    "FakeClone": f"{FORMERS}/nn/moe/utils.py",
    "FakeCloneOfVision": f"{VISION}/moe/moe_layer.py:FakeClone",
    "AuxiliaryLoss": f"{FORMERS}/nn/moe_deepep/moe_loss.py:AddAuxiliaryLoss",
    "AuxiliaryLossOfDeepSeek": f"{FORMERS}/transformers/deepseek_v3/modeling.py:AddAuxiliaryLoss",
    "AuxiliaryLossOfGlm": f"{FORMERS}/transformers/glm4_moe/modeling.py:AddAuxiliaryLoss",
    "FakeGate": f"{FORMERS}/transformers/deepseek_v3/modeling.py",
    "RouterLoss": f"{FORMERS}/transformers/ernie4_5_moe/modeling.py:FakeMoERouterLoss",
    "RouterLossOfVision": f"{VISION}/modeling_moe.py:FakeMoERouterLoss",
    "NoopSaveInputs": f"{FORMERS}/transformers/refined_recompute.py:_NoopSaveInputs",
    "NoopSaveInputsOfVision": f"{VISION}/refined_recompute/utils.py:_NoopSaveInputs",
}
"""Name here → file in its package, and behind a colon the name there if it is another one."""


def __getattr__(name: str) -> Any:
    """The layer of that name, from the file of its package."""
    if name not in FILES:
        raise AttributeError(name)
    file, _, there = FILES[name].partition(":")
    return layer(PACKAGES / file, there or name)


def layer(path: Path, name: str) -> Any:
    """One name of a file, all of whose statements are executed one by one."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        code = compile(
            ast.Module([statement], []),
            str(path),
            "exec",
            flags=__future__.annotations.compiler_flag,
            dont_inherit=True,
        )
        try:
            exec(code, vars(module))
        except Exception:
            if getattr(statement, "name", "") == name:
                raise
    return getattr(module, name)
