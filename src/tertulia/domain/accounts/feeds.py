"""RSS and Atom feeds whose entries bots post, each entry once."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from tertulia.domain import channel_access, names
from tertulia.domain.accounts import bots
from tertulia.domain.messages import sending
from tertulia.domain.messages.sending import MessageDraft
from tertulia.model.changes import FeedAdded, FeedChanged, FeedRead, FeedRemoved
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.model.feeds import Feed
from tertulia.model.users import BotKind
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_FEEDS: Final = 200
"""The most feeds in an organization."""
MAX_OF_BOT: Final = 20
KEPT: Final = 500
"""The number of entries remembered for one feed, in addition to the entries that it still
contains."""


def list_feeds(context: CommandContext, bot_id: int) -> Decision[list[Feed]]:
    """Return the feeds of a bot that the actor owns or administers, oldest first. Raise Refused for
    others."""
    bots.managed_bot(context, bot_id)
    return Decision(sorted(context.state.feeds.of_bot[bot_id], key=lambda feed: feed.id))


def add(
    context: CommandContext, bot_id: int, url: str, channel: int | str, topic: str
) -> Decision[Feed]:
    """Let a bot that the actor owns or administers post a feed's entries to the topic; if it's
    empty, to a topic with the feed's title.

    Raise Refused for bots that aren't incoming webhooks, invalid URLs and topics, feeds that the
    bot already posts there, and too many feeds; NoSuchChannel for channels that the actor can't
    see.
    """
    state = context.state
    bot = bots.managed_bot(context, bot_id).bot
    if bot is None or bot.kind is not BotKind.INCOMING_WEBHOOK:
        raise Refused("This bot isn't an incoming webhook.")
    if len(state.feeds.of_bot[bot_id]) >= MAX_OF_BOT:
        raise Refused(f"A bot can follow at most {MAX_OF_BOT} feeds.")
    if len(state.feeds) >= MAX_FEEDS:
        raise Refused(f"An organization can follow at most {MAX_FEEDS} feeds.")
    feed = Feed(
        id=state.feeds.next_id(),
        bot_id=bot_id,
        url=feed_url(url),
        channel_id=_channel_id(context, channel),
        topic=names.topic_name(topic),
    )
    _require_new(state, feed)
    return Decision(feed, (FeedAdded(feed=feed),))


def feed_url(text: str) -> str:
    """Return the URL of a feed. Raise Refused if it's invalid."""
    url = text.strip()
    # Some browsers use this scheme for feeds.
    if url.lower().startswith("feed://"):
        url = "https" + url[4:]
    return bots.web_address(url, "The feed's address")


def _channel_id(context: CommandContext, channel: int | str) -> int:
    state, actor = context.state, context.actor
    if isinstance(channel, int):
        return channel_access.visible_channel(state, actor, channel_id=channel).id
    return channel_access.visible_channel(state, actor, name=channel).id


def _require_new(state: State, feed: Feed) -> None:
    for other in state.feeds.of_bot[feed.bot_id]:
        if other.id != feed.id and (other.url, other.channel_id, other.topic) == (
            feed.url,
            feed.channel_id,
            feed.topic,
        ):
            raise Refused("The bot already follows this feed in this topic.")


def change(
    context: CommandContext,
    bot_id: int,
    feed_id: int,
    url: str | None,
    channel: int | str | None,
    topic: str | None,
) -> Decision[Feed]:
    """Change a feed of a bot that the actor owns or administers, and return it. None keeps the
    current value.

    Raise NoSuchItem if the bot has no such feed; otherwise as `add`.
    """
    before = _feed_of_bot(context, bot_id, feed_id)
    new_url = before.url if url is None else feed_url(url)
    is_moved = new_url != before.url
    after = msgspec.structs.replace(
        before,
        url=new_url,
        channel_id=before.channel_id if channel is None else _channel_id(context, channel),
        topic=before.topic if topic is None else names.topic_name(topic),
        has_begun=before.has_begun and not is_moved,
    )
    if after == before:
        return Decision(before)
    _require_new(context.state, after)
    changed = FeedChanged(
        feed_id=feed_id,
        url=after.url,
        channel_id=after.channel_id,
        topic=after.topic,
        begins_anew=is_moved,
    )
    return Decision(after, (changed,))


def remove(context: CommandContext, bot_id: int, feed_id: int) -> Decision[None]:
    """Remove a feed of a bot that the actor owns or administers. Raise NoSuchItem."""
    _feed_of_bot(context, bot_id, feed_id)
    return Decision(None, (FeedRemoved(feed_id=feed_id),))


def _feed_of_bot(context: CommandContext, bot_id: int, feed_id: int) -> Feed:
    bots.managed_bot(context, bot_id)
    feed = context.state.feeds.get(feed_id)
    if feed is None or feed.bot_id != bot_id:
        raise NoSuchItem("feed")
    return feed


# Reading feeds, by a node


def skip_entries(
    context: CommandContext, feed: Feed, marks: Sequence[str], present: AbstractSet[str]
) -> Decision[None]:
    """Record, as the server, that entries with these IDs are skipped, because they're old or were
    in the feed before. `present` are the IDs of all entries in the feed. Raise Refused if the feed
    has changed."""
    now = _require_unchanged(context, feed)
    unseen = tuple(mark for mark in marks if mark not in frozenset(now.seen))
    if now.has_begun and not unseen:
        return Decision(None)
    return Decision(None, (_read(now, unseen, present),))


def post_entry(
    context: CommandContext, feed: Feed, mark: str, present: AbstractSet[str], draft: MessageDraft
) -> Decision[int | None]:
    """Post the message about an entry as the feed's bot, and record that it was posted. Return the
    message's ID, or None if the entry was posted before.

    Raise Refused if the feed has changed or the message can't be sent.
    """
    now = _require_unchanged(context, feed)
    if context.actor.id != now.bot_id:
        raise Refused("Only the feed's bot can post its entries.")
    if mark in now.seen:
        return Decision(None)
    sent = sending.send(context, draft)
    return Decision(sent.result.message_id, (*sent.changes, _read(now, (mark,), present)))


def _require_unchanged(context: CommandContext, feed: Feed) -> Feed:
    now = context.state.feeds.get(feed.id)
    if now is None or (now.url, now.channel_id, now.topic) != (
        feed.url,
        feed.channel_id,
        feed.topic,
    ):
        raise Refused("The feed has changed in the meantime.")
    return now


def _read(feed: Feed, marks: tuple[str, ...], present: AbstractSet[str]) -> FeedRead:
    excess = max(len(feed.seen) + len(marks) - KEPT, 0)
    gone = [mark for mark in feed.seen if mark not in present]
    return FeedRead(feed_id=feed.id, seen=marks, forgotten=tuple(gone[:excess]))
