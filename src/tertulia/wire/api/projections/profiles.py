"""Events of profiles, and of the fields that they have."""

from collections.abc import Hashable, Iterable
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from tertulia.model.changes import (
    ProfileChanged,
    ProfileFieldChanged,
    ProfileFieldCreated,
    ProfileFieldDeleted,
    ProfileFieldsOrdered,
)
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.profiles import ProfileFieldObject, profile_fields
from tertulia.wire.api.projection import (
    ForEverybody,
    ProjectionContext,
    Projections,
    Viewer,
    to_everybody,
)
from tertulia.wire.api.projections.visibility import sees_account, sees_user


class ProfileFieldsEvent(Event, kw_only=True, tag="custom_profile_fields"):
    """All the fields that profiles have now, in their order. What a profile had in one that is
    not among them is gone."""

    fields: list[ProfileFieldObject]


class FieldNews(Struct, kw_only=True):
    """What a profile has in a field now; null for nothing any more."""

    id: int
    value: str | None
    rendered_value: str | UnsetType = UNSET


class PersonProfileField(Struct, kw_only=True):
    """Something about somebody's profile is new."""

    user_id: int
    custom_profile_field: FieldNews


class ProfileEvent(Event, kw_only=True, tag="realm_user"):
    """Something about somebody's profile is new."""

    op: str = "update"
    person: PersonProfileField


def profile_news(
    user_id: int, field_id: int, value: str | None = None, rendered: str = ""
) -> ProfileEvent:
    """The event of one field of one profile."""
    news = FieldNews(id=field_id, value=value, rendered_value=rendered or UNSET)
    return ProfileEvent(person=PersonProfileField(user_id=user_id, custom_profile_field=news))


def _all_fields(context: ProjectionContext, change: Any) -> Event:
    return ProfileFieldsEvent(fields=profile_fields(context.state))


class ProfileFieldChangedProjection(ForEverybody[ProfileFieldChanged]):
    """A field is otherwise, and some profiles have nothing in it any more."""

    of = ProfileFieldChanged

    def view(
        self, context: ProjectionContext, change: ProfileFieldChanged, viewer: Viewer
    ) -> Hashable:
        state = context.state
        return tuple(
            user_id
            for user_id in change.dropped
            if sees_user(context, viewer.user, state.users[user_id])
        )

    def events(
        self, context: ProjectionContext, change: ProfileFieldChanged, view: Any
    ) -> Iterable[Event]:
        for user_id in view:
            yield profile_news(user_id, change.field.id)
        yield _all_fields(context, change)


class ProfileChangedProjection(ForEverybody[ProfileChanged]):
    """Somebody's profile, to those who may know of the account."""

    of = ProfileChanged

    def view(
        self, context: ProjectionContext, change: ProfileChanged, viewer: Viewer
    ) -> Hashable | None:
        return () if sees_account(context, change, viewer) else None

    def events(
        self, context: ProjectionContext, change: ProfileChanged, view: Any
    ) -> Iterable[Event]:
        for value in change.values:
            yield profile_news(change.user_id, value.field_id, value.value, value.rendered)
        for field_id in change.emptied:
            yield profile_news(change.user_id, field_id)


PROJECTIONS: Final[Projections] = (
    to_everybody(ProfileFieldCreated, _all_fields),
    to_everybody(ProfileFieldsOrdered, _all_fields),
    to_everybody(ProfileFieldDeleted, _all_fields),
    ProfileFieldChangedProjection(),
    ProfileChangedProjection(),
)
