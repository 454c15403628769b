"""Random steps about people's own data, and the passage of time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tertulia.domain.accounts import access_keys, feeds, sessions
from tertulia.model.errors import Refused
from tertulia.model.sessions import LIFETIME
from tertulia.model.users import BotKind
from tertulia.service.credentials import key_digest
from tests.push_service import Browser

if TYPE_CHECKING:
    from tests.property.histories import History

WORDS = ("hello", "@**Ben** look", "@**all** everybody", "@**topic** you", "*later*")
KEYS = Browser().keys
FRAGMENTS = ("inbox", "narrow/is/starred", "narrow/channel/1", "narrow/dm/7")


def _soon(history: History) -> int:
    """A time that comes after a few steps of time, but not by itself during a test."""
    return int(history.clock()) + history.rng.randint(60, 120)


async def time_passes(history: History) -> None:
    history.clock.ahead += 40
    await history.org.tick()


async def schedule(history: History) -> None:
    rng, channel = history.rng, history.channel()
    sent: dict[str, Any] = {"content": rng.choice(WORDS), "read_by_sender": rng.random() < 0.5}
    if channel is not None and rng.random() < 0.7:
        sent |= {"type": "channel", "to": channel.id, "topic": rng.choice(["", "lunch", "plans"])}
    else:
        sent |= {"type": "direct", "to": [history.org[rng.choice(["ben", "gus"])].user_id]}
    at = _soon(history)
    person = history.org[history.who()]
    reply = await person.post("/scheduled_messages", **sent, scheduled_delivery_timestamp=at)
    history.accepted(reply)


async def change_scheduled(history: History) -> None:
    rng, person = history.rng, history.org[history.who()]
    own = history.state.scheduled_messages.of_user[person.user_id]
    if not own:
        return
    path = f"/scheduled_messages/{rng.choice(own).id}"
    if rng.random() < 0.3:
        history.accepted(await person.delete(path))
        return
    edit: dict[str, object] = rng.choice(
        [
            {"content": rng.choice(WORDS)},
            {"topic": "plans"},
            {"scheduled_delivery_timestamp": _soon(history)},
            {"type": "direct", "to": [person.user_id]},
        ]
    )
    history.accepted(await person.patch(path, **edit))


async def remind(history: History) -> None:
    rng, person = history.rng, history.org[history.who()]
    own = history.state.reminders.of_user[person.user_id]
    if own and rng.random() < 0.3:
        history.accepted(await person.delete(f"/reminders/{rng.choice(own).id}"))
    elif history.sent:
        sent = {"message_id": rng.choice(history.sent), "note": rng.choice(["", "*look*"])}
        at = _soon(history)
        history.accepted(await person.post("/reminders", **sent, scheduled_delivery_timestamp=at))


async def draft(history: History) -> None:
    rng, person, channel = history.rng, history.org[history.who()], history.channel()
    own = history.state.drafts.of_user[person.user_id]
    to: dict[str, object] = {"type": "", "to": [], "topic": ""}
    if channel is not None and rng.random() < 0.5:
        to = {"type": "stream", "to": [channel.id], "topic": "tea"}
    content = {**to, "content": rng.choice(WORDS), "timestamp": rng.randint(1, 9)}
    if own and rng.random() < 0.3:
        history.accepted(await person.delete(f"/drafts/{rng.choice(own).id}"))
    elif own and rng.random() < 0.5:
        history.accepted(await person.patch(f"/drafts/{rng.choice(own).id}", draft=content))
    else:
        drafts = [content] * rng.randint(1, 2)
        history.accepted(await person.post("/drafts", drafts=drafts))


async def keep_snippet(history: History) -> None:
    rng, person = history.rng, history.org[history.who()]
    own = history.state.snippets.of_user[person.user_id]
    if own and rng.random() < 0.3:
        history.accepted(await person.delete(f"/saved_snippets/{rng.choice(own).id}"))
    elif own and rng.random() < 0.5:
        path = f"/saved_snippets/{rng.choice(own).id}"
        history.accepted(await person.patch(path, title=rng.choice(WORDS)))
    else:
        sent = {"title": rng.choice(WORDS), "content": rng.choice(WORDS)}
        history.accepted(await person.post("/saved_snippets", **sent))


async def arrange_view(history: History) -> None:
    rng, person = history.rng, history.org[history.who()]
    fragment = rng.choice(FRAGMENTS)
    values = {
        "is_pinned": rng.random() < 0.5,
        "name": rng.choice([None, "One", "Other"]),
    }
    path = f"/navigation_views/{quote(fragment, safe='')}"
    chance = rng.random()
    if chance < 0.5:
        reply = await person.post("/navigation_views", fragment=fragment, **values)
    elif chance < 0.8:
        reply = await person.patch(path, **values)
    else:
        reply = await person.delete(path)
    history.accepted(reply)


async def use_device(history: History) -> None:
    rng, person = history.rng, history.org[history.who()]
    own = history.state.devices.of_user[person.user_id]
    if own and rng.random() < 0.5:
        device_id = rng.choice(own).id
        history.accepted(await person.post("/remove_client_device", device_id=device_id))
    else:
        history.accepted(await person.post("/register_client_device"))
    token = rng.choice(["one", "two"])
    method = rng.choice(["POST", "DELETE"])
    history.accepted(await person.request(method, "/users/me/android_gcm_reg_id", token=token))
    await be_pushed_to(history)


async def use_browser(history: History) -> None:
    """Everything else that's due happens too."""
    org, rng = history.org, history.rng
    person = org[history.who()]
    own = history.state.sessions.of_user[person.user_id]
    match rng.choice(["begin", "begin", "use", "end", "others", "idle"]):
        case "begin":
            new = sessions.NewSession(
                digest=key_digest(str(rng.random())),
                agent=rng.choice(["", "Mozilla/5.0"]),
                replaced_id=rng.choice(own).id if own and rng.random() < 0.3 else None,
            )
            await org.node.log.submit(person.user_id, sessions.begin, new)
        case "use" if own:
            history.clock.ahead += rng.choice([0, sessions.USE_SECONDS])
            await org.node.log.submit(None, sessions.use, rng.choice(own).id, "192.0.2.1")
        case "end" if own:
            history.accepted(await person.delete(f"/sessions/{rng.choice(own).id}"))
        case "others":
            history.accepted(await person.delete("/sessions"))
        case "idle" if own and rng.random() < 0.1:  # Everything else that's due happens, too.
            history.clock.ahead += LIFETIME
            await org.tick()
        case _:
            pass


async def use_agent(history: History) -> None:
    """Someone creates an agent key, uses it, or revokes it."""
    org, rng = history.org, history.rng
    person = org[history.who()]
    own = history.state.access_keys.of_user[person.user_id]
    match rng.choice(["make", "use", "end"]):
        case "make":
            name = rng.choice(["Helper", "Cook"])
            history.accepted(await person.post("/agents", name=name, can_write=rng.random() < 0.5))
        case "use" if own:
            history.clock.ahead += rng.choice([0, access_keys.USE_SECONDS])
            await org.node.log.submit(None, access_keys.use, rng.choice(own).id)
        case "end" if own:
            history.accepted(await person.delete(f"/agents/{rng.choice(own).id}"))
        case _:
            pass


async def be_pushed_to(history: History) -> None:
    """Someone registers a device for push notifications at an unreachable address, mutes it, or
    removes it."""
    rng = history.rng
    person = history.org[history.who()]
    own = history.state.push_subscriptions.of_user[person.user_id]
    match rng.choice(["add", "pause", "remove"]):
        case "add":
            # Sometimes another account already uses it.
            endpoint = f"https://127.0.0.1:9/{rng.randrange(8)}"
            history.accepted(await person.post("/push_subscriptions", endpoint=endpoint, **KEYS))
        case "pause" if own:
            until = int(history.clock()) + rng.randrange(1000)
            path = f"/push_subscriptions/{rng.choice(own).id}"
            history.accepted(await person.patch(path, paused_until=until))
        case "remove" if own:
            path = f"/push_subscriptions/{rng.choice(own).id}"
            history.accepted(await person.delete(path))
        case _:
            pass


async def rest(history: History) -> None:
    """Someone pauses notifications, resumes them, or has quiet hours in any time zone."""
    rng, person = history.rng, history.org[history.who()]
    zone = rng.choice(["", "Asia/Kathmandu", "America/Bogota"])
    history.accepted(await person.patch("/settings", timezone=zone))
    given: dict[str, Any] = {}
    if rng.random() < 0.7:
        pause = rng.choice([0, 0, 40, 400, 4000, 10 * 86400])
        given["paused_until"] = int(history.clock()) + pause
    if rng.random() < 0.5:
        begin = rng.randrange(1440)
        end = (begin + rng.choice([5, 100, 600])) % 1440 or 1440
        days = sorted(rng.sample(range(7), rng.choice([1, 5, 7])))
        own = sorted(history.state.channel_ids_of(person.user_id))
        some = rng.sample(own, min(len(own), rng.choice([0, 0, 1, 2])))
        hours = [{"days": days, "begin": begin, "end": end, "channel_ids": some}]
        given["hours"] = hours if rng.random() < 0.7 else []
    history.accepted(await person.patch("/quiet_times", **given))


async def follow_feed(history: History) -> None:
    """Someone's bot follows a feed; old entries are skipped, the feed changes, or it's removed."""
    org, rng = history.org, history.rng
    person, channel = org[history.who()], history.channel()
    hooks = [
        bot
        for bot in history.state.users.bots_of(person.user_id)
        if bot.bot is not None and bot.bot.kind is BotKind.INCOMING_WEBHOOK
    ]
    if not hooks or channel is None:
        name = f"hook{rng.randrange(10_000)}"
        sent = {"full_name": name, "short_name": name, "bot_type": 2}
        history.accepted(await person.post("/bots", **sent))
        return
    bot_id = rng.choice(hooks).id
    url = f"https://example.com/{rng.randrange(3)}"
    own = history.state.feeds.of_bot[bot_id]
    feed = rng.choice(own) if own else None
    submit = org.node.log.submit
    try:
        match rng.choice(["add", "read", "change", "remove"]):
            case "read" if feed is not None:
                marks = [str(rng.randrange(9)) for _ in range(2)]
                await submit(None, feeds.skip_entries, feed, marks[:1], frozenset(marks))
            case "change" if feed is not None:
                new = (url, channel.id, rng.choice([None, "news"]))
                await submit(person.user_id, feeds.change, bot_id, feed.id, *new)
            case "remove" if feed is not None:
                await submit(person.user_id, feeds.remove, bot_id, feed.id)
            case _:
                await submit(person.user_id, feeds.add, bot_id, url, channel.id, "")
    except Refused:
        pass  # The bot already follows it, or can't see the channel.


async def manage_bots(history: History) -> None:
    """A bot is created, given to someone else, changed, or deactivated."""
    rng, org = history.rng, history.org
    bots = [
        one.id
        for one in map(history.state.users.__getitem__, history.state.users.bots)
        if one.bot is not None and one.bot.owner_id is not None and one.id != org["robo"].user_id
    ]
    if not bots or rng.random() < 0.3:
        name = f"bot{rng.randrange(10_000)}"
        sent = {"full_name": name, "short_name": name}
        history.accepted(await org[history.who()].post("/bots", **sent))
        return
    path = f"/bots/{rng.choice(bots)}"
    by = org[rng.choice(["ann", history.who()])]
    if rng.random() < 0.15:
        history.accepted(await by.delete(path))
        return
    news: dict[str, Any] = {"default_all_public_streams": rng.random() < 0.5}
    if rng.random() < 0.7:
        news["bot_owner_id"] = org[rng.choice(["ann", "ben", "cleo"])].user_id
    history.accepted(await by.patch(path, **news))


OWN_STEPS: dict[Callable[[History], Awaitable[None]], int] = {
    time_passes: 2,
    schedule: 3,
    change_scheduled: 1,
    remind: 2,
    draft: 2,
    keep_snippet: 1,
    arrange_view: 2,
    use_device: 1,
    use_browser: 2,
    use_agent: 1,
    follow_feed: 1,
    manage_bots: 2,
    rest: 1,
}
