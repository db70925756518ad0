# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The edge to Ansible: what it makes of raw arguments, what of them gets out, and the hooks that all of it hangs on.

Runs on whichever ansible-core is installed; the tests are run with the oldest supported release and with a current one.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import pytest
from ansible.module_utils import basic
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common import warnings as ansible_warnings
from ansible_collections.pg_access.reconcile.plugins.module_utils import connection as connections
from ansible_collections.pg_access.reconcile.plugins.module_utils import module as edge
from ansible_collections.pg_access.reconcile.plugins.module_utils.changes import Plan
from ansible_collections.pg_access.reconcile.plugins.module_utils.failure import Failure
from ansible_collections.pg_access.reconcile.plugins.module_utils.manifest.spec import argument_spec
from ansible_collections.pg_access.reconcile.plugins.module_utils.masking import KEY_VARIABLE, MASK
from ansible_collections.pg_access.reconcile.plugins.module_utils.module import Module, run_role_reconcile
from ansible_collections.pg_access.reconcile.plugins.module_utils.problems import Problem
from ansible_collections.pg_access.reconcile.plugins.module_utils.run import Run
from ansible_collections.pg_access.reconcile.plugins.module_utils.transaction import Settings
from ansible_collections.pg_access.reconcile.tests.unit.plugins.module_utils.engine import World

#: From that release on tracebacks and the invocation are in the result only where Ansible is asked for them.
SINCE_2_19 = hasattr(basic, "_ANSIBLE_PROFILE")

HUSH = "hush-hush"
KEY = "key-" + "k" * 16
SPEC = {"login_password": {"type": "str", "no_log": True}, "number": {"type": "int"}, "login_db": {"type": "str"}}


class Call(NamedTuple):
    """What a call of the module gave: all that Ansible could show, and what of it is the result."""

    result: Dict[str, Any]
    output: str
    log: str
    code: int

    @property
    def warnings(self) -> List[str]:
        found = self.result.get("warnings", [])
        return [item if isinstance(item, str) else item["event"]["msg"] for item in found]

    def hides(self, *secrets: str) -> bool:
        """Whether none of these is in anything that gets out, however it is spelt."""
        spelt = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1], secret.replace("'", "''"))}
        spelt |= {json.dumps(form)[1:-1] for form in spelt}
        return not [form for form in spelt if form in self.output or form in self.log]


Caller = Callable[..., Call]


@pytest.fixture(name="call")
def _call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Caller:
    """Calls the module as Ansible does at its most talkative, and ends where Ansible's process would."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    log: List[str] = []
    monkeypatch.setattr(basic, "has_journal", False)
    monkeypatch.setattr(AnsibleModule, "_log_to_syslog", lambda _self, text: log.append(text))

    def call(arguments: Dict[str, Any], run: Callable[[], Any] = run_role_reconcile, **ansible: Any) -> Call:
        talkative: Dict[str, Any] = {"verbosity": 4, "diff": True, **ansible}
        if SINCE_2_19:
            talkative.update(inject_invocation=True, tracebacks_for=["error", "warning"])
        whole = {**arguments, **{f"_ansible_{name}": value for name, value in talkative.items()}}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": whole}).encode())
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        ansible_warnings._global_warnings.clear()
        ansible_warnings._global_deprecations.clear()
        log.clear()
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        shown = capsys.readouterr()
        return Call(json.loads(shown.out), shown.out + shown.err, "\n".join(log), int(ended.value.code or 0))

    return call


class Server:
    """Stands in for the connection and for the run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state = World().state
        self.run = Run(Plan(), (), self.state.server, self.state)
        self.failure: Optional[BaseException] = None
        self.private = True
        self.settings: List[Settings] = []
        self.closed = 0
        self.info = SimpleNamespace(dbname="app")
        monkeypatch.setattr(edge, "require_psycopg", lambda: None)
        monkeypatch.setattr(edge, "connect", lambda _options, _mask: self)
        monkeypatch.setattr(edge, "address", lambda _connection: "app@db:5432")
        monkeypatch.setattr(edge, "is_private", lambda _connection: self.private)
        monkeypatch.setattr(edge, "reconcile", self.reconcile)

    def reconcile(self, _connection: Any, _policy: Any, _options: Any, settings: Settings) -> Run:
        self.settings.append(settings)
        settings.seen(self.state)
        if self.failure is not None:
            raise self.failure
        return self.run

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(name="server")
def _server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def app(**more: Any) -> Dict[str, Any]:
    return {"roles": [{"name": "app", "password": HUSH, **more}], "fingerprint_key": KEY, "login_db": "app"}


def refused(message: str, **more: Any) -> Failure:
    """A server's refusal."""
    problem = Problem(message=message, hint=message, code="server_error")
    return Failure("server_error", message, problems=[problem], sqlstate="XX001", detail=message, hint=message, **more)


# ---- the hooks of ansible-core ---------------------------------------------------------------------------------------


class Recorder(AnsibleModule):  # type: ignore[misc]
    """AnsibleModule that tells in which order it asks the methods that Module overrides."""

    def __init__(self, told: List[str], arguments: Dict[str, Any]) -> None:
        self.told = told
        super().__init__(argument_spec=arguments)

    def _load_params(self) -> None:
        # The set is there already, so that what is put into it now is known to whatever fails later.
        assert self.no_log_values == set()
        self.told.append("_load_params")
        super()._load_params()
        self.no_log_values.add(HUSH)

    def _log_invocation(self) -> None:
        self.told.append("_log_invocation")

    def warn(self, warning: str, **details: Any) -> None:
        self.told.append(f"warn {warning}")
        super().warn(warning, **details)

    def fail_json(self, msg: str, **details: Any) -> None:
        self.told.append("fail_json")
        super().fail_json(msg, **details)


def test_ansible_asks_for_the_parameters_and_logs_the_call_through_methods(call: Caller) -> None:
    told: List[str] = []
    found = call({"login_db": "app"}, lambda: Recorder(told, SPEC).exit_json(said=f"x {HUSH}", number=1))
    assert told == ["_load_params", "_log_invocation"]
    # What _load_params put into no_log_values is masked, in the result and in the log.
    assert found.result["said"] == f"x {MASK}"
    assert found.log == ""


def test_ansible_reads_the_arguments_into_params_for_validation_to_work_on(call: Caller) -> None:
    seen: List[Any] = []

    class Reader(Recorder):
        def _load_params(self) -> None:
            super()._load_params()
            seen.append(dict(self.params))
            self.params["number"] = "7"

    def run() -> None:
        module = Reader([], SPEC)
        module.exit_json(number=module.params["number"])

    assert call({"number": "5"}, run).result["number"] == 7
    assert seen[0]["number"] == "5"


def test_ansible_fails_through_fail_json_before_it_logs_the_call(call: Caller) -> None:
    told: List[str] = []
    found = call({"number": f"x {HUSH}"}, lambda: Recorder(told, SPEC))
    assert told == ["_load_params", "fail_json"]
    assert found.result["failed"] is True
    assert HUSH not in found.result["msg"]


def test_ansible_keeps_no_log_values_as_a_set_and_adds_what_it_finds(call: Caller) -> None:
    def run() -> None:
        module = Recorder([], SPEC)
        assert module.no_log_values == {HUSH, "pass-word"}
        module.no_log_values.discard(HUSH)
        module.exit_json(said=f"{HUSH} pass-word")

    assert call({"login_password": "pass-word"}, run).result["said"] == f"{HUSH} {MASK}"


def test_ansible_masks_its_log_with_no_log_values(call: Caller) -> None:
    def run() -> None:
        module = Recorder([], SPEC)
        module.log(f"x {HUSH}")
        module.exit_json()

    assert call({}, run).log == f"x {MASK}"


def test_ansible_warns_through_warn_and_brings_warnings_into_the_result(call: Caller) -> None:
    told: List[str] = []

    def run() -> None:
        module = Recorder(told, SPEC)
        module.exit_json(warnings=["one"])

    assert "one" in call({}, run).warnings
    assert "warn one" in told


def test_ansible_still_has_every_method_that_module_overrides() -> None:
    for name in ("_load_params", "_log_invocation", "warn", "fail_json", "exit_json"):
        assert name in vars(Module)
        theirs = inspect.signature(vars(AnsibleModule)[name])
        assert all(
            parameter in theirs.parameters or ours.kind is inspect.Parameter.VAR_KEYWORD
            for parameter, ours in inspect.signature(vars(Module)[name]).parameters.items()
        )
    assert "exception" not in inspect.signature(Module.fail_json).parameters


# ---- the six ways in which Ansible itself leaks ------------------------------------------------------------------------


def test_leak_1_passwords_as_json_text_are_known_one_by_one(call: Caller, server: Server) -> None:
    server.failure = refused(f"no {HUSH}, no other-one")
    arguments = {
        **app(login=True),
        "roles": json.dumps([{"name": "app", "login": True}, {"name": "b", "password": "other-one"}]),
        "passwords": json.dumps({"app": HUSH}),
    }
    found = call({**arguments, "roles": json.loads(arguments["roles"])})
    assert found.result["msg"] == f"no {MASK}, no {MASK}"
    assert found.hides(HUSH, "other-one", KEY)
    # The same text for roles is refused, and what is in it gets out no more.
    found = call(arguments)
    assert found.result["error_code"] == "manifest_invalid"
    assert found.hides(HUSH, "other-one", KEY)


def test_leak_2_no_traceback_and_no_text_of_an_exception_gets_out(call: Caller, server: Server) -> None:
    server.failure = RuntimeError(f"boom {HUSH}")
    found = call(app())
    assert found.result["error_code"] == "internal_error"
    assert found.result["msg"].startswith("Internal error: RuntimeError at test_module.py:")
    assert not found.result.get("exception")
    assert "Traceback" not in found.output
    assert found.hides(HUSH, KEY)


def test_leak_2_warnings_hold_no_secret(call: Caller, server: Server, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(0o644)
    arguments = {
        **app(),
        "fingerprint_key": None,
        "fingerprint_key_file": str(key),
        "ca_cert": "/a",
        "ssl_rootcert": "/b",
    }
    found = call(arguments)
    assert [text for text in found.warnings if "0600" in text] == [
        f"app@db:5432: fingerprint_key_file {key} can be read by other users: its mode should be 0600"
    ]
    assert found.hides(HUSH, KEY)


@pytest.mark.parametrize("as_text", [False, True])
def test_contents_of_files_are_shown_nowhere(call: Caller, server: Server, as_text: bool) -> None:
    content = base64.b64encode(f"roles: [{{name: app, login: true, password: {HUSH}}}]".encode()).decode()
    contents: Any = {"/a.yml": content}
    given = json.dumps(contents) if as_text else contents
    found = call({"manifest_contents": given, "fingerprint_key": KEY, "login_db": "app"})
    assert found.hides(HUSH, KEY, content)


@pytest.mark.parametrize("secret", ["back\\slash-x", "tab\tulated-x", "new\nline-x", "it's-x", 'quo"te-x', "a=b c-x"])
def test_leak_3_the_systems_log_shows_names_and_counts(call: Caller, server: Server, secret: str) -> None:
    arguments = {**app(password=secret), "login_password": secret, "connect_params": {"application_name": "x"}}
    found = call({**arguments, "roles": [*arguments["roles"], {"name": "b"}]})
    assert found.code == 0
    assert found.log == (
        "Invoked with (number of values): connect_params 1, fingerprint_key 1, login_db 1, login_password 1, roles 2"
    )
    assert found.hides(secret, KEY)


def test_leak_4_a_misspelt_key_shows_no_value(call: Caller) -> None:
    found = call({"roles": [{"name": "app", "pasword": HUSH, "passwords": {"x": "other-one"}}], "pasword": "third-one"})
    assert found.result["error_code"] == "manifest_invalid"
    assert {problem["path"] for problem in found.result["problems"]} == {
        "pasword",
        "roles[0].pasword",
        "roles[0].passwords",
    }
    assert found.result["invocation"] == {"module_args": {"roles": "1 items"}}
    assert found.hides(HUSH, "other-one", "third-one")


@pytest.mark.parametrize("name", ["password", "passfile", "sslpassword"])
@pytest.mark.parametrize("form", [dict, json.dumps, str, "pairs"])
def test_leak_5_a_password_in_connect_params_is_refused_and_shown_nowhere(
    call: Caller, monkeypatch: pytest.MonkeyPatch, name: str, form: Any
) -> None:
    monkeypatch.setattr(connections, "PSYCOPG_PROBLEM", None)
    given = f"host=db {name}={HUSH}" if form == "pairs" else form({"host": "db", name: HUSH})
    found = call({**app(), "connect_params": given})
    assert found.result["error_code"] == "manifest_invalid"
    assert found.result["problems"][0]["path"] == f"connect_params.{name}"
    assert "login_password" in found.result["msg"]
    shown = found.result["invocation"]["module_args"]["connect_params"]
    assert shown == (["host", name] if form is dict else MASK)
    assert found.hides(HUSH)


@pytest.mark.parametrize("secret", ["it's-x", 'quo"te-x', "back\\slash-x", 'it\'s \\ "x"-x'])
def test_leak_6_a_servers_text_with_the_secret_quoted_is_masked(call: Caller, server: Server, secret: str) -> None:
    for quoted in (
        "'" + secret.replace("'", "''") + "'",
        '"' + secret.replace('"', '""') + '"',
        "E'" + secret.replace("'", "''").replace("\\", "\\\\") + "'",
    ):
        server.failure = refused(f"syntax error at {quoted}", statement="ALTER ROLE")
        found = call(app(password=secret))
        for text in ("msg", "detail", "hint"):
            assert MASK in found.result[text]
        assert MASK in found.result["problems"][0]["message"]
        assert MASK in found.result["problems"][0]["hint"]
        assert quoted[2:-1] not in found.result["msg"]
        assert found.hides(secret, KEY)


# ---- secrets are known before anything can fail ----------------------------------------------------------------------


class Seen(NamedTuple):
    """What a failing module knew."""

    secrets: List[str]
    no_log: List[str]


@pytest.fixture(name="seen")
def _seen(monkeypatch: pytest.MonkeyPatch) -> List[Seen]:
    found: List[Seen] = []
    whole = Module.fail_json

    def fail_json(self: Module, msg: str, **details: Any) -> None:
        found.append(Seen(sorted(self.secrets.texts()), sorted(self.no_log_values)))
        whole(self, msg, **details)

    monkeypatch.setattr(Module, "fail_json", fail_json)
    return found


def test_every_secret_is_known_when_ansibles_own_validation_fails(
    call: Caller, seen: List[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "env-secret")
    monkeypatch.setenv(KEY_VARIABLE, "env-key")
    monkeypatch.setenv("APP_SECRET", "role-secret")
    secrets = {
        "login_password": "one-x",
        "fingerprint_key": "two-x",
        "passwords": '{"app": "three-x"}',
        "roles": [{"name": "app", "password": "four-x", "pasword": "five-x"}, {"password_from_env": "APP_SECRET"}],
        "connect_params": {"password": "six-x"},
    }
    found = call({"login_port": "no number", **secrets})
    expected = {"one-x", "two-x", "three-x", "four-x", "five-x", "six-x", "env-secret", "env-key", "role-secret"}
    assert expected <= set(seen[0].secrets)
    assert expected <= set(seen[0].no_log)
    assert found.hides(*expected)
    assert found.result["error_code"] == "manifest_invalid"


def test_what_ansible_quotes_of_a_wrong_value_is_masked(call: Caller) -> None:
    found = call({"fingerprint_store": f"x {HUSH}", "login_password": HUSH})
    assert found.result["msg"].endswith(f"got: x {MASK}")
    assert found.result["problems"][0]["message"] == found.result["msg"]


def test_the_manifests_problems_come_before_ansibles(call: Caller) -> None:
    found = call({"login_port": "x", "roles": [{"name": "app", "bogus": HUSH}, {"name": 5}]})
    assert [problem["path"] for problem in found.result["problems"]] == ["roles[0].bogus", "roles[1].name"]
    assert found.hides(HUSH)


def test_a_files_secrets_are_known_before_it_is_judged(call: Caller, server: Server, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    file = tmp_path / "access.yml"
    file.write_text(f"roles:\n  - {{name: app, password: {HUSH}}}\n")
    server.failure = refused(f"no {HUSH}")
    found = call({"manifest_files": [str(file)], "fingerprint_key": KEY, "login_db": "app"})
    assert found.result["msg"] == f"no {MASK}"
    assert found.hides(HUSH)
    file.write_text(f"roles:\n  - {{name: app, password: {HUSH}, bogus: 1}}\n")
    assert call({"manifest_files": [str(file)], "login_db": "app"}).hides(HUSH)


def test_a_fault_before_there_is_a_module_shows_nothing_either(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: Any) -> None:
        raise ValueError(f"boom {HUSH}")

    monkeypatch.setattr(edge, "manifest_to_policy", broken)
    found = call({"login_port": "x", **app()})
    assert (found.code, found.result["failed"], found.result["error_code"]) == (1, True, "internal_error")
    assert found.result["changed"] is False
    assert "Traceback" not in found.output
    assert found.hides(HUSH, KEY)


# ---- raw arguments ---------------------------------------------------------------------------------------------------


def test_what_was_imported_is_no_work_for_the_garbage_collector(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: List[bool] = []
    monkeypatch.setattr("gc.freeze", lambda: asked.append(True))

    def work() -> None:
        Module(argument_spec=SPEC).exit_json()

    assert call({"login_db": "app"}, work).code == 0
    assert asked == [True]


def test_the_raw_arguments_stay_as_they_were_given(call: Caller) -> None:
    given = {"number": "5", "login_db": "", "login_password": "x-secret"}
    kept: List[Any] = []

    def run() -> None:
        module = Module(argument_spec=SPEC)
        kept.extend([module.raw, dict(module.params)])
        module.params["login_password"] = "changed"
        kept.append(dict(module.raw))
        module.exit_json()

    call(given, run)
    # An empty connection option is not given; Ansible's own keys are not arguments.
    assert kept[0] == kept[2] == {"number": "5", "login_password": "x-secret"}
    assert kept[1]["number"] == 5
    assert kept[1]["login_db"] is None


# ---- the invocation --------------------------------------------------------------------------------------------------


def test_the_invocation_shows_how_the_module_was_called_without_a_value_that_matters(
    call: Caller, server: Server
) -> None:
    arguments = {
        **app(login=True),
        "login_password": "pass-one",
        "connect_params": {"sslcrl": "/x", "application_name": "y"},
        "passwords": None,
        "update_password": "on_drift",
        "grants": [],
    }
    found = call(arguments)
    assert found.result["invocation"] == {
        "module_args": {
            "roles": "1 items",
            "grants": "0 items",
            "fingerprint_key": MASK,
            "login_password": MASK,
            "login_db": "app",
            "connect_params": ["application_name", "sslcrl"],
            "passwords": None,
            "update_password": "on_drift",
        }
    }
    found = call({**arguments, "roles": [{"name": "app", "login": True}], "passwords": {"app": HUSH}})
    assert found.result["invocation"]["module_args"]["passwords"] == {"app": MASK}
    assert found.hides(HUSH, KEY, "pass-one")
    server.failure = refused("no")
    assert call(arguments).result["invocation"]["module_args"]["login_password"] == MASK


# ---- what stays exact ------------------------------------------------------------------------------------------------


def ran(server: Server, *sql: str, warnings: Any = ()) -> None:
    server.run = replace(server.run, sql=tuple(sql), warnings=tuple(warnings))


@pytest.mark.parametrize("secret", ["1", "17", "app", "False", "postgres", "ALTER", "sha256", "7000"])
def test_a_secret_that_occurs_in_the_result_masks_nothing_of_it(call: Caller, server: Server, secret: str) -> None:
    ran(server, 'ALTER ROLE "app"')
    plain = call(app()).result
    found = call(app(password=secret))
    for name in ("changed", "sql", "summary", "server", "plan_digest", "withheld", "ansible_facts", "diff"):
        assert found.result[name] == plain[name]
    (warning,) = found.warnings
    assert warning.startswith("app@db:5432: the password of role app occurs in what the result says anyway")


def test_a_none_in_a_failure_stays_none(call: Caller) -> None:
    found = call({"roles": [{"name": "app", "password": "None", "bogus": 1}]})
    assert found.result["problems"][0]["file"] is None
    assert found.result["problems"][0]["hint"] is None


def test_the_warning_names_owners_never_secrets_and_not_too_many(call: Caller, server: Server) -> None:
    ran(server, "ALTER ROLE", "GRANT", "REVOKE", "DROP")
    secrets = {"a": "ALTER", "b": "GRANT", "c": "REVOKE", "d": "DROP"}
    roles = [{"name": name, "password": secret} for name, secret in secrets.items()]
    (warning,) = call({**app(), "roles": roles}).warnings
    owners = ", ".join(f"the password of role {name}" for name in "abc")
    assert f"{owners} and 1 more occur in what" in warning
    assert not [secret for secret in secrets.values() if secret in warning]
    (warning,) = call({**app(), "roles": roles[:3]}).warnings
    assert f"{owners} occur in what" in warning
    assert "more" not in warning


def test_a_secret_that_occurs_only_in_a_warning_leaves_the_warning_as_it_is(call: Caller, server: Server) -> None:
    ran(server, warnings=["role zebra loses LOGIN"])
    found = call(app(password="zebra"))
    assert "app@db:5432: role zebra loses LOGIN" in found.warnings
    assert len(found.warnings) == 2


def test_an_ordinary_secret_is_searched_for_to_the_end(call: Caller, server: Server) -> None:
    kept: List[Module] = []
    whole = Module._stay_exact

    def stay_exact(self: Module, result: Any) -> None:
        whole(self, result)
        kept.append(self)

    server.failure = refused("no")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Module, "_stay_exact", stay_exact)
        found = call({**app(), "login_password": "app"})
    assert {HUSH, KEY} <= kept[0].no_log_values
    assert "app" not in kept[0].no_log_values
    assert [text for text in found.warnings if "login_password occurs" in text]


def test_secrets_that_are_found_late_are_searched_for_too(call: Caller, server: Server) -> None:
    kept: List[Module] = []

    def run() -> None:
        kept.append(Module(argument_spec=SPEC))
        kept[0].secrets.add("late-secret", "a file")
        kept[0].exit_json()

    assert call({}, run).code == 0
    assert "late-secret" in kept[0].no_log_values


# ---- failures --------------------------------------------------------------------------------------------------------


def test_own_texts_stay_exact_and_a_servers_are_masked(call: Caller, server: Server) -> None:
    server.failure = Failure("guard", f"role {HUSH} is connected", problems=[Problem(role=HUSH, message=HUSH)])
    # No name of the manifest or the server explains it, so it leaked: the second net holds it.
    assert call(app()).result["msg"] == f"role {MASK} is connected"
    world = World()
    world.role(f"{HUSH}_reader")
    server.state = world.state
    assert call(app()).result["msg"] == f"role {HUSH} is connected"
    server.failure = refused(f"role {HUSH} is connected")
    assert call(app()).result["msg"] == f"role {MASK} is connected"


def test_a_failure_has_ansibles_shape_and_applies_nothing(call: Caller, server: Server) -> None:
    server.failure = refused("no", plan=["ALTER ROLE"], statement="ALTER ROLE")
    found = call(app())
    assert (found.code, server.closed) == (1, 1)
    expected = {"failed": True, "changed": False, "error_code": "server_error", "sqlstate": "XX001", "sql": []}
    assert {name: found.result[name] for name in expected} == expected
    assert found.result["plan"] == ["ALTER ROLE"]


def test_when_ansible_itself_fails_later_it_shows_neither_secret_nor_traceback(call: Caller) -> None:
    def run() -> None:
        module = Module(argument_spec=SPEC)
        try:
            raise RuntimeError(f"boom {HUSH}")
        except RuntimeError as exc:
            module.fail_json(f"failed: it''s {HUSH}", exception=exc, msg_to_log=f"x {HUSH}")

    found = call({"login_password": HUSH}, run)
    assert found.result["error_code"] == "internal_error"
    assert found.result["msg"] == f"failed: it''s {MASK}"
    assert not found.result.get("exception")
    assert "boom" not in found.output
    assert found.hides(HUSH)


# ---- how options reach the run ---------------------------------------------------------------------------------------


def settings(call: Caller, server: Server, arguments: Dict[str, Any], **ansible: Any) -> Settings:
    found = call(arguments, **ansible)
    assert found.code == 0, found.result
    return server.settings[-1]


def test_the_options_of_passwords_reach_the_run(call: Caller, server: Server, tmp_path: Path) -> None:
    found = settings(call, server, {**app(), "update_password": "always", "fingerprint_store": "comment"}).passwords
    assert (found.update, found.store, found.key, found.key_expected) == ("always", "comment", KEY.encode(), False)
    default = settings(call, server, app()).passwords
    assert (default.update, default.store) == ("on_change", "table")
    file = str(tmp_path / "key")
    made = settings(call, server, {**app(), "fingerprint_key": None, "fingerprint_key_file": file}, check_mode=True)
    assert (made.key_file, made.passwords.key, made.passwords.key_expected) == (file, None, True)
    assert made.check_mode is True
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("private", "allowed", "cleartext"), [(True, False, True), (False, False, False), (False, True, True)]
)
def test_clear_text_may_go_over_a_private_connection_or_where_that_is_allowed(
    call: Caller, server: Server, private: bool, allowed: Any, cleartext: bool
) -> None:
    server.private = private
    assert settings(call, server, {**app(), "allow_cleartext": allowed}).passwords.cleartext is cleartext


def test_the_options_of_the_session_reach_the_run(call: Caller, server: Server) -> None:
    found = settings(call, server, {**app(), "session_role": "boss", "statement_timeout": 5})
    assert (found.session_role, found.statement_timeout) == ("boss", 5)
    assert settings(call, server, {**app(), "session_role": ""}).session_role is None
    wrong = call({**app(), "statement_timeout": -1}).result
    assert [problem["path"] for problem in wrong["problems"]] == ["statement_timeout"]
    assert len(server.settings) == 2


def test_without_psycopg_nothing_is_tried(call: Caller, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise Failure("missing_library", "psycopg is needed")

    monkeypatch.setattr(edge, "require_psycopg", missing)
    assert call(app()).result["error_code"] == "missing_library"
    assert server.settings == []


def test_a_missing_key_is_told_before_connecting(call: Caller, server: Server) -> None:
    arguments = {**app(), "fingerprint_key": None}
    found = call(arguments)
    assert found.result["error_code"] == "fingerprint_key_missing"
    assert "lookup('ansible.builtin.password'" in found.result["problems"][0]["hint"]
    assert server.settings == []
    # Under on_drift the server may let the run compare, so it is asked first.
    for update in ("on_drift", "on_create", "always"):
        assert settings(call, server, {**arguments, "update_password": update}).passwords.key is None


def test_the_key_of_the_environment_is_taken(call: Caller, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "e" * 16)
    assert settings(call, server, {**app(), "fingerprint_key": ""}).passwords.key == b"e" * 16


def test_a_wrong_key_is_told_together_with_what_is_wrong_in_the_manifest(call: Caller, server: Server) -> None:
    found = call({**app(password=""), "fingerprint_key": "short-key"})
    assert [problem["path"] for problem in found.result["problems"]] == ["roles[0].password", "fingerprint_key"]
    assert found.hides("short-key")
    found = call({**app(), "fingerprint_key": "short-key"})
    assert [problem["path"] for problem in found.result["problems"]] == ["fingerprint_key"]
    assert server.settings == []


@pytest.mark.parametrize("place", ["fingerprint_key", KEY_VARIABLE])
def test_a_key_that_is_a_word_of_the_result_is_one_mistake(
    call: Caller, server: Server, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    arguments = {**app(), "fingerprint_key": "short" if place == "fingerprint_key" else None}
    if place == KEY_VARIABLE:
        monkeypatch.setenv(KEY_VARIABLE, "short")
    found = call(arguments)
    assert [problem["path"] for problem in found.result["problems"]] == [place]
    assert found.warnings == []
    # Another secret that occurs there is still told.
    (warning,) = call({**arguments, "login_password": "bytes"}).warnings
    assert warning.startswith("login_password occurs in what")


def test_options_that_only_sound_secret_are_shown_and_the_secret_ones_are_not() -> None:
    spec = {**connections.CONNECTION_OPTIONS, **argument_spec()}
    for name in ("update_password", "fingerprint_key_file", "ssl_key"):
        assert spec[name]["no_log"] is False
    for name in ("login_password", "fingerprint_key", "passwords"):
        assert spec[name]["no_log"] is True


def test_no_module_is_warned_about_for_its_options(call: Caller, server: Server) -> None:
    # AnsibleModule's own log of the call would warn of names that sound secret.
    assert call(app()).warnings == []
    assert sys.version_info >= (3, 9)


def test_ansible_stumbles_over_a_number_in_the_place_of_a_dict(call: Caller) -> None:
    found = call({**app(), "scope": 5, "grants": [7]})
    assert found.result["error_code"] == "manifest_invalid" and found.code == 1
    assert [problem["path"] for problem in found.result["problems"]] == ["scope", "grants[0]"]
    assert found.hides(HUSH)


ENDLESS = [float("inf"), float("-inf"), float("nan"), "inf", " -Infinity ", "NaN", "1e999999999", "9" * 40, "1E+31"]


@pytest.mark.parametrize("value", ENDLESS)
@pytest.mark.parametrize("name", ["lock_timeout", "max_drops", "login_port"])
def test_ansible_is_not_shown_a_number_without_end(call: Caller, name: str, value: Any) -> None:
    found = call({**app(), name: value})
    assert found.result["error_code"] == "manifest_invalid"
    assert [problem["path"] for problem in found.result["problems"]] == [name]
    assert "must be a whole number in decimal digits" in found.result["msg"]


@pytest.mark.parametrize("value", ENDLESS)
def test_nor_one_inside_of_the_manifest(call: Caller, value: Any) -> None:
    found = call({"roles": [{"name": "app", "connection_limit": value}], "login_db": "app"})
    assert found.result["error_code"] == "manifest_invalid"
    assert [problem["path"] for problem in found.result["problems"]] == ["roles[0].connection_limit"]


def test_nor_one_in_a_text_that_ansible_takes_for_a_dict(call: Caller) -> None:
    found = call({"roles": ['{"name": "app", "connection_limit": "1e999999999"}'], "login_db": "app"})
    assert found.result["error_code"] == "manifest_invalid"


@pytest.mark.parametrize("value", [5, "5", " 5 ", "2147483"])
def test_ordinary_numbers_may_be_text(call: Caller, server: Server, value: Any) -> None:
    assert call({"login_db": "app", "max_drops": value}).result.get("error_code") is None
    assert server.settings[0].max_drops == int(value)


@pytest.mark.parametrize("name", ["statement_timeout", "lock_timeout"])
def test_a_wait_that_postgresql_cannot_count(call: Caller, server: Server, name: str) -> None:
    found = call({**app(), name: 2147484})
    assert found.result["error_code"] == "manifest_invalid"
    assert found.result["msg"] == f"{name}: 2147484 is more than 2147483 seconds, PostgreSQL's own limit"
    assert call({**app(), name: 2147483}).result.get("error_code") is None


@pytest.mark.parametrize("name", ["login_db", "login_user", "session_role"])
@pytest.mark.parametrize("value", [83, 1.1])
def test_a_number_is_no_name_of_the_connection(call: Caller, name: str, value: float) -> None:
    """YAML makes 83 of 0123: it would be another database, or somebody else."""
    found = call({"login_db": "app", name: value})
    assert found.result["error_code"] == "manifest_invalid"
    (problem,) = found.result["problems"]
    assert (problem["path"], problem["message"].partition(":")[0]) == (name, f"must be text, not the number {value}")


def test_a_number_is_no_password_and_is_not_shown(call: Caller) -> None:
    found = call({"login_db": "app", "login_password": 83456789})
    assert found.result["error_code"] == "manifest_invalid"
    assert found.result["problems"][0]["path"] == "login_password"
    assert found.hides("83456789")


@pytest.mark.parametrize("value", [["x"], {"x": "y"}, True])
@pytest.mark.parametrize("name", ["login_db", "session_role", "expected_digest", "fingerprint_key_file"])
def test_what_is_no_text_is_not_taken_for_one(call: Caller, server: Server, name: str, value: Any) -> None:
    found = call({"login_db": "app", name: value})
    assert found.result["error_code"] == "manifest_invalid"
    problem = next(problem for problem in found.result["problems"] if problem["path"] == name)
    assert problem["message"].startswith("must be text, not a ")
    assert server.settings == []


@pytest.mark.parametrize("depth", [200, 400, 800])
def test_arguments_that_are_nested_too_deeply(call: Caller, depth: int) -> None:
    value: Any = HUSH
    for _level in range(depth):
        value = [value]
    found = call({**app(), "grants": value})
    assert found.result["error_code"] == "manifest_invalid"
    assert found.hides(HUSH)


def test_a_connection_string_is_not_shown(call: Caller) -> None:
    found = call({"login_db": f"postgresql://app:{HUSH}@db/app"})
    assert found.result["error_code"] == "manifest_invalid"
    assert found.hides(HUSH)
    assert found.result["invocation"]["module_args"]["login_db"] == MASK


def test_a_failure_stays_smaller_than_what_awx_takes(call: Caller) -> None:
    found = call({"grants": [{"nonsense": 1, "role": "é" * 5000}] * 3000, "login_host": "x" * 10**6})
    assert len(found.output) < 500000
    assert found.result["truncated"] is True
    assert found.result["problems"][-1]["message"].endswith(" more problems are not shown: correct these first")


def test_a_long_plan_of_a_failure_is_shortened(call: Caller, server: Server) -> None:
    server.failure = Failure("guard", "Stop", problems=[Problem(message="Stop")], plan=["SELECT 1"] * 100000)
    found = call(app())
    assert 10000 < len(found.result["plan"]) < 100000
    assert found.result["truncated"] is True
    assert len(found.output) < 500000


def test_the_invocation_counts_what_is_long(call: Caller, server: Server) -> None:
    found = call({**app(), "passwords": {f"r{number}": HUSH for number in range(200)}})
    assert found.result["invocation"]["module_args"]["passwords"] == "200 items"


@pytest.mark.parametrize("option", ["plan_file", "undo_file", "report_file", "fingerprint_key_file", "manifest_files"])
@pytest.mark.parametrize("name", ["/tmp/\ud800", "/tmp/a\0b"])
def test_names_that_no_file_can_have(call: Caller, server: Server, option: str, name: str) -> None:
    found = call({"login_db": "app", option: [name] if option == "manifest_files" else name})
    assert found.result["error_code"] == "manifest_invalid"
    assert found.result["problems"]
    assert server.settings == []
