from __future__ import annotations

from collections.abc import Iterator

import pytest

import pylayer.paddle as paddle


@pytest.fixture(autouse=True)
def program() -> Iterator[paddle.static.Program]:
    """Static mode, with a program of its own as the default one."""
    main = paddle.static.Program()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(main, paddle.static.Program()):
            yield main
    finally:
        paddle.disable_static()
