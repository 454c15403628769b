"""Commands that another node of the same machine carries out.

Nodes that write by turns wait for each other, and each of their groups is small. So a node lets the
one that wrote last write for it too, as long as that goes on writing. The command comes as it is,
and decides there as any other. Who may write is still only whoever has the head's lock.

A node that does not get an answer decides by itself. It may have been done then: so commands carry
a mark by which their verb knows an attempt that was made already.
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
from tertulia.log.measures import Measures
from tertulia.log.replica import Replica
from tertulia.log.requests import MOST_WAITING, Command, Inbox
from tertulia.model.errors import OutcomeUnknown, Refused, Unavailable
from tertulia.state.decision import Verb
from tertulia.store import broadcast
from tertulia.store.bus import MAX_DATAGRAM, PeerSocket
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")

FORWARDED_SECONDS: Final = 2.0
"""How long a node waits for another one to do it. Later it is not begun any more."""
WRITES_SECONDS: Final = 1.0
"""Who has written within that time is taken to go on writing."""
MANY: Final = 7
"""A node with so many commands of its own at once fills groups itself: bringing each to another
node would cost more than it saves."""
MANY_SECONDS: Final = 1.0
"""For so long it is taken to have as many again."""
SHUNNED_SECONDS: Final = 5.0
"""How long a node that cannot be reached, or did not answer, is left alone."""
MOST_TOLD: Final = MAX_DATAGRAM // 4
"""Characters of what is told that an answer brings with it."""
TOLD_SECONDS: Final = 0.05
"""How long entries of which an answer speaks may take to be told; then the log is read."""

DecideHere = Callable[[Any], Awaitable[Any]]
"""Decides by itself, with that argument."""


@dataclass(frozen=True)
class Errand:
    """A verb, of one argument, whose commands another node may carry out."""

    verb: Verb[Any]
    argument: type[Struct]
    result: type[Struct]
    marked: Callable[[Any, str], Any]
    """The argument with a mark of this attempt, if it has none: decided once more with the same
    mark, soon after, it is not done a second time, and the result is the first one's."""


class _Order(Struct, frozen=True, array_like=True):
    """One command."""

    number: int
    errand: str
    actor_id: int
    until: float
    """When its sender gives up, by the machine's monotonic clock."""
    argument: bytes


class _Orders(Struct, frozen=True, array_like=True, tag="orders"):
    """Commands to carry out."""

    version: str
    """The sender's program: what another one means by them is not known."""
    history: str
    sender: str
    orders: list[_Order]


class _Done(Struct, frozen=True, array_like=True, tag="done"):
    """What became of commands."""

    sender: str
    seq: int
    """They are on disk by that entry."""
    results: list[tuple[int, bytes | None]]
    """By number; None for one that was not done, and that its sender should decide by itself."""
    is_leaving: bool
    told: Sequence[str] = ()
    """What all are told of the entries of its last commit (`store/broadcast.py`): its sender need
    not wait until it hears that. Empty where it is too much."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Orders | _Done)
_NOT_DONE: Final = object()
_NO_ANSWER: Final = object()


class Forwarding:
    """One node's side of it, for as long as the log is open. Used on the event loop alone."""

    def __init__(self, store: Store, inbox: Inbox, replica: Replica, measures: Measures) -> None:
        self._store = store
        self._inbox = inbox
        self._replica = replica
        self._measures = measures
        self._neighbours: PeerSocket | None = None
        self._errands: dict[Any, Errand] = {}
        self._by_name: dict[str, Errand] = {}
        self._decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
        self._writing, self._wrote_at = "", 0.0
        """Who wrote last, and when that was heard."""
        self._told: tuple[int, Sequence[str]] = 0, ()
        """The last entry that this node has written, and what it told the others then."""
        self._many_until = 0.0
        """Until when this node has many commands of its own."""
        self._shunned: dict[str, float] = {}
        """Nodes, each with the time until which."""
        self._numbers = itertools.count()
        self._unsent: list[_Order] = []
        self._unsent_to = ""
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        """What others do for this node, by number."""
        self._early: list[_Done] = []
        """Answers of which this node does not have the entries yet."""
        self._unanswered: dict[str, list[tuple[int, bytes | None]]] = {}
        """What this node has done for others, by whom."""
        self._leaving = False

    def allow(self, errand: Errand) -> None:
        """Let commands of this kind be carried out by others, and carry out theirs."""
        name = errand.verb.__qualname__
        self._errands[errand.verb] = self._by_name[name] = errand
        for kind in (errand.argument, errand.result):
            self._decoders[kind] = msgspec.msgpack.Decoder(kind)

    def open(self, meet: Callable[[str, Callable[[bytes], None]], PeerSocket]) -> None:
        """Begin; without any neighbours where there can be none."""
        try:
            self._neighbours = meet(self._store.name, self._on_datagram)
        except OSError as error:
            logger.info(
                "the nodes of this machine write by turns", extra={"fields": {"reason": error}}
            )

    def leave(self) -> None:
        """Take nothing more from others, and say so."""
        self._leaving = True

    def close(self) -> None:
        """Answer what was done for others, and wait for nothing any more."""
        self._leaving = True
        self._answer()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(OutcomeUnknown())
        if self._neighbours is not None:
            self._neighbours.close()
            self._neighbours = None

    # Who writes

    def wrote(self, name: str) -> None:
        """That node has written."""
        self._writing, self._wrote_at = name, time.monotonic()

    def wrote_here(self) -> None:
        """This node has written."""
        self._writing = ""
        self._told = self._replica.position.seq, self._store.told

    def _writer(self) -> str:
        """The node that is to write for this one; empty where it had better write itself."""
        name, now = self._writing, time.monotonic()
        if not name or self._neighbours is None or now - self._wrote_at > WRITES_SECONDS:
            return ""
        if self._shunned.get(name, 0.0) > now or len(self._waiting) >= MOST_WAITING:
            return ""
        return name

    def _shun(self, name: str) -> None:
        now = time.monotonic()
        self._shunned = {one: until for one, until in self._shunned.items() if until > now}
        self._shunned[name] = now + SHUNNED_SECONDS

    # What others do for this node

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for entries of another node."""
        return bool(self._early)

    def __len__(self) -> int:
        """How many commands wait for another node."""
        return len(self._waiting)

    def errand(self, verb: Verb[Any]) -> Errand | None:
        """The verb as one that another node is to carry out now; None where this one had better do
        it."""
        errand = self._errands.get(verb)
        if errand is None or not self._writer():
            return None
        now = time.monotonic()
        if len(self) + self._inbox.unanswered >= MANY:
            self._many_until = now + MANY_SECONDS
        return errand if now > self._many_until else None

    async def carried_out(
        self, errand: Errand, actor_id: int, argument: Any, here: DecideHere
    ) -> Any:
        """The result of the command, done by another node or, where that cannot be, by this one.
        Raises what `here` raises; OutcomeUnknown where that fails, and another one may have done
        it before."""
        writer = self._writer()
        number = next(self._numbers)
        marked = errand.marked(argument, f"{self._store.name}-{number}")
        encoded = _encoder.encode(marked)
        if not writer or len(encoded) > MAX_DATAGRAM // 2:
            return await here(argument)
        until = time.monotonic() + FORWARDED_SECONDS
        self._add(_Order(number, errand.verb.__qualname__, actor_id, until, encoded), writer)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(FORWARDED_SECONDS):
                answer = await future
        except TimeoutError:
            self._shun(writer)
            answer = _NO_ANSWER
        finally:
            del self._waiting[number]
        if answer is _NOT_DONE:
            return await here(argument)
        if answer is not _NO_ANSWER:
            self._measures.forwarded += 1
            return self._decoders[errand.result].decode(answer)
        try:
            return await here(marked)
        except (Unavailable, Refused):  # But the other one may have done it before.
            raise OutcomeUnknown from None

    def _add(self, order: _Order, writer: str) -> None:
        """Send it with others that come in this turn of the loop."""
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
            # (The last one of them has half of the room at most.)
            self._send_these(orders[:count])
            del orders[:count]

    def _send_these(self, orders: list[_Order]) -> None:
        history = self._replica.position.history
        datagram = _encoder.encode(_Orders(__version__, history, self._store.name, orders))
        if self._neighbours is None or not self._neighbours.send(self._unsent_to, datagram):
            self._shun(self._unsent_to)
            for order in orders:
                self._finish(order.number, _NOT_DONE)

    def _finish(self, number: int, answer: Any) -> None:
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(answer)

    def _on_done(self, done: _Done) -> None:
        if done.is_leaving:
            self._shun(done.sender)
        elif done.told:
            self.wrote(done.sender)
        if not self._adopt(done.told):
            self._store.hear()
            self._adopt(done.told)
        if done.seq <= self._replica.position.seq:
            self._report(done)
            return
        if not self._early:
            asyncio.get_running_loop().call_later(TOLD_SECONDS, self._look)
        self._early.append(done)
        self._store.listen()

    def _adopt(self, texts: Sequence[str]) -> bool:
        """Have what another node told folded, as far as nothing between is missing. Whether that
        is all that there is."""
        for text in texts:
            told = broadcast.decode_broadcast(text, self._replica.position.seq)
            if isinstance(told, int) or not told.follows(self._replica.position):
                return False
            if not self._replica.hear([told]):
                self._inbox.add_growth()
                return False
        return bool(texts)

    def _look(self) -> None:
        """Have the log read, where what was to be told was not."""
        if self._early:
            self._inbox.add_growth()

    def on_entries(self, _: Sequence[Any] = ()) -> None:
        """The state has more entries, or was loaded again."""
        if not self._early:
            return
        seq = self._replica.position.seq
        early, self._early = self._early, []
        for done in early:
            if done.seq <= seq:
                self._report(done)
            else:
                self._early.append(done)

    def on_reload(self) -> None:
        """The state was loaded again, and perhaps of another history: nothing more comes."""
        early, self._early = self._early, []
        for done in early:
            self._report(done)

    def _report(self, done: _Done) -> None:
        for number, result in done.results:
            self._finish(number, _NOT_DONE if result is None else result)

    # What this node does for others

    def _on_datagram(self, datagram: bytes) -> None:
        try:
            message = _decoder.decode(datagram)
        except (msgspec.MsgspecError, UnicodeError):  # Another version's: it does not wait long.
            return
        if isinstance(message, _Done):
            self._on_done(message)
            return
        is_ours = (message.version, message.history) == (
            __version__,
            self._replica.position.history,
        )
        for order in message.orders:
            if not is_ours or not self._begin(message.sender, order):
                self._add_answer(message.sender, order.number, None)

    def _begin(self, sender: str, order: _Order) -> bool:
        """Let the command wait for its turn. Whether it can be."""
        errand = self._by_name.get(order.errand)
        if errand is None or self._leaving or len(self._inbox) >= MOST_WAITING:
            return False
        try:
            argument = self._decoders[errand.argument].decode(order.argument)
        except (msgspec.MsgspecError, UnicodeError):
            return False
        answer = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: self._on_answer(sender, order.number, done))
        self._inbox.add(
            Command(order.actor_id, errand.verb, (argument,), (), answer, until=order.until)
        )
        return True

    def _on_answer(self, sender: str, number: int, answer: "asyncio.Future[Any]") -> None:
        error = answer.exception()
        if isinstance(error, OutcomeUnknown):
            return  # Its sender finds out.
        if error is not None:
            self._add_answer(sender, number, None)
            return
        self._measures.carried_out += 1
        self._add_answer(sender, number, _encoder.encode(answer.result()))

    def _add_answer(self, sender: str, number: int, result: bytes | None) -> None:
        """Send it with others that come in this turn of the loop."""
        if not self._unanswered:
            asyncio.get_running_loop().call_soon(self._answer)
        self._unanswered.setdefault(sender, []).append((number, result))

    def _answer(self) -> None:
        unanswered, self._unanswered = self._unanswered, {}
        if self._neighbours is None:
            return
        name, seq = self._store.name, self._replica.position.seq
        last, texts = self._told
        told = texts if last == seq and sum(map(len, texts)) <= MOST_TOLD else ()
        for sender, results in unanswered.items():
            done = _Done(name, seq, results, self._leaving, told)
            # Where it gets lost, the other one decides by itself.
            self._neighbours.send(sender, _encoder.encode(done))
