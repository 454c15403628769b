"""Forwarding commands to another node of the same machine.

Nodes that take turns writing wait for each other, and commit small groups. So a node forwards
commands to the node that wrote last, as long as that keeps writing. A command is forwarded
unchanged, and decides there like any other. Writing still requires the lock on the head.

A node that gets no response executes the command itself. The other node may have executed it too,
so commands have an attempt ID by which their verb recognizes a repetition.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from tertulia import __version__
from tertulia.log.health import Measures
from tertulia.log.replica import Replica
from tertulia.log.requests import MOST_WAITING, Command, Inbox
from tertulia.model.errors import OutcomeUnknown, Refused, Unavailable
from tertulia.state.decision import Verb
from tertulia.store import broadcast
from tertulia.store.bus import MAX_DATAGRAM, PeerSocket
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")

FORWARDED_SECONDS: Final = 2.0
"""The number of seconds for which a node waits for another one. After that, the other node doesn't
begin the command."""
WRITES_SECONDS: Final = 1.0
"""A node that wrote within this many seconds is expected to keep writing."""
MANY_COMMANDS: Final = 7
"""A node with this many concurrent commands fills groups itself, so forwarding each would cost more
than it saves."""
MANY_SECONDS: Final = 1.0
"""The number of seconds for which it's then expected to keep having that many."""
AVOID_SECONDS: Final = 5.0
"""The number of seconds for which nothing is forwarded to a node that didn't respond."""
MAX_BROADCAST: Final = MAX_DATAGRAM // 4
"""The size, in characters, of the broadcasts that a reply may include."""
BROADCAST_SECONDS: Final = 0.05
"""The number of seconds to wait for broadcasts of entries that a response refers to, before the log
is read."""

DecideLocally = Callable[[Any], Awaitable[Any]]
"""Executes the command on this node, with this argument."""


@dataclass(frozen=True)
class ForwardableCommand:
    """A verb with one argument whose commands other nodes may execute."""

    verb: Verb[Any]
    argument: type[Struct]
    result: type[Struct]
    marked: Callable[[Any, str], Any]
    """Returns the argument with this attempt ID, unless it has one. A verb that sees the same ID
    again soon does nothing and returns the first result."""


class _ForwardedCommand(Struct, frozen=True, array_like=True):
    """A command."""

    number: int
    verb: str
    actor_id: int
    until: float
    """The time when its sender gives up, by the machine's monotonic clock."""
    argument: bytes


class _ForwardedCommands(Struct, frozen=True, array_like=True, tag="orders"):
    """Commands to execute."""

    version: str
    """The sender's version, because the commands of another version may have another meaning."""
    history: str
    sender: str
    orders: list[_ForwardedCommand]


class _Results(Struct, frozen=True, array_like=True, tag="done"):
    """The outcome of commands."""

    sender: str
    seq: int
    """The entry up to which they are on disk."""
    results: list[tuple[int, bytes | None]]
    """By number; None for a command that wasn't executed, so that its sender should."""
    is_leaving: bool
    broadcasts: Sequence[str] = ()
    """The broadcast of the last commit's entries (`store/broadcast.py`), so that the sender
    doesn't have to wait for it. Empty if it is too large."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_ForwardedCommands | _Results)
_NOT_DONE: Final = object()
_NO_ANSWER: Final = object()


class Forwarding:
    """Forwards a node's commands and executes those of others. Used only on the event loop."""

    def __init__(self, store: Store, inbox: Inbox, replica: Replica, measures: Measures) -> None:
        self._store = store
        self._inbox = inbox
        self._replica = replica
        self._measures = measures
        self._peers: PeerSocket | None = None
        self._forwardables: dict[Any, ForwardableCommand] = {}
        self._by_name: dict[str, ForwardableCommand] = {}
        self._decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
        self._writing, self._wrote_at = "", 0.0
        """The node that wrote last, and the time when this node heard about it."""
        self._broadcasts: tuple[int, Sequence[str]] = 0, ()
        """The last entry that this node wrote, and its broadcast."""
        self._busy_until = 0.0
        """The time until which this node is expected to have many commands."""
        self._avoided: dict[str, float] = {}
        """Nodes to avoid, each with the time until which to avoid it."""
        self._numbers = itertools.count()
        self._unsent: list[_ForwardedCommand] = []
        self._unsent_to = ""
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        """This node's forwarded commands, by number."""
        self._early_results: list[_Results] = []
        """Replies whose entries this node doesn't have yet."""
        self._unsent_results: dict[str, list[tuple[int, bytes | None]]] = {}
        """Results for other nodes, by node."""
        self._leaving = False

    def allow(self, forwardable: ForwardableCommand) -> None:
        """Allow forwarding this kind of command, and executing it for others."""
        name = forwardable.verb.__qualname__
        self._forwardables[forwardable.verb] = self._by_name[name] = forwardable
        for kind in (forwardable.argument, forwardable.result):
            self._decoders[kind] = msgspec.msgpack.Decoder(kind)

    def open(self, meet: Callable[[str, Callable[[bytes], None]], PeerSocket]) -> None:
        """Start. Without a meeting place, there are no neighbors to forward to."""
        try:
            self._peers = meet(self._store.name, self._on_datagram)
        except OSError as error:
            logger.info(
                "this machine's nodes take turns writing; commands can't be forwarded",
                extra={"fields": {"reason": error}},
            )

    def leave(self) -> None:
        """Accept no more commands from other nodes."""
        self._leaving = True

    def close(self) -> None:
        """Reply to others, and give up waiting for them."""
        self._leaving = True
        self._answer()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(OutcomeUnknown())
        if self._peers is not None:
            self._peers.close()
            self._peers = None

    # The writing node

    def wrote(self, name: str) -> None:
        """Record that another node has written."""
        self._writing, self._wrote_at = name, time.monotonic()

    def wrote_here(self) -> None:
        """Record that this node has written."""
        self._writing = ""
        self._broadcasts = self._replica.position.seq, self._store.announced

    def _writer(self) -> str:
        """Return the node to forward to, or an empty string if this node should write itself."""
        name, now = self._writing, time.monotonic()
        if not name or self._peers is None or now - self._wrote_at > WRITES_SECONDS:
            return ""
        if self._avoided.get(name, 0.0) > now or len(self._waiting) >= MOST_WAITING:
            return ""
        return name

    def _avoid(self, name: str) -> None:
        now = time.monotonic()
        self._avoided = {text: until for text, until in self._avoided.items() if until > now}
        self._avoided[name] = now + AVOID_SECONDS

    # Commands that others execute

    @property
    def is_awaited(self) -> bool:
        """Whether anyone waits for another node's entries."""
        return bool(self._early_results)

    def __len__(self) -> int:
        """Return the number of forwarded commands."""
        return len(self._waiting)

    def forwardable(self, verb: Verb[Any]) -> ForwardableCommand | None:
        """Return the verb's declaration if its command should be forwarded now."""
        forwardable = self._forwardables.get(verb)
        if forwardable is None or not self._writer():
            return None
        now = time.monotonic()
        if len(self) + self._inbox.unanswered >= MANY_COMMANDS:
            self._busy_until = now + MANY_SECONDS
        return forwardable if now > self._busy_until else None

    async def carried_out(
        self, forwardable: ForwardableCommand, actor_id: int, argument: Any, decide: DecideLocally
    ) -> Any:
        """Return the result of the command, executed by another node or, failing that, by this one.
        Raise what `here` raises; OutcomeUnknown if that fails after another node may have executed
        it."""
        writer = self._writer()
        number = next(self._numbers)
        marked = forwardable.marked(argument, f"{self._store.name}-{number}")
        encoded = _encoder.encode(marked)
        if not writer or len(encoded) > MAX_DATAGRAM // 2:
            return await decide(argument)
        until = time.monotonic() + FORWARDED_SECONDS
        self._add(
            _ForwardedCommand(number, forwardable.verb.__qualname__, actor_id, until, encoded),
            writer,
        )
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(FORWARDED_SECONDS):
                answer = await future
        except TimeoutError:
            self._avoid(writer)
            answer = _NO_ANSWER
        finally:
            del self._waiting[number]
        if answer is _NOT_DONE:
            return await decide(argument)
        if answer is not _NO_ANSWER:
            self._measures.forwarded += 1
            return self._decoders[forwardable.result].decode(answer)
        try:
            return await decide(marked)
        except (Unavailable, Refused):  # But the other node may have executed it before.
            raise OutcomeUnknown from None

    def _add(self, order: _ForwardedCommand, writer: str) -> None:
        """Send the command together with others of this turn of the event loop."""
        if self._unsent and writer != self._unsent_to:
            self._send()
        if not self._unsent:
            self._unsent_to = writer
            asyncio.get_running_loop().call_soon(self._send)
        self._unsent.append(order)

    def _send(self) -> None:
        orders, self._unsent = self._unsent, []
        while orders:
            count, size = 0, 0
            while count < len(orders) and size <= MAX_DATAGRAM // 2:
                size += len(orders[count].argument) + 100
                count += 1
            # (The last one takes up to half of the room.)
            self._send_these(orders[:count])
            del orders[:count]

    def _send_these(self, orders: list[_ForwardedCommand]) -> None:
        history = self._replica.position.history
        datagram = _encoder.encode(
            _ForwardedCommands(__version__, history, self._store.name, orders)
        )
        if self._peers is None or not self._peers.send(self._unsent_to, datagram):
            self._avoid(self._unsent_to)
            for order in orders:
                self._finish(order.number, _NOT_DONE)

    def _finish(self, number: int, answer: Any) -> None:
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(answer)

    def _on_done(self, done: _Results) -> None:
        if done.is_leaving:
            self._avoid(done.sender)
        elif done.broadcasts:
            self.wrote(done.sender)
        if not self._adopt(done.broadcasts):
            self._store.hear()
            self._adopt(done.broadcasts)
        if done.seq <= self._replica.position.seq:
            self._report(done)
            return
        if not self._early_results:
            asyncio.get_running_loop().call_later(BROADCAST_SECONDS, self._look)
        self._early_results.append(done)
        self._store.listen()

    def _adopt(self, texts: Sequence[str]) -> bool:
        """Fold another node's broadcast. Return False if entries in between are missing."""
        for text in texts:
            decoded = broadcast.decode_broadcast(text, self._replica.position.seq)
            if isinstance(decoded, int) or not decoded.follows(self._replica.position):
                return False
            if not self._replica.hear([decoded]):
                self._inbox.add_growth()
                return False
        return bool(texts)

    def _look(self) -> None:
        """Read the log if the broadcast hasn't arrived."""
        if self._early_results:
            self._inbox.add_growth()

    def on_entries(self, _: Sequence[Any] = ()) -> None:
        """Process replies whose entries have arrived."""
        if not self._early_results:
            return
        seq = self._replica.position.seq
        early, self._early_results = self._early_results, []
        for done in early:
            if done.seq <= seq:
                self._report(done)
            else:
                self._early_results.append(done)

    def on_reload(self) -> None:
        """Process all replies, because after a reload, perhaps with another history, their entries
        may never arrive."""
        early, self._early_results = self._early_results, []
        for done in early:
            self._report(done)

    def _report(self, done: _Results) -> None:
        for number, result in done.results:
            self._finish(number, _NOT_DONE if result is None else result)

    # Commands of other nodes

    def _on_datagram(self, datagram: bytes) -> None:
        try:
            message = _decoder.decode(datagram)
        except (
            msgspec.MsgspecError,
            UnicodeError,
        ):  # It's from another version, and doesn't wait long.
            return
        if isinstance(message, _Results):
            self._on_done(message)
            return
        is_ours = (message.version, message.history) == (
            __version__,
            self._replica.position.history,
        )
        for order in message.orders:
            if not is_ours or not self._begin(message.sender, order):
                self._add_answer(message.sender, order.number, None)

    def _begin(self, sender: str, order: _ForwardedCommand) -> bool:
        """Queue another node's command. Return False if that isn't possible."""
        forwardable = self._by_name.get(order.verb)
        if forwardable is None or self._leaving or len(self._inbox) >= MOST_WAITING:
            return False
        try:
            argument = self._decoders[forwardable.argument].decode(order.argument)
        except (msgspec.MsgspecError, UnicodeError):
            return False
        answer = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: self._on_answer(sender, order.number, done))
        self._inbox.add(
            Command(order.actor_id, forwardable.verb, (argument,), (), answer, until=order.until)
        )
        return True

    def _on_answer(self, sender: str, number: int, answer: "asyncio.Future[Any]") -> None:
        error = answer.exception()
        if isinstance(error, OutcomeUnknown):
            return  # Its sender will notice.
        if error is not None:
            self._add_answer(sender, number, None)
            return
        self._measures.carried_out += 1
        self._add_answer(sender, number, _encoder.encode(answer.result()))

    def _add_answer(self, sender: str, number: int, result: bytes | None) -> None:
        """Send the result together with others of this turn of the event loop."""
        if not self._unsent_results:
            asyncio.get_running_loop().call_soon(self._answer)
        self._unsent_results.setdefault(sender, []).append((number, result))

    def _answer(self) -> None:
        unanswered, self._unsent_results = self._unsent_results, {}
        if self._peers is None:
            return
        name, seq = self._store.name, self._replica.position.seq
        last, texts = self._broadcasts
        broadcasts = texts if last == seq and sum(map(len, texts)) <= MAX_BROADCAST else ()
        for sender, results in unanswered.items():
            done = _Results(name, seq, results, self._leaving, broadcasts)
            # If the result is lost, the other node executes the command itself.
            self._peers.send(sender, _encoder.encode(done))
