"""The node's side of embedded bots: their processes, started on demand."""

import asyncio
import contextlib
import logging
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import Struct

from tertulia.embedded.frames import (
    MAX_FRAME,
    Finished,
    HandleMessage,
    Operation,
    OperationResult,
    StartBot,
    to_node,
)
from tertulia.model.numbers import counted, retry_pause
from tertulia.workers.process import HEADER, environment, framed

logger = logging.getLogger("tertulia.embedded")

MOST_PROCESSES: Final = 8
"""The most processes per node. Above it, the process that was idle longest is replaced."""
IDLE_SECONDS: Final = 300.0
"""How long an idle process is kept."""
START_SECONDS: Final = 15.0
MESSAGE_SECONDS: Final = 15.0
"""The time limit for starting, and for one message."""
PROCESSOR_SECONDS: Final = 5.0
"""CPU time for one message."""
PATIENCE: Final = 45.0
"""How long a message waits for earlier ones and for a free process."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
"""The longest time before a lost process is restarted. Each pause is twice the previous one."""
MOST_LINES: Final = 50
"""The most lines of a bot's output that are logged per message."""
_LINE: Final = 2000
"""The longest logged line, in bytes."""
_LEFT: Final = 65_536
"""Bytes that are read in one step from an ended process."""

Asked = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Performs an operation as the bot, and returns the API's response."""


class BotUnavailable(Exception):
    """The bot can't get the message now, but may in `wait` seconds. `str(error)` says why."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        self.wait = wait
        super().__init__(reason)


class BotFailed(Exception):
    """The bot failed to handle the message, and would fail again. `str(error)` says how."""


class HostedBot(Struct, frozen=True, kw_only=True):
    """A bot with its process's settings. If they change, the process is replaced."""

    program: str
    module: str
    user_id: int
    email: str
    full_name: str
    settings: tuple[tuple[str, str], ...]
    networks: str
    data_dir: str


class Host:
    """The bot processes of a node."""

    def __init__(self) -> None:
        self._running: dict[int, _BotProcess] = {}
        self._starting = 0
        self._turns: dict[int, asyncio.Lock] = {}
        self._room = asyncio.Semaphore(MOST_PROCESSES)
        self._ending: set[asyncio.Task[None]] = set()
        self._lost: dict[int, tuple[int, float]] = {}
        """Bots whose process was lost: the number of losses in a row, and when it may restart."""

    def process_id(self, user_id: int) -> int | None:
        process = self._running.get(user_id)
        return None if process is None else process.id

    @asynccontextmanager
    async def turn(self, user_id: int) -> AsyncIterator[None]:
        """Wait for the bot's turn to get a message, in the order of requests. Raises
        BotUnavailable if that takes too long."""
        turn = self._turns.setdefault(user_id, asyncio.Lock())
        taken = contextlib.AsyncExitStack()
        async with taken:
            try:
                async with asyncio.timeout(PATIENCE):
                    await taken.enter_async_context(turn)
                    await taken.enter_async_context(self._room)
            except TimeoutError:
                raise BotUnavailable("The bot or the server's other bots are busy.") from None
            yield

    async def tell(self, bot: HostedBot, message: dict[str, Any], asked: Asked) -> None:
        """Make the bot handle the message, within a `turn`. Raises BotUnavailable and BotFailed."""
        process = await self._process(bot, asked)
        failed: str | None = None
        try:
            failed = await process.converse(HandleMessage(message=message), asked, MESSAGE_SECONDS)
        except _Lost as error:
            await self._end(bot.user_id, process)
            self._note_loss(bot.user_id)
            raise BotFailed(f"The bot {error}.") from None
        except BaseException:
            # Its state in the conversation isn't known.
            await self._end(bot.user_id, process)
            raise
        if process.has_ended:
            await self._end(bot.user_id, process)
        else:
            process.rest(IDLE_SECONDS, lambda: self._begin_end(bot.user_id, process))
        if failed:
            raise BotFailed(f"The bot failed: {failed}")
        self._lost.pop(bot.user_id, None)

    async def close(self) -> None:
        """End all processes and wait for them."""
        for user_id, process in list(self._running.items()):
            self._begin_end(user_id, process)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _process(self, bot: HostedBot, asked: Asked) -> "_BotProcess":
        """Return the bot's process, started if necessary."""
        process = self._running.get(bot.user_id)
        if process is not None and process.bot == bot and not process.has_ended:
            process.wake()
            return process
        if process is not None:
            await self._end(bot.user_id, process)
        times, until = self._lost.get(bot.user_id, (0, 0.0))
        if (wait := until - time.monotonic()) > 0:
            raise BotUnavailable(
                f"The bot's process has crashed {counted(times, 'time')} and will restart soon.",
                wait,
            )
        self._starting += 1
        try:
            await self._make_room()
            process = await _started(bot)
            try:
                failed = await process.converse(_begin(bot), asked, START_SECONDS)
            except _Lost as error:
                failed = f"it {error}"
            except BaseException:
                await self._end(bot.user_id, process)
                raise
            if failed:
                await self._end(bot.user_id, process)
                raise BotUnavailable(f"The bot couldn't start: {failed}")
            self._running[bot.user_id] = process
        finally:
            self._starting -= 1
        return process

    async def _make_room(self) -> None:
        """End the processes that were idle longest to make room for starting ones. (`_room` limits
        the busy ones.)"""
        idle = {i: p for i, p in self._running.items() if p.idle_since is not None}
        excess = len(self._running) + self._starting - MOST_PROCESSES
        for user_id in sorted(idle, key=lambda i: idle[i].idle_since or 0.0)[: max(excess, 0)]:
            await self._end(user_id, idle[user_id])

    def _note_loss(self, user_id: int) -> None:
        times = self._lost.get(user_id, (0, 0.0))[0] + 1
        pause = retry_pause(times, FIRST_PAUSE, LONGEST_PAUSE)
        self._lost[user_id] = (times, time.monotonic() + pause)

    async def _end(self, user_id: int, process: "_BotProcess") -> None:
        await asyncio.shield(self._begin_end(user_id, process))

    def _begin_end(self, user_id: int, process: "_BotProcess") -> asyncio.Task[None]:
        """End the process in the background. The event loop mustn't close before its processes
        are gone."""
        if self._running.get(user_id) is process:
            del self._running[user_id]
        ending = asyncio.create_task(process.end(), name="end-bot")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending


def _begin(bot: HostedBot) -> StartBot:
    return StartBot(
        program=bot.program,
        module=bot.module,
        user_id=bot.user_id,
        email=bot.email,
        full_name=bot.full_name,
        settings=dict(bot.settings),
        networks=bot.networks,
        data_dir=bot.data_dir,
        start_seconds=START_SECONDS,
        seconds=MESSAGE_SECONDS,
        processor=PROCESSOR_SECONDS,
    )


def _masked(text: str, bot: HostedBot) -> str:
    """Mask the values of the bot's settings, which errors may contain."""
    for _, value in bot.settings:
        for name in (value, quote(value), quote_plus(value)):
            if len(name) > 3:
                text = text.replace(name, "…")
    return text


class _Lost(Exception):
    """The process no longer responds. `str(error)` continues "it"."""


async def _started(bot: HostedBot) -> "_BotProcess":
    into: asyncio.StreamWriter | None = None
    try:
        # The bot's process could also write to the pipes that the event loop makes of `PIPE`.
        read_end, write_end = os.pipe()
        try:
            into = await _writer(write_end)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-B", "-u", "-m", "tertulia.embedded.process"),
                stdin=read_end,
                stdout=PIPE,
                stderr=PIPE,
                env=environment(),
                # Ctrl+C is for the server, which ends this process.
                start_new_session=True,
            )
        finally:
            os.close(read_end)
    except BaseException as error:
        if into is not None:
            into.close()
        if isinstance(error, OSError):
            raise BotUnavailable(f"The bot's process couldn't be started: {error}") from None
        raise
    return _BotProcess(bot, process, into)


async def _writer(pipe: int) -> asyncio.StreamWriter:
    """Open the pipe for writing."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, reader, loop)


class _BotProcess:
    def __init__(self, bot: HostedBot, process: Process, into: asyncio.StreamWriter) -> None:
        self.bot = bot
        self._into = into
        self.id = process.pid
        self.idle_since: float | None = None
        self._process = process
        self._is_over = False
        self._end_of_rest: asyncio.TimerHandle | None = None
        self._lines = 0
        self._log = asyncio.create_task(self._log_lines())

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended or announced its end."""
        return self._is_over or self._process.returncode is not None

    def rest(self, seconds: float, end: Callable[[], object]) -> None:
        """Mark the process as idle, and call `end` after it was idle for `seconds`."""
        self.idle_since = time.monotonic()
        self._end_of_rest = asyncio.get_running_loop().call_later(seconds, end)

    def wake(self) -> None:
        """Mark the process as busy."""
        self.idle_since = None
        if self._end_of_rest is not None:
            self._end_of_rest.cancel()

    async def converse(self, frame: StartBot | HandleMessage, asked: Asked, seconds: float) -> str:
        """Send the frame, and perform the bot's operations until it's done. Return its error, if
        any. Raises _Lost if it takes too long or ends."""
        self._lines = 0
        try:
            async with asyncio.timeout(seconds):
                await self._send(frame)
                while isinstance(said := await self._receive(), Operation):
                    answer = await asked(said.operation, said.fields)
                    await self._send(OperationResult(said=answer))
        except TimeoutError:
            raise _Lost(f"took longer than {seconds:.0f} seconds and was stopped") from None
        except (OSError, EOFError, ValueError, msgspec.MsgspecError):
            raise _Lost("used too much time or memory and was stopped") from None
        self._is_over = said.ends
        return _masked(said.error, self.bot)

    async def end(self) -> None:
        """Kill the process and close its pipes."""
        self.wake()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._into.close()
        with contextlib.suppress(asyncio.CancelledError):
            await self._log
        while self._process.stdout is not None and await self._process.stdout.read(_LEFT):
            pass
        await self._process.wait()

    async def _send(self, frame: StartBot | HandleMessage | OperationResult) -> None:
        self._into.write(framed(frame))
        await self._into.drain()

    async def _receive(self) -> Operation | Finished:
        out_of = self._process.stdout
        if out_of is None:
            raise RuntimeError("a process without pipes")
        size = int.from_bytes(await out_of.readexactly(HEADER), "big")
        if size > MAX_FRAME:
            raise ValueError("a frame is too long")
        frame: Operation | Finished = to_node.decode(await out_of.readexactly(size))
        return frame

    async def _log_lines(self) -> None:
        """Log the process's output, limited per message."""
        errors = self._process.stderr
        rest = b""
        while errors is not None and (part := await errors.read(_LINE)):
            if self._lines >= MOST_LINES:
                rest = b""  # Drop the rest: nobody reads that much.
                continue
            *lines, rest = (rest + part).split(b"\n")
            if len(rest) > _LINE:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._log_line(line)
        self._log_line(rest)

    def _log_line(self, line: bytes) -> None:
        self._lines += 1
        if self._lines > MOST_LINES:
            return
        text = _masked(line[:_LINE].decode(errors="replace").rstrip(), self.bot)
        if text:
            said = {"bot_id": self.bot.user_id, "bot": self.bot.full_name, "line": text}
            logger.info("output of an embedded bot", extra={"fields": said})
