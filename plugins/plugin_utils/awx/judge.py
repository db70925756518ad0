# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# These utilities are private to the collection: their names and signatures may change in any release.

"""Whether the variables of the role ``awx_job_template`` can be what somebody means, before anything is sent to AWX.

Every problem is a text of its own: the place, the value, and what is allowed. Values that may be secrets are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, List, NamedTuple

import yaml
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.credentials import (
    credential_problems,
    credential_type_problems,
)
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.templates import (
    approval_problems,
    survey_problems,
    template_problems,
    variable_problems,
)
from ansible_collections.pg_access.reconcile.plugins.plugin_utils.awx.texts import (
    PREFIX,
    is_boolean,
    is_list,
    is_number,
    kind_of,
    nearest,
    shown,
    unknown,
)

MODES = ("additive", "adopt", "authoritative")

#: The dicts whose keys are options of a module.
MODULE_OF = {
    "project": "project",
    "execution_environment": "execution_environment",
    "credential_type": "credential_type",
    "inventory": "inventory",
    "plan": "job_template",
    "apply": "job_template",
    "workflow": "workflow_job_template",
}
#: What the names of AWX's objects have to leave room for.
LONGEST_NAME = 512
LONGEST_SUFFIX = len(": approve the plan")
LONGEST_DATABASE = 63

#: What would make another object in every run, or none.
NOT_HERE = {
    "new_name": "the role would not find the object again: rename it in AWX, and then here",
    "copy_from": "the role makes the object itself",
    "workflow_nodes": "the role makes the steps itself",
    "schema": "the role makes the steps itself",
    "destroy_current_nodes": "the role makes the steps itself",
    "destroy_current_schema": "the role makes the steps itself",
}


class Known(NamedTuple):
    """What can be given at all. ``access``: options with which any module of ``awx.awx`` reaches AWX."""

    modules: Mapping[str, Mapping[str, Mapping[str, Any]]]
    access: Sequence[str]
    variables: Sequence[str]
    reconcile: Sequence[str]


def problems_of(given: Mapping[str, Any], own_type: Mapping[str, Any], named: Iterable[str], known: Known) -> List[str]:
    """What is wrong with the role's variables.

    ``given`` has their values by name, without the prefix; ``named`` are all variables that begin with the prefix.
    """
    problems = [
        f"{name}: the role has no such variable; did you mean {near}?"
        for name in sorted(set(named) - set(known.variables))
        for near in nearest(name[len(PREFIX) :], [each[len(PREFIX) :] for each in known.variables], PREFIX)
    ]
    for judged in (
        _names(given),
        _module_dicts(given, known),
        _project(given["project"]),
        _execution_environment(given["execution_environment"]),
        credential_type_problems(given["credential_type"]),
        credential_problems(given["credential_inputs"], given["credential_type"], own_type),
        _hosts(given["hosts"]),
        _lists(given),
        _databases(given["databases"]),
        _limits(given),
        variable_problems(PREFIX + "extra_vars", given["extra_vars"], known.reconcile),
        approval_problems(given["approval"]),
        template_problems(given, known.reconcile),
        survey_problems(given["workflow"]),
    ):
        problems += judged
    return problems


# The variables


def _names(given: Mapping[str, Any]) -> Iterator[str]:
    for name in ("organization", "name", "credential", "playbook"):
        value = given[name]
        if not isinstance(value, str) or not value.strip():
            yield f"{PREFIX}{name}: it is {shown(value)}, and has to be a text that is not empty"
        elif len(value) > LONGEST_NAME - (LONGEST_SUFFIX if name == "name" else 0):
            yield f"{PREFIX}{name}: it has {len(value)} characters, and AWX takes {LONGEST_NAME} for a whole name"
    if not isinstance(given["limit"], str):
        yield f"{PREFIX}limit: it is {shown(given['limit'])}, and has to be a text: a pattern of hosts"
    playbook = given["playbook"]
    if isinstance(playbook, str) and (playbook.startswith(("/", "~")) or ".." in playbook.split("/")):
        yield f"{PREFIX}playbook: {shown(playbook)} has to be a path in the project, such as reconcile.yml"
    secrets = given["update_secrets"]
    if not is_boolean(secrets):
        yield f"{PREFIX}update_secrets: it is {shown(secrets)}, and has to be true or false"


def _module_dicts(given: Mapping[str, Any], known: Known) -> Iterator[str]:
    """Options of modules: their names, and what the modules would say to their values."""
    for name, module in MODULE_OF.items():
        value = given[name]
        if not isinstance(value, Mapping):
            yield f"{PREFIX}{name}: it is {kind_of(value)}, and has to be a dict with options of awx.awx.{module}"
            continue
        by_name = {
            each: about
            for option, about in known.modules[module].items()
            for each in (option, *about.get("aliases", []))
        }
        yield from unknown(PREFIX + name, value, [*by_name, *known.access], f"awx.awx.{module}")
        for option, about in by_name.items():
            if option not in value or value[option] is None:
                continue
            place = f"{PREFIX}{name}.{option}"
            if option in NOT_HERE:
                yield f"{place}: {NOT_HERE[option]}"
            elif option == "state" and value[option] != "present":
                yield f"{place}: it is {shown(value[option])}, and the role only makes objects: leave it out"
            else:
                yield from _option(place, value[option], about)


def _option(place: str, value: Any, about: Mapping[str, Any]) -> Iterator[str]:
    """The value of a module's option, by its documented type and choices."""
    kind = about.get("type", "str")
    fits, wanted = {
        "str": (not isinstance(value, (Mapping, list, tuple)), "a text"),
        "bool": (is_boolean(value), "true or false"),
        "int": (is_number(value), "a whole number"),
        "float": (isinstance(value, (int, float)), "a number"),
        "list": (is_list(value), "a list"),
        "dict": (isinstance(value, Mapping), "a dict"),
    }.get(kind, (True, ""))
    if not fits:
        yield f"{place}: it is {shown(value)}, and has to be {wanted}"
    elif about.get("choices") and str(value) not in map(str, about["choices"]):
        allowed = ", ".join(str(each) for each in about["choices"] if each != "")
        yield f"{place}: it is {shown(value)}, and has to be one of {allowed}"


def _project(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping):
        return
    if not value:
        yield (
            f"{PREFIX}project: it has to be given, with scm_url for a project that the role makes, or with just the"
            " name of one that is there"
        )
        return
    if set(value) == {"name"}:
        if not isinstance(value["name"], str) or not value["name"]:
            yield f"{PREFIX}project.name: it is {shown(value['name'])}, and has to be the name of a project"
        return
    kind = value.get("scm_type", "git")
    if kind == "manual":
        if not value.get("local_path"):
            yield f"{PREFIX}project.local_path: a manual project needs one, a folder in AWX's folder of projects"
        for option in ("scm_update_on_launch", "scm_clean", "scm_delete_on_update", "scm_track_submodules"):
            if value.get(option):
                yield f"{PREFIX}project.{option}: a manual project is not updated"
    elif kind in ("git", "svn", "archive") and not value.get("scm_url"):
        yield (
            f"{PREFIX}project.scm_url: it is not given, and a project that the role makes needs it; with nothing but"
            " name it is one that is there"
        )


def _execution_environment(value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping) or not value:
        return
    if not value.get("name"):
        yield f"{PREFIX}execution_environment.name: it is not given, and every execution environment has one"
    if set(value) - {"name"} and not value.get("image"):
        yield (
            f"{PREFIX}execution_environment.image: it is not given, and an environment that the role makes needs it;"
            " with nothing but name it is one that is there"
        )


def _hosts(value: Any) -> Iterator[str]:
    place = PREFIX + "hosts"
    if not isinstance(value, Mapping):
        yield f"{place}: it is {kind_of(value)}, and has to be a dict with the variables of each host"
        return
    if not value:
        yield f"{place}: it is empty, and a job without a host succeeds and does nothing"
    for name, variables in value.items():
        if not isinstance(name, str) or not name:
            yield f"{place}: {shown(name)} is no name of a host: quote it"
        if variables is not None and not isinstance(variables, Mapping):
            yield f"{place}.{name}: it is {kind_of(variables)}, and has to be a dict of variables, or nothing"


def _lists(given: Mapping[str, Any]) -> Iterator[str]:
    for name, of in (
        ("modes", "of modes"),
        ("more_credentials", "of names of credentials"),
        ("labels", "of labels"),
        ("databases", "of names of databases"),
    ):
        value = given[name]
        if not is_list(value):
            yield f"{PREFIX}{name}: it is {shown(value)}, and has to be a list {of}"
            continue
        for number, each in enumerate(value):
            place = f"{PREFIX}{name}[{number}]"
            if name == "modes" and each not in MODES:
                near = nearest(str(each), MODES)
                yield f"{place}: it is {shown(each)}, and has to be one of {', '.join(MODES)}" + (
                    f"; did you mean {near[0]}?" if near else ""
                )
            elif name != "databases" and (not isinstance(each, str) or not each):
                yield f"{place}: it is {shown(each)}, and has to be a text that is not empty"
            elif each in value[:number]:
                yield f"{place}: {shown(each)} stands there twice"
            elif name == "more_credentials" and each == given["credential"]:
                yield f"{place}: {shown(each)} is the credential with the login, which every job has anyway"
    if is_list(given["modes"]) and not given["modes"]:
        yield f"{PREFIX}modes: it is empty, and has to name at least one of {', '.join(MODES)}"


def _databases(value: Any) -> Iterator[str]:
    """Newer ansible-core reads the answers of a survey as YAML."""
    if not is_list(value):
        return
    for number, name in enumerate(value):
        place = f"{PREFIX}databases[{number}]"
        instead = "Leave the list empty, and name the database in the credential"
        if not isinstance(name, str):
            yield f"{place}: it is {shown(name)}, and has to be a text, so quote it"
        elif not name or "\n" in name or "\x00" in name or len(name.encode()) > LONGEST_DATABASE:
            yield (
                f"{place}: {shown(name)} is no name that a database can have here: 1 to {LONGEST_DATABASE} bytes on one"
                " line"
            )
        elif _retyped(name):
            yield (
                f"{place}: {shown(name)} would reach ansible-core 2.19 and later as something else than this text,"
                f" because the answers of a survey are read as YAML. {instead}"
            )


def _retyped(text: str) -> bool:
    loader: Any = yaml.SafeLoader("")
    return bool(loader.resolve(yaml.ScalarNode, text, (True, False)) != "tag:yaml.org,2002:str")


def _limits(given: Mapping[str, Any]) -> Iterator[str]:
    for name in ("max_drops", "max_revokes"):
        value = given[name]
        if not is_number(value) or int(value) < 0:
            yield f"{PREFIX}{name}: it is {shown(value)}, and has to be a whole number, 0 or more"
