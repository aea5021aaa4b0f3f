"""The pictures of the documentation, drawn from real runs: python docs/pictures/draw.py

- steps.svg: the error and the error bound of the differences of tanh at every step, and the step that is taken
- kink.svg: the slopes of relu and of tanh on both sides of 0, at every step
- wrong.svg, wrong-narrow.svg: the screen of README's wrong backward, on a wide terminal and as narrow as a phone
- check.svg, check-narrow.svg: the screen of the tutorial's wrong layer
- page.png, page-phone.png, page-print.png: the HTML report of a run with failures, on a desktop, a phone and on paper
- home.png: the home page of the site

PNG files need Chromium and Playwright, the home page mkdocs as well (`pip install -e ".[docs]"`).
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from charts import text

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine"), str(ROOT / "tests" / "docs")]

from gradcheck.checking.differences import (  # noqa: E402
    RATIO,
    USUAL,
    Line,
    derivative_of,
)

HERE = Path(__file__).parent
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 360, 70, 52, 34
BLUE, RED, GREY = "#1565c0", "#c62828", "#777777"

Points = Sequence[tuple[float, float]]


class Plot:
    """A plot as SVG: across are the exponents of the steps, upward 0 to 1, to which the caller scales."""

    def __init__(self, title: str, across: str, up: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
            ' font-family="sans-serif" font-size="13">',
            f"<title>{title}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            text(LEFT, 20, title, weight="bold"),
            text((LEFT + WIDTH) / 2, HEIGHT - 10, across, anchor="middle"),
            f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{up}</text>',
            f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - 20}" fill="none" stroke="{GREY}"/>',
        ]
        for k in USUAL:
            if k % 3 == 0:
                self.parts.append(
                    text(self.x(k), HEIGHT - BOTTOM + 18, f"4<tspan dy='-5' font-size='10'>{k}</tspan>", "middle")
                )

    def x(self, k: float) -> float:
        """The place of a step, across."""
        return LEFT + 20 + (k - USUAL[0]) / (USUAL[-1] - USUAL[0]) * (WIDTH - LEFT - 60)

    def y(self, share: float) -> float:
        """The place of a share of the height."""
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP - 10)

    def mark(self, share: float, label: str) -> None:
        """A label on the upright axis."""
        self.parts.append(text(LEFT - 6, self.y(share) + 4, label, "end"))

    def line(self, points: Points, colour: str, label: str, dashed: bool = False) -> None:
        """A line with its name at its last point."""
        shown = [(self.x(k), self.y(share)) for k, share in points if 0 <= share <= 1]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in shown)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in shown if not dashed]
        x, y = shown[0]
        self.parts.append(text(x + 4, y - 9, label, colour=colour))

    def write(self, name: str) -> None:
        """Into the folder of this file."""
        (HERE / name).write_text("\n".join([*self.parts, "</svg>"]) + "\n", encoding="utf-8")


def scan(f: Callable[[np.ndarray], np.ndarray], at: float) -> Line:
    """A function of one number looked at with every usual step, 4^-16 to 1/4."""
    x = np.array([at])
    looked = Line(lambda v: f(v[0]), [x], [np.ones(1)], f(x))
    looked.extend(USUAL)
    return looked


def steps() -> None:
    """The estimate of tanh's derivative at 0.5 from every step, with the true error."""
    looked, truth = scan(np.tanh, 0.5), 1 - math.tanh(0.5) ** 2
    noise = np.array([np.finfo(float).eps * math.tanh(0.5)])
    found = derivative_of(looked, noise)
    centrals = {
        k: (ahead.change[0] - behind.change[0]) / (2 * RATIO**k) for k, (ahead, behind) in looked.samples.items()
    }
    pairs = [(k, (RATIO**2 * centrals[k] - centrals[k + 1]) / (RATIO**2 - 1)) for k in sorted(centrals)[:-1]]
    plot = Plot("The derivative of tanh at 0.5, from every step", "step h", "error, and noise / h (powers of 10)")
    for exponent in range(-15, 1, 3):
        plot.mark(share(10.0**exponent), f"10<tspan dy='-5' font-size='10'>{exponent}</tspan>")
    bounds = [(k, share(noise[0] / RATIO**k)) for k, _ in pairs]
    plot.line(bounds, GREY, "noise / h: the error bound of that step", dashed=True)
    plot.line([(k, share(abs(value - truth))) for k, value in pairs], BLUE, "")
    taken, bound = int(found.step[0]), float(found.both.bar[0])
    plot.parts += [
        f'<circle cx="{plot.x(taken):.1f}" cy="{plot.y(share(bound)):.1f}" r="6" fill="none" stroke="{RED}"/>',
        text(plot.x(taken), plot.y(share(bound)) - 34, f"taken: ± {bound:.0e}", "middle", colour=RED),
        text(plot.x(-15), plot.y(share(1e-11)), "error of that step", colour=BLUE),
    ]
    plot.write("steps.svg")


def share(error: float) -> float:
    """10^-16 to 1 as 0 to 1."""
    return (math.log10(max(error, 1e-16)) + 16) / 16


def kink() -> None:
    """The one-sided slopes of relu and tanh at 0."""
    plot = Plot("Slopes at 0, on the left and on the right", "step h", "slope")
    for value in (0.0, 0.5, 1.0):
        plot.mark(0.1 + 0.8 * value, f"{value:g}")
    for f, colour, name in ((lambda v: np.maximum(v, 0), RED, "relu"), (np.tanh, BLUE, "tanh")):
        for side, sign in (("right", 0), ("left", 1)):
            slopes = [
                (k, 0.1 + 0.8 * abs(samples[sign].change[0]) / RATIO**k)
                for k, samples in sorted(scan(f, 0.0).samples.items())
            ]
            shown = f"{name}, {side}" if name == "relu" else ("tanh, both sides" if sign else "")
            if name == "tanh":
                slopes = [(k, y - 0.015) for k, y in slopes]  # beside the line of relu, not below it
            plot.line(slopes, colour, "" if name == "tanh" else shown, dashed=name == "tanh")
    plot.parts.append(text(plot.x(-12), plot.y(0.8), "tanh, both sides: they agree, a derivative", colour=BLUE))
    plot.parts.append(text(plot.x(-12), plot.y(0.5), "relu: disjoint at every step, a kink", colour=RED))
    plot.write("kink.svg")


def example(page: str, title: str) -> str:
    """The text of a page's block with a title."""
    from pages import blocks

    return next(block for block in blocks(page) if block.options.get("title") == title).text


def printed(folder: Path, *arguments: str, columns: int = 100) -> str:
    """The output of a gradcheck command in a folder."""
    return subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *arguments],
        cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": str(columns)},
    ).stdout  # fmt: skip


def report(folder: Path) -> Path:
    """The HTML report of README's example in two precisions, next to scenarios that pass."""
    (folder / "specs").mkdir()
    for name in ("apply", "backward-rules", "context"):
        shutil.copy(ROOT / "specs" / "documents" / f"{name}.grad.yaml", folder / "specs")
    more = "    matrix: {dtype: [float32, float64]}\n    tags: [example]\n"
    (folder / "own.grad.yaml").write_text(example("README.md", "own.grad.yaml") + more, encoding="utf-8")
    printed(folder, "run", "own.grad.yaml", "--allow-code", "specs", "--report", "html:page.html")
    return folder / "page.html"


def site(folder: Path) -> Path | None:
    """The home page of the site, built in a folder; None without mkdocs."""
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, check=False, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    return folder / "index.html" if built.returncode == 0 else None


PHONE, DESKTOP = (390, 844), (1280, 860)


def photographs() -> None:
    """Pictures of pages, by Chromium."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def take(page: Path, name: str, size: tuple[int, int], media: Literal["print", "screen"] = "screen") -> None:
            shown = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
            shown.emulate_media(media=media)
            shown.goto(page.as_uri())
            shown.screenshot(path=HERE / name)

        page = report(Path(folder))
        take(page, "page.png", (1024, 860))
        take(page, "page-phone.png", PHONE)
        take(page, "page-print.png", (794, 1123), "print")  # A4 at 96 dots an inch
        if home := site(Path(folder) / "site"):
            take(home, "home.png", DESKTOP)


def screen(name: str, columns: int, folder: Path, *arguments: str) -> None:
    """The screen of a gradcheck command in a folder, on a terminal of some columns."""
    from rich.console import Console
    from rich.text import Text

    shown = printed(folder, *arguments, "--format", "rich", "--color", "always", columns=columns)
    panel = from_panel(shown.splitlines())
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=columns, file=nowhere, color_system="truecolor", force_terminal=True)
        console.print(Text.from_ansi("\n".join(panel)))
        drawn = console.export_svg(title=f"gradcheck {' '.join(arguments)}")
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.S)  # fonts are not fetched from elsewhere
    drawn = re.sub(r"terminal-\d+", "terminal", drawn)
    (HERE / name).write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n", encoding="utf-8")


def screens() -> None:
    """The screens of README's and of the tutorial's wrong backward, wide and narrow."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "own.grad.yaml").write_text(example("README.md", "own.grad.yaml"), encoding="utf-8")
        (folder / "own").mkdir()
        (folder / "own" / "layers.py").write_text(example("docs/tutorial.md", "own/layers.py"), encoding="utf-8")
        for suffix, columns in (("", 100), ("-narrow", 52)):
            screen(f"wrong{suffix}.svg", columns, folder, "run", "own.grad.yaml", "--allow-code")
            layer, inputs = "own.layers:SwiGLU", ("-i", "a=3x4", "-i", "b=3x4")
            screen(f"check{suffix}.svg", columns, folder, "check", layer, *inputs)


def from_panel(lines: Iterable[str]) -> list[str]:
    """The lines from the panel on, less the last, which says how long it took."""
    lines = list(lines)
    return lines[next(number for number, line in enumerate(lines) if "╭" in line) : -1]


if __name__ == "__main__":
    steps()
    kink()
    screens()
    if shutil.which("chromium"):
        photographs()
