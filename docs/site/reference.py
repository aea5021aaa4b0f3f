"""The reference pages of the site, made from the one source of each: commands, format, codes, rules, Python."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from gradcheck.codes import CODES
from gradcheck.commands import main
from gradcheck.conformance.catalogue import iterate_rules, load_catalogue
from gradcheck.spec.model import json_schema

PROGRAMS = "specs/programs"
"""The folder of the programs that the page of the matrix links to."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those of `docs`; mkdocs calls this."""
    for name, page in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join(page())))
    for name, source in OUTSIDE.items():
        content = (Path(config.docs_dir).parent / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=content.replace("](docs/", "](../")))
    for program in sorted((Path(config.docs_dir).parent / PROGRAMS).glob("*.py")):
        files.append(File.generated(config, f"programs/{program.name}", content=program.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files at the root of the repository, which are pages of the site, and fences; mkdocs calls this.

    A block of code whose first line has options that the site does not know would not be rendered as code.
    """
    if page.file.src_uri == "matrix.md":
        page.meta["hide"] = ["toc"]  # its tables need the room
        markdown = markdown.replace(f"](../{PROGRAMS}/", "](programs/")
    markdown = re.sub(FOR_TESTS, r"\1", markdown, flags=re.M)
    for name, source in OUTSIDE.items():
        markdown = markdown.replace(f"]({source}", f"]({name}").replace(f"](../{source}", f"]({name}")
    return markdown.replace("](../", "](") if page.file.src_uri in OUTSIDE else markdown


def commands() -> Iterator[str]:
    """Every command with its help and options, from click."""
    yield "# Commands"
    with click.Context(main, info_name="gradcheck") as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            assert command is not None
            yield from of_command(command, f"gradcheck {name}", context)


def of_command(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    """One command, and those below it."""
    context = click.Context(command, info_name=name.split()[-1], parent=parent)
    arguments = " ".join(command.collect_usage_pieces(context))
    yield from ("", f"## {name}", "", f"```text\n{name} {arguments}\n```", "", paragraphs(command.help or ""), "")
    records = [
        record for option in command.get_params(context) if (record := option.get_help_record(context)) and record[1]
    ]
    yield from table(("option", "meaning"), ((code(option), text) for option, text in records))
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from of_command(found, f"{name} {below}", context)


def keys() -> Iterator[str]:
    """Every key of a spec file, from the JSON Schema that editors read."""
    schema = json_schema()
    yield from (
        "# Keys of a spec file",
        "",
        "The output of `gradcheck schema` as tables. [The format](../scenarios.md) explains it.",
    )
    models = {name: model for name, model in schema["$defs"].items() if "properties" in model}
    for name, model in {"A spec file": schema, **models}.items():
        yield from ("", f"## {name}", "", escaped(model.get("description", "")), "")
        needed = model.get("required", [])
        rows = (
            (code(key), kind(value, models), "yes" if key in needed else "", escaped(value.get("description", "")))
            for key, value in model["properties"].items()
        )
        yield from table(("key", "value", "needed", "meaning"), rows)


def kind(value: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    """The type of a value, in words; models have a section of their own."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if name in models else name
    if "const" in value:
        return code(str(value["const"]))
    if "enum" in value:
        return ", ".join(code(str(one)) for one in value["enum"])
    of = value.get("anyOf") or value.get("oneOf")
    if of:
        return " or ".join(dict.fromkeys(kind(one, models) for one in of if one.get("type") != "null"))
    if value.get("type") == "array":
        return f"list of {kind(value.get('items', {}), models)}"
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"name → {kind(value['additionalProperties'], models)}"
    return str(value.get("type", "anything"))


def codes() -> Iterator[str]:
    """Every diagnosis."""
    yield from ("# Diagnosis codes", "", "As `gradcheck explain CODE` shows them.")
    for name, row in CODES.items():
        yield from (
            "",
            f"## {name}: {row.title}",
            "",
            escaped(row.cause),
            "",
            f"- **How to tell**: {escaped(row.tell)}",
        )
        yield from (f"- **The fix**: {escaped(row.fix)}", "", f"```text\n{row.example}\n```")


def rules() -> Iterator[str]:
    """Every rule of the documents."""
    yield from (
        "# Rules of the documents",
        "",
        "As `gradcheck list rules` lists them; `gradcheck run --bundled -t RULE` runs what asserts one.",
    )
    of: dict[str, list[tuple[str, ...]]] = {}
    for rule, document in iterate_rules(load_catalogue()):
        quote = f"“{escaped(rule.quote)}”" if rule.quote else ""
        row = (code(rule.id), escaped(rule.says), rule.class_, quote, escaped(rule.decided))
        of.setdefault(document.document, []).append(row)
    for document, rows in of.items():
        yield from (
            "",
            f"## {document}",
            "",
            *table(("rule", "what it says", "class", "the document", "decided"), rows),
        )


def python() -> Iterator[str]:
    """The names of the package."""
    yield from ("# In Python", "", "`import gradcheck` gives these names.")
    for name in ("api.check", "api.assert_gradients", "api.GradientMismatch", "case.user_code.engine"):
        yield from ("", f"::: gradcheck.{name}")
    yield from (
        "",
        "## What a check returns",
        "",
        "::: gradcheck.report.check_result.CheckResult",
        "::: gradcheck.result.Diagnosis",
        "",
        "::: gradcheck.result.Status",
    )


def table(head: tuple[str, ...], rows: Any) -> Iterator[str]:
    """A table in Markdown, where there are rows."""
    lines = ["| " + " | ".join(cell.replace("|", "&#124;").replace("\n", " ") for cell in row) + " |" for row in rows]
    if lines:
        yield from (f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines, "")


def code(text: str) -> str:
    """Text as code, also in a table."""
    return f"<code>{as_it_is(html.escape(text), '|[*_`')}</code>"


def escaped(text: str) -> str:
    """Text in which nothing is read as HTML or a reference; what stands between backticks stays."""
    parts = text.replace("``", "`").split("`")
    for index in range(0, len(parts), 2):
        parts[index] = as_it_is(parts[index], "<[*_")
    return "`".join(parts)


def as_it_is(text: str, marks: str) -> str:
    """Text of which Markdown reads none of the marks."""
    return "".join(f"&#{ord(one)};" if one in marks else one for one in text)


def paragraphs(text: str) -> str:
    """Help as click has it: lines of a paragraph belong together."""
    return "\n\n".join(escaped(" ".join(part.split())) for part in text.replace("\b", "").split("\n\n"))


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands, "format": keys, "codes": codes, "rules": rules, "api": python,
}  # fmt: skip
"""Page → what makes it."""
OUTSIDE = {"security.md": "SECURITY.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Page → the file at the root of the repository that it is."""
FOR_TESTS = r'^( *```.*) (?:replaces|skip)="[^"]*"'
"""Options in a block's first line that only `tests/docs/pages.py` reads."""
