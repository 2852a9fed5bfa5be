"""A PostgreSQL server of the tests' own, in a temporary folder, reached through a Unix socket only."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

# Debian does not put these programs in PATH, but below this folder.
_DEBIAN = Path(os.environ.get("POSTGRESQL_FOLDER", "/usr/lib/postgresql"))
_FOLDERS = [os.environ.get("PATH", ""), *map(str, sorted(_DEBIAN.glob("*/bin"), reverse=True))]
_OPTIONS = {"listen_addresses": "", "fsync": "off", "max_connections": "20", "shared_buffers": "16MB"}
PASSWORD = "s3cr3t-Wort"  # noqa: S105 - of a server that lives for one test
ADMIN = "tests"


def _program(name):
    found = shutil.which(name, path=os.pathsep.join(_FOLDERS))
    if found is None:
        pytest.skip(f"PostgreSQL is not installed: there is no {name}")
    return found


def _run(*command):
    """Run a program of PostgreSQL. The server refuses to run as root, so root takes another user."""
    change = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
    subprocess.run([*change, *command], check=True, capture_output=True, timeout=60, cwd="/", stdin=subprocess.DEVNULL)


@contextmanager
def server():
    """Start a server, yield the folder of its socket, and stop it. Users need no password, except `guarded`."""
    if os.name != "posix" or (os.geteuid() == 0 and shutil.which("runuser") is None):
        pytest.skip("PostgreSQL does not run as root, and there is no runuser to change the user")
    initdb, control = _program("initdb"), _program("pg_ctl")
    folder = Path(tempfile.mkdtemp(prefix="dpselect-pg-"))  # short: the path of a socket has at most 107 bytes
    data = folder / "data"
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        _run(initdb, "-D", str(data), "-A", "trust", "-U", ADMIN, "-E", "UTF8", "--locale", "C", "--no-sync")
        rules = data / "pg_hba.conf"
        rules.write_text(f"local all guarded scram-sha-256\n{rules.read_text()}")
        settings = {**_OPTIONS, "unix_socket_directories": str(folder)}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        _run(control, "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield folder
        finally:
            _run(control, "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def url(folder, *, user=ADMIN, password=None, name="postgres"):
    """The address of a database of the server."""
    secret = "" if password is None else f":{password}"
    return f"postgresql://{user}{secret}@/{name}?host={folder}"


def execute(folder, *statements, name="postgres"):
    """Run statements, each in a transaction of its own."""
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - needed only where there is a server

    with dbapi.connect(url(folder, name=name), autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []
