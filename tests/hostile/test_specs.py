"""Hostile spec files: `validate` refuses each, soon, in little memory, and without running a thing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from warm import python

ROOT = Path(__file__).parents[2]
SECONDS = 20
"""Of processor time that reading any file may take."""
MEGABYTES = 600
"""What reading any file may take: the largest that is read has 10 MB and 50,000 values."""

HEAD = "schema: gradcheck/v1\nscenarios:\n  - id: a\n    title: t\n    source: {document: d}\n"
LAYER = HEAD + "    layer: {op: tanh}\n"
INPUT = LAYER + "    inputs: {x: {shape: [2]}}\n"


def laughs() -> str:
    names = "abcdefghi"
    lists = [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in pairwise(names)]
    return "\n".join(["a: &a [lol]", *lists, "schema: gradcheck/v1"])


def nested_finally(depth: int) -> list[str]:
    """A program of which Python compiles the last line 2 ** `depth` times."""
    lines = [f"{' ' * k}try: id\n      {' ' * k}finally:" for k in range(depth)]
    return [*lines, " " * depth + "id"]


def patterns(k: int, pattern: str) -> str:
    """A scenario that looks for `pattern` in a message."""
    head = f"  - id: a{k}\n    extends: a0\n    title: t\n"
    return f"{head}    expect: {{raises: {{type: A, message: {{re: '{pattern}'}}}}}}\n"


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "a billion laughs": (laughs(), "alias|anchor"),
    "a merge key": (INPUT + "    <<: {seed: 1}\n", "<<"),
    "a Python object": (INPUT + "    seed: !!python/object/apply:os.system [touch ran]\n", "tag"),
    "a tag directive": ("%TAG ! tag:yaml.org,2002:python/\n---\n" + INPUT, "."),
    "brackets 100,000 deep": ("[" * 100_000, "."),
    "braces 100,000 deep": ("{a: " * 100_000, "."),
    "hyphens 100,000 deep": ("- " * 100_000, "."),
    "question marks 10,000 deep": ("? " * 10_000, "."),
    "lists 41 deep": (INPUT + f"    matrix: {{k: {'[' * 41}{']' * 41}}}\n", "deep"),
    "a quote that never ends": (INPUT + '    call: "' + "x" * 1_000_000, "."),
    "11 MB": (INPUT + "# " + "x" * 11_000_000, "10 MB"),
    "10 MB of values": (INPUT.replace("[2]", "[" + "1," * 4_900_000 + "1]"), "values"),
    "10 MB of keys": (INPUT + "    matrix: {" + ", ".join(f"k{k}: [1]" for k in range(500_000)) + "}\n", "."),
    "10 MB on a line": ("x" * 9_900_000, "."),
    "10 MB of line breaks": ("\n" * 9_900_000, "empty"),
    "10 MB of control characters": ("\x01" * 9_900_000, "control"),
    "10 MB of zero bytes": (b"\0" * 9_900_000, "."),
    "a million mistakes": (INPUT + "    x: 1\n" * 40_000, "."),
    "twice the same key": (INPUT + "    seed: 1\n    seed: 2\n", "seed"),
    "two documents": (INPUT + "---\n" + INPUT, "."),
    "UTF-16": (INPUT.encode("utf-16"), "is not UTF-8"),
    "half a character": (INPUT.encode() + b"# \xed\xa0\x80", "UTF-8"),
    "escape sequences": (INPUT.replace("title: t", "title: \x1b[2J\x07"), "control"),
    "a thousand times a thousand times a thousand": (
        LAYER + "    inputs: {x: {shape: [1000, 1000, 1000]}}\n",
        "elements",
    ),
    "more elements than there are numbers": (LAYER + f"    inputs: {{x: {{shape: [{2**62}, {2**62}]}}}}\n", "elements"),
    "a negative length": (LAYER + "    inputs: {x: {shape: [-1]}}\n", "at least 0"),
    "nine dimensions": (LAYER + "    inputs: {x: {shape: [1, 1, 1, 1, 1, 1, 1, 1, 1]}}\n", "dimensions"),
    "a matrix of a million cases": (
        INPUT + "    matrix: {" + ", ".join(f"{k}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]" for k in "abcdef") + "}\n",
        "combinations|cases",
    ),
    "extends in a circle": (INPUT + "    extends: a\n", "extends"),
    "a number of 10,000 digits": (INPUT + f"    seed: {'9' * 10_000}\n", "seed"),
    "code of 300,000 characters": (HEAD + "    script: |\n" + "      x = 1\n" * 50_000, "longer"),
    "code 1,000 parentheses deep": (HEAD + f"    script: {'(' * 1000}\n", "."),
    "a formula of 90,000 signs": (HEAD + f"    script: '{'-' * 90_000}1'\n", "."),
    "a base class 900 attributes deep": (
        HEAD + f"    layer: 'class A(b{'.b' * 900}): pass'\n    inputs: {{x: {{shape: [1]}}}}\n",
        "no subclass of PyLayer",
    ),
    "42 kB of regular expressions that look at all of Unicode": (
        INPUT.replace("id: a", "id: a0") + "".join(patterns(k, "(?i)" + "[a-\U0010ffff]" * 199) for k in range(1, 43)),
        "range in a regular",
    ),
    "a number that is not 0 and reads as 0": (INPUT + "    rtol: 1e-400\n", "1e-400 is 0"),
    "a regular expression that is none": (
        INPUT + "    expect: {raises: {type: A, message: {re: '" + "(" * 900 + "'}}}\n",
        "regular|re",
    ),
    "an id that is a path": (INPUT.replace("id: a", "id: ../../etc/passwd"), "id"),
    "a reference that is a path": (HEAD + "    layer: {ref: '../../evil:x'}\n    inputs: {x: {shape: [1]}}\n", "."),
    "an operation that kills": (HEAD + "    layer: {op: os.kill}\n    inputs: {x: {shape: [1]}}\n", "unknown op"),
    "an operation of the engine's own": (
        HEAD + "    layer: {op: _names.sys.modules.clear}\n    inputs: {x: {shape: [1]}}\n",
        "unknown op",
    ),
    "an operation that reads files": (HEAD + "    layer: {op: load}\n    inputs: {x: {shape: [1]}}\n", "unknown op"),
    "an operation with a call in it": (HEAD + "    layer: {op: 'tanh(x)'}\n    inputs: {x: {shape: [1]}}\n", "op"),
    "a timeout of a year": (INPUT + "    timeout: 31536000\n", "timeout"),
    "a name that is code": (LAYER + "    inputs: {'x); import os; (': {shape: [1]}}\n", "."),
}
TAKEN = {
    "a program of 37 lines that fills the memory": (
        HEAD + "    script: |\n" + "".join(f"      {line}\n" for line in nested_finally(18)),
        "1 scenario",
    ),
    "300 returns past 900 calls": (
        HEAD
        + "    script: |\n      def f():\n       try:\n"
        + "        if f: return\n" * 300
        + "       finally:\n"
        + "        f()\n" * 900,
        "1 scenario",
    ),
}
"""Files that only a compiler would take long for, and what is said of them."""
HOSTILE = REFUSED | TAKEN

VALIDATE = """
import json, os, resource, sys
sys.path[:0] = sys.argv[1:3]
from gradcheck.commands import main
from gradcheck.spec import read
read.SpecFile.model_rebuild()
results, running = {}, {}
def validate(file):
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[3]), int(sys.argv[3])))
    os.dup2(os.open(file + ".output", os.O_WRONLY | os.O_CREAT | os.O_EXCL), 1)
    os.dup2(1, 2)
    try:
        main(["validate", file])
    except SystemExit as end:
        banned = {"numpy", "pylayer", "paddle", "cupy"} & set(sys.modules)
        sys.stdout.flush()
        os._exit(99 if banned else end.code)
def wait():
    child, status, used = os.wait4(-1, 0)
    name, file = running.pop(child)
    with open(file + ".output") as output:
        results[name] = [os.waitstatus_to_exitcode(status), used.ru_maxrss // 1024, output.read()]
    os.unlink(file + ".output")
for name, file in json.load(sys.stdin).items():
    if len(running) == os.cpu_count():
        wait()
    if child := os.fork():
        running[child] = name, file
    else:
        try:
            validate(file)
        finally:
            os._exit(98)
while running:
    wait()
json.dump(results, sys.stdout)
"""
"""Validates each file in a process of its own: its exit code, the memory it took, and what it said."""


@pytest.fixture(scope="module")
def validated(made_once, tmp_path_factory):
    """Of each hostile file: exit code, MB, output, and what its folder holds afterwards."""
    return made_once("validated", lambda: validate_everything(tmp_path_factory))


def validate_everything(tmp_path_factory):
    folder, files = tmp_path_factory.mktemp("hostile"), {}
    for number, (name, (content, _)) in enumerate(HOSTILE.items()):
        files[name] = f"f{number}/a.grad.yaml"
        (folder / files[name]).parent.mkdir()
        raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        (folder / files[name]).write_bytes(raw)
    command = [sys.executable, "-c", VALIDATE, str(ROOT), str(ROOT / "engine"), str(SECONDS)]
    done = subprocess.run(command, input=json.dumps(files), capture_output=True, text=True, check=True, cwd=folder)
    left = {name: sorted(path.name for path in (folder / file).parent.iterdir()) for name, file in files.items()}
    assert sorted(path.name for path in folder.iterdir()) == sorted(file.partition("/")[0] for file in files.values())
    return {name: (*result, left[name]) for name, result in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_read_soon_and_in_little_memory(validated, name):
    """A process that takes longer is killed by the system."""
    code, megabytes, output, left = validated[name]
    assert code == (2 if name in REFUSED else 0)
    assert re.search(HOSTILE[name][1], output)
    assert megabytes < MEGABYTES
    assert "Traceback" not in output
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", output) is None
    assert left == ["a.grad.yaml"]


@pytest.mark.parametrize("command", ["validate", "list", "show"])
def test_commands_that_only_look_never_run_or_import_anything(tmp_path, command):
    """Every place of a spec that holds code, and a module beside it that would tell if it were imported."""
    trap = "__import__('pathlib').Path('ran').touch()"
    (tmp_path / "evil.py").write_text(f"{trap}\nclass Layer: pass\n")
    (tmp_path / "numpy.py").write_text(trap)
    scenarios = [
        {
            "layer": f"{trap}\nclass A(PyLayer): forward = backward = 0",
            "inputs": {"x": {"shape": [1]}},
            "call": f"A.apply(x, {trap})",
        },
        {"layer": {"ref": "evil:Layer"}, "inputs": {"x": {"shape": [1]}}, "call": "Layer.apply(x)"},
        {"script": trap, "expect": {"values": {trap: None}}},
    ]
    heads = [{"id": f"s{k}", "title": "t", "source": {"document": "d"}, **one} for k, one in enumerate(scenarios)]
    (tmp_path / "a.grad.yaml").write_text(json.dumps({"schema": "gradcheck/v1", "scenarios": heads}))
    ids = ["s0", "s1", "s2"] if command == "show" else []
    process = [sys.executable, str(ROOT / "cli.py"), command, "a.grad.yaml", *ids]
    done = subprocess.run(process, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.grad.yaml", "evil.py", "numpy.py"]


TRAP = "__import__('pathlib').Path('ran').touch()"
MISTAKES_TO_HOLD_CODE = {
    "tags": {"tags": [TRAP]},
    "op": {"layer": {"op": TRAP}},
    "matrix": {"matrix": {"k": [TRAP]}},
    "parameter": {"matrix": {TRAP: [1]}},
    "input": {"inputs": {TRAP: {"shape": [1]}}},
    "init": {"inputs": {"x": {"shape": [1], "init": TRAP}}},
    "type": {"expect": {"raises": {"type": TRAP}}},
    "extends": {"extends": TRAP},
}
MAY_HOLD_CODE = {
    "title": {"title": TRAP},
    "source": {"source": dict.fromkeys(["document", "section", "quote"], TRAP)},
    "message": {"expect": {"raises": {"type": "A", "message": TRAP}}},
    "pattern": {"expect": {"raises": {"type": "A", "message": {"re": TRAP}}}},
    "warns": {"expect": {"warns": {"type": "A", "message": TRAP}}},
    "reason": {"backends": {"numpy": {"xfail": {"reason": TRAP}}}},
}
"""Every place of a spec that takes text and is not named as code."""


@pytest.mark.parametrize(("places", "code"), [(MISTAKES_TO_HOLD_CODE, 2), (MAY_HOLD_CODE, 1)])
def test_no_text_but_code_is_evaluated(tmp_path, places, code):
    head = {"title": "t", "source": {"document": "d"}, "layer": {"op": "tanh"}, "inputs": {"x": {"shape": [1]}}}
    scenarios = [{**head, "id": id, **place} for id, place in places.items()]
    (tmp_path / "a.grad.yaml").write_text(json.dumps({"schema": "gradcheck/v1", "scenarios": scenarios}))
    done = python(ROOT / "cli.py", "run", "a.grad.yaml", folder=tmp_path)
    assert done.returncode == code, done.stderr
    assert "would run" not in done.stderr
    assert not (tmp_path / "ran").exists()
    if code == 2:
        assert done.stderr.count(": error: ") == len(places)


def test_a_run_of_a_strangers_file_is_refused_and_imports_nothing_of_it(tmp_path):
    (tmp_path / "a.grad.yaml").write_text(HEAD + "    script: open('ran', 'w').close()\n")
    command = [sys.executable, str(ROOT / "cli.py"), "run", "a.grad.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "a.grad.yaml:6: a would run its script, 1 line of Python" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.grad.yaml"]
