"""A TCP proxy in front of a server, with slow, cut, and frozen connections.

    with proxy_to("/run/postgresql/.s.PGSQL.5432") as proxy:
        connect("127.0.0.1", proxy.port)
        proxy.freeze()

It uses threads, so it works in tests with and without an event loop.
"""

import contextlib
import enum
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Target = tuple[str, int] | str
"""Host and port, or the path of a Unix socket."""

_CHUNK = 65536


class Fault(enum.Enum):
    """The fault of a connection when a client sends certain bytes."""

    CUT_BEFORE = "cut before"
    """The connection is cut, and the server never gets the bytes."""
    CUT_AFTER = "cut after"
    """The server gets the bytes, and the connection is cut instead of passing the response."""
    FREEZE_BEFORE = "freeze before"
    """Nothing passes anymore, including these bytes."""
    FREEZE_AFTER = "freeze after"
    """The server gets the bytes. The response doesn't pass, and neither does anything after it."""


@dataclass
class _Rule:
    pattern: bytes
    fault: Fault
    mark: bytes | None = None
    is_of_answer: bool = False


class Link:
    """A client's connection and the corresponding one to the server."""

    def __init__(self, proxy: "Proxy", client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._passing = threading.Event()
        self._passing.set()
        self._answer_fault: Fault | None = None
        self.is_open = True
        self.marks: set[bytes] = set()
        """The proxy's marks that its client has sent."""
        for source, goal, is_request in ((client, server, True), (server, client, False)):
            threading.Thread(
                target=self._forward, args=(source, goal, is_request), daemon=True
            ).start()

    def freeze(self) -> None:
        """Pass nothing in either direction. Both ends stay connected."""
        self._passing.clear()

    def thaw(self) -> None:
        """Pass everything again, starting with what was held."""
        self._passing.set()

    def cut(self) -> None:
        """Close the connection on both sides without a goodbye."""
        self.is_open = False
        self._passing.set()
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                if end.family != socket.AF_UNIX:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                end.close()

    def _forward(self, source: socket.socket, goal: socket.socket, is_request: bool) -> None:
        try:
            while data := source.recv(_CHUNK):
                if self._proxy.delay_seconds:
                    time.sleep(self._proxy.delay_seconds)
                self._strike(data, is_request)
                self._passing.wait()
                if not self.is_open:
                    break
                goal.sendall(data)
        except OSError:
            pass
        finally:
            self._passing.wait()  # A frozen connection doesn't show that it was closed.
            self.cut()

    def _strike(self, data: bytes, is_request: bool) -> None:
        """Apply the fault for these bytes to the connection."""
        if not is_request:
            fault = self._answer_fault or self._proxy.fault_of(data, self.marks, is_answer=True)
            if fault is Fault.CUT_AFTER:
                self.cut()
            elif fault is Fault.FREEZE_AFTER:
                self.freeze()
            self._answer_fault = None
            return
        self.marks.update(mark for mark in self._proxy.marks if mark in data)
        match self._proxy.fault_of(data, self.marks):
            case Fault.CUT_BEFORE:
                self.cut()
            case Fault.FREEZE_BEFORE:
                self.freeze()
            case Fault.CUT_AFTER | Fault.FREEZE_AFTER as fault:
                self._answer_fault = fault
            case None:
                pass


@dataclass
class Proxy:
    """Listens on `port` of 127.0.0.1 and connects clients to the target."""

    target: Target
    port: int = 0
    delay_seconds: float = 0.0
    """The delay of each piece of data in each direction."""
    marks: tuple[bytes, ...] = ()
    """Bytes that tell connections apart, when a client sends them in one piece."""
    links: list[Link] = field(default_factory=list)
    """All connections so far, oldest first."""
    _rules: list[_Rule] = field(default_factory=list)
    _listener: socket.socket | None = None
    _holds_new: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        """Accept connections on the same port as before."""
        listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        """Refuse new connections until `open`, and cut existing ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def cut(self) -> None:
        """Cut all existing connections. New ones are accepted."""
        with self._lock:
            links = list(self.links)
        for link in links:
            if link.is_open:
                link.cut()

    def freeze(self, *, new: bool = True) -> None:
        """Pass nothing on existing connections or, with `new`, on new ones."""
        with self._lock:
            self._holds_new = new
            for link in self.links:
                link.freeze()

    def thaw(self) -> None:
        """Pass everything again."""
        with self._lock:
            self._holds_new = False
            for link in self.links:
                link.thaw()

    def when(self, pattern: bytes, fault: Fault) -> None:
        """Apply the fault once, to the first connection whose client sends these bytes in one
        piece. For faults after the response, that's what the server sends next."""
        with self._lock:
            self._rules.append(_Rule(pattern, fault))

    def when_answered(self, pattern: bytes, fault: Fault, mark: bytes) -> None:
        """Apply the fault (CUT_AFTER or FREEZE_AFTER) once, to the first connection with one of the
        `marks` on which the server sends these bytes in one piece."""
        with self._lock:
            self._rules.append(_Rule(pattern, fault, mark, is_of_answer=True))

    def forget(self) -> None:
        """Cancel all faults that `when` added."""
        with self._lock:
            self._rules.clear()

    @property
    def waits_for_pattern(self) -> bool:
        """Whether a fault that `when` added hasn't happened yet."""
        with self._lock:
            return bool(self._rules)

    def fault_of(self, data: bytes, marks: set[bytes], *, is_answer: bool = False) -> Fault | None:
        """Remove and return the fault for these bytes."""
        with self._lock:
            for rule in self._rules:
                is_marked = rule.mark is None or rule.mark in marks
                if rule.is_of_answer == is_answer and is_marked and rule.pattern in data:
                    self._rules.remove(rule)
                    return rule.fault
        return None

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = self._connected()
            except OSError:
                client.close()
                continue
            with self._lock:
                link = Link(self, client, server)
                if self._holds_new:
                    link.freeze()
                self.links.append(link)

    def _connected(self) -> socket.socket:
        if isinstance(self.target, str):
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:
                server.close()
                raise
            return server
        return socket.create_connection(self.target, timeout=None)


@contextmanager
def proxy_to(target: Target) -> Iterator[Proxy]:
    """A proxy in front of the target, within the context."""
    proxy = Proxy(target)
    proxy.open()
    try:
        yield proxy
    finally:
        proxy.shut()
