"""The machine that figures were measured on."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import apsw
import psycopg

PROGRAMS = ("tertulia", "uvicorn", "httptools", "uvloop", "starlette", "msgspec", "apsw")


def described(directory: Path, database_url: str = "") -> dict[str, str]:
    """The machine, the directory's disk, and the versions."""
    cores = f"{os.cpu_count()} cores of {_processor()}"
    return {
        "machine": f"{cores}, {_memory()}, {_file_system(directory)}",
        "system": platform.platform(),
        "python": platform.python_version(),
        **_database(database_url),
        **{name: _version(name) for name in PROGRAMS},
    }


def _database(url: str) -> dict[str, str]:
    if not url:
        return {"sqlite": apsw.sqlite_lib_version()}
    with psycopg.connect(url) as connection:
        number = connection.info.server_version
    return {"postgresql": f"{number // 10_000}.{number % 10_000}"}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        if name != "tertulia":
            return "none"
        import tertulia

        return str(tertulia.__version__)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return "memory unknown"
    return f"{size / 2**30:.0f} GiB"


def _file_system(directory: Path) -> str:
    result = subprocess.run(
        ["df", "-PT", str(directory)], capture_output=True, text=True, check=False
    )
    lines = result.stdout.splitlines()
    return lines[-1].split()[1] if result.returncode == 0 and lines else "file system unknown"
