"""The listener for mails: LMTP, as mail servers hand over what is for others, or SMTP.

aiosmtpd speaks the protocol. It is loaded where mails are taken in. What a mail becomes is decided
while its sender waits for the answer, so that nothing is accepted and then lost: 250 where it
became a message, or is dropped on purpose; 550 with a sentence where it cannot; 451 where it can be
tried again. What is sent to addresses that were not made here, or are over, is dropped with a line
in the log: its sender learns nothing.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from msgspec.structs import replace

from tertulia.model.errors import Refused, Unavailable
from tertulia.service.mail_in.addresses import (
    ChannelAddress,
    MailAddresses,
    MailOptions,
    MailTarget,
)
from tertulia.service.mail_in.receiving import TakesTooLong, receive
from tertulia.wire.http.node import HttpNode

if TYPE_CHECKING:
    from aiosmtpd.smtp import SMTP, Envelope, Session

logger = logging.getLogger("tertulia.mail_in")

MAX_CONNECTIONS: Final = 8
"""Each may hold a whole mail in memory."""
COMMAND_SECONDS: Final = 60.0
"""A connection that says nothing for so long, or has not brought all of a mail, is ended."""
MAIL_SECONDS: Final = 120.0
"""Until a mail has become a message, it is given up and to be sent again."""
CONNECTION_SECONDS: Final = 900.0
"""After so long a connection is ended, whatever it says; not while a mail becomes a message."""
MAX_PIECE: Final = 65_536
"""Bytes that are read at once; a command may have far fewer."""
MAX_RECIPIENTS: Final = 20
PER_MINUTE: Final = 30
"""Mails that one address takes in a minute, and at once."""

COSTLY: Final = 10
"""As so many counts one that took longer to read than any may."""

TAKEN: Final = "250 2.0.0 Taken"
UNKNOWN: Final = "550 5.1.1 No mailbox with this address exists"
LATER: Final = "451 4.3.0 Try again later"
TOO_LARGE: Final = "552 5.3.4 The email is too large"
TOO_MANY: Final = "452 4.5.3 Too many recipients"
TOO_OFTEN: Final = "451 4.7.0 Too many emails to this address, try again later"
_LINE_END: Final = b"\r\n"
_MAIL_END: Final = b"\r\n.\r\n"
_MOST_EARLY: Final = 2**24
"""Bytes: more than are read from a connection before somebody asks for them."""


class Door:
    """What is answered to those who bring mails: aiosmtpd's handler."""

    def __init__(self, node: HttpNode) -> None:
        self._node = node
        self._addresses = MailAddresses(node.config, node.vault)
        self._limiter = node.limits.limiters.limiter("mails that come in", PER_MINUTE, 60.0)

    async def handle_RCPT(  # noqa: N802 (the library's name)
        self,
        server: "SMTP",
        session: "Session",
        envelope: "Envelope",
        address: str,
        options: list[str],
    ) -> str:
        """Whether the address is one of ours; whether it opens anything is not said."""
        if self._addresses.local_part(address) is None:
            return UNKNOWN
        if len(envelope.rcpt_tos) >= MAX_RECIPIENTS:
            return TOO_MANY
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(  # noqa: N802 (the library's name)
        self, server: "SMTP", session: "Session", envelope: "Envelope"
    ) -> str:
        """Make messages of the mail. By LMTP there is an answer for each recipient."""
        content = envelope.content
        data = content if isinstance(content, bytes) else str(content).encode()
        if envelope.mail_from in {None, "", "<>"}:
            # Which is said of bounces, and by programs that answer (RFC 5321, RFC 3834).
            logger.info("a mail was dropped", extra={"fields": {"reason": "nobody sent it"}})
            return _together(server, [TAKEN] * len(envelope.rcpt_tos))
        try:
            async with asyncio.timeout(MAIL_SECONDS):
                answers = await self._taken(data, envelope.rcpt_tos)
        except (TimeoutError, Unavailable, OSError):
            logger.warning("a mail could not be taken now", exc_info=True)
            answers = [LATER] * len(envelope.rcpt_tos)
        return _together(server, answers)

    async def _taken(self, data: bytes, addresses: Sequence[str]) -> list[str]:
        node = self._node
        draft = await asyncio.to_thread(node.uploads.begin)
        try:
            await asyncio.to_thread(draft.file.write, data)
            await asyncio.to_thread(draft.file.flush)
            return [await self._answer(one, draft.arriving.place) for one in addresses]
        finally:
            await asyncio.to_thread(draft.discard)

    async def _answer(self, address: str, place: Path) -> str:
        node = self._node
        target: MailTarget | None = self._addresses.target(node.state, address, node.clock())
        if target is None:
            logger.info("a mail to an address that is none, or is over, was dropped")
            return TAKEN
        own = (
            replace(target, options=MailOptions()) if isinstance(target, ChannelAddress) else target
        )
        if not self._limiter.admits(own):
            return TOO_OFTEN
        try:
            await receive(node, target, place)
        except Refused as refusal:
            if isinstance(refusal, TakesTooLong):
                for _ in range(COSTLY - 1):
                    self._limiter.charge(own)
            said = " ".join(str(refusal).encode("ascii", "replace").decode().split())
            logger.info("a mail was refused", extra={"fields": {"reason": said}})
            return f"550 5.7.1 {said or 'The email could not be posted as a message.'}"[:500]
        except Unavailable:
            logger.warning("a mail could not be taken now", exc_info=True)
            return LATER
        except Exception:  # A mistake of ours shall not cost the mail.
            logger.exception("a mail was not taken")
            return LATER
        return TAKEN

    async def handle_exception(self, error: Exception) -> str:
        """What is answered where this server fails: nothing about itself, and the mail stays where
        it is."""
        logger.error("a mail was not taken", exc_info=error)
        return LATER


def _together(server: "SMTP", answers: Sequence[str]) -> str:
    """What is answered of a mail where this is the answer for each recipient."""
    if _speaks_lmtp(server):
        return "\r\n".join(answers)
    return next((one for kind in "45" for one in answers if one.startswith(kind)), TAKEN)


def _speaks_lmtp(server: "SMTP") -> bool:
    from aiosmtpd.lmtp import LMTP

    return isinstance(server, LMTP)


@asynccontextmanager
async def receiving_mails(node: HttpNode) -> AsyncIterator[int | None]:
    """Take in mails for the time of the context, at the port that it yields; None where the
    settings name none. OSError, which names the address, where nothing can listen there."""
    config = node.config
    if not config.mail_in_listen:
        yield None
        return
    place = urlsplit(config.mail_in_listen)
    limit = config.mail_in_max_mib * 1024 * 1024
    factory = _factory(node, is_lmtp=place.scheme == "lmtp", limit=limit)
    loop = asyncio.get_running_loop()
    # The workers of one machine share the address.
    shared = hasattr(socket, "SO_REUSEPORT") and config.worker is not None
    try:
        server = await loop.create_server(
            factory, place.hostname, place.port or 0, reuse_port=shared or None
        )
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        said = f"no mails can be taken in there ({reason})"
        raise OSError(error.errno, said, config.mail_in_listen) from None
    logger.info("takes in mails", extra={"fields": {"address": config.mail_in_listen}})
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(factory.connections):
            connection.close()


def _factory(node: HttpNode, *, is_lmtp: bool, limit: int) -> Any:
    from aiosmtpd.lmtp import LMTP
    from aiosmtpd.smtp import SMTP

    speaks: type[SMTP] = LMTP if is_lmtp else SMTP
    connections: set[asyncio.BaseTransport] = set()
    door = Door(node)

    class Connection(speaks):  # type: ignore[misc, valid-type]  # one of two
        line_length_limit = MAX_PIECE  # Which limits what is read at once, and no line.

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            if len(connections) >= MAX_CONNECTIONS:
                answer = cast(asyncio.WriteTransport, transport)
                answer.write(b"421 4.3.2 Too many connections\r\n")
                transport.close()
                return
            connections.add(transport)
            self._counted = transport
            self._ends_at = self.loop.time() + CONNECTION_SECONDS
            super().connection_made(transport)

        def connection_lost(self, error: Exception | None) -> None:
            if (counted := getattr(self, "_counted", None)) is not None:
                connections.discard(counted)
                super().connection_lost(error)

        def _reset_timeout(self, duration: float | None = None) -> None:
            left = self._ends_at - self.loop.time()
            super()._reset_timeout(duration or max(min(COMMAND_SECONDS, left), 0.001))

        async def push(self, status: Any) -> None:
            """Answer, and let others have their turn: many commands may have come together."""
            await super().push(status)
            await asyncio.sleep(0)

        async def smtp_DATA(self, arg: str | None) -> None:  # noqa: N802 (the library's name)
            """Take the mail as a whole: the library makes objects of each of its lines, of which
            there may be as many as it has bytes."""
            if await self.check_helo_needed():
                return
            if not self.envelope.rcpt_tos:
                await self.push("503 5.5.1 Name a recipient first")
                return
            if arg:
                await self.push("501 5.5.4 Syntax: DATA")
                return
            # The end of a mail is behind a line's end: where it says nothing, behind this one. It
            # goes before what was sent without waiting to be asked, which is there at once.
            self._reader.feed_data(_LINE_END)
            early = await self._reader.read(_MOST_EARLY)
            self._reader.feed_data(_LINE_END + early.removesuffix(_LINE_END))
            await self.push("354 End data with <CR><LF>.<CR><LF>")
            content = await _read_mail(self._reader, limit)
            if content is None:
                answer = _together(self, [TOO_LARGE] * len(self.envelope.rcpt_tos))
            else:
                self.envelope.content = content
                # It may wait for the helpers; `handle_DATA` has an end of its own.
                self._reset_timeout(MAIL_SECONDS + COMMAND_SECONDS)
                answer = await door.handle_DATA(self, self.session, self.envelope)
                self._reset_timeout()
            self._set_post_data_state()
            await self.push(answer)

    class Factory:
        def __init__(self) -> None:
            self.connections = connections

        def __call__(self) -> SMTP:
            found: SMTP = Connection(
                door,
                data_size_limit=limit,
                hostname=node.config.address_host,
                ident="Tertulia",
                timeout=COMMAND_SECONDS,
                decode_data=False,
                enable_SMTPUTF8=True,
            )
            return found

    return Factory()


async def _read_mail(reader: asyncio.StreamReader, limit: int) -> bytes | None:
    """The mail that comes behind a line's end that was put there; None, when all of it was read,
    where it has more bytes than the limit."""
    found, size = bytearray(), -len(_MAIL_END)
    is_over = False
    while not is_over:
        try:
            piece = await reader.readuntil(_MAIL_END)
            is_over = True
        except asyncio.LimitOverrunError as error:
            piece = await reader.read(error.consumed)
        size += len(piece)
        if size <= limit:
            found += piece
        else:
            found.clear()
    if size > limit:
        return None
    # A dot at a line's beginning has another one before it.
    return bytes(found[: -len(b".\r\n")]).replace(b"\r\n.", _LINE_END)[len(_LINE_END) :]
