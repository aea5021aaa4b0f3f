"""Random slips in valid scenarios: how often the suggested fix gives back what was written.

    python tests/bench/spec_slips.py [--slips N] [--seed N] [--verbose]

Each scenario of specs/ and docs/examples that is valid on its own gets one slip on one line: letters of a key or word
exchanged, a sign lost or doubled, a line or block moved, and so on. Counted are the slips after which `validate`
suggests the original document, another valid one (in code, where a bracket belongs is often open), or nothing.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from gradcheck.spec.corrections import with_fixes  # noqa: E402
from gradcheck.spec.diagnostic import SpecError  # noqa: E402
from gradcheck.spec.document import parse  # noqa: E402
from gradcheck.spec.read import compiled, mistakes_of_lines  # noqa: E402
from gradcheck.spec.text import SpecText  # noqa: E402

Slip = Callable[[str, random.Random], str | None]


def scenarios() -> Iterator[list[str]]:
    """The lines of a file for each scenario that is valid on its own."""
    for path in sorted([*ROOT.glob("specs/**/*.grad.yaml"), *ROOT.glob("docs/examples/**/*.grad.yaml")]):
        lines = path.read_text(encoding="utf-8").split("\n")
        head = [line for line in lines[:12] if line.startswith(("schema", "framework"))]
        starts = [n for n, line in enumerate(lines) if re.match(r"  - id:", line)]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            while end > start and not lines[end - 1].split("#")[0].strip():
                end -= 1
            text = [*head, "scenarios:", *lines[start:end], ""]
            if not mistakes(text):
                yield text


def mistakes(lines: list[str], reader: Any = compiled) -> Any:
    """The mistakes in a file."""
    return mistakes_of_lines(lines, "own.grad.yaml", reader)


def document(lines: list[str]) -> object:
    """The plain document of a file; None if it cannot be parsed."""
    try:
        return plain(parse(SpecText("own.grad.yaml", lines)))
    except SpecError:
        return None


def plain(value: Any) -> object:
    """A value without positions."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


# --------------------------------------------------------------------------- slips
def letters(pattern: str) -> Slip:
    """Letters of a word lost, exchanged or doubled."""

    def slip(line: str, draw: random.Random) -> str | None:
        words = [word for word in re.finditer(pattern, line) if len(word[0]) > 2]
        if not words:
            return None
        word = draw.choice(words)
        text, k = word[0], draw.randrange(len(word[0]) - 1)
        changed = [text[:k] + text[k + 1 :], text[:k] + text[k + 1] + text[k] + text[k + 2 :], text[: k + 1] + text[k:]]
        return line[: word.start()] + draw.choice(changed) + line[word.end() :]

    return slip


def signs(pattern: str, *texts: str) -> Slip:
    """One match of a pattern replaced by another text."""

    def slip(line: str, draw: random.Random) -> str | None:
        found = [sign for sign in re.finditer(pattern, line) if sign.start() >= margin(line)]
        if not found:
            return None
        sign = draw.choice(found)
        return line[: sign.start()] + sign.expand(draw.choice(texts)) + line[sign.end() :]

    return slip


def margin(line: str) -> int:
    """The spaces before the text of a line."""
    return len(line) - len(line.lstrip())


def moved(line: str, draw: random.Random) -> str | None:
    """A line further left or right."""
    place = margin(line) + draw.choice([-2, -1, 1, 2])
    return " " * place + line.lstrip() if place >= 0 else None


SLIPS: dict[str, Slip] = {
    "key misspelt": letters(r"[\w.-]+(?=:( |$))"),
    "word misspelt": letters(r"[A-Za-z_]+"),
    "sign lost": signs(r"[:,\[\]{}'\"()-]", ""),
    "sign twice": signs(r"[:,\[\]{}'\"]", r"\g<0>\g<0>"),
    "space lost": signs(" ", ""),
    "other sign": signs(": ", "=", " = ", ":", ";"),
    "block not opened": signs(r" \|$", ""),
    "quotes lost": signs(r"'([^']*)'|\"([^\"]*)\"", r"\1\2"),
    "tab": signs(r"(?<=^)(?=\S)", "\t"),
    "line moved": moved,
}


def draw_slip(lines: list[str], draw: random.Random) -> tuple[str, int, list[str]] | None:
    """A kind, the number of a line, and the lines after a slip there; None if the line has no such
    slip.
    """
    n = draw.randrange(len(lines) - 1)
    kind = draw.choice([*SLIPS, "line twice", "block moved"])
    if kind == "line twice":
        return kind, n, [*lines[:n], lines[n], *lines[n:]]
    if kind == "block moved":
        end = next((k for k in range(n + 1, len(lines)) if margin(lines[k]) <= margin(lines[n])), len(lines))
        if margin(lines[n]) < 2 or end == n + 1:
            return None
        return kind, n, [*lines[:n], *(line[2:] for line in lines[n:end]), *lines[end:]]
    changed = SLIPS[kind](lines[n], draw)
    return None if changed in (None, lines[n]) else (kind, n, [*lines[:n], str(changed), *lines[n + 1 :]])


def main() -> None:
    """Draw slips, and count what is suggested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="show what is not given back")
    options = parser.parse_args()
    draw, known = random.Random(options.seed), [*scenarios()]
    counts, by_kind, seconds = Counter[str](), dict[str, Counter[str]](), list[float]()
    while counts.total() < options.slips:
        right = draw.choice(known)
        slip = draw_slip(right, draw)
        if slip is None or not (found := mistakes(slip[2])):
            continue
        kind, n, wrong = slip
        started = time.perf_counter()
        fixed = with_fixes(wrong, found, mistakes, is_syntax=bool(mistakes(wrong, parse)))
        seconds.append(time.perf_counter() - started)
        fix = next((mistake.fix for mistake in fixed if mistake.fix), None)
        outcome = "nothing"
        if fix is not None:
            outcome = "the original" if document(fix.applied(wrong)) == document(right) else "another"
        counts[outcome] += 1
        by_kind.setdefault(kind, Counter())[outcome] += 1
        if options.verbose and outcome != "the original":
            print(f"{kind}: {outcome}\n  {right[n]}\n  {wrong[n]}\n  {fixed[0].message}\n  {fix.lines if fix else ''}")
    for kind, outcomes in sorted(by_kind.items()):
        print(f"{kind:18}", dict(outcomes))
    share = {outcome: f"{count / options.slips:.1%}" for outcome, count in counts.most_common()}
    print(f"{len(known)} scenarios, {options.slips} slips: {share}; {median(seconds):.3f} s, most {max(seconds):.2f} s")


if __name__ == "__main__":
    main()
