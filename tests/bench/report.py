# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The measurements as a page, a picture and a JSON file.

The page is docs/benchmarks.md: what stands between two of its marks is written here, the rest by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import places
from figures import Figure, Figures, Trouble
from names import AS_SENT, COLLECTION, PSQL, PYTHON, far
from plot import Line, Panel, draw
from sizes import DELAYS, GRANTS, HUGE, Settings, scenario
from targets import Target, as_data, targets

PAGE = places.ROOT / "docs" / "benchmarks.md"

OWN = "this collection"

_MARKS = re.compile(r"(<!-- begin: ([a-z-]+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)


def write(data: dict[str, Any], wanted: Settings, folder: Path) -> str:
    """Write all three into the folder. Returns what to tell whoever ran it."""
    figures = Figures(data)
    versions, sizes = list(wanted.versions), list(wanted.sizes)
    tools = list(figures.facts.get("tools", {}))
    reached = targets(figures, versions, sizes, tools)
    page = Page(figures, versions, sizes, tools, reached)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE.name).write_text(fill(PAGE.read_text(), page.sections()))
    (folder / "benchmarks.svg").write_text(draw(page.panels(), "Seconds by number of tables"))
    (folder / "benchmarks.json").write_text(json.dumps(page.summary(), indent=1, sort_keys=True) + "\n")
    verdicts = [f"{verdict(target):<12} {target.asked}: {target.reached}" for target in reached]
    missed = sum(target.met is False for target in reached)
    open_ = sum(target.met is None for target in reached)
    place = folder.relative_to(places.ROOT) if folder.is_relative_to(places.ROOT) else folder
    last = f"{len(reached) - missed - open_} reached, {missed} missed, {open_} not measured: see {place}/{PAGE.name}"
    return "\n".join([*verdicts, last])


def fill(page: str, sections: dict[str, str]) -> str:
    """The page with these sections between their marks. Every section has a place, and every place a section."""
    names = [match[2] for match in _MARKS.finditer(page)]
    if sorted(names) != sorted(sections):
        raise ValueError(f"the page has places for {sorted(names)}, not for {sorted(sections)}")
    return _MARKS.sub(lambda match: f"{match[1]}{sections[match[2]]}\n{match[3]}", page)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def verdict(target: Target) -> str:
    return "not measured" if target.met is None else "yes" if target.met else "no"


def seconds(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f} s"
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def shown(figure: Figure | Trouble | None, times: float | None = None) -> str:
    """A cell: the median, the least and the most; how many times what the collection took."""
    if figure is None:
        return ""
    if isinstance(figure, Trouble):
        return f"failed: {figure.text.replace('|', '/')}"
    if figure.late:
        return f"not done in {figure.late / 60:.0f} min" if figure.late >= 60 else f"not done in {figure.late:.0f} s"
    text = seconds(figure.middle)
    if figure.rounds > 1:
        text += f" ({figure.low:.2f}-{figure.high:.2f})"
    if figure.items:
        text += f", scaled from {figure.items} items"
    if times is not None:
        text += f", {times:.3g} times"
    return text


class Page:
    def __init__(
        self, figures: Figures, versions: list[int], sizes: list[str], tools: list[str], reached: list[Target]
    ) -> None:
        self.figures = figures
        self.versions = versions
        self.sizes = sizes
        self.tools = tools
        self.reached = reached

    @property
    def small(self) -> list[str]:
        """The sizes at which others are tried."""
        return [size for size in self.sizes if scenario(size).size < HUGE]

    def sections(self) -> dict[str, str]:
        return {
            "reached": table(
                ("asked", "reached", ""), ((target.asked, target.reached, verdict(target)) for target in self.reached)
            ),
            "picture": "![Seconds by number of tables, for a run with nothing to do and for an apply](benchmarks.svg)\n\n"
            "All numbers: [benchmarks.json](benchmarks.json).",
            "idle": self.work("idle", [(OWN, COLLECTION), ("as Ansible sends it", AS_SENT)], self.idle_floors()),
            "apply": self.work("apply", [(OWN, COLLECTION)], [("psql, by hand", PSQL)]),
            "plan": self.work("plan", [(OWN, COLLECTION)], []),
            "drift": self.drift(),
            "far": self.far(),
            "wire": self.wire(),
            "memory": self.memory(),
            "results": self.results(),
            "locks": self.locks(),
            "tools": self.about(),
        }

    @staticmethod
    def idle_floors() -> list[tuple[str, str]]:
        return [("Python's imports", PYTHON), ("psql, the catalog queries", PSQL)]

    def rows(self) -> Iterable[tuple[int, str]]:
        return ((version, size) for version in self.versions for size in self.sizes)

    def label(self, version: int, size: str) -> list[str]:
        locks = self.figures.facts.get(f"locks {version}/{size}")
        return [f"{version}{' (1)' if locks else ''}", size]

    def cell(self, version: int, size: str, work: str, tool: str, *, beside: bool = False) -> str:
        times = self.figures.times(version, size, work, tool) if beside else None
        return shown(self.figures.of(version, size, work, tool), times)

    def work(self, work: str, own: list[tuple[str, str]], floors: list[tuple[str, str]]) -> str:
        """Each size with all tools. A tool that was never tried has no column."""
        tried = [tool for tool in self.tools if any(self.figures.of(v, s, work, tool) for v, s in self.rows())]
        head = ["PostgreSQL", "size", *(name for name, _tool in (*own, *floors)), *tried]
        rows = [
            [
                *self.label(version, size),
                *(self.cell(version, size, work, tool) for _name, tool in (*own, *floors)),
                *(self.cell(version, size, work, tool, beside=True) for tool in tried),
            ]
            for version, size in self.rows()
        ]
        return table(head, rows)

    def drift(self) -> str:
        rows = [
            [*self.label(v, s), *(self.cell(v, s, work, COLLECTION) for work in ("drift plan", "drift apply"))]
            for v, s in self.rows()
            if s in self.small
        ]
        return table(("PostgreSQL", "size", "plan", "apply"), rows)

    def far(self) -> str:
        head = ["PostgreSQL", "size"]
        columns: list[tuple[str, str]] = []
        for work in ("idle", "apply"):
            columns += [(work, COLLECTION), *((work, far(COLLECTION, delay)) for delay in DELAYS)]
            head += [work, *(f"{work}, {delay} ms" for delay in DELAYS)]
        columns += [("apply", far(PSQL, delay)) for delay in DELAYS]
        head += [f"psql by hand, {delay} ms" for delay in DELAYS]
        rows = [
            [*self.label(v, s), *(self.cell(v, s, work, tool) for work, tool in columns)]
            for v, s in self.rows()
            if s in self.small
        ]
        return table(head, rows)

    def wire(self) -> str:
        def value(version: int, size: str, work: str, what: str) -> str:
            return str(self.figures.facts.get(f"wire {work} {version}/{size}", {}).get(what, ""))

        head = ["PostgreSQL", "size", "to inspect"]
        head += [f"{work}: round trips, statements" for work in ("idle", "plan", "apply")]
        rows = []
        for version, size in self.rows():
            cells = [
                ", ".join(
                    filter(None, (value(version, size, work, "round_trips"), value(version, size, work, "statements")))
                )
                for work in ("idle", "plan", "apply")
            ]
            rows.append([*self.label(version, size), value(version, size, "plan", "inspection"), *cells])
        return table(head, rows)

    def memory(self) -> str:
        columns = [
            ("idle", COLLECTION),
            ("idle", AS_SENT),
            ("idle", PYTHON),
            ("plan", COLLECTION),
            ("apply", COLLECTION),
        ]

        def cell(figure: Figure | Trouble | None) -> str:
            return f"{figure.memory / 1e6:.0f} MB" if isinstance(figure, Figure) else ""

        rows = [
            [*self.label(v, s), *(cell(self.figures.of(v, s, *column)) for column in columns)] for v, s in self.rows()
        ]
        return table(("PostgreSQL", "size", "idle", "idle, as sent", "Python's imports", "plan", "apply"), rows)

    def results(self) -> str:
        found: list[tuple[list[str], dict[str, Any] | None]] = [
            (
                [str(max(self.versions)), GRANTS.name],
                self.figures.facts.get(f"result {GRANTS.name}"),
            )
        ]
        for version, size in self.rows():
            planned = self.figures.facts.get(f"wire plan {version}/{size}")
            found.append((self.label(version, size), planned["result"] if planned else None))
        rows = [
            [
                *label,
                f"{result['counts']['grants']:,}",
                f"{result['statements']:,}",
                f"{result['characters']:,}",
                "yes" if result["truncated"] else "no",
                "yes" if result["counts_exact"] and result["digest_exact"] else "no",
                f"{result['script_characters']:,}",
                seconds(result["seconds_with_plan_file"]),
            ]
            for label, result in found
            if result
        ]
        head = (
            "PostgreSQL", "size", "grants", "statements", "characters of the result", "truncated", "counts and digest exact",
            "characters of `plan_file`", "plan with it",
        )  # fmt: skip
        return table(head, rows)

    def locks(self) -> str:
        lines = []
        for version, size in self.rows():
            refused = self.figures.facts.get(f"too many locks {version}/{size}")
            if refused:
                said = re.sub(r"\s+", " ", refused["msg"])
                lines.append(
                    f"PostgreSQL {version}, {size}, with the default of 64: `{refused['error_code']}` after "
                    f"{seconds(refused['seconds'])}, {said}"
                    if refused["failed"]
                    else f"PostgreSQL {version}, {size}: applied with the default of 64"
                )
            planned = self.figures.facts.get(f"wire plan {version}/{size}")
            forms = planned["result"]["forms"] if planned else {}
            if version >= 18 and forms.get("all in schema"):
                lines.append(
                    f"PostgreSQL {version}, {size}: {forms['all in schema']:,} of the plan's "
                    f"{sum(forms.values()):,} GRANTs use `ALL ... IN SCHEMA`, which locks no object"
                )
        return "\n".join(f"- {line.rstrip('.')}." for line in lines)

    def about(self) -> str:
        machine, versions = self.figures.facts.get("machine", {}), self.figures.facts.get("versions", {})
        servers = {v: self.figures.facts.get(f"server {v}") for v in self.versions}
        lines = [
            f"- Machine: {machine.get('cores')} cores of {machine.get('processor')}, {machine.get('memory', 0) / 1e9:.0f} GB of "
            f"memory, {machine.get('system')}; load at the beginning {machine.get('load')}.",
            f"- Servers: {', '.join(f'PostgreSQL {text}' for text in servers.values() if text)}.",
            f"- {', '.join(f'{name} {text}' for name, text in versions.items())}.",
        ]
        for tool, told in self.figures.facts.get("tools", {}).items():
            said = f"{tool} {told['version']}." if told["version"] else f"{tool}: not here. {told['why']}"
            lines.append(f"- {said} {told.get('note', '')}".rstrip())
        return "\n".join(lines)

    def panels(self) -> list[Panel]:
        version = max(self.versions)

        def line(name: str, work: str, compute: Callable[[str], float | None], floor: bool = False) -> Line:
            points = [(scenario(size).size, value) for size in self.sizes if (value := compute(size)) is not None]
            return Line(name, tuple(points), floor)

        def tool(name: str, work: str, key: str, floor: bool = False) -> Line:
            return line(name, work, lambda size: self.figures.seconds(version, size, work, key), floor)

        def floors(size: str) -> float | None:
            parts = [self.figures.seconds(version, size, "idle", key) for _name, key in self.idle_floors()]
            return None if None in parts else sum(part for part in parts if part is not None)

        idle = [tool(OWN, "idle", COLLECTION), *(tool(name, "idle", name) for name in self.tools)]
        apply = [tool(OWN, "apply", COLLECTION), *(tool(name, "apply", name) for name in self.tools)]
        return [
            Panel(
                f"A run with nothing to do, PostgreSQL {version}",
                (*idle, line("imports + psql", "idle", floors, floor=True)),
            ),
            Panel(
                f"An apply from nothing, PostgreSQL {version}",
                (*apply, tool("psql, by hand", "apply", PSQL, floor=True)),
            ),
        ]

    def summary(self) -> dict[str, Any]:
        """What docs/benchmarks.json holds."""
        facts = self.figures.facts
        measured: dict[str, Any] = {}
        for where, rounds in self.figures.data["rounds"].items():
            version, size, work = where.split("/", 2)
            kind = re.sub(r" (beside|far) .*", "", work)
            for tool in dict.fromkeys(tool for one in rounds for tool in one):
                figure = self.figures.of(int(version), size, kind, tool)
                entry: dict[str, Any] = {"failed": figure.text} if isinstance(figure, Trouble) else {}
                if isinstance(figure, Figure):
                    entry = {
                        "median": round(figure.middle, 3),
                        "least": round(figure.low, 3),
                        "most": round(figure.high, 3),
                        "rounds": figure.rounds,
                        "memory": figure.memory,
                    }
                    entry |= {name: value for name, value in (("late", figure.late), ("items", figure.items)) if value}
                    times = self.figures.times(int(version), size, kind, tool)
                    if times is not None and tool != COLLECTION:
                        entry["times_the_collection"] = round(times, 3)
                measured.setdefault(version, {}).setdefault(size, {}).setdefault(kind, {})[tool] = entry
        return {
            "machine": facts.get("machine"),
            "versions": facts.get("versions"),
            "servers": {str(v): facts.get(f"server {v}") for v in self.versions},
            "tools": facts.get("tools"),
            "sizes": {size: {"tables": scenario(size).size} for size in self.sizes},
            "max_locks_per_transaction": {f"{v}/{s}": facts.get(f"locks {v}/{s}") or 64 for v, s in self.rows()},
            "seconds": measured,
            "wire": {
                name[5:]: {key: value for key, value in fact.items() if key != "queries"}
                for name, fact in facts.items()
                if name.startswith("wire ")
            },
            "results": {name[7:]: fact for name, fact in facts.items() if name.startswith("result ")},
            "too_many_locks": {name[15:]: fact for name, fact in facts.items() if name.startswith("too many locks ")},
            "must_reach": as_data(self.reached),
        }
