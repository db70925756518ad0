# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passwords and the fingerprint key come from real lookup plugins, and both rotate there.

``lookups.yml`` has a role for each plugin. A changed password opens the door in place of the old one, a changed key sends
every password once more, and after each of the two the next run has nothing to do.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer
from playbooks import Bench, bench, made_up, say

HERE = Path(__file__).resolve().parent

#: Puts a password and a key where a plugin finds them.
Put = Callable[[str, str], None]


def from_environment(made: Bench) -> Put:
    def put(password: str, key: str) -> None:
        made.environment.update(APP_PASSWORD=password, APP_KEY=key)

    return put


def from_files(made: Bench) -> Put:
    def put(password: str, key: str) -> None:
        # The lookup takes the last line's end away.
        made.write("file/password", password + "\n")
        made.write("file/key", key + "\n")

    return put


def from_vault(made: Bench) -> Put:
    made.environment["ANSIBLE_VAULT_PASSWORD_FILE"] = str(made.write("vault-password", secrets.token_urlsafe(20)))

    def put(password: str, key: str) -> None:
        names = ("--name", "vaulted_password", "--name", "vaulted_key")
        made.write("vaulted.yml", made.command("ansible-vault", "encrypt_string", *names, password, key).stdout)

    return put


@contextmanager
def from_aws(made: Bench) -> Iterator[Put]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _host, port = server.get_host_and_port()
        place = {
            "AWS_ACCESS_KEY_ID": secrets.token_hex(10),
            "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),
            "AWS_REGION": "eu-central-1",
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            # No profile, proxy or instance of this machine has a say.
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": str(made.folder / "no-aws-config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(made.folder / "no-aws-credentials"),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
            made.environment.pop(name, None)
        os.environ.update(place)
        made.environment.update(place)
        client = boto3.client("secretsmanager")
        for name in ("shop/app", "shop/key"):
            client.create_secret(Name=name)

        def put(password: str, key: str) -> None:
            client.put_secret_value(SecretId="shop/app", SecretString=json.dumps({"password": password}))
            client.put_secret_value(SecretId="shop/key", SecretString=key)

        yield put
    finally:
        server.stop()


@contextmanager
def from_pass(made: Bench) -> Iterator[Put]:
    made.path("gnupg").mkdir(mode=0o700)
    made.environment.update(
        GNUPGHOME=str(made.folder / "gnupg"),
        PASSWORD_STORE_DIR=str(made.folder / "store"),
        PATH=made.environment["PATH"] + os.pathsep + made.config["setup_playbooks_pass"],
    )
    try:
        made.command(
            "gpg", "--batch", "--passphrase", "", "--quick-generate-key", "nobody@example.com", "future-default"
        )
        made.command("pass", "init", "nobody@example.com")

        def put(password: str, key: str) -> None:
            for name, secret in (("shop/app", password), ("shop/key", key)):
                made.command("pass", "insert", "--multiline", "--force", name, text=secret + "\n")

        yield put
    finally:
        made.command("gpgconf", "--kill", "gpg-agent", check=False)


def main() -> None:
    with ExitStack() as stack:
        made = stack.enter_context(bench())
        # As the guide recommends. The other target runs without.
        made.environment["ANSIBLE_PIPELINING"] = "true"
        places: dict[str, Put] = {
            "env": from_environment(made),
            "file": from_files(made),
            "vault": from_vault(made),
            "aws": stack.enter_context(from_aws(made)),
        }
        if made.config.get("setup_playbooks_pass"):
            places["pass"] = stack.enter_context(from_pass(made))
        else:
            say("There is no program pass here: community.general.passwordstore is not tested.")
        rotate(made, places)


def rotate(made: Bench, places: Mapping[str, Put]) -> None:
    passwords = {name: made_up(f"password-{name}") for name in places}
    keys = {name: made_up(f"key-{name}") for name in places}
    put(places, passwords, keys)
    run(made, passwords, keys, changed=True)

    old, passwords = passwords, {name: made_up(f"other-{name}") for name in places}
    put(places, passwords, keys)
    made.path("password/password").unlink()
    run(made, passwords, keys, changed=True)
    for role, password in old.items():
        assert not made.logs_in(role, password), f"{role} logs in with the password that it had before"
    run(made, passwords, keys, changed=False)

    keys = {name: made_up(f"other-key-{name}") for name in places}
    put(places, passwords, keys)
    made.path("password/key").unlink()
    run(made, passwords, keys, changed=True)
    run(made, passwords, keys, changed=False)


def put(places: Mapping[str, Put], passwords: Mapping[str, str], keys: Mapping[str, str]) -> None:
    for name, place in places.items():
        place(passwords[name], keys[name])


def run(made: Bench, passwords: dict[str, str], keys: Mapping[str, str], changed: bool) -> None:
    """One run: each task has sent its one password, or none has done anything, and every role can log in."""
    done = made.play(HERE / "lookups.yml", "-e", json.dumps({"with_pass": "pass" in passwords}))
    known = {
        **passwords,
        "vault_too": passwords["vault"],
        "password": made.path("password/password").read_text().rstrip(),
    }
    made.no_secret(done, [*known.values(), *keys.values(), made.path("password/key").read_text().rstrip()])
    for role, password in known.items():
        result = done.results[role]
        assert result["changed"] is changed, (role, result["sql"])
        assert result["summary"]["passwords"] == {"set": int(changed)}, (role, result["summary"])
        told = [statement for statement in result["sql"] if "PASSWORD" in statement]
        assert len(told) == int(changed) and (changed or not result["sql"]), (role, result["sql"])
        assert made.logs_in(role, password), f"{role} cannot log in"
        assert not made.logs_in(role, password + "x"), f"{role} logs in with any password"


if __name__ == "__main__":
    main()
