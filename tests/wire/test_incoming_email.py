"""Incoming email: conversations by LMTP and SMTP with a listening node."""

import asyncio
import contextlib
import dataclasses
import re
import smtplib
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiosmtpd.smtp import SMTP

from tertulia.domain.organization.lifecycle import EMAIL_GATEWAY, NOTIFICATION_BOT
from tertulia.model.mail import Mail, MailKind
from tertulia.service.config import Config
from tertulia.service.mail_in import addresses, receiving
from tertulia.service.mail_in.addresses import MailAddresses, MailOptions
from tertulia.service.mailing import MailRenderer
from tertulia.service.notifications.mail import MESSAGES
from tertulia.wire.http.node import HttpNode
from tertulia.wire.mail import server
from tests.support import Organization, new_organization, row

PATTERN = "chat+%s@mail.example"
UNDER = "ben@example.com"


class Post:
    """A node that receives email."""

    def __init__(self, org: Organization, node: HttpNode, port: int) -> None:
        self.org = org
        self.node = node
        self.port = port
        self.addresses = MailAddresses(node.config, node.vault)

    async def bring(
        self, to: str, mail: EmailMessage, by: type[smtplib.SMTP] = smtplib.LMTP
    ) -> dict[str, tuple[int, bytes]]:
        """The server's refusals, by recipient."""
        content, wanted = mail.as_bytes(), [to]

        def talk() -> dict[str, tuple[int, bytes]]:
            with by("127.0.0.1", self.port) as connection:
                try:
                    return connection.sendmail(UNDER, wanted, content)
                except smtplib.SMTPRecipientsRefused as refused:
                    return refused.recipients
                except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
                    return {wanted[0]: (error.smtp_code, bytes(error.smtp_error))}  # type: ignore[arg-type]  # they are bytes

        return await asyncio.to_thread(talk)

    async def bring_to_both(self, first: str, second: str, mail: EmailMessage) -> list[int]:
        """The server's response for each of two recipients, by LMTP."""

        def talk() -> list[int]:
            with smtplib.LMTP("127.0.0.1", self.port) as connection:
                connection.ehlo()
                connection.mail(UNDER)
                connection.rcpt(first)
                connection.rcpt(second)
                code, _ = connection.data(mail.as_bytes())
                return [code, connection.getreply()[0]]

        return await asyncio.to_thread(talk)

    def of_channel(self, name: str, who: str, options: MailOptions | None = None) -> str:
        state = self.org.node.state
        channel = state.channel_named(name)
        assert channel is not None
        user = state.users[self.org[who].user_id]
        return self.addresses.of_channel(state, channel.id, user, user, options or MailOptions())

    def unsigned(self, name: str, who: str) -> str:
        """The channel's address in its form before options were signed."""
        state, user_id = self.org.node.state, self.org[who].user_id
        channel = state.channel_named(name)
        assert channel is not None
        key = state.credentials[user_id].key_digest
        ids = (channel.id, user_id, user_id)
        proof = self.node.vault.address_proof("channel:{}:{}:{}:".format(*ids) + f"{key}:{key}")
        return PATTERN % f"{name}.c{'.'.join(map(str, ids))}.{proof}"

    def of_answer(self, who: str, message_id: int, ago: float = 0) -> str:
        """The address where `who` can reply to the message, in an email sent this many seconds
        ago."""
        state = self.org.node.state
        user, message = state.users[self.org[who].user_id], _Named(message_id)
        now = self.node.clock() - ago
        return self.addresses.of_answer(state, user, message, now)  # type: ignore[arg-type]


@dataclasses.dataclass
class _Named:
    id: int


@asynccontextmanager
async def listening(org: Organization, **settings: Any) -> AsyncIterator[Post]:
    how = {"mail_in_pattern": PATTERN, "mail_in_listen": "lmtp://127.0.0.1:0"} | settings
    node = dataclasses.replace(org.node, config=msgspec.structs.replace(org.node.config, **how))
    async with server.mail_server(node) as port:
        assert port is not None
        yield Post(org, node, port)


@pytest.fixture
async def post(org: Organization) -> AsyncIterator[Post]:
    await org.channel("kitchen", "ann", "ben", "cleo")
    async with listening(org) as found:
        yield found


def a_mail(text: str, subject: str = "Plates", **headers: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "Ben Baker <ben@example.com>", subject
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail


async def newest(org: Organization, who: str, count: int = 1) -> list[dict[str, Any]]:
    reply = await org[who].get(
        "/messages", anchor="newest", num_before=count, num_after=0, apply_markdown=False
    )
    found: list[dict[str, Any]] = reply.ok["messages"]
    return found


async def test_a_reply_goes_to_where_the_message_is_now(post: Post) -> None:
    org = post.org
    asked = await org["ann"].send("kitchen", "cups", "@**Ben** how many?")
    mail = a_mail("Four, @**Ann**.\n\nOn Mon, Nov 2, 2026 Ann <a@b.c> wrote:\n> how many?\n")
    assert await post.bring(post.of_answer("ben", asked), mail) == {}
    (said,) = await newest(org, "ann")
    assert (said["subject"], said["content"]) == ("cups", "Four, @**Ann**.")
    assert (said["sender_id"], said["client"]) == (org["ben"].user_id, "mail")
    assert "mentioned" in said["flags"]

    await org["ann"].patch(f"/messages/{asked}", topic="mugs", propagate_mode="change_all")
    await post.bring(post.of_answer("ben", asked).upper(), a_mail("Or five."))
    assert (await newest(org, "ann"))[0]["subject"] == "mugs"

    direct = await org["ann"].write([org["ben"].user_id, org["cleo"].user_id], "psst")
    await post.bring(post.of_answer("ben", direct), a_mail("What?"))
    (said,) = await newest(org, "cleo")
    assert (said["type"], said["content"]) == ("private", "What?")


async def test_a_missed_message_email_has_a_reply_address(post: Post) -> None:
    org = post.org
    asked = await org["ann"].send("kitchen", "cups", "@**Ben** how many?")
    facts = {MESSAGES: str(asked)}
    user_id = org["ben"].user_id
    mail = Mail(
        kind=MailKind.MISSED_MESSAGES, to=UNDER, site="http://x.test", about=user_id, facts=facts
    )
    written = await MailRenderer(post.node).rendered(mail, post.node.clock())
    assert written is not None
    assert "Reply to this email" in written.text
    assert await post.bring(dict(written.headers)["Reply-To"], a_mail("Four")) == {}
    assert (await newest(org, "ann"))[0]["content"] == "Four"


async def test_a_channel_has_an_address_with_options(post: Post) -> None:
    org = post.org
    channel_id = (await org["ben"].get("/get_stream_id", stream="kitchen")).ok["stream_id"]
    (await org["ben"].get(f"/streams/{channel_id}/email_address")).refused()
    address = post.of_channel("kitchen", "ben")
    assert re.fullmatch(r"chat\+kitchen\.m[a-z0-9.]+@mail\.example", address)
    local = address.partition("@")[0]
    assert len(local) <= 64
    text = "New @**all** plates\n\n-- \nBen"
    mail = a_mail(text, "Re: AW: Order\t 7")
    mail.add_attachment(b"\x00\x01", maintype="application", subtype="zip", filename="[a] b.zip")
    assert await post.bring(address, mail) == {}
    (said,) = await newest(org, "ann")
    assert said["subject"] == "Order 7"
    assert said["content"].startswith(
        "New @\N{ZERO WIDTH SPACE}**all** plates\n\n[(a) b.zip](/user_u"
    )
    path = re.search(r"\((/user_uploads/.*)\)", said["content"])
    assert path is not None
    found = await org["ann"].http.get(
        path[1], auth=(org["ann"].email, org["ann"].api_key), follow_redirects=True
    )
    assert found.content == b"\x00\x01"

    more = MailOptions(show_sender=True, include_footer=True)
    await post.bring(post.of_channel("kitchen", "ben", more), a_mail(text, ""))
    (said,) = await newest(org, "ann")
    assert said["subject"] == "(no subject)"
    assert said["content"].startswith("**From:** Ben Baker <ben@example.com>\n\nNew")
    assert said["content"].endswith("Ben")


async def test_options_of_an_address_cannot_be_changed(post: Post) -> None:
    everything = MailOptions(
        show_sender=True, include_footer=True, include_quotes=True, prefer_html=True
    )
    address = post.of_channel("kitchen", "ben", everything)
    assert len(address.partition("@")[0]) <= 64
    plain = post.of_channel("kitchen", "ben")
    for forged in (
        address.replace(".sfqh.", "."),
        address.replace(".sfqh.", ".s."),
        address.replace("@", ".show-sender@"),
        re.sub(r"\.m(\d)", r".c\1", plain),
        re.sub(r"\.([a-z2-7]{20}@)", r".s.\1", plain),
    ):
        assert forged not in {address, plain}
        assert await post.bring(forged, a_mail("No")) == {}
    await post.bring(address, a_mail("Yes"))
    (said,) = await newest(post.org, "ann")
    assert said["content"] == "**From:** Ben Baker <ben@example.com>\n\nYes"


async def test_addresses_with_unsigned_options_keep_working(post: Post) -> None:
    address = post.unsigned("kitchen", "ben")
    await post.bring(address, a_mail("Bare"))
    (said,) = await newest(post.org, "ann")
    assert (said["sender_id"], said["content"]) == (post.org["ben"].user_id, "Bare")
    await post.bring(address.replace("@", ".show-sender@"), a_mail("With"))
    (said,) = await newest(post.org, "ann")
    assert said["content"] == "**From:** Ben Baker <ben@example.com>\n\nWith"


async def test_emails_are_posted_by_the_gateway_unless_another_sender_is_chosen(
    config: Config,
) -> None:
    own = msgspec.structs.replace(config, mail_in_pattern=PATTERN)
    async with new_organization(own) as org:
        ben = await org.add("ben")
        channel = await org.channel("kitchen", "ann", "ben")
        async with listening(org) as post:
            path = f"/streams/{channel}/email_address"
            gateway = (await ben.get(path, show_sender=True)).ok["email"]
            await post.bring(gateway, a_mail("Hello"))
            (said,) = await newest(org, "ann")
            assert said["sender_full_name"] == "Email Gateway"
            assert said["content"] == "**From:** Ben Baker <ben@example.com>\n\nHello"
            own_name = (await ben.get(path, sender_id=ben.user_id)).ok["email"]
            await post.bring(own_name, a_mail("Hello"))
            assert (await newest(org, "ann"))[0]["sender_id"] == ben.user_id
            (await ben.get(path, sender_id=NOTIFICATION_BOT)).refused()


async def test_the_gateway_starts_topics_only_for_people_who_may(post: Post) -> None:
    org, state = post.org, post.org.node.state
    channel = state.channel_named("kitchen")
    assert channel is not None
    gateway, asker = state.users[EMAIL_GATEWAY], state.users[org["ben"].user_id]
    address = post.addresses.of_channel(state, channel.id, gateway, asker)
    await org["ann"].send("kitchen", "Known", "x")
    groups = (await org["ann"].get("/user_groups")).ok["user_groups"]
    administrators = next(one["id"] for one in groups if one["name"] == "role:administrators")
    limited = {"can_create_topic_group": {"new": administrators}}
    (await org["ann"].patch(f"/streams/{channel.id}", **limited)).ok
    assert (await post.bring(address, a_mail("No", "Unknown")))[address][0] == 550
    assert await post.bring(address, a_mail("Yes", "Known")) == {}


async def test_the_same_email_again_is_the_same_message(post: Post) -> None:
    address = post.of_channel("kitchen", "ben")
    mail = a_mail("Once", Message_ID="<one@example.com>")
    for _ in range(2):
        assert await post.bring(address, mail) == {}
    await post.bring(address, a_mail("Last"))
    assert [one["content"] for one in await newest(post.org, "ann", 2)][-2:] == ["Once", "Last"]


async def test_the_same_email_with_a_file_again_is_the_same_message(post: Post) -> None:
    org = post.org
    address = post.of_channel("kitchen", "ben")
    mail = a_mail("See there", Message_ID="<two@example.com>")
    mail.add_attachment(b"x" * 1000, maintype="application", subtype="zip", filename="a.zip")
    for _ in range(2):
        assert await post.bring(address, mail) == {}
    both = await asyncio.gather(*(post.bring(address, mail) for _ in range(3)))
    assert both == [{}, {}, {}]
    found = await newest(org, "ann", 5)
    assert len([one for one in found if "See there" in one["content"]]) == 1
    assert len((await org["ben"].get("/attachments")).ok["attachments"]) == 1


async def test_a_refused_email_leaves_no_file_behind(post: Post) -> None:
    org = post.org
    address = post.of_channel("kitchen", "ben")
    mail = a_mail("See there", "New topic")
    mail.add_attachment(b"x" * 1000, maintype="application", subtype="zip", filename="a.zip")
    channel = org.node.state.channel_named("kitchen")
    assert channel is not None
    groups = (await org["ann"].get("/user_groups")).ok["user_groups"]
    administrators = next(one["id"] for one in groups if one["name"] == "role:administrators")
    limited = {"can_create_topic_group": {"new": administrators}}
    (await org["ann"].patch(f"/streams/{channel.id}", **limited)).ok
    code, why = (await post.bring(address, mail))[address]
    assert (code, b"topics" in why) == (550, True)
    files = (await org["ben"].get("/attachments")).ok
    assert (files["attachments"], files["own_space_used"]) == ([], 0)


async def test_an_email_to_an_invalid_address_is_dropped_without_an_answer(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    org = post.org
    asked = await org["ann"].send("kitchen", "cups", "how many?")
    whole = post.of_answer("ben", asked)
    channel = post.of_channel("kitchen", "ben")
    forged = [
        re.sub(r"\.[a-z2-7]{20}@", ".aaaaaaaaaaaaaaaaaaaa@", whole),
        whole.replace(f".{asked}.", f".{asked + 1}."),
        post.of_answer("ben", asked, ago=(addresses.REPLY_DAYS + 1) * 86400 + 1),
        "chat+nonsense@mail.example",
    ]
    for address in forged:
        assert await post.bring(address, a_mail("No")) == {}
    assert (await post.bring("chat@mail.example", a_mail("No")))["chat@mail.example"][0] == 550
    (await org["ben"].post("/users/me/api_key/regenerate")).ok
    for address in (whole, channel):
        assert await post.bring(address, a_mail("No")) == {}
    assert [one["id"] for one in await newest(org, "ann")] == [asked]


async def test_an_email_without_a_sender_is_treated_as_a_bounce(post: Post) -> None:
    address = post.of_channel("kitchen", "ben")

    def talk() -> None:
        with smtplib.LMTP("127.0.0.1", post.port) as connection:
            content = a_mail("I am sorry to inform you").as_bytes()
            assert connection.sendmail("<>", [address], content) == {}

    await asyncio.to_thread(talk)
    await post.bring(address, a_mail("From somebody"))
    assert [one["content"] for one in await newest(post.org, "ann", 2)][-1:] == ["From somebody"]
    assert "sorry" not in (await newest(post.org, "ann", 2))[0]["content"]


async def test_files_count_for_the_person_with_the_address(post: Post) -> None:
    org, state = post.org, post.org.node.state
    (await org["ann"].patch("/realm", upload_quota_per_user_mib=1)).ok
    channel = state.channel_named("kitchen")
    gateway = next(one for one in state.users if one.is_system_bot)
    assert channel is not None
    asker = state.users[org["ben"].user_id]
    address = post.addresses.of_channel(state, channel.id, gateway, asker)
    mail = a_mail("See there")
    mail.add_attachment(b"x" * 600_000, maintype="application", subtype="zip", filename="a.zip")
    assert await post.bring(address, mail) == {}
    (said,) = await newest(org, "ann")
    assert said["sender_id"] == gateway.id
    files = (await org["ben"].get("/attachments")).ok
    assert files["own_space_used"] == 600_000
    assert files["attachments"][0]["message_ids"] == [said["id"]]
    path = "/user_uploads/" + files["attachments"][0]["path_id"]
    assert (await org["cleo"].open(path)).status_code == 200
    code, why = (await post.bring(address, mail))[address]
    assert (code, b"no room" in why) == (550, True)
    assert len((await org["ben"].get("/attachments")).ok["attachments"]) == 1


async def test_a_sender_without_permission_is_told_so(post: Post) -> None:
    org = post.org
    asked = await org["ann"].send("kitchen", "cups", "how many?")
    answer, channel = post.of_answer("ben", asked), post.of_channel("kitchen", "cleo")
    (await org["ann"].delete(f"/users/{org['cleo'].user_id}")).ok
    refused = await post.bring(channel, a_mail("No"))
    assert refused[channel][0] == 550
    assert b"deactivated" in refused[channel][1]
    (await org["ann"].delete(f"/messages/{asked}")).ok
    assert (await post.bring(answer, a_mail("No")))[answer][0] == 550
    empty = post.of_channel("kitchen", "ben")
    assert (await post.bring(empty, a_mail("\n")))[empty][0] == 550
    assert await post.bring_to_both(channel, empty, a_mail("Yes")) == [550, 250]
    assert (await newest(org, "ann"))[0]["content"] == "Yes"


@pytest.mark.parametrize(
    ("headers", "of_answer", "of_channel"),
    [
        ({"Auto_Submitted": "auto-replied"}, 0, 0),
        ({"Auto_Submitted": "auto-generated"}, 0, 1),
        ({"Precedence": "list"}, 0, 1),
        ({"X_Loop": "no"}, 1, 1),
    ],
)
async def test_automatic_emails_get_no_answer(
    post: Post, headers: dict[str, str], of_answer: int, of_channel: int
) -> None:
    asked = await post.org["ann"].send("kitchen", "cups", "how many?")
    for address, wanted in (
        (post.of_answer("ben", asked), of_answer),
        (post.of_channel("kitchen", "ben"), of_channel),
    ):
        before = (await newest(post.org, "ann"))[0]["id"]
        assert await post.bring(address, a_mail("I am away", **headers)) == {}
        after = (await newest(post.org, "ann"))[0]["id"]
        assert (after != before) == bool(wanted)


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The emails received, in their raw form."""
    found: list[bytes] = []

    async def receive(node: HttpNode, target: object, place: Path) -> None:
        found.append(await asyncio.to_thread(place.read_bytes))

    monkeypatch.setattr(server, "receive", receive)
    return found


CONTENTS: list[bytes] = [
    b"",
    b"\r\n",
    b".\r\n",
    b"..\r\n.a\r\n\r\n.\r\n...\r\nb.\r\n",
    b"Subject: x\r\n\r\n" + b"long " * 40_000 + b"\r\n",
    (b"x" * 65_529 + b"\r\n.") * 4 + b"\r\n",
    b"\xff\x00\r\n",
]


async def test_an_email_is_received_unchanged(post: Post, brought: list[bytes]) -> None:
    address = post.of_channel("kitchen", "ben")

    def talk(content: bytes) -> None:
        with smtplib.LMTP("127.0.0.1", post.port) as connection:
            connection.ehlo()
            for _ in range(2):
                connection.mail(UNDER)
                connection.rcpt(address)
                assert connection.data(content)[0] == 250

    for content in CONTENTS:
        with row(content[:40]):
            await asyncio.to_thread(talk, content)
            # As far as it's clear where an email without a final line break ends.
            assert brought == [content or b"\r\n"] * 2
            brought.clear()


async def test_an_email_sent_without_waiting_is_received_completely(
    post: Post, brought: list[bytes]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", post.port)
    said = f"LHLO x\r\nMAIL FROM:<{UNDER}>\r\nRCPT TO:<{post.of_channel('kitchen', 'ben')}>\r\n"
    writer.write(said.encode() + b"DATA\r\nSubject: x\r\n\r\ny\r\n.\r\nQUIT\r\n")
    answers = (await reader.read()).splitlines()
    writer.close()
    assert [line[:3] for line in answers[-3:]] == [b"354", b"250", b"221"]
    assert brought == [b"Subject: x\r\n\r\ny\r\n"]


async def test_pipelined_commands_have_a_turn_each(post: Post) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", post.port)
    assert await reader.readuntil(b"\r\n")
    turns, is_over, loop = 0, False, asyncio.get_running_loop()

    def count() -> None:
        nonlocal turns
        turns += 1
        if not is_over:
            loop.call_soon(count)

    count()
    writer.write(b"NOOP\r\n\r\n" * 100)
    for _ in range(200):
        assert await reader.readuntil(b"\r\n")
    is_over = True
    assert turns >= 200
    writer.close()


async def test_each_recipient_is_told_that_an_email_is_too_large(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("kitchen", "ben", "ann")
    async with listening(org, mail_in_max_mib=1) as post:
        ben, ann = (post.of_channel("kitchen", name) for name in ("ben", "ann"))
        # A missing response would end the connection with a timeout.
        monkeypatch.setattr(server, "COMMAND_SECONDS", 10.0)
        assert await post.bring_to_both(ben, ann, a_mail("x" * 1_200_000)) == [552, 552]
        assert await post.bring_to_both(ben, ann, a_mail("x")) == [250, 250]


async def test_an_email_of_40_mb_is_refused_without_storing_it(org: Organization) -> None:
    await org.channel("kitchen", "ben")
    piece = (b"x" * 998 + b"\r\n") * 500
    async with listening(org, mail_in_max_mib=1) as post:
        reader, writer = await asyncio.open_connection("127.0.0.1", post.port)
        said = f"MAIL FROM:<{UNDER}>\r\nRCPT TO:<{post.of_channel('kitchen', 'ben')}>\r\n"
        writer.write(b"LHLO x\r\n" + said.encode() + b"DATA\r\n")
        while not (await reader.readline()).startswith(b"354"):
            pass
        tracemalloc.start()
        try:
            for _ in range(80):
                writer.write(piece)
                await writer.drain()
            writer.write(b".\r\nQUIT\r\n")
            answers = (await reader.read()).splitlines()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            writer.close()
    assert [line[:3] for line in answers] == [b"552", b"221"]
    assert most < 8 << 20


async def test_an_email_of_very_many_lines_costs_as_much_as_its_length(
    post: Post, brought: list[bytes]
) -> None:
    address, lines = post.of_channel("kitchen", "ben"), 200_000
    content = b"\r\n" * lines

    def talk() -> None:
        with smtplib.LMTP("127.0.0.1", post.port) as connection:
            assert connection.sendmail(UNDER, [address], content) == {}

    tracemalloc.start()
    try:
        await asyncio.to_thread(talk)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert brought == [content]
    # The client, in this process, has it several times, too.
    assert most < 20 * len(content)


async def test_an_internal_error_asks_for_a_retry_and_reveals_nothing(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def receive(*_: object) -> None:
        raise RuntimeError("something of ours")

    monkeypatch.setattr(server, "receive", receive)
    address = post.of_channel("kitchen", "ben")
    assert (await post.bring(address, a_mail("x")))[address] == (451, b"4.3.0 Try again later")


async def test_a_client_that_waits_for_a_response_is_not_idle(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("kitchen", "ben")
    real, patience = SMTP._reset_timeout, list[float]()

    def noted(self: SMTP, duration: float) -> None:
        patience.append(duration)
        real(self, duration)

    async def receive(*_: object) -> None:
        assert patience[-1] > server.MAIL_SECONDS

    monkeypatch.setattr(SMTP, "_reset_timeout", noted)
    monkeypatch.setattr(server, "receive", receive)
    async with listening(org) as post:
        assert await post.bring(post.of_channel("kitchen", "ben"), a_mail("x")) == {}
    assert patience[-1] <= server.COMMAND_SECONDS


async def test_a_connection_has_a_total_time_limit(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CONNECTION_SECONDS", 0.2)
    async with listening(org) as post:
        reader, writer = await asyncio.open_connection("127.0.0.1", post.port)
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                while await reader.readline() and not writer.is_closing():
                    writer.write(b"NOOP\r\n")
                    await asyncio.sleep(0.01)
        writer.close()


async def test_slow_reads_count_as_many_commands(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("kitchen", "ben")
    monkeypatch.setattr(receiving, "MAX_SECONDS", 0.001)
    monkeypatch.setattr(server, "PER_MINUTE", 2)
    monkeypatch.setattr(server, "COSTLY", 2)
    async with listening(org) as post:
        address, endless = post.of_channel("kitchen", "ben"), a_mail("On " * 13_000)
        for wanted in (550, 451):
            assert (await post.bring(address, endless))[address][0] == wanted


async def test_file_names_have_only_visible_characters(post: Post) -> None:
    mail = a_mail("x")
    mail.add_attachment("a,b", subtype="csv", filename="NAME.csv")
    address, content = post.of_channel("kitchen", "ben"), mail.as_bytes()

    def talk() -> None:
        with smtplib.LMTP("127.0.0.1", post.port) as connection:
            named = content.replace(b"NAME", b"../\x00t\x01\x7f")
            assert connection.sendmail(UNDER, [address], named) == {}

    await asyncio.to_thread(talk)
    said = (await newest(post.org, "ann"))[0]["content"]
    assert re.fullmatch(r"x\n\n\[t\.csv\]\(/user_uploads/[\w/-]+/t\.csv\)", said)


async def test_incoming_email_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("kitchen", "ann", "ben")
    monkeypatch.setattr(server, "PER_MINUTE", 2)
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 1)
    async with listening(org, mail_in_listen="smtp://127.0.0.1:0", mail_in_max_mib=1) as post:
        address = post.of_channel("kitchen", "ben")
        large = a_mail("x" * 1_200_000)
        refused = await post.bring(address, large, smtplib.SMTP)
        assert refused[address][0] == 552
        for wanted in (0, 0, 451):
            found = await post.bring(address, a_mail("y" * 20_000), smtplib.SMTP)
            assert found.get(address, (0, b""))[0] == wanted
        content = (await newest(org, "ann"))[0]["content"]
        assert 9_900 < len(content) <= 10_000
        assert content.endswith("y…")
        reader, writer = await asyncio.open_connection("127.0.0.1", post.port)
        assert (await reader.readline()).startswith(b"220")
        second, other = await asyncio.open_connection("127.0.0.1", post.port)
        assert (await second.readline()).startswith(b"421")
        other.close()
        writer.close()
