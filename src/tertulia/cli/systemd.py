"""The systemd service that `tertulia init --systemd` installs."""

import os
import pwd
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tertulia.cli.errors import CommandFailed, UsageError
from tertulia.service.config import S3, Config

UNITS: Final = Path("/etc/systemd/system")
USER: Final = "tertulia"
_UNIT: Final = "tertulia.service"
_BASE: Final = Path(__file__).with_name(_UNIT)
_STATE: Final = Path("/var/lib/tertulia")
"""The directory that the unit lets the service write to."""
_RUN: Final = Path("/run/tertulia")
_HIDDEN: Final = (Path("/home"), Path("/root"), Path("/run/user"), Path("/tmp"), Path("/var/tmp"))  # noqa: S108 (compared only)
"""Directories that the service can't see."""
_LAST_PRIVILEGED_PORT: Final = 1023


def require_possible(config: Config) -> None:
    """Raise UsageError or CommandFailed if the service can't be installed, before changing
    anything."""
    if os.geteuid() != 0:
        raise UsageError("--systemd requires root, for example with sudo.")
    if not UNITS.is_dir():
        raise CommandFailed(f"This machine doesn't use systemd: {UNITS} doesn't exist.")
    for place, what in ((_program()[0], "program"), (config.data_path.resolve(), "data directory")):
        if any(Path(place).is_relative_to(hidden) for hidden in _HIDDEN):
            raise CommandFailed(
                f"The service can't read the {what} in {Path(place).parent}, which is private to"
                " the service or to people. Use a place such as /opt or /var/lib instead."
            )


def install(config: Config, file: Path) -> list[str]:
    """Install or update the service for the settings in `file`, and return the next steps. Raise
    CommandFailed if a program fails, and OSError."""
    _create_user(config.data_path)
    backups = _backups(config)
    for directory in (config.data_path, *([backups] if backups else [])):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _give(directory)
    if file.exists() and not file.resolve().is_relative_to(config.data_path.resolve()):
        _let_read(file)
    for name, text in units(config, file).items():
        unit = UNITS / name
        unit.parent.mkdir(exist_ok=True)
        unit.write_text(text, encoding="utf-8")
    if Path("/run/systemd/system").is_dir():
        _run("systemctl", "daemon-reload")
    watched = " tertulia-certificate.path" if config.tls_cert else ""
    return [
        f"Installed {UNITS / _UNIT} and its settings in {UNITS / _UNIT}.d.",
        f"Start it: `systemctl enable --now tertulia{watched}`. Its log: `journalctl -u tertulia`.",
        "Run `tertulia init --systemd` again after you change data_dir, backup_to, tls_cert,"
        " tls_key, port, or unix_socket.",
    ]


def units(config: Config, file: Path) -> Mapping[str, str]:
    """Return the unit files for these settings, by their names in systemd's directory."""
    units = {
        _UNIT: _BASE.read_text(encoding="utf-8"),
        f"{_UNIT}.d/settings.conf": _drop_in(config, file),
    }
    if config.tls_cert:
        units["tertulia-certificate.path"] = (
            "[Unit]\nDescription=Wait until Tertulia's certificate is renewed\n\n"
            f"[Path]\nPathChanged={_escaped(config.tls_cert)}\n\n"
            "[Install]\nWantedBy=multi-user.target\n"
        )
        units["tertulia-certificate.service"] = (
            "[Unit]\nDescription=Restart Tertulia with its renewed certificate\n\n"
            f"[Service]\nType=oneshot\nExecStart=systemctl try-restart {_UNIT}\n"
        )
    return units


def _drop_in(config: Config, file: Path) -> str:
    data = config.data_path.resolve()
    command = [*_program(), "serve", "--data-dir", str(data)]
    if file.exists():
        command += ["--config", str(file.resolve())]
    lines = [
        "# Written by `tertulia init --systemd` from the settings. Put your own changes into",
        "# another file in this directory.",
        "[Service]",
        "ExecStart=",
        f"ExecStart={' '.join(map(_quoted, command))}",
    ]
    writable = [] if data.is_relative_to(_STATE) else [data]
    if (backups := _backups(config)) and not backups.is_relative_to(data):
        writable.append(backups)
    if config.unix_socket:
        directory = Path(config.unix_socket).resolve().parent
        if directory == _RUN:
            lines.append("RuntimeDirectory=tertulia")
        else:
            writable.append(directory)
    # Without `-`, a disk for backups that isn't mounted would keep the server from starting.
    lines += [f"ReadWritePaths=-{_quoted(str(path))}" for path in writable]
    if config.tls_cert:
        # The service's user can't read these files, which are often root's alone.
        given = {"tls_cert": config.tls_cert, "tls_key": config.tls_key or config.tls_cert}
        lines += [
            f"LoadCredential={name}:{_escaped(str(Path(path).absolute()))}"
            for name, path in given.items()
        ]
        lines.append("Environment=TERTULIA_TLS_CERT=%d/tls_cert TERTULIA_TLS_KEY=%d/tls_key")
    if 0 < config.port <= _LAST_PRIVILEGED_PORT:
        lines += [
            "AmbientCapabilities=CAP_NET_BIND_SERVICE",
            "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
            "PrivateUsers=no",
        ]
    return "\n".join(lines) + "\n"


def _program() -> list[str]:
    script = Path(sys.executable).with_name("tertulia")
    return [str(script)] if script.exists() else [sys.executable, "-m", "tertulia"]


def _backups(config: Config) -> Path | None:
    """Return the directory of backups, unless they're in a bucket."""
    if not config.backup_to or config.backup_to.startswith(S3):
        return None
    return Path(config.backup_to).resolve()


def _create_user(home: Path) -> None:
    try:
        pwd.getpwnam(USER)
    except KeyError:
        home = home.resolve()
        shell = "/usr/sbin/nologin"
        _run("useradd", "--system", "--no-create-home", "--home-dir", str(home), "-s", shell, USER)


def _give(directory: Path) -> None:
    """Make the service's user the owner of the directory and everything in it, without following
    links."""
    owner = pwd.getpwnam(USER)
    os.chown(directory, owner.pw_uid, owner.pw_gid)
    for path, directories, files in os.walk(directory):
        for name in (*directories, *files):
            os.chown(Path(path, name), owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def _let_read(file: Path) -> None:
    """Allow the service's user, and the commands that run as it, to read a file with secrets."""
    shutil.chown(file, group=USER)
    file.chmod(0o640)
    directory = file.resolve().parent
    mode = stat.S_IMODE(directory.stat().st_mode)
    if not mode & stat.S_IXOTH:
        shutil.chown(directory, group=USER)
        directory.chmod(mode | stat.S_IXGRP)


def _run(*command: str) -> None:
    done = subprocess.run(  # noqa: S603 (fixed programs, no shell)
        command, capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = done.stderr.strip() or f"it exited with {done.returncode}"
        raise CommandFailed(f"`{shlex.join(command)}` failed: {reason}")


def _escaped(path: str) -> str:
    return path.replace("%", "%%")


def _quoted(word: str) -> str:
    """Return a word quoted for a systemd setting."""
    escaped = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"' if escaped != word or " " in word else word
