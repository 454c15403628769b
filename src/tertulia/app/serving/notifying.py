"""Telling systemd, or whatever else started the server, how it is."""

import contextlib
import os
import socket
from typing import Final

_VARIABLE: Final = "NOTIFY_SOCKET"
READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(*facts: str) -> None:
    """Tell whoever listens at the socket that the environment names. Nobody does, mostly."""
    address = os.environ.get(_VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    # Whoever is to be told may be gone, and nothing here may wait for it.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as plug:
        plug.setblocking(False)
        plug.sendto("\n".join(facts).encode(), address)
