# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plot as SVG: seconds by number of tables, both on logarithmic scales, a panel for each work.

Colours follow the reader's setting for light or dark; the picture has a ground of its own, so that it can be read on any
page. The panels stand one below the other, so that a narrow page still shows letters of a size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, PANEL, TOP, BOTTOM = 600, 280, 48, 50
LEFT, RIGHT = 70, 190
GAP = 17

#: Light and dark, told apart by people who see few colours, too.
_COLOURS = (
    ("#0072b2", "#56b4e9"), ("#d55e00", "#f0883e"), ("#007a5e", "#2fd0a2"), ("#a8437a", "#e08abf"), ("#7a6a00", "#e6d44a"),
)  # fmt: skip
_GREY = ("#6b7280", "#9aa3af")


@dataclass(frozen=True)
class Line:
    """A tool in a panel: seconds by number of tables. A floor is drawn as something to be measured by."""

    name: str
    points: tuple[tuple[int, float], ...]
    floor: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    lines: tuple[Line, ...]


def decades(values: Iterable[float]) -> tuple[int, int]:
    """The powers of ten that enclose these values."""
    logs = [math.log10(value) for value in values]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return low, max(high, low + 1)


def spread(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Places near the wanted ones, in the same order, that are at least a gap apart and between low and high."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    placed: list[float] = []
    for number in order:
        placed.append(max(wanted[number], placed[-1] + gap if placed else low))
    limit = high
    for position in reversed(range(len(placed))):
        placed[position] = min(placed[position], limit)
        limit = placed[position] - gap
    result = [0.0] * len(wanted)
    for number, place in zip(order, placed):
        result[number] = place
    return result


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _style(count: int) -> str:
    def rules(shade: int) -> str:
        ground, text, grid = (("#ffffff", "#1f2933", "#d9dee5"), ("#161b22", "#e6edf3", "#333b46"))[shade]
        lines = "".join(
            f".c{number}{{stroke:{pair[shade]}}}.t{number}{{fill:{pair[shade]}}}"
            for number, pair in enumerate(_COLOURS[:count])
        )
        grey = _GREY[shade]
        return (
            f".ground{{fill:{ground}}}text{{fill:{text}}}.grid{{stroke:{grid}}}{lines}"
            f".floor{{stroke:{grey}}}.tfloor{{fill:{grey}}}"
        )

    return (
        "text{font:15px system-ui,sans-serif}.title{font-weight:600;font-size:17px}"
        ".line{fill:none;stroke-width:2}.main{stroke-width:4}.floor{stroke-dasharray:5 4}.grid{stroke-width:1}"
        f"{rules(0)}@media (prefers-color-scheme: dark){{{rules(1)}}}"
    )


def draw(panels: list[Panel], title: str) -> str:
    """The picture. The first line that is no floor is drawn thick."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines if not line.floor))
    height = len(panels) * (PANEL + TOP + BOTTOM)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        f"<style>{_style(len(names))}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="8"/>',
    ]
    for number, panel in enumerate(panels):
        if any(line.points for line in panel.lines):
            parts += _panel(panel, names, number * (PANEL + TOP + BOTTOM) + TOP)
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, names: list[str], top: int) -> list[str]:
    low_x, high_x = decades(x for line in panel.lines for x, _y in line.points)
    low_y, high_y = decades(y for line in panel.lines for _x, y in line.points)

    def across(value: float) -> float:
        return LEFT + (math.log10(value) - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)

    def down(value: float) -> float:
        return top + (high_y - math.log10(value)) / (high_y - low_y) * PANEL

    parts = [f'<text class="title" x="16" y="{top - 18}">{escape(panel.title)}</text>']
    for power in range(low_y, high_y + 1):
        y = down(10.0**power)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">{_number(10.0**power)} s</text>')
    for power in range(low_x, high_x + 1):
        x = across(10.0**power)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + PANEL}"/>')
        parts.append(f'<text x="{x:.1f}" y="{top + PANEL + 19}" text-anchor="middle">{_number(10.0**power)}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{top + PANEL + 38}" text-anchor="middle">tables</text>'
    )
    drawn = [line for line in panel.lines if line.points]
    places = spread([down(line.points[-1][1]) for line in drawn], GAP, top + 4, top + PANEL)
    for line, place in zip(drawn, places):
        index = names.index(line.name) if not line.floor else 0
        stroke, fill = ("floor", "tfloor") if line.floor else (f"c{index}", f"t{index}")
        thick = " main" if not line.floor and index == 0 else ""
        points = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline class="line{thick} {stroke}" points="{points}"/>')
        parts += [
            f'<circle class="{fill}" cx="{across(x):.1f}" cy="{down(y):.1f}" r="{4 if thick else 3}"/>'
            for x, y in line.points
        ]
        end = across(line.points[-1][0])
        parts.append(
            f'<line class="grid" x1="{end + 5:.1f}" y1="{down(line.points[-1][1]):.1f}" x2="{WIDTH - RIGHT + 8}" y2="{place:.1f}"/>'
        )
        parts.append(f'<text class="{fill}" x="{WIDTH - RIGHT + 11}" y="{place + 5:.1f}">{escape(line.name)}</text>')
    return parts
