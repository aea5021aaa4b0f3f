"""Mistakes on a first command line: each is told in one message, which names what is wrong and what to write."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradcheck.commands import main
from gradcheck.commands.advice import ADVICE, OPTION_ADVICE, OPTION_PATTERNS

FILES = {
    "own.grad.yaml": """\
schema: gradcheck/v1
scenarios:
  - id: own-tanh
    tags: [mine]
    layer: |
      class Own(PyLayer):
          @staticmethod
          def forward(ctx, x):
              return x * 2
          @staticmethod
          def backward(ctx, dy):
              return dy * 2
    inputs: {x: [2]}
""",
    "mod.py": """\
import paddle
from paddle.autograd import PyLayer
class Own(PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, dy):
        return dy * 2
""",
    "acme/layers.py": "def scale(x):\n    return x * 2\n",
    "own/my_scales.py": "def scale(x):\n    return x * 2\n",
    "my-mod.py": "class Own: pass\n",
    "bad.py": "x = 1\ndef broken(:\n",
    "empty/notes.txt": "",
    "spaced/a b.grad.yaml": "schema: gradcheck/v1\nscenarios:\n  - {id: spaced, script: x = 1}\n",
    "empty.json": "{}\n",
}

# What is typed, and words of the answer: what is wrong and what to write. Exit status 2, and 5 where nothing is left.
MISTAKES = {
    # commands and options
    "runn": ("runn", "did you mean run?"),
    "halp": ("halp", "--help"),
    "--verison": ("--verison", "--version"),
    "--bundled": ("--bundled", "gradcheck run --bundled"),
    "run --allowcode": ("--allowcode", "--allow-code"),
    "run --verbos": ("--verbos", "--verbose"),
    "list --jsn": ("--jsn", "--json"),
    "list rules --uncoverd": ("--uncoverd", "--uncovered"),
    "schema --reprot": ("--reprot", "--report"),
    "schema spec": ("spec",),
    "help check": ("'help'", "COMMAND --help"),
    "init --no-gihub": ("--no-gihub", "--no-github"),
    "init myproject": ("myproject", "sets up the current folder"),
    "backends ad paddle@3.0.0": ("ad", "add"),
    "mod:Own -i x=2": ("'mod:Own'", "gradcheck check mod:Own"),
    "mod:Own derive -i x=2 --diff": ("'mod:Own'", "write gradcheck derive mod:Own -i x=2 --diff"),
    "GC104 explain": ("'GC104'", "write gradcheck explain GC104"),
    "own-tanh replay": ("'own-tanh'", "write gradcheck replay own-tanh"),
    "explain GC104 --hlep": ("'--hlep'", "did you mean --help?"),
    "own.grad.yaml list": ("'own.grad.yaml'", "write gradcheck list own.grad.yaml"),
    "'init --framework torch'": ("'init --framework torch'", "write init --framework torch without quotes"),
    "init -o specs": ("'-o'", "sets up the current folder"),
    "own.grad.yaml": ("'own.grad.yaml'", "gradcheck run own.grad.yaml"),
    "watch": ("'watch'", "gradcheck run --watch"),
    "--check mod:Own": ("--check", "write gradcheck check"),
    "-x run": ("'-x'", "gradcheck run -x"),
    "--allow-code run own.grad.yaml": ("Options follow their command, as in gradcheck run --allow-code.",),
    "--bundled list": ("'--bundled'", "as in gradcheck list --bundled"),
    "-n 4 run": ("'-n'", "write -j N"),
    "--verison run": ("--verison", "--version"),
    "--bundled replay": ("'--bundled'", "it is an option of gradcheck run"),
    "own-tanh": ("own-tanh", "gradcheck run own-tanh"),
    "check mod:Own -i x=2 --lf": ("--lf", "an option of gradcheck run"),
    "run mod.py:Own": ("mod.py:Own", "gradcheck check mod:Own"),
    "init torch": ("torch", "write --framework torch"),
    "schema matrix": ("matrix", "did you mean --matrix?"),
    "matrix numpy": ("numpy", "write -b numpy"),
    "export out": ("--pytest", "write --pytest DIR"),
    "check mod:Own -i x=2 --fast-mode": ("'--fast-mode'", "write --mode probe"),
    "check mod:Own -i x=2 --gradgradcheck": ("'--gradgradcheck'", "write --order 2"),
    "export -o out": ("'-o'", "write --pytest DIR"),
    "run all": ("'all'", "leave it out"),
    # run: what
    "run ''": ("an empty argument follows run", "shell variable unset"),
    "run own.grad.yaml,empty": ("own.grad.yaml,empty", "write them separately: own.grad.yaml empty"),
    "run 'own.grad.yaml own-tanh'": ("'own.grad.yaml own-tanh'", "write own.grad.yaml own-tanh"),
    "run spaced/a b.grad.yaml": ("'spaced/a b.grad.yaml'", "write it in quotes"),
    "run --baseline empty --baseline-update": ("--baseline empty", "this is a folder"),
    "run own.grad.yaml:90:5": ("own.grad.yaml:90", "the file has 13 lines"),
    "run own.grad.yaml:0": ("own.grad.yaml:0", "gradcheck list own.grad.yaml"),
    "run 'own.grad.yaml --lf'": ("'own.grad.yaml --lf'", "write its words separately"),
    "run --baseline 'a.json --lf'": ("'a.json --lf'", "write its words separately"),
    "run '-v -q'": ("'-v -q'", "write its words separately"),
    "run 'spaced/**/*.grad.yaml'": ("patterns are not expanded", "write spaced/ for all spec files"),
    "run gone.yaml": ("gone.yaml", "a link to nowhere"),
    "run spaced/ab.grad.yaml": ("spaced/ab.grad.yaml", "did you mean 'spaced/a b.grad.yaml'"),
    "run own.grad.yam": ("own.grad.yam", "did you mean own.grad.yaml?"),
    "run acme/layers": ("acme/layers", "gradcheck check acme.layers:scale"),
    "run own-tanh --version": ("--version", "gradcheck --version"),
    "run mod.Own": ("mod.Own", "gradcheck check mod:Own"),
    "run own.grad.yaml[own-tanh]": ("own.grad.yaml[own-tanh]", "write own.grad.yaml own-tanh"),
    "run --bundled own-tanh": ("own-tanh", "gradcheck list --bundled"),
    "run GC-104": ("GC-104", "gradcheck explain GC104"),
    "run --report html:my report.html": ("report.html", "in quotes"),
    "run --report json:a.json,html:b.html": ("json:a.json,html:b.html", "--report html:b.html"),
    "run own-tanh -- --lf": ("--lf", "write options before --"),
    "run json:out.json": ("json:out.json", "write --report json:out.json"),
    "run own.grad.yaml:spaced": ("own.grad.yaml:spaced", "write own.grad.yaml spaced"),
    "run -b 3.0.0": ("'3.0.0'", "did you mean paddle@3.0.0?"),
    "run own.grad.yaml@numpy": ("own.grad.yaml@numpy", "write own.grad.yaml -b numpy"),
    "run own.grad.yaml/own-tanh": ("own.grad.yaml/own-tanh", "write own.grad.yaml own-tanh"),
    "run --allow-code yes": ("--allow-code takes no value", "remove yes"),
    "run --backend=": ("--backend= has no value", "shell variable unset"),
    "run --tag=-mine": ("'-mine'", "combine words with and"),
    "run -t mine,slow": ("'mine,slow'", "combine words with and"),
    "run own.grad.yml": ("own.grad.yml", "own.grad.yaml"),
    "run own.grad": ("own.grad", "own.grad.yaml"),
    "run nowhere/own.grad.yaml": ("nowhere/own.grad.yaml", "no such file", "did you mean 'own.grad.yaml'?"),
    "run own-tahn": ("own-tahn", "own-tanh"),
    "run own-tanh@nupmy": ("nupmy", "numpy"),
    "run own-tanh@chainer": ("chainer", "numpy"),
    "run own.grad.yaml::own-tahn": ("own-tahn", "own-tanh"),
    "run own.grad.yaml": ("own.grad.yaml:6", "--allow-code"),
    "run mod.py": ("mod.py", "gradcheck check mod:"),
    "run mod:Own": ("mod:Own", "gradcheck check mod:Own"),
    "run GC104": ("GC104", "gradcheck explain GC104"),
    "run --bundled own.grad.yaml": ("--bundled", "own.grad.yaml"),
    "run empty": ("empty", "*.grad.yaml"),
    "run -k 'own and'": ("-k", "own and"),
    "run -k tahn": ("tahn", "tanh"),
    "run -t mien": ("mien", "mine"),
    "run -t 'mine &'": ("-t", "&"),
    "run --lf": ("last run", "gradcheck run"),
    "run --resume": ("last run", "gradcheck run"),
    "run own.grad.yaml:own-tanh": ("own.grad.yaml:own-tanh", "write own.grad.yaml own-tanh"),
    "run --only own-tanh": ("--only", "without an option"),
    "run --failed": ("--failed", "--lf"),
    "run --rerun-failed": ("--rerun-failed", "write --lf"),
    "run --only-failures": ("--only-failures", "write --lf"),
    "run --maxfail 3": ("--maxfail", "did you mean --max-fail?"),
    "run --re": ("'--re'", "did you mean --reruns or --resume or --report or --record?"),
    "run --baseline json:known.json": ("json:known.json", "write the path alone: --baseline known.json"),
    "run --dry-run": ("--dry-run", "gradcheck list"),
    # run: how
    "run --device gpu": ("--device", "-b cupy"),
    "run --json": ("--json", "--report json:PATH"),
    "run -n 4": ("-n", "-j N"),
    "run -k tanh or own": ("'or'", "write the whole expression after -k or -t, in quotes"),
    "run -t not mine": ("'not'", "write the whole expression after -k or -t, in quotes"),
    "run -K 'tanh or own'": ("'-K'", "did you mean -k?"),
    "run 'tanh or own'": ("'tanh or own'", "write the whole expression after -k or -t, in quotes"),
    "'list --json'": ("'list --json'", "write list --json without quotes"),
    "run own.grad.yaml#L3": ("own.grad.yaml#L3", "write own.grad.yaml:3"),
    "run -k \"'own'\"": ("'own'", "quotes are part of the word"),
    "run --tag=“mine”": ("--tag=“mine”", "quotes are part of the word"),
    "list 'rules --uncovered'": ("write its words separately",),
    "compare 'empty.json own.grad.yaml'": ("write them separately: empty.json own.grad.yaml",),
    "run own.grad.yaml:own-tanh@numpy": ("write own.grad.yaml own-tanh@numpy",),
    "run '--bundled -k tanh'": ("write its words separately",),
    "run -k '!own'": ("'!own'", "combine words with and"),
    "export --pytest out --release 3.2.2": ("--release", "the options of export are --pytest, --as-version"),
    "backends add torch@2.3": ("torch has no versions",),
    "run -b numpy torch": ("'torch'", "write -b torch"),
    "run own.grad.yaml lf": ("'lf'", "did you mean --lf?"),
    "run -k own -k tanh": ("-k is given 2 times", "-k 'own or tanh'"),
    "list -t mine --tag slow": ("-t is given 2 times", "-t 'mine or slow'"),
    "run --k own": ("--k", "write -k"),
    "run -tag mine": ("-tag", "write --tag"),
    "run —lf": ("—lf", "write --lf"),
    "run -report=json:a.json": ("-report=json:a.json", "write --report"),
    "run -b nunpy": ("nunpy", "numpy"),
    "run -b chainer": ("chainer", "numpy"),
    "run -b paddle3.0.0": ("paddle3.0.0", "paddle@3.0.0"),
    "run -b paddle@three": ("paddle@three", "paddle@3"),
    "run -j=2": ("-j=2", "write -j 2"),
    "run -j two": ("-j", "two", "auto"),
    "run -j 0": ("-j", "0", "auto"),
    "run --seed abc": ("--seed", "abc", "whole number"),
    "run --seed -1": ("--seed", "-1", "0<=x"),
    "run --timeout 10s": ("--timeout", "10s", "number"),
    "run --timeout 2m": ("'2m' is not a number", "write --timeout SECONDS"),
    "run --timeout 0": ("--timeout", "0<x"),
    "run --memory lots": ("--memory", "lots", "512M"),
    "run --memory 0": ("--memory", "512M"),
    "run --order 3": ("--order", "3", "<=2"),
    "run --mode fast": ("--mode", "fast", "probe"),
    "run --effort none": ("--effort", "none", "usual"),
    "run --max-fail 0": ("--max-fail", "x>=1"),
    "run --no-color": ("--no-color", "--color never"),
    "run --color yes": ("--color", "yes", "always"),
    "run --report out.json": ("--report", "json:out.json"),
    "run --report json=out.json": ("json=out.json", "did you mean json:out.json?"),
    "run --report html": ("--report", "html:"),
    "run --report pdf:out.pdf": ("pdf", "html"),
    "run --report jsno:out.json": ("jsno", "did you mean json"),
    "run --report html:new/": ("new/ is a folder", "name a file in it"),
    "run --report json:nowhere/out.json": ("nowhere", "folder"),
    "run --report json:empty": ("empty", "folder"),
    "run --format json": ("--format", "json", "--report json:"),
    "run --shard 3": ("--shard", "3", "1/4"),
    "run --shard 4/3": ("--shard", "4/3"),
    "run --shard 0/3": ("--shard", "0/3"),
    "run --baseline nowhere.json": ("nowhere.json", "--baseline-update"),
    "run --baseline --baseline-prune a.json": ("--baseline has no value", "--baseline-prune follows"),
    "run --baseline emtpy.json": ("emtpy.json", "did you mean empty.json?"),
    "run --baseline-update": ("--baseline-update", "--baseline FILE"),
    "run --executor dask": ("--executor", "dask:ADDRESS"),
    "run --executor spark": ("--executor", "spark", "local"),
    # check: the layer
    "check": ("PACKAGE.MODULE:LAYER",),
    "check mod:Own x=2x3 y=3": ("x=2x3 y=3", "-i x=2x3"),
    "check mod.Own -i x=2x3": ("mod.Own", "mod:Own"),
    "check mod.py:Own -i x=2x3": ("mod.py:Own", "mod:Own"),
    "check mod.py -i x=2x3": ("mod.py", "mod:Own"),
    "check mod -i x=2x3": ("mod", "mod:Own"),
    "check mod:Onw -i x=2x3": ("Onw", "Own"),
    "check mod:own -i x=2x3": ("'own'", "Own"),
    "check mdo:Own -i x=2x3": ("mdo", "did you mean mod"),
    "check 'mod:Own()' -i x=2": ("mod:Own()", "write mod:Own"),
    "check mod.Own:forward -i x=2": ("mod.Own", "did you mean mod:Own?"),
    "check mod:Own -i x = 2": ("-i x = 2", "write -i x=2"),
    "check mod:Own -i xs [2x3,2x3]": ("-i xs [2x3,2x3]", "write -i xs=[2x3,2x3]"),
    "check mod:Own -i x 2 -i w 3": ("-i x 2", "write -i x=2"),
    "check acme.bad:broken -i x=2": ("acme.bad", "did you mean bad?"),
    "check own.my_scale:scale -i x=2": ("own.my_scale", "did you mean own.my_scales?"),
    "check acme.losses:scale -i x=2": ("acme.losses", "name one of your modules"),
    "check mod:Own -w 2": ("'-w'", "written -i x=2x3"),
    "check mod Own -i x=2": ("Own", "as in mod:Own"),
    "check mod:Own -i x=2 --dtypes float32": ("--dtypes", "-i x=2x3:float32"),
    "check mod:Own -i x=2 --world 2 --outputs split replicated": ("replicated", "--outputs split,replicated"),
    "check mod:Own -i x=2 --call Own.apply(x,": ("'(' was never closed",),
    "derive mod:Own -i x=2 -o own.py": ("-o", "write > FILE"),
    "init --template torch": ("--template", "--framework NAME"),
    "run own::scale": ("own::scale", "write own scale"),
    "run acm": ("acm", "did you mean acme?"),
    "run --report junit.xml:junit": ("junit.xml:junit", "did you mean junit:junit.xml?"),
    "check 'mod: Own' -i x=2": ("mod: Own", "write mod:Own"),
    "check acme:scale -i x=2": ("scale", "did you mean acme.layers:scale?"),
    "check mod:Own -i x=2 --axis=-1": ("--axis", "--kwarg axis=VALUE"),
    "check mod::Own -i x=2": ("mod::Own", "write mod:Own"),
    "check acme/layers.py::scale -i x=2": ("acme/layers.py::scale", "write acme.layers:scale"),
    "check my_scales:scale -i x=2": ("my_scales", "did you mean own.my_scales?"),
    "check acme/layers.py:scale -i x=2": ("acme/layers.py:scale", "acme.layers:scale"),
    "check acme/layers:scale -i x=2": ("acme/layers:scale", "acme.layers:scale"),
    "check acme.layers.scale -i x=2": ("acme.layers.scale", "acme.layers:scale"),
    "check bad:broken -i x=2": ("bad.py:2",),
    "check mod:Own.forward -i x=2": ("Own.forward", "write mod:Own"),
    "check 'mod:Own -i x=2'": ("'mod:Own -i x=2'", "write mod:Own -i x=2 without quotes"),
    "check own.grad.yaml::own-tanh": ("is a scenario of a spec file", "gradcheck explore own.grad.yaml::own-tanh"),
    "check mod:Own -i x=2 --report html out.html": ("(out.html)", "write --report html:out.html"),
    "check mod:Own -i x=2 --kwarg axis=": ("axis=", "--kwarg axis=-1"),
    "check mod:Own -i x=2 --nproc 4": ("'--nproc'", "write --world RANKS"),
    "new mod:Own --backward mod:bakward": ("'bakward'", "mod"),
    "check mod:Own -i x=2 --grad mod:back": ("'--grad'", "write --backward PACKAGE.MODULE:FUNCTION"),
    "check other.my_scales:scale -i x=2": ("other.my_scales", "did you mean own.my_scales?"),
    "check proj.acme.layers:scale -i x=2": ("proj.acme.layers", "did you mean acme.layers?"),
    "check own.grad.yaml": ("own.grad.yaml", "gradcheck run own.grad.yaml"),
    "check own-tanh": ("own-tanh", "gradcheck run own-tanh"),
    # check: its inputs
    "check mod:Own": ("x", "--input x=2x3"),
    "check mod:Own x=2x3": ("x=2x3", "-i x=2x3"),
    "check mod:Own -i 2x3": ("2x3", "x=3x4"),
    "check mod:Own -i x": ("--input x", "x=3x4"),
    "check mod:Own -i y=2x3": ("'y'", "x"),
    "check mod:Own -i x=2,3": ("2,3", "2x3"),
    "check mod:Own -i 'x=[2, 3]'": ("[2, 3]", "2x3"),
    "check mod:Own -i 'x=(2, 3)'": ("(2, 3)", "2x3"),
    "check mod:Own -i x:2x3": ("x:2x3", "x=3x4"),
    "check mod:Own -i x=2x3:flaot32": ("flaot32", "float32"),
    "check mod:Own -i x=2x3:double": ("double", "float64"),
    "check mod:Own -i x=2xN": ("N", "explore"),
    "check mod:Own -i x=2 -i x=3": ("x", "twice"),
    "check mod:Own -i x=2x-3": ("x=2x-3", "3x4"),
    "check mod:Own -i x=2x3~1": ("~1", "~"),
    "check mod:Own -i x=2x3~3..1": ("3..1", "1..3"),
    "check mod:Own -i x=@nowhere.npy": ("nowhere.npy", "no file"),
    "check mod:Own -i x=@own.grad.yaml": ("own.grad.yaml", ".npy"),
    "check mod:Own -i x=2 --call 'Own.apply(x'": ("call", "'('"),
    "check mod:Own -i x=2 --call 'Own.apply(y)'": ("name it in the call", "'x'"),
    "check mod:Own -i x=2 --call 'mod.Own.apply(x)'": ("'mod'", "without it: Own.apply(x)"),
    "check mod:Own -i x=2 --kwarg axis -1": ("--kwarg axis -1", "write --kwarg axis=-1"),
    "check --kwarg axis mod:Own -i x=2": ("--kwarg axis: write NAME=VALUE",),
    "check mod:Own -i x=2 --kwarg delta=0,5": ("0,5 is two numbers", "0.5", "--kwarg 'delta=(0,5)'"),
    "check mod:Own -i x=2 --dtype float32": ("'--dtype'", "write -i x=2x3:float32"),
    "check my-mod.py:Own -i x=2": ("my-mod.py cannot be imported", "rename it"),
    "check nowhere/mod.py:Own -i x=2": ("nowhere/mod.py", "no such file"),
    "check ../mod.py:Own -i x=2": ("../mod.py", "no such file"),
    "check mod:Own -i x=2 --call 'y = Own.apply(x)'": ("call", "write one expression"),
    "check mod:Own -i x=2:float32,stopped": ("float32,stopped", "write :float32:stopped"),
    "check mod:Own -i x=2:torch.float32": ("torch.float32", "did you mean float32?"),
    "check mod:Own -i x=2 --kwarg x=3": ("'x'", "remove one of the two"),
    "check -- mod:Own -i x=2": ("-i x=2", "write options before --"),
    "check mod:Own -i x=2 --world two": ("--world", "two", "mp=2"),
    "check mod:Own -i x=2 --outputs split": ("'outputs'", "world: 4"),
    "check mod:Own -i x=2 -b nupmy": ("nupmy", "numpy"),
    "check mod:Own -i x=1.5": ("1.5", "write 3x4", "--kwarg NAME=VALUE"),
    "check mod:Own -i x=2 --kwarg w=2x3": ("w=2x3", "-i w=2x3", "--kwarg \"w='2x3'\""),
    "check mod:Own -i x=2 -i w=2 --call Own.apply(x,w=3)": ("'w'", "name it in the call, or remove it"),
    "check mod:Own -i x=2 --call x,w=3": ("call", "such as f(x, 2)"),
    "check mod:Own -i x=float32": ("float32", "write 3x4"),
    "check mod:Own -i 'x=2x3 -i y=3'": ("x=2x3 -i y=3", "as in -i x=2x3 -i y=3"),
    "check mod:Own -i x=2:int": ("'int'", "did you mean int64?"),
    "check mod:Own -i x=2:range=0..1": ("'range=0..1'", "~LOW..HIGH"),
    "check mod:Own --input-shape 2x3": ("'--input-shape'", "write -i x=2x3"),
    "check mod:Own -i x=2:fp32": ("'fp32'", "did you mean float32?"),
    "check mod:Own -i x=2:half": ("'half'", "did you mean float16?"),
    "check mod:Own --backward -i x=2": ("--backward has no value", "-i follows it"),
    "check mod:Own -i x=2 --rel-tol 1": ("'--rel-tol'", "has an error bound"),
    "check mod:Own -i x=2 --report html:~/out.html": ("html:~/out.html", "in its place"),
    "check own.grad.yaml own-tanh": ("own-tanh", "write one word, as in own.grad.yaml::own-tanh"),
    "derive own-tanh own.grad.yaml": ("own.grad.yaml", "write one word, as in own.grad.yaml::own-tanh"),
    "explore mod:Own -i x=B --time 20": ("'--time'", "write --seconds N"),
    "new mod:Own --id own": ("'--id'", "--kwarg id=VALUE"),
    "explain --list": ("'--list'", "write gradcheck list codes"),
    "backends --list": ("'--list'", "write gradcheck list backends"),
    "backends --json": ("'--json'", "write gradcheck list backends --json"),
    "backends list": ("'list'", "`gradcheck backends` alone lists all"),
    "run --list": ("'--list'", "write gradcheck list."),
    "compare --list": ("'--list'.",),
    "check mod:Own -i x=2x3,y=3": ("x=2x3,y=3", "as in -i x=2x3 -i y=3"),
    "check mod:Own -i x=own.npy": ("own.npy", "@data.npy"),
    "check mod:Own -i x=2:float32:float64": (":float64", "remove"),
    "check mod:Own -i x=2:dtype=float32": ("dtype=float32", "float32?"),
    "check mod.Own.apply -i x=2": ("mod.Own.apply", "write mod:Own"),
    "check mod:Own -i x=2 --allow-code": ("--allow-code", "no permission"),
    # new, explore
    "explore own.grad.yaml": ("own.grad.yaml", "gradcheck explore own.grad.yaml ID"),
    "new mod:Own --save own2.grad.yaml": ("'--save'", "write -o FILE"),
    "new mod:Own --out own2.grad.yaml": ("'--out'", "write -o FILE"),
    "new mod:Own --framework pytorch": ("'pytorch'", "Did you mean torch?"),
    "new mod:Own --force": ("'--force'", "not overwritten"),
    "run --force": ("'--force'.",),
    "new mod:Own -o .": ("-o .", "write own.grad.yaml"),
    "new": ("PACKAGE.MODULE:LAYER",),
    "new mod.Own": ("mod.Own", "mod:Own"),
    "new mod:Own -o out.yaml": ("out.yaml", "out.grad.yaml"),
    "new mod:Own -o own.grad.yaml": ("own.grad.yaml", "exists already"),
    "new mod:Own -o own.grad.yaml/x.grad.yaml": ("own.grad.yaml is not a folder", "name another"),
    "new mod:Own new.grad.yaml": ("new.grad.yaml", "write -o new.grad.yaml"),
    "new mod:Own -o empty": ("empty", ".grad.yaml"),
    "explore mod:Own": ("x", "--input x="),
    "explore mod:Own -i x=Bx": ("x=Bx",),
    "explore mod:Own -i x=b": ("x=b", "capital"),
    "explore mod:Own -i x=bxc": ("'bxc' is not a shape", "write BxC"),
    "explore mod:Own -i x=B --dtype flaot32": ("flaot32", "float32"),
    "explore mod:Own -i x=B --seconds 0": ("--seconds", "1<=x"),
    "explore own-tanh own.grad.yaml": ("the file comes first", "write own.grad.yaml own-tanh"),
    "explore mod:Own -i x=B -o a.grad.yaml": ("'-o'", "write --save FILE"),
    "explore mod:Own own-tanh": ("own-tanh", "remove one of the two"),
    # derive
    "derive mod:Own": ("x", "--input x=2x3"),
    "derive mod:Own -i x=2 --kwarg a=1": ("--kwarg", "--call"),
    "derive mod.Own -i x=2": ("mod.Own", "write mod:Own"),
    "derive lambda x: x*x -i x=2": ("x: x*x", "lambda in quotes"),
    "derive 'x * x' -i x=2": ("x * x", "lambda x:"),
    "derive mod:Own -i x=2 --call 'mod.Own.apply(x)'": ("'mod'", "without it: Own.apply(x)"),
    # validate, list, show
    "validate own.grad.ymal": ("own.grad.ymal", "own.grad.yaml"),
    "validate mod.py": ("mod.py", "gradcheck check mod:"),
    "validate empty": ("empty", "*.grad.yaml"),
    "validate own-tanh": ("own-tanh", "no such file"),
    "validate --json": ("--json", "write --format json"),
    "validate --format xml": ("--format", "xml", "json"),
    "list own-tahn": ("own-tahn", "own-tanh"),
    "show": ("ID",),
    "show own-tahn": ("own-tahn", "own-tanh"),
    # explain
    "explain GC999": ("GC999", "gradcheck list codes"),
    "explain 104": ("104", "GC104"),
    "explain GC1O4": ("GC1O4", "GC104"),
    "explain GC 119": ("'GC'", "did you mean GC119?"),
    "explain GC1119": ("'GC1119'", "did you mean GC119 or GC111?"),
    "explain own-tahn": ("own-tahn", "own-tanh"),
    "explain own.grad.yml::own-tanh": ("own.grad.yml", "own.grad.yaml"),
    "explain save-at-most-onec": ("save-at-most-onec", "save-at-most-once"),
    "show save-at-most-onec": ("save-at-most-onec", "save-at-most-once"),
    "rules --uncovered": ("rules", "gradcheck list rules"),
    "list --uncovered": ("--uncovered", "list rules"),
    "list codes GC104": ("GC104", "gradcheck show GC104"),
    # replay, compare, matrix
    "replay": ("last run", "gradcheck run"),
    "replay --last": ("'--last'", "the options of replay are --seed, --allow-code"),
    "completion bash": ("'completion'", "_GRADCHECK_COMPLETE=bash_source gradcheck"),
    "replay own-tanh": ("last run", "gradcheck run"),
    "compare empty.json": ("B.json",),
    "compare json:empty.json empty.json": ("json:empty.json", "write the path alone: empty.json"),
    "export --pytest pytest:out": ("pytest:out", "write the path alone: --pytest out"),
    "compare nowhere.json empty.json": ("nowhere.json", "no such file"),
    "compare empty.json empty.json": ("empty.json", "--report json:"),
    "compare own.grad.yaml empty.json": ("own.grad.yaml", "--report json:"),
    "matrix --format html": ("--format", "html", "--report html:PATH"),
    "matrix -b chainer": ("chainer", "paddle"),
    "list rule": ("gradcheck list rules",),
    "list tags": ("'tags'", "`gradcheck list` lists all, with tags"),
    "test own.grad.yaml": ("test", "gradcheck run"),
    "lint own.grad.yaml": ("lint", "gradcheck validate"),
    # what went
    "surface layers.py": ("surface", "gradcheck run"),
    "trust": ("trust", "allow-code = true"),
    "fmt": ("fmt", "yamlfmt"),
    # backends
    "backends add": ("BACKEND@VERSION",),
    "backends add paddle": ("paddle", "paddle@3"),
    "backends add chainer@2.0": ("chainer", "paddle"),
    "backends add paddle@latest": ("latest", "paddle@3"),
    "backends remove paddle@9.9.9": ("paddle@9.9.9", "gradcheck backends"),
}  # fmt: skip
NOTHING_LEFT = ("run -k tahn", "run -k '!own'")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    (place / "gone.yaml").symlink_to("nowhere")
    return place


@pytest.mark.parametrize("line", MISTAKES)
def test_it_is_told_in_one_message_with_what_to_write(line, project, monkeypatch):
    monkeypatch.chdir(project)
    done = CliRunner().invoke(main, shlex.split(line), prog_name="gradcheck")
    assert isinstance(done.exception, SystemExit)
    assert done.exit_code == (5 if line in NOTHING_LEFT else 2)
    answer = done.stderr + (done.stdout if line.startswith("validate") else "")
    assert len(re.findall(r"^(?:gradcheck|Error): |^[^ ]+: error: |^[^ ]+:\d+:\d+: ", answer, re.M)) == 1
    assert done.stdout in answer
    assert [word for word in MISTAKES[line] if word.lower() not in answer.lower()] == []


@pytest.mark.parametrize("line", ["list -k 'own or tanh'", "list '-kown or tanh'", "list '--tag=mine or not mine'"])
def test_quotes_around_an_expression_are_accepted(line, project, monkeypatch):
    monkeypatch.chdir(project)
    done = CliRunner().invoke(main, shlex.split(line), prog_name="gradcheck")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("own-tanh ")


def test_advice_names_options_that_there_are():
    commands = [main.get_command(None, name) for name in main.list_commands(None)]
    options = {one for command in commands for option in command.params for one in option.opts}
    texts = [better for _, better in (*ADVICE, *OPTION_PATTERNS)]
    for advice in OPTION_ADVICE.values():
        texts += [advice] if isinstance(advice, str) else advice
    named = {one for better in texts for one in re.findall(r"--[a-z-]+", better)}
    assert named
    assert named <= options
