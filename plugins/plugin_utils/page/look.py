# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The look of the page, and the little script of it. Both are part of the page: it loads nothing."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --bg: #ffffff; --fg: #1b1f24; --soft: #57606a; --line: #d0d7de; --band: #f4f6f8; --link: #0550ae;
  --gain: #116329; --gain-bg: #e6f6ea; --loss: #a40e26; --loss-bg: #fdecee; --warn: #7a4b00; --warn-bg: #fff5d9;
  --box: #ffffff; --edge: #6e7781;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #0f1318; --fg: #e6e9ed; --soft: #a3adb8; --line: #363e48; --band: #181e25; --link: #80b8ff;
    --gain: #6fdb8b; --gain-bg: #10291a; --loss: #ff9a96; --loss-bg: #331518; --warn: #f0c265; --warn-bg: #2c220c;
    --box: #181e25; --edge: #8b96a3;
  }
}
@media (forced-colors: active) {
  :root {
    --bg: Canvas; --fg: CanvasText; --soft: CanvasText; --line: CanvasText; --band: Canvas; --link: LinkText;
    --gain: CanvasText; --gain-bg: Canvas; --loss: CanvasText; --loss-bg: Canvas; --warn: CanvasText; --warn-bg: Canvas;
    --box: Canvas; --edge: CanvasText;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 4.5rem; }
body {
  margin: 0 auto; padding: 1rem clamp(0.75rem, 3vw, 2.5rem) 3rem; max-width: 110rem; background: var(--bg);
  color: var(--fg); font: 0.94rem/1.5 -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 0.5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 0.25rem; padding-top: 1rem; border-top: 3px solid var(--line); }
main > section:first-child > h2 { margin-top: 0.5rem; }
h3 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
p { margin: 0.35rem 0; max-width: 85ch; }
a { color: var(--link); }
code, .letters { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: 0.9em; }
code { white-space: pre-wrap; }
.soft, .more { color: var(--soft); }
.small { font-size: 0.85rem; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 0.25rem 1.1rem; padding: 0; margin: 0.5rem 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 0.6rem; padding: 0;
  margin: 1rem 0; list-style: none; }
.tiles li { border: 1px solid var(--line); border-radius: 8px; padding: 0.5rem 0.75rem; background: var(--band); }
.tiles b { display: block; font-size: 1.35rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.notes { border-left: 4px solid var(--warn); background: var(--warn-bg); padding: 0.5rem 0.75rem 0.5rem 2rem;
  margin: 1rem 0; }
.role .scroll { max-height: none; }
.scroll { overflow: auto; max-width: 100%; border: 1px solid var(--line); border-radius: 8px; max-height: 80vh; }
.scroll:focus-visible, a:focus-visible, summary:focus-visible, input:focus-visible {
  outline: 3px solid var(--link); outline-offset: 2px;
}
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: 0.9rem; }
th, td { text-align: start; vertical-align: top; padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--line); }
thead th { position: sticky; top: 0; background: var(--band); z-index: 2; }
tbody tr:last-child > * { border-bottom: 0; }
tbody + tbody tr:first-child > * { border-top: 1px solid var(--line); }
.matrix th[scope=row], .matrix thead th:first-child { position: sticky; left: 0; background: var(--band); z-index: 1;
  border-right: 1px solid var(--line); }
.matrix th { max-width: 16rem; min-width: 8rem; font-weight: 600; }
.matrix th[scope=row], .matrix thead th:first-child { min-width: 12rem; }
@media (min-width: 64rem) {
  .matrix th[scope=row], .matrix thead th:first-child { min-width: 18rem; max-width: 24rem; }
}
.matrix thead th:first-child { z-index: 3; }
.matrix td { min-width: 6.5rem; overflow-wrap: normal; }
.matrix td > span { display: block; white-space: nowrap; }
ins { color: var(--gain); background: var(--gain-bg); text-decoration: underline 2px; }
del { color: var(--loss); background: var(--loss-bg); text-decoration: line-through 1px; }
.matrix td:empty::after { content: "·"; color: var(--soft); }
.why th[scope=rowgroup] { background: var(--band); font-weight: 600; }
.why td { min-width: 9rem; }
.why td:first-child { min-width: 13rem; }
details { border: 1px solid var(--line); border-radius: 8px; margin: 0.5rem 0; }
details > :not(summary) { margin-inline: 0.75rem; }
details > .scroll, details > table { margin-block: 0.25rem 0.75rem; max-width: calc(100% - 1.5rem); }
summary { cursor: pointer; padding: 0.45rem 0.75rem; }
details[open] > summary { border-bottom: 1px solid var(--line); margin-bottom: 0.5rem; }
.role { content-visibility: auto; contain-intrinsic-size: auto 2.6rem; }
.role > summary bdi { font-weight: 600; }
.changes th[scope=row] { min-width: 9rem; }
.changes td { min-width: 7rem; }
.changes td:empty::after { content: "·"; color: var(--soft); }
.tag { display: inline-block; border: 1px solid var(--line); border-radius: 999px; padding: 0 0.5rem; font-size: 0.8rem;
  color: var(--soft); background: var(--bg); white-space: nowrap; }
.gained { color: var(--gain); }
.lost { color: var(--loss); }
.tag.gained { background: var(--gain-bg); border-color: currentColor; }
.tag.lost { background: var(--loss-bg); border-color: currentColor; }
tr.gained > td:first-child { box-shadow: inset 4px 0 var(--gain); }
tr.lost > td:first-child { box-shadow: inset 4px 0 var(--loss); }
tr.gained, tr.lost { color: inherit; }
.plan { padding-inline-start: 3.2rem; margin: 0.5rem 0; }
.plan li { padding: 0.2rem 0.4rem; border-bottom: 1px solid var(--line); }
.plan li::marker { color: var(--soft); font-variant-numeric: tabular-nums; }
.filter { margin: 0.5rem 0; padding: 0.5rem 0; background: var(--bg); display: flex; flex-wrap: wrap;
  gap: 0.4rem 0.8rem; align-items: center; }
@media (min-height: 30rem) {
  .filter { position: sticky; top: 0; z-index: 5; }
}
.filter[hidden] { display: none; }
.filter input { font: inherit; color: inherit; background: var(--bg); border: 1px solid var(--edge); border-radius: 6px;
  padding: 0.35rem 0.6rem; width: min(24rem, 100%); }
::placeholder { color: var(--soft); opacity: 1; }
[data-name][hidden] { display: none; }
.graph { display: block; font: 13px -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
.graph text { fill: var(--fg); unicode-bidi: isolate; }
.graph .name { font-weight: 600; }
.graph .note { fill: var(--soft); font-size: 11.5px; }
.graph rect { fill: var(--box); stroke: var(--edge); stroke-width: 1.2; }
.graph rect.many { stroke-width: 3; }
.graph rect.gained { stroke: var(--gain); stroke-width: 2.4; }
.graph rect.lost { stroke: var(--loss); stroke-width: 2.4; stroke-dasharray: 3 3; }
.graph path { fill: none; stroke: var(--edge); stroke-width: 1.6; }
.graph path.set { stroke-dasharray: 8 4; }
.graph path.none { stroke-dasharray: 2 4; }
.graph path.gained { stroke: var(--gain); stroke-width: 2.4; }
.graph path.lost { stroke: var(--loss); stroke-width: 2.4; }
.graph .sign { font-weight: 700; font-size: 15px; }
.graph text.gained { fill: var(--gain); }
.graph text.lost { fill: var(--loss); }
.graph.dim > :is(a, g):not(.on) { opacity: 0.15; }
.graph a { text-decoration: none; }
.graph a:hover rect, .graph a:focus-visible rect { stroke: var(--link); stroke-width: 3; }
.skip { position: absolute; left: -100rem; }
.skip:focus { position: static; }
@media (max-width: 40rem) {
  html { scroll-padding-top: 6rem; }
  body { font-size: 0.875rem; }
  .filter label { position: absolute; clip-path: inset(50%); }
  .plan { padding-inline-start: 2.6rem; }
  .matrix th { max-width: 9rem; min-width: 7rem; }
  .why thead { display: none; }
  .why, .why tbody, .why tr, .why td, .why th { display: block; }
  .why td, .why td:first-child { min-width: 0; border: 0; padding-block: 0.1rem; }
  .why td:first-child { font-weight: 600; padding-top: 0.5rem; }
  .why td:last-child { color: var(--soft); padding-bottom: 0.5rem; }
  .why tbody tr { border-bottom: 1px solid var(--line); }
  .why tr.gained > td, .why tr.lost > td { box-shadow: none; }
  .why tr.gained { box-shadow: inset 4px 0 var(--gain); }
  .why tr.lost { box-shadow: inset 4px 0 var(--loss); }
  .matrix th[scope=row], .matrix thead th:first-child { min-width: 7.5rem; }
  .changes thead, .changes td:empty { display: none; }
  .changes, .changes tbody, .changes tr, .changes td, .changes th { display: block; }
  .changes th[scope=row], .changes td { border: 0; padding-block: 0.1rem; }
  .changes tr { padding-block: 0.3rem; border-bottom: 1px solid var(--line); }
  .changes td::before { color: var(--soft); }
  .changes td:nth-child(2)::before { content: "loses "; }
  .changes td:nth-child(3)::before { content: "gains "; }
  .changes td:nth-child(4)::before { content: "otherwise "; }
  .changes td:nth-child(5)::before { content: "and through it "; }
}
@media print {
  :root { color-scheme: light; --bg: #ffffff; --fg: #000000; --soft: #333333; --line: #999999; --band: #f2f2f2;
    --link: #000000; --gain: #0b4a1d; --gain-bg: #ffffff; --loss: #7d0016; --loss-bg: #ffffff; --warn: #5c3900;
    --warn-bg: #ffffff; --box: #ffffff; --edge: #555555; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  .scroll { overflow: visible; max-height: none; border: 0; }
  .filter, .skip, nav { display: none; }
  thead th, .matrix th[scope=row] { position: static; }
  .role { content-visibility: visible; }
  .graph { max-width: 100%; height: auto; }
  .matrix td, .matrix th, .why td { min-width: 0; }
  .matrix th[scope=row], .matrix thead th:first-child { min-width: 9rem; max-width: none; }
  ::details-content { content-visibility: visible; block-size: auto; }
  .matrix td > span { white-space: normal; }
  tr, li { break-inside: avoid; }
  h2, h3, summary { break-after: avoid; }
}
"""

SCRIPT = """
"use strict";
(() => {
  const box = document.getElementById("filter");
  const said = document.getElementById("filtered");
  const items = [...document.querySelectorAll("[data-name]")];
  // PUBLIC has a part like theirs and is no role.
  const counted = items.filter((item) => item.matches(".role") && item.dataset.name !== "public");
  const graphs = [...document.querySelectorAll(".graph")].map((picture) => ({
    picture,
    places: [...picture.querySelectorAll("[data-place]")],
    lines: [...picture.querySelectorAll("[data-ends]")].map((line) => ({line, ends: line.dataset.ends.split(" ")})),
  }));
  // Shows the ways that lead to the chosen places and on from them; all there is where nothing is chosen.
  const light = ({picture, places, lines}, chosen) => {
    const on = new Set();
    for (const [from, to] of [[0, 1], [1, 0]]) {
      const seen = new Set(chosen.map((place) => place.dataset.place));
      for (let before = -1; before < seen.size;) {
        before = seen.size;
        for (const {line, ends} of lines) {
          if (seen.has(ends[from])) {
            seen.add(ends[to]);
            on.add(line);
          }
        }
      }
      places.filter((place) => seen.has(place.dataset.place)).forEach((place) => on.add(place));
    }
    for (const item of [...places, ...lines.map(({line}) => line)]) {
      item.classList.toggle("on", on.has(item));
    }
    picture.classList.toggle("dim", on.size > 0);
  };
  const matching = ({places}) => {
    const word = box.value.trim().toLowerCase();
    return word ? places.filter((place) => place.dataset.names.includes(word)) : [];
  };
  const apply = () => {
    const word = box.value.trim().toLowerCase();
    for (const item of items) {
      item.hidden = !item.dataset.name.includes(word);
    }
    const shown = counted.filter((item) => !item.hidden).length;
    said.textContent = word ? `${shown} of ${counted.length} roles` : "";
    for (const graph of graphs) {
      const chosen = matching(graph);
      light(graph, chosen);
      if (chosen.length) {
        const {x, y, width, height} = chosen[0].getBBox();
        const around = graph.picture.parentElement;
        around.scrollTo(x + width / 2 - around.clientWidth / 2, y + height / 2 - around.clientHeight / 2);
      }
    }
  };
  box.closest("form").hidden = false;
  box.addEventListener("input", apply);
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  apply();
  for (const graph of graphs) {
    for (const place of graph.places) {
      for (const event of ["mouseenter", "focus"]) {
        place.addEventListener(event, () => light(graph, [place]));
      }
      for (const event of ["mouseleave", "blur"]) {
        place.addEventListener(event, () => light(graph, matching(graph)));
      }
    }
  }
  const show = () => {
    let place = null;
    try {
      place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch (error) {
      return;
    }
    if (place && place.tagName === "DETAILS") {
      if (place.hidden) {
        box.value = "";
        apply();
      }
      place.open = true;
      place.scrollIntoView();
    }
  };
  addEventListener("hashchange", show);
  show();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((item) => { item.open = true; });
  });
  addEventListener("afterprint", () => {
    closed.forEach((item) => { item.open = false; });
  });
})();
"""
