# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Advice for a connection that failed, for causes that the servers of the tests do not have."""

from __future__ import annotations

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.advice import advice, sentences

NO_ENTRY = 'FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "app", database "shop", '


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        ("connection timeout expired", "connection_failed", "Nothing answers there: check login_host, login_port and"),
        (
            "connection is bad: No route to host",
            "connection_failed",
            "the firewalls on the way (AWX's credential: Host",
        ),
        (
            'root certificate file "/root/.postgresql/root.crt" does not exist. Either provide the file, use the system\'s '
            "trusted roots with sslrootcert=system, or change sslmode to disable server certificate verification",
            "connection_failed",
            "Give ca_cert, a file where the module runs, or system",
        ),
        ("SSL error: certificate verify failed", "connection_failed", "Check ca_cert, and that login_host is a name"),
        ('server certificate for "a" does not match host name "b"', "connection_failed", "Check ca_cert, and that"),
        (
            NO_ENTRY + "no encryption",
            "authentication_failed",
            "lets nobody in that way without TLS (AWX's credential: User,",
        ),
        (NO_ENTRY + "SSL encryption", "authentication_failed", "or let pg_hba.conf of the server allow this user"),
        ('role "app" is not permitted to log in', "authentication_failed", "Check login_user, or give the role LOGIN"),
        (
            'Peer authentication failed for user "app"',
            "authentication_failed",
            "Check login_user, login_password and the",
        ),
        ('FATAL: role "app" does not exist', "connection_failed", "Check login_user (AWX's credential: User)."),
        (
            "FATAL: sorry, too many clients already",
            "connection_failed",
            "Run again when the server accepts connections.",
        ),
        (
            "something new",
            "connection_failed",
            "login_db and that the server is running (AWX's credential: Host, Port and",
        ),
    ],
)
def test_each_cause_has_its_advice(message: str, code: str, words: str) -> None:
    found, text = advice(message)
    assert (found, words in text) == (code, True), text
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("one\n\tIs it running?\n", "one. Is it running?"),
        ("failed:\n- host a: refused\n- host b:  refused.", "failed: - host a: refused. - host b: refused."),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_lines_become_sentences(text: str, said: str) -> None:
    assert sentences(text) == said
