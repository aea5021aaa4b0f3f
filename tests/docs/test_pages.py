"""Every code block of README and the documentation runs, and every screen in them is what its command prints."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import LANGUAGES, PAGES, ROOT, Block, Reader, alike, blocks, forget_modules

import pylayer.paddle as paddle


class MyLayer(paddle.autograd.PyLayer):
    """The reader's own layer."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any = 1.0, epsilon: float = 0.0) -> Any:
        ctx.weighted = not isinstance(w, float)
        ctx.save_for_backward(*([x, w] if ctx.weighted else [x]))
        return x * x * w + epsilon

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        x, *w = ctx.saved_tensor()
        return (2 * dy * x * w[0], dy * x * x) if ctx.weighted else 2 * dy * x


class RoundSTE(paddle.autograd.PyLayer):
    """A layer that is not meant as the derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return paddle.round(x)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy


OWN_TANH = """
import paddle
class OwnTanh(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensor()
        return dy * (1 - y * y)
"""
"""A layer in a module of the reader's own, `mypkg.layers`."""


def given(page: str) -> dict[str, Any]:
    """What the code of a page takes for granted."""
    names: dict[str, Any] = {"paddle": paddle, "np": np, "PyLayer": paddle.autograd.PyLayer}
    if page == "README.md":
        names |= {"MyLayer": MyLayer, "RoundSTE": RoundSTE, "x": np.array([0.3, 1.7]), "w": np.array([2.0, 3.0])}
    return names


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tmp_path, given(page))
    if page == "docs/pytest.md":
        reader.write(reader.place / "mypkg/layers.py", OWN_TANH)
    monkeypatch.chdir(reader.place)
    others = str(tmp_path.parent)  # folders of other tests, in which modules have the same names
    monkeypatch.setattr(sys, "path", [place for place in sys.path if not place.startswith(others)])
    monkeypatch.syspath_prepend(str(reader.place))
    forget_modules(tmp_path.parent)  # those of other tests in this process
    programs = paddle.static.Program(), paddle.static.Program()  # other tests leave theirs in the process
    try:
        with paddle.static.program_guard(*programs):
            for block in blocks(page):
                assert block.language in LANGUAGES, f"{page}:{block.line}: {block.language}"
                try:
                    reader.follow(block)
                except Exception as error:
                    raise AssertionError(f"{page}:{block.line}: {error}") from error
            reader.finish()
    finally:
        paddle.disable_static()
        forget_modules(reader.place)


def test_a_screen_that_is_not_what_the_command_prints_is_noticed() -> None:
    assert alike("$ x\nPASS …\n…\nend\n", "$ x\nPASS in 3 s\none\ntwo\nend\n")
    assert not alike("$ x\nPASS …\n", "$ x\nFAIL in 3 s\n")
    assert not alike("$ x\nPASS\n", "$ x\nPASS\nmore\n")


SKIPPED = {"docs/how-to.md": 1, "docs/running.md": 4}
"""How many blocks of a page are not followed. Each says why in its first line, behind ``skip=``."""


def test_what_is_not_followed_is_counted_and_says_why() -> None:
    skipped = [block for page in PAGES for block in blocks(page) if "skip" in block.options]
    assert Counter(block.page for block in skipped) == SKIPPED, [block[:3] for block in skipped]
    assert all(" " in block.options["skip"] for block in skipped)
    assert {block.language for block in skipped} == {"yaml"}


@pytest.mark.parametrize(
    ("language", "text", "error"),
    [
        ("yaml", "expect: {gradient: zero}", "FAIL shown"),
        ("yaml", "backends: {numpi: {}}", "unknown backend|numpi"),
        ("yaml", "schema: gradcheck/v1", "scenarios"),
        ("yaml", "- a list", "needs a skip"),
        ("python", "def test_it():\n    assert not 1, 'called'\n", "called"),
        ("console", "$ gradcheck validate nowhere\nok\n", "nowhere"),
    ],
)
def test_a_block_that_does_not_hold_is_noticed(
    language: str, text: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(tmp_path, {})
    monkeypatch.chdir(reader.place)
    with pytest.raises(AssertionError, match=error):  # noqa: PT012 - at the block, or at the end of its page
        reader.follow(Block("page", 1, language, {}, text))
        reader.finish()


def test_the_pages_are_there() -> None:
    assert (ROOT / "docs/tutorial.md").is_file()
    assert "docs/tutorial.md" in PAGES


@pytest.mark.parametrize("page", PAGES)
def test_no_page_installs_a_release_before_there_is_one(page: str) -> None:
    """Once one is on the package index this test goes, and the pages say ``pip install gradcheck``."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not re.search(r"pip install (-\S+ )*['\"]?gradcheck\b", text)


@pytest.mark.parametrize("page", sorted({*PAGES, "docs/findings.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"}))
def test_what_a_page_links_to_is_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text) + re.findall(r'src(?:set)?="([^"]+)"', text):
        if "://" not in target and not target.startswith("reference/"):  # pages that the site makes
            assert (ROOT / page).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, "SECURITY.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`(?:python )?((?:tests|docs|gradcheck|engine)/[\w./*-]*\w)", text):
        assert list(ROOT.glob(f"{name}*")), name
