"""Clients that request large pages and read none of them: the server's memory."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench import api, processes
from bench.arithmetic import Target
from bench.cases import Case
from bench.context import Bench
from bench.datasets import COMPANY
from bench.organization import SMALL
from bench.report import Line

CLIENTS = 8
MESSAGES = 100
LARGE = "🇩🇪" * 1100
"""Becomes 128 KiB of HTML, the maximum for a message."""
SECONDS = 3.0


def _measure(bench: Bench) -> Iterator[Line]:
    with bench.fresh(COMPANY) as served:
        people, server = served.made.people, served.server
        values = {"type": "stream", "to": SMALL, "topic": "large", "content": LARGE}
        for _ in range(MESSAGES):
            api.asked(server.port, api.form("POST", "/messages", people[0], values))
        page = api.newest(people[0], [["channel", SMALL]])
        api.asked(server.port, page)
        resident = processes.forget_peak(server.pid)
        with ExitStack() as stack:
            for who in people[:CLIENTS]:
                plug = stack.enter_context(socket.socket())
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                plug.connect((api.HOST, server.port))
                plug.sendall(api.newest(who, [["channel", SMALL]]).encode())
            time.sleep(SECONDS)  # The server builds the pages, and nobody reads them.
            grown = processes.peak(server.pid) - resident
    title = f"memory with {CLIENTS} clients that don't read large pages"
    line = Line("unread", title, "MiB", [grown])
    line.targets = [Target("", line.value, 100 * 2**20, "MiB")]
    yield line


CASE = Case("unread", "clients that leave large answers unread", _measure)
