# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Whether everything is for one database of one cluster: each resource says for itself where it belongs."""

from __future__ import annotations

from typing import List, Optional, Tuple

from ...problems import Problem, file_of
from ..model import ClusterEntry, Manifest
from ..texts import show


def whereabouts(manifest: Manifest) -> List[Problem]:
    """A problem for each place that is for another cluster or another database than the first one."""
    found = [_cluster_problem(manifest, *pair) for pair in _other_clusters(manifest.clusters)]
    connected = [entry for entry in manifest.databases if entry.connected]
    found += [
        _problem(
            manifest,
            entry.source,
            f"{show(entry.name)} is not {show(connected[0].name)} of {connected[0].source}: a run is for one database,"
            " so what belongs to another one stands in files of its own",
        )
        for entry in connected
        if entry.name != connected[0].name
    ]
    return found


def _other_clusters(clusters: Tuple[ClusterEntry, ...]) -> List[Tuple[ClusterEntry, ClusterEntry]]:
    """Each entry of another cluster than an earlier one's, with that one. No namespace may be any."""
    found = []
    first: Optional[ClusterEntry] = None
    placed: Optional[ClusterEntry] = None
    for entry in clusters:
        first = first or entry
        placed = placed or (entry if entry.namespace is not None else None)
        if entry.name != first.name:
            found.append((entry, first))
        elif placed is not None and entry.namespace not in (None, placed.namespace):
            found.append((entry, placed))
    return found


def _cluster_problem(manifest: Manifest, entry: ClusterEntry, first: ClusterEntry) -> Problem:
    names = [f"{one.namespace}/{one.name}" if one.namespace is not None else one.name for one in (entry, first)]
    return _problem(
        manifest,
        entry.source,
        f"{show(names[0])} is not {show(names[1])} of {first.source}: a run is for one cluster, so what belongs to"
        " another one stands in files of its own",
    )


def _problem(manifest: Manifest, source: str, message: str) -> Problem:
    return Problem(path=source, file=file_of(source, manifest.files), message=message)
