"""Being left in peace: how it is said, who hears of it, and what waits for its end."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tertulia.domain.notifications.rules import QUIET_RECHECK_SECONDS, QUIET_RECHECKS
from tertulia.model.changes import RealmChanged
from tertulia.service.notifications.digests import ask_for_digests
from tertulia.store import outbox
from tests.mails import no_postman
from tests.support import Organization, Person
from tests.wire.test_missed_mails import Away, away
from tests.wire.test_pushes import Phones, phones

__all__ = ["away", "no_postman", "phones"]

pytestmark = pytest.mark.usefixtures(no_postman.__name__)

EVERY = list(range(7))
NIGHT = {"days": EVERY, "begin": 1320, "end": 420}


async def times(org: Organization, who: str) -> dict[str, Any]:
    found: dict[str, Any] = (await org[who].get("/quiet_times")).ok["quiet_times"]
    return found


async def test_one_pauses_and_has_quiet_hours_and_every_window_follows(away: Away) -> None:
    org, now = away.org, int(away.clock())
    ben = org["ben"]
    nothing: dict[str, Any] = {"paused_until": None, "hours": [], "timezone": "", "spans": []}
    assert await times(org, "ben") == nothing
    own, other = await ben.register(), await org["ann"].register()
    paused = (await ben.patch("/quiet_times", paused_until=now + 1800)).ok["quiet_times"]
    assert paused == {**nothing, "paused_until": now + 1800, "spans": [[now, now + 1800]]}
    (event,) = await own.events()
    assert event["quiet_times"] == paused
    assert await other.events() == []
    # One is changed without the other; days are told once, in order.
    both = (await ben.patch("/quiet_times", hours=[{**NIGHT, "days": [6, 0, 0]}])).ok["quiet_times"]
    assert both["paused_until"] == now + 1800
    assert both["hours"] == [{**NIGHT, "days": [0, 6]}]
    assert await times(org, "ben") == both
    (await ben.patch("/quiet_times", hours=both["hours"])).ok
    ended = (await ben.patch("/quiet_times", paused_until=0, hours=[])).ok["quiet_times"]
    assert ended == nothing
    assert len(await own.events()) == 2
    # It ends by itself.
    (await ben.patch("/quiet_times", paused_until=now + 60)).ok
    away.clock.ahead += 60
    assert await times(org, "ben") == nothing
    # The register has it for whoever asks, and as little as before for whoever does not.
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
        {"hours": {"days": EVERY}},
    ],
)
async def test_times_that_cannot_be_are_refused(
    readonly_org: Organization, given: dict[str, Any]
) -> None:
    assert (await readonly_org["ben"].patch("/quiet_times", **given)).status == 400
    bot = await readonly_org["robo"].patch("/quiet_times", paused_until=0)
    bot.refused("UNAUTHORIZED_PRINCIPAL")


async def test_mails_wait_for_the_end_and_tell_what_is_unread_then(away: Away) -> None:
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
    # Who goes on before it is over is told soon.
    (await ben.patch("/quiet_times", paused_until=int(away.clock()) + 5 * 86400)).ok
    await ann.write([ben.user_id], "five days")
    assert await away.mails() == []
    (await ben.patch("/quiet_times", paused_until=0)).ok
    (mail,) = await away.mails(5 * 86400 / QUIET_RECHECKS + 1)
    assert "five days" in mail.text
    # However long it is, one mail says what is left of a conversation.
    assert await away.mails(start + 30 * 86400 - 60 - away.clock()) == []
    (mail,) = await away.mails(121)
    assert mail.to == cleo.email
    assert "a month ago" in mail.text
    assert "so is this" in mail.text


async def test_what_waits_for_the_mail_server_waits_for_the_end_too(away: Away) -> None:
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


async def test_a_digest_waits_for_the_end_or_is_left_out(away: Away) -> None:
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
    # Put off until the next one is due, it is not told; nor to who has come back meanwhile.
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


async def test_nothing_is_pushed_meanwhile_nor_afterwards(phones: Phones) -> None:
    ann, ben = phones.org["ann"], phones.org["ben"]
    await phones.add("ben")
    shown = await ann.write([ben.user_id], "before")
    assert [told["body"] for told in await phones.told()] == ["before"]
    # What a push service would not take yet does not come meanwhile either.
    phones.service.statuses["/phone"] = (503, "")
    await ann.write([ben.user_id], "refused")
    await phones.round()
    phones.service.statuses.clear()
    (await ben.patch("/quiet_times", paused_until=int(phones.clock()) + 3600)).ok
    await ann.write([ben.user_id], "hush")
    phones.clock.ahead += 1800
    assert await phones.told() == []
    # What was shown is taken back all the same.
    await ben.post("/messages/flags", messages=[shown], op="add", flag="read")
    phones.clock.ahead += 1801
    await ann.write([ben.user_id], "after")
    assert [told["body"] for told in await phones.told()] == ["refused\nafter"]
