# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No secret is in what Ansible prints at -vvv --diff, logs and keeps, whether a run succeeds or fails.

The playbooks try to make the module show one; this looks for clear text, keys, verifiers and fingerprints in all that came
of it, and that the results are exact in spite of it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg
from playbooks import Bench, bench, leak, made_up

HERE = Path(__file__).resolve().parent

#: Code of the failure that each task of output.yml is for.
FAILURES = {
    "misspelt_in_role": "manifest_invalid",
    "misspelt_option": "manifest_invalid",
    "misspelt_passwords": "manifest_invalid",
    "wrong_types": "manifest_invalid",
    "key_with_braces": "manifest_invalid",
    "undeclared": "manifest_invalid",
    "almost_a_verifier": "manifest_invalid",
    "short_key": "manifest_invalid",
    "no_key": "fingerprint_key_missing",
    "object_missing": "object_missing",
    "refused": "server_error",
    "cannot_log_in": "authentication_failed",
    "in_parameters": "manifest_invalid",
}

#: Makes the creation of one schema fail, as a server's own rules may.
REFUSE = """
CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'refused') THEN
    RAISE EXCEPTION 'not here';
  END IF;
END $$
"""


def main() -> None:
    assert leak("it's", "so it''s shown") and leak('a"b', r'{"x": "a\"b"}') and not leak("it's", "it is not")
    with bench() as made:
        names = ("one", "two", "three", "five", "six", "seven", "login", "key", "bad", "worse")
        of = {name: made_up(name) for name in names}
        of["short"] = of["key"][4:17]
        of["like_a_list"] = json.dumps([made_up("in-a-list")])
        of["four"] = verifier(made, of["one"])
        made.write("secrets.json", json.dumps({"of": of}))
        made.environment["OF_THREE"] = of["three"]
        made.sql(f"CREATE ROLE access_admin SUPERUSER LOGIN PASSWORD {quoted(of['login'])}")
        made.sql(REFUSE, "CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION public.refuse()")
        module(made, of)
        role(made, of)


def verifier(made: Bench, password: str) -> str:
    with psycopg.connect(host=made.server.socket_directory, port=made.server.port, user="postgres") as connection:
        return connection.pgconn.encrypt_password(password.encode(), b"four", b"scram-sha-256").decode()


def quoted(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def module(made: Bench, of: dict[str, str]) -> None:
    done = made.play(HERE / "output.yml", program=True)
    made.no_secret(done, list(of.values()))
    results = done.results
    planned, applied, again = results["planned"], results["applied"], results["again"]
    for result in (planned, applied):
        assert result["changed"] and result["summary"]["passwords"] == {"set": 8}, result["summary"]
        assert result["summary"]["roles"] == {"created": 8, "altered": 0, "dropped": 0}, result["summary"]
        assert re.fullmatch("sha256:[0-9a-f]{64}", result["plan_digest"]), result["plan_digest"]
    assert planned["sql"] == applied["sql"] and planned["plan_digest"] == applied["plan_digest"]
    # Passwords that are numbers, SQL words or parts of names mask nothing else.
    for name in ("role12", "table"):
        assert any(f'"{name}"' in statement for statement in applied["sql"]), applied["sql"]
    assert not again["changed"] and not again["sql"], again["sql"]
    told = {"one": of["one"], "two": of["two"], "three": of["three"], "four": of["one"], "five": of["five"]}
    told["like_a_list"] = of["like_a_list"]
    for name, password in {**told, "role12": "12", "table": "SELECT", "six": of["six"], "seven": of["seven"]}.items():
        assert made.logs_in(name, password), f"{name} cannot log in"
    assert results["as_text"]["summary"]["passwords"] == results["in_comment"]["summary"]["passwords"] == {"set": 1}
    for name, code in FAILURES.items():
        result = results[name]
        assert result.get("failed") and result["error_code"] == code, (name, result)
        assert not result["changed"] and result.get("problems") is not None, (name, result)
    problems(results["misspelt_in_role"], "roles[0].pasword", "password")
    problems(results["misspelt_option"], "pasword", "")
    problems(results["misspelt_passwords"], "paswords", "passwords")
    assert made.sql("SELECT rolname FROM pg_roles WHERE rolname IN ('bad', 'worse')") == []


def problems(result: dict[str, Any], path: str, meant: str) -> None:
    """A problem is reported with its path, and names what was probably meant."""
    found = [problem for problem in result["problems"] if problem.get("path") == path]
    assert found and meant in json.dumps(found), result["problems"]


def role(made: Bench, of: dict[str, str]) -> None:
    made.environment["ANSIBLE_VAULT_PASSWORD_FILE"] = str(made.write("vault-password", of["worse"]))
    encrypted = made.command("ansible-vault", "encrypt_string", of["one"]).stdout
    lines = "".join(f"      {line}\n" for line in encrypted.splitlines()[1:])
    roles = f"  - name: role_one\n    password: !vault |\n{lines}  - name: role_two\n    login: true\n"
    made.write("manifest.yml", f"roles:\n{roles}")
    done = made.play(HERE / "role.yml", program=True)
    made.no_secret(done, [*of.values(), made.path("key-file").read_bytes().hex()])
    assert not done.results["second"]["changed"] and not done.results["alone"]["changed"], done.results
    assert done.results["always"]["summary"]["passwords"] == {"set": 1}, done.results["always"]
    for name, password in (("role_one", of["one"]), ("role_two", of["two"]), ("role_three", of["three"])):
        assert made.logs_in(name, password), f"{name} cannot log in"
    failed = made.play(HERE / "role_failures.yml", program=True)
    made.no_secret(failed, list(of.values()))
    assert failed.results == {"misspelt": "manifest_invalid", "types": "manifest_invalid", "refused": "server_error"}


if __name__ == "__main__":
    main()
