"""Runs the findings in Paddle on each release that has a release file, and writes docs/paddle.md.

python docs/examples/paddle_programs/run.py [NAME …]  # run all or these, record the output, write the page
python docs/examples/paddle_programs/run.py --page      # only write the page from what is recorded

`gradcheck backends add paddle@3.3.1` makes the environment of a release; a release without one is an error. A program
is a file of `programs/`: its title and what it is about as comments, the code, what is right, and what each release
prints. It runs in a separate process, forked from one that imported Paddle (`runner.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from gradcheck.backends.environments import folder_of, python_in
from gradcheck.conformance.programs import PlainProgram, read_program
from gradcheck.conformance.table import describe_backends
from gradcheck.support.resources import release_paths

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
PAGE = HERE.parents[1] / "paddle.md"
RUNNER = HERE / "runner.py"
HEAD = """# Findings in Paddle

What gradcheck and its suite found in Paddle itself, each with a program that needs Paddle alone. `right` is by
mathematics, or what Paddle does elsewhere; an exception is printed as its type, and a process that dies as its signal.
Each program was run on each of the {count} releases named below, on a CPU; "fixed in" names the release that was run.
Everything here is written by [`docs/examples/paddle_programs/run.py`](examples/paddle_programs/run.py) from
the programs beside it; what contradicts a sentence of Paddle's documents is in
[the matrix](matrix.md), and layers of other packages are in [their own findings](findings.md).

"""
GROUPS = ("The process dies", "Another result, in silence", "An exception")
"""The kinds of findings, the worst first."""


def main() -> int:
    """Run unless only the page is asked for, and write the page."""
    if sys.argv[1:] != ["--page"]:
        paths = [PROGRAMS / f"{name}.py" for name in sys.argv[1:]] or sorted(PROGRAMS.glob("*.py"))
        printed = {release: run_programs(release, paths) for release in release_paths()}
        for path in paths:
            record_prints(path, {release: outputs[path.name] for release, outputs in printed.items()})
    PAGE.write_text(page(), encoding="utf-8")
    return 0


# ------------------------------------------------------------------------------------ running
def run_programs(release: str, paths: Sequence[Path]) -> dict[str, str]:
    """Return what each program prints on a release, by the file's name."""
    command = [python_in(folder_of(f"paddle@{release}")), RUNNER, *paths]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    prints: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    print(release, prints, flush=True)
    return prints


def record_prints(path: Path, prints: Mapping[str, str]) -> None:
    """Write at the end of a program what each release prints, equal ones in one line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = lines[: next(number for number, line in enumerate(lines) if line.startswith("# right: ")) + 1]
    for text, group in groupby(prints.items(), key=lambda item: item[1]):
        kept.append(f"# {', '.join(release for release, _ in group)}: {text}")
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------ the page
def page() -> str:
    """Return the page of what is recorded.

    Raises:
        LookupError: a program does on every release what is right.
    """
    programs = [read_program(path) for path in sorted(PROGRAMS.glob("*.py"))]
    parts = [HEAD.format(count=len(release_paths())), *table(programs)]
    for group in GROUPS:
        parts.append(f"\n## {group}\n")
        for program in programs:
            if group_of(program) == group:
                parts.append(section(program))
    return "".join(parts)


def table(programs: Sequence[PlainProgram]) -> Iterator[str]:
    """Yield a table of the findings: on which releases they are, and which release fixed them."""
    yield "| finding | releases | fixed in |\n|---|---|---|\n"
    for group in GROUPS:
        for program in programs:
            if group_of(program) == group:
                title, _, _ = parts_of(program)
                yield f"| [{title}](#{program.path.stem}) | {affected(program)} | {fixed_in(program)} |\n"


def section(program: PlainProgram) -> str:
    """Return what the page says of a finding: the title, the text, and the rest of its file."""
    title, text, code = parts_of(program)
    blocks = [f'<a id="{program.path.stem}"></a>', f"### {title}", text, f"```python\n{code}\n```"]
    return "".join(f"\n{block}\n" for block in blocks if block)


def parts_of(program: PlainProgram) -> tuple[str, str, str]:
    """Return the title, the text, and the code with what it prints."""
    comments, code = program.path.read_text(encoding="utf-8").split("\nimport ", 1)
    title, *lines = [line.removeprefix("#").strip() for line in comments.splitlines()]
    return title, "\n".join(lines).strip(), f"import {code.strip()}"


def wrong(program: PlainProgram) -> list[str]:
    """Return the releases on which a program prints something else than what is right."""
    releases = [release for release, text in program.prints.items() if text != program.expected]
    if not releases:
        raise LookupError(f"{program.path.name} prints what is right everywhere: it is found no more")
    return releases


def group_of(program: PlainProgram) -> str:
    """Return what a program shows on the last release that has the finding."""
    text = program.prints[wrong(program)[-1]]
    return GROUPS[0] if text.startswith("SIG") else GROUPS[2] if text.endswith("Error") else GROUPS[1]


def affected(program: PlainProgram) -> str:
    """Return the releases that have a finding, in words."""
    wrong_on, run_on = ([f"paddle@{release}" for release in part] for part in (wrong(program), program.prints))
    return describe_backends(wrong_on, run_on)


def fixed_in(program: PlainProgram) -> str:
    """Return the release that was run after the last one with the finding; empty if none was."""
    later = [*program.prints][[*program.prints].index(wrong(program)[-1]) + 1 :]
    return later[0] if later else ""


if __name__ == "__main__":
    sys.exit(main())
