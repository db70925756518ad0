# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The one table of object kinds, and the names of roles that providers make.

Everything else in the collection that needs to know what a kind of object is called, where its ACL
lies, which privileges it has on which server, or which GRANT keyword reaches it, asks here.
"""

from __future__ import annotations

from typing import AbstractSet, FrozenSet, Mapping, Optional, Tuple

from .records import dataclass

#: The oldest and the newest PostgreSQL major version that the collection is tested on.
OLDEST_SERVER = 14
NEWEST_SERVER = 18

#: The pseudo-role PUBLIC in the manifest's and the policy's terms. No role can be declared under this name in any case.
PUBLIC = "public"

#: OID of PUBLIC in an exploded ACL (PostgreSQL documentation, "aclexplode").
PUBLIC_OID = 0

#: OID of the role that initdb made. PostgreSQL gives it BOOTSTRAP_SUPERUSERID, fixed in pg_authid.dat.
BOOTSTRAP_OID = 10

#: The word that stands for every privilege of a kind on the connected server.
ALL = "ALL"


@dataclass(frozen=True)
class Kind:
    """A kind of object that carries an ACL.

    ``name``: what the manifest calls it. ``keyword``: the word after ``ON`` in GRANT. ``all_in_schema``: the word in
    ``ON ALL … IN SCHEMA``. ``acldefault``: the letter that ``acldefault()`` takes. ``default_acl``: the letter in
    ``pg_default_acl.defaclobjtype``, or None where no default privileges exist. ``default_keyword``: the word in ALTER
    DEFAULT PRIVILEGES. ``privileges``: the privileges with the first server version that has each.
    ``column_privileges``: those that can be given on columns. ``in_schema``: objects of this kind lie in a schema.
    ``public``: what PUBLIC holds while the ACL is NULL. ``since``: the first server version that has the kind.
    """

    name: str
    keyword: str
    acldefault: str
    privileges: Mapping[str, int]
    all_in_schema: Optional[str] = None
    default_acl: Optional[str] = None
    default_keyword: Optional[str] = None
    column_privileges: FrozenSet[str] = frozenset()
    in_schema: bool = False
    public: FrozenSet[str] = frozenset()
    since: int = OLDEST_SERVER
    default_since: int = OLDEST_SERVER

    def privileges_on(self, version: int) -> FrozenSet[str]:
        """Every privilege of this kind on a server of this major version: what ALL means there."""
        return frozenset(name for name, since in self.privileges.items() if since <= version)


#: Parameters that pg_settings does not show, or only to superusers, with their contexts and their first versions, as
#: far as a role could have them (GUC_NO_SHOW_ALL, GUC_SUPERUSER_ONLY in guc_tables.c; measured on PostgreSQL 14 to 18).
HIDDEN_SETTINGS: Mapping[str, Tuple[str, int]] = {
    "role": ("user", OLDEST_SERVER),
    "session_authorization": ("user", OLDEST_SERVER),
    "seed": ("user", OLDEST_SERVER),
    "is_superuser": ("internal", OLDEST_SERVER),
    "session_preload_libraries": ("superuser", OLDEST_SERVER),
    "dynamic_library_path": ("superuser", OLDEST_SERVER),
    "extension_control_path": ("superuser", 18),
}


def _since(*names: str, **later: int) -> Mapping[str, int]:
    return {**dict.fromkeys(names, OLDEST_SERVER), **later}


_RELATION = _since("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", MAINTAIN=17)
_COLUMN = frozenset({"SELECT", "INSERT", "UPDATE", "REFERENCES"})


def _relation(name: str, default_acl: Optional[str] = None, default_keyword: Optional[str] = None) -> Kind:
    return Kind(
        name=name,
        keyword="TABLE",
        acldefault="r",
        privileges=_RELATION,
        all_in_schema="TABLES",
        default_acl=default_acl,
        default_keyword=default_keyword,
        column_privileges=_COLUMN,
        in_schema=True,
    )


#: Every kind by its manifest name, in the order in which plans and diffs list them.
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "database",
            "DATABASE",
            "d",
            _since("CONNECT", "CREATE", "TEMPORARY"),
            public=frozenset({"CONNECT", "TEMPORARY"}),
        ),
        Kind(
            "schema",
            "SCHEMA",
            "n",
            _since("USAGE", "CREATE"),
            default_acl="n",
            default_keyword="SCHEMAS",
        ),
        _relation("table", default_acl="r", default_keyword="TABLES"),
        _relation("view"),
        _relation("materialized_view"),
        Kind(
            "sequence",
            "SEQUENCE",
            "s",
            _since("USAGE", "SELECT", "UPDATE"),
            all_in_schema="SEQUENCES",
            default_acl="S",
            default_keyword="SEQUENCES",
            in_schema=True,
        ),
        Kind(
            "function",
            "ROUTINE",
            "f",
            _since("EXECUTE"),
            all_in_schema="ROUTINES",
            default_acl="f",
            default_keyword="ROUTINES",
            in_schema=True,
            public=frozenset({"EXECUTE"}),
        ),
        Kind(
            "type",
            "TYPE",
            "T",
            _since("USAGE"),
            default_acl="T",
            default_keyword="TYPES",
            in_schema=True,
            public=frozenset({"USAGE"}),
        ),
        Kind("language", "LANGUAGE", "l", _since("USAGE"), public=frozenset({"USAGE"})),
        Kind("foreign_data_wrapper", "FOREIGN DATA WRAPPER", "F", _since("USAGE")),
        Kind("foreign_server", "FOREIGN SERVER", "S", _since("USAGE")),
        Kind("tablespace", "TABLESPACE", "t", _since("CREATE")),
        Kind("parameter", "PARAMETER", "p", _since("SET", "ALTER SYSTEM"), since=15),
        Kind(
            "large_object",
            "LARGE OBJECT",
            "L",
            _since("SELECT", "UPDATE"),
            default_acl="L",
            default_keyword="LARGE OBJECTS",
            default_since=18,
        ),
    )
}

#: Other names that the manifest accepts for a kind.
KIND_ALIASES: Mapping[str, str] = {"routine": "function", "domain": "type"}

#: Kinds outside schemas that are looked up by the names that rules give; schemas and databases are read anyway.
NAMED_KINDS: Tuple[str, ...] = (
    "language",
    "foreign_data_wrapper",
    "foreign_server",
    "tablespace",
    "parameter",
    "large_object",
)

#: Kinds whose objects every database of a cluster shares.
SHARED_KINDS: FrozenSet[str] = frozenset({"database", "tablespace", "parameter"})

#: Other spellings of a privilege that SQL accepts.
PRIVILEGE_ALIASES: Mapping[str, str] = {"TEMP": "TEMPORARY"}

#: The kinds that one word of ALTER DEFAULT PRIVILEGES covers: ON TABLES reaches views and materialized views as well.
DEFAULT_COVERS: Mapping[str, Tuple[str, ...]] = {
    "table": ("table", "view", "materialized_view"),
    "sequence": ("sequence",),
    "function": ("function",),
    "type": ("type",),
    "schema": ("schema",),
    "large_object": ("large_object",),
}

#: The kinds by their letter in pg_default_acl.
DEFAULT_ACL_KINDS: Mapping[str, str] = {
    kind.default_acl: kind.name for kind in KINDS.values() if kind.default_acl is not None
}

#: Where this collection keeps fingerprints of passwords, so that no manifest manages it.
STORE_SCHEMA = "role_reconcile"

#: Roles that managed services make and look after. Exact names: a role that merely looks alike is nobody's.
PROVIDER_ROLES: FrozenSet[str] = frozenset(
    {
        # Amazon RDS and Aurora
        "rdsadmin",
        "rdsrepladmin",
        "rdstopmgr",
        "rdswriteforwarduser",
        "rds_ad",
        "rds_extension",
        "rds_iam",
        "rds_password",
        "rds_replication",
        "rds_reserved",
        "rds_superuser",
        # Google Cloud SQL and AlloyDB
        "cloudsqladmin",
        "cloudsqlagent",
        "cloudsqliamgroup",
        "cloudsqliamgroupserviceaccount",
        "cloudsqliamgroupuser",
        "cloudsqliamserviceaccount",
        "cloudsqliamuser",
        "cloudsqlimportexport",
        "cloudsqlinactiveuser",
        "cloudsqlobservabilityadmin",
        "cloudsqlreplica",
        "cloudsqlsuperuser",
        "alloydbadmin",
        "alloydbagent",
        "alloydbexport",
        "alloydbiamgroupuser",
        "alloydbiamuser",
        "alloydbimportexport",
        "alloydbmetadata",
        "alloydbobservability",
        "alloydbreplica",
        "alloydbsqladmin",
        "alloydbsuperuser",
        # Azure Database for PostgreSQL
        "azuresu",
        "azure_pg_admin",
        "azure_superuser",
        # Supabase
        "anon",
        "authenticated",
        "authenticator",
        "dashboard_user",
        "pgbouncer",
        "service_role",
        "supabase_admin",
        "supabase_auth_admin",
        "supabase_etl_admin",
        "supabase_functions_admin",
        "supabase_read_only_user",
        "supabase_realtime_admin",
        "supabase_replication_admin",
        "supabase_storage_admin",
    }
)

#: Those of Supabase that others use as well, and the role by which Supabase is known.
COMMON_NAMES: FrozenSet[str] = frozenset(
    {"anon", "authenticated", "authenticator", "dashboard_user", "pgbouncer", "service_role"}
)
PROVIDER_SIGN: str = "supabase_admin"


def is_predefined(role: str) -> bool:
    """Whether PostgreSQL reserves this role name. ``pgloader_pg`` is an ordinary name; only ``pg_`` at the start is
    not.
    """
    return role.startswith("pg_")


def is_provider(role: str) -> bool:
    """Whether a managed service made this role."""
    return role in PROVIDER_ROLES


def is_provider_here(role: str, present: AbstractSet[str]) -> bool:
    """Whether a managed service made this role in a cluster that has these roles. Some services' names are in use
    everywhere: ``pgbouncer`` is Supabase's own only where Supabase is.
    """
    return role in PROVIDER_ROLES and (role not in COMMON_NAMES or PROVIDER_SIGN in present)


def is_system_schema(schema: str) -> bool:
    """Whether the schema belongs to PostgreSQL itself or to this collection, so that rules on it only touch what they
    name.
    """
    return schema in ("information_schema", STORE_SCHEMA) or schema.startswith("pg_")


def canonical_kind(name: str) -> Optional[str]:
    """The kind's own name for a name or alias, or None where there is no such kind."""
    name = KIND_ALIASES.get(name, name)
    return name if name in KINDS else None


def canonical_privilege(name: str) -> str:
    """The privilege as the catalog spells it: upper case, single spaces, aliases resolved. It is not checked here."""
    word = " ".join(name.upper().split())
    if word == "ALL PRIVILEGES":
        word = ALL
    return PRIVILEGE_ALIASES.get(word, word)
