"""Statuses, and custom profile fields with their values."""

from enum import IntEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.reactions import Emoji, EmojiKind

NO_EMOJI = Emoji(kind=EmojiKind.UNICODE, code="", name="")
"""In a change, removes the emoji from a status."""


class UserStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user's status. Users without one have no record."""

    user_id: int
    text: str = ""
    emoji: Emoji | None = None
    ends_at: int = 0
    """When it's removed, in UNIX seconds; 0 for never."""


class FieldKind(IntEnum):
    SHORT_TEXT = 1
    LONG_TEXT = 2
    CHOICE = 3
    DATE = 4
    LINK = 5
    PEOPLE = 6
    EXTERNAL_ACCOUNT = 7
    PRONOUNS = 8


class Choice(Struct, frozen=True, kw_only=True):
    """An option of a CHOICE field."""

    key: str
    text: str
    order: str


class ProfileField(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A custom profile field."""

    id: int
    kind: FieldKind
    name: str
    hint: str = ""
    order: int
    """Smaller comes first."""
    choices: tuple[Choice, ...] = ()
    """Of a CHOICE field."""
    account: str = ""
    """Of an EXTERNAL_ACCOUNT field: the service, or `custom`."""
    url_pattern: str = ""
    """Of a custom EXTERNAL_ACCOUNT field: the accounts' URL, with `%(username)s`."""
    in_summary: bool = False
    """Whether it's shown on the user card."""
    required: bool = False
    editable_by_user: bool = True
    """If false, only administrators can change its values."""
    used_for_matching: bool = False
    """Whether its values are searched when people look for users."""


class ProfileValue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's value in a profile field."""

    user_id: int
    field_id: int
    value: str
    """As clients get it; for a PEOPLE field, IDs as a JSON list."""
    rendered: str = ""
    """HTML of text fields."""


class StatusChanged(Change, frozen=True, tag="status_changed"):
    """A user's status changed. None leaves a field as it was; an empty one, or 0, removes it."""

    user_id: int
    text: str | None = None
    emoji: Emoji | None = None
    ends_at: int | None = None


class ProfileFieldCreated(Change, frozen=True, tag="profile_field_created"):
    field: ProfileField


class ProfileFieldChanged(Change, frozen=True, tag="profile_field_changed"):
    """A field changed, but for its kind. `dropped` are users whose value is no longer an option."""

    field: ProfileField
    dropped: tuple[int, ...] = ()


class ProfileFieldsOrdered(Change, frozen=True, tag="profile_fields_ordered"):
    field_ids: tuple[int, ...]


class ProfileFieldDeleted(Change, frozen=True, tag="profile_field_deleted"):
    """A field was deleted with all its values."""

    field_id: int


class ProfileChanged(Change, frozen=True, tag="profile_changed"):
    """Fields of a user's profile have new values."""

    user_id: int
    values: tuple[ProfileValue, ...] = ()
    emptied: tuple[int, ...] = ()
    """IDs of fields whose value was removed."""
