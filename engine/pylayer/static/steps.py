"""The steps of a compiled program: lines of Python, the slots that they use, and when each slot is emptied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pylayer.static.program import Operator


class Step:
    """Lines to run. `uses` are the slots that they read or fill; `branches` the steps of an if and its else."""

    __slots__ = ("branches", "freed", "lines", "op", "uses")

    def __init__(self, op: Operator, line: str, uses: Sequence[int], branches: Sequence[list[Step]] = ()) -> None:
        self.op = op
        self.lines = line.splitlines()
        self.uses = set(uses)
        self.branches = list(branches)
        self.freed: list[int] = []

    def all_uses(self) -> set[int]:
        """With those of its branches."""
        return self.uses.union(*(step.all_uses() for branch in self.branches for step in branch))

    def source(self, indent: str = "    ") -> Iterator[tuple[str, Operator]]:
        """Its lines as Python, each with the operator that it belongs to."""
        for line in self.lines:
            yield indent + line, self.op
        for number, branch in enumerate(self.branches):
            if number:
                yield f"{indent}else:", self.op
            yield f"{indent}    pass", self.op
            for step in branch:
                yield from step.source(indent + "    ")
        if self.freed:
            yield f"{indent}{''.join(f's[{slot}] = ' for slot in self.freed)}None", self.op


def free(steps: Sequence[Step], keep: set[int]) -> None:
    """Give each step the slots that are not used after it, `keep` apart."""
    last: dict[int, int] = {}
    first: dict[int, int] = {}
    for k, step in enumerate(steps):
        for slot in step.all_uses():
            last[slot] = k
            first.setdefault(slot, k)
    inner: dict[int, set[int]] = {}
    for slot, k in last.items():
        if slot in keep:
            continue
        step = steps[k]
        within = [number for number, branch in enumerate(step.branches) if any(slot in s.all_uses() for s in branch)]
        if first[slot] == k and slot not in step.uses and len(within) == 1:
            inner.setdefault(k, set()).add(slot)  # it lives in one branch only, and is freed there
        else:
            step.freed.append(slot)
    for k, step in enumerate(steps):
        for branch in step.branches:
            used = set[int]().union(*(s.all_uses() for s in branch))
            free(branch, keep=used - inner.get(k, set()))
