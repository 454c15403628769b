"""Start servers quickly: they are forked from a process that has already loaded the program, and
continue like `python -m tertulia`. With several workers, their supervisor forks them.

Starting a program from nothing is tested where it matters (`Place.program_from_nothing`,
`Server.is_forked`).
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn
from unittest import mock

import msgspec

if TYPE_CHECKING:
    from tertulia.app.serving.process import Plan

_ROOT = Path(__file__).resolve().parents[1]
_MOST = 1 << 20
"""The maximum size of a request to start a program."""
_PROGRAM = ("-m", "tertulia")
"""The interpreter's arguments."""


class Program:
    """A running program, with the part of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        output: int,
        errors: int | None = None,
    ) -> None:
        """Start `tertulia` with these arguments. Output goes to this file descriptor, and so do
        errors, unless they have their own."""
        self._words = list(words)
        self._told, theirs = socket.socketpair()
        self._heard = b""
        request = json.dumps({"words": self._words, "environment": dict(environment)}).encode()
        assert len(request) < _MOST
        with theirs:
            files = [theirs.fileno(), output, output if errors is None else errors]
            socket.send_fds(_loaded(), [request], files)
        self.pid = int(self._line())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal. None while it runs."""
        if self.returncode is None and self._is_told(0):
            self.returncode = os.waitstatus_to_exitcode(int(self._line()))
            self._told.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status. Raises `subprocess.TimeoutExpired` after a timeout in
        seconds."""
        if self.returncode is None:
            self._is_told(timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send the signal unless the program has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _is_told(self, timeout: float | None) -> bool:
        """Wait this many seconds for a line, and return whether there is one."""
        return bool(self._heard or select.select([self._told], [], [], timeout)[0])

    def _line(self) -> bytes:
        while b"\n" not in self._heard:
            piece = self._told.recv(100)
            assert piece, "who starts programs has ended"
            self._heard += piece
        # If a program ends immediately, both lines arrive together.
        found, _, self._heard = self._heard.partition(b"\n")
        return found


class HeardProgram(Program):
    """A program whose output is read while it runs, as with `Popen` with pipes and text."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        (output, theirs), (errors, their_errors) = os.pipe(), os.pipe()
        self.stdout, self.stderr = os.fdopen(output), os.fdopen(errors)
        try:
            super().__init__(words, environment, theirs, their_errors)
        finally:
            os.close(theirs)
            os.close(their_errors)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end of the program. Return its remaining output and errors."""
        with ThreadPoolExecutor(2) as threads:
            said = [threads.submit(file.read) for file in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()  # So that the pipes end.
                raise
            return said[0].result(), said[1].result()

    def close(self) -> None:
        """Stop it if it's running."""
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()


_WHEN_NEEDED = (
    *("apsw", "argon2", "cryptography.fernet", "jinja2", "psycopg", "uvloop", "zxcvbn"),
    *("tertulia.integrations.services", "tertulia.markup.markdown"),
    *("tertulia.store.postgres", "tertulia.store.sqlite"),
)
"""Modules that programs import when they first need them, which most tests do."""


@cache
def _loaded() -> socket.socket:
    """The connection to the process with the loaded program, which ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.programs", str(theirs.fileno())],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": f"{_ROOT / 'src'}"},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait(60)

    atexit.register(end)
    return ours


def _serve(requests: socket.socket) -> None:
    """Start programs on request until the connection closes."""
    from tertulia import cli
    from tertulia.cli import serve
    from tertulia.model import emoji

    cli.application()  # Load everything that programs share.
    serve.become_supervisor = _become_supervisor  # type: ignore[attr-defined]  # who imported it
    for name in _WHEN_NEEDED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    emoji.codes_by_name()  # This takes as long as the rest of a start.
    be_patient()
    signal.signal(signal.SIGCHLD, _reap)
    gc.collect()
    gc.freeze()
    while True:
        request, files, _, _ = socket.recv_fds(requests, _MOST, 3)
        if not request:
            return
        if os.fork():
            for file in files:
                os.close(file)
            continue
        requests.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _watch(json.loads(request), *files)


def be_patient() -> None:
    """Give up later than a server does, since the machine may be busy with other tests."""
    from tertulia.markup import worker_rendering
    from tertulia.store import readers
    from tertulia.wire.metrics import families, page

    # A search of a few messages may take a second.
    readers.SEARCH_SECONDS = 30.0
    # The process that highlights code may need five seconds to start.
    worker_rendering.MAX_WAIT = 60.0  # type: ignore[misc]
    # Metrics that take longer than a second are left out.
    families.WAITING_SECONDS = page.ANSWER_SECONDS = 60.0  # type: ignore[misc]


def _reap(_: int, __: FrameType | None) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(request: Any, told: int, output: int, errors: int) -> None:
    """Start the program, report its process ID and, when it has ended, its exit status."""
    pid = os.fork()
    if not pid:
        os.dup2(output, 1)
        os.dup2(errors, 2)
        os.closerange(3, max(told, output, errors) + 1)
        _become(request["words"], request["environment"])
    os.close(output)
    os.close(errors)
    with contextlib.suppress(OSError):  # The requesting process has ended.
        os.write(told, b"%d\n" % pid)
        os.write(told, b"%d\n" % os.waitpid(pid, 0)[1])
    os._exit(0)


def _become(words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Continue as the program."""
    from tertulia.cli import main

    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.modules["__main__"].__package__ = "tertulia"  # The program's name in its help.
    sys.argv = [str(_ROOT / "src" / "tertulia" / "__main__.py"), *words]
    sys.orig_argv = [sys.executable, *_PROGRAM, *words]
    for name, file in (("stdout", 1), ("stderr", 2)):
        setattr(sys, name, os.fdopen(file, "w", buffering=1, encoding="utf-8", closefd=False))
    _go_on(main)


def _go_on(main: Callable[[], object]) -> NoReturn:
    """Exit like a program whose last call this is."""
    status = 1
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _become_supervisor(plan: "Plan") -> NoReturn:
    """Continue as the supervisor without loading anything, and fork workers."""
    from tertulia.app.serving import process

    os.environ["PYTHONPATH"] = str(_ROOT / "src")  # As in the real program.
    words = [msgspec.json.encode(plan).decode()]
    with mock.patch.object(process, "subprocess", _FORKING):
        _go_on(lambda: sys.exit(process.main(words)))


class _Worker:
    """A worker that its supervisor forks, with the part of `subprocess.Popen` that the supervisor
    uses."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int,
        env: Mapping[str, str],
        pass_fds: Sequence[int],
        start_new_session: bool,
    ) -> None:
        assert command[: len(_PROGRAM) + 1] == [sys.executable, *_PROGRAM]
        assert (stdin, start_new_session) == (subprocess.DEVNULL, True)  # (All have the same.)
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        # A program doesn't inherit these. The objects of files that were open here remain, because
        # nothing returns.
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                is_ours = number == signal.SIGINT  # Python's defaults.
                signal.signal(number, signal.default_int_handler if is_ours else signal.SIG_DFL)
        _close_all_but(pass_fds)
        _become(command[len(_PROGRAM) + 1 :], env)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


_FORKING = SimpleNamespace(Popen=_Worker, DEVNULL=subprocess.DEVNULL)


def _close_all_but(descriptors: Sequence[int]) -> None:
    """Close all files except for these, input, output, and errors."""
    first = 3
    for descriptor in sorted(descriptors):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as way:
        _serve(way)
