"""The templates of pages."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates() -> Environment:
    """Where templates of pages come from. They escape all that they are given; a name that is missing raises."""
    loader = PackageLoader("gradcheck.report", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
