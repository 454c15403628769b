"""Narrows: lists of terms that messages must match.

`tertulia.wire` reads them from JSON, `tertulia.domain.messages.narrow` checks them against what the
reader can see, and `tertulia.store` turns them into SQL.
"""

from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.tokenizer import Phrase


class InChannels(Struct, frozen=True):
    channel_ids: frozenset[int]


class InTopic(Struct, frozen=True):
    """The message is in a topic with this key, in any channel."""

    key: str


class InTopics(Struct, frozen=True):
    """The message is in one of these topics, given by channel ID and key."""

    topics: frozenset[tuple[int, str]]


class IsMuted(Struct, frozen=True):
    """The message is in one of these muted channels, but not in a topic that is unmuted or
    followed; or it's in one of the muted `topics`."""

    channel_ids: frozenset[int]
    topics: frozenset[tuple[int, str]]
    unmuted: frozenset[tuple[int, str]]


class TopicBegins(Struct, frozen=True):
    """The message is in a topic whose key begins with `prefix`, such as resolved topics."""

    prefix: str


class FromSender(Struct, frozen=True):
    user_id: int


class InDirect(Struct, frozen=True):
    direct_ids: frozenset[int]


class AnyDirect(Struct, frozen=True):
    pass


class HasFlag(Struct, frozen=True):
    """The reader has one of these sparse flags (a bit mask) on the message. With `wildcards`, this
    includes messages in these spans that mention everyone."""

    flags: int
    wildcards: tuple["ChannelSpan", ...] = ()


class Mentions(Struct, frozen=True):
    """The message mentions this user by name."""

    user_id: int


class IsUnread(Struct, frozen=True):
    """The message is unread: it's in `ids`."""

    ids: BitMap


class HasPart(Struct, frozen=True):
    """The message contains a `link`, an `image`, or an `attachment`."""

    part: str


class HasReaction(Struct, frozen=True):
    pass


class HasId(Struct, frozen=True):
    message_id: int


class Matches(Struct, frozen=True):
    """The message's content or topic contains all these phrases."""

    phrases: tuple[Phrase, ...]


class Nothing(Struct, frozen=True):
    """Matches no message."""


Condition = (
    InChannels
    | InTopic
    | InTopics
    | IsMuted
    | TopicBegins
    | FromSender
    | InDirect
    | AnyDirect
    | HasFlag
    | Mentions
    | IsUnread
    | HasPart
    | HasReaction
    | HasId
    | Matches
    | Nothing
)


class Term(Struct, frozen=True):
    """A condition or its negation."""

    condition: Condition
    negated: bool = False


class ChannelSpan(Struct, frozen=True, gc=False):
    """Messages of one channel with after < id <= until (None: no end)."""

    channel_id: int
    after: int
    until: int | None

    @property
    def is_whole(self) -> bool:
        """Whether it covers the whole channel."""
        return self.after == 0 and self.until is None


def split_spans(spans: Iterable[ChannelSpan]) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Return the channels that spans cover completely, and the other spans as tuples, with
    `LARGEST` for no end."""
    whole: list[int] = []
    parts: list[tuple[int, int, int]] = []
    for span in spans:
        if span.is_whole:
            whole.append(span.channel_id)
        else:
            until = LARGEST if span.until is None else span.until
            parts.append((span.channel_id, span.after, until))
    return whole, parts


class Scope(Struct, frozen=True, dict=True):
    """The messages that the reader can see.

    `spans` are disjoint ranges of channels, oldest first; `direct_ids` are conversations;
    `recorded` are channels of which the messages that `user_id` has a record of are included;
    `channel_ids` are channels with their whole history.
    """

    user_id: int | None
    channel_ids: frozenset[int] = frozenset()
    spans: tuple[ChannelSpan, ...] = ()
    direct_ids: frozenset[int] = frozenset()
    recorded: frozenset[int] = frozenset()

    @cached_property
    def parts(self) -> tuple[list[int], list[tuple[int, int, int]]]:
        """`split_spans` of the spans, cached."""
        return split_spans(self.spans)

    @cached_property
    def only_recorded(self) -> frozenset[int]:
        """The channels in which records add messages: those that aren't covered completely."""
        return self.recorded.difference(self.parts[0])

    @cached_property
    def is_empty(self) -> bool:
        return not (self.channel_ids or self.spans or self.direct_ids or self.recorded)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The bounds of all its messages: `after < id <= until`."""
        whole, parts = self.parts
        if self.channel_ids or self.direct_ids or self.recorded or whole or not parts:
            return 0, LARGEST
        return min(after for _, after, _ in parts), max(until for _, _, until in parts)

    @property
    def every_channel(self) -> frozenset[int]:
        """All channels that it has messages of."""
        return self.channel_ids | self.recorded | {span.channel_id for span in self.spans}

    def narrowed(self, terms: Iterable[Term]) -> "Scope":
        """Return the scope without the channels and conversations that the terms exclude."""
        scope = self
        for term in terms:
            match term:
                case Term(condition=InChannels(channel_ids=ids), negated=False):
                    scope = scope.limited(ids, frozenset())
                case Term(condition=InDirect(direct_ids=ids), negated=False):
                    scope = scope.limited(frozenset(), ids)
                case _:
                    pass
        return scope

    def limited(self, channel_ids: frozenset[int], direct_ids: frozenset[int]) -> "Scope":
        return Scope(
            self.user_id,
            self.channel_ids & channel_ids,
            tuple(span for span in self.spans if span.channel_id in channel_ids),
            self.direct_ids & direct_ids,
            self.recorded & channel_ids,
        )


class MessageSearch(Struct, frozen=True):
    """A page of messages around `anchor`: at most `before` before it and `after` after it."""

    scope: Scope
    terms: tuple[Term, ...]
    anchor: int
    before: int
    after: int
    include_anchor: bool = True

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        return phrases_in(self.terms)


def phrases_in(terms: Iterable[Term]) -> tuple[Phrase, ...]:
    """Return the phrases that a message must contain to match the terms."""
    return tuple(
        phrase
        for term in terms
        if isinstance(term.condition, Matches) and not term.negated
        for phrase in term.condition.phrases
    )


LARGEST = 2**53
"""Greater than any message ID."""
