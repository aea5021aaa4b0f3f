from __future__ import annotations

PROGRAMS: dict[str, str] = {}
DIFFERS: dict[str, tuple[str, str]] = {}
