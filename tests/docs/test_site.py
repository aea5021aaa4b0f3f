"""The site as its readers get it: what mkdocs builds has no fault, and each kind of fault is noticed.

`docs/site/built.py` looks at every page after each build, and a strict build fails by what it finds: so does that of
`.ci/run`, which installs mkdocs. Here the whole site is built only where mkdocs is installed already.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

import built  # noqa: E402

with_mkdocs = pytest.mark.skipif(
    find_spec("mkdocs") is None, reason='not installed: mkdocs (pip install -e ".[docs]"); .ci/run builds the site'
)


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", site],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@with_mkdocs
def test_the_site_is_built_without_a_fault(tmp_path: Path) -> None:
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    written = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {"index.html", *(f"{name}/index.html" for name in written)} <= pages


@with_mkdocs
def test_a_fault_ends_a_strict_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text('# A page\n\n```python nobody="knows this"\nx = 1\n```\n', encoding="utf-8")
    hook = ROOT / "docs/site/built.py"
    config = f"site_name: small\nhooks: [{hook}]\ntheme: material\nmarkdown_extensions: [pymdownx.superfences]\n"
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "index.html: a fence that Markdown did not understand" in done.stderr


def faults(content: str) -> list[str]:
    """Of a page with this content, in a site with one more page and a picture."""
    pages = {"a/index.html": f"<body><article><h1 id='top'>A</h1>{content}</article></body>"}
    pages["b/index.html"] = "<body><article><p id='here'>B</p></article></body>"
    return list(built.faults(pages, {*pages, "pictures/one.svg"}))


@pytest.mark.parametrize(
    "content",
    [
        "<p>```python title='x' y = 1 ```</p>",
        '<p><code>python replaces="x"\ny = 1</code></p>',
        "<p>a `word</p>",
        "<p>this is **not bold**</p>",
        "<p>nor **is <code>this</code> one**</p>",
        "<p>a [link](elsewhere.md)</p>",
        "<p>| a | b |\n|---|---|\n| 1 | 2 |</p>",
        "<p>!!! note\n    that stays as it is</p>",
        "<p>text\n## A heading</p>",
        "<p>text\n- <code>no</code> list</p>",
        '<p>text {: .class}</p>',
        "",
        "<p><a href='../c/'>no page</a></p>",
        "<p><a href='../b/#there'>no anchor</a></p>",
        "<p><a href='#nowhere'>no anchor here</a></p>",
        "<p><a href='../../b/'>outside</a></p>",
        "<p><img src='../pictures/two.svg'></p>",
        "<p><picture><source srcset='../pictures/two.svg 2x'><img src='../pictures/one.svg'></picture></p>",
    ],
)  # fmt: skip
def test_a_fault_is_noticed(content: str) -> None:
    assert len(faults(content)) == 1


@pytest.mark.parametrize(
    "content",
    [
        "<pre><code>```python\nx = 1  # **bold** `tick` [a](b)\n```</code></pre>",
        "<p><code>python -m\npytest</code> on two lines</p><pre><code>python x\ny</code></pre>",
        "<p>2**32 and <code>**kwargs</code>, <code>**kwargs</code></p>",
        "<p><a href='../b/#here'>there</a>, <a href='#top'>up</a>, <a href='https://example.org/x'>out</a></p>",
        "<p>a\n<code>b</code> - c</p><ul><li>a</li></ul><pre>- b</pre>",
        "<p><a href='/b/'>from the root</a></p>",
        "<p><picture><source srcset='../pictures/one.svg'><img src='/pictures/one.svg'></picture></p>",
    ],
)
def test_what_is_no_fault_is_not_told(content: str) -> None:
    assert not faults(content)
