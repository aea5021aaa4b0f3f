"""An example as a scenario: what `gradcheck explore` checks, shows and saves."""

from __future__ import annotations

import json

from gradcheck.exploring.examples import Drawn, Example


def scenario_text(example: Example, reference: str, identity: str, call: str = "", title: str = "") -> str:
    """A spec file with the one scenario."""
    lines = ["schema: gradcheck/v1", "scenarios:", f"  - id: {identity}"]
    if title:
        lines.append(f"    title: {json.dumps(title, ensure_ascii=False)}")
    lines.append(f"    layer: {{ref: {reference!r}}}")
    if call:
        lines.append(f"    call: {json.dumps(call, ensure_ascii=False)}")
    lines.append("    inputs:")
    for name, one in example.inputs.items():
        lines.append(f"      {name}: {input_text(one)}")
    return "\n".join(lines) + "\n"


def input_text(one: Drawn) -> str:
    """An input on one line."""
    parts = []
    if one.alias_of:
        parts.append(f"layout: {{aliased: {one.alias_of}}}")
    else:
        parts.append(
            f"values: {json.dumps(one.values.tolist())}" if one.values.size else f"shape: {list(one.values.shape)}"
        )
        if one.dtype != "float64":
            parts.append(f"dtype: {one.dtype}")
        if one.layout != "contiguous" and one.values.ndim:
            parts.append(f"layout: {one.layout}")
    if one.word.stopped:
        parts.append("stop_gradient: true")
    return f"{{{', '.join(parts)}}}"
