"""The scenario of a layer that the command line names, ``package.module:Layer``.

`gradcheck check` and `explore` read what `gradcheck new` writes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gradcheck.spec.containers import in_variables
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.messages import as_reference
from gradcheck.spec.model import READER_FIELDS, REFERENCE, Input, SpecFile
from gradcheck.spec.read import read_bytes
from gradcheck.support.pyproject import around_package, roots
from gradcheck.support.user_error import UserError

ANY_LAYER = "package.module:Layer"
"""The form of a reference to a layer."""


class DraftError(UserError):
    """A layer or an option of it cannot be understood; the message says what to write."""


# --------------------------------------------------------------------------- the layer
def qualified_reference(reference: str) -> str:
    """Return a reference with the packages around its module, if they are known.

    In a folder that is a package, ``layers:Norm`` is a module of that package. Raises DraftError:
    the word does not have the form ``package.module:Layer``.
    """
    module, _, name = reference.partition(":")
    if in_spec := re.fullmatch(r".+\.ya?ml(::?.+)?", reference):
        scenario = reference if in_spec[1] else f"{reference} ID"
        kind = "a scenario of a spec file" if in_spec[1] else "a spec file"
        raise DraftError(
            f"{reference} is {kind}: `gradcheck run {reference}` runs it, "
            f"`gradcheck explore {scenario}` explores one scenario"
        )
    if not re.fullmatch(REFERENCE, reference) or module.endswith(".py"):
        meant = meant_layer(reference_in_file(reference))
        if meant == ANY_LAYER and not re.search(r"[:\s]", reference):
            meant += f"; if this is a scenario, `gradcheck run {reference}` runs it"
        raise DraftError(f"{reference!r} names no layer: write {meant}")
    for root in roots():
        if file_of_module(module, root):
            packages = root.relative_to(around_package(root)).parts
            return f"{'.'.join([*packages, module])}:{name}"
    return reference


def reference_in_file(text: str) -> str:
    """Return the reference to the layer that ``own/layers.py:Norm`` names, or to its module without
    a layer; another text as it is.

    Raises DraftError: there is no such file, or its module cannot be imported from here.
    """
    in_file = re.fullmatch(r"(.+\.py)(?:::?(\w+))?", text)
    if in_file is None or not ("/" in text or os.path.isfile(in_file[1])):
        return text
    path = Path(os.path.realpath(in_file[1]))
    if not path.is_file():
        raise DraftError(f"{in_file[1]}: no such file")
    layer = f":{in_file[2]}" if in_file[2] else ""
    folders = [Path(os.path.realpath(root)) for root in roots()]
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        module = os.path.relpath(path.with_suffix(""), folder).split(os.sep)
        if all(map(str.isidentifier, module)):  # .. is not one
            return f"{'.'.join(module)}{layer}"
    advice = f"go to its folder, and name {path.stem}{layer or ':LAYER'}"
    if not path.stem.isidentifier():
        advice = "rename it: the name of a module is letters, digits and _"
    raise DraftError(f"{in_file[1]} cannot be imported from here: {advice}")


def file_of_module(module: str, root: Path) -> Path | None:
    """Return the file of a module below a folder; None if there is none."""
    below = root.joinpath(*module.split("."))
    files = (below.with_name(f"{below.name}.py"), below / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def meant_layer(text: str) -> str:
    """Return the reference that was likely meant if the user gave a module, a path, or a dot before
    the layer.
    """
    text = re.split(r"[^\w./:]", re.sub(r"\s*:[\s:]*", ":", text))[0]
    module = text.removeprefix("./").removesuffix(".py").replace("/", ".")
    files = [file for root in roots() if (file := file_of_module(module, root))]
    source = files[0].read_text("utf-8", "replace") if files else ""
    if layer := re.search(r"^(?:class|def) ([^\W_]\w*)", source, re.MULTILINE):
        return f"{module}:{layer[1]}"
    return as_reference(text) or ANY_LAYER


def identity_of(reference: str) -> str:
    """Return the id of a scenario for a layer: its name in kebab-case."""
    name = reference.replace(":", ".").rpartition(".")[2]
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    return re.sub(r"[^a-z0-9]+", "-", spaced).strip("-") or "layer"


class InWorld(NamedTuple):
    """The world that the command line gives; all texts are empty if there is none."""

    world: str = ""
    """A number of ranks, or ranks along axes: ``4``, ``mp=2,dp=2``."""
    outputs: str = ""
    """The placement of the outputs: ``replicated``, or a word for each: ``split,replicated``."""
    random: str = ""

    def keys(self) -> dict[str, Any]:
        """Return the keys of a scenario. Raises DraftError: the ranks are not of this form."""
        outputs = [{"ranks": word} for word in self.outputs.split(",")]
        keys = {"world": self._ranks(), "outputs": outputs, "random": self.random}
        return {key: value for key, value in keys.items() if getattr(self, key)}

    def _ranks(self) -> int | dict[str, int]:
        if re.fullmatch(r"\d{0,9}", self.world):
            return int(self.world or 0)
        pairs = dict(re.findall(r"(\w+)=(\d{1,9})", self.world))
        if ",".join(map("=".join, pairs.items())) != self.world:
            raise DraftError(
                f"--world {self.world}: write a number of ranks, or ranks along axes, such as "
                "mp=2,dp=2"
            )
        return {axis: int(degree) for axis, degree in pairs.items()}


# --------------------------------------------------------------------------- the scenario
NOTES = {
    "inputs": "or values: [[…]], near: [0.0], range: [0.1, 3], stop_gradient: true",
    "end": """\
    # expect:
    #   order: 2                       # the derivative of the gradient as well
    #   gradient: straight-through     # or zero, differs: not meant as the derivative
    # matrix: {dtype: [float32, float64]}
""",
}
"""Comments of a draft: after each input, and at the end."""


def scenario_keys(
    reference: str, inputs: Mapping[str, Input], call: str, kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the keys of a scenario for a layer, with values as plain data for YAML."""
    written = {name: written_input(spec) for name, spec in inputs.items()}
    keys = {"id": identity_of(reference), "layer": {"ref": reference}, "call": call}
    keys |= {"kwargs": dict(kwargs), "inputs": in_variables(written)}
    return {key: value for key, value in keys.items() if value or key == "inputs"}


def written_input(spec: Input) -> dict[str, Any]:
    """Return an input in the form of a spec file."""
    return spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=set(READER_FIELDS)
    )


def spec_text(
    keys: Mapping[str, Any],
    framework: str = "paddle",
    *,
    notes: bool = False,
    call_note: str = "",
) -> str:
    """Return a spec file with one scenario, with comments on possible changes if `notes`.

    `call_note` replaces a call that is not given.
    """
    lines = ["schema: gradcheck/v1", f"framework: {framework}", "scenarios:"]
    if framework == "paddle":  # a file's default
        del lines[1]
    for key, value in keys.items():
        start = "  - " if key == "id" else "    "
        if key != "inputs":
            lines.append(f"{start}{key}: {flow_yaml(value)}")
            continue
        if call_note:
            lines.append(f"    # call: {call_note}")
        lines.append("    inputs:" if value else "    inputs: {}")
        note = f"  # {NOTES['inputs']}" if notes else ""
        lines += [
            f"      {name}: {flow_yaml(input_value)}{note}" for name, input_value in value.items()
        ]
    end = NOTES["end"] if notes else ""
    if "world" in keys:
        end = re.sub(".*order: 2.*\n", "", end)  # not supported with a world
    return "\n".join(lines) + f"\n{end}"


def read_draft(text: str, reference: str) -> SpecFile:
    """Read such a file as if it were in the layer's folder: modules are searched for from the
    current folder.

    Raises DraftError: the file has mistakes.
    """
    try:
        spec = read_bytes(text.encode(), str(Path.cwd() / reference))
    except SpecError as error:
        mistakes = [
            sentence
            for diagnostic in error.diagnostics
            for sentence in (diagnostic.message, diagnostic.help)
            if sentence
        ]
        raise DraftError(f"{reference}: {'; '.join(mistakes)}") from None
    place = {"line": 1, "column": 1, "begins": 1, "positions": {}}
    scenarios = (spec.scenarios[0].model_copy(update=place),)
    return spec.model_copy(update={"scenarios": scenarios})


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """A dumper that writes shared lists in full."""
        return True


def flow_yaml(value: Any) -> str:
    """Return a value in YAML, on one line."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, width=inf,
        allow_unicode=True,
    )  # fmt: skip
    return text.removesuffix("...\n").strip()
