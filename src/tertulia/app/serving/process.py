"""The supervisor's process, which `tertulia serve` turns into if there are several workers. It
imports little, because it runs as long as the server."""

import contextlib
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

from tertulia.app import logs
from tertulia.app.serving.supervisor import STOP_SECONDS, WorkerSupervisor
from tertulia.app.serving.worker import (
    COUNTS_BYTES,
    LEAVE,
    READY,
    SLOTS,
    STOP,
    STOPPING,
    VARIABLE,
    Counts,
    Report,
    WorkerPlace,
    notify,
)

_LONGEST_PATH: Final = 70
"""The most bytes of the path of the workers' sockets' directory. The sockets' addresses have 100
bytes."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor's configuration."""

    workers: int
    command: Sequence[str]
    """The command that starts a worker."""
    installation: str
    """A text that is the same for the same database and data directory."""
    python_path: str | None
    """The workers' PYTHONPATH."""
    listener: int
    """The file descriptor of the bound socket."""
    path: str | None
    """The path of the socket, if the server created it and must delete it."""
    lock: int | None
    """The file descriptor of the lock that a running server holds."""
    drain_seconds: int
    log_level: str
    log_format: str


def become_supervisor(plan: Plan) -> None:
    """Replace this process with the supervisor. Doesn't return."""
    for descriptor in (plan.listener, plan.lock):
        if descriptor is not None:
            os.set_inheritable(descriptor, True)
    # Make sure that the new program finds this package.
    source = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (source, plan.python_path)))
    os.execve(  # noqa: S606 (our own module, by our own interpreter)
        sys.executable,
        [sys.executable, "-P", "-m", __name__, msgspec.json.encode(plan).decode()],
        {**os.environ, "PYTHONPATH": path},
    )


class _Process:
    """A worker's process and its control connection."""

    def __init__(
        self,
        popen: "subprocess.Popen[bytes]",
        control: socket.socket,
        beat: Callable[[], float | None],
    ) -> None:
        self.popen = popen
        self.control = control
        self._beat = beat
        self._received = b""

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def beat(self) -> float | None:
        return self._beat()

    def leave(self) -> None:
        self._tell(LEAVE)

    def stop(self) -> None:
        self._tell(STOP)

    def _tell(self, what: bytes) -> None:
        with contextlib.suppress(OSError):  # The process has just ended.
            self.control.send(what)

    def kill(self) -> None:
        self.popen.kill()

    def reports(self) -> Sequence[Report] | None:
        """Return the reports since the last call; None if there will be no more."""
        try:
            data = self.control.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        *lines, self._received = (self._received + data).split(b"\n")
        return [msgspec.json.decode(line, type=Report) for line in lines]


class _Killed(Exception):
    """A second signal arrived."""

    def __init__(self, number: int) -> None:
        self.signal = number


class _Group:
    """Starts workers, and reacts to their reports and to signals."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._selector = selectors.DefaultSelector()
        self._memory = _shared_memory()
        self._counts = Counts(self._memory)
        self._processes: list[_Process] = []
        self._bus = ""
        self._started = 0
        self._signals: list[int] = []
        self._is_told = False
        """Whether it was told to stop."""
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self._on_signal)

    def run(self) -> int:
        """Serve until the end. Return the exit code."""
        directory = tempfile.mkdtemp(prefix="tertulia-")
        if len(directory) > _LONGEST_PATH:
            os.rmdir(directory)
            directory = tempfile.mkdtemp(prefix="tertulia-", dir="/tmp")
        self._bus = directory
        try:
            return self._run()
        except _Killed as killed:
            return 128 + killed.signal
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            if self._plan.path is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self._plan.path)

    def _run(self) -> int:
        supervisor = WorkerSupervisor(
            self._plan.workers,
            self._start,
            partial(_print, self._plan.log_format),
            now=time.monotonic(),
            stop_seconds=self._plan.drain_seconds + STOP_SECONDS,
        )
        while supervisor.exit_code is None:
            left = max(supervisor.tick(time.monotonic()) - time.monotonic(), 0)
            ready = {key.fileobj: key.data for key, _ in self._selector.select(left)}
            for process in ready.values():
                if process is not None:
                    self._hear(supervisor, process)
            if self._woken in ready:
                self._woken.recv(4096)
                self._obey(supervisor)
                self._reap(supervisor)
        return supervisor.exit_code

    def _start(self, number: int) -> _Process:
        plan = self._plan
        slot = self._started % SLOTS
        self._counts.withdraw(slot)  # Another process may have had it.
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            place = WorkerPlace(
                number=number,
                of=plan.workers,
                installation=plan.installation,
                bus=self._bus,
                listener=plan.listener,
                control=theirs.fileno(),
                counts=self._memory,
                slot=slot,
            )
            inherited = (plan.listener, plan.lock, theirs.fileno(), self._memory)
            popen = subprocess.Popen(  # noqa: S603 (what started this program)
                plan.command,
                stdin=subprocess.DEVNULL,
                env=self._environment(place),
                pass_fds=[fd for fd in inherited if fd is not None],
                # Keys pressed in a terminal only signal the supervisor.
                start_new_session=True,
            )
        self._started += 1
        process = _Process(popen, ours, partial(self._counts.beat, slot))
        self._processes.append(process)
        self._selector.register(ours, selectors.EVENT_READ, process)
        return process

    def _environment(self, place: WorkerPlace) -> Mapping[str, str]:
        environment = {**os.environ, VARIABLE: msgspec.json.encode(place).decode()}
        del environment["PYTHONPATH"]
        environment.pop("NOTIFY_SOCKET", None)  # The supervisor speaks for all.
        if self._plan.python_path is not None:
            environment["PYTHONPATH"] = self._plan.python_path
        return environment

    def _hear(self, supervisor: WorkerSupervisor, process: _Process) -> None:
        reports = process.reports()
        if reports is None or process not in self._processes:
            self._selector.unregister(process.control)
            process.control.close()
            return
        for report in reports:
            if report.ready:
                supervisor.ready(process, report.ready, time.monotonic())
            if report.leaving:
                supervisor.leaving(process, time.monotonic())

    def _obey(self, supervisor: WorkerSupervisor) -> None:
        signals, self._signals = self._signals, []
        for number in signals:
            if number == signal.SIGHUP:
                supervisor.replace(time.monotonic())
            elif self._is_told:
                supervisor.kill()
                raise _Killed(number)
            else:
                self._is_told = True
                notify(STOPPING)
                supervisor.stop(time.monotonic())

    def _reap(self, supervisor: WorkerSupervisor) -> None:
        for process in list(self._processes):
            code = process.popen.poll()
            if code is not None:
                if process.control.fileno() >= 0:
                    self._hear(supervisor, process)  # Read its last reports.
                self._processes.remove(process)
                supervisor.ended(process, code, time.monotonic())

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._signals.append(number)


def _shared_memory() -> int:
    """Return the file descriptor of memory that the workers share."""
    with tempfile.TemporaryFile() as file:
        file.truncate(COUNTS_BYTES)
        return os.dup(file.fileno())


def _print(form: str, text: str) -> None:
    logs.announce(text, form)
    notify(READY, f"STATUS={text.partition(chr(10))[0]}")


def main(arguments: Sequence[str]) -> int:
    """Run the supervisor. Its exit code is the server's."""
    plan = msgspec.json.decode(arguments[0], type=Plan)
    logs.begin(plan.log_level, plan.log_format)
    return _Group(plan).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
