"""Pending emails: sent once, retried, or given up, by one node or two."""

import asyncio
import contextlib
import email
import email.policy
import itertools
import logging
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiosmtpd import smtp
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from tertulia.app.founding import opened_log, opened_vault
from tertulia.domain.organization import lifecycle
from tertulia.log.log import Log
from tertulia.model.changes import RealmChanged
from tertulia.model.errors import Refused, Unavailable
from tertulia.model.mail import Mail, MailKind
from tertulia.outbound.mail_sender import (
    GIVEN_UP_AFTER,
    LEASE_SECONDS,
    MAX_CONCURRENT,
    ROUND_SECONDS,
    MailSender,
)
from tertulia.outbound.mail_templates import MailTemplates, RenderedMail
from tertulia.outbound.transports import (
    TIMEOUT_SECONDS,
    Delayed,
    Smtp,
    SmtpServer,
    Trouble,
    Undeliverable,
)
from tertulia.service import mailing
from tertulia.service.config import Config
from tertulia.service.links import Links
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import outbox
from tertulia.store.database import DatabaseUnavailable
from tertulia.store.outbox import QueuedMail
from tests.emails import CollectingTransport, due_emails, link_path, no_email_job
from tests.support import Organization, TestClock, new_organization, open_organization

MAIL = Mail(kind=MailKind.HAS_ACCOUNT, to="zoe@example.com", site="http://chat.test")
LETTER = RenderedMail(to="zoe@example.com", subject="Hé", text="Hello ☺\n", html="<p>Hello ☺</p>")


@dataclass
class Nodes:
    """A log with an organization, and its email senders."""

    log: Log
    links: Links
    clock: TestClock

    def mail_sender(self, transport: Any) -> MailSender:
        letters = MailTemplates(lambda: self.log.state, self.links)
        return MailSender(self.log.store, letters, transport, self.clock)

    async def ask(self, *mails: Mail) -> None:
        def decide(_: CommandContext) -> Decision[None]:
            return Decision(None, (), mails)

        await self.log.submit(None, decide)

    async def waiting(self) -> list[QueuedMail]:
        return list(await self.log.store.read(outbox.queued))


@pytest.fixture
async def nodes(config: Config) -> AsyncIterator[Nodes]:
    vault, clock = opened_vault(config, create=True), TestClock()
    with contextlib.closing(vault):
        async with opened_log(config, lambda _: None, clock=clock) as log:
            credential = await vault.credential(lifecycle.FIRST_USER, None)
            uuid, who = "00000000-0000-4000-8000-000000000000", ("ann@example.com", "Ann")
            await log.submit(None, lifecycle.create, "Example", uuid, *who, credential)
            yield Nodes(log, Links(vault), clock)


class Failing:
    """A transport that fails this many times and then works."""

    def __init__(self, failure: Exception, times: int = 10**9) -> None:
        self.failure = failure
        self.left = times
        self.sent: list[str] = []

    async def send(self, letter: RenderedMail, mail_id: str) -> None:
        if self.left:
            self.left -= 1
            raise self.failure
        self.sent.append(mail_id)


# Stored with the decision


async def test_a_slow_run_ends_between_two_emails(nodes: Nodes) -> None:
    passed = itertools.count(0.0, ROUND_SECONDS * 0.4)
    sent: list[str] = []

    class Slow:
        async def send(self, letter: RenderedMail, mail_id: str) -> None:
            sent.append(mail_id)

    letters = MailTemplates(lambda: nodes.log.state, nodes.links)
    mail_sender = MailSender(nodes.log.store, letters, Slow(), nodes.clock, lambda: next(passed))
    count = 3 * MAX_CONCURRENT
    await nodes.ask(*[MAIL] * count)
    assert await mail_sender.once() < 1  # More emails are waiting.
    assert len(sent) == 2 * MAX_CONCURRENT
    await mail_sender.deliver()
    assert len(set(sent)) == len(sent) == count


async def test_a_failed_run_leaves_no_email_half_sent(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await nodes.ask(MAIL, MAIL)
    sent: list[str] = []

    class Uneven:
        async def send(self, letter: RenderedMail, mail_id: str) -> None:
            if sent:
                await asyncio.sleep(0.01)
            sent.append(mail_id)

    sender = nodes.mail_sender(Uneven())
    real, writes = nodes.log.store.write, 0

    async def write(function: Any) -> Any:
        nonlocal writes
        writes += 1
        if writes == 2:  # After it has taken them, the first one is sent.
            raise DatabaseUnavailable("it is away")
        return await real(function)

    monkeypatch.setattr(nodes.log.store, "write", write)
    with pytest.raises(DatabaseUnavailable):
        await sender.deliver()
    assert writes == 3
    assert [one.id for one in await nodes.waiting()] == sent[:1]


async def test_emails_with_links_do_not_wait_for_missed_message_emails(
    nodes: Nodes,
) -> None:
    missed = Mail(kind=MailKind.MISSED_MESSAGES, to="m@example.com", site="", about=1)
    await nodes.ask(*[missed] * 9, MAIL)
    now = nodes.clock() + 1
    first = await nodes.log.store.write(
        lambda c: outbox.lease(c, now, LEASE_SECONDS, MAX_CONCURRENT)
    )
    assert [one.mail.kind for one in first] == [MAIL.kind] + [missed.kind] * (MAX_CONCURRENT - 1)


async def test_an_email_is_stored_with_its_decision_and_deleted_when_sent(
    nodes: Nodes,
) -> None:
    await nodes.ask(MAIL)
    (waiting,) = await nodes.waiting()
    assert waiting.mail == MAIL
    hand = CollectingTransport()
    await nodes.mail_sender(hand).deliver()
    assert [letter.to for letter in hand.letters] == ["zoe@example.com"]
    assert await nodes.waiting() == []
    await nodes.mail_sender(hand).deliver()
    assert len(hand.letters) == 1


async def test_a_refusal_or_failed_commit_leaves_no_email(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: CommandContext) -> Decision[None]:
        raise Refused("no")

    with pytest.raises(Refused):
        await nodes.log.submit(None, refuse)

    async def fail(batch: Any) -> None:
        raise OSError("the disk is full")

    def decide(_: CommandContext) -> Decision[None]:
        return Decision(None, (RealmChanged(values={"description": "x"}),), (MAIL,))

    with monkeypatch.context() as patch:
        patch.setattr(nodes.log.store, "commit", fail)
        with pytest.raises(Unavailable):
            await nodes.log.submit(None, decide)
    await nodes.log.submit(None, lambda _: Decision(None))
    assert await nodes.waiting() == []


async def test_an_email_can_be_queued_without_a_decision(nodes: Nodes) -> None:
    rung = asyncio.Event()
    nodes.log.subscribers.on_mail.append(rung.set)
    nodes.log.mail(MAIL)
    async with asyncio.timeout(60):
        await rung.wait()
    assert [one.mail for one in await nodes.waiting()] == [MAIL]


@pytest.mark.usefixtures(no_email_job.__name__)
async def test_a_pending_email_is_sent_after_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        await invite(org)
    async with open_organization(config) as org:
        (letter,) = await due_emails(org)
        assert letter.to == "zoe@example.com"
        assert (await org.http.get(link_path(letter))).status_code == 200
        assert await due_emails(org) == []


# Retrying and giving up


async def test_a_failed_email_is_retried_at_growing_intervals(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    await nodes.ask(MAIL)
    failing = Failing(Delayed("it is away"), 4)
    mail_sender = nodes.mail_sender(failing)
    pauses = []
    for attempt in range(1, 5):
        await mail_sender.deliver()
        (waiting,) = await nodes.waiting()
        assert (waiting.attempts, waiting.trouble) == (attempt, "it is away")
        pauses.append(waiting.due_at - nodes.clock())
        await mail_sender.deliver()
        assert failing.left == 4 - attempt  # Not before it's due.
        nodes.clock.ahead += pauses[-1] + 1
    for earlier, later in itertools.pairwise(pauses):
        assert later > earlier * 1.1
    assert 40 < pauses[0] < 80
    await mail_sender.deliver()
    assert len(failing.sent) == 1
    assert await nodes.waiting() == []
    assert "zoe@example.com" not in caplog.text


@pytest.mark.parametrize("failure", [Delayed("away"), TimeoutError()], ids=repr)
async def test_an_email_that_fails_for_days_is_given_up_and_logged(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    await nodes.ask(MAIL)
    mail_sender = nodes.mail_sender(Failing(failure))
    await mail_sender.deliver()
    nodes.clock.ahead = GIVEN_UP_AFTER - 60
    await mail_sender.deliver()
    assert len(await nodes.waiting()) == 1
    nodes.clock.ahead = 2 * GIVEN_UP_AFTER
    await mail_sender.deliver()
    assert await nodes.waiting() == []
    assert "given up" in caplog.text


async def test_a_permanently_rejected_email_is_given_up_immediately(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    await nodes.ask(MAIL, msgspec.structs.replace(MAIL, to="yan@example.com"))
    await nodes.mail_sender(Failing(Undeliverable("550 nobody"), 1)).deliver()
    assert await nodes.waiting() == []
    assert "rejected by the mail server" in caplog.text


async def test_an_email_about_something_obsolete_is_not_sent(nodes: Nodes) -> None:
    for kind in (MailKind.INVITATION, MailKind.CONFIRM_SIGN_UP, MailKind.CONFIRM_ADDRESS):
        await nodes.ask(msgspec.structs.replace(MAIL, kind=kind, about=7))
    hand = CollectingTransport()
    await nodes.mail_sender(hand).deliver()
    assert hand.letters == []
    assert await nodes.waiting() == []


# Several senders


async def test_two_nodes_never_both_send_an_email(nodes: Nodes) -> None:
    await nodes.ask(*(msgspec.structs.replace(MAIL, to=f"{n}@x.org") for n in range(25)))
    hands = [CollectingTransport(), CollectingTransport()]
    await asyncio.gather(*(nodes.mail_sender(hand).deliver() for hand in hands))
    sent = [letter.to for hand in hands for letter in hand.letters]
    assert sorted(sent) == sorted(f"{n}@x.org" for n in range(25))


async def test_a_crashed_node_s_emails_are_sent_when_its_lease_expires(
    nodes: Nodes,
) -> None:
    await nodes.ask(MAIL)
    now = nodes.clock()
    (lost,) = await nodes.log.store.write(lambda c: outbox.lease(c, now, LEASE_SECONDS, 10))
    hand = CollectingTransport()
    await nodes.mail_sender(hand).deliver()
    assert hand.letters == []
    nodes.clock.ahead = LEASE_SECONDS + 1
    later = nodes.clock()
    (taken,) = await nodes.log.store.write(lambda c: outbox.lease(c, later, LEASE_SECONDS, 10))
    # The crashed node's later reports are ignored.
    await nodes.log.store.write(lambda c: outbox.postpone(c, lost, now, "late"))
    await nodes.log.store.write(lambda c: outbox.remove(c, lost))
    (waiting,) = await nodes.waiting()
    assert waiting == taken
    assert TIMEOUT_SECONDS < LEASE_SECONDS


# SMTP


@dataclass
class Server:
    """An SMTP server on this machine. Its `answers` are used in turn, each after an email;
    `hang_up` closes the connection instead. With `tls`, connections begin with a handshake."""

    answers: list[str] = field(default_factory=list)
    refuses: str = ""
    hang_up: bool = False
    tls: ssl.SSLContext | None = None
    got: "asyncio.Queue[Envelope]" = field(default_factory=asyncio.Queue)
    signed_in: list[bytes] = field(default_factory=list)
    port: int = 0
    protocols: list[smtp.SMTP] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 (its name)
        self, _server: Any, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        if self.refuses:
            return self.refuses
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 (its name)
        self, server: smtp.SMTP, _session: Session, envelope: Envelope
    ) -> str:
        if self.hang_up:
            assert server.transport is not None
            server.transport.close()
            return "250 OK"
        answer = self.answers.pop(0) if self.answers else "250 OK"
        if answer.startswith("2"):
            self.got.put_nowait(envelope)
        return answer

    def settings(self, **more: Any) -> SmtpServer:
        return SmtpServer(
            host="127.0.0.1",
            port=self.port,
            security="none",
            sender="Chat <chat@example.com>",
            **more,
        )


@contextlib.asynccontextmanager
async def listening(server: Server, **options: Any) -> AsyncIterator[Server]:
    """The server, on a free port."""

    def protocol() -> smtp.SMTP:
        return smtp.SMTP(server, enable_SMTPUTF8=True, hostname="mail.test", **options)

    listener = await asyncio.get_running_loop().create_server(
        protocol, "127.0.0.1", 0, ssl=server.tls
    )
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


async def test_an_email_arrives_as_text_and_html() -> None:
    async with listening(Server()) as server:
        await Smtp(server.settings()).send(LETTER, "abc")
        envelope = await server.got.get()
    assert (envelope.mail_from, envelope.rcpt_tos) == ("chat@example.com", ["zoe@example.com"])
    assert isinstance(envelope.content, bytes)
    message = email.message_from_bytes(envelope.content, policy=email.policy.default)
    assert (message["From"], message["To"], message["Subject"]) == (
        "Chat <chat@example.com>",
        "zoe@example.com",
        "Hé",
    )
    assert message["Message-ID"] == "<abc@example.com>"
    assert message["Auto-Submitted"] == "auto-generated"
    parts = {
        part.get_content_type(): part.get_content()
        for part in message.walk()
        if not part.is_multipart()
    }
    assert parts["text/plain"].replace("\r\n", "\n") == LETTER.text
    assert LETTER.html in parts["text/html"]


@pytest.mark.parametrize(
    ("server", "failure"),
    [
        (Server(refuses="550 nobody here"), Undeliverable),
        (Server(refuses="450 come back"), Delayed),
        (Server(answers=["554 looks like spam"]), Undeliverable),
        (Server(answers=["451 not now"]), Delayed),
        (Server(hang_up=True), Delayed),
    ],
    ids=["no recipient", "greylisted", "refused", "busy", "dies midway"],
)
async def test_the_server_s_response_decides_whether_to_retry(
    server: Server, failure: type[Exception]
) -> None:
    async with listening(server):
        with pytest.raises(failure) as raised:
            await Smtp(server.settings()).send(LETTER, "abc")
    assert "zoe@example.com" not in str(raised.value)
    assert server.got.empty()


async def test_an_unreachable_or_non_smtp_server_is_retried() -> None:
    async with listening(Server()) as server:
        pass
    with pytest.raises(Delayed):
        await Smtp(server.settings()).send(LETTER, "abc")


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
async def test_credentials_are_used_and_a_wrong_password_is_retried() -> None:
    def check(_s: Any, _session: Any, _e: Any, _mechanism: Any, login: LoginPassword) -> AuthResult:
        return AuthResult(success=login.password == b"right", handled=False)

    options = {"authenticator": check, "auth_required": True, "auth_require_tls": False}
    async with listening(Server(), **options) as server:
        await Smtp(server.settings(user="chat", password="right")).send(LETTER, "abc")
        with pytest.raises(Delayed) as raised:
            await Smtp(server.settings(user="chat", password="very-wrong")).send(LETTER, "abc")
        assert "very-wrong" not in str(raised.value)
        assert raised.value.trouble is Trouble.NOT_SIGNED_IN
        assert server.got.qsize() == 1


async def test_an_email_is_not_sent_without_required_encryption() -> None:
    async with listening(Server()) as server:
        settings = msgspec.structs.replace(server.settings(), security="starttls")
        with pytest.raises(Delayed) as raised:
            await Smtp(settings).send(LETTER, "abc")
        assert raised.value.trouble is Trouble.NOT_ENCRYPTED
        assert server.got.empty()


async def test_a_node_sends_queued_emails_by_itself(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with listening(Server()) as server:
        own = msgspec.structs.replace(
            config, smtp_host="127.0.0.1", smtp_port=server.port, smtp_security="none"
        )
        async with new_organization(own) as org:
            await invite(org)
            async with asyncio.timeout(60):
                envelope = await server.got.get()
    assert isinstance(envelope.content, bytes)
    message = email.message_from_bytes(envelope.content, policy=email.policy.default)
    body = message.get_body(("plain",))
    assert body is not None
    assert "http://chat.test/join/i1-" in body.get_content()
    assert message["From"] == "Tertulia <noreply@chat.test>"
    told = [f"{r.msg} {getattr(r, 'fields', '')}" for r in caplog.records if "tertulia" in r.name]
    assert any("mail sent" in line for line in told)
    assert not any("zoe@" in line or "/join/i1" in line for line in told)


async def test_missed_message_emails_are_understood_by_email_programs(config: Config) -> None:
    async with listening(Server()) as server:
        own = msgspec.structs.replace(
            config, smtp_host="127.0.0.1", smtp_port=server.port, smtp_security="none"
        )
        async with new_organization(own) as org:
            ben = await org.add("ben")
            soon = {"email_notifications_batching_period_seconds": 1}
            assert (await ben.patch("/settings", **soon)).ok
            await org["ann"].write([ben.user_id], "are you *there*?")
            async with asyncio.timeout(60):
                first = (await server.got.get()).content
            await org["ann"].write([ben.user_id], "and now?")
            async with asyncio.timeout(60):
                second = (await server.got.get()).content
            assert server.got.empty()
    messages = []
    for content in (first, second):
        assert isinstance(content, bytes)
        messages.append(email.message_from_bytes(content, policy=email.policy.default))
    for message, said in zip(messages, ("are you there?", "and now?"), strict=True):
        assert message["To"] == "ben@example.com"
        assert message["Subject"] == "Direct messages with Ann"
        assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        for kind in ("plain", "html"):
            body = message.get_body((kind,))
            assert body is not None
            assert ("<em>there</em>" if kind == "html" and "there" in said else said) in (
                body.get_content()
            )
    assert messages[0]["References"] == messages[1]["References"]
    assert messages[0]["Message-ID"] != messages[1]["Message-ID"]


async def invite(org: Organization) -> None:
    (await org["ann"].post("/invites", invitee_emails="zoe@example.com", stream_ids=[])).ok


# Without a mail server


async def test_without_a_mail_server_emails_are_private_files(nodes: Nodes, tmp_path: Path) -> None:
    config = Config(data_dir=str(tmp_path / "letters"))
    transport = mailing.transport(config, nodes.log)
    await transport.send(LETTER, "abcdefghij")
    (place,) = (Path(config.data_dir) / mailing.FOLDER).iterdir()
    assert place.name.endswith("-abcdefgh.eml")
    assert "Hello ☺" in place.read_text()
    assert place.stat().st_mode & 0o077 == 0
    assert place.parent.stat().st_mode & 0o077 == 0


async def test_an_unwritable_directory_is_retried(nodes: Nodes, tmp_path: Path) -> None:
    directory = tmp_path / "letters"
    directory.mkdir()
    (directory / mailing.FOLDER).write_text("in the way")
    with pytest.raises(Delayed):
        await mailing.transport(Config(data_dir=str(directory)), nodes.log).send(LETTER, "abc")
