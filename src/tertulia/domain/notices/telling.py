"""When somebody is told of a message that concerns them, and what is looked at once more then."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import permissions
from tertulia.domain.notices import rules
from tertulia.domain.notices.rules import Way
from tertulia.model.changes import AnyChange, MessageEdited, MessageSent
from tertulia.model.messages import Message
from tertulia.state.notice_choices import USUAL_PERIOD
from tertulia.state.organization import State

HERE_SECONDS: Final = 200
"""For so long after somebody last did something in a client they count as being here: as long as
clients show them as active."""
LOOK_AGAIN_SECONDS: Final = 100
"""Whoever is here when they were to be told is looked at again after so long."""
HERE_LONGEST: Final = 3600
"""Who was here all the time for so long after they were to be told, without reading it, has seen in
a client that there is something, and is not told any more."""
QUIET_LOOK_SECONDS: Final = 1800
"""Whoever is left in peace is looked at again after so long, or at the end: it may come earlier
than was said."""
QUIET_LOOKS: Final = 48
"""Where the end is further away, after this part of the time until then..."""
QUIET_LOOK_LONGEST: Final = 6 * 3600
"""... and after so long at the latest. What waits for weeks is not looked at every half hour."""


class Concerning(Struct, frozen=True):
    """A message, and whom an entry of the log makes it concern."""

    message: Message
    people: BitMap


def concerning(state: State, change: AnyChange, way: Way) -> Concerning | None:
    """Whom the change makes a message concern: one that was sent, or by mentioning them in what it
    says now. None for most changes."""
    match change:
        case MessageSent(message=message, gone=False):
            found = rules.everybody(rules.concerned(state, message, change.flags, way))
            people = found - BitMap(change.readers)
        case MessageEdited(message=message, gone=False, rendering_only=False) if change.mentioned:
            found = rules.newly_concerned(state, message, change.flags, change.mentioned, way)
            people = found - BitMap(change.read_by)
        case _:
            return None
    return Concerning(message, people) if people else None


def by_delay(state: State, people: BitMap, way: Way) -> Mapping[int, BitMap]:
    """The people by how many seconds after a message they want to be told of it."""
    if way is not Way.MAIL:
        return {0: people} if people else {}
    found: dict[int, BitMap] = {}
    usual = people
    for period, own in state.personal_choices.periods.items():
        if some := people & own:
            found[period] = some
            usual = usual - some
    return {USUAL_PERIOD: usual, **found} if usual else found


def waits_for_absence(state: State, user_id: int, way: Way) -> bool:
    """Whether the user is told in this way only while they are not here."""
    return not (way is Way.PUSH and state.settings[user_id].enable_online_push_notifications)


def quiet_look(way: Way, now: float, until: int) -> float | None:
    """When somebody is looked at again who is left in peace until then, to be told in this way;
    None where they are not told any more: of what rings. (The end by full minutes, so that many are
    looked at together.)"""
    if way is not Way.MAIL:
        return None
    wait = min((until - now) / QUIET_LOOKS, QUIET_LOOK_LONGEST)
    return min(-(-until // 60) * 60, now + max(wait, QUIET_LOOK_SECONDS))


def may_be_told(state: State, user_id: int, message: Message) -> bool:
    """Whether the user has an account, and may read the message, at this moment."""
    user = state.users[user_id]
    return user.is_active and permissions.reads_message(state, user, message)
