"""How strictly the rule "one gradient per Tensor input" is read: as the documents say it, or as every release takes it.

By the documents a backward that returns too few gradients, or None for an input that needs one, is an error. Releases
take trailing gradients of inputs that need none to be None, and None to be a gradient of zeros; packages rely on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

reads_as_releases: ContextVar[bool] = ContextVar("reads_as_releases", default=False)
"""Whether the rule is read as releases do. A context variable, so threads and tasks do not see each other's."""


@contextmanager
def as_releases() -> Iterator[None]:
    """Within the block the rule is read as every release does."""
    token = reads_as_releases.set(True)
    try:
        yield
    finally:
        reads_as_releases.reset(token)
