# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan with every kind of statement, and what its database looks like before and afterwards.

Each kind once, or as often as it can be told apart, because the tests of faults run it again for every statement that it
has.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Any

from harness import Database
from password_support import KEY, scram

OLD, NEW, KEPT, FRESH = "old password of app", "new password of app", "password of keep", "password of fresh"
GONE = "password of gone"
SECRETS = (OLD, NEW, KEPT, FRESH, GONE, KEY)

#: Kinds of objects, each as GRANT names it, with the privilege that the plan gives and takes.
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "database": ("CREATE", "DATABASE {database}", {}),
    "schema": ("USAGE", "SCHEMA s", {"name": "s"}),
    "table": ("SELECT", "TABLE s.t", {"schema": "s", "name": "t"}),
    "view": ("INSERT", "TABLE s.v", {"schema": "s", "name": "v"}),
    "materialized_view": ("TRIGGER", "TABLE s.m", {"schema": "s", "name": "m"}),
    "sequence": ("USAGE", "SEQUENCE s.q", {"schema": "s", "name": "q"}),
    "function": ("EXECUTE", "ROUTINE s.f()", {"schema": "s", "name": "f()"}),
    "type": ("USAGE", "TYPE s.y", {"schema": "s", "name": "y"}),
    "language": ("USAGE", "LANGUAGE plpgsql", {"name": "plpgsql"}),
    "foreign_data_wrapper": ("USAGE", "FOREIGN DATA WRAPPER w", {"name": "w"}),
    "foreign_server": ("USAGE", "FOREIGN SERVER v", {"name": "v"}),
    "tablespace": ("CREATE", "TABLESPACE pg_default", {"name": "pg_default"}),
    "parameter": ("SET", "PARAMETER work_mem", {"name": "work_mem"}),
    "large_object": ("SELECT", "LARGE OBJECT 4711", {"name": "4711"}),
}
#: Kinds that only a superuser owns: another executor needs the grant option.
FOREIGN = ("language", "foreign_data_wrapper", "foreign_server", "tablespace", "parameter")

ROLES = ("o", "o2", "d", "e", "g", "h", "c1", "c2", "app", "keep", "gone")

#: Whatever of it there is.
_REMOVE = """
DO $$ DECLARE role text; roles text[]; BEGIN
    SELECT array_agg(quote_ident(rolname)) INTO roles FROM pg_roles WHERE oid >= 16384;
    PERFORM lo_unlink(oid) FROM pg_largeobject_metadata;
    IF roles IS NOT NULL THEN
        EXECUTE 'ALTER DATABASE ' || quote_ident(current_database()) || ' OWNER TO postgres';
        EXECUTE 'DROP SCHEMA IF EXISTS role_reconcile, s, n, moved, fresh_s CASCADE';
        EXECUTE 'DROP FOREIGN DATA WRAPPER IF EXISTS w CASCADE';
        FOREACH role IN ARRAY roles LOOP
            -- Of several roles at once it stumbles over what one of them took along.
            EXECUTE 'DROP OWNED BY ' || role || ' CASCADE';
        END LOOP;
        EXECUTE 'DROP ROLE ' || array_to_string(roles, ', ');
    END IF;
END $$;
"""


class FaultPlan:
    """The database before the plan, the manifest that makes it, and what can be told about where it is.

    ``executor``: ``superuser``, or ``owner``: a CREATEROLE login that owns the database and may act as most of the
    owners. ``store``: that of the fingerprints.
    """

    def __init__(self, db: Database, executor: str = "superuser", store: str = "table") -> None:
        self.db = db
        self.executor = executor
        self.login = "postgres" if executor == "superuser" else "adm"
        self.kinds = {name: kind for name, kind in KINDS.items() if name != "parameter" or db.version >= 15}
        self.options: dict[str, Any] = {
            "login_user": self.login,
            "fingerprint_key": KEY,
            "fingerprint_store": store,
            "undeclared_grantees": "revoke",
            **self._manifest(),
        }
        self.cluster: str = db.value("SELECT system_identifier::text FROM pg_control_system()")
        self._matching: dict[str, str] = {}
        self._verifiers = {name: scram(text) for name, text in (("app", OLD), ("keep", KEPT), ("gone", GONE))}

    # ---- before

    def reset(self) -> None:
        """Make the state before the plan."""
        self.db.sql(_REMOVE, self._roles(), self._objects())
        for name, text in (("app", OLD), ("keep", KEPT), ("gone", GONE)):
            comment = "before\n" if name == "app" else ""
            line = f"{comment}role_reconcile password fingerprint {self.cluster}:{self.fingerprint(name, text).hex()}"
            self.db.sql(f"COMMENT ON ROLE {name} IS '{line}'")

    def _roles(self) -> str:
        parts = [f"CREATE ROLE {name};" for name in (*ROLES, "stranger", "z", "leaver")]
        parts += [f"ALTER ROLE {name} LOGIN PASSWORD '{verifier}';" for name, verifier in self._verifiers.items()]
        parts += ["ALTER ROLE app SET statement_timeout = '5s';"]
        if self.executor == "owner":
            more = ", INHERIT TRUE, SET TRUE" if self.db.version >= 16 else ""
            parts += ["CREATE ROLE adm LOGIN CREATEROLE;", f"ALTER DATABASE {self.db.name} OWNER TO adm;"]
            parts += [f"GRANT {', '.join((*ROLES, 'leaver'))} TO adm WITH ADMIN OPTION{more};"]
        parts += [f"SET SESSION AUTHORIZATION {self.login};"]
        parts += ["GRANT g TO e; GRANT g TO h WITH ADMIN OPTION; GRANT c1 TO c2;", "RESET SESSION AUTHORIZATION;"]
        return "\n".join(parts)

    def _objects(self) -> str:
        lends = "".join(f"GRANT {word} ON {place} TO adm WITH GRANT OPTION;" for word, place in self._foreign())
        given = "".join(
            f"GRANT {word} ON {place.format(database=self.db.name)} TO e;"
            for word, place, _object in self.kinds.values()
        )
        return f"""
            CREATE SCHEMA s AUTHORIZATION o; CREATE SCHEMA n AUTHORIZATION o; CREATE SCHEMA moved AUTHORIZATION o;
            CREATE FOREIGN DATA WRAPPER w; CREATE SERVER v FOREIGN DATA WRAPPER w;
            SELECT lo_create(4711); ALTER LARGE OBJECT 4711 OWNER TO {self.login};
            SET ROLE o;
            CREATE TABLE s.t (a int, b int); CREATE TABLE s.k (a int, b int); CREATE TABLE n.c (a int);
            CREATE VIEW s.v AS SELECT 1 AS a; CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS a; CREATE SEQUENCE s.q;
            CREATE FUNCTION s.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE s.y AS ENUM ('x');
            RESET ROLE;
            {lends}
            SET SESSION AUTHORIZATION {self.login};
            {given}
            RESET SESSION AUTHORIZATION;
            SET ROLE o;
            GRANT UPDATE (a) ON s.t TO e;
            GRANT INSERT ON s.t TO d WITH GRANT OPTION; GRANT DELETE ON s.t TO d;
            GRANT SELECT ON s.k TO h; GRANT SELECT (a) ON s.k TO h;
            GRANT USAGE ON SCHEMA n TO d; GRANT SELECT ON n.c TO d WITH GRANT OPTION;
            GRANT USAGE ON SCHEMA s TO z; GRANT UPDATE ON s.k TO z WITH GRANT OPTION;
            ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT INSERT ON TABLES TO e;
            ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT USAGE ON SEQUENCES TO d WITH GRANT OPTION;
            ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO e;
            GRANT USAGE, CREATE ON SCHEMA s TO leaver; GRANT SELECT ON s.k TO leaver;
            SET ROLE leaver; CREATE TABLE s.left (a int);
            SET ROLE d; GRANT SELECT ON n.c TO stranger;
            SET ROLE z; GRANT UPDATE ON s.k TO stranger;
            SET ROLE o; REVOKE USAGE ON SCHEMA n FROM d; RESET ROLE;
        """

    def _foreign(self) -> list[tuple[str, str]]:
        if self.executor == "superuser":
            return []
        return [self.kinds[name][:2] for name in FOREIGN if name in self.kinds]

    # ---- the plan

    def _manifest(self) -> dict[str, Any]:
        def rule(role: str, privilege: str, kind: str, place: dict[str, Any], **more: Any) -> dict[str, Any]:
            return {"role": role, "privileges": [privilege], "object": {"type": kind, **place}, **more}

        table, kept, chain = ({"schema": s, "name": n} for s, n in (("s", "t"), ("s", "k"), ("n", "c")))
        option = {"with_grant_option": True}
        grants = [
            *(rule("app", word, kind, place) for kind, (word, _name, place) in self.kinds.items()),
            rule("app", "UPDATE", "table", table, columns=["b"]),
            rule("app", "USAGE", "schema", {"name": "fresh_s"}),
            rule("d", "INSERT", "table", table),
            rule("d", "DELETE", "table", table, **option),
            rule("d", "SELECT", "table", chain, **option),
            rule("h", "SELECT", "table", kept, columns=["a"]),
            rule("z", "UPDATE", "table", kept, **option),
            rule("z", "USAGE", "schema", {"name": "s"}),
        ]
        memberships: list[dict[str, Any]] = [
            {"role": "g", "members": [{"name": "h"}, {"name": "app", "admin": True}]},
            {"role": "c2", "members": [{"name": "c1"}]},
        ]
        roles: list[dict[str, Any]] = [{"name": name} for name in (*ROLES[:-3], "gone", "z")]
        roles += [
            {
                "name": "app",
                "password": NEW,
                "connection_limit": 5,
                "comment": "after",
                "config": {"work_mem": "8MB"},
            },
            {"name": "keep", "password": KEPT},
            {"name": "fresh", "password": FRESH},
        ]
        if self.executor == "owner":
            roles.append({"name": "adm", "external": True})
            admin = {"name": "adm", "admin": True}
            known = {item["role"]: item for item in memberships}
            for name in ROLES:
                if name not in known:
                    memberships.append({"role": name, "members": []})
                    known[name] = memberships[-1]
                known[name]["members"] = [*known[name]["members"], admin]
            for name in FOREIGN:
                if name in self.kinds:
                    word, _name, place = self.kinds[name]
                    grants.append(rule("adm", word, name, place, **option))
        return {
            "roles": roles,
            "schemas": [{"name": name, "owner": "o2" if name == "moved" else "o"} for name in ("s", "n", "moved", "fresh_s")],
            "memberships": memberships,
            "grants": grants,
            "default_privileges": [
                {
                    "owner": "o",
                    "schema": "s",
                    "grant": [
                        {"role": "app", "privileges": ["SELECT"], "on_type": "table"},
                        {"role": "d", "privileges": ["USAGE"], "on_type": "sequence"},
                    ],
                },
                {"owner": "o", "grant": [{"role": "app", "privileges": ["EXECUTE"], "on_type": "function"}]},
            ],
            # Not in all databases: what is done in others is committed before the rest.
            "retirements": [{"role": "leaver", "reassign_owned_to": "o", "drop_owned": True}],
        }  # fmt: skip

    # ---- afterwards

    def fingerprint(self, role: str, password: str) -> bytes:
        """What the specification says the record of a password is."""
        oid = self.db.value("SELECT oid::text FROM pg_roles WHERE rolname = %s", role)
        parts = [part.encode() for part in ("1", self.cluster, oid, role, "scram-sha-256", password)]
        message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.digest(KEY.encode(), message, hashlib.sha256)

    def password(self, verifier: str | None) -> str:
        """Which of the known passwords a verifier is of."""
        if verifier is None:
            return "none"
        if verifier not in self._matching:
            _kind, iterations, salt, _keys = re.split(r"[$:]", verifier, maxsplit=3)
            fits = [text for text in SECRETS if scram(text, int(iterations), base64.b64decode(salt)) == verifier]
            self._matching[verifier] = fits[0] if fits else "unknown"
        return self._matching[verifier]
