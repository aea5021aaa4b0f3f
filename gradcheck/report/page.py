"""Loading of the Jinja templates of pages."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates(package: str = "gradcheck.report", *, escaped: bool = True) -> Environment:
    """Return the templates in the folder ``templates`` of a package. An undefined name raises.

    Templates escape all values, except those that are not HTML (`escaped` is False), which escape
    them explicitly.
    """
    loader = PackageLoader(package, "templates")
    return Environment(
        loader=loader, autoescape=escaped, undefined=StrictUndefined, trim_blocks=True
    )
