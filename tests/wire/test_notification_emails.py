"""Missed-message emails: their content, their recipients, and unsubscribing."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tertulia.model.changes import RealmChanged
from tertulia.model.mail import Mail, MailKind
from tertulia.outbound.mail_sender import MailSender
from tertulia.outbound.mail_templates import RenderedMail
from tertulia.outbound.transports import mail_message
from tertulia.service.config import Config
from tertulia.service.mailing import MailRenderer
from tertulia.service.notifications import notifier
from tertulia.service.notifications.digests import ask_for_digests
from tertulia.service.notifications.mail import MESSAGES, MailChannel
from tertulia.service.notifications.notifier import LEASE_SECONDS, Notifier
from tests.conftest import OTHERS
from tests.emails import CollectingTransport, no_email_job
from tests.pictures import picture
from tests.support import Organization, TestClock, new_organization

pytestmark = pytest.mark.usefixtures(no_email_job.__name__)


class Away:
    """An organization with a clock that tests set, and its emails."""

    def __init__(self, org: Organization, clock: TestClock) -> None:
        self.org = org
        self.clock = clock
        node = org.node
        means = MailChannel(node.log, node.config.mail_site, lambda: None)
        self.notices = Notifier(node.log, node.delivery.presence, [means])

    async def mails(self, seconds: float = 121) -> list[RenderedMail]:
        """The emails sent after this much time."""
        await self.notices.once()
        self.clock.ahead += seconds
        await self.notices.once()
        return await self.sent()

    async def sent(self) -> list[RenderedMail]:
        """The emails sent from the outbox."""
        hand, node = CollectingTransport(), self.org.node
        await MailSender(node.store, MailRenderer(node), hand, node.clock).deliver()
        return hand.letters


@pytest.fixture
async def away(config: Config) -> AsyncIterator[Away]:
    # (Otherwise the node itself holds the cursor.)
    config = msgspec.structs.replace(config, web_push=False)
    clock = TestClock()
    clock.stopped_at = clock()
    async with new_organization(config, clock=clock, others=OTHERS) as org:
        await org.channel("kitchen", "ann", "ben", "cleo")
        yield Away(org, clock)


def headers(mail: RenderedMail) -> dict[str, str]:
    message = mail_message(mail, "abc", "Chat <chat@example.com>")
    return {name.lower(): str(value) for name, value in message.items()}


async def test_a_mention_is_emailed_once_with_context_and_an_unsubscribe_link(
    away: Away,
) -> None:
    ann, ben, cleo = (away.org[name] for name in ("ann", "ben", "cleo"))
    kitchen = away.org.node.state.channel_named("kitchen")
    assert kitchen is not None
    channel_id = kitchen.id
    await cleo.send(channel_id, "cups", "who brings the cups?")
    await ann.send(channel_id, "cups", "@**Ben** you, *please* :tada:")
    await ann.send(channel_id, "cups", "@**Ben** and `plates`\n\n```spoiler x\nthe end\n```")
    (mail,) = await away.mails()
    assert await away.mails() == []
    assert (mail.to, mail.subject) == ("ben@example.com", "#kitchen > cups")
    assert "You were mentioned in Example." in mail.text
    for part in ("who brings the cups?", "you, please 🎉", "and plates", "Cleo", "Ann"):
        assert part in mail.text, part
    assert "the end" not in mail.text + mail.html
    assert "<em>please</em>" in mail.html
    assert mail.text.index("who brings") < mail.text.index("you, please")
    found = headers(mail)
    assert found["list-id"] == f"<channel-{channel_id}.chat.test>"
    assert found["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    assert found["references"] == found["in-reply-to"]
    assert "reply-to" not in found
    # One click, as email programs do it: without a cookie or a page.
    (address,) = re.findall(r"<http://chat\.test(/unsubscribe/\S+)>", found["list-unsubscribe"])
    page = await away.org.http.get(address)
    assert page.status_code == 200
    settings = away.org.node.state.settings
    assert settings[ben.user_id].enable_offline_email_notifications
    clicked = await away.org.http.post(address, data={"List-Unsubscribe": "One-Click"})
    assert clicked.status_code == 200
    assert not settings[ben.user_id].enable_offline_email_notifications
    wrong = address[:-1] + ("A" if address[-1] != "A" else "B")
    assert (await away.org.http.post(wrong)).status_code == 404
    await ann.send(channel_id, "cups", "@**Ben** still there?")
    assert await away.mails() == []


async def test_an_email_has_the_reader_s_local_time(away: Away) -> None:
    ann, ben = away.org["ann"], away.org["ben"]
    assert away.clock.stopped_at is not None
    away.clock.stopped_at -= away.clock.stopped_at % 86400 - 300  # Five past midnight.
    await ann.write([ben.user_id], "late?")
    (mail,) = await away.mails()
    assert "Ann, 12:05 AM UTC:" in mail.text
    (await ben.patch("/settings", twenty_four_hour_time=True)).ok
    await ann.write([ben.user_id], "later?")
    (mail,) = await away.mails()
    assert "Ann, 00:07 UTC:" in mail.text


async def test_conversations_have_their_own_emails_and_threads(away: Away) -> None:
    ann, ben, cleo = (away.org[name] for name in ("ann", "ben", "cleo"))
    await ann.write([ben.user_id], "one")
    await ann.write([ben.user_id, cleo.user_id], "two")
    first = await away.mails()
    assert sorted(mail.subject for mail in first if mail.to == "ben@example.com") == [
        "Direct messages with Ann",
        "Direct messages with Ann, Cleo",
    ]
    await ann.write([ben.user_id], "three")
    (later,) = await away.mails()
    (before,) = [mail for mail in first if mail.subject == later.subject]
    assert headers(later)["references"] == headers(before)["references"]
    assert len({headers(mail)["references"] for mail in first}) == len(first) == 3
    assert "new direct message from Ann" in later.text
    assert "one" in later.text, "what came before is there for sense"


@pytest.mark.parametrize("when", ["before it is due", "before it is sent"])
async def test_read_deleted_or_inaccessible_messages_are_not_emailed(away: Away, when: str) -> None:
    ann, ben, cleo = (away.org[name] for name in ("ann", "ben", "cleo"))
    den = await away.org.channel("den", "ann", "ben", is_private=True, history_public=False)
    read = await ann.write([ben.user_id], "read")
    deleted = await ann.write([ben.user_id], "deleted")
    await ann.send(den, "x", "@**Ben** taken away")
    edited = await ann.write([cleo.user_id], "secret")
    await away.notices.once()
    if when == "before it is sent":
        away.clock.ahead += 121
        await away.notices.once()
    assert (await ben.post("/messages/flags", messages=[read], op="add", flag="read")).ok
    assert (await ann.delete(f"/messages/{deleted}")).ok
    assert (await ann.patch(f"/messages/{edited}", content="nothing")).ok
    removed = {"subscriptions": ["den"], "principals": [ben.user_id]}
    assert (await ann.delete("/users/me/subscriptions", **removed)).ok
    (mail,) = await away.mails()
    assert mail.to == "cleo@example.com"
    assert "nothing" in mail.text
    assert "secret" not in mail.text + mail.html


async def test_messages_beyond_a_run_s_limit_are_handled_in_the_next(
    away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(notifier, "BATCH_SIZE", 1)
    ann, ben, cleo = (away.org[name] for name in ("ann", "ben", "cleo"))
    await ann.write([ben.user_id], "one")
    await ann.write([cleo.user_id], "two")
    assert [mail.to for mail in await away.mails()] == [ben.email]
    assert [mail.to for mail in await away.mails(0)] == [cleo.email]


async def test_people_who_are_online_are_emailed_once_they_are_away(away: Away) -> None:
    ann, ben = away.org["ann"], away.org["ben"]
    await ann.write([ben.user_id], "hello")
    assert (await ben.post("/users/me/presence", status="active", new_user_input=True)).ok
    assert await away.mails() == []
    (mail,) = await away.mails(101)
    assert "hello" in mail.text


async def test_a_node_that_was_frozen_repeats_no_email_of_another_node(
    away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whatever point it was frozen."""
    ann, ben, cleo = (away.org[name] for name in ("ann", "ben", "cleo"))
    slow, quick = away.notices, Away(away.org, away.clock).notices

    async def meanwhile() -> None:
        away.clock.ahead += LEASE_SECONDS + 1
        await quick.once()
        await quick.close()

    for name in ("_acquire", "_notifications", "_write_outcome"):
        await ann.write([ben.user_id], f"{name} one")
        await ann.write([cleo.user_id], f"{name} two")
        await slow.once()
        away.clock.ahead += 121
        real = getattr(slow, name)
        calls = 0

        async def stand_still(*arguments: Any, real: Any = real) -> Any:
            nonlocal calls
            calls += 1
            if calls == 2:
                await meanwhile()
            return await real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(slow, name, stand_still)
            await slow.once()
        assert calls >= 2
        await slow.once()
        mails = await away.sent()
        assert sorted(mail.to for mail in mails) == ["ben@example.com", "cleo@example.com"], name
        for who in (ben, cleo):
            assert (await who.post("/mark_all_as_read")).ok


async def test_message_content_is_left_out_if_someone_wants_that(away: Away) -> None:
    ann, ben, cleo = (away.org[name] for name in ("ann", "ben", "cleo"))
    own = {
        "message_content_in_email_notifications": False,
        "realm_name_in_email_notifications_policy": 2,
        "default_language": "es",
    }
    assert (await ben.patch("/settings", **own)).ok
    await ann.write([ben.user_id, cleo.user_id], "a secret")
    mails = {mail.to: mail for mail in await away.mails()}
    hidden = mails["ben@example.com"]
    assert hidden.subject == "[Example] Mensajes nuevos"
    for word in ("secret", "Ann", "Cleo"):
        assert word not in hidden.text + hidden.html
    assert "a secret" in mails["cleo@example.com"].text
    await away.org.do(
        RealmChanged(values={"message_content_allowed_in_email_notifications": False})
    )
    await ann.write([cleo.user_id], "another one")
    (mail,) = await away.mails()
    assert mail.subject == "New messages"
    assert "another one" not in mail.text + mail.html


async def test_images_are_included_if_the_reader_may_see_them(away: Away) -> None:
    ann, ben = away.org["ann"], away.org["ben"]
    path = await ann.upload("cup.png", picture(40, 30), "image/png")
    await ann.write([ben.user_id], f"[cup](/user_uploads/{path})")
    (mail,) = await away.mails()
    (shown,) = mail.pictures
    assert f'src="cid:{shown.content_id}"' in mail.html
    message = mail_message(mail, "abc", "chat@example.com")
    related = [one for one in message.walk() if one.get_content_type() == "image/webp"]
    assert [one["Content-ID"] for one in related] == [f"<{shown.content_id}>"]
    assert related[0].get_content() == shown.content


async def test_a_delayed_email_goes_to_the_current_address_or_is_not_sent(
    away: Away,
) -> None:
    ann, ben = away.org["ann"], away.org["ben"]
    message_id = await ann.write([ben.user_id], "hello")
    mail = Mail(
        kind=MailKind.MISSED_MESSAGES,
        to="old@example.com",
        site="http://chat.test",
        about=ben.user_id,
        facts={MESSAGES: f"{message_id} 999"},
    )
    renderer = MailRenderer(away.org.node)
    written = await renderer.rendered(mail, away.clock())
    assert written is not None
    assert written.to == "ben@example.com"
    assert (await ann.delete(f"/users/{ben.user_id}")).ok
    assert await renderer.rendered(mail, away.clock()) is None


async def test_a_digest_has_unread_messages_and_is_sent_once_on_its_day(away: Away) -> None:
    org, node = away.org, away.org.node
    ann, ben = org["ann"], org["ben"]
    kitchen, lounge = node.state.channel_named("kitchen"), await org.channel("lounge", "ann", "ben")
    assert kitchen is not None
    monday = datetime(2030, 4, 1, 12, tzinfo=UTC).timestamp()
    away.clock.stopped_at = monday - 3 * 86400
    await org["cleo"].send(kitchen.id, "cups", "who brings the cups?")
    await ann.send(kitchen.id, "cups", "I do")
    await ann.send(lounge, "quiet", "nobody answers")
    read = await ann.send(lounge, "read", "old news")
    begun = [await ann.send(lounge, "long", "long known") for _ in range(12)]
    await ann.send(lounge, "long", "the rest")
    known = [read, *begun]
    assert (await ben.post("/messages/flags", messages=known, op="add", flag="read")).ok
    day = {"digest_emails_enabled": True, "digest_weekday": 0}
    await org.do(RealmChanged(values=day))
    away.clock.stopped_at = monday - 86400
    rung: list[None] = []
    await ask_for_digests(node, lambda: rung.append(None))
    assert not rung, "it is Sunday"
    away.clock.stopped_at = monday
    assert (await ann.post("/users/me/presence", status="active")).ok
    await asyncio.gather(*(ask_for_digests(node, lambda: rung.append(None)) for _ in range(2)))
    await ask_for_digests(node, lambda: rung.append(None))
    assert len(rung) == 1
    mails = await away.sent()
    # Ann was just online, and gus has nothing to read.
    assert sorted(mail.to for mail in mails) == ["ben@example.com", "cleo@example.com"]
    (mail,) = [one for one in mails if one.to == "ben@example.com"]
    for part in ("#kitchen > cups", "who brings the cups?", "2 messages from Ann, Cleo", "quiet"):
        assert part in mail.text, part
    assert mail.text.index("cups") < mail.text.index("quiet")
    assert "old news" not in mail.text
    assert "the rest" in mail.text, "the beginning was read, and no more"
    assert "/unsubscribe/digest-" in headers(mail)["list-unsubscribe"]


async def test_the_development_page_shows_all_emails(config: Config) -> None:
    async with new_organization(msgspec.structs.replace(config, dev=True)) as org:
        page = await org.http.get("/dev/mails")
        assert page.status_code == 200
        names = re.findall("<h2>(.+?)</h2>", page.text)
        assert {kind.value for kind in MailKind} <= set(names)
        for name in names:
            shown = await org.http.get(f"/dev/mails/{name}", params={"language": "ja"})
            assert shown.status_code == 200
            assert '<html lang="ja">' in shown.text or name == "trial"
            assert "cid:" not in shown.text
        assert "<pre>" in (await org.http.get("/dev/mails", params={"as": "text"})).text
        assert (await org.http.get("/dev/mails/none")).status_code == 404
    async with founded_without_dev(config) as org:
        assert (await org.http.get("/dev/mails")).status_code == 404


def founded_without_dev(config: Config) -> Any:
    other = msgspec.structs.replace(config, data_dir=f"{config.data_dir}-2", database_url="")
    return new_organization(other)
