"""Quiet hours and pauses: settings, events, and notifications held until they end."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tertulia.domain.notifications.rules import QUIET_RECHECK_SECONDS, QUIET_RECHECKS
from tertulia.model.changes import RealmChanged
from tertulia.service.notifications.digests import ask_for_digests
from tertulia.store import outbox
from tests.emails import no_email_job
from tests.support import Organization, Person
from tests.wire.test_notification_emails import Away, away
from tests.wire.test_push_notifications import Phones, phones

__all__ = ["away", "no_email_job", "phones"]

pytestmark = pytest.mark.usefixtures(no_email_job.__name__)

EVERY = list(range(7))
NIGHT = {"days": EVERY, "begin": 1320, "end": 420}


async def times(org: Organization, who: str) -> dict[str, Any]:
    found: dict[str, Any] = (await org[who].get("/quiet_times")).ok["quiet_times"]
    return found


async def test_pauses_and_quiet_hours_are_set_and_sent_to_every_window(away: Away) -> None:
    org, now = away.org, int(away.clock())
    ben = org["ben"]
    nothing: dict[str, Any] = {
        "paused_until": None,
        "hours": [],
        "timezone": "",
        "spans": [],
        "channel_spans": [],
    }
    assert await times(org, "ben") == nothing
    own, other = await ben.register(), await org["ann"].register()
    paused = (await ben.patch("/quiet_times", paused_until=now + 1800)).ok["quiet_times"]
    assert paused == {**nothing, "paused_until": now + 1800, "spans": [[now, now + 1800]]}
    (event,) = await own.events()
    assert event["quiet_times"] == paused
    assert await other.events() == []
    # One changes without the other; days are listed once, in order.
    both = (await ben.patch("/quiet_times", hours=[{**NIGHT, "days": [6, 0, 0]}])).ok["quiet_times"]
    assert both["paused_until"] == now + 1800
    assert both["hours"] == [{**NIGHT, "days": [0, 6], "channel_ids": []}]
    assert await times(org, "ben") == both
    (await ben.patch("/quiet_times", hours=both["hours"])).ok
    ended = (await ben.patch("/quiet_times", paused_until=0, hours=[])).ok["quiet_times"]
    assert ended == nothing
    assert len(await own.events()) == 2
    # It ends by itself.
    (await ben.patch("/quiet_times", paused_until=now + 60)).ok
    away.clock.ahead += 60
    assert await times(org, "ben") == nothing
    # POST /register has them on request, and otherwise the same as before.
    named = await ben.register(fetch_event_types=["quiet_times"])
    assert named.data["quiet_times"] == nothing
    assert "quiet_times" not in (await ben.register()).data


@pytest.mark.parametrize(
    "given",
    [
        {"paused_until": -1},
        {"paused_until": 2**40},
        {"paused_until": "tomorrow"},
        {"hours": [{**NIGHT, "days": []}]},
        {"hours": [{**NIGHT, "days": [7]}]},
        {"hours": [{**NIGHT, "days": [-1, 3]}]},
        {"hours": [{**NIGHT, "begin": 1440}]},
        {"hours": [{**NIGHT, "end": 0}]},
        {"hours": [{**NIGHT, "end": 1441}]},
        {"hours": [{**NIGHT, "begin": 420}]},
        {"hours": [{"days": EVERY, "begin": 0, "end": 1440}]},
        {"hours": [NIGHT, {"days": EVERY, "begin": 420, "end": 1320}]},
        {"hours": [NIGHT] * 8},
        {"hours": [{**NIGHT, "channel_ids": [10**6]}]},
        {"hours": [{**NIGHT, "channel_ids": [0]}]},
        {"hours": [{**NIGHT, "channel_ids": list(range(1, 102))}]},
        {"hours": [{**NIGHT, "channel_ids": "kitchen"}]},
        {"hours": {"days": EVERY}},
    ],
)
async def test_invalid_times_are_refused(readonly_org: Organization, given: dict[str, Any]) -> None:
    assert (await readonly_org["ben"].patch("/quiet_times", **given)).status == 400
    bot = await readonly_org["robo"].patch("/quiet_times", paused_until=0)
    bot.refused("UNAUTHORIZED_PRINCIPAL")


async def test_emails_wait_for_the_end_and_contain_what_is_unread_then(away: Away) -> None:
    ann, ben, cleo = (away.org[name] for name in ("ann", "ben", "cleo"))
    start = int(away.clock())
    for person, seconds in ((ben, 7200), (cleo, 30 * 86400)):
        (await person.patch("/quiet_times", paused_until=start + seconds)).ok
    read = await ann.send("kitchen", "cups", "@**Ben** read meanwhile")
    await ann.write([ben.user_id], "for later")
    await ann.write([cleo.user_id], "a month ago by then")
    await ann.write([cleo.user_id], "so is this")
    assert await away.mails() == []
    assert await away.mails(3600) == []
    assert (await ben.post("/messages/flags", messages=[read], op="add", flag="read")).ok
    (mail,) = await away.mails(start + 7261 - away.clock())
    assert "for later" in mail.text
    # Ending it early sends them soon.
    (await ben.patch("/quiet_times", paused_until=int(away.clock()) + 5 * 86400)).ok
    await ann.write([ben.user_id], "five days")
    assert await away.mails() == []
    (await ben.patch("/quiet_times", paused_until=0)).ok
    (mail,) = await away.mails(5 * 86400 / QUIET_RECHECKS + 1)
    assert "five days" in mail.text
    # However long it lasted, one email has what is left of a conversation.
    assert await away.mails(start + 30 * 86400 - 60 - away.clock()) == []
    (mail,) = await away.mails(121)
    assert mail.to == cleo.email
    assert "a month ago" in mail.text
    assert "so is this" in mail.text


async def test_emails_waiting_for_the_mail_server_wait_for_the_end_too(away: Away) -> None:
    ann, ben, cleo = (away.org[name] for name in ("ann", "ben", "cleo"))
    for person in (ben, cleo):
        await ann.write([person.user_id], "due already")
    await away.notices.once()
    away.clock.ahead += 121
    await away.notices.once()
    (await ben.patch("/quiet_times", paused_until=int(away.clock()) + 3000)).ok
    assert [mail.to for mail in await away.sent()] == [cleo.email]
    away.clock.ahead += QUIET_RECHECK_SECONDS + 1
    assert await away.sent() == []
    away.clock.ahead += QUIET_RECHECK_SECONDS
    assert [mail.to for mail in await away.sent()] == [ben.email]


async def test_a_digest_waits_for_the_end_or_is_skipped(away: Away) -> None:
    org, node = away.org, away.org.node
    ann, ben, cleo = (org[name] for name in ("ann", "ben", "cleo"))
    monday = int(datetime(2030, 4, 1, 12, tzinfo=UTC).timestamp())
    away.clock.stopped_at = monday - 86400
    await ann.send("kitchen", "cups", "who brings the cups?")
    await org.do(RealmChanged(values={"digest_emails_enabled": True, "digest_weekday": 0}))
    assert (await ann.post("/users/me/presence", status="active")).ok

    async def paused(person: Person, days: float) -> None:
        until = int(away.clock() + days * 86400)
        (await person.patch("/quiet_times", paused_until=until)).ok

    async def digests() -> list[str]:
        await ask_for_digests(node, lambda: None)
        return [mail.to for mail in await away.sent()]

    away.clock.stopped_at = monday
    await paused(ben, 2)
    await paused(cleo, 6.5)
    assert await digests() == []
    away.clock.ahead += 86400
    assert await digests() == []
    away.clock.ahead += 86401
    assert await digests() == [ben.email]
    # A digest delayed until the next one is due isn't sent, nor to people who have returned.
    away.clock.ahead += 5 * 86400
    await paused(ben, 1)
    await paused(cleo, 1)
    await ann.send("kitchen", "cups", "and who the plates?")
    assert (await ann.post("/users/me/presence", status="active")).ok
    assert await digests() == []
    assert (await cleo.post("/users/me/presence", status="active")).ok
    await paused(ben, 6)
    away.clock.ahead += 6 * 86400 + 1
    assert (await ann.post("/users/me/presence", status="active")).ok
    assert await digests() == []
    assert await node.store.read(outbox.queued) == []


async def test_nothing_is_pushed_during_quiet_hours_or_afterwards(phones: Phones) -> None:
    ann, ben = phones.org["ann"], phones.org["ben"]
    await phones.add("ben")
    shown = await ann.write([ben.user_id], "before")
    assert [told["body"] for told in await phones.told()] == ["before"]
    # A push that the service refused earlier isn't sent in the meantime, either.
    phones.service.statuses["/phone"] = (503, "")
    await ann.write([ben.user_id], "refused")
    await phones.round()
    phones.service.statuses.clear()
    (await ben.patch("/quiet_times", paused_until=int(phones.clock()) + 3600)).ok
    await ann.write([ben.user_id], "hush")
    phones.clock.ahead += 1800
    assert await phones.told() == []
    # Shown notifications are removed anyway.
    await ben.post("/messages/flags", messages=[shown], op="add", flag="read")
    phones.clock.ahead += 1801
    await ann.write([ben.user_id], "after")
    assert [told["body"] for told in await phones.told()] == ["refused\nafter"]


async def channel_hours(org: Organization, who: str, *names: str) -> dict[str, Any]:
    """Quiet hours for these channels from an hour ago until an hour from now."""
    state, now = org.node.state, int(org.node.clock())
    channels = [state.channel_named(name) for name in names]
    hour = now % 86400 // 3600
    hours = {
        "days": EVERY,
        "begin": (hour - 1) % 24 * 60,
        "end": (hour + 1) % 24 * 60 or 1440,
        "channel_ids": sorted(channel.id for channel in channels if channel is not None),
    }
    (await org[who].patch("/quiet_times", hours=[hours])).ok
    return hours


async def test_quiet_hours_can_name_channels(away: Away) -> None:
    org, ben = away.org, away.org["ben"]
    await org.channel("garden", "ann", "ben")
    listener = await ben.register()
    hours = await channel_hours(org, "ben", "garden", "kitchen")
    (event,) = await listener.events()
    found = event["quiet_times"]
    assert found == await times(org, "ben")
    assert (found["hours"], found["spans"]) == ([hours], [])
    (quiet,) = found["channel_spans"]
    assert quiet["channel_ids"] == hours["channel_ids"]
    begin, end = quiet["spans"][0]
    assert begin <= away.clock() < end
    assert len(quiet["spans"]) >= 15
    # Each is listed once, in order.
    twice = {**hours, "channel_ids": hours["channel_ids"][::-1] * 2}
    assert (await ben.patch("/quiet_times", hours=[twice])).ok["quiet_times"] == found
    # A channel can't be quiet all week, however the hours are split.
    rest = {"days": EVERY, "begin": hours["end"] % 1440, "end": hours["begin"] or 1440}
    (await ben.patch("/quiet_times", hours=[hours, rest])).refused("BAD_REQUEST")
    others = {**rest, "channel_ids": hours["channel_ids"][:1]}
    (await ben.patch("/quiet_times", hours=[hours, others])).refused("BAD_REQUEST")
    first, second = ([one] for one in hours["channel_ids"])
    apart = [{**hours, "channel_ids": first}, {**rest, "channel_ids": second}]
    assert (await ben.patch("/quiet_times", hours=apart)).ok["quiet_times"]["hours"] == apart


async def test_only_visible_channels_become_quiet_and_lost_ones_stay(away: Away) -> None:
    org, ben = away.org, away.org["ben"]
    await org.channel("secret", "ann", is_private=True)
    secret = org.node.state.channel_named("secret")
    assert secret is not None
    given = [{**NIGHT, "channel_ids": [secret.id]}]
    (await ben.patch("/quiet_times", hours=given)).refused("STREAM_DOES_NOT_EXIST")
    assert (await times(org, "ben"))["hours"] == []
    added = await org["ann"].post(
        "/users/me/subscriptions", subscriptions=[{"name": "secret"}], principals=[ben.user_id]
    )
    assert added.ok
    (await ben.patch("/quiet_times", hours=given)).ok
    (await ben.delete("/users/me/subscriptions", subscriptions=["secret"])).ok
    (await org["ann"].delete(f"/streams/{secret.id}")).ok
    # They don't become quiet hours for everything, and can be changed.
    assert (await times(org, "ben"))["spans"] == []
    later = [{**given[0], "begin": 1330}]
    assert (await ben.patch("/quiet_times", hours=later)).ok["quiet_times"]["hours"] == later
    (await ben.patch("/quiet_times", hours=[])).ok
    (await ben.patch("/quiet_times", hours=given)).refused("STREAM_DOES_NOT_EXIST")


async def test_emails_wait_only_for_quiet_channels(away: Away) -> None:
    org, ann, ben = away.org, away.org["ann"], away.org["ben"]
    away.clock.stopped_at = datetime(2030, 4, 3, 12, tzinfo=UTC).timestamp()
    await org.channel("garden", "ann", "ben")
    await ann.send("kitchen", "cups", "@**Ben** waiting for the mail server")
    await away.notices.once()
    away.clock.ahead += 121
    await away.notices.once()
    await channel_hours(org, "ben", "kitchen")
    await ann.send("kitchen", "plates", "@**Ben** in the evening")
    await ann.send("garden", "cups", "@**Ben** now")
    await ann.write([ben.user_id], "hello")
    assert sorted(mail.subject for mail in await away.mails()) == [
        "#garden > cups",
        "Direct messages with Ann",
    ]
    end = datetime(2030, 4, 3, 13, 1, tzinfo=UTC).timestamp()
    mails = await away.mails(end - away.clock())
    assert sorted(mail.subject for mail in mails) == ["#kitchen > cups", "#kitchen > plates"]


async def test_only_quiet_channels_are_not_pushed(phones: Phones) -> None:
    org, ann, ben = phones.org, phones.org["ann"], phones.org["ben"]
    phones.clock.stopped_at = datetime(2030, 4, 3, 12, tzinfo=UTC).timestamp()
    await org.channel("garden", "ann", "ben")
    await phones.add("ben")
    phones.service.statuses["/phone"] = (503, "")
    await ann.send("kitchen", "cups", "@**Ben** refused")
    await phones.round()
    phones.service.statuses.clear()
    await channel_hours(org, "ben", "kitchen")
    await ann.send("kitchen", "plates", "@**Ben** hush")
    await ann.send("garden", "cups", "@**Ben** now")
    await ann.write([ben.user_id], "hello")
    phones.clock.ahead += 1800
    told = await phones.told()
    assert len(told) == 2
    assert {"hello"} < {one["body"] for one in told}
    phones.clock.ahead += 1801
    await ann.send("kitchen", "spoons", "@**Ben** after")
    (after,) = await phones.told()
    assert "after" in after["body"]
