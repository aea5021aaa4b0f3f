"""What Paddle does and the engine does not, where the name alone does not tell."""

from __future__ import annotations


class UnsupportedError(NotImplementedError):
    """Something that is not part of the engine, though its name is.

    Args:
        what: the name, and when; for the verdict.
        advice: what to do instead, a sentence.
    """

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what} is not part of the bundled engine. {advice}".rstrip())
        self.what = what
