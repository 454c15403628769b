"""Sending email by SMTP, or writing it to a directory."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import format_datetime, parseaddr
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct

from tertulia.outbound.mail_templates import RenderedMail
from tertulia.store import authorities

if TYPE_CHECKING:
    from email.message import EmailMessage

TIMEOUT_SECONDS: Final = 30
"""The timeout of one email in seconds."""
_FAREWELL_SECONDS: Final = 2
"""The seconds of the timeout that are reserved for QUIT."""
_LONGEST_REPLY: Final = 1000


class Trouble(StrEnum):
    """The reason why an email wasn't sent."""

    UNREACHABLE = "unreachable"
    """The connection failed, ended, or timed out."""
    NOT_ENCRYPTED = "not_encrypted"
    """The connection can't be encrypted as configured, or the certificate isn't trusted."""
    NOT_SIGNED_IN = "not_signed_in"
    """The server rejects the credentials."""
    REFUSED = "refused"
    """The server rejects the email, temporarily or permanently."""


class NotSent(Exception):
    """The email wasn't sent. `str(error)` is the reason, for the operator. `reply` is the server's
    reply with its code; may be empty."""

    def __init__(self, said: str, trouble: Trouble = Trouble.UNREACHABLE, reply: str = "") -> None:
        self.trouble = trouble
        self.reply = reply
        super().__init__(said)


class Undeliverable(NotSent):
    """The server rejects the email permanently."""


class Delayed(NotSent):
    """The email can't be sent now."""


class Transport(Protocol):
    """Sends emails."""

    async def send(self, mail: RenderedMail, mail_id: str) -> None:
        """Send the email. Raise Undeliverable or Delayed. `mail_id` is the same for each
        attempt."""


class SmtpServer(Struct, frozen=True, kw_only=True):
    """Settings of the mail server."""

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    user: str = ""
    password: str = ""
    sender: str
    """The sender: an address, or `Name <address>`."""


class Smtp:
    """Sends each email on a new connection."""

    def __init__(self, server: SmtpServer) -> None:
        self._server = server

    async def send(self, mail: RenderedMail, mail_id: str) -> None:
        import aiosmtplib  # Only where mails are sent.

        try:
            await self._sent(mail, mail_id)
        except aiosmtplib.SMTPRecipientsRefused as error:
            first = min(error.recipients, key=lambda refused: refused.code)
            reply = _line(first.message, _LONGEST_REPLY)
            raise self._failure(first.code, "recipient rejected", reply) from None
        except (
            aiosmtplib.SMTPAuthenticationError,
            aiosmtplib.SMTPConnectError,
            aiosmtplib.SMTPHeloError,
        ) as error:
            # The problem is the connection, not the email.
            raise self._delayed(error) from None
        except aiosmtplib.SMTPResponseException as error:
            raise self._failure(
                error.code, _said(error), _line(error.message, _LONGEST_REPLY)
            ) from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise self._delayed(error) from None

    async def _sent(self, mail: RenderedMail, mail_id: str) -> None:
        import aiosmtplib

        server = self._server
        message = mail_message(mail, mail_id, server.sender)
        connection = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.security == "tls",
            start_tls=server.security == "starttls",
            username=server.user or None,
            password=server.password or None,
            timeout=TIMEOUT_SECONDS,
            tls_context=(
                None
                if server.security == "none"
                else await asyncio.to_thread(authorities.client_context)
            ),
        )
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS - _FAREWELL_SECONDS):
                await connection.connect()
                await connection.send_message(
                    message, sender=parseaddr(server.sender)[1], recipients=[mail.to]
                )
            # The server has accepted the email: ignore later errors.
            with suppress(aiosmtplib.SMTPException, OSError):
                async with asyncio.timeout(_FAREWELL_SECONDS):
                    await connection.quit()
        finally:
            connection.close()

    def _failure(self, code: int, said: str, line: str) -> NotSent:
        """Return the error for a reply about one email."""
        kind = Undeliverable if 500 <= code < 600 else Delayed
        reply = f"{code} {line}".rstrip()
        return kind(f"{self._server.host}: {code} {said}", Trouble.REFUSED, reply)

    def _delayed(self, error: Exception) -> Delayed:
        """Return the error for a problem that affects all emails."""
        import aiosmtplib

        reply = ""
        if isinstance(error, aiosmtplib.SMTPResponseException):
            reply = f"{error.code} {_line(error.message, _LONGEST_REPLY)}".rstrip()
        return Delayed(f"{self._server.host}: {_said(error)}", _trouble(error), reply)


def _trouble(error: Exception) -> Trouble:
    import ssl

    import aiosmtplib

    said = str(error)
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return Trouble.NOT_ENCRYPTED
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return Trouble.NOT_SIGNED_IN
    if type(error) is aiosmtplib.SMTPException:
        # The library has no classes for these errors: the server lacks a configured option.
        if "STARTTLS" in said:
            return Trouble.NOT_ENCRYPTED
        if "AUTH" in said or "authentication" in said:
            return Trouble.NOT_SIGNED_IN
    if isinstance(error, aiosmtplib.SMTPResponseException | aiosmtplib.SMTPNotSupported):
        return Trouble.REFUSED
    return Trouble.UNREACHABLE


def _said(error: Exception) -> str:
    """Return the error in one short line."""
    return _line(str(error)) or type(error).__name__


def _line(text: str, longest: int = 300) -> str:
    return " ".join(text.split())[:longest]


class Folder:
    """Writes each email to a file, for servers that send no email."""

    def __init__(self, directory: Path, sender: str, clock: Callable[[], float]) -> None:
        self._directory = directory
        self._sender = sender
        self._clock = clock

    async def send(self, mail: RenderedMail, mail_id: str) -> None:
        try:
            await asyncio.to_thread(self._write, mail, mail_id)
        except OSError as error:
            raise Delayed(f"{self._directory}: {error.strerror}") from None

    def _write(self, mail: RenderedMail, mail_id: str) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        now = datetime.fromtimestamp(self._clock(), UTC)
        path = self._directory / f"{now:%Y-%m-%dT%H-%M-%S}-{mail_id[:8]}.eml"
        draft = path.with_suffix(".part")
        message = mail_message(mail, mail_id, self._sender, readable=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(message.as_bytes())
        draft.replace(path)


def mail_message(
    mail: RenderedMail, mail_id: str, sender: str, *, readable: bool = False
) -> "EmailMessage":
    """Return the email with text and HTML parts. `readable` leaves them unencoded, for people who
    read the file."""
    from email.message import EmailMessage  # Where there is something to be sent.
    from email.policy import SMTP as WIRE_POLICY

    message = EmailMessage(WIRE_POLICY.clone(linesep="\n") if readable else WIRE_POLICY)
    message["From"] = sender
    message["To"] = mail.to
    message["Subject"] = mail.subject
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"] = f"<{mail_id}@{parseaddr(sender)[1].rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    for name, value in mail.headers:
        message[name] = value
    encoding = "8bit" if readable else "quoted-printable"
    message.set_content(mail.text, cte=encoding)
    message.add_alternative(mail.html, subtype="html", cte=encoding)
    if mail.pictures:
        # The HTML part, whose type the library doesn't declare.
        shown = message.get_payload()[1]  # type: ignore[index]
        for picture in mail.pictures:
            main, _, sub = picture.media_type.partition("/")
            shown.add_related(  # type: ignore[union-attr]
                picture.content, main, sub, cid=f"<{picture.content_id}>", disposition="inline"
            )
    return message
