"""The bundled scenarios: which there must be, and that each cites what it is held against."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cases import cases_of

from gradcheck.case.execute import execute
from gradcheck.commands.specs import bundled_scenarios
from gradcheck.conformance.catalogue import class_of, iterate_rules, load_catalogue
from gradcheck.result import Status
from gradcheck.spec.model import Scenario
from gradcheck.support.resources import bundled_files, bundled_specs

CENSUS = {
    "apply": """tanh-float64-mean kwargs-function-argument default-keyword-function mixed-outputs-passthrough
        same-tensor-twice-sums list-of-tensors-input without-backward-leaves-grad-none kwargs-call-order nested-apply
        instance-apply no-grad-scope namedtuple-output""",
    "backward-rules": """arity-matches-outputs skips-non-tensor-outputs tuple-return list-return none-for-stop-gradient
        none-for-needed-raises not-run-all-stop-gradient accumulates-over-applies with-initial-gradient
        grad-unused-none twice-with-retain-graph twice-without-raises two-losses-share-output wrong-shape-raises
        user-exception-keeps-type hook-on-output""",
    "context": """save-roundtrip saved-tensor-none-when-empty attribute-carries-function isolated-between-applies
        save-called-twice-raises save-outside-forward-raises saved-tensors-hooks-pack-unpack grad-dtype-consistent""",
    "materialize": "default-zeros false-none zeros-shape-dtype second-output-only integer-output non-bool-raises",
    "non-differentiable": """doc-example-grads output-stop-gradient-true slot-still-passed
        sole-output-backward-not-called partial-grad""",
    "inplace": """not-inplace-returns-new-tensor input-autograd-kept two-steps-doc-loop identity-leaf-raises
        identity-nonleaf-ok version-mismatch-raises""",
    "error": """forward-no-tensor-output forward-missing backward-missing too-few-grads too-many-grads
        non-tensor-return extra-none-for-non-tensor""",
    "static": """doc-example-values doc-example-print-program forward-only needs-stop-gradient two-in-two-out
        nested-structure grad-count-mismatch-raises dtype-mismatch-raises in-dygraph-raises batch-none-two-sizes chained
        cond-inside second-gradients feed-missing-raises""",
    "numerics": """true-derivative-accepted doc-backward-not-derivative static-doc-not-derivative
        one-input-of-many-wrong dead-element kink-relu jump-floor float32-tanh tiny-scale huge-scale noisy-forward""",
    "double-grad": """cube-second-derivative tanh-second sin-cos-fourth-order gradient-penalty
        nested-pylayer-in-backward first-only-detached""",
}
DOCUMENTED_EXAMPLES = 21
"""4 + 4 of PyLayer (English, Chinese), 6 of PyLayerContext, 6 of the guide, 1 of static_pylayer."""


README = (bundled_specs() / "README.md").read_text(encoding="utf-8")
RULES = {rule.id: rule for rule, _ in iterate_rules(load_catalogue())}
FOLDERS = {
    "documents": {"sentence", "decided", "precondition", "wording"},
    "recorded": {"recorded"},
    "design": {"design"},
    "checker": {"verdict"},
}
"""By folder, the classes of which one is asserted by each of its scenarios."""


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return bundled_scenarios()


@pytest.mark.parametrize(("group", "names"), CENSUS.items())
def test_every_scenario_of_the_census_is_there(scenarios: list[Scenario], group: str, names: str) -> None:
    ids = {scenario.id for scenario in scenarios}
    assert {f"{group}-{name}" for name in names.split()} - ids == set()


def test_every_example_of_the_documents_is_there_as_a_program(scenarios: list[Scenario]) -> None:
    programs = [s for s in scenarios if "document" in s.tags and s.script is not None]
    assert len(programs) == DOCUMENTED_EXAMPLES


def test_every_scenario_has_a_title_and_says_what_it_is_held_against(scenarios: list[Scenario]) -> None:
    assert [s.id for s in scenarios if not s.title or not (s.source or s.rules)] == []


def test_every_program_states_what_must_hold_after_it(scenarios: list[Scenario]) -> None:
    silent = [s.id for s in scenarios if s.script is not None and not (s.expect.values or s.expect.raises)]
    assert silent == []


def test_every_layer_states_what_its_gradient_is_or_what_it_raises(scenarios: list[Scenario]) -> None:
    silent = [
        s.id
        for s in scenarios
        if s.script is None
        and s.expect.gradient == "unchecked"
        and not (s.expect.raises or s.expect.calls.backward is not None)
    ]
    assert silent == []


def test_documented_backwards_that_are_not_the_derivative_say_so(scenarios: list[Scenario]) -> None:
    differs = {s.id for s in scenarios if s.expect.gradient == "differs" and "document" in s.tags}
    assert differs == {
        "document-mark-not-inplace-is-not-the-derivative",
        "document-mark-non-differentiable-is-not-the-derivative",
        "document-set-materialize-grads-is-not-the-derivative",
        "numerics-static-doc-not-derivative",
    }


def test_what_releases_do_is_outside_of_the_suite(scenarios: list[Scenario]) -> None:
    assert [s.id for s in scenarios if s.backends] == []


class TestTheFolders:
    """What documents say, what a release does, what the engine does and what the checker finds are apart."""

    def test_each_scenario_asserts_what_its_folder_is_for(self, scenarios: list[Scenario]) -> None:
        strange = []
        for scenario in scenarios:
            folder = Path(scenario.path).parent.name
            classes = {class_of(RULES[tag], scenario) for tag in scenario.tags if tag in RULES}
            if classes.isdisjoint(FOLDERS[folder]):
                strange.append((scenario.id, folder, classes))
        assert strange == []

    def test_what_no_page_says_has_the_class_of_its_folder_alone(self, scenarios: list[Scenario]) -> None:
        for scenario in scenarios:
            folder = Path(scenario.path).parent.name
            cited = {RULES[tag].class_ for tag in scenario.tags if tag in RULES}
            if folder in ("design", "checker"):
                assert cited == FOLDERS[folder], scenario.id

    def test_the_readme_lists_each_file(self) -> None:
        files = {f"{file.parent.name}/{file.name.partition('.')[0]}" for file in bundled_files()}
        assert set(re.findall(r"^\| .*?\|", README, re.MULTILINE)) >= {"| file |"}
        assert {
            name
            for line in README.splitlines()
            if line.startswith("| `")
            for name in re.findall(r"`(\w+/[\w-]+)`", line)
        } == files

    def test_the_readmes_scenario_is_one(self, tmp_path: Path) -> None:
        [text] = re.findall(r"^```yaml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
        (case,) = cases_of(text, path=str(tmp_path / "own.grad.yaml"))
        assert execute(case).status is Status.PASS
