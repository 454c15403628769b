"""Reading a source in a separate process.

Reading an export takes as long as writing its messages, so an import uses two processors. Only this
process opens the export. It answers one request at a time, and opens files in the meantime.
"""

import io
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import msgspec
from msgspec.structs import replace

from tertulia.imports.progress import read_batches, read_from
from tertulia.imports.records import SourceOrganization, SourceSubscription
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, Source, SourceError, Survey
from tertulia.imports.stages import StageProgress, TellStage, tell_nobody
from tertulia.service.garbage import (
    collect_rarely,
    return_all_freed_memory,
    return_freed_memory,
)

END_SECONDS: Final = 10.0
"""How long the process may take to delete its temporary files and exit."""
NICE: Final = 5
"""The increase of the nice value of processes that hold no locks."""
SUBSCRIPTIONS: Final = 2000
"""Subscriptions that are sent together."""
_decode_batch: Final = msgspec.msgpack.Decoder(tuple[MessageBatch, ImportReport]).decode


class Opened(Protocol):
    """Opens a source."""

    def __call__(self, work: Path, /, *, tell: TellStage) -> Source: ...


class SeparateSource:
    """A source in a separate process. Implements `Source`, except that messages can be read only
    once."""

    def __init__(self, opened: Opened, work: Path, tell: TellStage = tell_nobody) -> None:
        """`opened` opens the source, with the directory `work` for temporary files. It must be
        picklable: a class, or a partial of one. Raises SourceError."""
        self._tell = tell
        context = multiprocessing.get_context("spawn")
        self._requests, requests = context.Pipe()
        self._files, files = context.Pipe()
        self._lock = threading.Lock()
        self._process = context.Process(
            target=_serve, args=(opened, work, requests, files), daemon=True
        )
        self._process.start()
        requests.close()
        files.close()
        try:
            self.kind, self.keeps_ids = self._answer(self._requests)
        except BaseException:
            self.close()
            raise

    def survey(self) -> Survey:
        self._requests.send(("survey", None))
        survey: Survey = self._answer(self._requests)
        return survey

    def organization(self, report: ImportReport) -> SourceOrganization:
        self._requests.send(("organization", None))
        organization: SourceOrganization
        organization, number, noticed = self._answer(self._requests)
        report.add(noticed)
        subscriptions: list[SourceSubscription] = []
        while len(subscriptions) < number:
            subscriptions += self._answer(self._requests)
        return replace(organization, subscriptions=tuple(subscriptions))

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        self._requests.send(("messages", after))
        while isinstance(answer := self._answer(self._requests), bytes):
            batch, noticed = _decode_batch(answer)
            report.add(noticed)
            yield batch
        report.add(answer)  # The remarks after the last batch.

    def open(self, place: str) -> BinaryIO:
        with self._lock:
            self._files.send(place)
            self._answer(self._files)
            return os.fdopen(recv_handle(self._files), "rb")

    def close(self) -> None:
        """End the process, which closes the source."""
        self._requests.close()
        self._files.close()
        self._process.join(END_SECONDS)
        self._process.kill()

    def _answer(self, connection: "Connection[Any, Any]") -> Any:
        try:
            while isinstance(answer := connection.recv(), StageProgress):
                self._tell(answer)
        except EOFError:
            raise SourceError(
                "The process that reads the export was ended, perhaps because memory ran out. Run"
                " the import again to continue it."
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def yield_to_others() -> None:
    """Lower this process's priority, so that processes that people wait for run first."""
    with suppress(OSError):
        os.nice(NICE)


def end_with_parent() -> None:
    """End this process when the importing process was killed, since its queues don't notice
    that."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _serve(
    opened: Opened,
    work: Path,
    requests: "Connection[Any, Any]",
    files: "Connection[Any, Any]",
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield_to_others()
    collect_rarely()
    return_freed_memory()
    threading.Thread(target=end_with_parent, daemon=True).start()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            source = read_from(lambda: opened(work, tell=requests.send))
        except (SourceError, OSError) as error:
            requests.send(error)
            return
        try:
            requests.send((source.kind, source.keeps_ids))
            threading.Thread(target=_open_files, args=(source, work, files), daemon=True).start()
            while True:
                _answer_request(source, requests, *requests.recv())
        finally:
            source.close()


def _answer_request(
    source: Source, requests: "Connection[Any, Any]", name: str, after: str
) -> None:
    report = ImportReport()
    try:
        match name:
            case "survey":
                requests.send(read_from(source.survey))
                return_all_freed_memory()  # It has read and sorted the whole export.
            case "organization":
                _send_organization(requests, read_from(lambda: source.organization(report)), report)
            case "messages":
                for batch in read_batches(source, after, report):
                    requests.send(msgspec.msgpack.encode((batch, report.taken())))
                requests.send(report)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except (SourceError, OSError) as error:
        requests.send(error)


def _send_organization(
    requests: "Connection[Any, Any]", organization: SourceOrganization, report: ImportReport
) -> None:
    """Send the organization, and its subscriptions in pieces: pickling keeps copies of everything
    until the end."""
    subscriptions = organization.subscriptions
    requests.send((replace(organization, subscriptions=()), len(subscriptions), report))
    for begin in range(0, len(subscriptions), SUBSCRIPTIONS):
        requests.send(subscriptions[begin : begin + SUBSCRIPTIONS])


def _open_files(source: Source, work: Path, files: "Connection[Any, Any]") -> None:
    with suppress(EOFError, OSError):
        while True:
            place = files.recv()
            try:
                with _as_file(read_from(partial(source.open, place)), work) as file:
                    files.send(None)
                    send_handle(files, file.fileno(), os.getppid())
            except (SourceError, OSError) as error:
                files.send(error)


@contextmanager
def _as_file(stream: BinaryIO, work: Path) -> Iterator[BinaryIO]:
    """Yield the stream as a file with a file descriptor, which another process can read."""
    with stream:
        if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
            yield stream
            return
        with tempfile.TemporaryFile(dir=work) as copy:
            shutil.copyfileobj(stream, copy)
            copy.seek(0)
            yield copy
