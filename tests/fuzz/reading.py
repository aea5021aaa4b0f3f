"""What must hold when a file is read, whatever is in it.

A long run: ``python tests/fuzz/reading.py --inputs 1000000``.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[2]
LIMIT = 5.0
"""Seconds of processor time that no input may take."""


def check(raw: bytes) -> str:
    """Read a file with the content `raw`: ``accepted``, or ``refused`` with mistakes that can be shown and located.

    Raises:
        AssertionError: a mistake has no message, or no place in the file, or could steer a terminal or hide in it.
    """
    from gradcheck.run.plan import plan
    from gradcheck.spec.diagnostic import SpecError
    from gradcheck.spec.model import Scenario
    from gradcheck.spec.read import read_bytes
    from gradcheck.support.escape import escape

    mistakes = []
    try:
        spec = read_bytes(raw, "t.grad.yaml")
    except SpecError as error:
        mistakes = error.diagnostics
        assert mistakes
    if mistakes:
        lines = raw.count(b"\n") + raw.count(b"\r") + 1
        for one in mistakes:
            assert one.message
            assert all(escape(line) == line for line in one.render().split("\n"))
            assert 0 <= one.line <= lines
            assert (1 if one.line else 0) <= one.column <= len(one.source_line) + 2
        return "refused"
    for scenario in spec.scenarios:
        assert repr(Scenario.model_validate_json(scenario.model_dump_json())) == repr(scenario)
    assert len({case.name for case in plan([spec], ["numpy"])}) <= 256 * len(spec.scenarios)
    return "accepted"


def out_of_time(number: int, frame: FrameType | None) -> None:
    """Ends an input that takes too long."""
    raise TimeoutError(f"took longer than {LIMIT:g} s")


def main() -> int:
    """Read the inputs of the seeds asked for, and say how it went; 1 if any of them went wrong."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "engine"), str(Path(__file__).parent)]
    from documents import document

    counts: Counter[str] = Counter()
    slowest, memory, began = (0.0, 0), [0, 0], time.perf_counter()
    signal.signal(signal.SIGPROF, out_of_time)
    for seed in range(options.first, options.first + options.inputs):
        raw = document(random.Random(seed))
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            counts[check(raw)] += 1
        except Exception as error:
            counts[type(error).__name__] += 1
            print(f"seed {seed}: {type(error).__name__}: {error}"[:500], flush=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, (time.process_time() - started, seed))
        if seed == options.first + options.inputs // 10:
            memory[0] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory[1] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wrong = sum(counts.values()) - counts["accepted"] - counts["refused"]
    print(
        f"{options.inputs} inputs in {time.perf_counter() - began:.0f} s: {dict(counts)}, {wrong} wrong; "
        f"slowest {slowest[0]:.2f} s (seed {slowest[1]}); "
        f"peak memory {memory[0] / 1024:.0f} MiB after a tenth, {memory[1] / 1024:.0f} MiB in the end"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
