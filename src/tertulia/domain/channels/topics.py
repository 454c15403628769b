"""Topics after messages were deleted or moved: their counts and newest messages."""

from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.changes.editing import Arrival
from tertulia.model.channels import Channel, Topic, topic_key
from tertulia.model.messages import Flag

RESOLVED = "✔ "
"""A topic that begins so is resolved."""

Flags = Mapping[int, Mapping[int, Flag]]
"""Everybody's sparse flags on some messages, by user and message."""


class TopicMessage(Struct, frozen=True):
    """A message of a topic, as far as the topic is concerned."""

    id: int
    sent_at: int
    """UNIX seconds."""
    topic: str
    """As it is spelled in this message."""
    mentions_all: bool = False
    """Whether it mentions everybody who received it."""


class TopicMessages(Struct, frozen=True, kw_only=True):
    """All messages of a topic, as they were at an entry of the log or later."""

    seq: int
    ids: BitMap
    young: BitMap | None = None
    """Those that are young enough to be moved, where their age counts."""


class TopicExcerpt(Struct, frozen=True, kw_only=True):
    """What the database says of a topic's messages: those that a command is about, and the newest
    others."""

    lines: Sequence[TopicMessage]
    """Ascending."""
    topic: TopicMessages | None = None
    """Where others may be moved with a message, all of the topic."""
    first_elsewhere: int | None
    """The oldest message of the channel that is none of the lines'."""
    holders: frozenset[int] = frozenset()
    """Where messages are to be moved, the users who have sparse flags on them."""
    records: Sequence[tuple[BitMap, tuple[int, ...]]] = ()
    """The messages of which users have a record of their own, and those users, each once."""
    newest: Sequence[Arrival] = ()
    """Where they are to be moved to another channel, the newest of them, with their content and
    everybody's flags."""


def without(topic: Topic, excerpt: TopicExcerpt, gone: Collection[int]) -> Topic | None:
    """The topic without some of its messages; None where none is left."""
    left = [line for line in excerpt.lines if line.id not in gone]
    count = topic.message_count - len(gone)
    if not count:
        return None
    if topic.last_message_id not in gone:  # It may have come after the excerpt was read.
        return msgspec.structs.replace(topic, message_count=count)
    newest = left[-1]
    return msgspec.structs.replace(
        topic, name=newest.topic, last_message_id=newest.id, message_count=count
    )


def joined(topic: Topic | None, channel_id: int, name: str, come: Sequence[int]) -> Topic:
    """The topic with some more messages, ascending, that spell it so."""
    newest = come[-1]
    if topic is None:
        return Topic(
            channel_id=channel_id,
            key=topic_key(name),
            name=name,
            last_message_id=newest,
            message_count=len(come),
        )
    is_newer = newest > topic.last_message_id
    return msgspec.structs.replace(
        topic,
        name=name if is_newer else topic.name,
        last_message_id=max(newest, topic.last_message_id),
        message_count=topic.message_count + len(come),
    )


def first_without(channel: Channel, excerpt: TopicExcerpt, gone: Collection[int]) -> int | None:
    """The channel's oldest message when those are gone."""
    if channel.first_message_id not in gone:
        return channel.first_message_id
    left = [line.id for line in excerpt.lines if line.id not in gone]
    return min((one for one in (excerpt.first_elsewhere, *left) if one is not None), default=None)


def toggles_resolution(old: str, new: str) -> bool:
    """Whether the only difference between the two names is that one is resolved."""
    return old != new and old.removeprefix(RESOLVED) == new.removeprefix(RESOLVED)
