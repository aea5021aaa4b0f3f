"""Runs the benchmarks, records their figures, and draws the pages' tables and charts from the record.

python docs/examples/benchmarks.py [NAME …] [--peers PYTHON]   # measure these anew, by default all
python docs/examples/benchmarks.py --draw                      # only draw what benchmarks.json has recorded

Peers (torch, jax, autograd) are measured where this interpreter has them, an installed Paddle also where `--peers` has.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "pictures"))

from charts import bars, points  # noqa: E402

RECORD = HERE / "benchmarks.json"
RUNS = {
    "bundled": "bundled.py",
    "tests": "whole_tests.py",
    "mutants": "mutants.py",
    "causes": "causes.py",
    "causes-float32": "causes.py --dtype float32",
    "engine-mutants": "engine_mutants.py",
    "checkers": "gradcheckers.py --rounds 3 --cases tanh-100,tanh-1000,matmul-16,softmax-100,xent",
    "engines": "engines.py --rounds 2",
    "suite": "overhead.py --rounds 2",
    "path": "path.py --beside 2793097d",
    "peers": "peers.py",
    "jax-functions": "jax_functions.py",
    "torch-released": "torch_released.py",
}
"""Name of a benchmark → its script in tests/bench, and the arguments."""
TORCH_PACKAGES = (
    "entmax", "e3nn", "monai", "kornia", "pytorch_optimizer", "gpytorch", "linear_operator",
    "torch_geometric", "revlib", "brevitas", "spikingjelly", "snntorch", "pytorch_revgrad",
)  # fmt: skip
"""The packages that docs/examples/findings/torch.grad.yaml takes Functions from."""
NEEDED = {
    "peers": ("torch", "jax", "autograd"),
    "jax-functions": ("jax",),
    "torch-released": ("torch", *TORCH_PACKAGES),
}
"""Packages without which a benchmark cannot run; the others leave out the peers that are not installed."""
OURS, THEIRS = "#1565c0", "#c62828"
Record = Mapping[str, Mapping[str, Any]]


# ------------------------------------------------------------------------------------ measuring
def measured(name: str, peers: str) -> dict[str, Any]:
    """The figures of one benchmark, and the machine that they are from."""
    script, *arguments = RUNS[name].split()
    arguments += ["--peers", peers] if peers and name == "engines" else []
    machine = machine_now()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, str(ROOT / "tests/bench" / script), *arguments, "--json", str(file)]
        subprocess.run(command, check=True)
        return {"machine": machine, "figures": json.loads(file.read_text(encoding="utf-8"))}


def machine_now() -> str:
    """The machine in words: how much else it does at the moment included."""
    packages = {"numpy": "NumPy", "torch": "torch", "autograd": "autograd", "jax": "jax"}
    found = [f"{said} {there}" for package, said in packages.items() if (there := version_of(package))]
    system = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    load = f"load average {os.getloadavg()[0]:.1f} at the start"
    return f"{system} ({load}), Python {platform.python_version()}, {', '.join(found)}"


def version_of(package: str) -> str:
    """The version of an installed package; empty if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


# ------------------------------------------------------------------------------------ tables
def table(*rows: tuple[object, ...]) -> str:
    """A table in Markdown; the first row is its head."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def shown(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def mutants(record: Record) -> str:
    """Mutants caught and false alarms, by checker."""
    found = record["mutants"]["figures"]
    checkers = {"ours": "gradcheck", "torch gradcheck": "torch `gradcheck`, defaults"}
    names = [name for name in found["alarms"] if name in checkers]
    return table(
        ("", *(checkers[name] for name in names)),
        (f"mutants caught, of {found['mutants']}", *(found["caught"][name] for name in names)),
        (f"false alarms, of {found['right']} right cases", *(found["alarms"][name] for name in names)),
    )


def causes(record: Record) -> str:
    """Outcomes of the search for a mistake's cause, in both dtypes."""
    columns = [record[name]["figures"] for name in ("causes", "causes-float32") if name in record]
    outcomes = [name for name in columns[0]["outcomes"] if any(column["outcomes"][name] for column in columns)]
    return table(
        (
            f"of {columns[0]['mistakes']} mistakes in {columns[0]['layers']} layers",
            *(column["dtype"] for column in columns),
        ),
        *((name, *(column["outcomes"][name] for column in columns)) for name in outcomes),
        (f"of {columns[0]['nonsense']} nonsense backwards, explained", *(column["explained"] for column in columns)),
    )


def engine_mutants(record: Record) -> str:
    """How many ways to break the engine the scenarios notice."""
    found = record["engine-mutants"]["figures"]
    return table(
        ("ways to break the engine", "noticed", "by a scenario of a rule that it breaks"),
        (found["mutants"], found["caught"], found["own"]),
    )


def checkers(record: Record) -> str:
    """Median milliseconds of each checker."""
    found = record["checkers"]["figures"]["seconds"]
    names = list(next(iter(found.values())))
    rows = ((f"`{case}`", *(shown(1e3 * median(times[name])) for name in names)) for case, times in found.items())
    return table(("milliseconds", *names), *rows)


def peers(record: Record) -> str:
    """Verdicts on the same layers in each framework, by gradcheck and by its own checker."""
    found = record["peers"]["figures"]
    wrong = f"{found['mistakes']} wrong: refused"
    rows = [
        (label, *(f"{row[kind][0]}, {row[kind][1]}" for kind in ("right", "wrong")), lines_named(label, row["line"]))
        for label, row in found["checkers"].items()
    ]
    head = ("", f"{found['layers']} right, float64, float32: accepted", wrong, "a line is named")
    times = ", ".join(f"{name} {ratio:.1f}" for name, ratio in found["speed"].items())
    middle = f"{median(found['speed'].values()):.1f}"
    about = "The time of a check of a right torch layer, as a multiple of the fast mode of torch"
    sentence = f"{about}: {times}; median **{middle}**."
    return f"{table(head, *rows)}\n\n{sentence}"


def lines_named(label: str, counts: list[int]) -> str:
    """How often a checker named a line, by dtype."""
    return f"{counts[0]}, {counts[1]}" if label.endswith(": gradcheck") else "none"


def jax_functions(record: Record) -> str:
    """Verdicts on functions of JAX, by gradcheck and by JAX's own checker, and the CPU time of a check."""
    found = record["jax-functions"]["figures"]
    ours, theirs = ([found[dtype][name] for dtype in found] for name in ("gradcheck", "check_grads"))

    def pair(counts: list[dict[str, float]], key: str) -> str:
        return " and ".join(str(each.get(key, 0)) for each in counts)

    def seconds(counts: list[dict[str, float]]) -> str:
        return " and ".join(f"{each['seconds'] / each['checks']:.2f}" for each in counts)

    right = sum(number for key, number in ours[0].items() if key.startswith("PASS as "))
    rows = (
        (f"{right} right ones: PASS", "PASS as PASS"),
        (f"{ours[0]['checks'] - right} mistakes: FAIL", "FAIL as FAIL"),
    )
    return table(
        ("float64 and float32", "gradcheck", "`jax.test_util.check_grads`"),
        *((said, pair(ours, key), pair(theirs, key)) for said, key in rows),
        (f"{ours[0]['about a line']} mistakes about one line: that line is named", pair(ours, "line named"), "none"),
        ("… another line is named", pair(ours, "another line named"), "none"),
        ("seconds of CPU a check, compilation included", seconds(ours), seconds(theirs)),
    )


def torch_released(record: Record) -> str:
    """Verdicts on Functions of released packages, by package."""
    found = record["torch-released"]["figures"]["packages"]
    outcomes = ("right", "by design", "wrong")
    rows = [(f"{name} {row['version']}", *(row[each] or "" for each in outcomes)) for name, row in found.items()]
    totals = (f"**{sum(row[each] for row in found.values())}**" for each in outcomes)
    return table(("package", *outcomes), *rows, ("", *totals))


def engines(record: Record) -> str:
    """Median times of each engine."""
    found = record["engines"]["figures"]
    scale = {"chain": 1e3, "mlp": 1e3, "big": 1e3}  # seconds to milliseconds; a chain has 1000 operations
    rows = (
        (name, found["versions"][name], *(shown(factor * median(times[what])) for what, factor in scale.items()))
        for name, times in found["seconds"].items()
    )
    return table(("engine", "version", "`chain` ms", "`mlp` ms", "`big` ms"), *rows)


def suite(record: Record) -> str:
    """Times of the bundled scenarios."""
    found = record["suite"]["figures"]
    return table(
        (f"{found['cases']} bundled cases", ""),
        ("in one process, milliseconds a case", f"{found['loop']:.1f}"),
        ("with a process for each, milliseconds a case", f"{found['worker']:.1f}"),
        *((f"whole run with `-j {jobs}`, seconds", f"{took:.1f}") for jobs, took in found["whole"].items()),
    )


def path(record: Record) -> str:
    """Functions, switches and calls from a scenario's text to its report, today and at an earlier commit."""
    found = record["path"]["figures"]
    rows = [
        (name, what, then, now, f"{now / then:.2f}")
        for name, counts in found["now"].items()
        for what, now in counts.items()
        for then in [found["then"][name][what]]
    ]
    return table(("scenario", "", f"commit `{found['commit']}`", "today", "ratio"), *rows)


def why(record: Record) -> str:
    """The evidence for the verdicts in one table: a question, the figures, the script that has them."""
    mutated, named, broken = (record[name]["figures"] for name in ("mutants", "causes", "engine-mutants"))
    checkers = ("ours", "torch gradcheck")
    caught, alarms = ([mutated[key].get(checker, "") for checker in checkers] for key in ("caught", "alarms"))
    right_lines, wrong_lines = (named["outcomes"][name] for name in ("right line", "named wrongly"))
    noticed = f"Of {broken['mutants']} ways to break the engine, how many do the bundled scenarios notice?"
    return table(
        ("question", "gradcheck", "torch's checker", "script in `tests/bench`"),
        (f"Of {mutated['mutants']} wrong backwards, how many FAIL?", *caught, "`mutants.py`"),
        (f"Of {mutated['right']} right ones, how many FAIL?", *alarms, "`mutants.py`"),
        (f"Of {named['mistakes']} mistakes, how many are named at the right line?", right_lines, "", "`causes.py`"),
        ("… and how many at a wrong one?", wrong_lines, "", "`causes.py`"),
        (f"Of {named['nonsense']} nonsense backwards, how many get a cause?", named["explained"], "", "`causes.py`"),
        (noticed, broken["caught"], "", "`engine_mutants.py`"),
    )


TABLES: dict[str, Callable[[Record], str]] = {
    "mutants": mutants, "causes": causes, "engine-mutants": engine_mutants, "checkers": checkers, "engines": engines,
    "suite": suite, "path": path, "why": why, "peers": peers, "jax-functions": jax_functions,
    "torch-released": torch_released,
}  # fmt: skip
"""The table that is drawn in the place of that name on a page."""
PICTURES = {"checkers": "Ratios of the checkers' times", "engines": "Ratios of the engines' times"}
"""The chart above such a table, NAME.svg → what it shows."""


# ------------------------------------------------------------------------------------ charts
def ratios(seconds: Mapping[str, Mapping[str, list[float]]], base: str) -> dict[str, dict[str, float]]:
    """Medians over the rounds of each one's seconds over those of `base` in the same round."""
    return {
        row: {
            name: median(mine / other for mine, other in zip(times, of[base], strict=True))
            for name, times in of.items()
        }
        for row, of in seconds.items()
    }


def verdicts(record: Record) -> list[tuple[str, float, float, str]]:
    """The rows of the chart of verdicts: name, how many, of how many, colour."""
    rows: list[tuple[str, float, float, str]] = []
    if "mutants" in record:
        found = record["mutants"]["figures"]
        for what, key, of in (("mutants caught", "caught", "mutants"), ("false alarms", "alarms", "right")):
            for name, said, colour in (("ours", "gradcheck", OURS), ("torch gradcheck", "torch", THEIRS)):
                if name in found[key]:
                    rows.append((f"{what}, {said}", found[key][name], found[of], colour))
    for name, said in (("causes", "float64"), ("causes-float32", "float32")):
        if name in record:
            found = record[name]["figures"]
            rows.append((f"mistakes named, {said}", found["outcomes"]["right line"], found["mistakes"], OURS))
    if "engine-mutants" in record:
        found = record["engine-mutants"]["figures"]
        rows.append(("broken engines noticed", found["caught"], found["mutants"], OURS))
    return rows


def charts(record: Record) -> dict[str, str]:
    """The charts of what was measured, by the name of their file."""
    drawn = {}
    if rows := verdicts(record):
        drawn["verdicts.svg"] = bars("Verdicts", rows)
    if "checkers" in record:
        seconds, across = record["checkers"]["figures"]["seconds"], "times as long as gradcheck (ours, auto)"
        drawn["checkers.svg"] = points("How long a check takes", across, ratios(seconds, "ours, auto"))
    if "engines" in record:
        found, across = record["engines"]["figures"]["seconds"], "times as long as hand-written NumPy"
        work = {"chain": "1000 small operations", "mlp": "a small network", "big": "large arrays"}
        seconds = {said: {name: times[key] for name, times in found.items()} for key, said in work.items()}
        drawn["engines.svg"] = points("How long forward and backward take", across, ratios(seconds, "raw NumPy"))
    return drawn


# ------------------------------------------------------------------------------------ sentences
def bundled_screen(block: re.Match[str], figures: Mapping[str, Any]) -> str:
    """README's screen of the bundled run: the lines that it shows, with the figures of the record."""
    lines = []
    for line in block[0].splitlines():
        first = line.split("  ")[0]
        if line.startswith("gradcheck "):
            line = figures["header"]
        elif first in figures["files"]:
            counts, *ratio, seconds = figures["files"][first]
            line = f"{first:<46}{counts:<20}{''.join(ratio):>19}{seconds:>9}"
        elif line[:1].isdecimal():
            line = figures["summary"]
        lines.append(line)
    return "\n".join(lines)


def bundled_sentence(_: re.Match[str], figures: Mapping[str, Any]) -> str:
    """The FAQ's sentence on how long the bundled cases take."""
    return f"The {figures['cases']:,} bundled cases take about {figures['seconds']:.0f} seconds on two cores"


def speed_sentence(_: re.Match[str], figures: Mapping[str, Any]) -> str:
    """How long a check of 1,000 elements takes, compared with torch's checker in both modes."""
    times = figures["seconds"]["tanh-1000"]
    ratio = ratios({"": times}, "ours, full")[""]
    slow, fast = (f"{shown(ratio[name])} times as long" for name in ("torch, slow", "torch, fast"))
    return f"every entry certified: torch's slow mode takes {slow}, its fast mode, which compares one number, {fast}"


def tests_sentence(_: re.Match[str], figures: Mapping[str, Any]) -> str:
    """How long all tests take."""
    return f"about {figures['seconds'] / 60:.0f} minutes on 2 cores"


TESTS_SENTENCE = r"about \d+ minutes on 2 cores"
SENTENCES: tuple[tuple[str, str, str, Callable[[re.Match[str], Mapping[str, Any]], str]], ...] = (
    ("README.md", r"(?<=```text\n)gradcheck .*?(?=\n```)", "bundled", bundled_screen),
    ("README.md", TESTS_SENTENCE, "tests", tests_sentence),
    ("CONTRIBUTING.md", TESTS_SENTENCE, "tests", tests_sentence),
    ("docs/peers.md", r"every entry certified: torch's .*? times as long.*? times as long", "checkers", speed_sentence),
    ("docs/faq.md", r"The [\d,]+ bundled cases take about \d+ seconds on two cores", "bundled", bundled_sentence),
)
"""Figures in running text: page, pattern, benchmark, and what is written from its figures."""


# ------------------------------------------------------------------------------------ pages
def pages(record: Record) -> dict[Path, str]:
    """The pages that have places for figures, with these figures."""
    drawn = {}
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        before = after = path.read_text(encoding="utf-8")
        sentences = [row for row in SENTENCES if ROOT / row[0] == path and row[2] in record]
        for _, pattern, name, write in sentences:
            figures = record[name]["figures"]
            after = re.sub(pattern, lambda found, w=write, f=figures: w(found, f), after, flags=re.S)
        for name in re.findall(r"^<!-- ([\w-]+) -->$", before, re.M):
            content = f"Not recorded yet: `python docs/examples/benchmarks.py {name}` measures it."
            if name in record or name == "why":
                machine = record["mutants" if name == "why" else name]["machine"]
                picture = f"![{PICTURES[name]}](pictures/{name}.svg)\n\n" if name in PICTURES else ""
                content = f"{picture}{TABLES[name](record)}\n\n{machine}."
            place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- / -->)", re.S)
            after = place.sub(lambda found, content=content: f"{found[1]}{content}\n{found[2]}", after)
        if sentences or "<!-- / -->" in before:
            drawn[path] = after
    return drawn


def files(record: Record) -> dict[Path, str]:
    """Everything that is drawn from the record."""
    return pages(record) | {ROOT / "docs/pictures" / name: chart for name, chart in charts(record).items()}


def main() -> None:
    """Measure the given benchmarks, and draw all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RUNS)}")
    parser.add_argument("--peers", default="", metavar="PYTHON", help="an interpreter with further engines")
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(RUNS):
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; the benchmarks are {', '.join(RUNS)}")
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    for name in () if chosen.draw else chosen.names or RUNS:
        if missing := [package for package in NEEDED.get(name, ()) if not version_of(package)]:
            print(f"{name} is left out: it needs {', '.join(missing)}")
            continue
        record[name] = measured(name, chosen.peers)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for path, content in files(record).items():
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
