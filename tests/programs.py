"""Servers that tests start, without what takes longest about it: they are forked from a process
that has loaded the program already, and go on as `python -m tertulia` does.

That a program starts from nothing is tested where it is the subject (`Place.program_from_nothing`),
and is what each worker of a supervisor does.
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
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_MOST = 1 << 20
"""Bytes of a request to start a program."""


class Program:
    """A program that was started; as much of `subprocess.Popen` as tests ask for."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        output: int,
        errors: int | None = None,
    ) -> None:
        """Start `tertulia` with these words. What it writes goes to that file descriptor, and what
        it says of errors too, unless there is another for that."""
        self._words = list(words)
        self._told, theirs = socket.socketpair()
        request = json.dumps({"words": self._words, "environment": dict(environment)}).encode()
        assert len(request) < _MOST
        with theirs:
            files = [theirs.fileno(), output, output if errors is None else errors]
            socket.send_fds(_loaded(), [request], files)
        self.pid = int(self._line())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.returncode = os.waitstatus_to_exitcode(int(self._line()))
            self._told.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same when it has ended. `subprocess.TimeoutExpired` after so many seconds."""
        if self.returncode is None:
            select.select([self._told], [], [], timeout)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send it to the program, unless that has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _line(self) -> bytes:
        found = b""
        while not found.endswith(b"\n"):
            piece = self._told.recv(100)
            assert piece, "who starts programs has ended"
            found += piece
        return found


class HeardProgram(Program):
    """One whose output is read while it runs, as that of a `Popen` with pipes and text."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        (output, theirs), (errors, their_errors) = os.pipe(), os.pipe()
        self.stdout, self.stderr = os.fdopen(output), os.fdopen(errors)
        try:
            super().__init__(words, environment, theirs, their_errors)
        finally:
            os.close(theirs)
            os.close(their_errors)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All that it writes from now on, output and errors, when it has ended."""
        with ThreadPoolExecutor(2) as threads:
            said = [threads.submit(file.read) for file in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()  # So that there is an end to what is read.
                raise
            return said[0].result(), said[1].result()

    def close(self) -> None:
        """End it, where it runs still."""
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()


_WHEN_NEEDED = (
    *("apsw", "argon2", "cryptography.fernet", "psycopg", "uvloop"),
    *("tertulia.markup.markdown", "tertulia.store.postgres", "tertulia.store.sqlite"),
)
"""What programs load when they first need it, which nearly every test has them do."""


@cache
def _loaded() -> socket.socket:
    """The way to the process that has loaded the programs; it ends with this one."""
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
    """Start what is asked for until nobody can ask any more."""
    from tertulia import cli

    cli.application()  # What all have in common is loaded here.
    for name in _WHEN_NEEDED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
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


def _reap(_: int, __: FrameType | None) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(request: Any, told: int, output: int, errors: int) -> None:
    """Start the program, say which process it is and, when it has ended, how."""
    pid = os.fork()
    if not pid:
        os.dup2(output, 1)
        os.dup2(errors, 2)
        os.closerange(3, max(told, output, errors) + 1)
        _become(request["words"], request["environment"])
    os.close(output)
    os.close(errors)
    with contextlib.suppress(OSError):  # Nobody wants to know any more.
        os.write(told, b"%d\n" % pid)
        os.write(told, b"%d\n" % os.waitpid(pid, 0)[1])
    os._exit(0)


def _become(words: list[str], environment: dict[str, str]) -> None:
    """Go on as the program. Does not return."""
    from tertulia.cli import main

    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.modules["__main__"].__package__ = "tertulia"  # What help calls the program.
    sys.argv = [str(_ROOT / "src" / "tertulia" / "__main__.py"), *words]
    sys.orig_argv = [sys.executable, "-m", "tertulia", *words]
    for name, file in (("stdout", 1), ("stderr", 2)):
        setattr(sys, name, os.fdopen(file, "w", buffering=1, encoding="utf-8"))
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


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as way:
        _serve(way)
