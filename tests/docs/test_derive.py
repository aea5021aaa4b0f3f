"""The page of derived backwards is what is derived."""

from __future__ import annotations

from pages import ROOT
from warm import python

SCRIPT = ROOT / "docs/examples/derive/page.py"


def test_the_page_has_what_is_derived_now() -> None:
    code = f"import runpy; print(runpy.run_path({str(SCRIPT)!r})['page'](), end='')"
    done = python("-c", code, folder=ROOT)
    assert done.returncode == 0, done.stderr
    shown = (ROOT / "docs/derive.md").read_text(encoding="utf-8")
    assert shown == done.stdout, "write it anew: python docs/examples/derive/page.py"
