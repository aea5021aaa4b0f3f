"""What a case may take where nobody says otherwise."""

from __future__ import annotations

TIMEOUT = 60.0
"""Seconds."""
MEMORY = 4 << 30
"""Bytes."""
