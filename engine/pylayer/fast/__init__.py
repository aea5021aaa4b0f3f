"""Shorter ways to what the core defines: calls, nodes and the walk of usual operations, spelled out.

``PYLAYER_PLAIN=1`` in the environment leaves them out. What they give is what the definition gives, bit by bit:
tests/engine/test_plain.py holds both against each other on random programs.
"""

from __future__ import annotations

import os

ON = os.environ.get("PYLAYER_PLAIN") != "1"
"""Whether they are taken."""
