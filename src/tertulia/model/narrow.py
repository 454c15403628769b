"""What to look for among messages: a list of terms that must all hold.

The tree is free of both JSON and SQL: `tertulia.wire` reads it, `tertulia.domain.messages.narrow`
checks it against what the reader may see, `tertulia.store` turns it into a query.
"""

from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.tokenizer import Phrase


class InChannels(Struct, frozen=True):
    """In one of these channels."""

    channel_ids: frozenset[int]


class InTopic(Struct, frozen=True):
    """In a topic of this key, in any channel."""

    key: str


class InTopics(Struct, frozen=True):
    """In one of these topics, each a channel's ID and a key."""

    topics: frozenset[tuple[int, str]]


class IsMuted(Struct, frozen=True):
    """In one of these muted channels, but not in a topic that is `unmuted` or followed; or in one
    of the muted `topics`."""

    channel_ids: frozenset[int]
    topics: frozenset[tuple[int, str]]
    unmuted: frozenset[tuple[int, str]]


class TopicBegins(Struct, frozen=True):
    """In a topic whose key begins so (resolved topics)."""

    prefix: str


class FromSender(Struct, frozen=True):
    """Written by this user."""

    user_id: int


class InDirect(Struct, frozen=True):
    """In one of these direct conversations."""

    direct_ids: frozenset[int]


class AnyDirect(Struct, frozen=True):
    """In any direct conversation."""


class HasFlag(Struct, frozen=True):
    """The reader has one of these sparse flags (a bit mask) on it.

    With `wildcards`, also those that mention everybody and lie in one of these spans.
    """

    flags: int
    wildcards: tuple["ChannelSpan", ...] = ()


class Mentions(Struct, frozen=True):
    """This user is mentioned by name."""

    user_id: int


class IsUnread(Struct, frozen=True):
    """The reader has not read it. `ids` are the unread messages."""

    ids: BitMap


class HasPart(Struct, frozen=True):
    """It contains a `link`, an `image` or an `attachment`."""

    part: str


class HasReaction(Struct, frozen=True):
    """Somebody has reacted to it."""


class HasId(Struct, frozen=True):
    """It is this message."""

    message_id: int


class Matches(Struct, frozen=True):
    """Its content or topic contains all these phrases."""

    phrases: tuple[Phrase, ...]


class Nothing(Struct, frozen=True):
    """Holds for no message."""


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
    """A condition, or its opposite."""

    condition: Condition
    negated: bool = False


class ChannelSpan(Struct, frozen=True, gc=False):
    """Messages of one channel with after < id <= until (None: and all later ones)."""

    channel_id: int
    after: int
    until: int | None

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole channel."""
        return self.after == 0 and self.until is None


def split_spans(spans: Iterable[ChannelSpan]) -> tuple[list[int], list[tuple[int, int, int]]]:
    """The channels of those that are whole; and the others as tuples, the end of each a number that
    is beyond all messages where it has none."""
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
    """Which messages the reader may see at all.

    `spans` are ranges of channels, those of one channel apart and oldest first; `direct_ids` are
    conversations; `recorded` are the channels of which those messages belong to it that `user_id`
    has a record of. `channel_ids` are channels whose whole history is open to the reader.
    """

    user_id: int | None
    channel_ids: frozenset[int] = frozenset()
    spans: tuple[ChannelSpan, ...] = ()
    direct_ids: frozenset[int] = frozenset()
    recorded: frozenset[int] = frozenset()

    @cached_property
    def parts(self) -> tuple[list[int], list[tuple[int, int, int]]]:
        """`parted` of the spans: found once, however often the reader searches."""
        return split_spans(self.spans)

    @cached_property
    def only_recorded(self) -> frozenset[int]:
        """The channels of which records say more: not those that are received as a whole."""
        return self.recorded.difference(self.parts[0])

    @cached_property
    def is_empty(self) -> bool:
        """Whether the reader may see nothing at all."""
        return not (self.channel_ids or self.spans or self.direct_ids or self.recorded)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """It has no messages but some with `after < id <= until` of these two."""
        whole, parts = self.parts
        if self.channel_ids or self.direct_ids or self.recorded or whole or not parts:
            return 0, LARGEST
        return min(after for _, after, _ in parts), max(until for _, _, until in parts)

    @property
    def every_channel(self) -> frozenset[int]:
        """The channels of which it has anything."""
        return self.channel_ids | self.recorded | {span.channel_id for span in self.spans}


class MessageSearch(Struct, frozen=True):
    """A page of messages: around `anchor`, at most so many before it and after it."""

    scope: Scope
    terms: tuple[Term, ...]
    anchor: int
    before: int
    after: int
    include_anchor: bool = True

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """All that must be in the text."""
        return phrases_in(self.terms)


def phrases_in(terms: Iterable[Term]) -> tuple[Phrase, ...]:
    """All that must be in the text for the terms to hold."""
    return tuple(
        phrase
        for term in terms
        if isinstance(term.condition, Matches) and not term.negated
        for phrase in term.condition.phrases
    )


LARGEST = 2**53
"""An anchor beyond every message."""
