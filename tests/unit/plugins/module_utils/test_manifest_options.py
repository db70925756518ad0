# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every rule by which a manifest given as options is judged, with the exact place that the message names."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils import privileges
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest import load, spec
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.model import (
    DefaultGrantEntry,
    GrantEntry,
    MemberEntry,
    ObjectEntry,
    RoleEntry,
)
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import ManifestInvalid, Problem

LONG = "a" * 64


def problems(raw: Dict[str, Any]) -> Tuple[Problem, ...]:
    with pytest.raises(ManifestInvalid) as caught:
        load.load(raw)
    return caught.value.problems


def places(raw: Dict[str, Any]) -> List[str]:
    return [str(problem.path) for problem in problems(raw)]


def only(raw: Dict[str, Any]) -> Problem:
    found = problems(raw)
    assert len(found) == 1, [problem.text for problem in found]
    return found[0]


def grant(**changes: Any) -> Dict[str, Any]:
    rule: Dict[str, Any] = {
        "role": "app",
        "privileges": ["SELECT"],
        "object": {"type": "table", "schema": "s", "name": "t"},
    }
    rule.update(changes)
    return {"grants": [rule]}


def target(**keys: Any) -> Dict[str, Any]:
    kind = privileges.canonical_kind(keys.get("type", ""))
    return grant(object=keys, privileges=[next(iter(privileges.KINDS[kind].privileges)) if kind else "SELECT"])


def role(**keys: Any) -> Dict[str, Any]:
    return {"roles": [{"name": "app", **keys}]}


def default(entry: Dict[str, Any], **changes: Any) -> Dict[str, Any]:
    rule = {"role": "app", "privileges": ["SELECT"], "on_type": "table", **changes}
    return {"default_privileges": [{**entry, "grant": [rule]}]}


def profile(**keys: Any) -> Dict[str, Any]:
    return {"profiles": {"editor": keys}}


def profile_grant(**keys: Any) -> Dict[str, Any]:
    return profile(grants=[{"privileges": ["USAGE"], "object": {"type": "schema"}, **keys}])


#: Kinds that lie in no schema, besides schemas and databases.
OUTSIDE = ("language", "foreign_data_wrapper", "foreign_server", "tablespace", "parameter", "large_object")

# Each: what is given, where the message points, what it says.
RULES: List[Tuple[Dict[str, Any], str, str]] = [
    # names are text
    (role(name=123), "roles[0].name", "must be text, not the number 123: quote it, or use | string in a template"),
    (role(name=True), "roles[0].name", "must be text, not the boolean true: quote it, or use | string in a template"),
    (role(name=1.5), "roles[0].name", "must be text, not the number 1.5: quote it, or use | string in a template"),
    (role(name=["app"]), "roles[0].name", "must be text, not a list"),
    (role(name={"a": 1}), "roles[0].name", "must be text, not a dict"),
    (role(comment=5), "roles[0].comment", "must be text, not the number 5: quote it, or use | string in a template"),
    ({"default_owner": 7}, "default_owner", "must be text, not the number 7: quote it, or use | string in a template"),
    (
        {"assume_roles": [7]},
        "assume_roles[0]",
        "must be text, not the number 7: quote it, or use | string in a template",
    ),
    ({"scope": {"schemas": [7]}}, "scope.schemas[0]", "must be text, not the number 7"),
    # names that PostgreSQL can hold
    (role(name=""), "roles[0].name", "must not be empty"),
    (role(name="a\0b"), "roles[0].name", "must not contain a NUL character"),
    (role(name="\ud800"), "roles[0].name", "is not valid Unicode text"),
    (role(name=LONG), "roles[0].name", f"'{LONG}' is 64 bytes long, and PostgreSQL's names have at most 63"),
    (role(name="é" * 32), "roles[0].name", "is 64 bytes long"),
    ({"default_owner": LONG}, "default_owner", "is 64 bytes long"),
    ({"schemas": [{"name": LONG}]}, "schemas[0].name", "is 64 bytes long"),
    ({"schemas": [{"name": "s", "owner": LONG}]}, "schemas[0].owner", "is 64 bytes long"),
    ({"assume_roles": [LONG]}, "assume_roles[0]", "is 64 bytes long"),
    (grant(role=LONG), "grants[0].role", "is 64 bytes long"),
    (target(type="table", schema=LONG, name="t"), "grants[0].object.schema", "is 64 bytes long"),
    (target(type="table", schema="s", name=LONG), "grants[0].object.name", "is 64 bytes long"),
    (target(type="table", schema="s", name=""), "grants[0].object.name", "must not be empty"),
    (target(type="table", schema="s", name="a\0"), "grants[0].object.name", "must not contain a NUL character"),
    (target(type="table", schema="s", name="\ud800"), "grants[0].object.name", "is not valid Unicode text"),
    (target(type="function", schema="s", name=f"{LONG}(int)"), "grants[0].object.name", "is 64 bytes long"),
    (default({"owner": LONG}), "default_privileges[0].owner", "is 64 bytes long"),
    (default({"schema": LONG, "owner": "o"}), "default_privileges[0].schema", "is 64 bytes long"),
    (role(comment="a\0b"), "roles[0].comment", "must not contain a NUL character"),
    (role(comment="a\udce4"), "roles[0].comment", "is not valid Unicode text"),
    # reserved names
    (role(name="public"), "roles[0].name", "'public' is a reserved word"),
    (role(name="Public"), "roles[0].name", "'Public' is a reserved word"),
    (role(name="NONE"), "roles[0].name", "'NONE' is a reserved word"),
    (role(name="pg_mine"), "roles[0].name", "'pg_mine' is reserved: names that begin with pg_ are PostgreSQL's own"),
    (grant(role="None"), "grants[0].role", "'None' is a reserved word"),
    ({"schemas": [{"name": "pg_x"}]}, "schemas[0].name", "'pg_x' is reserved for PostgreSQL's own schemas"),
    ({"schemas": [{"name": "information_schema"}]}, "schemas[0].name", "is reserved for PostgreSQL's own schemas"),
    # PUBLIC is a grantee only
    ({"default_owner": "PUBLIC"}, "default_owner", "'PUBLIC' is the pseudo-role PUBLIC, which can only be a grantee"),
    ({"schemas": [{"name": "s", "owner": "public"}]}, "schemas[0].owner", "can only be a grantee"),
    ({"memberships": [{"role": "Public"}]}, "memberships[0].role", "can only be a grantee"),
    (
        {"memberships": [{"role": "app", "members": [{"name": "PUBLIC"}]}]},
        "memberships[0].members[0].name",
        "can only be a grantee",
    ),
    (default({"owner": "PUBLIC"}), "default_privileges[0].owner", "can only be a grantee"),
    ({"assume_roles": ["public"]}, "assume_roles[0]", "can only be a grantee"),
    # lists and dicts
    ({"roles": "app"}, "roles", "must be a list, not text"),
    ({"roles": {"app": {}}}, "roles", "must be a list, not a dict"),
    ({"roles": ["app"]}, "roles[0]", "must be a dict, not text"),
    ({"roles": [None]}, "roles[0]", "must not be null"),
    ({"profiles": []}, "profiles", "must be a dict, not a list"),
    ({"profiles": {"editor": ["x"]}}, "profiles.editor", "must be a dict, not a list"),
    ({"profiles": {"": {}}}, "profiles.''", "the name must not be empty"),
    ({"profiles": {5: {}}}, "profiles.5", "the name must be text, not the number 5: quote it"),
    ({"scope": ["x"]}, "scope", "must be a dict, not a list"),
    (grant(privileges="SELECT, INSERT"), "grants[0].privileges", "must be a list, not the text 'SELECT, INSERT'"),
    (grant(object="table t"), "grants[0].object", "must be a dict, not the text 'table t'"),
    (
        {"schemas": [{"name": "s", "profiles": "editor"}]},
        "schemas[0].profiles",
        "must be a list, not the text 'editor'",
    ),
    (
        {"memberships": [{"role": "a", "members": ["b"]}]},
        "memberships[0].members[0]",
        "must be a dict, not the text 'b'",
    ),
    ({"assume_roles": "a,b"}, "assume_roles", "must be a list, not the text 'a,b'"),
    # required
    ({"roles": [{}]}, "roles[0].name", "is required"),
    ({"roles": [{"name": None}]}, "roles[0].name", "is required"),
    ({"schemas": [{}]}, "schemas[0].name", "is required"),
    ({"memberships": [{"members": []}]}, "memberships[0].role", "is required"),
    ({"memberships": [{"role": "a", "members": [{}]}]}, "memberships[0].members[0].name", "is required"),
    (grant(role=None), "grants[0].role", "is required"),
    (grant(privileges=None), "grants[0].privileges", "is required"),
    (grant(object=None), "grants[0].object", "is required"),
    (target(schema="s", name="t"), "grants[0].object.type", "is required"),
    ({"default_privileges": [{"owner": "o"}]}, "default_privileges[0].grant", "is required"),
    (default({"owner": "o"}, role=None), "default_privileges[0].grant[0].role", "is required"),
    (default({"owner": "o"}, privileges=None), "default_privileges[0].grant[0].privileges", "is required"),
    (default({"owner": "o"}, on_type=None), "default_privileges[0].grant[0].on_type", "is required"),
    (default({"owner": "o", "scope": {}}), "default_privileges[0].scope.type", "is required"),
    (profile_grant(object=None), "profiles.editor.grants[0].object", "is required"),
    # not empty
    (grant(privileges=[]), "grants[0].privileges", "must not be empty"),
    ({"default_privileges": [{"owner": "o", "grant": []}]}, "default_privileges[0].grant", "must not be empty"),
    ({"manifest_files": []}, "manifest_files", "must not be empty"),
    # unknown keys
    (role(superusr=True), "roles[0].superusr", "unknown key 'superusr'; did you mean 'superuser'?"),
    (role(Login=True), "roles[0].Login", "unknown key 'Login'; did you mean 'login'?"),
    (role(zzz=1), "roles[0].zzz", "unknown key 'zzz'; known here: name, comment, login"),
    (
        {"grants": [{"role": "app", "privilege": ["x"], "object": {"type": "schema", "name": "s"}}]},
        "grants[0].privilege",
        "unknown key 'privilege'; did you mean 'privileges'?",
    ),
    (target(type="table", shema="s", name="t"), "grants[0].object.shema", "did you mean 'schema'?"),
    (grant(privilege="x"), "grants[0].privilege", "unknown key 'privilege'; did you mean 'privileges'?"),
    (target(type="table", schema="s", name="t", nam="x"), "grants[0].object.nam", "did you mean 'name'?"),
    (
        {"memberships": [{"role": "a", "members": [{"name": "b", "admn": True}]}]},
        "memberships[0].members[0].admn",
        "did you mean 'admin'?",
    ),
    ({"scope": {"schema": []}}, "scope.schema", "unknown key 'schema'; did you mean 'schemas'?"),
    (profile(grant=[]), "profiles.editor.grant", "unknown key 'grant'; did you mean 'grants'?"),
    ({"grant": []}, "grant", "unknown option 'grant'; did you mean 'grants'?"),
    ({"rolez": []}, "rolez", "unknown option 'rolez'; did you mean 'roles'?"),
    # on and object
    (
        {"grants": [{"role": "app", "privileges": ["USAGE"], "true": {"type": "schema", "name": "s"}}]},
        "grants[0].true",
        "unknown key 'true': YAML reads an unquoted 'on' as true, write 'object'",
    ),
    (
        grant(on={"type": "table", "schema": "s", "name": "t"}),
        "grants[0].on",
        "says the same as 'object', which is given too: leave one out",
    ),
    (
        role(valid_until="infinity", password_valid_until="infinity"),
        "roles[0].password_valid_until",
        "says the same as 'valid_until'",
    ),
    # booleans and numbers
    (role(login="yes"), "roles[0].login", "must be true or false, not the text 'yes'; write true or false"),
    (role(login=1), "roles[0].login", "must be true or false, not the number 1; write true or false"),
    (role(login=0), "roles[0].login", "must be true or false"),
    (role(external="on"), "roles[0].external", "must be true or false"),
    (role(superuser=[]), "roles[0].superuser", "must be true or false, not a list"),
    (
        {"memberships": [{"role": "a", "exclusive": "no"}]},
        "memberships[0].exclusive",
        "must be true or false, not the text 'no'",
    ),
    (role(connection_limit=True), "roles[0].connection_limit", "must be a whole number in decimal digits"),
    (role(connection_limit="010"), "roles[0].connection_limit", "must be a whole number in decimal digits"),
    (role(connection_limit="12:30"), "roles[0].connection_limit", "not the text '12:30'"),
    (role(connection_limit="-0"), "roles[0].connection_limit", "must be a whole number"),
    (role(connection_limit=" 5"), "roles[0].connection_limit", "must be a whole number"),
    (role(connection_limit="٣"), "roles[0].connection_limit", "must be a whole number"),
    (role(connection_limit=2.0), "roles[0].connection_limit", "must be a whole number"),
    (role(connection_limit=-2), "roles[0].connection_limit", "must be between -1 and 2147483647, not -2"),
    (role(connection_limit=99999999999), "roles[0].connection_limit", "must be between -1 and 2147483647"),
    # choices
    (
        role(privilege_reconciliation="authoritative"),
        "roles[0].privilege_reconciliation",
        "must be additive where it is given, not 'authoritative'",
    ),
    (
        grant(ensure="Present"),
        "grants[0].ensure",
        "must be one of present, absent, not 'Present'; did you mean 'present'?",
    ),
    (target(type="tabel", schema="s", name="t"), "grants[0].object.type", "not 'tabel'; did you mean 'table'?"),
    (default({"owner": "o"}, on_type="view"), "default_privileges[0].grant[0].on_type", "on table cover views as well"),
    (
        default({"owner": "o", "scope": {"type": "schema"}}),
        "default_privileges[0].scope.type",
        "must be global where it is given, not 'schema'",
    ),
    # valid_until
    (role(valid_until="tomorrow"), "roles[0].valid_until", "'tomorrow' is not a point in time: write ISO 8601"),
    (role(valid_until="2027-01-31"), "roles[0].valid_until", "is not a point in time"),
    (role(valid_until="-infinity"), "roles[0].valid_until", "is not a point in time"),
    (role(valid_until="2027-01-31T10:00:00"), "roles[0].valid_until", "has no time zone"),
    (role(valid_until="2027-02-30T10:00:00Z"), "roles[0].valid_until", "is not a point in time"),
    (role(valid_until="2027-01-31T10:00:00+99"), "roles[0].valid_until", "has an impossible time zone"),
    (role(valid_until="2027-01-31T10:00:00.1234567Z"), "roles[0].valid_until", "is not a point in time"),
    (role(valid_until=20270131), "roles[0].valid_until", "must be text"),
    # external roles
    (role(external=True, login=True), "roles[0].login", "an external role takes no login"),
    (role(external=True, superuser=False), "roles[0].superuser", "an external role takes no superuser"),
    (
        role(external=True, connection_limit=5),
        "roles[0].connection_limit",
        "an external role takes no connection_limit",
    ),
    (role(external=True, valid_until="infinity"), "roles[0].valid_until", "an external role takes no valid_until"),
    (role(external=True, comment="x"), "roles[0].comment", "an external role takes no comment"),
    # declared twice
    (
        {"roles": [{"name": "x"}, {"name": "y"}, {"name": "x"}]},
        "roles[2]",
        "the role 'x' is declared twice: in roles[0] and in roles[2]",
    ),
    (
        {"schemas": [{"name": "s", "owner": "a"}, {"name": "s", "owner": "b"}]},
        "schemas[1]",
        "the schema 's' is declared twice: in schemas[0] and in schemas[1]",
    ),
    (
        {"roles": [{"name": "x"}], "assume_roles": ["x"]},
        "roles[0]",
        "the role 'x' is declared here and stands in assume_roles",
    ),
    # patterns
    ({"role_pattern": "{schema}"}, "role_pattern", "'{schema}' must contain {profile}"),
    ({"role_pattern": "{database}-{profile}"}, "role_pattern", "contains {database}; only {schema} and {profile}"),
    ({"role_pattern": ""}, "role_pattern", "must contain {profile}"),
    ({"schemas": [{"name": "s", "role_pattern": "x"}]}, "schemas[0].role_pattern", "must contain {profile}"),
    ({"scope": {"schemas": ["*"]}}, "scope.schemas[0]", "'*' would match every name: a pattern needs a literal"),
    ({"scope": {"schemas": [""]}}, "scope.schemas[0]", "needs a literal character"),
    ({"scope": {"ignore_roles": ["x*", "?[a-z]*"]}}, "scope.ignore_roles[1]", "needs a literal character"),
    ({"scope": {"ignore_roles": ["[!]a]"]}}, "scope.ignore_roles[0]", "needs a literal character"),
    ({"scope": {"ignore_roles": ["x", "[ab]*"]}}, "scope.ignore_roles[1]", "needs a literal character"),
    # privileges
    (
        grant(privileges=["SELECT", "EXECUTE"]),
        "grants[0].privileges[1]",
        "'EXECUTE' is not a privilege of the type table, which has SELECT, INSERT",
    ),
    (grant(privileges=["USAGE"]), "grants[0].privileges[0]", "is not a privilege of the type table"),
    (grant(privileges=["CREATE"]), "grants[0].privileges[0]", "is not a privilege of the type table"),
    (grant(privileges=[1]), "grants[0].privileges[0]", "must be text"),
    (
        grant(object={"type": "sequence", "schema": "s", "name": "q"}, privileges=["TRUNCATE"]),
        "grants[0].privileges[0]",
        "'TRUNCATE' is not a privilege of the type sequence, which has USAGE, SELECT, UPDATE, ALL",
    ),
    (
        grant(object={"type": "schema", "name": "s"}),
        "grants[0].privileges[0]",
        "'SELECT' is not a privilege of the type schema",
    ),
    (
        default({"owner": "o"}, privileges=["SELECT", "usage"]),
        "default_privileges[0].grant[0].privileges[1]",
        "'usage' is not a privilege of the type table",
    ),
    (
        profile_grant(privileges=["SELECT"]),
        "profiles.editor.grants[0].privileges[0]",
        "is not a privilege of the type schema",
    ),
    # objects
    (target(type="table", name="t"), "grants[0].object.schema", "is required: a table lies in a schema"),
    (target(type="view", schema="s"), "grants[0].object.name", "is required: the view's name, or '*'"),
    (target(type="table", schema="*", name="t"), "grants[0].object.schema", "'*' is only for an object's name"),
    (target(type="schema"), "grants[0].object.name", "is required: the schema's name"),
    (target(type="schema", schema="s", name="s"), "grants[0].object.schema", "a schema does not lie in a schema"),
    (target(type="schema", name="*"), "grants[0].object.name", "'*' is only for objects in a schema"),
    (target(type="database", name="*"), "grants[0].object.name", "'*' is only for objects in a schema"),
    (
        target(type="database", schema="s", name="d"),
        "grants[0].object.schema",
        "a database does not lie in a schema: leave it out",
    ),
    (target(type="function", schema="s", name="f("), "grants[0].object.name", "'f(' is not a routine"),
    (target(type="function", schema="s", name="f)"), "grants[0].object.name", "is not a routine"),
    (target(type="function", schema="s", name="f(int) x"), "grants[0].object.name", "is not a routine"),
    (target(type="function", schema="s", name="f(int)(int)"), "grants[0].object.name", "is not a routine"),
    (target(type="function", schema="s", name="(int)"), "grants[0].object.name", "is not a routine"),
    (target(type="routine", schema="s", name='f("int)'), "grants[0].object.name", "is not a routine"),
    (
        target(type="table", schema="s", name=5),
        "grants[0].object.name",
        "must be text, not the number 5: quote it, or use | string in a template",
    ),
    (target(schema="s", name=5, type="tabel"), "grants[0].object.type", "did you mean 'table'?"),
    (target(type="type", name="t"), "grants[0].object.schema", "is required: a type lies in a schema"),
    (target(type="domain", schema="s"), "grants[0].object.name", "is required: the type's name, or '*'"),
    (
        grant(object={"type": "type", "schema": "s", "name": "t"}),
        "grants[0].privileges[0]",
        "'SELECT' is not a privilege of the type type, which has USAGE, ALL",
    ),
    (
        grant(object={"type": "parameter", "name": "work_mem"}, privileges=["SET", "ALTER"]),
        "grants[0].privileges[1]",
        "'ALTER' is not a privilege of the type parameter, which has SET, ALTER SYSTEM, ALL",
    ),
    (
        grant(object={"type": "large_object", "name": 16}, privileges=["USAGE"]),
        "grants[0].privileges[0]",
        "'USAGE' is not a privilege of the type large_object, which has SELECT, UPDATE, ALL",
    ),
    *(
        case
        for kind in OUTSIDE
        for case in (
            (
                target(type=kind, schema="s", name="1" if kind == "large_object" else "x"),
                "grants[0].object.schema",
                f"a {kind} does not lie in a schema: leave it out",
            ),
            (target(type=kind), "grants[0].object.name", f"is required: the {kind}'s name"),
            (target(type=kind, name="*"), "grants[0].object.name", "'*' is only for objects in a schema"),
            (
                profile_grant(object={"type": kind, "name": "1"}, privileges=["ALL"]),
                "profiles.editor.grants[0].object.type",
                f"a profile's objects lie in its schema, a {kind} does not: write the rule under grants",
            ),
        )
    ),
    *(
        (target(type=kind, name=5), "grants[0].object.name", "must be text, not the number 5")
        for kind in OUTSIDE
        if kind != "large_object"
    ),
    *(
        (target(type=kind, name=LONG), "grants[0].object.name", "is 64 bytes long")
        for kind in OUTSIDE
        if kind != "large_object"
    ),
    (target(type="parameter", name=f"ext.{LONG}"), "grants[0].object.name", "is 64 bytes long"),
    *(
        (target(type="parameter", name=name), "grants[0].object.name", f"{name!r} is not a parameter's name")
        for name in ("a b", "a..b", ".a", "a.", "1a", "a-b", "a.$b", 'a"b', "work_mem = 1")
    ),
    *(
        (
            target(type="large_object", name=name),
            "grants[0].object.name",
            f"{str(name)!r} is not a large object's OID: write a whole number between 1 and 4294967295",
        )
        for name in (0, -1, 4294967296, 2**70, "0", "000", "-1", "+5", "4294967296", "5 ", "1e3", "0x10", "٣", "lo")
    ),
    (target(type="large_object", name=5.0), "grants[0].object.name", "must be text, not the number 5.0"),
    (target(type="large_object", name=True), "grants[0].object.name", "must be text, not the boolean true"),
    (target(type="large_object", name=[5]), "grants[0].object.name", "must be text, not a list"),
    # columns
    (grant(columns=[]), "grants[0].columns", "must not be empty"),
    (grant(columns="a"), "grants[0].columns", "must be a list, not the text 'a'"),
    (grant(columns=[5]), "grants[0].columns[0]", "must be text, not the number 5"),
    (grant(columns=["a", None]), "grants[0].columns[1]", "must not be null"),
    (grant(columns=["a", ""]), "grants[0].columns[1]", "must not be empty"),
    (grant(columns=["a", LONG]), "grants[0].columns[1]", "is 64 bytes long"),
    (grant(columns=["*"]), "grants[0].columns[0]", "'*' is only for an object's name"),
    *(
        (
            grant(object=object_, columns=["a"], privileges=["ALL"]),
            "grants[0].columns",
            f"is only for table, view, materialized_view, not for the type {object_['type']}: leave it out",
        )
        for object_ in (
            {"type": "sequence", "schema": "s", "name": "q"},
            {"type": "function", "schema": "s", "name": "f"},
            {"type": "type", "schema": "s", "name": "t"},
            {"type": "schema", "name": "s"},
            {"type": "database"},
            {"type": "large_object", "name": 5},
        )
    ),
    (
        grant(columns=["a"], privileges=["SELECT", "DELETE"]),
        "grants[0].privileges[1]",
        "'DELETE' is not a privilege of columns, which have SELECT, INSERT, UPDATE, REFERENCES, ALL",
    ),
    (grant(columns=["a"], privileges=["MAINTAIN"]), "grants[0].privileges[0]", "is not a privilege of columns"),
    (grant(columns=["a"], privileges=["USAGE"]), "grants[0].privileges[0]", "is not a privilege of columns"),
    (profile_grant(columns=["a"]), "profiles.editor.grants[0].columns", "is only for table, view, materialized_view"),
    (
        profile_grant(columns=["a"], object={"type": "view", "name": "*"}, privileges=["TRIGGER"]),
        "profiles.editor.grants[0].privileges[0]",
        "'TRIGGER' is not a privilege of columns",
    ),
    # the grant option
    (grant(with_grant_option="yes"), "grants[0].with_grant_option", "must be true or false, not the text 'yes'"),
    (
        grant(with_grant_option=True, role="Public"),
        "grants[0].with_grant_option",
        "PUBLIC cannot have the grant option",
    ),
    (
        grant(with_grant_option=True, ensure="absent"),
        "grants[0].with_grant_option",
        "a rule with ensure: absent gives nothing: leave it out",
    ),
    (
        grant(with_grant_option="True", ensure="absent", role="PUBLIC", columns=["a"]),
        "grants[0].with_grant_option",
        "PUBLIC cannot have the grant option",
    ),
    (
        profile_grant(with_grant_option=True, ensure="absent"),
        "profiles.editor.grants[0].with_grant_option",
        "a rule with ensure: absent gives nothing",
    ),
    (
        default({"owner": "o"}, with_grant_option=True, role="PUBLIC"),
        "default_privileges[0].grant[0].with_grant_option",
        "PUBLIC cannot have the grant option",
    ),
    (
        default({"owner": "o", "schema": "s"}, with_grant_option=True, ensure="absent"),
        "default_privileges[0].grant[0].with_grant_option",
        "a rule with ensure: absent gives nothing",
    ),
    (
        profile(
            default_privileges=[
                {"privileges": ["SELECT"], "on_type": "table", "with_grant_option": True, "ensure": "absent"}
            ]
        ),
        "profiles.editor.default_privileges[0].with_grant_option",
        "a rule with ensure: absent gives nothing",
    ),
    # default privileges
    *(
        (
            default({"owner": "o"}, on_type=kind),
            "default_privileges[0].grant[0].on_type",
            f"a {kind} has no default privileges",
        )
        for kind in ("database", *OUTSIDE)
        if kind != "large_object"
    ),
    (
        default({"owner": "o", "schema": "s"}, on_type="large_object"),
        "default_privileges[0].grant[0].on_type",
        "default privileges on large objects are global, because a large object does not lie in a schema: leave the"
        " schema out",
    ),
    (
        profile(default_privileges=[{"privileges": ["SELECT"], "on_type": "large_object"}]),
        "profiles.editor.default_privileges[0].on_type",
        "because a large object does not lie in a schema: write the rule under default_privileges",
    ),
    (
        default({"owner": "o"}, on_type="domain", privileges=["SELECT"]),
        "default_privileges[0].grant[0].privileges[0]",
        "'SELECT' is not a privilege of the type type, which has USAGE, ALL",
    ),
    *(
        (
            default({"owner": "o", "schema": "s"}, on_type=kind, privileges=[name], role="PUBLIC", ensure="absent"),
            "default_privileges[0].grant[0].ensure",
            "the USAGE that PUBLIC has on every new type cannot be taken away for one schema",
        )
        for kind, name in (("type", "USAGE"), ("domain", "ALL"))
    ),
    (
        default({"owner": "o", "schema": "s"}, on_type="schema", privileges=["USAGE"]),
        "default_privileges[0].grant[0].on_type",
        "default privileges on schemas are global",
    ),
    (
        default(
            {"owner": "o", "schema": "s"}, on_type="function", privileges=["EXECUTE"], role="public", ensure="absent"
        ),
        "default_privileges[0].grant[0].ensure",
        "the EXECUTE that PUBLIC has on every new function cannot be taken away for one schema",
    ),
    (
        default({"owner": "o", "schema": "s"}, on_type="function", privileges=["ALL"], role="PUBLIC", ensure="absent"),
        "default_privileges[0].grant[0].ensure",
        "only the global layer can",
    ),
    (
        default({"owner": "o", "schema": "s", "scope": {"type": "global"}}),
        "default_privileges[0].scope",
        "scope: {type: global} and schema exclude each other",
    ),
    # profiles
    (profile_grant(role="app"), "profiles.editor.grants[0].role", "a profile names no role"),
    (
        profile_grant(object={"type": "schema", "name": "s"}),
        "profiles.editor.grants[0].object.name",
        "the type schema means the schema it is bound to",
    ),
    (
        profile_grant(object={"type": "table", "schema": "s", "name": "*"}, privileges=["SELECT"]),
        "profiles.editor.grants[0].object.schema",
        "a profile's objects lie in the schema that the profile is bound to",
    ),
    (
        profile_grant(object={"type": "table"}, privileges=["SELECT"]),
        "profiles.editor.grants[0].object.name",
        "is required: the table's name, or '*'",
    ),
    (
        profile_grant(object={"type": "database"}, privileges=["CONNECT"]),
        "profiles.editor.grants[0].object.type",
        "a profile's objects lie in its schema, a database does not",
    ),
    (
        profile(default_privileges=[{"privileges": ["USAGE"], "on_type": "schema"}]),
        "profiles.editor.default_privileges[0].on_type",
        "default privileges on schemas are global",
    ),
    (
        profile(default_privileges=[{"privileges": ["SELECT"], "on_type": "table", "role": "x"}]),
        "profiles.editor.default_privileges[0].role",
        "a profile names no role",
    ),
    (
        profile(default_privileges=[{"privileges": ["SELECT"], "on_type": "table", "owner": "x"}]),
        "profiles.editor.default_privileges[0].owner",
        "a profile's default privileges are those of the schema's owner",
    ),
    (
        profile(default_privileges=[{"privileges": ["SELECT"], "on_type": "table", "schema": "x"}]),
        "profiles.editor.default_privileges[0].schema",
        "leave it out",
    ),
    (profile(login="yes"), "profiles.editor.login", "must be true or false"),
]


@pytest.mark.parametrize("raw, path, message", RULES, ids=[f"{rule[1]}-{n}" for n, rule in enumerate(RULES)])
def test_a_mistake_is_one_problem_at_its_place(raw: Dict[str, Any], path: str, message: str) -> None:
    problem = only(raw)
    assert problem.path == path
    assert message in problem.message
    assert problem.file is None
    assert problem.code == "manifest_invalid"


@pytest.mark.parametrize(
    "raw",
    [
        {"retirements": [], "scope": {"roles": []}},
        {"retirements": None, "passwords": None, "roles": [{"name": "a", "password": None, "config": None}]},
        {"grants": None, "memberships": [{"role": "a", "members": None}]},
        {
            "login_host": 5,
            "facts": "whatever",
            "reconciliation_mode": 7,
            "ssl_rootcert": [],
            "_ansible_check_mode": True,
        },
        {},
    ],
)
def test_null_means_omitted_and_other_options_are_not_judged(raw: Dict[str, Any]) -> None:
    load.load(raw)


def test_all_problems_come_at_once_and_in_order() -> None:
    raw = {
        "roles": [{"name": "app", "lgin": True}, {"name": 5}],
        "schemas": [{"owner": "x"}],
        "grants": [
            {"role": "app", "privileges": ["SELECT"], "object": {"type": "table", "name": "t"}},
            {"role": "app", "privileges": ["NOPE"], "object": {"type": "schema", "name": "s"}, "ensure": "gone"},
        ],
    }
    assert sorted(places(raw)) == sorted(
        [
            "roles[0].lgin",
            "roles[1].name",
            "schemas[0].name",
            "grants[0].object.schema",
            "grants[1].privileges[0]",
            "grants[1].ensure",
        ]
    )


def test_a_problem_tells_role_and_object() -> None:
    problem = only(target(type="function", schema="s", name="f("))
    assert (problem.role, problem.object) == ("app", "function s.f(")
    assert only(role(login="yes")).role == "app"


def test_no_secret_is_ever_in_a_message() -> None:
    raw = {
        "roles": [
            {"name": "a", "password": "s3cret-1", "pasword": "s3cret-2", "config": {"x": ["s3cret-3"]}},
            "s3cret-4",
            ["s3cret-5"],
            {"name": {"password": "s3cret-6"}},
        ],
        "passwords": {"a": "s3cret-7"},
        "fingerprint_key": "s3cret-8",
        "unknown": "s3cret-9",
    }
    found = problems(raw)
    assert len(found) > 5
    assert "s3cret" not in repr(found)
    with pytest.raises(ManifestInvalid) as caught:
        load.load({"roles": "s3cret-10"})
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(caught.value.problems)


def test_a_failure_reads_as_one_sentence() -> None:
    with pytest.raises(ManifestInvalid) as caught:
        load.load({"roles": [{"name": 5}, {"name": True}, {"name": ""}]})
    assert str(caught.value).startswith("roles[0].name: must be text")
    assert str(caught.value).endswith("(and 2 more problems, all in 'problems')")


# ---- what is accepted ----------------------------------------------------------------------------------------------


def one_role(**keys: Any) -> RoleEntry:
    return load.load(role(**keys)).roles[0]


def one_grant(**changes: Any) -> GrantEntry:
    return load.load(grant(**changes)).grants[0]


@pytest.mark.parametrize(
    "name", ["PG_mine", "pgloader_pg", "a b", 'q"uote', "dot.ted", "a" * 63, "é" * 31, "*", "100%"]
)
def test_odd_role_names_are_kept_as_they_are(name: str) -> None:
    assert one_role(name=name).name == name


def test_a_predefined_role_can_be_declared_external() -> None:
    assert one_role(name="pg_monitor", external=True).external


@pytest.mark.parametrize(
    "text, value", [("true", True), ("True", True), ("FALSE", False), (True, True), (False, False)]
)
def test_booleans_that_a_template_made_text_of(text: Any, value: bool) -> None:
    assert one_role(login=text).login is value


@pytest.mark.parametrize("given, value", [("20", 20), ("-1", -1), ("0", 0), (0, 0), (-1, -1), (2147483647, 2147483647)])
def test_numbers_that_a_template_made_text_of(given: Any, value: int) -> None:
    assert one_role(connection_limit=given).connection_limit == value


def test_omitted_is_not_false() -> None:
    found = one_role()
    assert (found.login, found.superuser, found.connection_limit, found.comment) == (None, None, None, None)
    assert one_role(comment="").comment == ""


@pytest.mark.parametrize(
    "text, value",
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1970-01-01T00:00+00", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1969-12-31T23:59:59.999999z", -1),
        ("1970-01-01T00:00:00-0130", 5400 * 10**6),
        ("9999-12-31T23:59:59.999999+00:00", 253402300799999999),
        ("infinity", "infinity"),
        ("Infinity", "infinity"),
    ],
)
def test_valid_until_is_a_point_in_time(text: str, value: Any) -> None:
    assert one_role(valid_until=text).valid_until == value
    assert one_role(password_valid_until=text).valid_until == value


def test_privileges_are_canonical_and_merge() -> None:
    database = {"type": "database", "name": "app"}
    found = one_grant(object=database, privileges=["temp", "TEMPORARY", "connect", " Connect "])
    assert found.privileges == {"TEMPORARY", "CONNECT"}
    assert one_grant(privileges=["select", "ALL", "insert"]).privileges == {"ALL"}
    assert one_grant(privileges=["all  privileges"]).privileges == {"ALL"}
    assert one_grant(privileges=["MAINTAIN"]).privileges == {"MAINTAIN"}


@pytest.mark.parametrize("name", ["PUBLIC", "public", "Public"])
def test_public_in_any_case_is_the_pseudo_role(name: str) -> None:
    assert one_grant(role=name).role == "public"


@pytest.mark.parametrize(
    "name", ["f", "f()", "f(integer, numeric(10,2))", '"Odd (name"(int)', "*", "f(VARIADIC text[])"]
)
def test_routines_by_signature_or_bare_name(name: str) -> None:
    found = one_grant(object={"type": "routine", "schema": "s", "name": name}, privileges=["execute"])
    assert found.object == ObjectEntry("function", "s", name)


def test_on_is_object_and_a_database_needs_no_name() -> None:
    raw = {"grants": [{"role": "app", "privileges": ["CONNECT"], "on": {"type": "database"}}]}
    assert load.load(raw).grants[0].object == ObjectEntry("database", None, None)


def test_objects_of_system_schemas_can_be_named() -> None:
    target_ = {"type": "table", "schema": "pg_catalog", "name": "pg_class"}
    assert one_grant(object=target_).object.schema == "pg_catalog"
    assert one_grant(object={"type": "schema", "name": "pg_catalog"}, privileges=["USAGE"]).object.name == "pg_catalog"


def test_a_grant_is_present_unless_it_says_absent() -> None:
    assert one_grant().present
    assert one_grant(ensure="present", with_grant_option=False).present
    assert not one_grant(ensure="absent").present


def test_columns_are_sorted_and_each_once() -> None:
    found = one_grant(columns=["b", "a", "B", "b"], privileges=["update", "SELECT"])
    assert found.columns == ("B", "a", "b")
    assert found.privileges == {"SELECT", "UPDATE"}
    assert one_grant(columns=None).columns == ()
    assert one_grant(columns=["ctid", "a b", "*x"], ensure="absent").columns == ("*x", "a b", "ctid")


@pytest.mark.parametrize("kind", ["table", "view", "materialized_view"])
@pytest.mark.parametrize("name", ["t", "*"])
def test_all_on_columns_is_what_columns_have(kind: str, name: str) -> None:
    target_ = {"type": kind, "schema": "s", "name": name}
    found = one_grant(object=target_, columns=["a"], privileges=["ALL"])
    assert found.privileges == {"SELECT", "INSERT", "UPDATE", "REFERENCES"}
    assert one_grant(object=target_, columns=["a"], privileges=["select", "all privileges"]).privileges == (
        found.privileges
    )
    assert one_grant(object=target_, privileges=["ALL"]).privileges == {"ALL"}


def test_columns_in_profiles() -> None:
    found = load.load(
        profile_grant(object={"type": "table", "name": "*"}, privileges=["ALL"], columns=["b", "a"])
    ).profiles["editor"]
    assert found.grants == (
        GrantEntry(
            None,
            frozenset({"SELECT", "INSERT", "UPDATE", "REFERENCES"}),
            ObjectEntry("table", None, "*"),
            "profiles.editor.grants[0]",
            columns=("a", "b"),
        ),
    )


def test_columns_that_cannot_be_used_do_not_become_the_whole_object() -> None:
    broken = {**grant(columns=[5])["grants"][0], "ensure": "absent"}
    assert places({"grants": [grant()["grants"][0], broken]}) == ["grants[1].columns[0]"]
    assert load.draft(grant(columns=[5])).manifest.grants == ()
    assert load.draft(grant(columns=[])).manifest.grants == ()


@pytest.mark.parametrize("text, value", [(True, True), ("True", True), (False, False), ("false", False), (None, False)])
def test_the_grant_option(text: Any, value: bool) -> None:
    assert one_grant(with_grant_option=text).with_grant_option is value
    assert one_grant(with_grant_option=text, columns=["a"]).with_grant_option is value
    found = load.load(profile_grant(with_grant_option=text)).profiles["editor"].grants[0]
    assert found.with_grant_option is value
    entry = load.load(default({"owner": "o"}, with_grant_option=text)).default_privileges[0].grant[0]
    assert entry.with_grant_option is value
    raw = profile(default_privileges=[{"privileges": ["SELECT"], "on_type": "table", "with_grant_option": text}])
    assert load.load(raw).profiles["editor"].default_privileges[0].with_grant_option is value


def test_no_grant_option_is_fine_for_public_and_for_absent() -> None:
    assert not one_grant(role="PUBLIC", with_grant_option=False).with_grant_option
    assert not one_grant(ensure="absent", with_grant_option=False).with_grant_option


@pytest.mark.parametrize(
    "kind, given, name",
    [
        ("language", "plpgsql", "plpgsql"),
        ("language", "PLperl", "PLperl"),
        ("foreign_data_wrapper", "My wrapper", "My wrapper"),
        ("foreign_server", "a.b", "a.b"),
        ("tablespace", "Fast", "Fast"),
        ("parameter", "Work_Mem", "work_mem"),
        ("parameter", "work_mem", "work_mem"),
        ("parameter", "My.Ext$.Éx_1", "my.ext$.Éx_1"),
        ("parameter", f"{'A' * 63}.{'b' * 63}", f"{'a' * 63}.{'b' * 63}"),
        ("large_object", 16403, "16403"),
        ("large_object", "16403", "16403"),
        ("large_object", "007", "7"),
        ("large_object", 1, "1"),
        ("large_object", "4294967295", "4294967295"),
        ("large_object", 4294967295, "4294967295"),
    ],
)
def test_objects_outside_schemas(kind: str, given: Any, name: str) -> None:
    found = load.load(target(type=kind, name=given)).grants[0]
    assert found.object == ObjectEntry(kind, None, name)


def test_privileges_of_parameters() -> None:
    found = one_grant(object={"type": "parameter", "name": "work_mem"}, privileges=["alter  system", "set"])
    assert found.privileges == {"ALTER SYSTEM", "SET"}


@pytest.mark.parametrize("kind", ["type", "domain"])
@pytest.mark.parametrize("name", ["mood", "*"])
def test_a_domain_is_a_type(kind: str, name: str) -> None:
    found = load.load(target(type=kind, schema="s", name=name)).grants[0]
    assert found.object == ObjectEntry("type", "s", name)
    raw = profile_grant(object={"type": kind, "name": name})
    assert load.load(raw).profiles["editor"].grants[0].object == ObjectEntry("type", None, name)


def test_default_privileges_of_every_kind() -> None:
    for on_type, name, schema in [
        *(("table", "MAINTAIN", schema) for schema in (None, "s")),
        *(("type", "USAGE", schema) for schema in (None, "s")),
        *(("domain", "ALL", schema) for schema in (None, "s")),
        ("schema", "CREATE", None),
        ("large_object", "UPDATE", None),
        ("large_object", "ALL", None),
    ]:
        entry = load.load(default({"owner": "o", "schema": schema}, on_type=on_type, privileges=[name]))
        kind = privileges.canonical_kind(on_type)
        assert entry.default_privileges[0].grant[0].on_type == kind
    assert set(spec.ON_TYPES) == {
        "table",
        "sequence",
        "function",
        "routine",
        "type",
        "domain",
        "schema",
        "large_object",
    }


def test_default_privileges() -> None:
    entry = load.load(default({"owner": "o", "scope": {"type": "global"}}, on_type="routine", privileges=["EXECUTE"]))
    found = entry.default_privileges[0]
    assert (found.owner, found.schema, found.source) == ("o", None, "default_privileges[0]")
    assert found.grant == (
        DefaultGrantEntry("app", frozenset({"EXECUTE"}), "function", "default_privileges[0].grant[0]"),
    )


def test_public_can_get_per_schema_and_lose_globally() -> None:
    for kind, name in (("function", "EXECUTE"), ("type", "USAGE")):
        rule = {"on_type": kind, "privileges": [name], "role": "PUBLIC"}
        load.load(default({"owner": "o", "schema": "s"}, **rule))
        load.load(default({"owner": "o"}, ensure="absent", **rule))
    load.load(default({"owner": "o", "schema": "s"}, role="PUBLIC", ensure="absent"))


def test_memberships() -> None:
    raw = {"memberships": [{"role": "g", "members": [{"name": "m", "admin": "true", "set": False}], "exclusive": True}]}
    found = load.load(raw).memberships[0]
    assert found.exclusive
    place = "memberships[0].members[0]"
    assert found.members == (MemberEntry("m", place, f"{place}.name", admin=True, inherit=None, set=False),)


@pytest.mark.parametrize("key", ["member_of", "members"])
def test_the_other_spellings_of_memberships(key: str) -> None:
    items = ["x", {"name": "y", "admin": True, "inherit": "false", "set": None}]
    found = load.load(role(**{key: items})).roles[0]
    place = f"roles[0].{key}"
    assert getattr(found, key) == (
        MemberEntry("x", f"{place}[0]", f"{place}[0]"),
        MemberEntry("y", f"{place}[1]", f"{place}[1].name", admin=True, inherit=False),
    )
    assert getattr(load.load(role(**{key: []})).roles[0], key) == ()
    assert getattr(load.load(role(**{key: None})).roles[0], key) is None
    assert getattr(load.load(role(external=True, **{key: ["x"]})).roles[0], key) is not None


@pytest.mark.parametrize("key", ["member_of", "members"])
@pytest.mark.parametrize(
    "items, path, words",
    [
        ("x", "", ["must be a list"]),
        ([5], "[0]", ["must be a name, or a dict with name, admin, inherit, set, not the number 5", "quote"]),
        ([True], "[0]", ["true", "quote"]),
        ([["x"]], "[0]", ["must be a name, or a dict"]),
        ([None], "[0]", ["null"]),
        ([""], "[0]", ["empty"]),
        (["x", "PUBLIC"], "[1]", ["PUBLIC"]),
        ([{"admin": True}], "[0].name", ["is required"]),
        ([{"name": 5}], "[0].name", ["must be text"]),
        (["x", {"name": "y", "admin": "yes"}], "[1].admin", ["'yes'", "true or false"]),
        ([{"name": "y", "amdin": True}], "[0].amdin", ["unknown key", "'admin'"]),
        ([{"name": "y", "role": "z"}], "[0].role", ["unknown key"]),
    ],
)
def test_other_spellings_that_are_wrong(key: str, items: Any, path: str, words: List[str]) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        load.load(role(**{key: items}))
    (problem,) = caught.value.problems
    assert problem.path == f"roles[0].{key}{path}"
    assert problem.role == "app"
    for word in words:
        assert word in problem.message


@pytest.mark.parametrize("pattern", ["app_*", "[a]x", "[", "x", "?x?", "[!a]b", "[*]", "[{][{]", "[a]*"])
def test_patterns_with_a_literal_character(pattern: str) -> None:
    assert load.load({"scope": {"schemas": [pattern]}}).scope.schemas == (pattern,)


# ---- the spec itself -----------------------------------------------------------------------------------------------


def walk(options: Dict[str, Any], path: str = "") -> List[Tuple[str, Dict[str, Any]]]:
    found = []
    for name, option in options.items():
        found.append((f"{path}{name}", option))
        found.extend(walk({**option.get("options", {}), **option.get("values", {})}, f"{path}{name}."))
    return found


def test_no_option_of_the_manifest_has_a_default() -> None:
    assert [path for path, option in walk(spec.MANIFEST_OPTIONS) if "default" in option] == []


def test_every_option_is_described_and_says_what_omitting_it_means() -> None:
    for path, option in walk({**spec.MANIFEST_OPTIONS, **spec.RUN_OPTIONS}):
        assert option["description"], path
        if path.startswith("roles.") and not option.get("required") and path != "roles.password_from_env":
            assert "in_effect" in option, path


def test_the_argument_spec_has_only_what_ansible_knows() -> None:
    known = {"type", "elements", "required", "choices", "aliases", "default", "options", "no_log"}
    found = spec.argument_spec()
    assert set(found) == {*spec.MANIFEST_OPTIONS, *spec.RUN_OPTIONS}
    for path, option in walk(found):
        assert set(option) <= known, path
    assert found["grants"]["options"]["object"]["aliases"] == ["on"]
    assert found["roles"]["options"]["password"]["no_log"] is True
    assert found["passwords"]["no_log"] is found["fingerprint_key"]["no_log"] is True


def test_a_long_name_is_not_repeated_in_places_and_messages() -> None:
    name = "x" * 100000
    found = problems({"roles": [{"name": "app", name: 1}, {"name": name, "login": 1}]})
    assert len(found) == 3
    for problem in found:
        assert len(str(problem.path)) < 200 and len(problem.message) < 500
        assert len(json.dumps(problem.as_dict())) < 1500


def test_a_pattern_is_not_longer_than_names_could_need() -> None:
    assert only({"scope": {"ignore_roles": ["[" * 1001]}}).message.endswith(
        "has 1001 characters, a pattern has at most 1000"
    )
    assert load.load({"scope": {"ignore_roles": ["x" * 1000]}}).scope.ignore_roles == ("x" * 1000,)


def test_problems_without_number_end_somewhere() -> None:
    found = problems({"grants": [1] * 20000})
    assert len(found) == 10001
    assert found[9999].message == "must be a dict, not the number 1"
    assert found[10000].message == "there are more problems than these 10000: correct them first"


@pytest.mark.parametrize("name", ["schemas", "roles", "memberships", "grants", "assume_roles", "scope"])
def test_text_in_the_place_of_a_section_is_not_shown(name: str) -> None:
    """A template that went wrong can put a whole manifest there, with its passwords."""
    problem = only({name: "roles: [{name: a, password: hunter22-secret}]"})
    assert problem.path == name
    assert "hunter22" not in problem.message
