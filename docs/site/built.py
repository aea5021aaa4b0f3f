"""Faults of the built pages: mkdocs calls this after each build; a strict build fails if there are any.

mkdocs itself holds the links that are written in Markdown. Here the built HTML is read: text that was meant as Markdown
and was not understood, pages without content, and every link, anchor and picture, whoever made it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

RAW = {
    "a fence": r"```|~~~",
    "a backtick": r"(?<!`)`(?!`)",
    "bold": r"\*\*[^*]+\*\*",
    "a link": r"\]\(|\]\[",
    "a table": r"^\s*\|.*\|\s*$|\|\s*:?-{3,}",
    "an admonition": r"^\s*(!!!|\?\?\?)",
    "a heading": r"^\s*#{1,6} ",
    "a list": r"\n *([-*+]|\d+\.) ",
    "attributes": r"\{:? *[.#][\w-]+",
}
"""Markup that Markdown leaves in the text if it did not understand it."""
FENCE = r'(python|yaml|toml|json|console|sh|diff|text)( \w+="[^"\n]*")*\s*\n'
"""How a block of code begins that was taken for code within a line."""
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
CODE = {"code", "pre", "script", "style", "svg"}
"""Elements whose text is not prose."""
INLINE = {"a", "b", "code", "em", "i", "span", "strong"}
"""Elements that do not end a line of prose."""


class BuiltPage(HTMLParser):
    """The prose, the links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.prose: list[str] = [""]
        self.blocks = 0
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where the element leads, and what it is called."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.links += [given[name] for name in ("href", "src") if name in given]
        self.links += [one.split()[0] for one in given.get("srcset", "").split(",") if one.strip()]
        if tag not in VOID:
            self.open.append(tag)
        if "article" in self.open and tag in ("p", "li", "pre", "td", "dd"):
            self.blocks += 1
        if tag not in INLINE:
            self.prose.append("")  # text before a child and after it is not one line

    def handle_endtag(self, tag: str) -> None:
        """Leave the element, and those within it that end without saying so."""
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        """Text of the page itself, that is not code."""
        if "article" in self.open and not CODE & {*self.open}:
            self.prose[-1] += data
        elif "article" in self.open and "pre" not in self.open and re.match(FENCE, data):
            self.prose[-1] += f"```{data}"
        else:
            self.prose[-1] += "·"  # something stands there


def faults(pages: Mapping[str, str], files: set[str]) -> Iterator[str]:
    """Yield the faults of `pages` of HTML by path, in a site that has `files`, each as ``path: fault``."""
    read = {path: BuiltPage(text) for path, text in pages.items()}
    for path, page in read.items():
        for what, pattern in RAW.items():
            for found in (re.search(pattern, text, re.M) for text in page.prose):
                if found:
                    yield f"{path}: {what} that Markdown did not understand: {found.string.strip()[:80]!r}"
        if not page.blocks and path != "404.html":
            yield f"{path}: no content"
        for link in page.links:
            if problem := broken(link, path, read, files):
                yield f"{path}: {link}: {problem}"


def broken(link: str, path: str, pages: Mapping[str, BuiltPage], files: set[str]) -> str:
    """Why a link of the page at `path` leads nowhere within the site, or nothing."""
    to = urlsplit(link)
    if to.scheme or to.netloc:
        return ""
    start = PurePosixPath("/") if to.path.startswith("/") else PurePosixPath("/", path).parent
    parts: list[str] = []
    for part in (start / unquote(to.path).lstrip("/")).parts[1:]:
        if part == "..":
            if not parts:
                return "outside of the site"
            parts.pop()
        else:
            parts.append(part)
    target = "/".join(parts) if to.path else path
    found = next((one for one in (target, f"{target}/index.html".lstrip("/")) if one in files), None)
    if found is None:
        return "not there"
    if to.fragment and found in pages and unquote(to.fragment) not in pages[found].anchors:
        return "no such anchor"
    return ""


def of_site(folder: Path) -> Iterator[str]:
    """Yield the faults of the site in a folder."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    pages = {name: (folder / name).read_text(encoding="utf-8") for name in sorted(files) if name.endswith(".html")}
    yield from faults(pages, files)


def on_post_build(config: Any) -> None:
    """Warn of every fault, which ends a strict build; mkdocs calls this."""
    for fault in of_site(Path(config["site_dir"])):
        logging.getLogger("mkdocs.hooks.built").warning(fault)
