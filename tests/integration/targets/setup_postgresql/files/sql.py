#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the statements of a JSON list on standard input; prints the rows of the last one as JSON."""

from __future__ import annotations

import json
import sys

import psycopg

with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    cursor = connection.cursor()
    for statement in json.load(sys.stdin):
        cursor.execute(statement)
    json.dump(cursor.fetchall() if cursor.description else [], sys.stdout, default=str)
