"""Events of what people say that they are doing."""

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from tertulia.model.changes import StatusChanged
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.statuses import emoji_fields, status_object
from tertulia.wire.api.projection import ProjectionContext, Projections, to_everybody
from tertulia.wire.api.projections.visibility import sees_account


class UserStatusEvent(Event, kw_only=True, tag="user_status"):
    """Somebody's status is new: what of it is. The emoji's three names come together, empty where
    it is taken away. `scheduled_end_time`, when it ends (null where it stays), is this server's
    own. `away` is of old: the person is invisible."""

    user_id: int
    status_text: str | UnsetType = UNSET
    emoji_name: str | UnsetType = UNSET
    emoji_code: str | UnsetType = UNSET
    reaction_type: str | UnsetType = UNSET
    scheduled_end_time: int | UnsetType | None = UNSET
    away: bool | UnsetType = UNSET


def status_now(state: State, user: User) -> UserStatusEvent:
    """The whole status of an account that has come into sight."""
    return UserStatusEvent(user_id=user.id, **status_object(state, user))


def _changed(_: ProjectionContext, change: StatusChanged) -> UserStatusEvent:
    event = UserStatusEvent(user_id=change.user_id)
    if change.text is not None:
        event.status_text = change.text
    if change.emoji is not None:
        event = msgspec.structs.replace(event, **emoji_fields(change.emoji))
    if change.ends_at is not None:
        event.scheduled_end_time = change.ends_at or None
    return event


PROJECTIONS: Final[Projections] = (to_everybody(StatusChanged, _changed, only_if=sees_account),)
