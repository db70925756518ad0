# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This fragment is private to the collection: its options may change in any release.

from __future__ import annotations


class ModuleDocFragment:
    """The options by which every module of the collection connects. ``module_utils/connection.py`` has their spec."""

    DOCUMENTATION = r"""
options:
  login_host:
    description:
      - The host that the server runs on. A value that begins with a slash is the directory of a Unix socket.
      - What is not given here or in one of the other connection options falls back to libpq's environment
        (E(PGHOST), E(PGPORT), E(PGUSER), E(PGPASSWORD), E(PGDATABASE), E(PGSERVICE) and so on).
      - Empty connection options and empty C(PG*) variables mean not given.
    type: str
  login_port:
    description:
      - The port that the server listens on.
    type: int
  login_user:
    description:
      - The role to connect as. Without it libpq decides, as it does for C(psql).
    type: str
  login_password:
    description:
      - The password of O(login_user).
    type: str
  login_db:
    description:
      - The database to connect to. It is the one that the run is about.
      - The database must be named, here, in O(connect_params) as C(dbname), by E(PGDATABASE) or by a service.
    type: str
  login_unix_socket:
    description:
      - The directory of the server's Unix socket. It counts when O(login_host) is empty or V(localhost).
    type: str
  ssl_mode:
    description:
      - How the connection is encrypted, and whether the server must prove who it is.
      - Only V(verify-full) protects the connection from somebody between the two ends.
      - Without it libpq decides, which means V(prefer) unless E(PGSSLMODE) says otherwise.
    type: str
    choices:
      - allow
      - disable
      - prefer
      - require
      - verify-ca
      - verify-full
  ca_cert:
    description:
      - The file with the certificates of the authorities that may have signed the server's certificate.
    type: path
    aliases:
      - ssl_rootcert
  ssl_cert:
    description:
      - The file with the client's certificate.
    type: path
  ssl_key:
    description:
      - The file with the key of the client's certificate.
    type: path
  connect_params:
    description:
      - Connection parameters as libpq knows them, for everything that has no option of its own. They win over the
        other options.
      - C(password), C(passfile) and C(sslpassword) are refused here, because Ansible would show them. Use
        O(login_password).
    type: dict
  session_role:
    description:
      - The role to C(SET ROLE) to for the whole run. O(login_user) must be a member of it.
    type: str
"""
