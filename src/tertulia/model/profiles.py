"""Statuses, and custom profile fields with their values."""

from enum import IntEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.reactions import Emoji, EmojiKind

NO_EMOJI = Emoji(kind=EmojiKind.UNICODE, code="", name="")
"""The emoji that removes a status's emoji in a change."""


class UserStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user's status. Users without one have no record."""

    user_id: int
    text: str = ""
    emoji: Emoji | None = None
    ends_at: int = 0
    """The time when the status is removed, in UNIX seconds; 0 for never."""


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
    """The position: smaller numbers come first."""
    choices: tuple[Choice, ...] = ()
    """CHOICE fields only."""
    account: str = ""
    """The service of an EXTERNAL_ACCOUNT field, or `custom`."""
    url_pattern: str = ""
    """The URL of accounts, with `%(username)s`, of a custom EXTERNAL_ACCOUNT field."""
    in_summary: bool = False
    """Whether it's shown on the user card."""
    required: bool = False
    editable_by_user: bool = True
    """If false, only administrators can change its values."""
    used_for_matching: bool = False
    """Whether searching for users searches its values."""


class ProfileValue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's value in a profile field."""

    user_id: int
    field_id: int
    value: str
    """The value as clients get it; for a PEOPLE field, IDs as a JSON list."""
    rendered: str = ""
    """The HTML of text fields."""


class StatusChanged(Change, frozen=True, tag="status_changed"):
    """A user's status changed. None keeps a field's value; an empty value, or 0, removes it."""

    user_id: int
    text: str | None = None
    emoji: Emoji | None = None
    ends_at: int | None = None


class ProfileFieldCreated(Change, frozen=True, tag="profile_field_created"):
    field: ProfileField


class ProfileFieldChanged(Change, frozen=True, tag="profile_field_changed"):
    """A field changed, but not its kind. `dropped` are users whose value is no longer an option."""

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
