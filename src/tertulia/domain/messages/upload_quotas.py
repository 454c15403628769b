"""How much room there is for uploaded files: all of them together, and those of one person."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.accounts import users
from tertulia.model.errors import Refused, UploadQuotaReached
from tertulia.model.realm import MAX_MEBIBYTES
from tertulia.model.users import User
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State

MIB: Final = 2**20
UNLIMITED: Final = -1
"""In place of a number of MiB: this person's files may come to as much as they like."""
NOTHING: Final[Mapping[int, int]] = {}


class Room(Struct, frozen=True, kw_only=True):
    """How much room a person's files take, with those of their bots. In bytes."""

    used: int
    limit: int | None
    """None without a limit."""
    own_limit_mib: int | None = None
    """The exception for this person, in MiB, or `UNLIMITED`; None where there is none."""


def room_of(state: State, user: User) -> Room:
    """The room of the person, or of the bot's owner. Bots of nobody, the server's own, have no
    limit, and keep no files themselves."""
    person = state.users.person_of(user)
    own = person.upload_quota_mib
    mib = state.realm.upload_quota_per_user_mib if own is None else own
    return Room(
        used=sum(state.uploads.space_of(one) for one in state.users.accounts_of(person)),
        limit=None if person.is_bot or mib is None or mib == UNLIMITED else mib * MIB,
        own_limit_mib=own,
    )


def is_limited(state: State, user: User, quota: int | None) -> bool:
    """Whether anything says how much the user's files may come to."""
    return quota is not None or room_of(state, user).limit is not None


def check(
    state: State, user: User, size: int, quota: int | None, reserved: Mapping[int, int] = NOTHING
) -> None:
    """Refuse (UploadQuotaReached) where so many more bytes of the user's are more than their limit
    allows, or in all more than `quota` does. `reserved` are the bytes of files that have begun to
    arrive, by whose they are: there is no room for others where these will be."""
    room = room_of(state, user)
    if room.limit is not None:
        accounts = state.users.accounts_of(state.users.person_of(user))
        used = room.used + sum(reserved.get(one, 0) for one in accounts)
        if used + size > room.limit:
            raise UploadQuotaReached(left=room.limit - used, of_person=True)
    used = state.uploads.space_used + sum(reserved.values())
    if quota is not None and used + size > quota:
        raise UploadQuotaReached(left=quota - used, of_person=False)


def looked_at(moment: Moment, user_id: int) -> Decision[Room]:
    """The room of a person, for themselves and for administrators. Refused for others, and for
    accounts that are no person's."""
    target = permissions.visible_user(moment.state, moment.actor, user_id)
    if target.id != moment.actor.id:
        permissions.require_administrator(moment.state, moment.actor)
    _require_person(target)
    return Decision(room_of(moment.state, target))


def set_limit(moment: Moment, user_id: int, mib: int | None) -> Decision[None]:
    """Give a person a limit of their own, in MiB, or `UNLIMITED`; None takes it away. What is there
    already stays. For administrators.

    Refused for what is no limit, and for accounts that are no person's.
    """
    permissions.require_administrator(moment.state, moment.actor)
    target = users.managed_user(moment, user_id)
    _require_person(target)
    if mib is not None and mib != UNLIMITED and not 0 < mib <= MAX_MEBIBYTES:
        raise Refused(f"An upload limit must be 1 to {MAX_MEBIBYTES} MiB.")
    return Decision(None, users.changed(moment, target, {"upload_quota_mib": mib}))


def _require_person(user: User) -> None:
    if user.is_bot:
        raise Refused(
            "Bots don't have their own upload limit. Their files count toward their owner's."
        )
