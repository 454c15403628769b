"""No event tells of feeds: whoever looks at the list asks for it."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from tertulia.domain.accounts import bots, feeds
from tertulia.model import changes
from tertulia.model.errors import Refused
from tertulia.model.feeds import Feed
from tertulia.store import feeds as rounds
from tertulia.store.feeds import FeedStatus
from tertulia.wire.api.bots import OneBot, check_called
from tertulia.wire.api.projection import Projections, unseen
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class FeedObject(Struct, kw_only=True):
    """A feed that a bot follows, and how it is with it. Times are in UNIX seconds."""

    id: int
    url: str
    stream_id: int
    topic: Annotated[str, Meta(description="Empty: the feed's own title.")]
    title: Annotated[str, Meta(description="Its own; empty before it was read.")]
    last_read: Annotated[float | None, Meta(description="When it last could be read.")]
    last_told: Annotated[float | None, Meta(description="When an entry was last written.")]
    next_read: Annotated[
        float | None, Meta(description="When it is read again; null where that is at once.")
    ]
    failures: Annotated[int, Meta(description="How often in a row that failed.")]
    reason: Annotated[str, Meta(description="Why, the last time, as a sentence.")]


class Feeds(ApiResponse, kw_only=True):
    """The oldest first."""

    feeds: list[FeedObject]


async def get_feeds(call: Call, params: OneBot) -> Feeds:
    """The feeds that a bot follows, for its owner and for administrators. Not of the reference's
    interface: this server's."""
    found = call.consider(feeds.listed, params.bot_id)
    return Feeds(feeds=await _objects(call, found))


async def _objects(call: Call, found: list[Feed]) -> list[FeedObject]:
    ids = {feed.id for feed in found}
    known = await call.node.store.read(rounds.statuses, ids) if ids else {}
    return [_object(feed, *known.get(feed.id, (FeedStatus(), 0.0))) for feed in found]


def _object(feed: Feed, standing: FeedStatus, due_at: float) -> FeedObject:
    if standing.url != feed.url:
        standing = FeedStatus()
    return FeedObject(
        id=feed.id,
        url=feed.url,
        stream_id=feed.channel_id,
        topic=feed.topic,
        title=standing.title,
        last_read=standing.read_at or None,
        last_told=standing.told_at or None,
        next_read=due_at or None,
        failures=standing.failures,
        reason=standing.reason,
    )


class AddFeed(Params, kw_only=True, frozen=True):
    """A feed that a bot is to follow."""

    bot_id: Annotated[Int, Path()]
    url: Annotated[str, Meta(description="Of a document in RSS, Atom or RDF.")]
    stream: Annotated[str, Meta(description="A channel's name or ID.")]
    topic: Annotated[str, Meta(description="Empty: the feed's own title.")] = ""


class OneFeed(ApiResponse, kw_only=True):
    """The feed as it is then."""

    feed: FeedObject


async def add_feed(call: Call, params: AddFeed) -> OneFeed:
    """Let a bot that is an incoming webhook follow a feed, for its owner and for administrators.

    It writes the newest entry at once, and from then on those that are new. Not of the reference's
    interface: this server's.
    """
    call.consider(bots.check_managed, params.bot_id)
    if not call.node.config.feed_minutes:
        raise Refused("Feeds are turned off on this server. Ask its operator to turn them on.")
    await check_called(call, feeds.feed_url(params.url))
    feed: Feed = await call.submit(
        feeds.add, params.bot_id, params.url, _channel(params.stream), params.topic
    )
    return OneFeed(feed=(await _objects(call, [feed]))[0])


def _channel(text: str) -> int | str:
    """The channel's ID, or its name."""
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) < 16 else text


class UpdateFeed(Params, kw_only=True, frozen=True):
    """What is to be new about a feed."""

    bot_id: Annotated[Int, Path()]
    feed_id: Annotated[Int, Path()]
    url: str | None = None
    stream: Annotated[str | None, Meta(description="A channel's name or ID.")] = None
    topic: Annotated[str | None, Meta(description="Empty: the feed's own title.")] = None


async def update_feed(call: Call, params: UpdateFeed) -> OneFeed:
    """Change a feed that a bot follows, for its owner and for administrators. It is read again
    within a minute, also where nothing is new about it and it failed before. Not of the reference's
    interface: this server's."""
    if params.url is not None:
        call.consider(bots.check_managed, params.bot_id)
        await check_called(call, feeds.feed_url(params.url))
    channel = None if params.stream is None else _channel(params.stream)
    feed: Feed = await call.submit(
        feeds.change, params.bot_id, params.feed_id, params.url, channel, params.topic
    )
    await call.node.store.write(lambda c: rounds.read_soon(c, feed.id))
    return OneFeed(feed=(await _objects(call, [feed]))[0])


class FeedOfBot(Params, kw_only=True, frozen=True):
    """A feed of a bot."""

    bot_id: Annotated[Int, Path()]
    feed_id: Annotated[Int, Path()]


async def remove_feed(call: Call, params: FeedOfBot) -> ApiResponse:
    """End that a bot follows a feed, for its owner and for administrators. Not of the reference's
    interface: this server's."""
    await call.submit(feeds.remove, params.bot_id, params.feed_id)
    return ApiResponse()


PROJECTIONS: Final[Projections] = (
    unseen(changes.FeedAdded),
    unseen(changes.FeedChanged),
    unseen(changes.FeedRead),
    unseen(changes.FeedRemoved),
)
