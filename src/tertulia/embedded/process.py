"""A bot's process: `python -m tertulia.embedded.process`.

It handles messages one at a time for its node, and ends when the node closes its input or has
ended. The kernel's timers end it when a message takes too long, in wall-clock or CPU time.
"""

import importlib
import mimetypes
import os
import signal
import sys
import sysconfig
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Final, NoReturn

from tertulia.embedded.frames import (
    MAX_FRAME,
    Finished,
    HandleMessage,
    Operation,
    OperationResult,
    StartBot,
    ToNode,
    ToProcess,
    to_process,
)
from tertulia.embedded.handler import BotHandler
from tertulia.outbound.addresses import Network, is_elsewhere, networks, parsed
from tertulia.workers.process import HEADER, framed, restrict

_REFUSED: Final = (
    *("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile"),
    *("os.fork", "os.forkpty", "pty.", "os.kill", "os.putenv", "os.truncate"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink"),
    *("os.chmod", "os.chown", "os.chflags", "os.setxattr", "shutil."),
    # Opens files without calling the bot's "open".
    "sqlite3.",
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_ALWAYS: Final = ("/dev/null", "/dev/urandom", "/usr/share/zoneinfo")
"""Files and directories that libraries read."""


def keep_within_bounds(networks: Sequence[Network], data_dir: str) -> None:
    """Permanently block everything that a bot doesn't need, with PermissionError. Connections are
    allowed to the internet and to `networks`. Files in `data_dir` can't be read."""
    mimetypes.init()  # The first use reads the system's files.
    python = (sysconfig.get_path(item) for item in ("stdlib", "platstdlib", "purelib", "platlib"))
    paths = tuple(os.path.realpath(text) for text in (*python, *_ALWAYS))
    added = tuple(os.path.realpath(text) for text in filter(None, sys.path))
    closed = (os.path.realpath(data_dir),)

    def is_readable(path: Any, flags: Any) -> bool:
        if isinstance(path, int):
            return True
        if isinstance(flags, int) and flags & _WRITING:
            return False
        real = os.path.realpath(os.fsdecode(path))
        return _is_in(real, paths) or (_is_in(real, added) and not _is_in(real, closed))

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


MEMORY: Final = 1024 * 1024 * 1024
FILES: Final = 64
"""The most open files, including connections."""


def main() -> None:
    # Data that the bot reads and prints must not mix with the frames.
    pipe = _Pipe(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for item in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(item, signal.SIG_DFL)
    restrict(MEMORY, files=FILES, file_size=0)
    begin = pipe.receive()
    if not isinstance(begin, StartBot):
        raise TypeError("the node begins with something else")
    _timed(begin.start_seconds, 0)
    try:
        handler, bot = _begun(begin, pipe)
    except (Exception, SystemExit) as error:  # Reported to the node.
        _failed(pipe, error)
    pipe.send(Finished())
    while True:
        _timed(0, 0)
        order = pipe.receive()
        if not isinstance(order, HandleMessage):
            raise TypeError("the node tells something else")
        _timed(begin.seconds, begin.processor)
        try:
            handler.begin_message()
            _handle(order.message, handler, bot)
        except SystemExit as error:
            _failed(pipe, error)
        except Exception as error:
            traceback.print_exc()
            pipe.send(Finished(error=_reason(error)))
        else:
            pipe.send(Finished())


class _Pipe:
    def __init__(self, requests: BinaryIO, responses: BinaryIO) -> None:
        self._requests = requests
        self._responses = responses

    def receive(self) -> ToProcess:
        """Return the next frame. Ends the process if the node has ended."""
        header = self._requests.read(HEADER)
        if len(header) < HEADER:
            os._exit(0)
        content = self._requests.read(int.from_bytes(header, "big"))
        frame: ToProcess = to_process.decode(content)
        return frame

    def send(self, frame: ToNode) -> None:
        content = framed(frame)
        if len(content) > MAX_FRAME:
            raise ValueError("that is too much at once")
        self._responses.write(content)
        self._responses.flush()

    def ask(self, operation: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        self.send(Operation(operation=operation, fields=dict(fields)))
        answer = self.receive()
        if not isinstance(answer, OperationResult):
            raise TypeError("the node answers something else")
        return answer.said


def _begun(begin: StartBot, pipe: _Pipe) -> tuple[BotHandler, Any]:
    from zulip_bots.lib import prepare_message_handler

    handler = BotHandler(begin, pipe.ask)
    module = importlib.import_module(begin.module)
    keep_within_bounds(networks(begin.networks), begin.data_dir)
    return handler, prepare_message_handler(begin.program, handler, module)


def _handle(message: dict[str, Any], handler: BotHandler, bot: Any) -> None:
    """Make the bot handle the message if it's for the bot, without the leading mention."""
    from zulip_bots.lib import extract_query_without_mention, is_private_message_but_not_group_pm

    full = message["content"]
    behind = extract_query_without_mention(message, handler)
    if behind is None and not is_private_message_but_not_group_pm(message, handler):
        return
    content = full if behind is None else behind
    bot.handle_message(
        message={**message, "full_content": full, "content": content}, bot_handler=handler
    )


def _failed(pipe: _Pipe, error: BaseException) -> NoReturn:
    traceback.print_exception(error)
    pipe.send(Finished(error=_reason(error), ends=True))
    sys.stderr.flush()
    os._exit(1)


def _reason(error: BaseException) -> str:
    """Return the reason of an error, for the bot's owner. The log has the traceback."""
    if isinstance(error, MemoryError):
        return "it ran out of memory"
    return str(error)[:300] or "an unexpected error occurred"


def _timed(seconds: float, processor: float) -> None:
    """Let the kernel end this process after these times (0: never)."""
    # A little later than the node, which reports the reason.
    signal.setitimer(signal.ITIMER_REAL, seconds and seconds + 5)
    signal.setitimer(signal.ITIMER_PROF, processor)


if __name__ == "__main__":
    main()
