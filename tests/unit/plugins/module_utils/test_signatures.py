# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Written signatures of routines, taken apart."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest
from ansible_collections.pg_access.reconcile.plugins.module_utils.signatures import (
    parse_arguments,
    split_signature,
    type_texts,
)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("", ()),
        ("  ", ()),
        ("*", ()),
        ("integer", ("integer",)),
        ("integer, text", ("integer", "text")),
        ("a integer, b text", ("integer", "text")),
        ("IN a integer", ("integer",)),
        ("INOUT a integer", ("integer",)),
        ("in out a integer", ("integer",)),
        ("OUT a integer, text", ("text",)),
        ("VARIADIC a integer[]", ("integer[]",)),
        ("a integer DEFAULT 5, b text = 'x'", ("integer", "text")),
        ("a integer default f(1, 2), b text", ("integer", "text")),
        ("a text DEFAULT 'x, y)', b integer = 'it''s'", ("text", "integer")),
        ("double precision", ("double precision",)),
        ("x double precision", ("double precision",)),
        ("timestamp with time zone", ("timestamp with time zone",)),
        ("at timestamp without time zone", ("timestamp without time zone",)),
        ("timestamp(3) with time zone", ("timestamp(3) with time zone",)),
        ("interval year to month", ("interval year to month",)),
        ("character varying(10)", ("character varying(10)",)),
        ("numeric(10, 2), integer", ("numeric(10,2)", "integer")),
        ("integer ARRAY", ("integer ARRAY",)),
        ("integer[][]", ("integer[][]",)),
        ('"My Schema"."my type"', ('"My Schema"."my type"',)),
        ('"a, b" text', ("text",)),
        ('"say ""hi"""', ('"say ""hi"""',)),
        ("s.t, pg_catalog.int4", ("s.t", "pg_catalog.int4")),
        ("größe", ("größe",)),
        ("t.c%type", ("t.c%type",)),
    ],
)
def test_only_the_input_types_are_left(text: str, types: Tuple[str, ...]) -> None:
    assert parse_arguments(text) == types


@pytest.mark.parametrize(
    "text", ["integer,", ",", "integer)", "(integer", "5", 'in"teger', "a integer, , b text", "'x'"]
)
def test_what_is_no_argument_list_is_none(text: str) -> None:
    assert parse_arguments(text) is None


def test_an_out_mode_is_a_type_where_it_stands_alone() -> None:
    assert parse_arguments("variadic") == ("variadic",)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("f()", ("f", ())),
        ("f(integer)", ("f", ("integer",))),
        ("count(*)", ("count", ())),
        ("odd (name)(integer)", ("odd (name)", ("integer",))),
        ("f", None),
        ("f(integer", None),
        ("f(,)", None),
    ],
)
def test_a_signature_is_a_name_and_types(text: str, first: Optional[Tuple[str, Tuple[str, ...]]]) -> None:
    readings = list(split_signature(text))
    assert (first in readings) if first else readings == []


def test_a_type_modifier_is_no_second_reading_before_the_likely_one() -> None:
    assert next(split_signature("f(numeric(10))")) == ("f", ("numeric(10)",))


def test_every_type_is_asked_for_once() -> None:
    assert type_texts(["f(integer, text)", "g(x text)", "plain"]) == ["integer", "text"]
