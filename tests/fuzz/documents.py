"""Spec files out of a random number generator: mostly of the right structure, with anything hostile in them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

NAMES = [
    "schema", "defaults", "scenarios", "id", "title", "source", "document", "section", "quote", "url", "tags", "layer",
    "ref", "op", "script", "inputs", "shape", "values", "init", "low", "high", "near", "dtype", "stop_gradient",
    "layout", "call", "matrix", "expect", "gradient", "grads", "cotangent", "order", "calls", "forward", "backward",
    "raises", "type", "phase", "message", "re", "warns", "value", "rtol", "backends", "numpy", "cupy", "paddle",
    "xfail", "skip", "reason", "strict", "seed", "timeout", "extends", "path", "line", "positions",
    "dtype_written", "x", "world", "outputs", "random", "ranks", "mp", "dp",
]  # fmt: skip
WORDS = [
    "one", "two", "x", "y", "tanh", "float32", "float64", "int8", "bool", "normal", "uniform", "linspace", "integers",
    "matches", "differs", "unchecked", "forward", "any", "gradcheck/v1", "pkg.mod:Class", "a.b:C.d",
    "nn.functional.relu",
    "ValueError", "https://example.org/x", "", " ", "~", "yes", "no", "on", "0x1F", "017", "1_000", "1e5",
    ".inf", "-.inf",
    ".nan", "12:30:45", "2001-01-01", "=", "<<", "null", "!!python/object:os.system", "&a x", "*a", "%TAG", "@", "`",
    "a: b", "- a", "# c", "'", '"', "\\", "\t", "\n", "\r", "\r\n", "\0", "\x1b[2J", "\x7f", "\x85", "\u2028", "\ufeff",
    "\u202e", "\ud800", "\U0001f600", "é" * 3, "日本", "a" * 300, "{" * 60, "[" * 60, "- " * 60, "? " * 30,
    "tahn", "os.kill", "_names.sys.modules.clear", "load", "nn.functional.Relu", "\ufb01", "\u3164", "\u2800x",
    "\ufe0f",
    "a" + "\u0336" * 50, "\u0301", "::error::x", " ##[add-mask]x", "1e-400", "-.000e-9", "1e-46", "65520", "\udcff",
]  # fmt: skip
CODE = [
    "class A(PyLayer):\n    pass", "class A(PyLayer):\n  @staticmethod\n  def forward(ctx, x):\n    return x", "x = 1",
    "A.apply(x)", "out.shape", "x.grad", "def f(:", "(" * 150, "-" * 3000 + "1", "9 ** 9 ** 9", "lambda: " * 90 + "0",
    "x" + ".a" * 500, "f'{" * 20, "'\\N{BULLET}'", "'\\x'", "\0", "1" * 5000, "while True: pass",
    "import os; os._exit(0)",
    "[" * 90 + "]" * 90, "x\n" * 300, "\tx\n  y", "async def f(): await g()", "match x:\n  case {**r}: pass", "é = 1",
    "#" * 1000, "return", "yield", "nonlocal x", "from __future__ import braces", "if 1:\n" * 30, "@" * 50,
    "a = b = " * 200,
    "not " * 400 + "x", "x if " * 200, "`", "print 1", "'''", "\\\n" * 50, "\x0c x", "class B(A):\n pass\n" * 20,
    "class A(b" + ".b" * 900 + "): pass", "class A(" + "-" * 190 + "b): pass", "x" + "+a" * 150, "x" + "+a" * 400,
    "".join(f"{' ' * k}try: a\n{' ' * k}finally:\n" for k in range(9)) + " " * 9 + "a",
    "".join(f"{' ' * k}try: a\n{' ' * k}finally:\n" for k in range(18)) + " " * 18 + "a",
    "def f():\n try:\n" + "  if x: return\n" * 300 + " finally:\n" + "  a()\n" * 900,
    "x = 1\n" * 3300, "x = 1\n" * 3400,
    "def f():\n " + ",".join(f"a{k}" for k in range(1500)) + "=x\n" + " lambda: 0\n" * 900,
    "if a: b\n" + "elif a: b\n" * 250,
]  # fmt: skip
PATTERNS = [
    "a", "(a+)+$", "(", "[", "*", "a{1,65535}", "(a{0,9999}){0,9999}", "(?P<n>a)(?P=n)", "(?<=a+)b", "\\",
    "(?i", "(?z)",
    "(" * 200, "a|" * 300, "[[:alpha:]]", "\\Z\\A", "(?:" * 100 + ")" * 100, "a{99999999999}", "(?(1)a|b)",
    "\ud800", "(?L)a", "(?i)" + "[a-\U0010ffff]" * 100, "[^-\uffff]" * 90, "[a-\\U0010ffff]",
    "[\\N{BULLET}-x]", "[α-ω]",
    "(?i)" + "[!-~]" * 190, "(?i)[" + "!-~" * 300 + "]", "(?x)#[^\n[]a-\U0010ffff]",
    "()" * 101, "((a{9}){9}){9}" * 7, "a" * 1001,
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 2, 3, 7, 255, 2**31, 2**32, 2**63, 10**30, -(2**64), 0.0, -0.0, 0.5, 1e-6, 1e-320, 1e308, 1e999, -1e999,
    float("nan"), 10**400, True, False, None, 5e-324, 1e-45, 1e-46, 65519, 65520, 3.5e38,
]  # fmt: skip
SHAPES = [[], [1], [2, 3], [0], [-1], [2] * 9, [10**6] * 3, [2**62, 4], [1.5], ["2"], [[1]], [10**9], [2**27], [4] * 8]
FRAGMENTS = [
    b"\t", b"\n", b"  ", b": ", b"- ", b"{", b"}", b"[", b"]", b"'", b'"', b"|", b">", b"|2-", b"&a ", b"*a",
    b"!!x ", b"!",
    b"<<: ", b"? ", b"# ", b"---\n", b"...\n", b"%YAML 1.2\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe",
    b"\xc3", b"\r",
    b"\xed\xa0\x80", "\u2028".encode(), b"~", b"1e999", b",", b"\\", b"\\x", b"\x1b[31m", b"@", b"`", b"=", b"\x85",
]  # fmt: skip

GOOD_CODE = [
    "class A(PyLayer):\n    forward = backward = staticmethod(lambda ctx, *x: x[0])",
    "class A(PyLayer):\n    @staticmethod\n    def forward(ctx, *x):\n        return x[0]\n    backward = forward",
]
GOOD_SHAPES = [[], [1], [2, 3], [0], [4, 1, 2]]

Random = random.Random
ODD = 0.04
"""The chance of something odd where something usual could stand."""


def usual(random: Random, good: list[Any], odd: Callable[[Random], Any]) -> Any:
    """One of `good`, or now and then what `odd` gives."""
    return odd(random) if random.random() < ODD else random.choice(good)


def document(random: Random) -> bytes:
    """A spec file: a structure written down in one of several styles, then perhaps damaged."""
    write = random.choice([block, block, flow, as_json])
    text = write(spec(random), random)
    raw = text.encode("utf-8", random.choice(["surrogatepass", "replace", "replace", "replace"]))
    for _ in range(random.choice([0, 0, 0, 0, 0, 0, 1, 1, 2, 5])):
        raw = damaged(raw, random)
    return raw


def damaged(raw: bytes, random: Random) -> bytes:
    """`raw` with a piece replaced, doubled, cut off or moved."""
    start = random.randrange(len(raw) + 1)
    end = min(len(raw), start + random.choice([0, 1, 2, 8, 40]))
    match random.randrange(6):
        case 0:
            return raw[:start] + raw[start:end] * random.choice([2, 3, 50]) + raw[end:]
        case 1:
            return raw[:start]
        case 2:
            lines = raw.split(b"\n")
            lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))
            return b"\n".join(lines)
        case 3:
            return raw.replace(b"\n", b"\r\n") if random.random() < 0.5 else raw.replace(b"\n", b"\r", 1)
        case _:
            return raw[:start] + random.choice(FRAGMENTS) + raw[end:]


# ------------------------------------------------------------------------------------------ structure
def spec(random: Random) -> Any:
    """The data of a file."""
    if random.random() < 0.02:
        return anything(random)
    data: dict[str, Any] = {"schema": "gradcheck/v1"}
    if random.random() < 0.3:
        keys = {"dtype": dtype, "seed": whole, "tags": tags, "source": source, "timeout": positive, "rtol": fraction}
        data["defaults"] = some(keys, random)
    count = random.choice([1, 1, 1, 1, 2, 2, 3, 8]) if random.random() > 0.01 else 0
    data["scenarios"] = [scenario(k, random) for k in range(count)]
    return strange(data, random, ODD)


def scenario(k: int, random: Random) -> Any:
    """The data of a scenario."""
    data: dict[str, Any] = {"id": f"s{k}", "title": "t", "source": {"document": "d"}}
    if random.random() < 0.2:
        data["extends"] = usual(random, ["s0"] if k else ["s1"], word)
    name = {"op": "tanh"}, {"op": "nn.functional.relu"}, {"ref": "pkg.mod:Class"}
    layers = [lambda random: {"op": word(random)}, lambda random: {"ref": word(random)}, code]
    if random.random() < 0.2:
        data["script"] = usual(random, ["x = 1", *GOOD_CODE], code)
    elif "extends" not in data:
        data["layer"] = usual(random, [*GOOD_CODE, *name], random.choice(layers))
    if "script" not in data:
        one = "op" in data.get("layer", "") and random.random() > ODD
        names = ["x"] if one else random.sample("xyzw", random.randint(1, 3))
        data["inputs"] = {one: strange(an_input(random), random, ODD) for one in names}
    layer = data.get("layer", "")
    named = f"paddle.{layer['op']}" if "op" in layer else "Class.apply" if "ref" in layer else "A.apply"
    called = f"{named}({', '.join(data.get('inputs', {}))})"

    def applied(random: Random) -> Any:
        return usual(random, [called], call)

    keys: dict[str, Callable[[Random], Any]] = {
        "tags": tags, "call": applied, "matrix": matrix, "expect": expect, "seed": whole, "timeout": positive,
    "rtol": fraction,
        "backends": lambda random: {usual(random, ["numpy", "paddle"], word): on_backend(random)},
    }  # fmt: skip
    if random.random() < 0.2 and "script" not in data:
        data["world"] = usual(random, [1, 2, 64, {"mp": 2, "dp": 3}], lambda random: anything(random))
        keys["outputs"], keys["random"] = outputs, lambda random: usual(random, ["same", "by-rank"], word)
    return strange({**data, **some(keys, random)}, random, ODD)


def outputs(random: Random) -> Any:
    """The data of what outputs stand for."""
    one = {"ranks": usual(random, ["split", "replicated"], word)}
    return random.choice([one, [one], [one, one]])


def an_input(random: Random) -> Any:
    """The data of an input."""
    keys: dict[str, Callable[[Random], Any]] = {
        "init": lambda random: usual(random, ["normal", "uniform", "linspace", "ones"], word), "dtype": dtype,
        "layout": lambda random: usual(random, ["contiguous", "strided"], word),
        "stop_gradient": lambda random: usual(random, [True, False], word),
    }  # fmt: skip
    if random.random() < ODD:
        keys["ranks"] = lambda random: usual(random, ["replicated", "partial"], word)
    if random.random() < 3 * ODD:
        keys.update(low=number, high=number, near=numbers)
    if random.random() < 0.3:
        return {"values": numbers(random)}
    given = {"shape": usual(random, GOOD_SHAPES, lambda random: random.choice(SHAPES))}
    return {**given, **(some(keys, random) if random.random() < 0.6 else {})}


def expect(random: Random) -> Any:
    """The data of expectations."""
    keys: dict[str, Callable[[Random], Any]] = {
        "gradient": lambda random: usual(random, ["matches", "unchecked"], word), "warns": error,
        "order": lambda random: usual(random, [1, 2], number),
        "calls": lambda random: {"forward": whole(random), "backward": whole(random)},
        "values": lambda random: {call(random): random.choice([numbers, word, tolerance, anything])(random)},
    }  # fmt: skip
    if random.random() < 5 * ODD:
        keys.update(raises=error, cotangent=numbers, grads=lambda random: {random.choice("xyzw"): numbers(random)})
    return strange(some(keys, random), random, ODD)


def error(random: Random) -> Any:
    """The data of an expected exception or warning."""
    message = random.choice([word, lambda random: {"re": random.choice(PATTERNS)}])
    keys = {"message": message} if random.random() < 0.8 else {"message": message, "phase": word}
    return {"type": usual(random, ["ValueError", "a.B"], word), **some(keys, random)}


def on_backend(random: Random) -> Any:
    """The data of what is different on a backend."""
    keys: dict[str, Callable[[Random], Any]] = {
        "xfail": lambda random: {
            "reason": usual(random, ["why"], word),
            "strict": usual(random, [True, False], number),
        },
        "skip": lambda random: {"reason": usual(random, ["why"], word)},
    }
    return random.choice([some(keys, random), {"expect": expect(random)}])


def source(random: Random) -> Any:
    """The data of a source."""
    return some(dict.fromkeys(("document", "section", "quote"), word), random)


def matrix(random: Random) -> Any:
    """The data of a matrix, of up to far too many points."""
    size = usual(random, [1, 2, 3], lambda random: random.choice([20, 300]))
    odd = {
        word(random): [random.choice([number, word])(random) for _ in range(size)]
        for _ in range(random.choice([1, 1, 2, 4]))
    }
    return usual(random, [{"dtype": ["float32", "float64"]}, {"k": list(range(size))}], lambda random: odd)


def tolerance(random: Random) -> Any:
    """An expected value with a tolerance."""
    return {"value": numbers(random), "rtol": fraction(random)}


def tags(random: Random) -> Any:
    """A list of tags."""
    return [usual(random, ["a", "b-c", "x1"], word) for _ in range(random.choice([0, 1, 2, 30]))]


def some(keys: dict[str, Callable[[Random], Any]], random: Random) -> dict[str, Any]:
    """A few of `keys`, each with data for it."""
    return {key: keys[key](random) for key in random.sample(sorted(keys), random.randint(0, min(4, len(keys))))}


def strange(data: dict[str, Any], random: Random, chance: float) -> Any:
    """`data`, at a chance with a key misspelt, a value of any kind, or not a mapping at all."""
    if random.random() >= chance or not data:
        return data
    key = random.choice(sorted(data))
    match random.randrange(4):
        case 0:
            return {**data, random.choice(NAMES): anything(random)}
        case 1:
            return {**data, key: anything(random)}
        case 2:
            return {(name[:-1] if name == key else name): value for name, value in data.items()}
        case _:
            return anything(random)


def dtype(random: Random) -> Any:
    """A dtype."""
    return usual(random, ["float64", "float32", "complex64", "float16"], word)


def whole(random: Random) -> Any:
    """A whole number that is not negative."""
    return usual(random, [0, 1, 2, 7], number)


def positive(random: Random) -> Any:
    """A number above 0."""
    return usual(random, [0.5, 1, 60.0], number)


def fraction(random: Random) -> Any:
    """A number between 0 and 1."""
    return usual(random, [0.5, 1e-6, 1e-3], number)


def call(random: Random) -> Any:
    """An expression."""
    return usual(random, ["x", "1 + 1", "A.apply(x)", "[out, x.grad]"], code)


def number(random: Random) -> Any:
    """A number, or what looks a little like one."""
    return random.choice(NUMBERS)


def numbers(random: Random) -> Any:
    """Numbers in nested lists, ragged or deep now and then."""
    depth = random.choice([0, 1, 1, 2, 2, 3, 45])
    if random.random() > ODD:
        return random.choice([1.5, [1.0, 2.0], [[1, 2], [3, 4]], [[0.5]], -0.0, [float("nan"), float("inf")]])
    value: Any = number(random)
    for _ in range(depth):
        value = [value] if depth > 5 else [value, *(number(random) for _ in range(random.randrange(3)))]
    return value


def word(random: Random) -> str:
    """A word of the format, or one that YAML or a terminal may stumble over."""
    return random.choice(WORDS)


def code(random: Random) -> str:
    """Python, or not quite."""
    return random.choice(CODE)


def anything(random: Random, depth: int = 0) -> Any:
    """Data without regard to the format."""
    kind = random.randrange(7 if depth < 4 else 4)
    if kind < 4:
        return random.choice([number, word, code, numbers])(random)
    items = [anything(random, depth + 1) for _ in range(random.randrange(4))]
    return items if kind == 4 else {random.choice(NAMES): item for item in items}


# --------------------------------------------------------------------------------------------- styles
def scalar(value: Any, random: Random, *, key: bool = False) -> str:
    """A scalar as YAML, quoted in one way or another, or not at all."""
    if value is None:
        return random.choice(["null", "~", ""]) if not key else "null"
    if isinstance(value, bool):
        return usual(random, ["true", "false"], word)
    if isinstance(value, (int, float)):
        if random.random() < ODD / 4:
            return random.choice(["1e-400", "-0.00001e-320", "0e-999", "-.0", "1e400"])
        return (
            repr(value)
            if abs(value) < 10**300 or value != value
            else random.choice([".inf", "1e999", "-.inf", "9" * 350])
        )
    match random.randrange(4):
        case 0 if value.isidentifier() or random.random() < ODD:
            return str(value)
        case 1:
            return "'" + value.replace("'", "''") + "'"
        case _:
            return json.dumps(value, ensure_ascii=random.random() < 0.7)


def block(value: Any, random: Random, indent: int = 0) -> str:
    """Data as block YAML; code as literal blocks."""
    pad = " " * indent
    if isinstance(value, dict) and value:
        lines = []
        for key, item in value.items():
            name = scalar(key, random, key=True) if not key.isidentifier() else key
            lines.append(f"{pad}{name}:{nested(item, random, indent)}")
        return "\n".join(lines)
    if isinstance(value, list) and value and indent < 40:
        return "\n".join(f"{pad}-{nested(item, random, indent)}" for item in value)
    return pad + flow(value, random)


def nested(value: Any, random: Random, indent: int) -> str:
    """What stands behind a colon or a hyphen."""
    if isinstance(value, (dict, list)) and value and random.random() < 0.8:
        return "\n" + block(value, random, indent + random.choice([2, 2, 2, 4]))
    if isinstance(value, str) and "\n" in value and random.random() < 0.9:
        lines = "".join(f"{' ' * (indent + 4)}{line}\n" for line in value.split("\n"))
        return f" {random.choice(['|', '|', '|-', '>', '|+'])}\n{lines}"
    return " " + flow(value, random)


def flow(value: Any, random: Random, indent: int = 0) -> str:
    """Data as flow YAML."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{scalar(key, random, key=True)}: {flow(item, random)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(flow(item, random) for item in value) + "]"
    return scalar(value, random)


def as_json(value: Any, random: Random) -> str:
    """Data as JSON, on one line or many."""
    return json.dumps(value, ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1, 2]))
