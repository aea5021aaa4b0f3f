"""The rule catalogue, and that the scenarios bite: the engine broken in many ways, each of which a scenario notices."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import engine_mutants
import pytest
import yaml
from engine_mutants import ENGINE, Mutation, mutations
from quotes import asking, digest, quotes_of, texts_of, unquoted

from gradcheck.commands.specs import bundled_scenarios, read_bundled
from gradcheck.conformance.catalogue import Document, iterate_rules, load_catalogue, scenarios_citing
from gradcheck.spec.model import Scenario
from gradcheck.support.resources import bundled_specs

SAMPLE = 8
"""Mutants tried here; ``-m long`` tries them all."""


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return bundled_scenarios()


def test_a_rule_has_an_id_of_its_own() -> None:
    counts = Counter(rule.id for rule, _ in iterate_rules(load_catalogue()))
    assert [id for id, count in counts.items() if count > 1] == []


PAGES = [document for document in load_catalogue() if document.url]


@pytest.mark.parametrize("document", PAGES, ids=lambda document: document.document)
def test_no_quote_was_changed_since_it_was_looked_up(document: Document) -> None:
    # tests/specs/quotes.py looks them up and prints the new digest
    assert document.verified == digest(texts_of(document))


SENTENCES = {
    "Guide to custom dynamic-graph operators (zh)": 11,
    "paddle.autograd.PyLayer": 9,
    "paddle.autograd.PyLayer (zh)": 7,
    "paddle.autograd.PyLayerContext": 9,
    "paddle.static.nn.static_pylayer": 5,
}
"""By page, the sentences that ask for something, as ``quotes.py --sentences`` counts them there."""


def test_every_sentence_of_the_pages_that_asks_for_something_is_listed() -> None:
    assert {page.document: len(page.sentences) for page in PAGES} == SENTENCES


@pytest.mark.parametrize("document", PAGES, ids=lambda document: document.document)
def test_a_listed_sentence_asks_for_something_and_its_rules_exist(document: Document) -> None:
    ids = {rule.id for rule, _ in iterate_rules(load_catalogue())}
    for sentence in document.sentences:
        assert len(asking(sentence.quote)) == 1, sentence.quote
        assert ids.issuperset(sentence.rules), sentence.quote
        assert unquoted(sentence.quote) == []


def test_what_is_quoted_in_chinese_is_said_in_english_as_well() -> None:
    chinese = re.compile(r"[\u4e00-\u9fff]")
    for document in PAGES:
        for text in [*document.rules, *document.sentences]:
            assert not chinese.search(text.quote) or text.gloss, text.quote


def test_a_decision_is_listed_with_both_texts() -> None:
    decided = [rule for rule, _ in iterate_rules(load_catalogue()) if rule.class_ == "decided"]
    assert len(decided) == 7
    assert all(rule.quote and rule.against and rule.decided for rule in decided)


def test_a_rule_of_a_page_has_a_quote_and_no_other_rule_has_one() -> None:
    rules = [*iterate_rules(load_catalogue())]
    assert [rule.id for rule, document in rules if bool(rule.quote) is not bool(document.url)] == []


def test_a_sentence_has_rules_that_assert_it_or_a_reason_why_none_does() -> None:
    sentences = [sentence for page in PAGES for sentence in page.sentences]
    assert [sentence.quote for sentence in sentences if bool(sentence.rules) is bool(sentence.reason)] == []


def test_no_id_is_a_number() -> None:
    assert [rule.id for rule, _ in iterate_rules(load_catalogue()) if re.search(r"-\d+$", rule.id)] == []


def test_no_quote_of_a_scenario_was_changed_since_it_was_looked_up() -> None:
    verified = yaml.safe_load(Path(__file__).with_name("verified.yaml").read_text(encoding="utf-8"))
    quotes = {spec.path: quotes_of(spec) for spec in read_bundled()}
    known = {str(Path(path).relative_to(bundled_specs())): digest(some) for path, some in quotes.items() if some}
    assert verified == known


def test_every_rule_has_a_scenario(scenarios: list[Scenario]) -> None:
    assert [rule.id for rule, _ in iterate_rules(load_catalogue()) if not scenarios_citing(rule, scenarios)] == []


def test_every_scenario_cites_a_rule(scenarios: list[Scenario]) -> None:
    ids = {rule.id for rule, _ in iterate_rules(load_catalogue())}
    assert [scenario.id for scenario in scenarios if ids.isdisjoint(scenario.tags)] == []


def test_what_a_scenario_cites_as_a_rule_is_in_the_catalogue(scenarios: list[Scenario]) -> None:
    ids = {rule.id for rule, _ in iterate_rules(load_catalogue())}
    cited = {name for s in scenarios for rule in s.rules for name in ([rule] if isinstance(rule, str) else rule)}
    assert cited - ids == set()


def test_every_rule_has_a_mutation_that_breaks_it() -> None:
    broken = {rule for mutation in mutations() for rule in mutation.breaks}
    assert {rule.id for rule, _ in iterate_rules(load_catalogue())} ^ broken == set()


def test_mutations_have_ids_of_their_own() -> None:
    counts = Counter(mutation.id for mutation in mutations())
    assert [id for id, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("mutation", mutations(), ids=lambda mutation: mutation.id)
def test_a_mutation_applies_to_the_engine_as_it_is(mutation: Mutation) -> None:
    file, numbers = mutation.lines(ENGINE)
    before = statements_at(ENGINE / file, numbers)
    assert meaning(before.replace(mutation.old, mutation.new)) != meaning(before)


@functools.cache
def meaning(text: str) -> str:
    """A text without its layout and comments; many mutations are of one function."""
    return ast.dump(ast.parse(text))


def statements_at(file: Path, numbers: range) -> str:
    """The text of the lines of a file, and of the statements of the module that they are in."""
    those = [lines for lines in statements(file) if lines[0] <= numbers[-1] and numbers[0] <= lines[-1]]
    first, last = min(lines[0] for lines in [*those, numbers]), max(lines[-1] for lines in [*those, numbers])
    return "".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[first - 1 : last])


@functools.cache
def statements(file: Path) -> list[range]:
    """The lines of each statement of a module: of its functions and classes, with their decorators."""
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    starts = [min([node, *getattr(node, "decorator_list", [])], key=lambda n: n.lineno).lineno for node in nodes]
    return [range(start, node.end_lineno + 1) for start, node in zip(starts, nodes, strict=True)]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The bench in a separate process, in which no engine is imported yet."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(Path(engine_mutants.__file__)), "--jobs", "2", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_a_sample_of_mutants_is_caught_by_scenarios_of_their_rules() -> None:
    done = bench("--sample", str(SAMPLE), "--own")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SAMPLE} of {SAMPLE} mutants caught" in done.stdout


@pytest.mark.long
def test_every_mutant_is_caught() -> None:
    done = bench("--survivors")
    assert done.returncode == 0, done.stdout + done.stderr


def test_sentences_that_ask_for_something_and_that_no_page_lists_are_found() -> None:
    page = (
        "It is fast. None can not be included in the returned result. Layers must be blue. x = f(y)  # must not count"
    )
    assert unquoted(page) == ["Layers must be blue."]
    assert asking("这是一个类。子类必须是蓝色。这个API只能调用一次。") == ["子类必须是蓝色。", "这个API只能调用一次。"]
