"""The current programs: the default ones, or those of `program_guard`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pylayer.static.program import Program

_defaults: ContextVar[tuple[Program, Program] | None] = ContextVar("default_programs", default=None)


def _default_programs() -> tuple[Program, Program]:
    programs = _defaults.get()
    if programs is None:
        programs = (Program(), Program())
        _defaults.set(programs)
    return programs


def default_main_program() -> Program:
    """The program to which operations are appended."""
    return _default_programs()[0]


def default_startup_program() -> Program:
    """The program that initialises parameters."""
    return _default_programs()[1]


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Append operations to `main_program` within the ``with`` block.

    Raises:
        TypeError: an argument is not a Program.
    """
    startup = default_startup_program() if startup_program is None else startup_program
    for role, program in (("main_program", main_program), ("startup_program", startup)):
        if not isinstance(program, Program):
            raise TypeError(
                f"The {role} of program_guard should be paddle.static.Program, but received "
                f"{type(program).__name__}."
            )
    token = _defaults.set((main_program, startup))
    try:
        yield
    finally:
        _defaults.reset(token)
