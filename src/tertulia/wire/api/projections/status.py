"""Events of what people say that they are doing."""

from collections.abc import Hashable, Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tertulia.model.changes import StatusChanged
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.wire.api.events import Event, Projection, ProjectionContext, Viewer
from tertulia.wire.api.objects.statuses import emoji_fields, status_object
from tertulia.wire.api.projections.visibility import sees_user


class UserStatusEvent(Event, kw_only=True, tag="user_status"):
    """Somebody's status is new: what of it is. The emoji's three names come together, empty where
    it is taken away. `away` is of old: the person is invisible."""

    user_id: int
    status_text: str | UnsetType = UNSET
    emoji_name: str | UnsetType = UNSET
    emoji_code: str | UnsetType = UNSET
    reaction_type: str | UnsetType = UNSET
    away: bool | UnsetType = UNSET


def status_now(state: State, user: User) -> UserStatusEvent:
    """All that the account says, for those who did not know of it."""
    return UserStatusEvent(user_id=user.id, **status_object(state, user))


class StatusChangedProjection(Projection[StatusChanged]):
    """A new status, to those who may know of the account."""

    of = StatusChanged

    def audience(self, state: State, change: StatusChanged) -> None:
        return None

    def view(
        self, context: ProjectionContext, change: StatusChanged, viewer: Viewer
    ) -> Hashable | None:
        user = context.state.users[change.user_id]
        return () if sees_user(context, viewer.user, user) else None

    def events(
        self, context: ProjectionContext, change: StatusChanged, view: Any
    ) -> Iterable[Event]:
        event = UserStatusEvent(user_id=change.user_id)
        if change.text is not None:
            event.status_text = change.text
        if change.emoji is not None:
            event = msgspec.structs.replace(event, **emoji_fields(change.emoji))
        yield event
