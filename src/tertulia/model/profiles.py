"""Statuses of users, and the fields of their profiles."""

from enum import IntEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.reactions import Emoji, EmojiKind

NO_EMOJI = Emoji(kind=EmojiKind.UNICODE, code="", name="")
"""Stands for no emoji, in a change that removes one from a status."""


class UserStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user's status. There is no record of an empty one."""

    user_id: int
    text: str = ""
    emoji: Emoji | None = None
    ends_at: int = 0
    """When it is taken away, in UNIX seconds; 0 where it stays."""


class FieldKind(IntEnum):
    """What a profile field's values are."""

    SHORT_TEXT = 1
    LONG_TEXT = 2
    CHOICE = 3
    DATE = 4
    LINK = 5
    PEOPLE = 6
    EXTERNAL_ACCOUNT = 7
    PRONOUNS = 8


class Choice(Struct, frozen=True, kw_only=True):
    """One of the values of a CHOICE field."""

    key: str
    text: str
    order: str


class ProfileField(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A field that every person's profile has."""

    id: int
    kind: FieldKind
    name: str
    hint: str = ""
    order: int
    """The place among the fields; smaller comes first."""
    choices: tuple[Choice, ...] = ()
    """Of a CHOICE field."""
    account: str = ""
    """Of an EXTERNAL_ACCOUNT field: the service, or `custom`."""
    url_pattern: str = ""
    """Of a custom EXTERNAL_ACCOUNT field: where accounts are, with `%(username)s`."""
    in_summary: bool = False
    """Shown where there is room for little."""
    required: bool = False
    editable_by_user: bool = True
    """Otherwise administrators alone change its values."""
    used_for_matching: bool = False
    """Whether people are found by its values when they are searched for."""


class ProfileValue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one person's profile has in one field."""

    user_id: int
    field_id: int
    value: str
    """As clients get it; of a PEOPLE field the IDs as a JSON list."""
    rendered: str = ""
    """As HTML, for texts."""


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
