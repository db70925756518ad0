# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The result of a successful run."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple, Union

from ..changes import (
    AddMember,
    AlterRole,
    AlterSchemaOwner,
    CommentRole,
    CreateRole,
    CreateSchema,
    CreateStore,
    DropRole,
    Grant,
    GrantDefault,
    Plan,
    RemoveMember,
    Revoke,
    RevokeDefault,
    SetConfig,
    SetPassword,
    weight,
)
from ..digest import digest
from ..failure import LARGEST
from ..filters import Options
from ..notices import few
from ..run import Run
from ..state import State

#: The most characters that Ansible and the address put around a warning.
WARNED = 400

#: The least characters of an item in these lists: its keys alone have as many.
SHORTEST = {"suppressed_revokes": 140, "withheld": 90}


def suppressed_counts(changes: Iterable[Union[Revoke, RevokeDefault]]) -> Dict[str, int]:
    """How many privileges the override keeps for each role."""
    counts: Dict[str, int] = {}
    for change in changes:
        counts[change.grantee.name] = counts.get(change.grantee.name, 0) + weight(change)
    return dict(sorted(counts.items()))


def summary(plan: Plan) -> Dict[str, Any]:
    """Counts of the plan. Privileges are counted per object."""
    roles: Dict[str, Set[int]] = {"created": set(), "altered": set()}
    added: Set[Tuple[int, int]] = set()
    altered: Set[Tuple[int, int]] = set()
    removed: Set[Tuple[int, int]] = set()
    passwords = dropped = 0
    schemas = {"created": 0, "owner_changed": 0}
    grants = {"granted": 0, "revoked": 0}
    defaults = {"granted": 0, "revoked": 0}
    for change in plan.changes:
        if isinstance(change, CreateRole):
            roles["created"].add(change.role.oid)
        elif isinstance(change, (AlterRole, CommentRole, SetConfig)):
            roles["altered"].add(change.role.oid)
        elif isinstance(change, SetPassword):
            passwords += 1
        elif isinstance(change, DropRole):
            dropped += 1
        elif isinstance(change, AddMember):
            if change.raised or not change.exists:
                (altered if change.exists else added).add((change.group.oid, change.member.oid))
        elif isinstance(change, RemoveMember):
            if not change.replaced:
                (altered if change.option else removed).add((change.group.oid, change.member.oid))
            elif change.lowered:
                altered.add((change.group.oid, change.member.oid))
        elif isinstance(change, CreateSchema):
            schemas["created"] += 1
        elif isinstance(change, CreateStore):
            schemas["created"] += change.schema
        elif isinstance(change, AlterSchemaOwner):
            schemas["owner_changed"] += 1
        elif isinstance(change, Grant):
            grants["granted"] += 0 if change.again else weight(change)
        elif isinstance(change, Revoke):
            grants["revoked"] += 0 if change.again else weight(change)
        elif isinstance(change, GrantDefault):
            defaults["granted"] += weight(change)
        elif isinstance(change, RevokeDefault):
            defaults["revoked"] += weight(change)
    return {
        "roles": {
            "created": len(roles["created"]),
            "altered": len(roles["altered"] - roles["created"]),
            "dropped": dropped,
        },
        "passwords": {"set": passwords},
        "memberships": {"added": len(added), "altered": len(altered - added), "removed": len(removed)},
        "schemas": schemas,
        "grants": grants,
        "default_privileges": defaults,
        "suppressed_revokes": suppressed_counts(plan.suppressed),
        "managed": {name: list(claims) for name, claims in plan.managed.items()},
    }


def server_of(state: State) -> Dict[str, Any]:
    """Where a run is connected, and as whom, as results say it."""
    server = state.server
    return {
        "version": server.full_version,
        "database": server.database,
        "system_identifier": server.system_identifier,
        "in_recovery": server.in_recovery,
        "executor": state.ref(server.current_user).name,
    }


def names_of(state: State) -> Iterator[str]:
    """Every name of the server that a result may show."""
    yield state.server.database
    yield state.server.full_version
    for role in state.roles.values():
        yield from (role.name, *role.config)
    yield from (schema.name for schema in state.schemas.values())
    for group in (*state.groups, *state.named):
        yield group.column or ""
        yield from (item.label for item in group.members.objects())
    for database, other in state.elsewhere.items():
        yield database
        yield from (label for ties in other.belongings.ties for label in ties.labels)
        yield from (name for names in other.belongings.policies.values() for name in names)


def warnings_of(run: Run, where: str) -> List[str]:
    """Every warning of a run, each beginning with where it is: Ansible shows equal texts once for all hosts."""
    texts: List[str] = list(run.warnings)
    counts = suppressed_counts(run.plan.suppressed)
    if counts:
        texts.append(kept_warning(counts))
    texts += few(
        [
            f"role {name} holds no undeclared privilege in this database any more: its privilege_reconciliation:"
            " additive can be removed where no other database needs it"
            for name in run.plan.ready
        ],
        "roles hold no undeclared privilege in this database any more",
    )
    return [f"{where}: {text}" for text in texts]


def kept_warning(counts: Dict[str, int], most: int = 5) -> str:
    """One line for all overrides."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    names = ", ".join(f"{name} {count}" for name, count in ranked[:most]) + (", …" if len(ranked) > most else "")
    roles = "1 role keeps" if len(counts) == 1 else f"{len(counts)} roles keep"
    total = sum(counts.values())
    privileges = "1 undeclared privilege" if total == 1 else f"{total} undeclared privileges"
    return f"{roles} {privileges}: {names}"


def result_of(run: Run, options: Options, *, facts: bool, diff: bool) -> Dict[str, Any]:
    """The module's result. Lists that would make it too large are shortened; counts and digest stay exact."""
    common = _common(run, options)
    if diff:
        from .difftext import diff_of

        common["diff"] = diff_of(run.plan, run.server.database)
    # Ansible puts the warnings into the result, each with some words of its own.
    largest = LARGEST - sum(len(text) + WARNED for text in warnings_of(run, ""))
    result: Optional[Dict[str, Any]] = None
    if not _surely_too_large(run, largest):
        result = {**common, **_lists(run, run.sql, brief=False)}
    if result is None or size(result) > largest:
        # What earlier tries committed in other databases stands before it.
        before = run.sql[: len(run.sql) - len(run.behind)]
        sql = (*before, *(statement.brief for statement in run.behind))
        result = {**common, "diff": common.get("diff", []), **_lists(run, sql, brief=True, largest=largest)}
        result["summary"]["managed"] = _cut(result, largest)
        result["truncated"] = True
        if not diff:
            del result["diff"]
    if facts:
        names = ("changed", "sql", "suppressed_revokes", "suppressed_revoke_count", "summary", "plan_digest")
        result["ansible_facts"] = {
            "pg_role_reconcile": {"database": run.server.database, **{name: result[name] for name in names}}
        }
    return result


def _common(run: Run, options: Options) -> Dict[str, Any]:
    """What is the same however much the lists have to be shortened."""
    counted = summary(run.plan)
    affected: List[Dict[str, Any]] = []
    if run.plan.changes:
        from .affected import affected_roles

        affected = affected_roles(run.plan.changes)
    return {
        "changed": bool(run.sql),
        "suppressed_revoke_count": sum(counted["suppressed_revokes"].values()),
        "unneeded_overrides": list(run.plan.ready),
        "affected_roles": affected,
        "summary": counted,
        "plan_digest": digest(run.server, options, run.sql),
        "server": server_of(run.state),
        "timings": dict(run.timings),
    }


def _surely_too_large(run: Run, largest: int) -> bool:
    """Whether the lists are too large even if each of their items were as short as can be: then nobody need make all of
    them just to see that.
    """
    plan = run.plan
    least = sum(map(len, run.sql))
    if plan.suppressed or plan.withheld:
        from .items import count_suppressed, count_withheld

        least += SHORTEST["suppressed_revokes"] * count_suppressed(plan.suppressed)
        least += SHORTEST["withheld"] * count_withheld(plan.withheld)
    return 2 * least > largest


def _lists(run: Run, sql: Iterable[str], *, brief: bool, largest: Optional[int] = None) -> Dict[str, Any]:
    """``largest``: make no more than what could fit into so many characters."""
    plan = run.plan
    lists: Dict[str, Any] = {}
    if run.explained is not None:
        from .explained import explained_items

        lists["explain"] = explained_items(run.explained, brief=brief)
    lists.update(sql=list(sql), suppressed_revokes=[], withheld=[])
    if plan.suppressed or plan.withheld:
        # Only here, because the items need what composes statements.
        from .items import suppressed_items, withheld_items

        for name, items in (
            ("suppressed_revokes", suppressed_items(plan.suppressed, brief=brief)),
            ("withheld", withheld_items(plan.withheld, brief=brief)),
        ):
            number = len(items)
            while largest is not None and number > 1 and 2 * SHORTEST[name] * number > largest:
                number //= 2  # as the cut would do, which then need not see what it cuts off
            lists[name] = items.first(number)
    return lists


def size(result: Mapping[str, Any]) -> int:
    """The characters that a serialised result has at most: the facts repeat most of it, but no explanation."""
    once = {"explain": result["explain"]} if "explain" in result else {}
    twice = {name: value for name, value in result.items() if name not in once}
    return 2 * len(json.dumps(twice, ensure_ascii=False)) + len(json.dumps(once, ensure_ascii=False))


def _cut(result: Dict[str, Any], largest: int) -> Mapping[str, List[str]]:
    """Halve the lists that are still too long, the longest first. ``truncated`` says so.

    Returns what is left of ``summary.managed``, whose last key then counts what was left out.
    """
    managed = dict(result["summary"]["managed"])
    named = ("sql", "suppressed_revokes", "unneeded_overrides", "withheld", "affected_roles", "explain", "diff")
    lists = {name: result[name] for name in named if name in result}
    lists["managed"] = list(managed.items())
    empty: Dict[str, List[Any]] = {name: [] for name in lists}
    rest = size({**result, "summary": {**result["summary"], "managed": {}}, **empty})
    while rest + size(lists) > largest:
        # A diff is one text, which is no use in part.
        long = [name for name, items in lists.items() if len(items) > (0 if name == "diff" else 1)]
        if not long:
            break
        name = max(long, key=lambda key: len(json.dumps(lists[key])))
        lists[name] = [] if name == "diff" else lists[name][: len(lists[name]) // 2]
    kept = dict(lists.pop("managed"))
    result.update(lists)
    left_out = len(managed) - len(kept)
    return {**kept, f"and {left_out} more": []} if left_out else kept
