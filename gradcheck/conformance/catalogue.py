"""The rule catalogue: statements of documents that the bundled scenarios hold implementations to.

A file of ``specs/rules/`` has the rules of one document. A scenario cites a rule with a tag that is
the rule's id, so ``gradcheck run --bundled -t RULE`` runs the scenarios that assert it.
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
    """The section of the document that has it."""
    quote: str = Field(min_length=1)
    """The sentence itself, verbatim but for line breaks."""
    decided: str = ""
    """The decision where documents contradict one another, or the engine and the release differ."""


class Document(_Strict):
    """A file of the catalogue: the rules of one document."""

    document: str
    url: str = ""
    verified: str
    """Digest of the quotes when they were last looked up (tests/specs/quotes.py)."""
    rules: Annotated[tuple[Rule, ...], Strict(False)]

    @property
    def is_observation(self) -> bool:
        """Whether its rules were observed on a release, in place of being quoted from a page."""
        return not self.url


def load_catalogue() -> list[Document]:
    """Read the bundled catalogue, its files in the order of their names.

    Raises pydantic.ValidationError: a file does not follow the model.
    """
    # The C loader is ten times as fast; PyYAML has it where it was built with libyaml.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = []
    for file in sorted((bundled_specs() / "rules").glob("*.yaml")):
        data = yaml.load(file.read_text(encoding="utf-8"), Loader=loader)
        documents.append(Document.model_validate(data))
    return documents


def iterate_rules(documents: Iterable[Document]) -> Iterator[tuple[Rule, Document]]:
    """Yield every rule with its document."""
    for document in documents:
        for rule in document.rules:
            yield rule, document


def scenarios_citing(rule: Rule, scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Return the scenarios that cite a rule."""
    return [scenario for scenario in scenarios if rule.id in scenario.tags]
