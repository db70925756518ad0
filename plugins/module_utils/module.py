# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The edge to Ansible: raw arguments, the failure format, and the one call that a module consists of."""

from __future__ import annotations

import copy
import traceback
from typing import Any, Dict, Mapping, NoReturn, Optional

from ansible.module_utils.basic import AnsibleModule

from .apply import Settings, reconcile
from .connection import CONNECTION_OPTIONS, address, connect, require_psycopg
from .failure import Failure
from .filters import Options
from .manifest.spec import RUN_OPTIONS, argument_spec
from .policy import manifest_to_policy
from .problems import ManifestInvalid, Problem
from .report.result import result_of, warnings_of


class Module(AnsibleModule):  # type: ignore[misc]
    """AnsibleModule that keeps the raw arguments and fails in the collection's format.

    Ansible's own validation stops at the first problem, gives no list index and coerces silently. So it is there for
    documentation and secrets, and the collection's validator judges what was really written.
    """

    def __init__(self, **options: Any) -> None:
        self.raw: Dict[str, Any] = {}
        self._constructed = False
        super().__init__(**options)
        self._constructed = True

    def _load_params(self) -> None:
        super()._load_params()
        # AWX hands over every field of a credential: an empty connection option means not given.
        for name in CONNECTION_OPTIONS:
            if self.params.get(name) == "":
                del self.params[name]
        # AnsibleModule changes the arguments in place while it validates them.
        self.raw = {
            name: copy.deepcopy(value) for name, value in self.params.items() if not name.startswith("_ansible_")
        }

    def fail_json(self, msg: str, **details: Any) -> NoReturn:
        """End with a failure. What Ansible's own validation complains about is judged by the manifest's rules first."""
        if not self._constructed:
            try:
                manifest_to_policy(self.raw)
            except ManifestInvalid as invalid:
                self.end(_invalid(invalid))
            self.end(Failure("manifest_invalid", msg, problems=[Problem(message=msg)]))
        details.setdefault("error_code", "internal_error")
        super().fail_json(msg=msg, invocation=self.invocation(), **details)
        raise SystemExit(1)  # not reached; it tells the type checker so

    def end(self, failure: Failure) -> NoReturn:
        """End with a failure in the collection's format."""
        # AnsibleModule's own fail_json would add the traceback of the exception being handled.
        details = {**failure.as_result(), "invocation": self.invocation()}
        super().fail_json(msg=failure.message, exception="", changed=False, **details)
        raise SystemExit(1)  # not reached; it tells the type checker so

    def exit_json(self, **result: Any) -> NoReturn:
        """End with a success."""
        super().exit_json(invocation=self.invocation(), **result)
        raise SystemExit(0)  # not reached; it tells the type checker so

    def invocation(self) -> Dict[str, Any]:
        """What the result says about how the module was called.

        Ansible's own has every argument. ansible-core before 2.19 shows it without being asked, and it cannot mask what
        it has no specification for: a password under a misspelt key, or one in ``connect_params``.
        """
        told: Dict[str, Any] = {}
        for name, value in self.raw.items():
            if name in RUN_OPTIONS or name in CONNECTION_OPTIONS:
                told[name] = sorted(value) if isinstance(value, dict) else value
            elif isinstance(value, (list, dict)):
                told[name] = f"{len(value)} items"
        if "login_password" in told:
            told["login_password"] = "********"
        return {"module_args": told}


def _invalid(invalid: ManifestInvalid) -> Failure:
    return Failure(invalid.code, str(invalid), problems=invalid.problems)


def run_role_reconcile() -> None:
    """The module ``pg_role_reconcile``."""
    module = Module(argument_spec={**CONNECTION_OPTIONS, **argument_spec()}, supports_check_mode=True)
    try:
        result = _role_reconcile(module)
    except Failure as failure:
        module.end(failure)
    except ManifestInvalid as invalid:
        module.end(_invalid(invalid))
    except Exception as exc:
        module.end(_internal(exc))
    module.exit_json(**result)


def _internal(exc: Exception) -> Failure:
    """A fault of the collection: its type and place, not its text, which could hold a secret."""
    frames = traceback.extract_tb(exc.__traceback__)
    place: Optional[str] = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else None
    return Failure(
        "internal_error",
        f"Internal error: {type(exc).__name__} at {place}. Nothing was applied. Please report it.",
    )


def _role_reconcile(module: Module) -> Dict[str, Any]:
    policy = manifest_to_policy(module.raw)
    require_psycopg()
    params: Mapping[str, Any] = module.params
    if params["statement_timeout"] < 0:
        problem = Problem(path="statement_timeout", message=f"{params['statement_timeout']} is less than 0")
        raise Failure("manifest_invalid", problem.text, problems=[problem])
    options = Options(params["reconciliation_mode"], params["undeclared_grantees"], params["adopt_schema_owners"])
    settings = Settings(module.check_mode, params["session_role"] or None, params["statement_timeout"])
    connection = connect({name: params[name] for name in CONNECTION_OPTIONS})
    try:
        where = address(connection)
        run = reconcile(connection, policy, options, settings)
    finally:
        connection.close()
    for text in warnings_of(run, where):
        module.warn(text)
    return result_of(run, options, facts=params["facts"], diff=module._diff)
