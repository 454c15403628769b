"""RSS and Atom feeds that bots post from. Changes to them don't create events."""

from typing import Annotated, Final

from msgspec import Struct

from tertulia.domain.accounts import bots, feeds
from tertulia.model import changes
from tertulia.model.errors import Refused
from tertulia.model.feeds import Feed
from tertulia.store import feeds as rounds
from tertulia.store.feeds import FeedStatus
from tertulia.wire.api.bots.endpoints import id_or_name, require_callable
from tertulia.wire.api.projection import Projections, unseen
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class FeedObject(Struct, kw_only=True):
    """A feed that a bot follows, and its status. Times are in UNIX seconds."""

    id: int
    url: str
    stream_id: int
    topic: Annotated[str, Doc("Empty to use the feed's title.")]
    title: Annotated[str, Doc("The feed's title; empty until it was read.")]
    last_read: Annotated[float | None, Doc("When the feed was last read successfully.")]
    last_told: Annotated[float | None, Doc("When the bot last posted an entry.")]
    next_read: Annotated[
        float | None, Doc("When the feed is read next; null for as soon as possible.")
    ]
    failures: Annotated[int, Doc("The number of failed readings in a row.")]
    reason: Annotated[str, Doc("The reason of the last failure.")]


class FeedsResponse(ApiResponse, kw_only=True):
    """The feeds, oldest first."""

    feeds: list[FeedObject]


async def get_feeds(call: Call, bot_id: IntPath) -> FeedsResponse:
    """Get the feeds that a bot follows. Requires the bot's owner or an administrator. This endpoint
    is a Tertulia extension."""
    return FeedsResponse(feeds=await _objects(call, call.consider(feeds.list_feeds, bot_id)))


async def _objects(call: Call, listed: list[Feed]) -> list[FeedObject]:
    ids = {feed.id for feed in listed}
    statuses = await call.node.store.read(rounds.statuses, ids) if ids else {}
    return [_object(feed, *statuses.get(feed.id, (FeedStatus(), 0.0))) for feed in listed]


def _object(feed: Feed, status: FeedStatus, due_at: float) -> FeedObject:
    if status.url != feed.url:
        status = FeedStatus()
    return FeedObject(
        id=feed.id,
        url=feed.url,
        stream_id=feed.channel_id,
        topic=feed.topic,
        title=status.title,
        last_read=status.read_at or None,
        last_told=status.told_at or None,
        next_read=due_at or None,
        failures=status.failures,
        reason=status.reason,
    )


class FeedResponse(ApiResponse, kw_only=True):
    """The feed."""

    feed: FeedObject


async def add_feed(
    call: Call,
    bot_id: IntPath,
    url: Annotated[str, Doc("The URL of an RSS, Atom, or RDF document.")],
    stream: Annotated[str, Doc("A channel's name or ID.")],
    topic: Annotated[str, Doc("Empty to use the feed's title.")] = "",
) -> FeedResponse:
    """Let an incoming webhook bot post the entries of a feed. Requires the bot's owner or an
    administrator.

    The bot posts the newest entry immediately, and new entries from then on. This endpoint is a
    Tertulia extension.
    """
    call.consider(bots.check_managed, bot_id)
    if not call.node.config.feed_minutes:
        raise Refused("Feeds are turned off on this server. Ask its operator to turn them on.")
    await require_callable(call, feeds.feed_url(url))
    feed: Feed = await call.submit(feeds.add, bot_id, url, id_or_name(stream), topic)
    return FeedResponse(feed=(await _objects(call, [feed]))[0])


async def update_feed(
    call: Call,
    bot_id: IntPath,
    feed_id: IntPath,
    url: str | None = None,
    stream: Annotated[str | None, Doc("A channel's name or ID.")] = None,
    topic: Annotated[str | None, Doc("Empty to use the feed's title.")] = None,
) -> FeedResponse:
    """Change a feed that a bot follows. Requires the bot's owner or an administrator.

    The feed is read again within a minute, even if nothing changed or reading it failed before.
    This endpoint is a Tertulia extension.
    """
    if url is not None:
        call.consider(bots.check_managed, bot_id)
        await require_callable(call, feeds.feed_url(url))
    channel = None if stream is None else id_or_name(stream)
    feed: Feed = await call.submit(feeds.change, bot_id, feed_id, url, channel, topic)
    await call.node.store.write(lambda c: rounds.read_soon(c, feed.id))
    return FeedResponse(feed=(await _objects(call, [feed]))[0])


async def remove_feed(call: Call, bot_id: IntPath, feed_id: IntPath) -> None:
    """Stop a bot from following a feed. Requires the bot's owner or an administrator. This endpoint
    is a Tertulia extension."""
    await call.submit(feeds.remove, bot_id, feed_id)


PROJECTIONS: Final[Projections] = (
    unseen(changes.FeedAdded),
    unseen(changes.FeedChanged),
    unseen(changes.FeedRead),
    unseen(changes.FeedRemoved),
)
