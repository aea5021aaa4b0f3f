"""Every code block of README and the documentation runs, and every screen in them is what its command prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import LANGUAGES, PAGES, ROOT, Reader, alike, blocks

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


def given(page: str) -> dict[str, Any]:
    """What the code of a page takes for granted."""
    names: dict[str, Any] = {"paddle": paddle, "np": np, "PyLayer": paddle.autograd.PyLayer}
    if page == "README.md":
        names |= {"MyLayer": MyLayer, "RoundSTE": RoundSTE, "x": np.array([0.3, 1.7]), "w": np.array([2.0, 3.0])}
    return names


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tmp_path, given(page))
    monkeypatch.chdir(reader.place)
    monkeypatch.syspath_prepend(str(reader.place))
    programs = paddle.static.Program(), paddle.static.Program()  # other tests leave theirs in the process
    try:
        with paddle.static.program_guard(*programs):
            for block in blocks(page):
                assert block.language in LANGUAGES, f"{page}:{block.line}: {block.language}"
                try:
                    reader.follow(block)
                except Exception as error:
                    raise AssertionError(f"{page}:{block.line}: {error}") from error
    finally:
        paddle.disable_static()


def test_a_screen_that_is_not_what_the_command_prints_is_noticed() -> None:
    assert alike("$ x\nPASS …\n…\nend\n", "$ x\nPASS in 3 s\none\ntwo\nend\n")
    assert not alike("$ x\nPASS …\n", "$ x\nFAIL in 3 s\n")
    assert not alike("$ x\nPASS\n", "$ x\nPASS\nmore\n")


def test_the_pages_are_there() -> None:
    assert (ROOT / "docs/tutorial.md").is_file()
    assert "docs/tutorial.md" in PAGES


@pytest.mark.parametrize("page", sorted({*PAGES, "docs/findings.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"}))
def test_what_a_page_links_to_is_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text):
        if "://" not in target and not target.startswith("reference/"):  # pages that the site makes
            assert (ROOT / page).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, "SECURITY.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"`(?:python )?((?:tests|docs|gradcheck|engine)/[\w./*-]*\w)", text):
        assert list(ROOT.glob(f"{name}*")), name
