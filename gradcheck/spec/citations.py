"""The ids of the rule catalogue, for `rules:` in a spec. `gradcheck.matrix.catalogue` reads the catalogue itself."""

from __future__ import annotations

import functools
import re

from gradcheck.spec.diagnostic import quote
from gradcheck.spec.resolve import cited, is_name
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node
from gradcheck.support.resources import bundled_specs

_ID = re.compile(r"^ +- id: ([a-z0-9-]+)$", re.MULTILINE)


@functools.cache
def rule_ids() -> list[str]:
    """All ids. Only their lines are looked at: to read the files as YAML takes as long as all else of `validate`."""
    files = sorted((bundled_specs() / "rules").glob("*.yaml"))
    return [id for file in files for id in _ID.findall(file.read_text(encoding="utf-8"))]


def check_citations(scenario: Node, text: SpecText) -> None:
    """Report what `rules` cites that is no rule of the catalogue."""
    for name in cited(scenario):
        if is_name(name) and name.text not in rule_ids():
            help = text.suggest(name.text, rule_ids()) or "`gradcheck rules` lists them; words of your own are 'tags'"
            text.report(*name.place, f"there is no rule {quote(name.text)}", help)
