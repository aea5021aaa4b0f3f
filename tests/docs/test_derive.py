"""The page of derived backwards is what is derived."""

from __future__ import annotations

import subprocess
import sys

from pages import ROOT

SCRIPT = ROOT / "docs/examples/derive/page.py"


def test_the_page_has_what_is_derived_now() -> None:
    code = f"import runpy; print(runpy.run_path({str(SCRIPT)!r})['page'](), end='')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    shown = (ROOT / "docs/derive.md").read_text(encoding="utf-8")
    assert shown == done.stdout, "write it anew: python docs/examples/derive/page.py"
