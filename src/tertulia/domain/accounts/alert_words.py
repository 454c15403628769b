"""The words of whose use somebody wants to hear."""

from collections.abc import Sequence
from typing import Final

from tertulia.model.changes import AlertWordsChanged
from tertulia.model.errors import Refused
from tertulia.state.alert_words import compared
from tertulia.state.moment import Decision, Moment

MAX_LENGTH: Final = 100
MAX_WORDS: Final = 1000
"""Of one account."""


def own(moment: Moment) -> Decision[list[str]]:
    """The actor's words."""
    return Decision(list(_present(moment)))


def add(moment: Moment, words: Sequence[str]) -> Decision[list[str]]:
    """Add words, without those that are there already in any case. Returns all of them.

    Refused for words that are too long, or too many.
    """
    present = _present(moment)
    known = {compared(word): word for word in present}
    for word in _tidy(words):
        if len(word) > MAX_LENGTH:
            raise Refused(f"Alert words can have at most {MAX_LENGTH} characters.")
        known.setdefault(compared(word), word)
    if len(known) > MAX_WORDS:
        raise Refused(f"You can have at most {MAX_WORDS} alert words.")
    return _become(moment, present, tuple(known.values()))


def remove(moment: Moment, words: Sequence[str]) -> Decision[list[str]]:
    """Remove words, in any case; unknown ones are passed over. Returns what is left."""
    present = _present(moment)
    gone = {compared(word) for word in _tidy(words)}
    return _become(moment, present, tuple(w for w in present if compared(w) not in gone))


def _present(moment: Moment) -> tuple[str, ...]:
    record = moment.state.alert_words.get(moment.actor.id)
    return record.words if record else ()


def _tidy(words: Sequence[str]) -> list[str]:
    return [word.strip() for word in words if word.strip()]


def _become(
    moment: Moment, present: tuple[str, ...], words: tuple[str, ...]
) -> Decision[list[str]]:
    if words == present:
        return Decision(list(present))
    return Decision(list(words), (AlertWordsChanged(user_id=moment.actor.id, words=words),))
