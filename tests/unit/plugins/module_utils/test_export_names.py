# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which names an export may write, and the patterns that keep runs away from the others."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.export.names import escaped, fits, routine_fits
from ansible_collections.pg_access.reconcile.plugins.module_utils.export.roles import written
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.texts import TEXTS
from ansible_collections.pg_access.reconcile.plugins.module_utils.privileges import is_provider_here

NAMES = [
    "PUBLIC",
    "None",
    "a*b",
    "a?",
    "[ab]",
    "a[!x]",
    "]",
    "{{ x }}",
    "{% x",
    "raw_\udce9",
    "\udce9\udcffz",
    "!a",
    "a-z",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_means_one_name(name: str) -> None:
    pattern = escaped(name)
    assert fnmatchcase(name, pattern)
    texts = ["public", "none", "ab", "a", "raw_e", "raw_é", "raw_\ufb01", "raw_\ue123", "raw_\U0001f600", "azb", "x"]
    others = [other for other in [*NAMES, *texts] if other != name]
    assert [other for other in others if fnmatchcase(other, pattern)] == []
    pattern.encode("utf-8")
    assert "{{" not in pattern
    assert "{%" not in pattern
    assert TEXTS["pattern"](pattern) == pattern


@pytest.mark.parametrize(
    ("name", "judge", "fit"),
    [
        ("app", "declared_role", True),
        ("public", "declared_role", False),
        ("NONE", "declared_role", False),
        ("raw_\udce9", "declared_role", False),
        ("a{{b", "declared_role", False),
        ("a{b", "declared_role", True),
        ("x" * 63, "declared_role", True),
        ("*", "column", False),
        ("two\nlines", "column", True),
    ],
)
def test_what_a_manifest_can_hold(name: str, judge: str, fit: bool) -> None:
    assert fits(name, judge) is fit


@pytest.mark.parametrize(
    ("label", "name", "fit"),
    [
        ("f()", "f", True),
        ("f(integer, text)", "f", True),
        ('f("A b"[], s.t)', "f", True),
        ("p(IN integer)", "p", True),
        ("f(x)(integer)", "f(x)", False),
        ('"f"(integer)', '"f"', False),
        (" f()", " f", False),
        ("a b(integer)", "a b", True),
        ("*()", "*", False),
        ("{{f}}()", "{{f}}", False),
    ],
)
def test_which_routines_a_rule_can_name(label: str, name: str, fit: bool) -> None:
    assert routine_fits(label, name) is fit


def test_points_in_time() -> None:
    assert written(0) == "1970-01-01T00:00:00Z"
    assert written(-1) == "1969-12-31T23:59:59.999999Z"
    assert written(253402300800000000) is None
    assert written("-infinity") is None
    for instant in (0, -1, 1234567890123456, -62135596800000000, 253402300799999999):
        assert TEXTS["instant"](written(instant)) == instant


def test_common_names_are_a_services_own_only_where_the_service_is() -> None:
    assert not is_provider_here("pgbouncer", {"pgbouncer", "anon"})
    assert is_provider_here("pgbouncer", {"pgbouncer", "supabase_admin"})
    assert is_provider_here("rds_superuser", {"rds_superuser"})
    assert not is_provider_here("pgloader_pg", {"supabase_admin"})
