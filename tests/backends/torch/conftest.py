"""Tests of the torch backend: none is collected where torch is not installed."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["*.py"]
