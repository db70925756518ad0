# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Statements that hold a secret, so that no log of the server and no ``pg_stat_statements`` shows it.

``log_statement``, ``log_min_duration_statement`` and ``log_min_error_statement`` write whole statements and all
parameters, and a login that is no superuser cannot stop them. So the server makes a key for this transaction in a
setting, which only the result of a query shows, and results are not logged. What is sent is a DO block with the
statement encrypted by that key. An error in there is raised anew, because its context would quote the statement.
"""

from __future__ import annotations

import hashlib

#: The setting that holds the key until the transaction ends.
KEY_SETTING = "role_reconcile.key"

#: Makes the key. A superuser also switches off, until the transaction ends, what would log or keep statements that run
#: inside the block; from 18 on a warning about an MD5 verifier would quote the statement.
PRELUDE = """
WITH quiet AS (
    SELECT name, value FROM (VALUES
        ('pg_stat_statements.track', 'top'), ('auto_explain.log_min_duration', '-1'), ('log_statement_stats', 'off'),
        ('log_parser_stats', 'off'), ('log_planner_stats', 'off'), ('log_executor_stats', 'off'),
        ('md5_password_warnings', 'off')) AS v(name, value)
    WHERE current_setting(name, true) NOT IN (value, 'none')
      AND (name = 'md5_password_warnings' OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user))
)
SELECT set_config('role_reconcile.key',
                  encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex'), true),
       (SELECT count(set_config(name, value, true)) FROM quiet)
"""

_BLOCK = """DO {quote}
DECLARE
    sealed bytea := '\\x{sealed}';
    key bytea := decode(current_setting('{setting}'), 'hex');
    pad bytea := '';
    state text;
    message text;
    detail text;
    hint text;
BEGIN
    {first};
    FOR i IN 0 .. length(sealed) / 32 LOOP
        pad := pad || sha256(key || int4send({number}) || int4send(i));
    END LOOP;
    FOR i IN 0 .. length(sealed) - 1 LOOP
        sealed := set_byte(sealed, i, get_byte(sealed, i) # get_byte(pad, i));
    END LOOP;
    EXECUTE convert_from(sealed, 'UTF8');
EXCEPTION WHEN OTHERS OR QUERY_CANCELED THEN
    GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, DETAIL = detail, HINT = hint;
END {quote}"""


def seal(key: str, number: int, statement: str, first: str) -> str:
    """The block that runs a statement without showing it. ``number`` must differ for each block of a transaction.

    ``first`` is shown. It takes the locks that the statement needs, because a wait inside would be logged with it.
    """
    secret = statement.encode("utf-8")
    pad = b"".join(
        hashlib.sha256(bytes.fromhex(key) + number.to_bytes(4, "big") + part.to_bytes(4, "big")).digest()
        for part in range(len(secret) // 32 + 1)
    )
    text = bytes(left ^ right for left, right in zip(secret, pad)).hex()
    quote = "$sealed$"
    while quote in first:
        quote = f"{quote[:-1]}_$"
    return _BLOCK.format(quote=quote, sealed=text, setting=KEY_SETTING, first=first, number=number)
