"""Text in a search: matching messages, and estimating how common the text is and what finding it
costs."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tertulia.model import narrow
from tertulia.model.messages import Message
from tertulia.model.narrow import Term
from tertulia.model.tokenizer import Phrase, fold_texts, folded_contain
from tertulia.store.database import Connection

SAMPLE = 50
"""The number of messages from which common phrases are recognized."""
_MUCH_MORE = 8
"""A phrase this many times as common as another one isn't looked up."""


TextTerm = tuple[tuple[Phrase, ...], bool]
"""Phrases that a message must have all of, or mustn't (negated: True)."""


def counts_of(phrases: tuple[Phrase, ...], some: Sequence[Message]) -> list[int]:
    """Return how many of the messages have each phrase."""
    texts = [fold_texts((message.content, message.topic)) for message in some]
    return [sum(folded_contain(text, (phrase,)) for text in texts) for phrase in phrases]


def rare_phrases(phrases: tuple[Phrase, ...], counts: Sequence[int]) -> tuple[Phrase, ...]:
    """Drop phrases that are much more common than others, because looking them up costs much and
    excludes little. `counts` are those in a sample."""
    limit = _MUCH_MORE * (min(counts) + 1)
    return tuple(phrase for phrase, count in zip(phrases, counts, strict=True) if count <= limit)


def split_terms(terms: Iterable[Term]) -> tuple[list[TextTerm], list[Term]]:
    texts: list[TextTerm] = []
    rest: list[Term] = []
    for term in terms:
        if isinstance(term.condition, narrow.Matches):
            texts.append((term.condition.phrases, term.negated))
        else:
            rest.append(term)
    return texts, rest


def matching_text(
    connection: Connection, some: Iterable[Message], terms: Sequence[TextTerm]
) -> list[Message]:
    """Return the messages that fit the text terms. Raise TimeLimitReached."""
    messages: list[Message] = []
    for message in some:
        connection.require_time()
        folded_texts = fold_texts((message.content, message.topic))
        if all(folded_contain(folded_texts, phrases) is not negated for phrases, negated in terms):
            messages.append(message)
    return messages


class ScannedSample(Struct, frozen=True):
    """Messages already scanned between the newest one and the anchor, for estimating how common
    the phrases are."""

    passed: int
    """The number of scanned messages."""
    matched: int
    """The number of messages with the text."""
    gained: int
    """The number of those that also fit the other terms."""
    span: int
    """The range of their IDs."""
    newest: int
    """The ID of the newest message."""
    messages: Sequence[Message]
    """Some of the messages, newest first."""


class Strategy(Struct):
    """The cost and result of one strategy so far."""

    cost: float
    """Microseconds per message."""
    size: int
    """Messages of its last step."""
    passed: int = 0
    """Messages read."""
    gained: int = 0
    span: int = 0
    """The range of their IDs."""

    @property
    def density(self) -> float:
        """The share of IDs that it reads as messages."""
        return (self.passed + 1) / (self.span + 1)

    def left(self, need: int, ids: int) -> int:
        """Estimate how many more messages it must read to find `need` matches or reach the end
        of the remaining IDs."""
        return int(min(need * (self.passed + 1) / (self.gained + 1), ids * self.density)) + 1
