"""The rule catalogue: the statements that the bundled scenarios hold implementations to, and which scenarios do.

A file of ``specs/rules/`` holds the rules of one document. A scenario cites a rule by carrying its id among its tags:
``gradcheck run --bundled -t RULE`` runs what asserts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, Strict

from gradcheck.spec.model import Scenario, TagName
from gradcheck.support.resources import bundled_specs


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Rule(_Strict):
    """One statement of a document, or one observation."""

    id: TagName
    says: str = Field(min_length=1)
    """The statement in our words."""
    section: str
    """Where in the document it stands."""
    quote: str = Field(min_length=1)
    """The sentence itself, verbatim but for line breaks."""
    decided: str = ""
    """What holds where documents contradict one another, or the engine and the release differ."""


class Document(_Strict):
    """A file of the catalogue: the rules of one document."""

    document: str
    url: str = ""
    verified: str
    """Digest of the quotes, written when they were last looked up in the document (tests/specs/quotes.py)."""
    rules: Annotated[tuple[Rule, ...], Strict(False)]

    @property
    def is_observation(self) -> bool:
        """Whether it has what a release was seen to do, in place of what a page says."""
        return not self.url


def catalogue() -> list[Document]:
    """The files of the bundled catalogue, in the order of their names.

    Raises pydantic.ValidationError: a file is not as the model says.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it
    texts = (file.read_text(encoding="utf-8") for file in sorted((bundled_specs() / "rules").glob("*.yaml")))
    return [Document.model_validate(yaml.load(text, Loader=loader)) for text in texts]


def all_rules(documents: Iterable[Document]) -> Iterator[tuple[Rule, Document]]:
    """All rules, each with its document."""
    for document in documents:
        for rule in document.rules:
            yield rule, document


def citing(rule: Rule, scenarios: Iterable[Scenario]) -> list[Scenario]:
    """The scenarios that cite a rule."""
    return [scenario for scenario in scenarios if rule.id in scenario.tags]
