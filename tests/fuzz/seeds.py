# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Valid manifests that the fuzzer starts from: between them they have every section and every field of the spec."""

from __future__ import annotations

from typing import Any

import yaml

_TEXTS = (
    """
    default_owner: app_owner
    role_pattern: "{schema}-{profile}"
    assume_roles: [elsewhere]
    profiles:
      editor:
        login: false
        inherit: true
        config: {search_path: "{schema}, public", statement_timeout: 5000, "app.flag": true}
        grants:
          - {privileges: [USAGE], object: {type: schema}}
          - {privileges: [SELECT, insert], object: {type: table, name: "*"}, ensure: present}
          - {privileges: [SELECT], object: {type: table, name: t}, columns: [a], with_grant_option: true}
          - {privileges: [EXECUTE], "on": {type: function, name: "f(int)"}, ensure: absent}
        default_privileges:
          - {privileges: [SELECT], on_type: table, with_grant_option: false}
          - {privileges: [EXECUTE], on_type: routine, ensure: absent}
      reader: {}
    schemas:
      - {name: inv, owner: app_owner, profiles: [editor, reader], role_pattern: "{schema}_{profile}"}
      - {name: Odd Schema, profiles: [editor]}
    roles:
      - {name: app_owner, comment: Owns things, valid_until: infinity, connection_limit: 5}
      - {name: app, login: true, password: Pa55-word-of-app, connection_limit: -1, valid_until: "2027-01-31T23:59:59+01:00"}
      - {name: legacy, external: true, privilege_reconciliation: additive}
    memberships:
      - {role: inv_editor, members: [{name: app, admin: true, inherit: true, set: true}], exclusive: true}
    grants:
      - {role: app, privileges: [CONNECT], object: {type: database}}
      - {role: PUBLIC, privileges: [ALL], object: {type: schema, name: inv}, ensure: absent}
    default_privileges:
      - {owner: app_owner, schema: inv, grant: [{role: app, privileges: [SELECT], on_type: table, with_grant_option: true}]}
    fingerprint_key: k-0123456789abcdef0123
    """,
    """
    roles:
      - name: admin
        login: true
        superuser: false
        createdb: true
        createrole: true
        replication: false
        bypassrls: false
        inherit: false
        config: {search_path: '"$user", public', work_mem: 64MB, log_statement: all, "app.x": 1.5}
        password_encryption: server
        password_format: plain
        password_valid_until: "2030-01-01T00:00:00Z"
      - {name: plain, comment: "", config: {}, members: [admin, {name: app, admin: true, inherit: true, set: true}]}
      - {name: app, login: false, member_of: [{name: admin, admin: false, inherit: true, set: true}], password_from_env: FUZZ_PASSWORD}
      - {name: pg_monitor, external: true, members: [plain]}
    passwords: {admin: Pa55-word-of-admin}
    update_password: always
    scope: {schemas: ["app_*"], ignore_roles: ["tmp_?"]}
    """,
    """
    default_owner: app
    roles: [{name: app}, {name: reader}, {name: "Odd \\"Role\\""}]
    grants:
      - {role: reader, privileges: [ALL], object: {type: view, schema: inv, name: v}, columns: [a, b], with_grant_option: true}
      - {role: reader, privileges: [SELECT], object: {type: large_object, name: 16403}}
      - {role: reader, privileges: [SET, ALTER SYSTEM], object: {type: parameter, name: work_mem}}
      - {role: PUBLIC, privileges: [USAGE], object: {type: domain, schema: inv, name: "*"}}
      - {role: app, privileges: [select], object: {type: materialized_view, schema: inv, name: "*"}}
      - {role: app, privileges: [USAGE, UPDATE], object: {type: sequence, schema: inv, name: q}}
      - {role: app, privileges: [EXECUTE], object: {type: routine, schema: inv, name: "p(int, text[])"}}
      - {role: app, privileges: [USAGE], object: {type: language, name: plpgsql}}
      - {role: app, privileges: [USAGE], object: {type: foreign_data_wrapper, name: w}}
      - {role: app, privileges: [USAGE], object: {type: foreign_server, name: s}}
      - {role: app, privileges: [CREATE], object: {type: tablespace, name: ts}}
      - {role: 'Odd "Role"', privileges: [TEMP], object: {type: database, name: other}, ensure: absent}
    default_privileges:
      - {scope: {type: global}, grant: [{role: app, privileges: [USAGE], on_type: schema}]}
      - {owner: reader, grant: [{role: public, privileges: [EXECUTE], on_type: function, ensure: absent}]}
      - {schema: inv, grant: [{role: reader, privileges: [ALL], on_type: sequence}, {role: app, privileges: [USAGE], on_type: domain}]}
    """,
    """
    roles: [{name: app}, {name: app_owner}]
    retirements:
      - {role: old_batch, reassign_owned_to: app_owner, drop_owned: true, terminate_sessions: true, all_databases: true}
      - {role: older}
    scope: {roles: ["batch_*"], schemas: [inv]}
    """,
)

#: Files of other tools. One that names ``m1.yml`` is read with the file after it.
_OTHERS = (
    """
    auth_providers: [{type: rds_iam, region: eu-west-1}]
    default_owner: app_owner
    role_pattern: "{schema}-{profile}"
    profiles:
      editor:
        login: false
        inherit: true
        config: {search_path: "{schema}"}
        grants:
          - {privileges: [USAGE], object: {type: schema}}
          - {privileges: [SELECT], "on": {type: table, name: "*"}, ensure: present}
        default_privileges: [{privileges: [SELECT], on_type: table, ensure: present}]
    schemas: [{name: inv, owner: app_owner, profiles: [editor], role_pattern: "{schema}_{profile}"}, {name: other}]
    roles:
      - {name: app_owner, comment: Owns things, connection_limit: 5, config: {work_mem: 8MB}, createdb: true}
      - {name: app, login: true, password: {from_env: FUZZ_PASSWORD}, password_valid_until: "2027-01-31T23:59:59Z"}
      - {name: legacy, external: true, preserve_undeclared_grants: true}
    memberships: [{role: inv_editor, members: [{name: app, admin: true, inherit: true}], exclusive: true}]
    grants:
      - {role: app, privileges: [CONNECT], object: {type: database, name: app}}
      - {role: PUBLIC, privileges: [EXECUTE], "on": {type: function, schema: inv, name: "*"}, ensure: absent}
    default_privileges:
      - {owner: app_owner, scope: {type: schema, schema: inv}, grant: [{role: app, privileges: [SELECT], on_type: table}]}
      - {owner: app_owner, scope: {type: global}, grant: [{role: PUBLIC, privileges: [EXECUTE], on_type: function, ensure: absent}]}
      - {schema: other, grant: [{role: app, privileges: [USAGE], on_type: sequence}]}
    retirements: [{role: old, reassign_owned_to: app_owner, drop_owned: true, terminate_sessions: true}]
    """,
    """
    apiVersion: pgroles.io/v1alpha1
    kind: PostgresPolicy
    metadata: {name: shop, namespace: default, labels: {team: a}}
    spec:
      connection: {params: {host: db, port: 5432, dbname: app, username: u, passwordSecret: {name: s, key: k}}}
      interval: 5m
      mode: apply
      suspend: false
      approval: auto
      reconciliationMode: authoritative
      allow_schema_owner_transfers: false
      defaultOwner: app_owner
      profiles: {reader: {grants: [{privileges: [USAGE], object: {type: schema}}]}}
      schemas: [{name: inv, profiles: [reader], rolePattern: "{schema}_{profile}"}]
      roles:
        - {name: app_owner, connectionLimit: 5}
        - {name: app, login: true, password: {secretRef: {name: s}, secretKey: app}}
        - {name: batch, login: true, password: {generate: {length: 32, secretName: b, secretKey: k}}}
        - {name: legacy, external: true, privilegeReconciliation: additive}
      memberships: [{role: inv_reader, members: [{name: app}]}]
    passwords: {batch: Pa55-word-of-batch}
    """,
    """
    shared:
      default_owner: app_owner
      profiles: {reader: {grants: [{privileges: [USAGE], object: {type: schema}}]}}
    sources: [{file: m1.yml}]
    """,
    """
    policy: {name: app}
    scope: {roles: [app_owner, app], schemas: [{name: inv, facets: [owner, bindings]}]}
    role_pattern: "{profile}-of-{schema}"
    roles: [{name: app_owner}, {name: app}]
    schemas: [{name: inv, profiles: [reader]}]
    grants: [{role: app, privileges: [USAGE], "on": {type: schema, name: inv}}]
    """,
    """
    apiVersion: postgresql.aboutbits.it/v1
    kind: Role
    metadata: {name: app, namespace: default, labels: {team: a}}
    spec:
      clusterRef: {name: main, namespace: default}
      name: app
      comment: Order service
      passwordSecretRef: {name: app-secret}
      passwordEncryption: server
      flags: {createdb: true, inherit: false, connectionLimit: 5, validUntil: "2027-01-31T23:59:59Z", inRole: [pg_monitor]}
    """,
    """
    apiVersion: postgresql.aboutbits.it/v1
    kind: Grant
    metadata: {name: app-reads}
    spec:
      clusterRef: {name: main}
      database: app
      role: app
      objectType: table
      schema: inv
      objects: [item, stock]
      privileges: [select, insert]
    """,
    """
    apiVersion: v1
    kind: List
    items:
      - apiVersion: postgresql.aboutbits.it/v1
        kind: Schema
        metadata: {name: inv}
        spec: {clusterRef: {name: main}, database: app, name: inv, reclaimPolicy: Retain}
      - apiVersion: postgresql.aboutbits.it/v1
        kind: DefaultPrivilege
        metadata: {name: app-will-read}
        spec:
          clusterRef: {name: main}
          database: app
          role: app
          owner: app
          objectType: sequence
          schema: inv
          privileges: [usage]
      - {apiVersion: v1, kind: Secret, metadata: {name: app-secret}, stringData: {username: app}}
    """,
)


def others() -> list[dict[str, Any]]:
    """The seeds of other tools' files. The bundle comes before its part."""
    return [yaml.safe_load(text) for text in _OTHERS]


def manifests(sections: Any) -> list[dict[str, Any]]:
    """The seeds, as far as the spec's ``sections`` know what they declare."""
    found = []
    for text in _TEXTS:
        whole = yaml.safe_load(text)
        for name in ("retirements",):
            if name not in sections:
                whole.pop(name, None)
        scope = whole.get("scope", {})
        for name in [name for name in scope if name not in sections["scope"]["options"]]:
            del scope[name]
        found.append(whole)
    return found
