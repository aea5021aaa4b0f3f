"""Every mistake is found, at its place, in plain English, and leads to no second one."""

from __future__ import annotations

import pytest

from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.read import load, read

LAYER = "layer: {op: tanh}\n"
NO_LAYER = "layer must be Python source, a layer's name, {ref: …} or {op: …}"
INPUT = LAYER + "inputs: {x: {shape: [2]}}\n"


EIGHT = """\
schema: gradcheck/v1
scenarios:
  - id: base
    title: A tanh layer
    source: {document: d}
    layer: {op: tanh}
    inputs:
      x: {shape: [2, 3], inits: normal}
      y: {shape: [2], dtype: flaot32}
    rtol: "1e-6"
  - title: No id
    script: x = 1
    backends:
      keras: {skip: {reason: no}}
  - id: misspelt
    tittle: foo
    script: x = 1
  - id: python
    layer: {op: tanh}
    call: x = =
    expect: {gradient: matches}
"""


def test_eight_mistakes_in_one_file_are_all_shown_and_no_ninth(mistakes):
    assert mistakes(EIGHT) == [
        "8:26 unknown key 'inits' in an input",
        "9:30 unknown dtype 'flaot32'",
        '10:11 rtol must be a number, not "1e-6"',
        "11:5 a scenario needs the key 'id'",
        "14:7 unknown key 'keras'",
        "16:5 unknown key 'tittle' in a scenario",
        "20:13 call is not valid Python: invalid syntax",
        "21:14 'gradient' needs an input that has a gradient",
    ]


OF_YAML = """\
schema: gradcheck/v1
scenarios:
  - id: base
    source: &src {document: d}
    rtol: 1e-6
    rtol: 3
    seed:
    timeout: 1e999
    1: text
    inits: normal
  - id: tabbed
\ttitle: foo
"""


def test_mistakes_of_yaml_are_all_shown_up_to_the_first_that_stops_the_parser(mistakes):
    assert mistakes(OF_YAML) == [
        "4:13 anchor '&src' is not allowed",
        "6:5 duplicate key 'rtol', first given in line 5",
        "7:5 'seed' has no value",
        "8:14 1e999 is beyond float64",
        "9:5 a key must be text, not 1",
        "12:1 a tab where YAML allows only spaces",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1 the file is empty"),
        ("# only a comment\n", "1:1 the file is empty"),
        ("- a\n", "1:1 a spec file must be a mapping, not a list"),
        ("text\n", '1:1 a spec file must be a mapping, not "text"'),
        ("a: 1\n---\nb: 2\n", "2:1 a second document"),
        ("schema: gradcheck/v1\nscenarios: 3\n", "2:12 scenarios must be a list, not 3"),
        ("schema: gradcheck/v1\nscenarios: []\n", "2:12 scenarios must not be empty"),
        ("schema: gradcheck/v1\nscenarios:\n", "2:1 'scenarios' has no value"),
        ("schema: gradcheck/v1\nscenarios: [3]\n", "2:13 a scenario must be a mapping, not 3"),
        ("schema: gradcheck/v1\npath: x\nscenarios: []\n", "2:1 unknown key 'path' in a spec file"),
        ("%YAML 1.1\n---\nschema: gradcheck/v1\nscenarios: *a", "directives (%YAML, %TAG) are not allowed"),
        ("a: 'x\n", "1:4 this quote is never closed"),
        ("a: [1, 2\nb: 3", "1:4 this bracket is not closed"),
        ("a: b: c", "1:5 a ':' that makes a key where none is allowed"),
        ("a: `x`", "1:4 a value cannot begin with '`'"),
        ("- a\nb: 1", "2:1 this line does not fit the block it is in"),
        ("a: - b", "1:4 a list entry ('- …') where none is allowed"),
        ("a: \x07b", "1:4 control character U+0007"),
        ("a: \u2028b", "1:4 control character U+2028"),
        ('a: "\\x07"', "1:4 the text holds a control character"),
        ("[" * 30_000, "nested more than 40 levels deep"),
        ("{a: " * 30_000, "nested more than 40 levels deep"),
        ("a: [" + "1," * 60_000 + "]", "more than 50,000 values in one file"),
    ],
)  # fmt: skip
def test_files_that_are_no_spec(mistakes, text, expected):
    assert any(expected in one for one in mistakes(text)), mistakes(text)


def test_a_wrong_schema_and_a_missing_one(diagnose):
    rest = "scenarios: [{id: a, title: A, source: {document: d}, script: pass}]\n"
    wrong = diagnose("schema: gradspec/v1\n" + rest)
    assert [(one.message, one.help) for one in wrong] == [
        ("unknown schema 'gradspec/v1'", "did you mean 'gradcheck/v1'?")
    ]
    missing = diagnose(rest)
    assert [(one.line, one.help) for one in missing] == [
        (1, "add 'schema: …'. The version of the format: gradcheck/v1.")
    ]


@pytest.mark.parametrize(
    ("body", "message", "help"),
    [
        # keys
        (INPUT + "inits: 1", "3:1 unknown key 'inits' in a scenario", "did you mean 'inputs'?"),
        (INPUT + "line: 1", "3:1 unknown key 'line' in a scenario", "the keys of a scenario are"),
        (INPUT + "order: 2", "3:1 unknown key 'order' in a scenario", "write 'expect: {order: …}'"),
        (INPUT + "skip: true", "3:1 unknown key 'skip' in a scenario", "write 'backends: {numpy: {skip: …}}'"),
        (INPUT + "timeout: 2m", "3:10 timeout must be a number, not \"2m\"", "Wall-clock limit of a case, in"),
        ("layer: {op: tanh}\ninputs: {x: {shape: [], range: [3]}}", "2:32 range has too few entries", "[low, high]"),
        ("layer: {op: tanh}\ninputs: {x: {shape: [2], range: []}}", "2:33 range has too few entries", "[low, high]"),
        ("layer: {op: tanh}\ninputs: {x: {shape: [2], range: 0.5..1}}", "2:33 range must be a list", "write [0.5, 1]"),
        ("layer: {op: tanh}\ninputs: {x: 3x4}", '2:13 an input must be a mapping, not "3x4"', "write {shape: [3, 4]}"),
        (INPUT + "? [a]\n: 1", "3:3 a key must be text, not a list", "write a name"),
        (INPUT + "1: a", "3:1 a key must be text, not 1", "write a name; put a number in quotes"),
        (INPUT + "<<: {a: 1}", "3:1 merge keys (<<) are not allowed", "extends"),
        (INPUT + "<<: *a", "3:1 merge keys (<<) are not allowed", "extends"),
        (INPUT + "timeout:", "3:1 'timeout' has no value", "give it a value, indented more"),
        (INPUT + "seed: ~", "3:1 'seed' has no value", "give it a value, indented more"),
        (INPUT + "seed: &a 1", "3:7 anchor '&a' is not allowed", "remove it"),
        (INPUT + "seed: !!python/object:os.system 1", "3:7 tag 'tag:yaml.org,2002:python/object:os.system'", "remove"),
        (INPUT + "seed: !!int 1", "3:7 tag 'tag:yaml.org,2002:int' is not allowed", "remove it"),
        # scalars
        (INPUT + "seed: '1'", '3:7 seed must be a whole number, not "1"', "remove the quotes"),
        (INPUT + "seed: 1.0", "3:7 seed must be a whole number, not 1.0", "write 1"),
        (INPUT + "seed: true", "3:7 seed must be a whole number, not true", ""),
        (INPUT + "seed: 1_000", '3:7 seed must be a whole number, not "1_000"', "Seed of the case's random numbers,"),
        (INPUT + "seed: 017", '3:7 seed must be a whole number, not "017"', "Seed of the case's random numbers,"),
        (INPUT + "seed: 0x1f", '3:7 seed must be a whole number, not "0x1f"', "Seed of the case's random numbers,"),
        (INPUT + "seed: -1", "3:7 seed must be at least 0, not -1", "Seed of"),
        (INPUT + f"seed: {'9' * 5000}", f"3:7 seed must be a whole number, not \"{'9' * 59}…", "Seed of"),
        (INPUT + "rtol: 1e-400", "3:7 1e-400 is 0 in float64", "write 0 if that is intended; the smallest"),
        (LAYER + "inputs: {x: {values: [0.0e-400, -0.00001e-320]}}", "2:33 -0.00001e-320 is 0 in float64", "write 0"),
        (INPUT + "rtol: 1e999", "3:7 1e999 is beyond float64", "write .inf if infinity is intended"),
        (INPUT + "rtol: nan", '3:7 rtol must be a number, not "nan"', "Relative tolerance, such as 1e-6"),
        (INPUT + "rtol: .nan", "3:7 rtol must be below 1, not NaN", "Relative tolerance"),
        (INPUT + "rtol: 2", "3:7 rtol must be below 1, not 2", "Relative tolerance"),
        (INPUT + "timeout: 12:30:00", '3:10 timeout must be a number, not "12:30:00"', ""),
        (INPUT + "extends: 1", "3:10 extends must be text, not 1", "put it in quotes"),
        (INPUT + "tags: kink", '3:7 tags must be a list, not "kink"', "write [kink]"),
        (INPUT + "tags: [Big_Kink]", "3:8 tags[0] 'Big_Kink' is malformed", "a name is kebab-case: small"),
        (INPUT + "tags: [not]", "3:8 'not' cannot be a tag", "choose another word"),
        # programs
        ("seed: 1", "-2:1 a scenario needs 'layer' or 'script'", "add 'layer: |'"),
        (INPUT + "script: pass", "3:1 a script next to a layer that has no source here", "import the layer"),
        ("script: pass\ncall: x", "2:1 'script' and 'call' exclude each other", "remove one"),
        ("layer: {}", f"1:8 {NO_LAYER}, not a mapping", "write 'layer: |'"),
        ("layer: 3", f"1:8 {NO_LAYER}, not 3", "write 'layer: |'"),
        ("layer: {ref: pkg.mod}", "1:14 ref 'pkg.mod' is malformed", "write the module and the class, as pkg.mod:"),
        ("layer: {ref: pkg.mod.Swish}", "1:14 ref 'pkg.mod.Swish' is malformed", "write pkg.mod:Swish"),
        ("layer: {ref: pkg/mod.py:Swish}", "1:14 ref 'pkg/mod.py:Swish' is malformed", "write pkg.mod:Swish"),
        ("layer: {op: 'tanh()'}", "1:13 op 'tanh()' is malformed", "Its name under paddle, such as tanh."),
        ("layer: {op: tahn}", "1:13 unknown op 'tahn'", "did you mean 'tanh'?"),
        ("layer: {op: relu}", "1:13 unknown op 'relu'", "did you mean 'nn.functional.relu'?"),
        ("layer: {op: os.kill}", "1:13 unknown op 'os.kill'", "name a function of Tensors from"),
        ("layer: {op: tanh, pop: 1}", "1:19 unknown key 'pop' in layer", "did you mean 'op'?"),
        ("script: ''", "1:9 the script is empty", "write the code"),
        ("script: |\n  a = 1\n  if a:\n  b = 2", "4:3 the script is not valid Python: expected an indented block", ""),
        (
            "layer: |\n  def forward_fn(x): return ctx.save_for_backward(x)\n  def backward_fn(dy): return dy\n"
            "inputs: {x: [2]}",
            "2:29 the layer: there is no 'ctx'", "forward_fn and backward_fn have none",
        ),
        ("script: |\n  a = (1", "2:7 the script is not valid Python: '(' was never closed", ""),
        ("script: |2\n    return\n", "2:4 the script is not valid Python: unexpected indent", ""),
        ("script: >\n  x = 1\n  y y", "1:9 the script is not valid Python", ""),
        ("script: a b", "1:11 the script is not valid Python", ""),
        ("layer: {op: tanh}\ncall: paddle.tanh(x))", "2:21 call is not valid Python: unmatched ')'", ""),
        ("layer: {op: tanh}\ncall: ' f(]'", "2:11 call is not valid Python", ""),
        ("layer: {op: tanh}\ncall: x = 1", "2:9 call is not valid Python: invalid syntax", ""),
        (f"script: {'-' * 10_000}1", "1:9 the script is too deeply nested for Python", "make it simpler"),
        (f"script: {'-' * 100_000}1", "1:9 the script is longer than 20,000 characters", "move it into a module"),
        (
            "layer: |\n  class A(PyLayer): pass\n  class B(A): pass",
            "3:3 the layer defines 2 classes to apply: A and B", "call: B.apply(x)",
        ),
        ("layer: |\n  class A: pass", "2:3 the layer defines no subclass of PyLayer or Function to apply", "derive it"),
        # inputs
        (LAYER + "inputs: {x: 3}", "2:13 an input must be a mapping, not 3", "write {shape: [3]}; the keys are"),
        (LAYER + "inputs: {x: {}}", "2:13 an input needs 'shape' or 'values'", "add 'shape: [2, 3]'"),
        (LAYER + "inputs: {x: {shape: [1], values: [1]}}", "2:14 'values' and 'shape' exclude each other", "remove"),
        (LAYER + "inputs: {x: {values: 1, init: ones}}", "2:25 'values' and 'init' exclude each other", "remove one"),
        (LAYER + "inputs: {x: {shape: 3}}", "2:21 shape must be a list, not 3", "write [3]"),
        (LAYER + "inputs: {x: {shape: [2.5]}}", "2:22 shape[0] must be a whole number, not 2.5", ""),
        (LAYER + "inputs: {x: {shape: [-1]}}", "2:22 shape[0] must be at least 0, not -1", ""),
        (
            LAYER + "inputs: {x: {shape: [1, 1, 1, 1, 1, 1, 1, 1, 1]}}",
            "2:21 shape has 9 entries, at most 8 are allowed", "",
        ),
        (
            LAYER + "inputs: {x: {shape: [99999, 99999]}}",
            "2:21 input 'x' has 9,999,800,001 elements in 74.50 GiB", "smaller",
        ),
        (
            LAYER + "inputs: {x: {shape: [100000000], dtype: complex128}}",
            "2:21 input 'x' has 100,000,000 elements in 1.49 GiB", "smaller",
        ),
        (LAYER + "inputs: {ﬁ: {shape: [1]}}", "2:10 'ﬁ' cannot name a variable", "choose"),
        (LAYER + "inputs: {if: {shape: [1]}}", "2:10 'if' cannot name a variable", "choose"),
        (LAYER + "inputs: {a-b: {shape: [1]}}", "2:10 'a-b' cannot name a variable", ""),
        (LAYER + "inputs: {__x: {shape: [1]}}", "2:10 '__x' cannot name a variable", ""),
        (LAYER + "inputs: {paddle: {shape: [1]}}", "2:10 'paddle' cannot name a variable", ""),
        (LAYER + "inputs: {x: {shape: [1], stop_gradient: yes}}", "2:41 stop_gradient must be true", "write true"),
        (LAYER + "inputs: {x: {shape: [1], init: unifrom}}", "2:32 unknown init 'unifrom'", "did you mean 'uniform'?"),
        (LAYER + "inputs: {x: {shape: [1], layout: c}}", "2:34 unknown layout 'c'", "write contiguous, transposed,"),
        (LAYER + "inputs: {x: {shape: [1], low: 1}}", "2:26 'low' has no effect with 'init: normal'", "remove it"),
        (LAYER + "inputs: {x: {shape: [1], init: integers, low: 5, high: 5}}", "2:47 low (5) must not be", "smaller"),
        (LAYER + "inputs: {x: {shape: [1], init: uniform, low: 2}}", "2:46 low (2) must not be above", "smaller"),
        (LAYER + "inputs: {x: {shape: [1], dtype: int8, init: integers, low: .5}}", "2:60 'init: integers' draws", ""),
        (
            LAYER + "inputs: {x: {shape: [1], dtype: int64}}",
            "2:13 the input has dtype int64, but 'init' gives no whole numbers", "write 'below: 10', or 'init:",
        ),
        (
            LAYER + "inputs: {x: {shape: [1], dtype: uint8, init: integers, high: 999}}",
            "2:62 uint8 holds whole numbers from 0 to 255, not all of", "change the limits: the upper limit is",
        ),
        (LAYER + "inputs: {x: {values: [1, [2]]}}", "2:26 the rows are uneven: a list of shape [1],", "same length"),
        (LAYER + "inputs: {x: {values: [[1, 2], [2]]}}", "2:31 the rows are uneven: a list of shape", "same length"),
        (LAYER + "inputs: {x: {values: [1, a]}}", '2:26 values[1] must be a number, not "a"', ""),
        (LAYER + "inputs: {x: {values: {a: 1}}}", "2:22 values must be a number, not a mapping", ""),
        (LAYER + "inputs: {x: {values: [300], dtype: int8}}", "2:23 300 does not fit into int8", "-128 to 127"),
        (LAYER + "inputs: {x: {values: [0, .inf, 65519, 65520], dtype: float16}}", "2:39 65520 does", "as float16 it"),
        (LAYER + "inputs: {x: {values: [1e-45, 7e-46], dtype: float32}}", "2:30 7e-46 does not fit", "as float32 it"),
        (LAYER + "inputs: {x: {values: 1e39, dtype: bfloat16}}", "2:22 1e+39 does not fit into", "as bfloat16"),
        (LAYER + "inputs: {x: {values: [.nan], dtype: int8}}", "2:23 nan does not fit into int8", ""),
        (LAYER + f"inputs: {{x: {{values: {'[' * 9}1{']' * 9}}}}}", "2:22 nested 9 lists deep", "remove brackets"),
        # matrix
        (INPUT + "matrix: {dtype: [float31]}", "3:18 unknown dtype 'float31'", "did you mean 'float3"),
        (INPUT + "matrix: {dtype: float32}", '3:17 dtype must be a list, not "float32"', "write [float32]"),
        (INPUT + "matrix: {n: []}", "3:13 n must not be empty", "add an entry, or remove the key"),
        (INPUT + "matrix: {n: [1, 1]}", "3:17 matrix: '1' is given twice", "remove"),
        (INPUT + "matrix: {n: [a b]}", "3:14 matrix: 'a b' cannot be part of a case's name", "use letters"),
        (INPUT + "matrix: {n: [[1]]}", "3:14 a matrix takes text, numbers and booleans, not a list", ""),
        (INPUT + 'matrix: {n: [1, "1"]}', "3:17 matrix: '1' is given twice", "remove"),
        (INPUT + "matrix: {n: [1, 2]}", "3:10 matrix: nothing uses 'n'", "without that; -b chooses backends"),
        (
            "layer: {ref: 'own.layers:Own'}\ninputs: {x: [2]}\nmatrix: {dtypes: [float32]}",
            "3:10 matrix: nothing uses 'dtypes'", "did you mean 'dtype'?",
        ),
        (INPUT + "call: paddle.tanh(y)", "3:19 call: there is no 'y'", "known are x"),
        (  # the arguments of the layer's own methods are not names in a call
            "layer: |\n  class L(PyLayer):\n    def backward(ctx, dy): pass\ninputs: {x: [2]}\ncall: L.apply(y)",
            "5:15 call: there is no 'y'", "known are x",
        ),
        (INPUT + "expect: {raises: {type: ValuError}}", "3:25 there is no exception 'ValuError'", "'ValueError'?"),
        (INPUT + "expect: {warns: {type: UserWarnin}}", "3:24 there is no warning 'UserWarnin'", "'UserWarning'?"),
        (LAYER + "inputs: {x: {shape: [1], dtype, init: ones}}", "2:26 'dtype' has no value", "give it a value"),
        (LAYER + 'inputs: {x: {shape: "2x3"}}', '2:21 shape must be a list, not "2x3"', "write [2, 3]"),
        (INPUT + "matrix: {x: [1]}", "3:10 matrix: 'x' is already the name of something else", "rename"),
        (
            INPUT + f"matrix: {{a: {list(range(17))}, b: {list(range(16))}}}\ncall: paddle.tanh(x * a + b)",
            "3:1 the matrix has 272 combinations, at most 256 are allowed", "split",
        ),
        # expectations
        (INPUT + "expect: {gradient: match}", "3:20 unknown gradient 'match'", "did you mean 'matches'?"),
        (INPUT + "expect: {order: 3}", "3:17 order must be at most 2, not 3", "2: the derivative of the gradient"),
        (INPUT + "expect: {grads: {z: [1, 2]}}", "3:18 grads: there is no input 'z'", "write x"),
        (INPUT + "expect: {grads: {x: [1]}}", "3:21 grads: the gradient of 'x' has shape [1], the input [2]", ""),
        (INPUT + "expect: {cotangent: 1}", "3:10 'cotangent' has no effect without 'grads'", "remove it, or add"),
        (INPUT + "expect: {order: 2, gradient: unchecked}", "3:10 'order' asks for a check, 'gradient:", "remove"),
        (INPUT + "expect: {precision: loose, gradient: unchecked}", "3:10 'precision' asks for a check,", "remove"),
        (INPUT + "expect: {precision: lose}", "3:21 unknown precision 'lose'", "did you mean 'loose'?"),
        (INPUT + "expect: {raises: {type: E}, order: 2}", "3:29 'order' and 'raises' exclude each other", "remove"),
        (INPUT + "expect: {raises: {type: E}, gradient: differs}", "3:29 'gradient' and 'raises' exclude each", ""),
        (INPUT + "expect: {raises: {type: E}, grads: {x: [1, 2]}}", "3:29 'grads' and 'raises' exclude", ""),
        (INPUT + "expect: {raises: ValueError}", "3:18 raises must be a mapping", "write {type: ValueError}"),
        (INPUT + "expect: {raises: {type: 'a b'}}", "3:25 type 'a b' is malformed", "Class of the exception"),
        (INPUT + "expect: {raises: {type: E, phase: back}}", "3:35 unknown phase 'back'", "did you mean 'backward'?"),
        (INPUT + "expect: {raises: {type: E, message: 3}}", "3:37 message must be text, not 3", "in quotes"),
        (
            INPUT + "expect: {warns: {type: E, message: {re: '(?i)[a-\U0010ffff]'}}}",
            "3:41 a range in a regular expression must end with an ASCII character", "write the characters one by one",
        ),
        (INPUT + "expect: {raises: {type: E, message: {re: '('}}}", "3:42 not a regular expression: missing )", "back"),
        (INPUT + "expect: {calls: {forwards: 1}}", "3:18 unknown key 'forwards' in calls", "did you mean 'forward'?"),
        (INPUT + "expect: {values: {'x =': 1}}", "3:22 the expression is not valid Python: invalid syntax", ""),
        (INPUT + "expect: {values: {x: {valeu: 1}}}", "3:23 unknown key 'valeu' in an expected value", "'value'"),
        (INPUT + "expect: {values: {x: [{value: 1}]}}", "3:23 x[0] cannot be a mapping", "write null"),
        ("script: pass\nexpect: {gradient: matches}", "2:10 'gradient' needs a layer, this is a script", ""),
        (LAYER + "expect: {gradient: matches}", "2:10 'gradient' needs an input that has a gradient", ""),
        # backends
        (INPUT + "backends: {nupmy: {}}", "3:12 unknown key 'nupmy'", "did you mean 'numpy'?"),
        (INPUT + "backends: {numpy: {skip: {reason: ''}}}", "3:35 reason must not be empty", ""),
        (INPUT + "backends: {numpy: {skip: {reason: ' '}}}", "3:35 reason ' ' is malformed", "Why, in one"),
        (INPUT + "backends: {numpy: {xfail: {}}}", "3:27 xfail needs the key 'reason'", "add 'reason: …'"),
        (INPUT + "backends: {numpy: {xfail: bad}}", "3:27 xfail must be a mapping", "write {reason: bad}; the keys"),
        (
            INPUT + "backends: {numpy: {xfail: {reason: a}, skip: {reason: b}}}",
            "3:40 'xfail' and 'skip' exclude each other", "remove one of the two",
        ),
        (INPUT + "backends: {numpy: {expect: {raises: {typ: E}}}}", "3:38 unknown key 'typ' in raises", "'type'"),
        (INPUT + "backends: {paddle: []}", "3:20 paddle must not be empty", "add an entry, or remove the key"),
        (INPUT + "backends: {paddle: [3]}", "3:21 a backend's expectations must be a mapping, not 3", "keys are"),
        (INPUT + "backends: {paddle: {reason: a}}", "3:21 'reason' has no effect without 'observed'", "remove it, or"),
        (
            INPUT + "backends: {paddle: [{observd: {hang: true}, reason: a}]}",
            "3:22 unknown key 'observd' in a backend's expectations", "did you mean 'observed'?",
        ),
        (
            INPUT + "backends: {paddle: {versions: '3.0', skip: {reason: a}}}",
            "3:31 versions: '3.0' is not a range of versions", "write '>=3.0,<3.3' or '==3.0.0'",
        ),
        # observed
        (INPUT + "backends: {paddle: {observed: {grads: {x: null}}}}", "3:21 'observed' needs a 'reason'", "add"),
        (
            INPUT + "backends: {paddle: {observed: {hang: true}, reason: a, policy: {documents: a, releases: b}}}",
            "3:45 'policy' and 'reason' exclude each other", "remove one of the two",
        ),
        (
            INPUT + "backends: {paddle: {policy: {documents: a, releases: b}}}",
            "3:21 'policy' has no effect without 'observed'", "remove it, or add 'observed'",
        ),
        (
            INPUT + "backends: {paddle: {observed: {grads: {x: null}}, policy: {documents: a}}}",
            "3:59 policy needs the key 'releases'", "Why releases behave differently",
        ),
        (
            INPUT + "backends: {paddle: {observed: {}, reason: a}}",
            "3:31 observed must not be empty", "observed behaviour",
        ),
        (
            INPUT + "backends: {paddle: {observed: {crash: [segfault]}, reason: a}}",
            "3:40 crash[0] 'segfault' is malformed", "The signals of which one kills the",
        ),
        (
            INPUT + "backends: {paddle: {observed: {crash: [SIGSEGV], gradient: matches}, reason: a}}",
            "3:50 'gradient' cannot be seen in a case that ends by 'crash'", "keep one",
        ),
        (INPUT + "backends: {paddle: {observed: {hang: false}, reason: a}}", "3:32 'hang: false' has no meaning", ""),
        (
            INPUT + "backends: {paddle: {observed: {hang: true}, reason: a, xfail: {reason: b}}}",
            "3:56 'observed' and 'xfail' exclude each other", "remove one of the two",
        ),
        (
            INPUT + "backends: {paddle: {observed: {grads: {y: null}}, reason: a}}",
            "3:40 grads: there is no input 'y'", "write x",
        ),
        # extends
        ("extends: on\n" + INPUT, "1:10 extends 'on', but this file has no scenario of that id", "name a scenario"),
        ("extends: one\n" + INPUT, "1:10 extends goes in a circle, or more than 10 scenarios deep", "remove 'extends'"),
    ],
)  # fmt: skip
def test_one_mistake_gives_one_diagnostic_that_says_what_to_do(scenario_mistakes, body, message, help):
    found = scenario_mistakes(body)
    assert len(found) == 1, found
    assert found[0][0].startswith(message)
    assert help in found[0][1]


@pytest.mark.parametrize(
    ("line", "message", "help"),
    [
        ("id: Big_Kink", "3:9 id 'Big_Kink' is malformed", "such as 'big-kink'"),
        ("id: ''", "3:9 id '\"\"' is malformed", "kebab-case"),
        ("id: 3", "3:9 id must be text, not 3", "put it in quotes"),
        ("id: \"a\\nb\"", "3:9 id 'a\\nb' is malformed", "such as 'a-b'"),
    ],
)  # fmt: skip
def test_ids(diagnose, line, message, help):
    text = (
        f"schema: gradcheck/v1\nscenarios:\n  - {line}\n    title: A\n    source: {{document: d}}\n    script: pass\n"
    )
    found = diagnose(text)
    assert [f"{one.line}:{one.column} {one.message}" for one in found] == [message]
    assert help in found[0].help


def test_a_misspelt_required_key_is_one_mistake(mistakes):
    text = "schema: gradcheck/v1\nscenarios:\n  - id: a\n    titel: A\n    source: {document: d}\n    script: pass\n"
    assert mistakes(text) == ["4:5 unknown key 'titel' in a scenario"]


def test_a_misspelt_layer_is_one_mistake(mistakes):
    text = "schema: gradcheck/v1\nscenarios:\n  - id: a\n    title: A\n    source: {document: d}\n    scripts: x\n"
    assert mistakes(text) == ["6:5 unknown key 'scripts' in a scenario"]


def test_a_mistake_in_defaults_is_reported_once_and_not_for_every_scenario(mistakes):
    scenario = "  - {id: ID, title: A, source: {document: d}, layer: {op: tanh}, inputs: {x: {shape: [1]}}}\n"
    defaults = "{dtype: flaot32, seed: -1, backends: {paddle: {skip: 3}}, matrix: {dtype: [float8]}}"
    text = f"schema: gradcheck/v1\ndefaults: {defaults}\nscenarios:\n"
    assert mistakes(text + scenario.replace("ID", "a") + scenario.replace("ID", "b")) == [
        "2:19 unknown dtype 'flaot32'",
        "2:34 seed must be at least 0, not -1",
        "2:64 skip must be a mapping, not 3",
        "2:86 unknown dtype 'float8'",
    ]


def test_a_mistake_that_is_inherited_is_reported_once(mistakes):
    text = """\
schema: gradcheck/v1
scenarios:
  - {id: a, title: A, source: {document: d}, layer: {op: tanh}, inputs: {x: {shape: [-1]}}, seed: x}
  - {id: b, extends: a}
  - {id: c, extends: b, title: C}
"""
    assert mistakes(text) == [
        "3:86 shape[0] must be at least 0, not -1",
        '3:99 seed must be a whole number, not "x"',
    ]


def test_a_circle_of_extends_is_one_mistake(mistakes):
    text = (
        "schema: gradcheck/v1\nscenarios:\n  - {id: a, extends: b}\n  - {id: b, extends: c}\n  - {id: c, extends: a}\n"
    )
    assert mistakes(text) == ["3:22 extends goes in a circle, or more than 10 scenarios deep"]


def test_duplicate_ids(mistakes, tmp_path):
    one = "  - {id: a, title: A, source: {document: d}, script: pass}\n"
    text = "schema: gradcheck/v1\nscenarios:\n" + one
    assert mistakes(text + one) == ["4:10 duplicate id 'a', first given in line 3"]
    for name in ("p", "q"):
        (tmp_path / f"{name}.grad.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        load([tmp_path])
    (told,) = caught.value.diagnostics
    assert (told.path, told.line) == (str(tmp_path / "q.grad.yaml"), 3)
    assert "p.grad.yaml:3" in told.message
    assert told.source_line == one.rstrip()


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        ("  -\tid: a\n", "4:4"),
        ("  - id: a\n\t\n", "5:1"),
        ("  - id: a\n   \ttitle: A\n", "5:4"),
        ("\t- id: a\n", "4:1"),
    ],
)
def test_a_tab_among_spaces(diagnose, broken, place):
    text = f"schema: gradcheck/v1\n\nscenarios:\n{broken}    source: {{document: d}}\n    script: pass\n"
    (one,) = diagnose(text)
    assert f"{one.line}:{one.column} {one.message}" == f"{place} a tab where YAML allows only spaces"
    assert "indent with spaces" in one.help


def test_tabs_inside_code_and_text_are_kept(accept):
    head = "schema: gradcheck/v1\nscenarios:\n- id: a\n  source: {document: d}\n"
    text = head + '  title: "A\tB"\n  script: |\n    if 1:\n    \ty = 1\n'
    scenario = accept(text).scenarios[0]
    assert scenario.script == "if 1:\n\ty = 1\n"
    assert scenario.title == "A\tB"


def test_at_a_syntax_error_no_other_mistake_is_invented(mistakes):
    text = """\
schema: gradcheck/v1
scenarios:
  - {id: a, title: A, source: {document: d}, script: pass, sede: 1}
  - {id: b, extends: z}
  - id: c
    title: C
   source: {document: d}
  - {id: z, title: Z, source: {document: d}, script: pass}
"""
    assert mistakes(text) == ["7:4 this line does not fit the block it is in"]


def test_the_first_control_character_is_reported(mistakes):
    text = "schema: gradcheck/v1\nscenarios:\n  - {id: a, \x07title: A, source: {docu\x07ment: d}, script: pass}\n"
    assert mistakes(text) == ["3:13 control character U+0007"]


def test_bytes_that_are_not_utf8(tmp_path):
    file = tmp_path / "a.grad.yaml"
    file.write_bytes("schema: gradcheck/v1\nü: ".encode() + b"\xff\n")
    with pytest.raises(SpecError, match=r":2:4: error: byte 0xff is not UTF-8"):
        read(file)
    file.write_bytes("schema: gradcheck/v1\n".encode("utf-16"))
    with pytest.raises(SpecError, match="byte 0xff is not UTF-8"):
        read(file)


def test_files_that_cannot_be_read(tmp_path):
    import os

    (tmp_path / "tanh.grad.yaml").write_text("")
    with pytest.raises(SpecError, match="there is no such file") as caught:
        read(tmp_path / "tahn.grad.yaml")
    assert "tanh.grad.yaml" in caught.value.diagnostics[0].help
    with pytest.raises(SpecError, match="this is not a file"):
        read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError, match="this is not a file"):
        read(tmp_path / "pipe")
    with pytest.raises(SpecError, match=r"null (byte|character)"):
        read("a\0b")
    (tmp_path / "big.grad.yaml").write_bytes(b"#" * 10_000_001)
    with pytest.raises(SpecError, match="larger than 10 MB"):
        read(tmp_path / "big.grad.yaml")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(SpecError, match="the file cannot be read"):
        load([tmp_path / "loop"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError, match=r"there is no \*.grad.yaml file in this folder"):
        load([tmp_path / "empty"])


def test_python_s_own_yaml_parser_serves_as_well(monkeypatch, mistakes):
    import yaml

    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    test_eight_mistakes_in_one_file_are_all_shown_and_no_ninth(mistakes)
    assert mistakes("[" * 300) == ["1:41 nested more than 40 levels deep"]


def test_a_second_document_ends_the_file(mistakes):
    text = "schema: gradcheck/v1\nscenarios:\n  - {id: a, id: b, script: pass}\n---\nb: 1\n"
    assert mistakes(text) == ["3:13 duplicate key 'id', first given in line 3", "4:1 a second document"]


def test_a_long_chain_of_extends(mistakes):
    links = "".join(f"  - {{id: c{n}, extends: c{n + 1}}}\n" for n in range(12))
    last = "  - {id: c12, title: A, source: {document: d}, script: pass}\n"
    found = mistakes("schema: gradcheck/v1\nscenarios:\n" + links + last)
    assert {one.partition(" ")[2] for one in found} == {"extends goes in a circle, or more than 10 scenarios deep"}


def test_extends_cannot_blow_a_small_file_up(mistakes):
    values = "[" + "1," * 40_000 + "]"
    parent = (
        f"  - {{id: p, title: A, source: {{document: d}}, layer: {{op: tanh}}, inputs: {{x: {{values: {values}}}}}}}\n"
    )
    children = "".join(f"  - {{id: c{n}, extends: p}}\n" for n in range(1000))
    found = mistakes("schema: gradcheck/v1\nscenarios:\n" + parent + children)
    assert found == ["3:3 'extends' and 'defaults' make this more than 200,000 values"]


def test_long_code_belongs_into_a_module(scenario_mistakes):
    assert scenario_mistakes("script: |\n" + "  x = 1\n" * 40_000) == [
        (
            "1:9 the script is longer than 20,000 characters",
            "move it into a module, and refer to that with 'layer: {ref: …}'",
        )
    ]


@pytest.mark.parametrize(
    "pattern", ["[αβγ]+-x", "a{1,9}", "(?i)[a-z]+ [A-Z]", "[^-]", "(?s)a.*b", r"\\[2, 3\\] × [0-9]"]
)
def test_usual_patterns_are_read(mistakes, pattern):
    scenario = f"{{id: s, script: pass, expect: {{raises: {{type: E, message: {{re: '{pattern}'}}}}}}}}"
    assert mistakes(f"schema: gradcheck/v1\nscenarios:\n  - {scenario}\n") == []


@pytest.mark.parametrize(
    "body",
    [
        INPUT + "call: '(lambda y: paddle.tanh(y))(x)'",
        INPUT + "call: sum([paddle.tanh(x) for _ in range(n)])\nmatrix: {n: [1, 2]}",
        "layer: |\n  def f(x):\n      raise OwnError\n  class OwnError(Exception): pass\ncall: f(x)\n"
        "inputs: {x: {shape: [2]}}\nexpect: {raises: {type: OwnError}}",
        "layer: {ref: 'own.layers:Layer'}\ncall: Layer.apply(x, n)\ninputs: {x: {shape: [2]}}\nmatrix: {n: [1, 2]}",
        INPUT + "expect: {raises: {type: LinAlgError}}",
        INPUT + "matrix: {n: [1, 2]}\nexpect: {values: {'out * n': [0, 0]}}",
    ],
)
def test_names_that_are_there_are_no_mistakes(scenario_mistakes, body):
    assert scenario_mistakes(body) == []
