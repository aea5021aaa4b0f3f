"""Whether the quotes of the rule catalogue stand in the documents, by hand: the documents are not part of this project.

    python tests/specs/quotes.py specs/rules/pylayer.yaml PyLayer_en.txt [FURTHER.txt …]

Prints the quotes that none of the texts has, blanks and line breaks apart, and the digest of all quotes of the file.
Its `verified` says which quotes were looked up in this way: none is changed afterwards without looking it up again.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml


def digest(quotes: Iterable[str]) -> str:
    """Sixteen hexadecimal digits that stand for the quotes in their order."""
    return hashlib.sha256("\n".join(quotes).encode()).hexdigest()[:16]


def without_blanks(text: str) -> str:
    """A text as it is compared: pages and their saved texts differ in blanks, line breaks and prompts."""
    return re.sub(r"\s|>>>|^\.\.\.", "", text, flags=re.MULTILINE)


def main(catalogue: Path, texts: list[Path]) -> int:
    """Print what is not there, and the digest."""
    quotes = [rule["quote"] for rule in yaml.safe_load(catalogue.read_text(encoding="utf-8"))["rules"]]
    known = [without_blanks(text.read_text(encoding="utf-8")) for text in texts]
    missing = [quote for quote in quotes if not any(without_blanks(quote) in text for text in known)]
    for quote in missing:
        print(f"not verbatim: {quote}")
    print(f"{len(quotes) - len(missing)} of {len(quotes)} quotes verbatim; verified: {digest(quotes)}")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
