"""Whether quotes stand in the documents, by hand: the documents are not part of this project.

    python tests/specs/quotes.py specs/rules/pylayer.yaml PyLayer_en.txt [FURTHER.txt …]
    python tests/specs/quotes.py specs/documents/apply.grad.yaml PyLayer_en.txt observed.md …

    python tests/specs/quotes.py --sentences PyLayer_en.txt static_pylayer_en.txt …

The first two print the quotes of a file of the rule catalogue, or of the scenarios of a spec, that none of the texts
has, blanks and line breaks apart, and the digest of all quotes of the file. `verified` in the catalogue, and for specs
``tests/specs/verified.yaml``, say which quotes were looked up in this way: none is changed afterwards without looking
it up again. A quote may leave words out where it has ``[...]``. The last prints the sentences of pages that ask for
something and that no rule of the catalogue quotes, and how many there are.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from gradcheck.conformance.catalogue import Document, load_catalogue
from gradcheck.spec.model import SpecFile
from gradcheck.spec.read import load


def digest(quotes: Iterable[str]) -> str:
    """Sixteen hexadecimal digits that stand for the quotes in their order."""
    return hashlib.sha256("\n".join(quotes).encode()).hexdigest()[:16]


def without_blanks(text: str) -> str:
    """A text as it is compared: pages and their saved texts differ in blanks, line breaks and prompts."""
    return re.sub(r"\s|>>>|^\.\.\.", "", text, flags=re.MULTILINE)


def quotes_of(spec: SpecFile) -> list[str]:
    """The quotes of a spec: those of its scenarios' sources, and the passages of rules that they mean, each once."""
    quotes: dict[str, None] = {}
    for scenario in spec.scenarios:
        if scenario.source and scenario.source.quote:
            quotes[scenario.source.quote] = None
        for rule in scenario.rules:
            quotes.update(dict.fromkeys({} if isinstance(rule, str) else rule.values()))
    return list(quotes)


def texts_of(document: Document) -> list[str]:
    """What a document of the catalogue has verbatim: the quotes of its rules, and its sentences."""
    quotes = [rule.quote for rule in document.rules if rule.quote]
    return [*quotes, *(sentence.quote for sentence in document.sentences)]


ASKS = re.compile(
    r"\b(must|should|shall|will|is to be|expected|always|keep|can not|can only|cannot|only|at most|at least|required"
    r"|needs? to|ensure|equal)\b"
    r"|必须|只能|不能|不支持|不可|不会|至少|需要遵守|需要返回|等于|(?<!对)应(?=为|当|该)",
    re.IGNORECASE,
)
"""What a sentence has that asks for something, in both languages of the pages."""
ENDS = re.compile(r"(?<=[.;!])\s+|(?<=。)|\n\s*\n|\n(?=\s*(?:\d+\.|•|--))")
PROGRAM = re.compile(r"#|print\(|@\w+$|ctx\.|assert |: 1\.$")
"""What only examples have, or what introduces a list of what is asked for."""


def asking(page: str) -> list[str]:
    """The sentences of a page that ask for something, programs left out."""
    found = [" ".join(one.split()) for one in ENDS.split(page)]
    return list(dict.fromkeys(one for one in found if ASKS.search(one) and not PROGRAM.search(one)))


def known_sentences(document: Document) -> set[str]:
    """The sentences that a document of the catalogue lists, without blanks."""
    return {without_blanks(sentence.quote) for sentence in document.sentences}


def unquoted(page: str) -> list[str]:
    """The sentences of a page that ask for something, and that no document of the catalogue lists."""
    known = set[str]().union(*map(known_sentences, load_catalogue()))
    return [sentence for sentence in asking(page) if without_blanks(sentence) not in known]


def sentences(pages: list[Path]) -> int:
    """Print what is asked for and neither cited nor listed, and how many sentences there are."""
    missing = 0
    for file in pages:
        page = file.read_text(encoding="utf-8")
        left = unquoted(page)
        missing += len(left)
        asked = len(asking(page))
        print(f"{file.name}: {asked - len(left)} of {asked} sentences that ask for something are cited or listed")
        print("".join(f"  {one}\n" for one in left), end="")
    return int(bool(missing))


def main(file: Path, texts: list[Path]) -> int:
    """Print what is not there, and the digest."""
    if file.name.endswith(".grad.yaml"):
        quotes = quotes_of(load([file])[0])
    else:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        quotes = texts_of(Document.model_validate(data))
    known = [without_blanks(text.read_text(encoding="utf-8")) for text in texts]
    parts = {quote: [without_blanks(part) for part in quote.split("[...]")] for quote in quotes}
    missing = [quote for quote in quotes if not any(all(part in text for part in parts[quote]) for text in known)]
    for quote in missing:
        print(f"not verbatim: {quote}")
    print(f"{len(quotes) - len(missing)} of {len(quotes)} quotes verbatim; verified: {digest(quotes)}")
    return int(bool(missing))


if __name__ == "__main__":
    if sys.argv[1] == "--sentences":
        sys.exit(sentences([Path(name) for name in sys.argv[2:]]))
    sys.exit(main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
