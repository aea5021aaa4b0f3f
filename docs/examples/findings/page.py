"""The summary of a run over released packages, and docs/findings.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import released
import yaml

HERE = Path(__file__).parent
Results = Mapping[str, Mapping[str, Any]]

ALIKE = {"ERROR": "FAIL"}
"""Statuses that say the same: older releases raise another exception where too many gradients are returned."""

HEAD = """# Findings in released packages

gradcheck was run on the PyLayers in released packages that build on Paddle. This whole page is written by one run of
[`docs/examples/findings/run.py`](examples/findings/run.py), which installs the packages and the releases of Paddle from
the package index and checks each class by its name; none of their code is kept here:

```text
python docs/examples/findings/run.py
```

Inputs and expectations are in [`released.grad.yaml`](examples/findings/released.grad.yaml), fixed backwards in
[`fixed.py`](examples/findings/fixed.py); the fixed layers pass at the same inputs.

## Summary

"""
AFTER = """
**Right**: the gradient is the derivative of the forward. **By design**: it is not, and is not meant to be
(straight-through quantisation, gradient reversal, an added loss); the scenario says so, and what is held is that it
differs. **Not checked**: for the reasons above, found by reading and kept in
[`not_checked.yaml`](examples/findings/not_checked.yaml). Layers were checked on a CPU; those that talk to
other ranks in worlds of 2 or 4, a process each.
"""


def summary(results: Results, layers: Sequence[str], versions: Mapping[str, str]) -> str:
    """The table of packages, and why layers were not checked, as Markdown."""
    found = verdicts(results)
    reasons = yaml.safe_load((HERE / "not_checked.yaml").read_text(encoding="utf-8"))
    kinds = {layer: found.get(layer) or why_not(layer, reasons) for layer in layers}
    if missing := sorted(set(found) - set(layers)):
        raise LookupError(f"checked, but not among the layers of the packages: {missing}")
    columns = ("right", "wrong", "by design")
    lines = ["| package | PyLayers | right | wrong | by design | not checked |", "|---|---|---|---|---|---|"]
    for package, version in versions.items():
        root = "paddle" if package == "paddlepaddle" else package
        counts = Counter(
            kind if kind in columns else "not" for layer, kind in kinds.items() if layer.startswith(root + "/")
        )
        cells = [sum(counts.values()), *(counts[column] for column in columns), counts["not"]]
        lines.append(f"| {package} {version} | " + " | ".join(map(str, cells)) + " |")
    counts = Counter(kinds.values())
    total = [
        len(kinds),
        *(counts[column] for column in columns),
        sum(n for kind, n in counts.items() if kind not in columns),
    ]
    lines.append("| **all** | " + " | ".join(f"**{number}**" for number in total) + " |")
    not_checked = [(number, kind) for kind, number in counts.items() if kind not in columns]
    lines += [
        "",
        "Not checked, because",
        "",
        *(f"- {kind}: {number}" for number, kind in sorted(not_checked, reverse=True)),
    ]
    return "\n".join(lines) + "\n"


def verdicts(results: Results) -> dict[str, str]:
    """The finding on each layer, named file:Class: a layer with several scenarios is right if all of them are."""
    kinds: dict[str, set[str]] = {}
    for scenario in yaml.safe_load((HERE / "released.grad.yaml").read_text(encoding="utf-8"))["scenarios"]:
        if "layer" not in scenario:
            continue
        module, _, name = scenario["layer"]["ref"].partition(":")
        file = released.FILES[name] if module == "released" else module.replace(".", "/") + ".py"
        layer = file if ":" in file else f"{file}:{name}"
        passed = results[scenario["id"]]["status"] == "PASS"
        kind = ("by design" if scenario.get("expect") else "right") if passed else "wrong"
        kinds.setdefault(layer, set()).add(kind)
    return {
        layer: next(kind for kind in ("wrong", "by design", "right") if kind in seen) for layer, seen in kinds.items()
    }


def why_not(layer: str, reasons: Mapping[str, Sequence[str]]) -> str:
    """Why a layer was not checked."""
    fitting = (why for why, patterns in reasons.items() if any(fnmatchcase(layer, pattern) for pattern in patterns))
    return next(fitting, f"nobody has looked at it ({layer})")


def page(results: Mapping[str, Results], table: str, panels: Mapping[str, str]) -> str:
    """The whole page, from the results of each release of Paddle.

    Raises:
        LookupError: a finding is found no more.
    """
    parts = [HEAD, table, AFTER]
    for name, finding in yaml.safe_load((HERE / "findings.yaml").read_text(encoding="utf-8")).items():
        ends: dict[str, list[str]] = {}  # how it ends → in which releases
        for release, of_release in results.items():
            ends.setdefault(ALIKE.get(of_release[name]["status"], of_release[name]["status"]), []).append(release)
        right = ends.pop("PASS", [])
        if not ends:
            raise LookupError(f"{name} passes: it is found no more")
        result = next(
            of_release[name] for of_release in reversed(results.values()) if of_release[name]["status"] != "PASS"
        )
        affected = ends.pop(ALIKE.get(result["status"], result["status"]))
        parts += [f"\n## {finding['title']}\n\n{finding['what']} {finding['means']}\n\n"]
        source = "in Paddle " if name.startswith("paddle") else f"{source_of(name)}, run on Paddle "
        parts += [f"Seen {source}{listed(affected)}" + (f"; not in {listed(right)}" if right else "")]
        parts += [f"; {listed(releases)} ends earlier: {end}" for end, releases in ends.items()]
        parts += [".\n\n"]
        parts += ["```text\n", panels.get(name) or said(result), "\n```\n"]
        if "fixed" in finding:
            parts += ["\nFixed:\n\n```python\n", method(finding["fixed"]), "\n```\n"]
    return "".join(parts)


def source_of(name: str) -> str:
    """The package and file of a scenario."""
    scenarios = yaml.safe_load((HERE / "released.grad.yaml").read_text(encoding="utf-8"))["scenarios"]
    source = next(scenario["source"] for scenario in scenarios if scenario["id"] == name)
    return f"in `{source['section']}` of {source['document']}"


def said(result: Mapping[str, Any]) -> str:
    """The error of a layer that raised or died, in one line."""
    raised = re.search(r"\b\w+Error: (?!\(External\))[^\n]+?(?=\s+At: | · |\n|$)", result["message"])
    return f"{result['status']} {result['scenario']}: " + (raised[0] if raised else result["message"])


def listed(names: Sequence[str]) -> str:
    """Names with an "and" before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def method(name: str) -> str:
    """The source of a fixed backward."""
    source = (HERE / "fixed.py").read_text(encoding="utf-8")
    tree = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name)
    backward = tree.body[-1]
    assert isinstance(backward, ast.FunctionDef)
    lines = source.splitlines()[backward.decorator_list[0].lineno - 1 : backward.end_lineno]
    return "\n".join(line[4:] for line in lines)
