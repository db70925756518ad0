# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""What a manifest may contain: the one description behind the argument spec, the validator and the documentation.

An option is written as AnsibleModule wants it, plus keys that only this collection reads:

- ``description``: paragraphs in Ansible's markup. ``in_effect``: what an omitted option means.
- ``judge``: what kind of text it is (``texts.TEXTS``). ``or_number``: a whole number may stand for the text.
  ``minimum``, ``maximum``: of a number. ``nonempty``: an empty list is an error. ``values``: the options of each value
  of a dict with free keys. ``of_dict``: an element of the type raw is a text, or a dict with these options.
- ``settings``: a dict of settings, with text, numbers and booleans as values.
- ``about``: the key of an item that names the role the item is about. ``secret``: no message shows an item that is not
  even a dict, because it may hold a password.
- ``refused``: keys that are wrong here, with what to say. ``choice_notes``: the same for choices.

No option of the manifest has ``default``: then an omitted one could not be told from a given one.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Tuple

from ..privileges import KIND_ALIASES, KINDS

Option = Dict[str, Any]
Options = Dict[str, Option]

DEFAULT_ROLE_PATTERN = "{schema}-{profile}"

#: PostgreSQL keeps a connection limit as a signed 32-bit number.
_INT_MAX = 2147483647


def _with_aliases(kinds: Tuple[str, ...]) -> Tuple[str, ...]:
    return kinds + tuple(alias for alias, kind in KIND_ALIASES.items() if kind in kinds)


#: What ``object.type`` may be.
OBJECT_TYPES = _with_aliases(tuple(KINDS))

#: What ``on_type`` of default privileges may be.
ON_TYPES = _with_aliases(tuple(kind.name for kind in KINDS.values() if kind.default_acl))

_PRIVILEGES: Option = {
    "type": "list",
    "elements": "str",
    "required": True,
    "nonempty": True,
    "description": [
        "Privileges by their SQL names, in any case.",
        "V(ALL) means every privilege that the type has on the connected server's version.",
    ],
}

#: The privileges of a rule that may have columns.
_GRANT_PRIVILEGES: Option = {
    **_PRIVILEGES,
    "description": [
        *_PRIVILEGES["description"],
        "With columns they are SELECT, INSERT, UPDATE and REFERENCES, and V(ALL) means these four.",
    ],
}

_COLUMNS: Option = {
    "type": "list",
    "elements": "str",
    "nonempty": True,
    "judge": "column",
    "in_effect": "the object itself",
    "description": [
        "Columns to give the privileges on, or to take them from, instead of the object itself.",
        "Only for the types V(table), V(view) and V(materialized_view).",
    ],
}

_ENSURE: Option = {
    "type": "str",
    "choices": ["present", "absent"],
    "in_effect": "V(present)",
    "description": [
        "V(absent) takes the privileges away from the role. It never makes anything managed.",
    ],
}

_WITH_GRANT_OPTION: Option = {
    "type": "bool",
    "in_effect": "V(false), enforced",
    "description": [
        "Whether the role may grant the privileges onward.",
        "Of several rules that give a role one privilege on one target, it is enough that one says V(true).",
        "Not for C(PUBLIC), and not with V(absent).",
    ],
}

_OBJECT_TYPE: Option = {
    "type": "str",
    "required": True,
    "choices": list(OBJECT_TYPES),
    "description": [
        "What kind of object.",
        "V(table) covers partitioned and foreign tables as well, V(function) (also written V(routine)) covers"
        " functions, aggregates, window functions and procedures, V(type) (also written V(domain)) covers enums,"
        " domains, composite, range and base types.",
        "V(parameter) needs PostgreSQL 15.",
    ],
}

_OBJECT_NAME: Option = {
    "type": "str",
    "judge": "object_name",
    "or_number": True,
    "description": [
        "The object's name.",
        "V(*) means every object of the type in the schema that exists when the run reads the catalog, except those"
        " that belong to an extension.",
        "A function is written V(name(argument types\\)), or with its bare name where that is not overloaded."
        " A parameter is compared without case. A large object is named by its OID, as a number or in text.",
        "Required, except for the type V(database), where it defaults to the connected database.",
    ],
}

_PROFILE_SCHEMA = "a profile's objects lie in the schema that the profile is bound to: leave it out"
_PROFILE_ROLE = "a profile names no role: its privileges go to the roles generated from it"

#: A profile's object: it lies in the bound schema.
_PROFILE_OBJECT: Option = {
    "type": "dict",
    "required": True,
    "aliases": ["on"],
    "options": {
        "type": _OBJECT_TYPE,
        "name": {
            **_OBJECT_NAME,
            "description": [
                "The object's name, or V(*).",
                "A function is written V(name(argument types\\)), or with its bare name where that is not overloaded.",
                "Required, except for the type V(schema), which means the bound schema and takes none.",
            ],
        },
    },
    "refused": {"schema": _PROFILE_SCHEMA},
    "description": ["The object. It lies in the schema that the profile is bound to."],
}

_ON_TYPE: Option = {
    "type": "str",
    "required": True,
    "choices": list(ON_TYPES),
    "choice_notes": {
        "view": "default privileges on table cover views as well",
        "materialized_view": "default privileges on table cover materialized views as well",
        **{
            name: f"a {name} has no default privileges"
            for name in OBJECT_TYPES
            if name not in (*ON_TYPES, "view", "materialized_view")
        },
    },
    "description": [
        "The kind of objects still to be created.",
        "V(table) covers views and materialized views as well, V(function) (also written V(routine)) every routine,"
        " V(type) (also written V(domain)) every type.",
        "V(schema) and V(large_object) are global only. V(large_object) needs PostgreSQL 18.",
    ],
}

_CONFIG: Option = {
    "type": "dict",
    "settings": True,
    "in_effect": "untouched",
    "description": [
        "Settings of the role in every database, as C(ALTER ROLE ... SET) makes them. A given dict is the whole truth:"
        " settings that it does not name are reset one by one, so V({}) resets them all. Settings for single"
        " databases are never touched.",
        "Names are compared without case. Values are text, numbers or booleans (V(on) and V(off)); a list such as"
        " C(search_path) is one text with commas, its elements as they are stored, in double quotes where they need"
        " them, and is compared element by element.",
    ],
}

PROFILE_OPTIONS: Options = {
    "login": {
        "type": "bool",
        "in_effect": "V(false)",
        "description": ["Whether the generated roles may log in."],
    },
    "inherit": {
        "type": "bool",
        "in_effect": "V(true)",
        "description": ["Whether the generated roles inherit the privileges of roles they are members of."],
    },
    "config": {
        **_CONFIG,
        "description": [
            "Settings of the generated roles, as in O(roles[].config). In values C({schema}) and C({profile}) are"
            " replaced.",
        ],
    },
    "grants": {
        "type": "list",
        "elements": "dict",
        "in_effect": "none",
        "description": ["Privileges of each generated role, in the schema that it is generated for."],
        "refused": {"role": _PROFILE_ROLE},
        "options": {
            "privileges": _GRANT_PRIVILEGES,
            "object": _PROFILE_OBJECT,
            "columns": _COLUMNS,
            "with_grant_option": _WITH_GRANT_OPTION,
            "ensure": _ENSURE,
        },
    },
    "default_privileges": {
        "type": "list",
        "elements": "dict",
        "in_effect": "none",
        "description": [
            "Privileges on objects still to be created in the schema, by the schema's owner, or by C(default_owner)"
            " where the schema names none.",
        ],
        "refused": {
            "role": _PROFILE_ROLE,
            "schema": _PROFILE_SCHEMA,
            "owner": "a profile's default privileges are those of the schema's owner: leave it out",
        },
        "options": {
            "privileges": _PRIVILEGES,
            "on_type": _ON_TYPE,
            "with_grant_option": _WITH_GRANT_OPTION,
            "ensure": _ENSURE,
        },
    },
}

#: What a membership is, beside the role that it is declared at.
_EDGE_OPTIONS: Options = {
    "admin": {
        "type": "bool",
        "in_effect": "V(false), enforced",
        "description": ["Whether the member may give the membership to others."],
    },
    "inherit": {
        "type": "bool",
        "in_effect": "an existing membership keeps its value, a new one gets V(true)",
        "description": [
            "Whether the member has the group's privileges without C(SET ROLE).",
            "A setting of each membership from PostgreSQL 16 on. Before, it must not contradict the member's own"
            " O(roles[].inherit).",
        ],
    },
    "set": {
        "type": "bool",
        "in_effect": "an existing membership keeps its value, a new one gets V(true)",
        "description": [
            "Whether the member may C(SET ROLE) to the group. V(false) needs PostgreSQL 16.",
        ],
    },
}

#: A member, named from the group's side.
MEMBER_OPTIONS: Options = {
    "name": {"type": "str", "required": True, "judge": "role", "description": ["The member."]},
    **_EDGE_OPTIONS,
}

#: A group, named from the member's side.
GROUP_OPTIONS: Options = {
    "name": {"type": "str", "required": True, "judge": "role", "description": ["The group."]},
    **_EDGE_OPTIONS,
}

ROLE_OPTIONS: Options = {
    "name": {
        "type": "str",
        "required": True,
        "judge": "declared_role",
        "description": [
            "The role's name, 1 to 63 bytes, case kept.",
            "Not C(public) or C(none) in any case. A name that begins with C(pg_) needs O(roles[].external=true).",
        ],
    },
    "comment": {
        "type": "str",
        "judge": "comment",
        "in_effect": "untouched",
        "description": ["The comment on the role. An empty text removes it."],
    },
    "login": {
        "type": "bool",
        "in_effect": "V(true) if and only if the role is given a password here",
        "description": [
            "Whether the role may log in.",
            "V(true) without a password is for a login by certificate, LDAP or a cloud's own means, and keeps a stored"
            " password as it is. V(false) with a password keeps the password for later.",
        ],
    },
    "password": {
        "type": "str",
        "judge": "password",
        "no_log": True,
        "in_effect": "untouched, unless this collection set it: then it is taken away, with LOGIN",
        "description": [
            "The role's password, or a verifier as PostgreSQL stores it. Never empty.",
            "Usually from a lookup plugin. O(passwords) and O(roles[].password_from_env) are the other ways.",
            "Which of its forms is sent, and when, O(roles[].password_encryption) and O(update_password) say.",
        ],
    },
    "password_from_env": {
        "type": "str",
        "judge": "environment_name",
        "no_log": False,
        "description": [
            "Names an environment variable, where the module runs, that holds the password. It must not be empty.",
        ],
    },
    "password_encryption": {
        "type": "str",
        "choices": ["scram-sha-256", "server"],
        "no_log": False,
        "in_effect": "V(scram-sha-256)",
        "description": [
            "V(scram-sha-256) sends a SCRAM verifier that is computed where the module runs.",
            "V(server) sends the password itself, for the server to hash by its own C(password_encryption) and to check"
            " by its own rules. Refused over an unencrypted network connection, unless O(allow_cleartext=true).",
        ],
    },
    "password_format": {
        "type": "str",
        "choices": ["auto", "plain", "verifier"],
        "no_log": False,
        "in_effect": "V(auto)",
        "description": [
            "V(auto) sends what is a verifier by PostgreSQL's own rules as it is, refuses what only looks like one, and"
            " takes anything else for a password.",
            "V(plain) says that it is a password whatever it looks like, V(verifier) that it must be a verifier.",
        ],
    },
    "superuser": {
        "type": "bool",
        "in_effect": "V(false)",
        "description": ["Whether the role is a superuser."],
    },
    "createdb": {
        "type": "bool",
        "in_effect": "V(false)",
        "description": ["Whether the role may create databases."],
    },
    "createrole": {
        "type": "bool",
        "in_effect": "V(false)",
        "description": ["Whether the role may create and manage roles."],
    },
    "replication": {
        "type": "bool",
        "in_effect": "V(false)",
        "description": ["Whether the role may replicate."],
    },
    "bypassrls": {
        "type": "bool",
        "in_effect": "V(false)",
        "description": ["Whether row-level security leaves the role alone."],
    },
    "inherit": {
        "type": "bool",
        "in_effect": "V(true)",
        "description": [
            "Whether the role inherits the privileges of roles it is a member of.",
            "Before PostgreSQL 16 this decides for all its memberships. From 16 on each membership has an option"
            " V(inherit) of its own, and the manifest makes it true for a new one whatever the role's attribute is.",
        ],
    },
    "connection_limit": {
        "type": "int",
        "minimum": -1,
        "maximum": _INT_MAX,
        "in_effect": "V(-1)",
        "description": ["How many connections the role may have at once. V(-1) means no limit, V(0) means none."],
    },
    "valid_until": {
        "type": "str",
        "aliases": ["password_valid_until"],
        "judge": "instant",
        "in_effect": "no expiry",
        "description": [
            "When the role's password stops to work: ISO 8601 with a time zone, for example"
            " V(2027-01-31T23:59:59+01:00), or V(infinity).",
            "Compared as a point in time, to the microsecond.",
        ],
    },
    "config": _CONFIG,
    "member_of": {
        "type": "list",
        "elements": "raw",
        "judge": "role",
        "of_dict": GROUP_OPTIONS,
        "in_effect": "the role's memberships are managed from the groups' side only",
        "description": [
            "The groups that the role is a member of: names, or dicts with the keys C(name), C(admin), C(inherit) and"
            " C(set), which mean what they mean in O(memberships[].members).",
            "Every membership of the role is then exactly this list, with what O(memberships) and O(roles[].members)"
            " say about the role: it leaves any other group, also an external, predefined or undeclared one."
            " V([]) means that it is a member of nothing. Memberships in roles of a managed service and of the"
            " bootstrap superuser stay all the same.",
        ],
    },
    "members": {
        "type": "list",
        "elements": "raw",
        "judge": "role",
        "of_dict": MEMBER_OPTIONS,
        "in_effect": "as O(memberships) says",
        "description": [
            "The members of the role, written like O(roles[].member_of).",
            "They are then exactly this list, with what O(memberships) and O(roles[].member_of) say about the role,"
            " also where the role is external. V([]) means that it has none.",
        ],
    },
    "external": {
        "type": "bool",
        "in_effect": "V(false)",
        "description": [
            "Whether someone else creates, alters and drops the role and sets its password. It must exist, and takes no"
            " attributes, no settings, no password and no comment.",
            "Its memberships in managed groups and the privileges granted to it are managed all the same, and it may"
            " have O(roles[].member_of) and O(roles[].members).",
        ],
    },
    "privilege_reconciliation": {
        "type": "str",
        "choices": ["additive"],
        "in_effect": "as O(reconciliation_mode) says",
        "description": [
            "V(additive) keeps the privileges that this role holds and nobody declared: revokes whose grantee is this"
            " role are held back, counted and reported.",
            "It only loosens O(reconciliation_mode). Declared privileges, an explicit V(absent) and memberships"
            " converge all the same.",
        ],
    },
}

#: The role attributes that an external role cannot have.
ROLE_ATTRIBUTES: Tuple[str, ...] = (
    "login",
    "superuser",
    "createdb",
    "createrole",
    "replication",
    "bypassrls",
    "inherit",
    "connection_limit",
    "valid_until",
)

#: What a role's entry says about its password. An external role takes none of it.
PASSWORD_FIELDS: Tuple[str, ...] = ("password", "password_from_env", "password_encryption", "password_format")

#: The sections of a manifest: options of the module, and the keys of a YAML file.
SECTIONS: Options = {
    "default_owner": {
        "type": "str",
        "judge": "role",
        "in_effect": "none",
        "description": [
            "Owner of the schemas that the run creates, and of default privileges that name no owner.",
            "It never moves an existing schema: that takes O(schemas[].owner).",
            "Without it, default privileges that name no owner are an error.",
        ],
    },
    "profiles": {
        "type": "dict",
        "values": PROFILE_OPTIONS,
        "in_effect": "none",
        "description": [
            "Privilege templates by name. Each schema that lists a profile in O(schemas[].profiles) gets a role,"
            " named by O(role_pattern), with the profile's privileges in that schema.",
            "A profile is a dict with the keys C(login), C(inherit), C(config), C(grants) and C(default_privileges),"
            " all optional.",
            "An item of C(grants) looks like one of O(grants), without C(role) and without C(object.schema): a target"
            " of the type V(schema) is the bound schema, every other target lies in it.",
            "An item of C(default_privileges) has C(privileges), C(on_type), C(with_grant_option) and C(ensure). The"
            " owner is the schema's O(schemas[].owner), or O(default_owner) where the schema names none.",
        ],
    },
    "role_pattern": {
        "type": "str",
        "judge": "role_pattern",
        "in_effect": "V({schema}-{profile})",
        "description": [
            "How roles generated from profiles are named. O(schemas[].role_pattern) wins over it.",
            "It must contain C({profile}), and usually C({schema}). Each resulting name must be unique and at most 63"
            " bytes long.",
        ],
    },
    "schemas": {
        "type": "list",
        "elements": "dict",
        "in_effect": "none",
        "description": [
            "Schemas to create when they are missing, to keep owned by their owner, and to bind profiles to.",
            "Schemas are never dropped, and the objects in them never change owner.",
        ],
        "options": {
            "name": {
                "type": "str",
                "required": True,
                "judge": "declared_schema",
                "description": ["The schema's name. Names that begin with C(pg_) are reserved."],
            },
            "owner": {
                "type": "str",
                "judge": "role",
                "in_effect": "untouched, and O(default_owner) for a schema that the run creates",
                "description": ["The role that owns the schema."],
            },
            "profiles": {
                "type": "list",
                "elements": "str",
                "judge": "profile_name",
                "in_effect": "none",
                "description": ["Names of O(profiles) to generate roles from, for this schema."],
            },
            "role_pattern": {
                "type": "str",
                "judge": "role_pattern",
                "in_effect": "as O(role_pattern)",
                "description": ["How this schema's generated roles are named."],
            },
        },
    },
    "roles": {
        "type": "list",
        "elements": "dict",
        "about": "name",
        "secret": True,
        "in_effect": "none",
        "description": [
            "Roles and their attributes.",
            "An omitted attribute means PostgreSQL's default and is enforced, except on external roles and, in"
            " O(reconciliation_mode=additive), on roles that already exist.",
        ],
        "options": ROLE_OPTIONS,
    },
    "memberships": {
        "type": "list",
        "elements": "dict",
        "about": "role",
        "in_effect": "none",
        "description": [
            "Which roles are members of which. O(roles[].member_of) and O(roles[].members) say the same in other words:"
            " the three together are one set of memberships. The same one twice with different options is an error.",
        ],
        "options": {
            "role": {
                "type": "str",
                "required": True,
                "judge": "role",
                "description": ["The group: the role that others are members of."],
            },
            "members": {
                "type": "list",
                "elements": "dict",
                "in_effect": "none",
                "description": ["Its members."],
                "options": MEMBER_OPTIONS,
            },
            "exclusive": {
                "type": "bool",
                "in_effect": "V(false)",
                "description": [
                    "Whether members that nobody declared leave the group even where the group itself is not managed"
                    " (an external, predefined or undeclared role).",
                ],
            },
        },
    },
    "grants": {
        "type": "list",
        "elements": "dict",
        "about": "role",
        "in_effect": "none",
        "description": [
            "Privileges on objects that exist.",
            "Several rules for one object add up. A rule that names an object beats one with V(*), whichever says"
            " V(absent). Two rules of one level that contradict each other are an error.",
        ],
        "options": {
            "role": {
                "type": "str",
                "required": True,
                "judge": "grantee",
                "description": ["The role that holds the privileges. C(PUBLIC), in any case, means everyone."],
            },
            "privileges": _GRANT_PRIVILEGES,
            "object": {
                "type": "dict",
                "required": True,
                "aliases": ["on"],
                "description": [
                    "The object, or with V(*) as its name the objects. C(on) is accepted for it, in playbooks quoted"
                    " (YAML reads an unquoted C(on) as true).",
                ],
                "options": {
                    "type": _OBJECT_TYPE,
                    "schema": {
                        "type": "str",
                        "judge": "schema",
                        "description": [
                            "The schema that the object lies in.",
                            "Required for the types V(table), V(view), V(materialized_view), V(sequence), V(function)"
                            " and V(type). The others lie in no schema and take none.",
                        ],
                    },
                    "name": _OBJECT_NAME,
                },
            },
            "columns": _COLUMNS,
            "with_grant_option": _WITH_GRANT_OPTION,
            "ensure": _ENSURE,
        },
    },
    "default_privileges": {
        "type": "list",
        "elements": "dict",
        "in_effect": "none",
        "description": ["Privileges on objects still to be created."],
        "options": {
            "owner": {
                "type": "str",
                "judge": "role",
                "in_effect": "O(default_owner)",
                "description": ["The role that will create the objects. Its groups do not count, as in PostgreSQL."],
            },
            "schema": {
                "type": "str",
                "judge": "schema",
                "in_effect": "the owner's global default privileges",
                "description": ["The schema that the objects will be created in."],
            },
            "scope": {
                "type": "dict",
                "in_effect": "global without O(default_privileges[].schema)",
                "description": ["C({type: global}) says in words that there is no O(default_privileges[].schema)."],
                "options": {
                    "type": {
                        "type": "str",
                        "required": True,
                        "choices": ["global"],
                        "description": ["Only V(global)."],
                    },
                },
            },
            "grant": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "nonempty": True,
                "about": "role",
                "description": ["Who gets what."],
                "options": {
                    "role": {
                        "type": "str",
                        "required": True,
                        "judge": "grantee",
                        "description": ["The role that gets the privileges. C(PUBLIC), in any case, means everyone."],
                    },
                    "privileges": _PRIVILEGES,
                    "on_type": _ON_TYPE,
                    "with_grant_option": _WITH_GRANT_OPTION,
                    "ensure": {
                        **_ENSURE,
                        "description": [
                            "V(absent) takes the privileges away from the role.",
                            "The EXECUTE on new functions and the USAGE on new types that C(PUBLIC) has by default can"
                            " only be taken away globally: without O(default_privileges[].schema).",
                        ],
                    },
                },
            },
        },
    },
    "retirements": {
        "type": "list",
        "elements": "dict",
        "about": "role",
        "in_effect": "none",
        "description": [
            "Roles to drop, and how to empty them first. One that is already gone is no error.",
            "They are dropped only in the O(reconciliation_mode) V(authoritative); the other modes report them.",
            "What blocks the drop is found before the first statement, in every database of the cluster.",
        ],
        "options": {
            "role": {
                "type": "str",
                "required": True,
                "judge": "role",
                "description": ["The role to drop. It is not declared anywhere else in the manifest."],
            },
            "reassign_owned_to": {
                "type": "str",
                "judge": "role",
                "in_effect": "owned objects block the drop, or go with O(retirements[].drop_owned)",
                "description": [
                    "Who gets what the role owns in the connected database, and the databases and tablespaces that it"
                    " owns (REASSIGN OWNED).",
                ],
            },
            "drop_owned": {
                "type": "bool",
                "in_effect": "V(false)",
                "description": [
                    "Whether the role's privileges, default privileges, policies and user mappings go by DROP OWNED.",
                    "Without O(retirements[].reassign_owned_to) this also destroys the objects that the role owns in"
                    " the connected database. The plan names them.",
                ],
            },
            "terminate_sessions": {
                "type": "bool",
                "in_effect": "V(false): open sessions block the drop",
                "description": [
                    "Whether the role's sessions are ended after the commit. Needs superuser or pg_signal_backend.",
                ],
            },
            "all_databases": {
                "type": "bool",
                "in_effect": "V(false): what the role has in other databases blocks the drop",
                "description": [
                    "Whether the role is emptied in every other database first, in a transaction of its own each.",
                    "Then O(retirements[].reassign_owned_to) has to exist already, and a later failure does not undo"
                    " what was committed there.",
                ],
            },
        },
    },
    "scope": {
        "type": "dict",
        "in_effect": "none",
        "description": [
            "What stays managed even when no rule names it, and what is never touched.",
            "The patterns are shell-style (C(*), C(?), C([abc])), compared with case, and need a literal character.",
        ],
        "options": {
            "roles": {
                "type": "list",
                "elements": "str",
                "judge": "pattern",
                "in_effect": "V([])",
                "description": [
                    "Patterns of roles that the manifest claims: undeclared ones that match are dropped in the"
                    " O(reconciliation_mode) V(authoritative).",
                    "Never dropped this way are roles with SUPERUSER or REPLICATION, roles with open sessions, members"
                    " of a group outside the manifest, the executor, and roles of PostgreSQL or of a managed service.",
                ],
            },
            "schemas": {
                "type": "list",
                "elements": "str",
                "judge": "pattern",
                "in_effect": "V([])",
                "description": ["Patterns of schemas that stay managed after the last rule about them is deleted."],
            },
            "ignore_roles": {
                "type": "list",
                "elements": "str",
                "judge": "pattern",
                "in_effect": "V([])",
                "description": [
                    "Patterns of roles that no statement ever names, not even as a grantee.",
                    "A pattern that matches a role which the manifest names is an error.",
                ],
            },
        },
    },
}

#: Everything about the manifest that the module takes.
MANIFEST_OPTIONS: Options = {
    **SECTIONS,
    "assume_roles": {
        "type": "list",
        "elements": "str",
        "judge": "role",
        "in_effect": "V([])",
        "description": [
            "Names of roles that another run declares, for example the run for another database of the cluster.",
            "They may be named anywhere in the manifest. This run neither creates, alters nor drops them, nor touches a"
            " membership between two of them. In check mode they need not exist.",
        ],
    },
    "manifest_files": {
        "type": "list",
        "elements": "path",
        "nonempty": True,
        "in_effect": "the sections are given as options",
        "description": [
            "YAML files to read the manifest from, as absolute paths where the module runs. Needs PyYAML there.",
            "A file holds the sections as its keys. Several files are composed into one manifest; two files"
            " that declare the same role, schema owner, profile, rule or membership are an error.",
            "Files of pgroles (a manifest, a bundle, a C(PostgresPolicy)) and resources of the Kubernetes operator"
            " postgresql.aboutbits.it are read as well, with the meaning that they have there. What does not carry over"
            " is an error.",
            "Files are not templated and not decrypted.",
            "Not together with a section given as an option.",
        ],
    },
    "manifest_contents": {
        "type": "dict",
        "in_effect": "the sections are given as options",
        "description": [
            "Files that are not where the module runs, each path with the file's content as M(ansible.builtin.slurp)"
            " returns it. The role P(pg_access.reconcile.reconcile#role) hands over files of other tools in this way.",
            "They are read as those in O(manifest_files) are, and composed with the sections that are given as options."
            " A file that a bundle among them names is only read as a part of it. Not together with"
            " O(manifest_files).",
        ],
    },
}

#: How far a run goes, and how it runs.
RUN_OPTIONS: Options = {
    "reconciliation_mode": {
        "type": "str",
        "choices": ["authoritative", "adopt", "additive"],
        "default": "authoritative",
        "description": [
            "How far the run may go.",
            "V(authoritative) makes what the manifest manages exactly what it says.",
            "V(adopt) drops no role, and gives an existing schema another owner only with O(adopt_schema_owners=true).",
            "V(additive) only adds: nobody's access is ever lowered.",
        ],
    },
    "undeclared_grantees": {
        "type": "str",
        "choices": ["revoke", "keep"],
        "in_effect": "V(revoke), with guards",
        "description": [
            "What becomes of privileges that roles which the manifest does not declare hold on managed objects.",
            "V(revoke) revokes them. V(keep) keeps and reports them.",
            "When not given, they are revoked, but the run fails before its first statement when more than 20"
            " undeclared roles would lose something, or when one of them is connected, or owns a view, rule or"
            " C(SECURITY DEFINER) function in the database.",
        ],
    },
    "adopt_schema_owners": {
        "type": "bool",
        "default": False,
        "description": ["Whether O(reconciliation_mode=adopt) may give an existing schema the declared owner."],
    },
    "passwords": {
        "type": "dict",
        "no_log": True,
        "in_effect": "V({})",
        "description": [
            "Passwords by role name, for roles whose entry in O(roles) says C(login: true), so that a manifest in"
            " version control holds none.",
            "Without it those roles keep the passwords that they have.",
            'A role whose name is in a variable is written C("{{ {app_role: secret} }}").',
        ],
    },
    "update_password": {
        "type": "str",
        "choices": ["on_change", "on_drift", "on_create", "always"],
        "default": "on_change",
        "no_log": False,
        "description": [
            "When a declared password is sent. A role that the run creates gets it in any case.",
            "V(on_change) when the password differs from the one that was sent last, by its fingerprint. Needs a"
            " fingerprint key, and no right to read C(pg_authid).",
            "V(on_drift) when the password does not match what the server stores, where the login may read"
            " C(pg_authid); otherwise as V(on_change).",
            "V(on_create) only when the run creates the role.",
            "V(always) with every run, which then is always changed.",
        ],
    },
    "fingerprint_key": {
        "type": "str",
        "no_log": True,
        "in_effect": "the environment variable E(PG_ROLE_RECONCILE_FINGERPRINT_KEY)",
        "description": [
            "The key of the password fingerprints, a secret of at least 16 bytes. Keep it where the passwords are.",
            "With another key every password is sent once more.",
            "Not together with O(fingerprint_key_file).",
        ],
    },
    "fingerprint_key_file": {
        "type": "path",
        "no_log": False,
        "in_effect": "none",
        "description": [
            "A file with the key, as an absolute path where the module runs. Where it is missing it is made once, with"
            " 32 random bytes that only its owner may read, but never in check mode.",
        ],
    },
    "fingerprint_store": {
        "type": "str",
        "choices": ["table", "comment"],
        "default": "table",
        "no_log": False,
        "description": [
            "Where the fingerprints are kept.",
            "V(table) is C(role_reconcile.password_fingerprint) in the connected database, made when it is first"
            " needed.",
            "V(comment) is a last line of each role's comment, for a login that may create nothing.",
        ],
    },
    "allow_cleartext": {
        "type": "bool",
        "default": False,
        "description": [
            "Whether a password with O(roles[].password_encryption=server) may go over an unencrypted network"
            " connection.",
        ],
    },
    "max_drops": {
        "type": "int",
        "in_effect": "no limit",
        "description": [
            "The most roles that the run may drop. A larger plan fails before its first statement; in check mode it is"
            " shown with a warning.",
        ],
    },
    "max_revokes": {
        "type": "int",
        "in_effect": "no limit",
        "description": [
            "The most privileges that the run may revoke, each counted once for each object (and column). A larger plan"
            " fails before its first statement; in check mode it is shown with a warning.",
        ],
    },
    "expected_system_identifier": {
        "type": "str",
        "in_effect": "any cluster",
        "description": [
            "The system identifier of the cluster that this must be, as RV(server.system_identifier) returns it.",
        ],
    },
    "expected_digest": {
        "type": "str",
        "in_effect": "any plan",
        "description": [
            "The RV(plan_digest) of the approved plan. Any other plan is refused, in check mode too; an empty plan"
            " passes. An empty text is an error.",
        ],
    },
    "require_digest": {
        "type": "bool",
        "default": False,
        "description": [
            "Whether a run that is not in check mode fails where there is no O(expected_digest), so that nothing is applied"
            " that nobody has approved. What counts is the check mode of the task itself, whatever the command line says.",
        ],
    },
    "lock_timeout": {
        "type": "int",
        "default": 30,
        "description": [
            "Seconds to wait until no other run of this collection is at work in the database. A single statement waits"
            " at most 3 seconds for a lock of its own.",
        ],
    },
    "rehearse": {
        "type": "bool",
        "default": False,
        "description": [
            "Whether check mode runs the whole plan inside the transaction, verifies it and rolls it back: proof that"
            " the apply would work, at the price of its locks. Without check mode it says nothing.",
        ],
    },
    "statement_timeout": {
        "type": "int",
        "default": 0,
        "description": [
            "Seconds that a single statement may take. V(0) means no limit.",
            "A COMMIT that waits for a synchronous standby for longer is not waited for any more: the transaction is "
            "committed on this server, and a warning says so.",
        ],
    },
    "plan_file": {
        "type": "path",
        "in_effect": "none",
        "description": [
            "A file for the whole plan as a script for C(psql), as an absolute path where the module runs: for a change"
            " ticket, or for a DBA who runs it by hand. Each statement has the rules behind it as a comment. It holds"
            " no password; C(\\password) comments stand in their place.",
            "C({database}) in the path stands for the name of the connected database, whoever named it, with C(%2F) for"
            " C(/) and C(%25) for C(%). So each database has a file of its own.",
            "It is written in check mode too, with mode 0600, and also where the plan is then refused; a plan with"
            " nothing to do makes a script that says so. Writing it counts neither for C(changed) nor for"
            " RV(plan_digest).",
        ],
    },
    "undo_file": {
        "type": "path",
        "in_effect": "none",
        "description": [
            "A file for the way back from the plan, a script like that of O(plan_file). It lists what cannot be undone,"
            " such as passwords. C({database}) means the same as in O(plan_file).",
            "It is written in check mode too. An apply puts it in its place just before the commit; one that fails"
            " leaves the file as it was, and so does a plan with nothing to do.",
        ],
    },
    "report_file": {
        "type": "path",
        "in_effect": "none",
        "description": [
            "A file for the data of a report on everybody's access, as JSON, as an absolute path where the module runs."
            " The filter P(pg_access.reconcile.access_report#filter) makes a page of it, and the role"
            " P(pg_access.reconcile.reconcile#role) does both where it is given C(reconcile_report). C({database})"
            " means the same as in O(plan_file).",
            "It has no limit that AWX sets to results, and no password in it. It is written in check mode too, with"
            " mode 0600, at the end of a run that succeeded; that it cannot be written then is a warning. Writing it"
            " counts neither for C(changed) nor for RV(plan_digest).",
        ],
    },
    "explain": {
        "type": "list",
        "elements": "str",
        "in_effect": "nothing is explained",
        "description": [
            "Names of roles, V(PUBLIC) among them, to be explained: RV(explain) says what each of them has once the"
            " plan is done, and why.",
            "A role that neither exists nor is created by the plan is an error. All schemas are looked at but"
            " PostgreSQL's own, whoever manages them.",
        ],
    },
    "facts": {
        "type": "bool",
        "default": True,
        "description": ["Whether to return RV(ansible_facts.pg_role_reconcile)."],
    },
}

#: The names of the connection options, so that the validator knows them. ``connection.py`` has the options.
CONNECTION_NAMES: FrozenSet[str] = frozenset(
    {
        "login_host",
        "login_port",
        "login_user",
        "login_password",
        "login_db",
        "login_unix_socket",
        "ssl_mode",
        "ca_cert",
        "ssl_rootcert",
        "ssl_cert",
        "ssl_key",
        "connect_params",
        "session_role",
    }
)

_ANSIBLE_KEYS = frozenset({"type", "elements", "required", "choices", "aliases", "no_log", "default"})


def ansible_options(options: Options) -> Dict[str, Any]:
    """Options as AnsibleModule wants them: without the keys that only this collection reads."""
    result: Dict[str, Any] = {}
    for name, option in options.items():
        plain = {key: value for key, value in option.items() if key in _ANSIBLE_KEYS}
        if "options" in option:
            plain["options"] = ansible_options(option["options"])
        result[name] = plain
    return result


def argument_spec() -> Dict[str, Any]:
    """The argument spec of the manifest and run options, for AnsibleModule."""
    return ansible_options({**MANIFEST_OPTIONS, **RUN_OPTIONS})
