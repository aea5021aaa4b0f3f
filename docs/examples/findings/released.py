"""Layers of released packages, as `ref:` names them: `released:ReverseSort`.

A layer is taken out of the file in which its package ships it: of each file only the statements that define the
requested name, and the names in those, are executed, unchanged. Statements that fail, such as an import of a package
that is not installed, are left out. So a layer can be checked without the dozens of packages that the rest of its
package imports, and no code of others is kept here.
"""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = Path(__file__).parents[3] / "build" / "findings" / "packages"
"""Where `run.py` installs the packages."""

NLP, DIFFUSERS, SPEECH, FORMERS = "paddlenlp/transformers", "ppdiffusers", "paddlespeech", "paddleformers"
VISION = f"{FORMERS}/transformers/ernie4_5_moe_vl/model"
ERNIE, DEEPSEEK = f"{FORMERS}/cli/train/ernie_pretrain/models", f"{FORMERS}/cli/train/deepseek_v3_pretrain"
EXPERTS, MODELS = f"{FORMERS}/nn/moe", f"{FORMERS}/transformers"
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
    # ------------------------------------------------------------ they talk to other ranks
    "ColumnQuickLora": "paddlenlp/peft/lora/lora_quick_layers.py",
    "RowQuickLora": "paddlenlp/peft/lora/lora_quick_layers.py",
    "ConcatSePMaskedLoss": f"{NLP}/llama/modeling.py",
    "ReshardQKVOfNlp": f"{NLP}/segment_parallel_utils.py:ReshardQKV",
    "HeadLossOfErnie": f"{ERNIE}/ernie/modeling.py:FusedHeadParallelCrossEntropy",
    "AlltoAllOfErnie": f"{ERNIE}/moe/moe_layer.py:AlltoAll",
    "AlltoAllAsyncOfErnie": f"{ERNIE}/moe/moe_layer.py:AlltoAllAsync",
    "AlltoAllExpertOverlap": f"{ERNIE}/moe/moe_layer.py",
    "AllGatherOfErnie": f"{ERNIE}/sequence_parallel_utils.py:AllGatherOp",
    "AllGatherVarlenOfErnie": f"{ERNIE}/sequence_parallel_utils.py:AllGatherVarlenOp",
    "GatherOfErnie": f"{ERNIE}/sequence_parallel_utils.py:GatherOp",
    "ReduceScatterOfErnie": f"{ERNIE}/sequence_parallel_utils.py:ReduceScatterOp",
    "ScatterOfErnie": f"{ERNIE}/sequence_parallel_utils.py:ScatterOp",
    "AllGatherAsync": f"{EXPERTS}/all_gather.py",
    "AlltoAllSmart": f"{EXPERTS}/all_gather.py",
    "AlltoAllSmartXPU": f"{EXPERTS}/all_gather.py",
    "AlltoAll": f"{EXPERTS}/all_to_all.py",
    "AlltoAllAsync": f"{EXPERTS}/all_to_all.py",
    "ReshardCombineWeight": f"{EXPERTS}/moe_allgather_layer.py",
    "AllGatherGroupOp": f"{EXPERTS}/utils.py",
    "ReduceScatterGroupOp": f"{EXPERTS}/utils.py",
    "ScatterOp": f"{EXPERTS}/utils.py",
    "AllToAllOfRotary": f"{VISION}/dfnrope/modeling.py:_AllToAll",
    "AllGatherGroupOfVision": f"{VISION}/distributed/common_dist_utils.py:AllGatherGroupOp",
    "AllGatherVarlenOfVision": f"{VISION}/distributed/common_dist_utils.py:AllGatherVarlenOp",
    "ReduceScatterGroupOfVision": f"{VISION}/distributed/common_dist_utils.py:ReduceScatterGroupOp",
    "TensorBalanceByTokenType": f"{VISION}/longcontext_ops.py",
    "HeadLossOfVision": f"{VISION}/modeling.py:FusedHeadParallelCrossEntropy",
    "AllGatherAsyncOfVision": f"{VISION}/moe/moe_all_gather_layer.py:AllGatherAsync",
    "AlltoAllSmartOfVision": f"{VISION}/moe/moe_all_gather_layer.py:AlltoAllSmart",
    "AlltoAllSmartXPUOfVision": f"{VISION}/moe/moe_all_gather_layer.py:AlltoAllSmartXPU",
    "ReshardCombineWeightOfVision": f"{VISION}/moe/moe_all_gather_layer.py:ReshardCombineWeight",
    "AlltoAllOfVision": f"{VISION}/moe/moe_layer.py:AlltoAll",
    "AlltoAllAsyncOfVision": f"{VISION}/moe/moe_layer.py:AlltoAllAsync",
    "AllGatherOfVision": f"{VISION}/sequence_parallel_utils.py:AllGatherOp",
    "AllGatherVarlenOpV2": f"{VISION}/sequence_parallel_utils.py",
    "GatherOfVision": f"{VISION}/sequence_parallel_utils.py:GatherOp",
    "ScatterOfVision": f"{VISION}/sequence_parallel_utils.py:ScatterOp",
    "SliceVarlenOp": f"{VISION}/sequence_parallel_utils.py",
    "AllToAllOfTokens": f"{MODELS}/moe_layer.py:_AllToAll",
    "ReshardQKV": f"{MODELS}/segment_parallel_utils.py",
    "AllGatherVarlenOp": f"{MODELS}/sequence_parallel_utils.py",
    "FusedHeadAndCrossEntropy": f"{MODELS}/tensor_parallel_utils.py",
}
"""Name here → file in its package, and behind a colon the name there if it is another one."""


def __getattr__(name: str) -> Any:
    """The layer of that name, from the file of its package."""
    if name not in FILES:
        raise AttributeError(name)
    file, _, there = FILES[name].partition(":")
    return getattr(import_module(file.removesuffix(".py").replace("/", ".")), there or name)


class Packages(MetaPathFinder):
    """Finds the modules of the packages."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """That of a file or a folder."""
        place = PACKAGES.joinpath(*name.split("."))
        if name.partition(".")[0] not in {file.partition("/")[0] for file in FILES.values()}:
            return None
        if place.is_dir():
            return spec_from_loader(name, Parts(place / "__init__.py"), is_package=True)
        file = place.with_name(f"{place.name}.py")
        return spec_from_loader(name, Parts(file)) if file.is_file() else None


class Parts(Loader):
    """Loads a module, and executes its statements only when a name of it is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exec_module(self, module: ModuleType) -> None:
        """Find out which statement defines what."""
        self.module = module
        module.__file__ = str(self.path)
        self.defining: dict[str, list[ast.stmt]] = {}
        self.executed = set[ast.stmt]()
        source = self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        for statement in ast.parse(source).body:
            for name in dict.fromkeys(bound(statement)):
                self.defining.setdefault(name, []).append(statement)
        vars(module)["__getattr__"] = self.asked

    def asked(self, name: str) -> Any:
        """The value of a name.

        Raises:
            AttributeError: there is none, or its statements fail.
            Exception: what the definition of a function or class raises.
        """
        self.provide(name)
        if name not in vars(self.module):
            raise AttributeError(f"{self.path} gives no {name}")
        return vars(self.module)[name]

    def provide(self, name: str) -> None:
        """Execute the statements that give a name its value, each after those that give the names in it theirs."""
        for statement in self.defining.get(name, []):
            if statement not in self.executed:
                self.executed.add(statement)
                for used in ast.walk(statement):
                    if isinstance(used, ast.Name):
                        self.provide(used.id)
                self.execute(statement, name)

    def execute(self, statement: ast.stmt, name: str) -> None:
        """Execute one statement; one that fails is left out, unless it defines the name itself."""
        code = compile(
            ast.Module([statement], []),
            str(self.path),
            "exec",
            flags=__future__.annotations.compiler_flag,
            dont_inherit=True,
        )
        try:
            exec(code, vars(self.module))
        except Exception:
            if getattr(statement, "name", "") == name:
                raise


def bound(statement: ast.AST) -> Iterator[str]:
    """The names that a statement of a module defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
        return
    if isinstance(statement, ast.alias):
        yield statement.asname or statement.name.partition(".")[0]
    if isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
        yield statement.id
    for part in ast.iter_child_nodes(statement):
        yield from bound(part)


sys.meta_path.insert(0, Packages())
