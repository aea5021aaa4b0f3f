"""The templates of pages."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates(escaped: bool = True) -> Environment:
    """Where templates of pages come from. They escape all that they are given; a name that is missing raises.

    Those that are not `escaped` are no HTML, and see to that themselves.
    """
    loader = PackageLoader("gradcheck.report", "templates")
    return Environment(loader=loader, autoescape=escaped, undefined=StrictUndefined, trim_blocks=True)
