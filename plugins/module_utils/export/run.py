# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""The module ``pg_role_export``: options in, a manifest out."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Tuple

from ansible.module_utils.basic import FILE_COMMON_ARGUMENTS

from ..connection import CONNECTION_OPTIONS, address, connect, require_psycopg
from ..failure import LARGEST, of_problems
from ..interruption import Signals
from ..manifest.spec import CONNECTION_NAMES, ansible_options
from ..manifest.texts import show
from ..manifest.validate import Judge, Suggester
from ..masking import leaves
from ..module import Module, in_database, run
from ..privileges import is_system_schema
from ..problems import ManifestInvalid, Problem, readable
from ..report.result import names_of, server_of
from ..state import State
from ..transaction import Settings, begin, ending
from .extras import Choice
from .flat import flat_manifest
from .model import Flat
from .names import matches
from .notes import left_out, notes
from .options import EXPORT_OPTIONS
from .reading import prove, read
from .roles import counts
from .text import to_yaml


class ExportModule(Module):
    """The module's edge to Ansible. There is no manifest in its arguments."""

    OPTIONS: Mapping[str, Any] = {**CONNECTION_OPTIONS, **EXPORT_OPTIONS}
    UNSEEN = frozenset({"schemas", "roles", "ignore_roles"})

    def judge(self) -> None:
        """Raise ManifestInvalid with everything that is wrong with the raw arguments."""
        self.choice()

    def choice(self) -> Choice:
        """What is asked for. Raises ManifestInvalid."""
        judge = Judge()
        known = [*EXPORT_OPTIONS, *CONNECTION_NAMES, *FILE_COMMON_ARGUMENTS]
        suggester = Suggester(known)
        for name in map(str, self.raw):
            if name not in known:
                judge.report(name, f"unknown option {show(name)}{suggester.hint(name)}")
        options = {name: EXPORT_OPTIONS[name] for name in self.UNSEEN}
        fields = judge.fields({name: self.raw.get(name) for name in sorted(options)}, {"options": options}, "")
        if judge.problems or fields is None:
            raise ManifestInvalid(judge.problems)
        given = {
            name: None if fields[name] is None else tuple(item.value for item in fields.items(name)) for name in options
        }
        return Choice(given["schemas"], given["roles"], given["ignore_roles"] or ())


def run_role_export() -> None:
    """The module ``pg_role_export``."""
    module = ExportModule(
        argument_spec={**CONNECTION_OPTIONS, **ansible_options(EXPORT_OPTIONS)},
        add_file_common_args=True,
        supports_check_mode=True,
    )
    run(module, _role_export)


def _role_export(module: ExportModule, signals: Signals) -> Dict[str, Any]:
    params: Mapping[str, Any] = module.params
    wrong = module.mistyped()
    dest = None if "dest" in {problem.path for problem in wrong} else params["dest"] or None
    others = [(name, params[name]) for name in ("ssl_key", "ssl_cert", "ca_cert")]
    if dest:
        from ..script_files import file_problems
        from .files import attribute_problems

        wrong += attribute_problems(params)
        wrong += file_problems({"dest": dest}, others)
    if params["suggest_min_schemas"] < 2:
        text = f"{params['suggest_min_schemas']} is less than 2: a shape in one schema is no pattern"
        wrong.append(Problem(path="suggest_min_schemas", message=text))
    try:
        choice = module.choice()
    except ManifestInvalid as invalid:
        raise ManifestInvalid((*invalid.problems, *wrong)) from None
    if wrong:
        raise ManifestInvalid(wrong)
    require_psycopg()
    connection = connect({name: params[name] for name in CONNECTION_OPTIONS}, module.secrets.mask)
    try:
        where = address(connection)
        module.where = f"{where}: "
        dest = in_database({"dest": dest}, others, connection.info.dbname)["dest"]
        with ending(connection):
            begin(connection, Settings(check_mode=True, session_role=params["session_role"] or None))
            state, extras = read(connection)
            module.vouch(lambda: names_of(state))
            _look_for(state, choice, module)
            flat = flat_manifest(state, extras, choice, module.leaks)
            manifest, flat_roles = _suggested(flat, params)
            prove(connection, manifest)
    finally:
        connection.close()
    signals.ignore()
    for text in notes(flat):
        module.warn(f"{module.where}{text}")
    result = _result(state, flat, manifest, flat_roles)
    module.vouch(lambda: leaves(result))
    if dest:
        from .files import look, put

        written = put(module, dest, result["yaml"], look(dest))
        # Not as ``dest`` or ``path``, which Ansible would take as a request to describe the file.
        result["file"] = dest
        result["changed"] = written["changed"]
        if module._diff:
            result["diff"] = [written["diff"]]
    return fitting(module, result, dest)


def _look_for(state: State, choice: Choice, module: Module) -> None:
    """Warn of patterns that nothing matches. Raises Failure where none of an option does: a typo must not make an
    export of nothing, and overwrite a good one with it.
    """
    schemas = [schema.name for schema in state.schemas.values() if not is_system_schema(schema.name)]
    present = {"schemas": schemas, "roles": [role.name for role in state.roles.values()]}
    problems: List[Problem] = []
    for option, what in (("schemas", "schema"), ("roles", "role")):
        patterns = getattr(choice, option) or ()
        found = present[option]
        idle = [
            f"{option}[{number}]"
            for number, pattern in enumerate(patterns)
            if not any(matches(name, (pattern,)) for name in found)
        ]
        if idle and len(idle) == len(patterns):
            listed = ", ".join(map(show, patterns))
            problems.append(Problem(path=option, message=f"no {what} matches {listed}", code="object_missing"))
        elif idle:
            module.warn(f"{module.where}no {what} matches {', '.join(idle)}")
    if problems:
        raise of_problems(problems)


def _suggested(flat: Flat, params: Mapping[str, Any]) -> Tuple[Dict[str, Any], List[Dict[str, Any]]]:
    """The manifest, with profiles where they are asked for, and why roles stay flat."""
    if not params["suggest_profiles"]:
        return flat.manifest, []
    from .meaning import SameMeaning
    from .profiles import suggest

    found = suggest(flat.manifest, flat.inventory, params["suggest_min_schemas"], SameMeaning(flat.inventory))
    return found.manifest, [role._asdict() for role in found.flat]


def _result(state: State, flat: Flat, manifest: Dict[str, Any], flat_roles: List[Dict[str, Any]]) -> Dict[str, Any]:
    return {
        "changed": False,
        "manifest": manifest,
        "yaml": to_yaml(manifest),
        "not_exported": [_readable(item._asdict()) for item in flat.skipped],
        "left_out": [readable(text) for text in left_out(flat.skipped)],
        "flat_roles": flat_roles,
        "summary": {**counts(manifest), "not_exported": len(flat.skipped)},
        "server": server_of(state),
    }


def _readable(value: Any) -> Any:
    """A value of which every text is readable."""
    if isinstance(value, str):
        return readable(value)
    return {name: _readable(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def fitting(module: Module, result: Dict[str, Any], dest: Any) -> Dict[str, Any]:
    """A result that is sure to arrive: the manifest then stands in the file alone, and long lists are halved until they
    fit. Without a file nothing is left out, because it would be nowhere.
    """
    size = len(json.dumps(result))
    if size <= LARGEST:
        return result
    if not dest:
        module.warn(f"{module.where}the result has {size} characters, and AWX drops those over 700,000: use dest")
        return result
    place = f"it would be in {dest} alone, without check mode" if module.check_mode else f"it is in {dest} alone"
    module.warn(f"{module.where}the manifest is too large for a result (and for AWX): {place}")
    result = {**result, "manifest": {}, "yaml": "", "diff": [], "truncated": True}
    lists = ("not_exported", "flat_roles")
    while len(json.dumps(result)) > LARGEST and any(result[name] for name in lists):
        longest = max(lists, key=lambda name: len(json.dumps(result[name])))
        result[longest] = result[longest][: len(result[longest]) // 2]
    return result
