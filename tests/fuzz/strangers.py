"""What a stranger may put beside a user's work: settings, trust lists and Python; right, wrong, or made to hurt."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

LARGEST = 100_000
"""Bytes. Most draws are small; one in ten repeats something until it is about so large."""

WORDS = (
    "", "a", "specs", ".", "..", "/", "/proc", "/proc/self/environ", "/dev", "/dev/zero", "~", "~nosuchuser", "~root/x",
    "numpy", "paddle", "cupy", "torch", "paddle@3.0.0", "paddle@", "paddle@1" + "0" * 400, "numpy@1", "@", "auto",
    "allow-code", "jobs", "specs/own.grad.yaml", "no.grad.yaml", "link.grad.yaml", "a" * 300, "x/" * 600, "\0", "a\0b",
    "\x1b[2J", "\u202e", "\ud7ff", "é" * 200, "::error::x", "*", "[", "true", "inf", "nan", "2020-01-01", "%s", "{}", "\\",
)  # fmt: skip
NUMBERS = (
    "0", "1", "3", "-1", "1000", "1001", "10000000000000000000000", "9" * 999, "9" * 5000, "0x" + "f" * 900, "0x" + "f" * 9000,
    "1e308", "1e309", "-0.0", "inf", "nan", "-inf", "0.1", "1_000", "1" + "_0" * 3000, "0o17", "1979-05-27", "07:32:00",
    "1979-05-27T07:32:00Z", "2020-13-45", "99999-01-01", "true", "false",
)  # fmt: skip
KEYS = (
    "allow-code",
    "paths",
    "backends",
    "environments",
    "jobs",
    "timeout",
    "tool",
    "gradcheck",
    "x",
    "a.b",
    "''",
    '"a b"',
)


# ------------------------------------------------------------------------------------------ pyproject.toml
def pyproject(random: Random) -> bytes:
    """A pyproject.toml."""
    kind = random.randrange(10)
    if kind == 0:
        return blown_up(TOML_PIECES, random)
    if kind == 1:
        return bytes(random.randrange(256) for _ in range(random.randrange(200)))
    lines = [
        random.choice(["[tool.gradcheck]"] * 8 + ["[tool]", "[[tool.gradcheck]]", "[tool.gradcheck", "tool = 3", ""])
    ]
    for _ in range(random.randrange(6)):
        key = random.choice(KEYS)
        value = fitting(key, random) if random.random() < 0.6 else toml_value(random)
        lines.append(f"{key} = {value}")
    if random.random() < 0.2:
        lines.insert(random.randrange(len(lines) + 1), random.choice(TOML_PIECES)(random, 300))
    return mangled("\n".join(lines).encode("utf-8", "surrogatepass"), random)


def fitting(key: str, random: Random) -> str:
    """A value of the kind that a key takes, not always within its range."""

    def texts() -> str:
        return (
            f"[{', '.join(quoted(random.choice(WORDS), random) for _ in range(random.choice([0, 1, 2, 3, 101, 200])))}]"
        )

    of: dict[str, Callable[[], str]] = {
        "allow-code": lambda: random.choice(["true", "false"]), "paths": texts, "backends": texts,
        "environments": lambda: f'{{"paddle@3.{random.randrange(9)}.0" = {quoted(random.choice(WORDS), random)}}}',
        "jobs": lambda: random.choice(NUMBERS), "timeout": lambda: random.choice(NUMBERS),
    }  # fmt: skip
    return of.get(key, lambda: toml_value(random))()


def toml_value(random: Random, depth: int = 0) -> str:
    """A value of any kind."""
    kind = random.randrange(5 if depth < 3 else 3)
    if kind == 0:
        return random.choice(NUMBERS)
    if kind < 3:
        return quoted(random.choice(WORDS), random)
    items = [toml_value(random, depth + 1) for _ in range(random.randrange(4))]
    if kind == 3:
        return f"[{', '.join(items)}]"
    return f"{{{', '.join(f'{random.choice(KEYS)} = {item}' for item in items)}}}"


def quoted(text: str, random: Random) -> str:
    """A text as a string of TOML, mostly."""
    return f"'{text}'" if random.random() < 0.2 else json.dumps(text, ensure_ascii=random.random() < 0.5)


def _many(piece: str, end: str = "", begin: str = "") -> Callable[[Random, int], str]:
    return lambda random, size: begin + piece * (size // len(piece)) + end


def _numbered(piece: str) -> Callable[[Random, int], str]:
    return lambda random, size: "".join(piece.format(k) for k in range(size // len(piece.format(10_000))))


TOML_PIECES: tuple[Callable[[Random, int], str], ...] = (
    _many("a.", "a = 1"), _many("'a'.", "a = 1"), _many("a . ", "a = 1"), _many("[", "]", "a = "), _many("{a=", "1}", "a = "),
    _many("[a.", "]"), _many("[[a]]\n"), _many("[[a.b]]\n", "", "[[a]]\n"), _many("9", "", "a = "), _many("f", "", "a = 0x"),
    _many("1_", "1", "a = "), _many("1,", "]", "a = ["), _many("{b=1},", "]", "a = ["), _many("\\n", '"', 'a = "'),
    _many("\\\n", '"""', 'a = """'), _many('""a', '"""', 'a = """'), _many("''a", "'''", "a = '''"), _many('"'), _many("'"),
    _many("#"), _many("\n"), _many(" "), _many("a"), _many("a "), _many("2020-01-01,", "]", "a = ["), _many("[a]\n"),
    _numbered("a{} = 1\n"), _numbered("[a{}]\n"), _numbered("[tool.gradcheck.x{}]\n"), _numbered("tool.gradcheck.x{} = 1\n"),
    _numbered("a" + ".b" * 38 + ".c{} = 1\n"), _numbered("[a" + ".b" * 37 + ".c{}]\n" + "d." * 38 + "e = 1\n"),
    lambda random, size: f"tool.gradcheck.paths = [{'1,' * (size // 2)}]",
    lambda random, size: f"tool.gradcheck.paths = [{'{},'.format(json.dumps('x')) * (size // 4)}]",
    lambda random, size: f"tool.gradcheck.backends = [{'{},'.format(json.dumps('x')) * (size // 4)}]",
    lambda random, size: f"tool.gradcheck.backends = [{json.dumps('paddle@' + '1.' * (size // 2) + '1')}]",
    lambda random, size: f"tool.gradcheck.environments = {{{','.join(f'x{k}=1' for k in range(size // 9))}}}",
    lambda random, size: f"tool.gradcheck.{'x' * min(size, 900)} = 1",
    lambda random, size: f"tool.gradcheck.jobs = {'[' * 39}{']' * 39}",
)  # fmt: skip
"""Each makes about so many characters of one thing."""


# ------------------------------------------------------------------------------------------ trust lists
def trust_list(random: Random, roots: Sequence[str]) -> bytes:
    """A list of trusted projects, in which some of `roots` stand."""
    kind = random.randrange(10)
    if kind == 0:
        return blown_up(JSON_PIECES, random)
    names = [
        *roots,
        "/",
        "/tmp",
        "//",
        "/proc/self",
        "relative",
        "/no/such",
        "/\0",
        "/" + "a" * 5000,
        "/x" * 3000,
        "\ud800",
        "",
    ]
    values: list[Any] = ["", "0" * 64, "x", 3, None, [], {}, True, "\ud800", "\0"]
    entries = {
        random.choice(names): random.choice(values[: 3 if kind < 7 else None]) for _ in range(random.randrange(5))
    }
    text = json.dumps(random.choice([entries] * 9 + [list(entries)]), ensure_ascii=random.random() < 0.5)
    return mangled(text.encode("utf-8", "surrogatepass"), random)


JSON_PIECES: tuple[Callable[[Random, int], str], ...] = (
    _many("["), _many('{"a":'), _many("9"), _many('"'), _many("\\u0000", '"', '"'), _many("1,", "1]", "["), _many(" "),
    lambda random, size: json.dumps({f"/{k}": "" for k in range(size // 13)}),
    lambda random, size: json.dumps({"/" * k: "" for k in range(1, 400)}),
    lambda random, size: json.dumps({"/a" * 2000 + str(k): "" for k in range(size // 4100)}),
    lambda random, size: json.dumps({"/." * 1500 + "/" * k: "" for k in range(size // 3100)}),
    lambda random, size: '{"/": ' + "9" * size + "}",
)  # fmt: skip


# ------------------------------------------------------------------------------------------ Python
def python(random: Random) -> bytes:
    """A file of Python."""
    kind = random.randrange(8)
    if kind == 0:
        return blown_up(PYTHON_PIECES, random)
    lines = [random.choice(STATEMENTS) for _ in range(random.randrange(1, 12))]
    if kind == 1:
        lines.insert(random.randrange(len(lines)), random.choice(PYTHON_PIECES)(random, 400))
    indented = random.choice([["def f(x):"], ["class A(paddle.nn.Layer):"], ["if x:"], []])
    text = "\n".join([*indented, *("    " * len(indented) + line for line in lines)])
    return mangled(text.encode("utf-8", "surrogatepass"), random)


STATEMENTS = (
    "import paddle", "import paddle.nn.functional as F", "from paddle import nn", "from paddle.nn import *", "import paddle as p",
    "from paddle.nn.functional import relu as r, no_such", "from . import paddle", "from .paddle import x", "F = paddle.nn",
    "F = F.F", "G = H = F.functional", "paddle.tanh(x)", "paddle.tanhh(x)", "F.relu(paddle.abs(x).sum())", "p.nn.no_such.x.y",
    "x = [paddle.a for a in paddle.b if paddle.c]", "lambda y: paddle.tanh(y)", "f'{paddle.x:{paddle.y}}'", "'\\d'", "x = '''",
    "@paddle.no_such", "def g(): return paddle.nn", "async def h(): await paddle.x", "match paddle.x:", "    case paddle.y: pass",
    "paddle.\u212b", "paddle." + "a" * 300, "import paddle." + "a." * 50 + "b", "F = paddle" + ".a" * 50, "# coding: rot13", "\x0c",
    "x = (", "x = 1 +", "\0", "\ud800", "import", "del paddle.x", "paddle.x = 1", "with paddle.no_grad(): pass", "return", "(x) = 1",
)  # fmt: skip
PYTHON_PIECES: tuple[Callable[[Random, int], str], ...] = (
    _many(".a", "", "import paddle\npaddle"), _many(".a", "", "x"), _many("(", ")", "import paddle\n"), _many("f("), _many("["),
    _many("-", "1"), _many("not ", "x"), _many("lambda: ", "x"), _many("1+", "1"), _many("x if x else ", "x"), _many("a,"),
    _many("a=", "paddle"), _many("9"), _many("'a' "), _many("f'{x}' "), _many("f'{", "}'"), _many("\\\n"), _many("\n"), _many("#"),
    _many("paddle.x\n", "", "import paddle\n"), _many("F=F.a\n", "", "import paddle\nF=paddle\n"), _many("x" + ".a" * 900 + "\n"),
    _many("F=F.F.F.F\n", "", "import paddle\nF=paddle\n"), _many("x().a(", ")"), _many("x[0].a"), _many("@a\n", "def f(): pass"),
    _numbered("paddle.n{}\n"), _numbered("import paddle.n{}\npaddle.n{}\n".replace("{}\np", "{0}\np").replace("n{}", "n{0}")),
    lambda random, size: "import paddle as " + "a" * (size // 2) + "\n" + "\n".join(["a" * (size // 20)] * 8),
    lambda random, size: "import paddle\nF = paddle." + "a" * (size // 2) + "\n" + "F.x\n" * (size // 8),
    lambda random, size: "import paddle\n" + "".join(f"paddle.n{k}.x\n" for k in range(size // 14)),
    lambda random, size: "".join(" " * k + "if x:\n" for k in range(min(size // 50, 300))) + " " * 300 + "x",
    lambda random, size: "".join("    " * k + "try: a\n" + "    " * k + "finally:\n" for k in range(min(size // 99, 99))) + " " * 400 + "a",
    lambda random, size: "import paddle\nx = {" + ",".join("**paddle.a" for _ in range(size // 12)) + "}",
    lambda random, size: "with " + "(" * min(size, 150) + "x" + ")" * min(size, 150) + ": pass",
    lambda random, size: "match x:\n  case " + "(" * min(size, 150) + "y" + ")" * min(size, 150) + ": pass",
    lambda random, size: "f(" + "**a, *" * (size // 6) + ")", lambda random, size: "{" * min(size, 150) + "x" + "}" * 149,
)  # fmt: skip


# ------------------------------------------------------------------------------------------ all
def blown_up(pieces: Sequence[Callable[[Random, int], str]], random: Random) -> bytes:
    """Much of one thing, cut to the largest size."""
    text = random.choice(pieces)(random, random.choice([300, 5_000, 40_000, LARGEST - 200]))
    return text.encode("utf-8", "surrogatepass")[:LARGEST]


def mangled(raw: bytes, random: Random) -> bytes:
    """The bytes, now and then with some of them cut out, twice there, or others."""
    while raw and random.random() < 0.25:
        at, length = random.randrange(len(raw)), random.choice([1, 1, 2, 8, 40])
        piece = random.choice(
            [b"", raw[at : at + length] * 2, bytes([random.randrange(256)]), b'"', b"\n", b"[", b"\\"]
        )
        raw = raw[:at] + piece + raw[at + length :]
    return raw
