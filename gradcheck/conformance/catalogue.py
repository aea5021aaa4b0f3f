"""The rule catalogue: the rules that the bundled scenarios check implementations against.

A file in ``specs/rules/`` has the rules of one document, or the rules that no document states. A
scenario cites a rule with a tag that is the rule's id, so ``gradcheck run --bundled -t RULE`` runs
the scenarios that assert it. Ids are permanent: rules may be added, and the id of a withdrawn rule
is not used again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

from gradcheck.spec.model import ExpectationClass, Scenario, TagName
from gradcheck.support.resources import bundled_specs


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, validate_by_name=True)


class Rule(_Strict):
    """One statement, from a document or our own."""

    id: TagName
    class_: ExpectationClass = Field(alias="class")
    """The class of the rule: whose statement it is; by default the document's class."""
    says: str = Field(min_length=1)
    """The statement in our words."""
    section: str = ""
    """The section of the document with the statement; otherwise a number in docs/observed.md."""
    quote: str = ""
    """The sentence itself, verbatim except for line breaks; empty if there is none."""
    gloss: str = ""
    """The quote in English, if it is in another language."""
    against: str = ""
    """For a decision: the text or fact against it."""
    decided: str = ""
    """The decision, if documents contradict one another or the engine follows the release."""
    engine: str = ""
    """The engine's behaviour, if the document does not cover the misuse."""


class Sentence(_Strict):
    """A sentence of a document that requires something: the rules that assert it, or why there is
    none.
    """

    quote: str = Field(min_length=1)
    gloss: str = ""
    """The sentence in English, if it is in another language."""
    rules: Annotated[tuple[TagName, ...], Strict(False)] = ()
    reason: str = ""
    """Why no rule asserts it."""


class Document(_Strict):
    """A file of the catalogue: the rules of one document."""

    document: str
    url: str = ""
    class_: ExpectationClass = Field(alias="class")
    """The class of its rules, unless they have their own."""
    verified: str = ""
    """Digest of the quotes when they were last looked up (tests/specs/quotes.py)."""
    rules: Annotated[tuple[Rule, ...], Strict(False)] = ()
    sentences: Annotated[tuple[Sentence, ...], Strict(False)] = ()
    """Every sentence that requires something."""

    @model_validator(mode="before")
    @classmethod
    def _hand_class_on(cls, data: dict[str, Any]) -> dict[str, Any]:
        rules = [{"class": data.get("class"), **rule} for rule in data.get("rules", ())]
        return {**data, "rules": rules}


@functools.cache
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


def class_of(rule: Rule, scenario: Scenario) -> ExpectationClass:
    """Return the class of a scenario's expectation about a rule: whose statement it is.

    The scenario's own class counts only for the rules of documents; other rules have one class for
    all scenarios.
    """
    return (scenario.class_ or rule.class_) if rule.quote else rule.class_
