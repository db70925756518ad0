# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What is read for a policy: a fixed number of round trips, whatever the size of the database or of the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from .records import replace

try:
    import psycopg
except ImportError:  # the module reports the missing library before it gets here
    pass

from .catalog.cluster import read_cluster, read_settings
from .catalog.objects import read_attributes, read_named, read_objects, read_routine_types
from .diff.passwords import PasswordOptions
from .diff.retirements import candidates
from .diff.targets import Lookups, qualified
from .failure import Failure, of_problems
from .filters import Options
from .policy import Policy
from .privileges import KINDS, NAMED_KINDS
from .problems import Problem
from .scope import Scope, scope_of
from .setting_checks import settings_asked
from .signatures import split_signature, type_texts
from .state import State

if TYPE_CHECKING:
    from psycopg import Connection


def inspect(
    connection: Connection[Any],
    policy: Policy,
    passwords: PasswordOptions,
    options: Options,
    cluster: Optional[str] = None,
) -> Tuple[State, Scope, Lookups]:
    """Read everything that the policy is compared with: three round trips, and one more each for rules on
    objects outside schemas, on routines and on columns, and for roles that are to go.

    ``cluster``: the system identifier that it must be. Raises Failure.
    """
    databases = [rule.name for rule in policy.rules if rule.kind == "database" and rule.name is not None]
    databases += [entry.name for entry in policy.databases]
    verifiers_of = sorted(policy.roles) if passwords.update == "on_drift" else []
    state = read_cluster(connection, databases, verifiers_of)
    if cluster is not None and cluster != state.server.system_identifier:
        found = state.server.system_identifier or "one that may not be asked for its identifier"
        message = f"This is the cluster {found}, not {cluster}"
        raise Failure("wrong_cluster", message, problems=[Problem(path="expected_system_identifier", message=message)])
    scope = scope_of(policy, (schema.name for schema in state.schemas.values()), state.server.database)
    inspected = [schema.oid for schema in state.schemas.values() if schema.name in scope.inspected]
    groups, default_acls = read_objects(connection, inspected)
    named, untrusted = read_named(connection, _names_outside(policy, state.server.version))
    asked = settings_asked(policy, state)
    if asked:
        state = replace(state, settings=read_settings(connection, asked))
    state = replace(state, groups=groups, named=named, default_acls=default_acls)
    leaving = candidates(policy, state) if options.mode == "authoritative" else {}
    if leaving:
        from .catalog.ties import read_belongings

        destroyed = [state.role_oid(entry.name) for entry in policy.retirements.values() if entry.destroys]
        belongings = read_belongings(connection, leaving, [oid for oid in destroyed if oid is not None])
        state = replace(state, belongings=belongings)
    lookups = replace(
        _routines(connection, policy, state), columns=_columns(connection, policy, state), untrusted=untrusted
    )
    return state, scope, lookups


def _names_outside(policy: Policy, version: int) -> Mapping[str, Sequence[str]]:
    """The names that rules give to objects outside schemas, by kind. Databases and schemas are read anyway."""
    names: Dict[str, Set[str]] = {}
    for rule in policy.rules:
        if rule.kind in NAMED_KINDS and rule.name is not None and KINDS[rule.kind].since <= version:
            names.setdefault(rule.kind, set()).add(rule.name)
    return {kind: sorted(found) for kind, found in names.items()}


def _columns(connection: Connection[Any], policy: Policy, state: State) -> Mapping[str, FrozenSet[int]]:
    """Which relations have the columns that rules name."""
    names = {column for rule in policy.rules for column in rule.columns}
    schemas = {state.schema_named(str(rule.schema)) for rule in policy.rules if rule.columns}
    if not names:
        return {}
    return read_attributes(connection, sorted(s.oid for s in schemas if s is not None), sorted(names))


def _routines(connection: Connection[Any], policy: Policy, state: State) -> Lookups:
    """Ask the server about the routines that rules name by their input types."""
    wanted = [
        (str(rule.name), rule.schema)
        for rule in policy.rules
        if rule.kind == "function" and rule.schema and str(rule.name).endswith(")")
    ]
    if not wanted:
        return Lookups()
    names = sorted({name for text, _schema in wanted for name, _arguments in split_signature(text)})
    schemas = sorted({schema.oid for _text, name in wanted for schema in [state.schema_named(str(name))] if schema})
    # An unqualified name may mean a type in the routine's own schema.
    types: Dict[str, Optional[str]] = {}
    for signature, schema in wanted:
        for text in type_texts([signature]):
            types.setdefault(qualified(text, str(schema)) or text, str(schema))
    types.update(dict.fromkeys(type_texts(text for text, _schema in wanted)))
    try:
        routines, oids = read_routine_types(connection, schemas, names, types)
    except psycopg.Error as exc:
        raise of_problems(_unreadable_types(connection, policy, exc)) from None
    return Lookups({oid: arguments for oid, _schema, _name, arguments in routines}, oids)


def _unreadable_types(connection: Connection[Any], policy: Policy, error: psycopg.Error) -> List[Problem]:
    """The rules whose argument types the server cannot even read. The transaction is lost, so each is asked alone."""
    problems: List[Problem] = []
    connection.execute("ROLLBACK")
    for rule in policy.rules:
        if rule.kind != "function":
            continue
        for text in type_texts([str(rule.name)]):
            try:
                read_routine_types(connection, [], [], {text: None})
            except psycopg.Error as exc:
                problems.append(
                    Problem(
                        path=f"{rule.source}.object.name",
                        role=rule.role,
                        object=f"{rule.schema}.{rule.name}",
                        message=f"the argument type {text} of {rule.schema}.{rule.name} cannot be read: "
                        f"{exc.diag.message_primary}",
                        hint="Types are written as in SQL: mixed case and special characters in double quotes.",
                        code="object_missing",
                    )
                )
                break
    return problems or [Problem(message=str(error.diag.message_primary), code="object_missing")]
