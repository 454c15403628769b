"""Statuses and profiles."""

from tertulia.model.changes.base import Change
from tertulia.model.profiles import ProfileField, ProfileValue
from tertulia.model.reactions import Emoji


class StatusChanged(Change, frozen=True, tag="status_changed"):
    """A user's status was changed. None leaves the text, emoji or end as it was; an empty one, or
    0, removes it."""

    user_id: int
    text: str | None = None
    emoji: Emoji | None = None
    ends_at: int | None = None


class ProfileFieldCreated(Change, frozen=True, tag="profile_field_created"):
    """A profile field was added."""

    field: ProfileField


class ProfileFieldChanged(Change, frozen=True, tag="profile_field_changed"):
    """A field was changed to this one; its kind stays. `dropped` are the users whose value is none
    of the field's choices any more."""

    field: ProfileField
    dropped: tuple[int, ...] = ()


class ProfileFieldsOrdered(Change, frozen=True, tag="profile_fields_ordered"):
    """The fields have a new order."""

    field_ids: tuple[int, ...]


class ProfileFieldDeleted(Change, frozen=True, tag="profile_field_deleted"):
    """A field was deleted, with all values of it."""

    field_id: int


class ProfileChanged(Change, frozen=True, tag="profile_changed"):
    """Fields of a user's profile have new values."""

    user_id: int
    values: tuple[ProfileValue, ...] = ()
    emptied: tuple[int, ...] = ()
    """IDs of fields whose value was removed."""
