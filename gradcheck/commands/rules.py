"""``gradcheck rules``, and what ``gradcheck explain`` says of rules and scenarios, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import click

from gradcheck.codes import CODES
from gradcheck.commands.specs import find_specs, id_at, place_in_file, read_bundled, read_or_exit, scenario_of
from gradcheck.matrix.catalogue import Document, Rule, all_rules, catalogue, citing
from gradcheck.spec.model import Expect, Raises, Regex, Scenario, Tolerance, Warns
from gradcheck.support.display_paths import count, shown_path
from gradcheck.support.escape import one_line, safe
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError


@click.command("rules")
@click.argument("names", nargs=-1, metavar="[RULE]...")
@click.option("--uncovered", is_flag=True, help="Only rules that no scenario cites, and scenarios that cite none.")
def rules(names: tuple[str, ...], uncovered: bool) -> None:
    """List the rules of the documents, each with the bundled scenarios that hold implementations to it.

    With names, those rules in full: statement, quote, what was decided, and the scenarios. `gradcheck run --bundled
    -t RULE` runs them. With --uncovered the exit status is 1 if there is anything to print.
    """
    known = {rule.id: (rule, document) for rule, document in all_rules(catalogue())}
    scenarios = [scenario for spec in read_bundled() for scenario in spec.scenarios]
    for name in names:
        if name not in known:
            raise UserError(f"there is no rule {name!r}; {hint(name, known, '`gradcheck rules` lists them')}")
    if uncovered:
        lines = list(gaps(known.values(), scenarios))
        click.echo("\n".join(lines), nl=bool(lines))
        raise SystemExit(int(bool(lines)))
    if names:
        click.echo("\n\n".join("\n".join(full(*known[name], scenarios)) for name in names))
        return
    width = max(map(len, known))
    for rule, document in known.values():
        number = count(len(citing(rule, scenarios)), "scenario")
        click.echo(f"{rule.id:<{width}}  {rule.says}  [{document.document}]  {number}")


def full(rule: Rule, document: Document, scenarios: Sequence[Scenario]) -> Iterator[str]:
    """A rule with all there is to say about it."""
    yield f"{rule.id}: {rule.says}"
    yield f"  {document.document}, {rule.section}: “{rule.quote}”"
    if document.url:
        yield f"  {document.url}"
    if rule.decided:
        yield f"  decided: {rule.decided}"
    for scenario in citing(rule, scenarios):
        yield f"  {scenario.id}  {scenario.title or ''}"


def gaps(known: Iterable[tuple[Rule, Document]], scenarios: Sequence[Scenario]) -> Iterator[str]:
    """What is missing: a line for each rule that no scenario cites, and for each scenario that cites none."""
    known = list(known)
    for rule, document in known:
        if not citing(rule, scenarios):
            yield f"{rule.id}: no scenario cites it  [{document.document}]"
    ids = {rule.id for rule, _ in known}
    for scenario in scenarios:
        if ids.isdisjoint(scenario.tags):
            yield f"{scenario.id}: cites no rule"


# ---------------------------------------------------------------------------------------- explained
GRADIENT = {
    "matches": "backward gives the derivative",
    "differs": "backward does not give the derivative, and is found out",
    "straight-through": "backward passes the cotangent on unchanged",
    "zero": "backward gives zeros",
}


def explain_all(names: Sequence[str]) -> dict[str, str]:
    """The text for each name of a scenario or rule, of the project's or the bundled specs."""
    found = find_specs(())
    bundled = [scenario for spec in read_bundled() for scenario in spec.scenarios]
    own = [scenario for spec in read_or_exit(*found) for scenario in spec.scenarios]
    scenarios = {scenario.id: scenario for scenario in [*bundled, *own]}
    rules = {rule.id: (rule, document) for rule, document in all_rules(catalogue())}
    texts = {}
    for name in names:
        id = scenario_of(name)
        if (place := place_in_file(name)) is not None:
            specs = read_or_exit(*find_specs([place[0]]))
            id = scenario_of(id_at(*place, specs))
            scenarios |= {scenario.id: scenario for spec in specs for scenario in spec.scenarios}
        if name in rules:
            texts[name] = "\n".join(full(*rules[name], bundled))
        elif id in scenarios:
            cited = [f"{rules[tag][0].id}: {rules[tag][0].says}" for tag in scenarios[id].tags if tag in rules]
            texts[name] = "\n".join([*about(scenarios[id]), *(f"  rule {line}" for line in cited)])
        else:
            near = hint(name, [*scenarios, *rules], "`gradcheck explain`, `list` and `rules` show what there is")
            if digits := re.fullmatch(r"(?:GC)?([0-9OIL]{1,4})", name.upper()):
                code = "GC" + digits[1].translate(str.maketrans("OIL", "011"))
                near = f"did you mean {code}?" if code in CODES else f"the codes are {min(CODES)} to {max(CODES)}"
                near += "; `gradcheck explain` lists them"
            raise UserError(f"there is no code, scenario or rule {name!r}; {near}")
    return texts


def about(scenario: Scenario) -> Iterator[str]:
    """A scenario: where it stands, what it is held against, what must hold, and what is different where."""
    yield f"{scenario.id}: {one_line(scenario.title)}" if scenario.title else scenario.id
    yield f"  {shown_path(scenario.path)}:{scenario.line}"
    source = scenario.source
    if source is not None:
        said = ", ".join(one_line(part) for part in (source.document, source.section) if part)
        yield f"  {said}" + (f": “{one_line(source.quote)}”" if source.quote else "")
        if source.url:
            yield f"  {safe(source.url)}"
    yield from (f"  holds: {safe(line)}" for line in statements(scenario.expect))
    for backend in scenario.backends:
        for entry in scenario.entries_of(backend):
            where = f"{backend} {entry.versions or ''}".rstrip()
            if entry.skip is not None:
                yield f"  on {where}: not run: {one_line(entry.skip.reason)}"
            if entry.xfail is not None:
                yield f"  on {where}: expected to fail: {one_line(entry.xfail.reason)}"
            if entry.expect is not None:
                yield from (f"  on {where}: {safe(line)}" for line in statements(entry.expect))
            if entry.observed is not None:
                yield f"  on {where}, in place of that: {one_line(entry.why)}".rstrip(": ")
                yield from (f"    {safe(line)}" for line in statements(entry.observed))


def statements(expect: Expect) -> Iterator[str]:
    """What must hold, a line for each."""
    if expect.gradient in GRADIENT:
        second = ", and the gradient's own derivative is right" if expect.order == 2 else ""
        found = f" ({CODES[expect.differs.code].title})" if expect.differs and expect.differs.code else ""
        yield f"{GRADIENT[expect.gradient]}{found}{second}"
    for name, grads in expect.grads.items():
        yield f"the gradient of {name} is {grads}" if grads is not None else f"{name} has no gradient"
    for name, times in (("forward", expect.calls.forward), ("backward", expect.calls.backward)):
        if times is not None:
            yield f"{name} runs {count(times, 'time')}"
    if expect.raises is not None:
        when = "" if expect.raises.phase == "any" else f" in {expect.raises.phase}"
        yield f"it ends with {named(expect.raises)}{when}"
    if expect.warns is not None:
        yield f"it warns with {named(expect.warns)}"
    for expression, value in expect.values.items():
        yield f"{one_line(expression)} is {value.value if isinstance(value, Tolerance) else value}"


def named(one: Raises | Warns) -> str:
    """A class, and what its message must have."""
    if one.message is None:
        return one.type
    message = f"/{one.message.re}/" if isinstance(one.message, Regex) else f"“{one.message}”"
    return f"{one.type} ({one_line(message)})"
