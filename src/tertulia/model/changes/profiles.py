"""Statuses and profiles."""

from tertulia.model.changes.base import Change
from tertulia.model.profiles import ProfileField, ProfileValue
from tertulia.model.reactions import Emoji


class StatusChanged(Change, frozen=True, tag="status_changed"):
    """Somebody says something else about what they are doing. None is as it was; an empty text or
    emoji is taken away."""

    user_id: int
    text: str | None = None
    emoji: Emoji | None = None


class ProfileFieldCreated(Change, frozen=True, tag="profile_field_created"):
    """Profiles have another field."""

    field: ProfileField


class ProfileFieldChanged(Change, frozen=True, tag="profile_field_changed"):
    """A field is as given now; its kind is what it was. `dropped` are the people whose value is no
    choice any more."""

    field: ProfileField
    dropped: tuple[int, ...] = ()


class ProfileFieldsOrdered(Change, frozen=True, tag="profile_fields_ordered"):
    """The fields come in this order."""

    field_ids: tuple[int, ...]


class ProfileFieldDeleted(Change, frozen=True, tag="profile_field_deleted"):
    """A field is gone, and everybody's values of it."""

    field_id: int


class ProfileChanged(Change, frozen=True, tag="profile_changed"):
    """What somebody's profile has in some fields is new."""

    user_id: int
    values: tuple[ProfileValue, ...] = ()
    emptied: tuple[int, ...] = ()
    """The fields that have no value any more."""
