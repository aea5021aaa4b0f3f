"""The templates of pages."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates(package: str = "gradcheck.report", *, escaped: bool = True) -> Environment:
    """Return the templates in the folder ``templates`` of a package. A name that is missing raises.

    Templates escape all values, unless they are not HTML (`escaped` is False) and do it themselves.
    """
    loader = PackageLoader(package, "templates")
    return Environment(
        loader=loader, autoescape=escaped, undefined=StrictUndefined, trim_blocks=True
    )
