# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The edge to Ansible: raw arguments, the failure format, and the one call that a module consists of."""

from __future__ import annotations

import copy
import decimal
import gc
import inspect
import json
import math
import os
import sys
import threading
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, NoReturn, Optional, Sequence, Tuple, TypeVar

from ansible.module_utils.basic import AnsibleModule

from .apply import load, reconcile
from .connection import CONNECTION_OPTIONS, address, connect, is_private, place_of, require_psycopg
from .diff.passwords import PasswordOptions, declared
from .failure import Failure, internal, of_problems
from .filters import Options
from .interruption import Interrupted, Signals
from .keys import Key, key_of
from .manifest.spec import MANIFEST_OPTIONS, RUN_OPTIONS, argument_spec
from .manifest.texts import describe, show
from .manifest.validate import Judge, no_text
from .masking import MASK, NOBODY, Secrets, by_chance, leaves, of_arguments, open_names, passwords_in_address
from .policy import manifest_to_policy
from .problems import LONGEST_NAME, LONGEST_TEXT, ManifestInvalid, Problem, shortened
from .records import replace
from .state import State
from .transaction import LONGEST_WAIT, Settings

#: More digits than any number of a manifest or an option has.
_MOST_DIGITS = 30

#: How many keys of a dict the invocation shows.
_MOST_NAMES = 100

#: Options that hold a secret, or may hold one when they are given as text.
_WITH_SECRETS = frozenset({"login_password", "fingerprint_key", "passwords", "connect_params"})


class _KeptFromAnsible(Exception):
    """A number that Ansible must not see: it would compute all of its digits, or stumble over infinity."""


class _Unreadable(Exception):
    """There are no arguments. The text says why."""


class Module(AnsibleModule):  # type: ignore[misc]
    """AnsibleModule that keeps the raw arguments and fails in the collection's format.

    Ansible's own validation stops at the first problem, gives no list index and coerces silently. So it is there for
    documentation and secrets, and the collection's validator judges what was really written.
    """

    #: The options that have a type for Ansible, as far as it is shown them.
    OPTIONS: Mapping[str, Any] = {**CONNECTION_OPTIONS, **RUN_OPTIONS}
    #: What AnsibleModule is not shown: the manifest, as far as it is given as options.
    UNSEEN: FrozenSet[str] = frozenset(MANIFEST_OPTIONS) - {"manifest_files"}

    def judge(self) -> None:
        """Raise ManifestInvalid with everything that is wrong with the raw arguments, and learn the secrets in them."""
        manifest_to_policy(self.raw, self.secrets, bool(getattr(self, "check_mode", False)))

    def __init__(self, **options: Any) -> None:
        # What was imported stays to the end, so Python's collector need not walk through all of it again and again.
        gc.freeze()
        self.raw: Dict[str, Any] = {}
        self.secrets = Secrets()
        self._told: List[str] = []
        self._vouched: List[Callable[[], Iterable[str]]] = []
        self.where = ""
        self._constructed = False
        self._asked = False
        try:
            super().__init__(**options)
        except Exception as exc:
            if not self._asked:
                raise  # no module is run here: ansible-test only looks at its imports
            # A traceback could show what is secret, and there is no whole module yet that could mask it.
            failure = self._without_module(exc).masked(self.secrets.mask)
            told = {"failed": True, "changed": False, "msg": failure.message, **failure.as_result()}
            sys.stdout.write(json.dumps(told))
            raise SystemExit(1) from None
        self._constructed = True

    def _without_module(self, exc: Exception) -> Failure:
        """What to say where Ansible's own part failed: it stumbles over a number in the place of a dict."""
        if isinstance(exc, _Unreadable):
            return Failure("manifest_invalid", str(exc), problems=[Problem(message=str(exc))])
        try:
            wrong = self._wrong_input()
        except Exception as other:
            return internal(other)
        return _invalid(ManifestInvalid(wrong)) if wrong else internal(exc)

    def _wrong_input(self) -> List[Problem]:
        """What the collection itself finds wrong with the raw arguments."""
        mistyped = self.mistyped()
        try:
            self.judge()
        except ManifestInvalid as invalid:
            return [*invalid.problems, *mistyped]
        return mistyped

    def _numbers(self) -> List[str]:
        """The options that Ansible makes whole numbers of."""
        return [name for name, option in self.OPTIONS.items() if option["type"] == "int"]

    def mistyped(self) -> List[Problem]:
        """Values that Ansible takes for something else, or stumbles over: a list as a text is how Python prints it."""
        names = Judge()
        if "explain" in self.OPTIONS:
            names.fields({"explain": self.raw.get("explain")}, {"options": {"explain": self.OPTIONS["explain"]}}, "")
        problems = [
            *names.problems,
            *(
                Problem(path=name, message=f"must be a whole number in decimal digits, not {describe(self.raw[name])}")
                for name in self._numbers()
                if _endless(self.raw.get(name))
            ),
        ]
        problems += [
            Problem(path=name, message=no_text(self.raw[name], secret=True))
            for name, option in self.OPTIONS.items()
            if option["type"] in ("str", "path")
            and isinstance(self.raw.get(name), (bool, list, dict))
            # The key's own judge speaks of it.
            and name != "fingerprint_key"
        ]
        for name in _NO_NUMBERS:
            value = self.raw.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                said = no_text(value, secret=name == "login_password")
                problems.append(Problem(path=name, message=said, hint=_RETYPED.get(name)))
        return problems

    def _load_params(self) -> None:
        self._asked = True
        try:
            self._read_params()
        except RecursionError:
            raise _Unreadable("The arguments of the module are nested too deeply") from None

    def _read_params(self) -> None:
        try:
            super()._load_params()
        except Exception as exc:
            if isinstance(exc.__cause__ or exc, RecursionError):
                raise RecursionError from None
            raise _Unreadable("The arguments of the module cannot be read: they are no valid JSON") from None
        # AWX hands over every field of a credential: an empty connection option means not given.
        for name in CONNECTION_OPTIONS:
            if self.params.get(name) == "":
                del self.params[name]
        # AnsibleModule changes the arguments in place while it validates them. It never sees the manifest: it would
        # walk through all of it to coerce what the collection judges as it was written.
        self.raw = {}
        for name in [name for name in self.params if not name.startswith("_ansible_")]:
            self.raw[name] = self.params.pop(name) if name in self.UNSEEN else copy.deepcopy(self.params[name])
        self.secrets.add_all(of_arguments(self.raw, os.environ))
        self.no_log_values.update(self.secrets.texts())
        if any(_endless(self.params.get(name)) for name in self._numbers()):
            raise _KeptFromAnsible

    def _log_invocation(self) -> None:
        """What the system's log says of the call: how much of what was given, never a value."""
        counts = {name: len(value) if isinstance(value, (list, dict)) else 1 for name, value in self.raw.items()}
        told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        self.log(f"Invoked with (number of values): {told}")

    def warn(self, warning: str, **details: Any) -> None:
        """Warn. From ansible-core 2.19 on Ansible does not mask the text of a warning."""
        leaked = Secrets()
        leaked.add_all((secret, "") for secret in self.secrets.texts() if secret in warning and not self._known(secret))
        warning = leaked.mask(warning)
        self._told.append(warning)
        super().warn(warning, **details)

    def vouch(self, texts: Callable[[], Iterable[str]]) -> None:
        """Names that the result may show although a password equals one of them or a part of it. They are only asked
        for where a secret is found.
        """
        self._vouched.append(texts)

    def _known(self, secret: str) -> bool:
        """Whether a secret may be in the result without having leaked into it."""
        sources = (texts() for texts in (lambda: open_names(self.raw), *self._vouched))
        return by_chance(secret) or any(secret in text for texts in sources for text in texts)

    def leaks(self, text: str) -> bool:
        """Whether a text holds a secret that is not there by chance."""
        return any(secret in text and not self._known(secret) for secret in self.secrets.texts())

    def fail_json(self, msg: str, **details: Any) -> NoReturn:
        """End with a failure. What Ansible's own validation complains about is judged by the manifest's rules first."""
        if not self._constructed:
            wrong = self._wrong_input()
            if wrong:
                self.end(_invalid(ManifestInvalid(wrong)))
            masked = self.secrets.mask(msg)
            self.end(Failure("manifest_invalid", masked, problems=[Problem(message=masked)]))
        # Only Ansible itself gets here. A traceback or a chain of exceptions would quote what nobody has masked.
        told = {name: self.secrets.mask(value) if isinstance(value, str) else value for name, value in details.items()}
        told.update(msg=self.secrets.mask(msg), exception="", invocation=self.invocation())
        super().fail_json(**{"error_code": "internal_error", **told})
        raise SystemExit(1)  # not reached; it tells the type checker so

    def end(self, failure: Failure) -> NoReturn:
        """End with a failure in the collection's format."""
        if failure.sqlstate is not None:
            # Its texts come from the server, which may repeat what it was sent.
            failure = failure.masked(self.secrets.mask)
        said = shortened(failure.message, LONGEST_TEXT)
        result = {**failure.as_result(), "msg": said, "invocation": self.invocation()}
        self._stay_exact(result)
        super().fail_json(changed=bool(failure.sql), **result, **_no_traceback())
        raise SystemExit(1)  # not reached; it tells the type checker so

    def exit_json(self, **result: Any) -> NoReturn:
        """End with a success."""
        whole = {**result, "invocation": self.invocation()}
        self._stay_exact(whole)
        super().exit_json(**whole)
        raise SystemExit(0)  # not reached; it tells the type checker so

    def _stay_exact(self, result: Mapping[str, Any]) -> None:
        """Keep Ansible from masking what only happens to equal a secret: places that held one are masked, and a
        password ``12`` must not turn counts into text. What cannot be there by chance Ansible goes on looking for.
        """
        self.no_log_values.update(self.secrets.texts())
        own = "\0".join((*leaves(result), *self._told))
        found = sorted(secret for secret in self.no_log_values if secret in own and self._known(secret))
        for secret in found:
            self.no_log_values.discard(secret)
        names = {self.secrets.owner(secret) for secret in found} - {NOBODY}
        owners = sorted(name or "a secret" for name in names)
        if owners:
            shown = ", ".join(owners[:3]) + (f" and {len(owners) - 3} more" if len(owners) > 3 else "")
            verb = "occurs" if len(owners) == 1 else "occur"
            super().warn(
                f"{self.where}{shown} {verb} in what the result says anyway (a name, a number, a word of SQL), so it "
                "cannot be searched for there: choose a longer one"
            )

    def invocation(self) -> Dict[str, Any]:
        """What the result says about how the module was called.

        Ansible's own has every argument. ansible-core before 2.19 shows it without being asked, and it cannot mask what
        it has no specification for: a password under a misspelt key, or one in ``connect_params``.
        """
        told: Dict[str, Any] = {}
        for name, value in self.raw.items():
            if name in self.OPTIONS:
                told[name] = _told(name, value)
            elif isinstance(value, (list, dict)):
                told[name] = f"{len(value)} items"
        if isinstance(told.get("passwords"), dict):
            # A key that is no role's name may be a password in the wrong place.
            names = set(open_names(self.raw))
            told["passwords"] = {name: mask for name, mask in told["passwords"].items() if name in names}
        return {"module_args": told}


def _told(name: str, value: Any) -> Any:
    """An option as the invocation shows it."""
    if isinstance(value, (dict, list)) and (isinstance(value, list) or len(value) > _MOST_NAMES):
        return f"{len(value)} items"
    if isinstance(value, dict):
        names = sorted(map(str, value))
        return dict.fromkeys(names, MASK) if name == "passwords" else names
    if isinstance(value, str):
        if name == "login_db" and any(passwords_in_address(value)):
            return MASK
        value = shortened(value, LONGEST_NAME)
    if name == "fingerprint_key_file" and not os.path.isabs(str(value or "/")):
        return MASK  # most likely the key itself
    return MASK if name in _WITH_SECRETS and value is not None else value


def _invalid(invalid: ManifestInvalid) -> Failure:
    return Failure(invalid.code, str(invalid), problems=invalid.problems)


def _no_traceback() -> Dict[str, Any]:
    """What keeps fail_json from adding a traceback or a call stack, which it does from 2.19 on. Before, an empty one
    would be announced to the user as an exception.
    """
    return {"exception": ""} if "exception" in inspect.signature(AnsibleModule.fail_json).parameters else {}


def run_role_reconcile() -> None:
    """The module ``pg_role_reconcile``."""
    run(Module(argument_spec={**CONNECTION_OPTIONS, **argument_spec()}, supports_check_mode=True), _role_reconcile)


ModuleType = TypeVar("ModuleType", bound=Module)


def run(module: ModuleType, work: Callable[[ModuleType, Signals], Dict[str, Any]]) -> None:
    """Do a module's work, and end with its result or with the failure that it became."""
    signals = Signals()
    failed: Optional[Failure] = None
    result: Dict[str, Any] = {}
    try:
        try:
            signals.listen()
            result = work(module, signals)
        finally:
            signals.ignore()
    except Interrupted as asked:
        failed = asked.failure
    except Failure as failure:
        failed = signals.cause_of(failure)
    except ManifestInvalid as invalid:
        failed = _invalid(invalid)
    except Exception as exc:
        failed = internal(exc)
    # Not while the exception is handled, where Ansible would add its traceback.
    if failed is not None:
        module.end(failed)
    module.exit_json(**result)


def _endless(value: Any) -> bool:
    """Whether Python could make a number of it that has far more digits than any number of a manifest, or no end."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if not isinstance(value, str):
        return False
    try:
        number = decimal.Decimal(value)
    except (decimal.DecimalException, ValueError):
        return False
    return not number.is_finite() or number.adjusted() > _MOST_DIGITS


#: Names have to be text, like those of a manifest: 83 may have been 0123, and that is another database.
_NO_NUMBERS = ("login_db", "login_user", "login_password", "session_role")

_RETYPED = {
    "login_db": (
        "With ansible-core 2.19 and later, AWX's surveys and artifacts make 83 of the text 0123: name such a database"
        " in the credential (PGDATABASE), or in the job template's own variables."
    )
}


def _out_of_range(params: Mapping[str, Any]) -> List[Problem]:
    """Numbers and texts of the run that mean nothing."""
    problems = [
        Problem(path=name, message=f"{show(params[name])} is less than {least}")
        for name, least in (("statement_timeout", 0), ("lock_timeout", 1), ("max_drops", 0), ("max_revokes", 0))
        if params[name] is not None and params[name] < least
    ]
    problems += [
        Problem(path=name, message=f"{show(params[name])} is more than {LONGEST_WAIT} seconds, PostgreSQL's own limit")
        for name in ("statement_timeout", "lock_timeout")
        if params[name] > LONGEST_WAIT
    ]
    problems += [
        Problem(path=name, message="is empty: what was to be expected is lost. Leave it out to expect nothing")
        for name in ("expected_digest", "expected_system_identifier")
        if params[name] == ""
    ]
    return problems


def _password_options(params: Mapping[str, Any], key: Key) -> PasswordOptions:
    return PasswordOptions(
        update=params["update_password"],
        key=key.value,
        key_expected=key.new_file is not None,
        store=params["fingerprint_store"],
    )


def in_database(
    files: Mapping[str, Optional[str]], others: Sequence[Tuple[str, Optional[str]]], database: str
) -> Dict[str, Optional[str]]:
    """Files by option, with the database's name where a path has a place for it. Raises ManifestInvalid."""
    if not any("{database}" in path for path in files.values() if path):
        return dict(files)
    from .script_files import file_problems, for_database

    found = {option: for_database(path, database) if path else None for option, path in files.items()}
    problems = file_problems(found, others)
    if problems:
        raise ManifestInvalid(problems)
    return found


def _names_of(state: State) -> Iterable[str]:
    from .report.result import names_of

    return names_of(state)


def _role_reconcile(module: Module, signals: Signals) -> Dict[str, Any]:
    params: Mapping[str, Any] = module.params
    wrong = module.mistyped()
    mistyped = {problem.path for problem in wrong}
    file = None if "fingerprint_key_file" in mistyped else params["fingerprint_key_file"]
    key, problems = key_of(module.raw, file, os.environ)
    wrong += [*problems, *_out_of_range(params)]
    files = {name: None if name in mistyped else params[name] for name in ("plan_file", "undo_file", "report_file")}
    others = ("fingerprint_key_file", "ssl_key", "ssl_cert", "ca_cert")
    given = [(name, None if name in mistyped else params[name]) for name in others]
    given += [("manifest_files", path) for path in params["manifest_files"] or () if isinstance(path, str)]
    if any(files.values()):
        from .script_files import file_problems

        wrong += file_problems(files, given)
    try:
        policy = manifest_to_policy(module.raw, module.secrets, module.check_mode)
    except ManifestInvalid as invalid:
        raise ManifestInvalid((*invalid.problems, *wrong)) from None
    if wrong:
        raise ManifestInvalid(wrong)
    module.vouch(lambda: policy.named_roles)
    passwords = _password_options(params, key)
    if passwords.update == "on_change" and declared(policy):
        from .password_checks import key_problem

        missing = key_problem(policy, passwords, readable=False)
        if missing is not None:
            raise of_problems([missing])
    require_psycopg()
    # Beside the connection, whose answers take longer. It ends by itself, whatever becomes of the run.
    threading.Thread(target=load).start()
    options = Options(params["reconciliation_mode"], params["undeclared_grantees"], params["adopt_schema_owners"])
    reach = {name: params[name] for name in CONNECTION_OPTIONS}
    connection = connect(reach, module.secrets.mask)
    try:
        where = address(connection)
        module.where = f"{where}: "
        files = in_database(files, given, connection.info.dbname)
        settings = Settings(
            check_mode=module.check_mode,
            rehearse=params["rehearse"],
            session_role=params["session_role"] or None,
            lock_timeout=params["lock_timeout"],
            statement_timeout=params["statement_timeout"],
            passwords=replace(passwords, cleartext=params["allow_cleartext"] or is_private(connection)),
            key_file=key.new_file,
            expected_system_identifier=params["expected_system_identifier"],
            expected_digest=params["expected_digest"],
            max_drops=params["max_drops"],
            max_revokes=params["max_revokes"],
            plan_file=files["plan_file"] or None,
            undo_file=files["undo_file"] or None,
            survey=bool(files["report_file"]),
            explain=None if params["explain"] is None else tuple(params["explain"]),
            where=where,
            leaks=module.leaks,
            reconnect=lambda: connect(reach, module.secrets.mask),
            connect_to=lambda name: connect(reach, module.secrets.mask, {**place_of(connection), "dbname": name}),
            seen=lambda state: module.vouch(lambda: _names_of(state)),
            committing=signals.hold_back,
            resume=signals.resume,
        )
        run = reconcile(connection, policy, options, settings)
    finally:
        connection.close()
    from .report.result import result_of, warnings_of  # loaded by now

    for text in (*warnings_of(run, where), *(f"{where}: {text}" for text in key.warnings)):
        module.warn(text)
    result = result_of(run, options, facts=params["facts"], diff=module._diff)
    result["check_mode"] = module.check_mode
    module.vouch(lambda: leaves({name: result[name] for name in ("plan_digest", "server")}))
    if files["report_file"]:
        from .report.access import written

        # After the commit nothing may fail any more.
        for text in written(files["report_file"], run, options, policy, settings):
            module.warn(f"{where}: {text}")
    return result
