"""The verdict alone is tested here."""

from unrepaired import no_fix_is_searched

__all__ = ["no_fix_is_searched"]
