"""The version of the bundled suite: one for every report, release file and matrix."""

from __future__ import annotations

import functools
import hashlib

from gradcheck import __version__
from gradcheck.support.resources import bundled_files


@functools.cache
def suite_version(framework: str = "paddle") -> str:
    """Return the version of gradcheck, and a digest of the text of a framework's bundled specs.

    Every report of a run of the suite contains it, and every release file: ``0.1.0, ca1b29392b86``.
    Files are not parsed for it, as a run of one scenario would have to wait for all of them.
    """
    digest = hashlib.sha256()
    for file in bundled_files(framework):
        digest.update(file.read_text(encoding="utf-8").encode())  # with normalised line ends
    return f"{__version__}, {digest.hexdigest()[:12]}"
