"""The mail server for incoming email, over LMTP (from a mail server) or SMTP, using aiosmtpd.

A message is posted before the sender gets its response, so that no accepted email is lost: 250 if
it was posted or deliberately dropped, 550 with a reason if it can't be posted, and 451 if the
sender should retry. Email to addresses that don't exist or have expired is logged and dropped
without telling its sender.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
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
"""The most connections. Each can hold a whole email in memory."""
COMMAND_SECONDS: Final = 60.0
"""The timeout for a command, and for receiving an email's content."""
MAIL_SECONDS: Final = 120.0
"""The timeout for posting an email as a message. After it, the sender has to retry."""
CONNECTION_SECONDS: Final = 900.0
"""The maximum duration of a connection, unless an email is being posted."""
MAX_PIECE: Final = 65_536
"""Bytes per read. Commands have a much lower limit."""
MAX_RECIPIENTS: Final = 20
PER_MINUTE: Final = 30
"""The most emails per address and minute."""

COSTLY: Final = 10
"""An email that took too long to parse counts as this many toward the rate limit."""

ACCEPTED: Final = "250 2.0.0 Accepted"
UNKNOWN: Final = "550 5.1.1 No mailbox with this address exists"
LATER: Final = "451 4.3.0 Try again later"
TOO_LARGE: Final = "552 5.3.4 The email is too large"
TOO_MANY: Final = "452 4.5.3 Too many recipients"
TOO_OFTEN: Final = "451 4.7.0 Too many emails to this address, try again later"
_LINE_END: Final = b"\r\n"
_MAIL_END: Final = b"\r\n.\r\n"
_MAX_BUFFERED: Final = 2**24
"""More bytes than a connection buffers."""


class MailHandler:
    """Handles the SMTP commands of senders, for aiosmtpd."""

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
        """Accept addresses of this server, even if they don't exist, so that senders can't probe
        for them."""
        if self._addresses.local_part(address) is None:
            return UNKNOWN
        if len(envelope.rcpt_tos) >= MAX_RECIPIENTS:
            return TOO_MANY
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(  # noqa: N802 (the library's name)
        self, server: "SMTP", session: "Session", envelope: "Envelope"
    ) -> str:
        """Post the email as messages. LMTP expects a response for each recipient."""
        content = envelope.content
        data = content if isinstance(content, bytes) else str(content).encode()
        if envelope.mail_from in {None, "", "<>"}:
            # Bounces and automatic replies (RFC 5321, RFC 3834).
            logger.info("dropped an incoming email", extra={"fields": {"reason": "no sender"}})
            return _combined(server, [ACCEPTED] * len(envelope.rcpt_tos))
        try:
            async with asyncio.timeout(MAIL_SECONDS):
                responses = await self._post(data, envelope.rcpt_tos)
        except (TimeoutError, Unavailable, OSError):
            logger.warning("could not process an incoming email yet", exc_info=True)
            responses = [LATER] * len(envelope.rcpt_tos)
        return _combined(server, responses)

    async def _post(self, data: bytes, addresses: Sequence[str]) -> list[str]:
        node = self._node
        draft = await asyncio.to_thread(node.uploads.begin)
        try:
            await asyncio.to_thread(draft.file.write, data)
            await asyncio.to_thread(draft.file.flush)
            return [await self._post_to(address, draft.arriving.path) for address in addresses]
        finally:
            await asyncio.to_thread(draft.discard)

    async def _post_to(self, address: str, path: Path) -> str:
        node = self._node
        target: MailTarget | None = self._addresses.target(node.state, address, node.clock())
        if target is None:
            logger.info(
                "dropped an incoming email", extra={"fields": {"reason": "unknown address"}}
            )
            return ACCEPTED
        limited = (
            replace(target, options=MailOptions()) if isinstance(target, ChannelAddress) else target
        )
        if not self._limiter.admits(limited):
            return TOO_OFTEN
        try:
            await receive(node, target, path)
        except Refused as refusal:
            if isinstance(refusal, TakesTooLong):
                for _ in range(COSTLY - 1):
                    self._limiter.charge(limited)
            reason = " ".join(str(refusal).encode("ascii", "replace").decode().split())
            logger.info("refused an incoming email", extra={"fields": {"reason": reason}})
            return f"550 5.7.1 {reason or 'The email could not be posted as a message.'}"[:500]
        except Unavailable:
            logger.warning("could not process an incoming email yet", exc_info=True)
            return LATER
        except Exception:  # A bug must not lose the email.
            logger.exception("could not process an incoming email")
            return LATER
        return ACCEPTED

    async def handle_exception(self, error: Exception) -> str:
        """Hide internal errors, and let the sender retry."""
        logger.error("could not process an incoming email", exc_info=error)
        return LATER


def _combined(server: "SMTP", responses: Sequence[str]) -> str:
    """Combine the responses for all recipients into one response for the email."""
    if _speaks_lmtp(server):
        return "\r\n".join(responses)
    return next(
        (response for kind in "45" for response in responses if response.startswith(kind)), ACCEPTED
    )


def _speaks_lmtp(server: "SMTP") -> bool:
    from aiosmtpd.lmtp import LMTP

    return isinstance(server, LMTP)


@asynccontextmanager
async def mail_server(node: HttpNode) -> AsyncIterator[int | None]:
    """Receive email during the context. Yields the port, or None if `mail_in_listen` isn't set.

    Raises OSError, with the address, if it can't be bound.
    """
    config = node.config
    if not config.mail_in_listen:
        yield None
        return
    address = urlsplit(config.mail_in_listen)
    limit = config.mail_in_max_mib * 1024 * 1024
    connections: set[asyncio.BaseTransport] = set()
    factory = _factory(node, connections, is_lmtp=address.scheme == "lmtp", limit=limit)
    loop = asyncio.get_running_loop()
    # The workers of one machine share the address.
    shared = hasattr(socket, "SO_REUSEPORT") and config.worker is not None
    try:
        server = await loop.create_server(
            factory, address.hostname, address.port or 0, reuse_port=shared or None
        )
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"can't listen for incoming email ({reason})"
        raise OSError(error.errno, message, config.mail_in_listen) from None
    logger.info(
        "listening for incoming email", extra={"fields": {"address": config.mail_in_listen}}
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(connections):
            connection.close()


def _factory(
    node: HttpNode, connections: set[asyncio.BaseTransport], *, is_lmtp: bool, limit: int
) -> Callable[[], "SMTP"]:
    from aiosmtpd.lmtp import LMTP
    from aiosmtpd.smtp import SMTP

    speaks: type[SMTP] = LMTP if is_lmtp else SMTP
    handler = MailHandler(node)

    class Connection(speaks):  # type: ignore[misc, valid-type]  # one of two
        line_length_limit = MAX_PIECE  # Limits reads rather than lines.

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
            remaining = self._ends_at - self.loop.time()
            super()._reset_timeout(duration or max(min(COMMAND_SECONDS, remaining), 0.001))

        async def push(self, status: Any) -> None:
            """Send a response, and then let other connections run, because many commands may have
            arrived together."""
            await super().push(status)
            await asyncio.sleep(0)

        async def smtp_DATA(self, arg: str | None) -> None:  # noqa: N802 (the library's name)
            """Read the email as a whole. The library would create an object for each of its lines,
            and there can be millions."""
            if await self.check_helo_needed():
                return
            if not self.envelope.rcpt_tos:
                await self.push("503 5.5.1 Name a recipient first")
                return
            if arg:
                await self.push("501 5.5.4 Syntax: DATA")
                return
            # The end mark follows a line end, even in an empty email: insert one, before anything
            # that the client has sent without waiting for the response.
            self._reader.feed_data(_LINE_END)
            early = await self._reader.read(_MAX_BUFFERED)
            self._reader.feed_data(_LINE_END + early.removesuffix(_LINE_END))
            await self.push("354 End data with <CR><LF>.<CR><LF>")
            content = await _read_mail(self._reader, limit)
            if content is None:
                answer = _combined(self, [TOO_LARGE] * len(self.envelope.rcpt_tos))
            else:
                self.envelope.content = content
                # Parsing can wait for a worker. `handle_DATA` has its own timeout.
                self._reset_timeout(MAIL_SECONDS + COMMAND_SECONDS)
                answer = await handler.handle_DATA(self, self.session, self.envelope)
                self._reset_timeout()
            self._set_post_data_state()
            await self.push(answer)

    return lambda: Connection(
        handler,
        data_size_limit=limit,
        hostname=node.config.address_host,
        ident="Tertulia",
        timeout=COMMAND_SECONDS,
        decode_data=False,
        enable_SMTPUTF8=True,
    )


async def _read_mail(reader: asyncio.StreamReader, limit: int) -> bytes | None:
    """Read an email that follows the inserted line end. Return None if it exceeds the limit; it's
    still read to its end."""
    content, size = bytearray(), -len(_MAIL_END)
    is_complete = False
    while not is_complete:
        try:
            piece = await reader.readuntil(_MAIL_END)
            is_complete = True
        except asyncio.LimitOverrunError as error:
            piece = await reader.read(error.consumed)
        size += len(piece)
        if size <= limit:
            content += piece
        else:
            content.clear()
    if size > limit:
        return None
    # Undo the doubling of dots at the beginning of lines.
    return bytes(content[: -len(b".\r\n")]).replace(b"\r\n.", _LINE_END)[len(_LINE_END) :]
