"""Mutation score of the bundled scenarios: the engine broken rule by rule, and whether a scenario notices.

    python tests/bench/engine_mutants.py                 # every mutation of engine_mutations/*.yaml
    python tests/bench/engine_mutants.py --sample 12     # 12 of them, evenly spread
    python tests/bench/engine_mutants.py --own           # on no scenario but those of a rule that one of them breaks
    python tests/bench/engine_mutants.py not-inplace     # those whose id or rules hold the text
    python tests/bench/engine_mutants.py --random 100 --seed 1 2      # 100 blind ones for each seed
    python tests/bench/engine_mutants.py --without world              # on all scenarios but those of worlds

A mutation is an entry of ``engine_mutations/*.yaml``: its `id`, the rules that it `breaks` (ids of the rule catalogue),
a text `old` that stands once in ``engine/pylayer``, whatever the file, and what takes its place. A process of its own
imports the engine with that file's text changed and runs the scenarios that come to the lines that it changes, those of
the broken rules first and then the quickest, until one is not as expected. `equivalent` says why no scenario can tell a
mutation from the engine: it is listed, not run. Exit status 1 if an aimed mutation survives; 2 if the engine itself is
not as the scenarios expect, for then every mutant would seem to be caught.

With ``--random`` the mutations are blind: drawn from all places of the engine's trees at which one of a few changes can
be made (`blind_mutations`). Some of those survive in any suite; what is printed is the rate. The scenarios run on the
engine as it is defined (``PYLAYER_PLAIN=1``), for else the lines for which `pylayer.fast` has shorter ways do not run;
where such a way is what is mutated, it is taken.
"""

from __future__ import annotations

import argparse
import contextlib
import contextvars
import functools
import io
import json
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import NamedTuple

import yaml
from blind_mutations import Blind, drawn
from reach import Reach, Traced

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "engine" / "pylayer"
sys.path.insert(0, str(ROOT))

from gradcheck.case.case import Case  # noqa: E402
from gradcheck.result import Result, Status  # noqa: E402
from gradcheck.run.plan import plan  # noqa: E402
from gradcheck.spec.read import load  # noqa: E402

AS_EXPECTED = (Status.PASS, Status.KINK, Status.XFAIL, Status.SKIP)
LONGEST = 120
"""Seconds of processor time after which a mutant counts as hanging; the whole suite takes a tenth."""
FEW = 20
"""So many mutants are tried on all cases: to trace what each case runs takes as long as the suite three times."""


class Mutation(NamedTuple):
    """One way in which the engine breaks a rule."""

    id: str
    breaks: Sequence[str]
    old: str
    new: str
    equivalent: str = ""

    def applied(self, folder: Path) -> tuple[Path, str]:
        """The file of the engine in `folder` that it changes, and its text then.

        Raises:
            ValueError: the old text does not stand there once, so that the mutation has to be written anew.
        """
        texts = texts_of(folder)
        if (count := sum(text.count(self.old) for text in texts.values())) != 1:
            raise ValueError(f"{self.id}: the old text stands {count} times in the engine, not once: {self.old!r}")
        path = next(path for path, text in texts.items() if self.old in text)
        return path, texts[path].replace(self.old, self.new)

    plain = False

    def lines(self, folder: Path) -> tuple[str, range]:
        """The file, and the numbers of the lines, that it changes."""
        path, _ = self.applied(folder)
        before, _, _ = path.read_text(encoding="utf-8").partition(self.old)
        first = before.count("\n") + 1
        return str(path.relative_to(folder)), range(first, first + self.old.count("\n") + 1)


@functools.cache
def texts_of(folder: Path) -> dict[Path, str]:
    """The text of every module below a folder."""
    return {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}


class Outcome(NamedTuple):
    """What became of a mutant: the case that caught it and how, or nothing."""

    mutation: Mutation | Blind
    caught_by: str
    how: str

    @property
    def by_its_rule(self) -> bool:
        """Whether a scenario caught it that cites a rule that it breaks."""
        return any(case.name == self.caught_by and cites(case, self.mutation) for case in CASES)


class Hanging(BaseException):
    """The mutant took too long."""


def mutations() -> list[Mutation]:
    """All of them, in the order of the files."""
    files = sorted((Path(__file__).parent / "engine_mutations").glob("*.yaml"))
    texts = (file.read_text(encoding="utf-8") for file in files)
    return [Mutation(**entry) for text in texts for entry in yaml.load(text, yaml.CSafeLoader)]


CASES: list[Case] = []
REACHES: dict[bool, dict[str, Reach]] = {}
"""By name of a case what it runs of the engine as it is, without the shorter ways and with them."""
IMPORTED: dict[bool, set[tuple[str, int]]] = {}
"""The lines that run when the engine is imported; none if nothing was traced."""


def ordered(mutation: Mutation | Blind) -> list[Case]:
    """The cases that come to the lines of a mutation: those that cite a rule that it breaks, then the quickest."""
    file, numbers = mutation.lines(ENGINE)
    lines = {(file, number) for number in numbers}
    reaches, imported = REACHES[mutation.plain], IMPORTED[mutation.plain]
    everywhere = not imported or lines & imported
    cases = [case for case in CASES if everywhere or lines & reaches[case.name].lines]
    return sorted(cases, key=lambda case: (not cites(case, mutation), reaches[case.name].seconds))


def cites(case: Case, mutation: Mutation | Blind) -> bool:
    """Whether a case cites a rule that the mutation breaks."""
    return not set(mutation.breaks).isdisjoint(case.scenario.tags)


class MutatedFile(MetaPathFinder, SourceFileLoader):
    """Loads one file of the engine from another text; the other modules come as ever, compiled already."""

    def __init__(self, file: Path, text: str) -> None:
        super().__init__("", str(file))
        self.text = text

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of the module if the file is its source."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin != self.path:
            return None
        spec.loader, self.name = self, name
        return spec

    def get_code(self, name: str) -> CodeType:
        """The code of the text."""
        code: CodeType = self.source_to_code(self.text.encode(), self.path)
        return code


def choose_engine(plain: bool) -> None:
    """Take the checkout's engine, with its shorter ways or without."""
    os.environ["PYLAYER_PLAIN"] = str(int(plain))
    sys.path.insert(0, str(ENGINE.parent))


def looked_at(tracing: bool, plain: bool) -> tuple[dict[str, Reach], set[tuple[str, int]], str]:
    """Run the suite on the engine as it is, in this process: what each case runs, what an import runs, what fails."""
    reaches: dict[str, Reach] = {}
    failed = ""
    choose_engine(plain)
    with quiet():
        traced = Traced(ENGINE if tracing else None)
        with traced.block():
            import_module("pylayer")
            execute = import_module("gradcheck.case.execute").execute  # only now: it imports the engine
        for case in CASES:
            started = time.monotonic()
            with traced.block() as lines:
                result = alone(execute, case)
            reaches[case.name] = Reach(frozenset(lines), time.monotonic() - started)
            if result.status not in AS_EXPECTED:
                failed = failed or f"{case.name}: {result.status}: {result.message}"
    return reaches, traced.imported, failed


def alone(execute: Callable[[Case], Result], case: Case) -> Result:
    """The result of a case as in a process of its own: programs and changes in place of others are not its own."""
    import_module("pylayer.tape.versions").changes.clear()
    return contextvars.copy_context().run(execute, case)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """A block that prints and warns nothing."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tried(mutation: Mutation | Blind) -> Outcome:
    """Run the cases that may notice the mutant, in this process, which serves for nothing else."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hanging

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    current = "import"
    assert "pylayer" not in sys.modules, "the engine is there already, as it is"
    sys.meta_path.insert(0, MutatedFile(*mutation.applied(ENGINE)))
    choose_engine(mutation.plain)
    with quiet():
        try:
            import_module("pylayer")
            execute = import_module("gradcheck.case.execute").execute
            for case in ordered(mutation):
                current = case.name
                result = alone(execute, case)
                if result.status not in AS_EXPECTED:
                    return Outcome(mutation, case.name, f"{result.status}: {result.message[:160]}".replace("\n", " "))
        except Hanging:
            return Outcome(mutation, current, "it hangs")
        except Exception as error:  # the harness itself cannot go on, or import the engine
            if current == "import" and isinstance(mutation, Mutation):
                raise ValueError(f"{mutation.id}: it cannot be imported, which tells nothing: {error}") from None
            return Outcome(mutation, current, f"{type(error).__name__}: {error}")
    return Outcome(mutation, "", "")


def selected(arguments: argparse.Namespace) -> Sequence[Mutation | Blind]:
    """The mutations that the command line asks for."""
    if arguments.random:
        return [blind for seed in arguments.seed for blind in drawn(ENGINE, arguments.random, seed)]
    found = mutations()
    if arguments.words:
        found = [m for m in found if any(w in text for w in arguments.words for text in (m.id, *m.breaks))]
    if arguments.sample:
        found = [m for m in found if not m.equivalent]
        found = found[:: max(1, len(found) // arguments.sample)][: arguments.sample]
    return found


def main() -> int:
    """Print what became of each mutation, and how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="TEXT", help="only mutations whose id or rules hold one of these")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N mutations, evenly spread")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N blind mutations in place of those")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], metavar="S", help="of the blind ones: N for each")
    parser.add_argument("--without", default="-", metavar="TEXT", help="leave out scenarios whose ids begin with this")
    parser.add_argument("--own", action="store_true", help="only scenarios of a rule that one of the mutations breaks")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes at a time")
    parser.add_argument("--survivors", action="store_true", help="print only what survives")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    started = time.monotonic()
    cases = plan(load([ROOT / "specs"]), ["numpy"])
    CASES.extend(case for case in cases if not case.name.startswith(arguments.without))
    wanted = selected(arguments)
    if arguments.own:
        CASES[:] = [case for case in CASES if any(cites(case, mutation) for mutation in wanted)]
    outcomes: list[Outcome] = []
    fork = multiprocessing.get_context("fork")
    for plain in {mutation.plain for mutation in wanted}:
        with fork.Pool(1, maxtasksperchild=1) as pool:
            REACHES[plain], IMPORTED[plain], failed = pool.apply(looked_at, [len(wanted) > FEW, plain])
        if failed:
            print(f"the engine itself fails {failed}")
            return 2
    with fork.Pool(arguments.jobs, maxtasksperchild=1) as pool:
        for outcome in pool.imap(tried, [m for m in wanted if not m.equivalent], chunksize=1):
            outcomes.append(outcome)
            told(outcome, arguments.survivors)
    for mutation in wanted:
        if mutation.equivalent:
            print(f"equivalent {mutation.id}: {mutation.equivalent}")
    caught = sum(bool(outcome.caught_by) for outcome in outcomes)
    own = sum(outcome.by_its_rule for outcome in outcomes)
    by_rule = "" if arguments.random else f", {own} by a scenario of a rule that they break"
    seconds = time.monotonic() - started
    print(f"{caught} of {len(outcomes)} mutants caught{by_rule}; {len(CASES)} cases, {seconds:.0f} s")
    if arguments.json:
        figures = {"mutants": len(outcomes), "caught": caught, "own": own, "cases": len(CASES)}
        arguments.json.write_text(json.dumps(figures), encoding="utf-8")
    return int(caught < len(outcomes) and not arguments.random)


def told(outcome: Outcome, survivors_alone: bool) -> None:
    """Print what became of a mutant."""
    mutation = outcome.mutation
    if not outcome.caught_by:
        print(f"SURVIVED  {mutation.id}", *(f"breaks {rule}" for rule in mutation.breaks), flush=True)
    elif not survivors_alone:
        beside = "" if outcome.by_its_rule or not mutation.breaks else " (not one of its rules)"
        print(f"caught    {mutation.id}: {outcome.caught_by}{beside}: {outcome.how}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
