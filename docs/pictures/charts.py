"""Charts as SVG, without a library: points on a logarithmic scale, and bars of shares.

Both stand on white, so that they read alike on a light and a dark page; the marks differ in shape as well as colour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, ROW, LEFT, RIGHT = 760, 34, 190, 30
MARKS = {
    "#1565c0": "m-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0",  # circle
    "#c62828": "m-6-6h12v12h-12z",  # square
    "#ef6c00": "m0-7l7 13h-14z",  # triangle
    "#2e7d32": "m0-8l8 8l-8 8l-8-8z",  # diamond
    "#6a1b9a": "m-6-4l2-2l4 4l4-4l2 2l-4 4l4 4l-2 2l-4-4l-4 4l-2-2l4-4z",  # cross
    "#555555": "m0 7l7-13h-14z",  # triangle on its point
}
"""Colour → outline, in the order in which the series take them."""


def text(
    x: float, y: float, content: str, anchor: str = "start", weight: str = "normal", colour: str = "#222222"
) -> str:
    """A text; `content` may hold tags of SVG."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">{content}</text>'
    )


def frame(title: str, height: float, parts: Sequence[str], width: float = WIDTH) -> str:
    """The whole file."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"',
        ' font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
        text(16, 22, escape(title), weight="bold"),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def points(title: str, across: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """A chart of numbers above 0 on a logarithmic scale: row → series → number."""
    series = dict.fromkeys(name for row in rows.values() for name in row)
    marks = dict(zip(series, MARKS.items(), strict=False))
    numbers = [number for row in rows.values() for number in row.values()]
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    top, bottom = 66, 66 + ROW * len(rows)

    def place(number: float) -> float:
        return LEFT + (math.log10(number) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    parts, x = [], 16.0
    for name, (colour, outline) in marks.items():
        parts += [f'<path transform="translate({x + 7:.0f} 44)" d="{outline}" fill="{colour}"/>']
        parts += [text(x + 20, 48, escape(name))]
        x += 40 + 7.2 * len(name)
    for power in range(low, high + 1):
        at = place(10.0**power)
        label = f"{10.0**power:,g}" if abs(power) < 4 else f"10<tspan dy='-5' font-size='10'>{power}</tspan>"
        parts += [f'<path d="M{at:.1f} {top}V{bottom}" stroke="{"#777777" if power == 0 else "#dddddd"}"/>']
        parts += [text(at, bottom + 18, label, "middle")]
    for number, (row, found) in enumerate(rows.items()):
        y = top + ROW * (number + 0.5)
        parts += [text(LEFT - 14, y + 4, escape(row), "end")]
        parts += [f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#eeeeee"/>']
        for name, value in found.items():
            colour, outline = marks[name]
            said = f"<title>{escape(f'{row}, {name}: {value:.3g}')}</title>"
            parts += [
                f'<path transform="translate({place(value):.1f} {y})" d="{outline}" fill="{colour}">{said}</path>'
            ]
    parts += [text((LEFT + WIDTH - RIGHT) / 2, bottom + 42, escape(across), "middle")]
    return frame(title, bottom + 54, parts)


def bars(title: str, rows: Sequence[tuple[str, float, float, str]]) -> str:
    """A chart of shares: name, how many, of how many, and the colour."""
    left, parts = 300, []
    for number, (name, count, of, colour) in enumerate(rows):
        y, length = 40 + ROW * number, (WIDTH - left - 150) * count / of
        parts += [text(left - 14, y + 18, escape(name), "end")]
        parts += [f'<rect x="{left}" y="{y + 3}" width="{max(length, 1):.1f}" height="{ROW - 12}" fill="{colour}"/>']
        parts += [text(left + length + 8, y + 18, f"{count:,g} of {of:,g} ({100 * count / of:.1f} %)")]
    return frame(title, 50 + ROW * len(rows), parts)
