"""The search for one edit of a spec file that removes a mistake.

Each candidate is read as a file is: an edit is reported only if the mistake is gone with it, and no
other has come.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product, takewhile

from gradcheck.spec.diagnostic import Diagnostic, LineEdit
from gradcheck.spec.model import Format
from gradcheck.spec.syntax import OPENS_BLOCK, indentation
from gradcheck.support.suggest import nearest

Reader = Callable[[list[str]], Sequence[Diagnostic]]
"""Reads the lines of a file, and returns the mistakes in them."""
MistakeKey = tuple[str, str]

MOST_LINES_READ = 10_000
"""The most lines that a search reads, over all candidates: about a second, as a line takes 0.1 ms.
"""
LONGEST_WRITTEN = 500
"""The characters of a line that a person may have written."""
MOST_KEYS = 12
"""The most keys of a mapping whose values have forms of their own; a scenario has twice as many."""
FAR = 9
"""The lines above and below a line whose indentation it may be meant to have."""
FAR_QUOTE = 40
"""The lines above a mistake in which a quote may have been left open."""
STEP = 2
"""The spaces by which blocks are usually indented."""
BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
QUOTES = "'\""
FORMAT_WORDS = (*chain.from_iterable(kind.keys() for kind in Format.by_name.values()),)
KEYWORD = re.compile("|".join(sorted(keyword.kwlist, key=len, reverse=True)))


def with_fixes(
    lines: list[str], mistakes: Sequence[Diagnostic], read: Reader, *, is_syntax: bool
) -> list[Diagnostic]:
    """The mistakes of a file, each with an edit that removes it, if one is found; only one of them
    if its edit removes all: the others follow from it.

    Args:
        is_syntax: whether the mistakes are of YAML's syntax, which hide all others: then an edit
            has to leave none.
    """
    budget, keys = Budget(read), mistake_keys(mistakes)
    gone, fixed = set[MistakeKey](), list[Diagnostic]()
    for mistake in mistakes:
        fix = None
        if mistake.line and budget.lines_left and mistake_key(mistake) not in gone:
            others = set() if is_syntax else keys - {mistake_key(mistake)}
            fix = next(edits_that_remove(lines, mistake, others, budget, is_syntax), None)
        if fix is not None:
            left = mistake_keys(read(fix.applied(lines)))
            gone |= keys - left
            # advice on the place where a parser gives up, or on another line, is a guess
            is_guess = is_syntax or fix.line != mistake.line
            mistake = replace(mistake, fix=fix, help="" if is_guess else mistake.help)
            if is_syntax and fix.line < mistake.line:  # the parser went on after it
                mistake = at_line(mistake, fix, lines)
            if not left:
                return [mistake]
        fixed.append(mistake)
    return fixed


def at_line(mistake: Diagnostic, fix: LineEdit, lines: list[str]) -> Diagnostic:
    """A syntax error, reported at the line that its fix changes."""
    old, new = lines[fix.line - 1], fix.lines[0] if fix.lines else ""
    column = 1 + sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    )
    message = f"not valid YAML, as the parser notices in line {mistake.line}"
    return replace(mistake, line=fix.line, column=column, width=1, message=message, source_line=old)


def edits_that_remove(
    lines: list[str],
    mistake: Diagnostic,
    others: set[MistakeKey],
    budget: Budget,
    is_syntax: bool,
) -> Iterator[LineEdit]:
    """Yield the edits that remove a mistake and leave at most some others.

    All but the removal of a repeated line and the end of a quote are tried on the scenario of the
    mistake alone, and then on the whole file.
    """
    quoted = closed_quotes(lines, mistake.line) if is_syntax else ()
    for edit in chain(without_repeated(lines, mistake.line), quoted):
        if mistake_keys(budget.read(edit.applied(lines))) <= others:
            yield edit
    first, start, end = scenario_at(lines, min(mistake.line, len(lines)) - 1)
    above = start - first
    part = [*lines[:first], *lines[start:end]]
    needs_others = any("extends:" in line for line in part)
    if needs_others or not mistake_keys(budget.read(part)) <= {*others, mistake_key(mistake)}:
        above, part = 0, lines
    if mistake.help == "rename or remove one of the two":  # nobody knows the name that was meant
        return
    moved_up = replace(mistake, line=mistake.line - above)

    def removes(edit: LineEdit) -> bool:
        return mistake_keys(budget.read(edit.applied(part))) <= others

    keys = [edit for edit in with_other_keys(part[moved_up.line - 1], moved_up) if removes(edit)]
    candidates = chain(keys if len(keys) == 1 else (), line_edits(part, moved_up, is_syntax))
    for edit in each_once(candidates):
        if not budget.lines_left:
            return
        if removes(edit):
            in_file = replace(edit, line=edit.line + above)
            if mistake_keys(budget.read(in_file.applied(lines))) <= others:
                yield in_file


@dataclass
class Budget:
    """Reads lines until it has read `MOST_LINES_READ`."""

    reader: Reader
    lines_left: int = MOST_LINES_READ

    def read(self, lines: list[str]) -> Sequence[Diagnostic]:
        """The mistakes in some lines."""
        self.lines_left = max(0, self.lines_left - len(lines))
        return self.reader(lines)


def scenario_at(lines: list[str], number: int) -> tuple[int, int, int]:
    """The line of the first scenario of a file, and the first and last line of the scenario that
    contains a line; those of the whole file if the line is in none.
    """
    entries = list[int]()
    for n, line in enumerate(lines):
        if line.startswith("scenarios:"):
            entries = []
        if re.match(r" {1,4}- ", line) and (
            not entries or indentation(line) <= indentation(lines[entries[0]])
        ):
            entries.append(n)
    before = [n for n in entries if n <= number]
    if not before:
        return 0, 0, len(lines)
    after = [n for n in entries if n > number]
    return entries[0], before[-1], after[0] if after else len(lines)


def mistake_key(mistake: Diagnostic) -> MistakeKey:
    """A mistake without its position, which edits move."""
    return mistake.message, mistake.source_line


def mistake_keys(mistakes: Iterable[Diagnostic]) -> set[MistakeKey]:
    """The mistakes without their positions."""
    return {*map(mistake_key, mistakes)}


def each_once(candidates: Iterable[LineEdit]) -> Iterator[LineEdit]:
    """Yield each of some edits once."""
    seen = set[LineEdit]()
    for edit in candidates:
        if edit not in seen:
            seen.add(edit)
            yield edit


# --------------------------------------------------------------------------- candidates
def line_edits(lines: list[str], mistake: Diagnostic, is_syntax: bool) -> Iterator[LineEdit]:
    """Yield edits of the lines around a mistake, the likeliest first: what can be read is rather at
    the wrong level than without a sign.
    """
    number = min(mistake.line, len(lines)) - 1
    near = lines_near(lines, number)
    is_code = "valid Python" in mistake.message or is_in_block(lines, number)
    words = chain(advised(mistake, lines[number]), spelt(lines, number, mistake.column))
    yield from in_place(number, words)
    if mistake.help.startswith("indent it less"):
        yield from moved(lines, number, indentation(lines[number]))
        return
    for n in ancestors(lines, number):
        yield from in_place(n, as_block(lines, n))
    for n in near:
        yield from in_place(n, chain(as_block(lines, n), () if is_code else spaced(lines[n])))
        if not is_aligned(lines, n) or not (is_syntax or is_code):
            yield from moved(lines, n)
    for n in near:
        column = mistake.column - 1 if n == number else len(lines[n])
        yield from in_place(n, with_signs(lines[n], column, is_code))
        yield from chain(moved(lines, n), indented_below(lines, n))
    yield from without_key(lines, number)
    for n in near if not is_code else ():
        yield from in_place(n, chain(rewritten(lines[n]), shortened(lines[n])))
    yield from (LineEdit(n + 1, 1, ()) for n in near if not re.search(r"\w", lines[n]))


def without_repeated(lines: list[str], number: int) -> Iterator[LineEdit]:
    """Yield the removal of a line around a mistake that repeats the line above it; or, outside of
    code, one further above.
    """
    for n in lines_near(lines, min(number, len(lines)) - 1):
        key = re.match(r"[\s-]*([\w.]+):", lines[n])
        if key and key[1] not in FORMAT_WORDS and not is_in_block(lines, n):
            continue  # a name, such as that of an input, may have been meant to be another
        if lines[n] in lines[max(0, n - (1 if is_in_block(lines, n) else FAR)) : n]:
            yield LineEdit(n + 1, 1, ())


def closed_quotes(lines: list[str], number: int) -> Iterator[LineEdit]:
    """Yield the lines above a mistake whose text in quotes does not end, with its end."""
    for n in range(min(number, len(lines)) - 1, max(-1, number - FAR_QUOTE), -1):
        opened = re.match(r".*?(?:: |- )([\"'])", lines[n])
        if opened and lines[n].count(opened[1]) % 2:
            yield from in_place(n, [lines[n] + opened[1]])


def in_place(n: int, texts: Iterable[str]) -> Iterator[LineEdit]:
    """Yield the edits that write one of some texts in a line, which counts from 0."""
    for text in texts:
        yield LineEdit(n + 1, 1, (text,))


def lines_near(lines: list[str], number: int) -> list[int]:
    """The lines that may be at fault for a mistake in a line: itself, the one above, the one below,
    the first above that is indented less, and the first lines of the mappings and lists that it is
    in. Blank ones do not count.
    """
    above = [n for n in range(number, -1, -1) if lines[n].strip()]
    below = [n for n in range(number + 1, len(lines)) if lines[n].strip()]
    parents = [n for n in above if indentation(lines[n]) < indentation(lines[above[0]])]
    firsts = [n + 1 for n in ancestors(lines, number) if lines[n].endswith(":")]
    near = dict.fromkeys([*above[:2], *below[:1], *parents[:1], *firsts])
    return [n for n in near if len(lines[n]) <= LONGEST_WRITTEN]


def ancestors(lines: list[str], n: int) -> Iterator[int]:
    """Yield the lines that a line is below, as each is indented less than the one before."""
    depth = indentation(lines[n])
    for above in range(n - 1, -1, -1):
        if lines[above].strip() and indentation(lines[above]) < depth:
            yield above
            depth = indentation(lines[above])


def is_in_block(lines: list[str], n: int) -> bool:
    """Whether a line belongs to a block of text, which is code."""
    return any(OPENS_BLOCK.search(lines[above]) for above in ancestors(lines, n))


def without_key(lines: list[str], n: int) -> Iterator[LineEdit]:
    """Yield a key above a line that is indented more than the line before, and those like it."""
    depth = indentation(lines[n])
    for key in ("inputs:", "expect:", "scenarios:", "cases:", "layer: |"):
        if depth >= STEP:
            yield LineEdit(n + 1, 0, (" " * (depth - STEP) + key,))


# ------------------------------ words
def with_other_keys(line: str, mistake: Diagnostic) -> Iterator[LineEdit]:
    """Yield a line with each known key in place of an unknown one that none is similar to.

    Plain text fits too many of the keys of a scenario.
    """
    if listed := re.match(r"the keys of \w+(?: \w+)* are (.*)", mistake.help):
        before, after = line[: mistake.column - 1], line[mistake.column - 1 + mistake.width :]
        names = re.split(", | and ", listed[1])
        if len(names) > MOST_KEYS and not re.match(r":\s*([\[{]|$)", after):
            return
        yield from in_place(mistake.line - 1, (before + name + after for name in names))


def advised(mistake: Diagnostic, line: str) -> Iterator[str]:
    """Yield a line with the text that the advice on a mistake writes, in place of the marked
    text.
    """
    start, end = mistake.column - 1, mistake.column - 1 + mistake.width
    before, marked, after = line[:start], line[start:end], line[end:]
    if placed := re.match(r"write '(\w+)' before it", mistake.help):
        yield f"{before}{placed[1]} {marked}{after}"
        return
    for text in re.findall(r"(?<!\w)'(\w[^']*)'(?!\w)", mistake.help):
        key, _, new = text.partition(": ")
        old = re.match(r":\s*(\[.*?\]|\{.*?\}|[^,{}\[\]]+)", after)
        if old and "{" in new:
            yield before + text.replace("…", old[1]) + after[old.end() :]
        elif old and new.strip("…"):  # the old value has another meaning
            yield before + text + after[old.end() :]
        else:
            yield before + key + after
    if listed := re.search(r"such as \[(.*)\]$", mistake.help):
        yield line.replace(listed[1], f"[{listed[1]}]", 1)
    for form in (r"write ([\[{].*?[\]}])(?:$|[.;:,])", r"write (.+)", r"write (.+?)[.;:] "):
        if written := re.match(form, mistake.help):
            yield before + written[1] + after


def spelt(lines: list[str], n: int, column: int) -> Iterator[str]:
    """Yield a line whose last words up to a column are spelt like other words of the file or of the
    format; or parted, if one begins with a keyword.
    """
    known = {*FORMAT_WORDS, *keyword.kwlist, *re.findall(r"\w+", "\n".join(lines))}
    words = [word for word in re.finditer(r"[A-Za-z_]\w+", lines[n]) if word.start() < column]
    for word in reversed(words[-2:]):
        before, after = lines[n][: word.start()], lines[n][word.end() :]
        if begins := KEYWORD.match(word[0]):
            yield f"{before}{begins[0]} {word[0][begins.end() :]}{after}"
        if near := nearest(word[0], sorted(known - {word[0]})):
            yield before + near + after


# ------------------------------ indentation
def is_aligned(lines: list[str], n: int) -> bool:
    """Whether another line nearby has the indentation of a line."""
    others = [*lines[max(0, n - FAR) : n], *lines[n + 1 : n + FAR]]
    return indentation(lines[n]) in [indentation(text) for text in others if text.strip()]


def moved(lines: list[str], n: int, below: int = LONGEST_WRITTEN) -> Iterator[LineEdit]:
    """Yield a line, alone and with the block below it, at the indentations of lines around it that
    are smaller than a given one.
    """
    depth = indentation(lines[n])
    end = n + 1
    while end < len(lines) and (not lines[end].strip() or indentation(lines[end]) > depth):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    for other in filter(below.__gt__, depths_around(lines, n)):
        yield from in_place(n, [" " * other + lines[n].lstrip()])
        block = [
            " " * max(0, indentation(text) + other - depth) + text.lstrip() for text in lines[n:end]
        ]
        yield LineEdit(n + 1, end - n, tuple(block))
        keys = (k for k, text in enumerate(lines[n:end]) if re.match(rf" {{{other}}}[\w-]+:", text))
        if next_key := next(keys, 0):  # of the mapping that the block is meant to be in
            yield LineEdit(n + 1, next_key, tuple(block[:next_key]))


def indented_below(lines: list[str], n: int) -> Iterator[LineEdit]:
    """Yield the lines below a key that has no value, or no text, indented more: one line, two, and
    so on.
    """
    depth = indentation(lines[n])
    for end in range(n + 2, min(n + 2 * FAR, len(lines)) + 1):
        below = lines[n + 1 : end]
        if not lines[n].endswith((":", "|")) or min(map(indentation, below)) != depth:
            return
        yield LineEdit(n + 2, len(below), tuple(" " * STEP + text for text in below))


def depths_around(lines: list[str], n: int) -> list[int]:
    """The indentations that a line may be meant to have: first those of the lines next to it."""
    depth, beside = indentation(lines[n]), list[int]()
    if n and lines[n - 1].strip():
        opens = STEP if re.search(r"[:|]$", lines[n - 1]) else 0
        opens += STEP if lines[n - 1].endswith("):") else 0  # Python's blocks have four spaces
        beside.append(indentation(lines[n - 1]) + opens)
    beside += [indentation(text) for text in lines[n + 1 : n + 2] if text.strip()]
    around = {indentation(text) for text in lines[max(0, n - FAR) : n + FAR] if text.strip()}
    around |= {indentation(lines[parent]) for parent in ancestors(lines, n)}
    others = sorted(around | {other + STEP for other in around}, key=lambda o: (abs(o - depth), o))
    return [other for other in dict.fromkeys([*beside, *others]) if other != depth]


def as_block(lines: list[str], n: int) -> Iterator[str]:
    """Yield a line that opens a block of text, if lines that are indented more follow."""
    below = lines[n + 1 : n + 2]
    if re.search(r":\s*$", lines[n]) and below and indentation(below[0]) > indentation(lines[n]):
        yield lines[n].rstrip() + " |"


# ------------------------------ signs
def spaced(line: str) -> Iterator[str]:
    """Yield a line with the space after a sign, the dash of an entry, the ':' of a key or the
    quotes of a text that it lacks.
    """
    start = indentation(line)
    for sign in re.finditer(r"(?<=\w)[:,](?=[^\s\d])|^\s*-(?=\w)", line):
        yield f"{line[: sign.end()]} {line[sign.end() :]}"
    for place in range(start - 1, max(-1, start - 1 - STEP), -1):
        if re.match(r"\s*[\w.-]+:(\s|$)", line):
            yield f"{line[:place]}- {line[start:]}"
    if entry := re.match(r"(\s*(?:- )?\S.*\S) ((?:true|false|null|-?\d|[\[{]).*)", line):
        yield f"{entry[1]}: {entry[2]}"
    if entry := re.match(r"(\s*(?:- )?[\w.-]+)(?: *[=;：] *| +|(?=[\[{\"']))(\S.*)", line):
        yield f"{entry[1]}: {entry[2]}"
    yield re.sub(r"^(\s*)- ", r"\1", line)
    if entry := re.match(r"(\s*- )([^:]+)$", line):
        yield f"{entry[1]}id: {entry[2]}"
        yield f"{entry[1]}title: {entry[2]}"
    if called := re.search(r"(?<=: )[\w.]+\(.*\)(?=\s*\}|$)", line):
        yield line[: called.start()] + in_quotes(called[0]) + line[called.end() :]
    if re.search(r": *\(", line):
        yield re.sub(r"(?<=: )\(([^()]*)\)", r"[\1]", line)
    if entry := re.match(r"(\s*(?:- )?[\w.-]+: +)([^\s\"'\[{].*: .*[^\s\"'])", line):
        yield entry[1] + in_quotes(entry[2])


def with_signs(line: str, column: int, is_code: bool) -> Iterator[str]:
    """Yield a line with a sign more, less or exchanged; first near a column."""
    found = {place.start() for place in re.finditer(r"\b|[^\w\s]|(?<=[^\w\s])", line)}
    places = {place for place in found if place > indentation(line)} | {len(line)}
    nearest_first = sorted(places, key=lambda place: (abs(place - column), -place))
    yield from balanced(line, column, nearest_first, is_code)
    yield from punctuated(line, nearest_first, is_code)


def balanced(line: str, column: int, places: list[int], is_code: bool) -> Iterator[str]:
    """Yield a line with a bracket or quote more, where one is missing, or without a repeated sign.

    A missing end is usually the last sign; that of an index such as ``x[0`` is near.
    """
    surplus = dict.fromkeys(QUOTES, 0)
    for opening, closing in BRACKETS:
        surplus[opening] = line.count(opening) - line.count(closing)
        surplus[closing] = -surplus[opening]
    is_index = is_code and re.match(r"\w\[", line[max(0, column - 1) :])
    ends = [closing for opening, closing in BRACKETS if surplus[opening] > 0]
    ends += [sign for sign in QUOTES if line.count(sign) % 2]
    for sign, place in product(ends, sorted(places, reverse=not is_index)):
        yield line[:place] + sign + line[place:]
    for repeated in re.finditer(r"([^\w\s])(?=\1)", line):
        if surplus.get(repeated[0], 1) >= 0:
            yield line[: repeated.start()] + line[repeated.end() :]
    starts = [opening for opening, closing in BRACKETS if surplus[closing] > 0 and not is_code]
    for sign, place in product(starts, [indentation(line), *places]):
        yield line[:place] + sign + line[place:]


def punctuated(line: str, places: list[int], is_code: bool) -> Iterator[str]:
    """Yield a line with another sign in place of one, or with one more."""
    if is_code:
        yield line + ":"
    for place in places:
        if re.match(r"[=;：]|\. ", line[place:]) and not is_code:
            yield f"{line[:place].rstrip()}: {line[place + 1 :].lstrip()}"
            yield f"{line[:place]},{line[place + 1 :]}"
    for sign, place in product((", ", " ") if is_code else (": ", ", ", "- ", " "), places):
        before, after = line[:place], line[place:].lstrip()
        before = before.rstrip() if sign[0] in ":," else before
        yield f"{before}{sign}{after}" if after else before + sign.rstrip()


def rewritten(line: str) -> Iterator[str]:
    """Yield a line with its value in quotes, without quotes, or in brackets."""
    if entry := re.match(r"(\s*(?:- )?[\w.-]+: +)(.+?)\s*$", line):
        before, value = entry.groups()
        yield before + in_quotes(value.strip(QUOTES))
        yield before + value.strip(QUOTES)
        yield f"{before}{{{value}}}"
        yield f"{before}[{value}]"


def in_quotes(text: str) -> str:
    """A text in single quotes, as YAML reads them."""
    return "'" + text.replace("'", "''") + "'"


def shortened(line: str) -> Iterator[str]:
    """Yield a line without one of its signs."""
    for sign in re.finditer(r"[^\w\s.-]|[.-](?!\d)", line):  # another number is another test
        yield line[: sign.start()] + line[sign.end() :]
