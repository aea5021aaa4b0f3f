"""Causes are tested here; `test_wider_causes.py` has those that come with a fix."""

from unrepaired import no_fix_is_searched

__all__ = ["no_fix_is_searched"]
