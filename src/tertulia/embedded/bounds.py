"""What a bot's process may do on its machine.

The code of the bots is the operator's own choice. What reaches it is anybody's: so it opens no
files but those of Python, starts no programs, and connects to nothing that is not on the internet,
whatever it is told. This guards bots against those who speak to them, and is no sandbox for code.
"""

import mimetypes
import os
import sys
import sysconfig
from collections.abc import Sequence
from typing import Any, Final

from tertulia.outbound.addresses import Network, is_elsewhere, parsed

_REFUSED: Final = (
    *("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile"),
    *("os.fork", "os.forkpty", "pty.", "os.kill", "os.putenv", "os.truncate"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink"),
    *("os.chmod", "os.chown", "os.chflags", "os.setxattr", "shutil."),
    # Opens files without an "open" of its own.
    "sqlite3.",
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_ALWAYS: Final = ("/dev/null", "/dev/urandom", "/usr/share/zoneinfo")
"""Files and directories that libraries read."""


def keep_within_bounds(networks: Sequence[Network], data_dir: str) -> None:
    """From now on, refuse this process (PermissionError) what a bot has no need of. It cannot be
    taken back. `networks` may be connected to although they are not on the internet; what is in
    `data_dir` is not read, wherever modules are looked for."""
    mimetypes.init()  # It reads lists of the system's.
    python = (sysconfig.get_path(one) for one in ("stdlib", "platstdlib", "purelib", "platlib"))
    own = tuple(os.path.realpath(one) for one in (*python, *_ALWAYS))
    added = tuple(os.path.realpath(one) for one in filter(None, sys.path))
    closed = (os.path.realpath(data_dir),)

    def is_readable(path: Any, flags: Any) -> bool:
        if isinstance(path, int):
            return True
        if isinstance(flags, int) and flags & _WRITING:
            return False
        real = os.path.realpath(os.fsdecode(path))
        return _is_in(real, own) or (_is_in(real, added) and not _is_in(real, closed))

    def is_reachable(address: Any) -> bool:
        host = parsed(str(address[0])) if isinstance(address, tuple) and address else None
        if host is None:
            return False
        return is_elsewhere(host) or any(host in network for network in networks)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if not is_readable(arguments[0], arguments[2]):
                raise PermissionError("embedded bots open no files of the machine")
        elif event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
            if not is_reachable(arguments[1]):
                raise PermissionError("embedded bots connect to the internet alone")
        elif event.startswith(_REFUSED):
            raise PermissionError("embedded bots change nothing on the machine")

    sys.addaudithook(hook)


def _is_in(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place}{os.sep}") for place in places)
