"""Profiles on the wire."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.accounts.profile_fields import SERVICES, in_order
from tertulia.model.profiles import FieldKind, ProfileField, ProfileValue
from tertulia.state.organization import State

FIELD_TYPES: Final = {
    "SHORT_TEXT": {"id": 1, "name": "Text (short)"},
    "LONG_TEXT": {"id": 2, "name": "Text (long)"},
    "SELECT": {"id": 3, "name": "List of options"},
    "DATE": {"id": 4, "name": "Date"},
    "URL": {"id": 5, "name": "Link"},
    "USER": {"id": 6, "name": "Users"},
    "EXTERNAL_ACCOUNT": {"id": 7, "name": "External account"},
    "PRONOUNS": {"id": 8, "name": "Pronouns"},
}
"""The kinds of profile fields, as people call them."""

EXTERNAL_ACCOUNTS: Final = {key: service._asdict() for key, service in SERVICES.items()}
"""Accounts elsewhere that a profile can name."""


class ProfileFieldObject(Struct, kw_only=True):
    """A field that every person's profile has. `field_data` is JSON, or empty."""

    id: int
    type: int
    name: str
    hint: str
    field_data: str
    order: int
    required: bool
    editable_by_user: bool
    use_for_user_matching: bool
    display_in_profile_summary: bool | UnsetType = UNSET


def profile_field(field: ProfileField) -> ProfileFieldObject:
    """One field."""
    return ProfileFieldObject(
        id=field.id,
        type=field.kind.value,
        name=field.name,
        hint=field.hint,
        field_data=_field_data(field),
        order=field.order,
        required=field.required,
        editable_by_user=field.editable_by_user,
        use_for_user_matching=field.used_for_matching,
        display_in_profile_summary=True if field.in_summary else UNSET,
    )


def profile_fields(state: State) -> list[ProfileFieldObject]:
    """All fields in their order."""
    return [profile_field(field) for field in in_order(state)]


def _field_data(field: ProfileField) -> str:
    data: dict[str, Any]
    if field.kind is FieldKind.CHOICE:
        data = {
            choice.key: {"text": choice.text, "order": choice.order} for choice in field.choices
        }
    elif field.kind is FieldKind.EXTERNAL_ACCOUNT:
        data = {"subtype": field.account}
        if field.url_pattern:
            data["url_pattern"] = field.url_pattern
    else:
        return ""
    return msgspec.json.encode(data).decode()


class ProfileValueObject(Struct, kw_only=True):
    """What a profile has in a field. `rendered_value` is HTML, of texts alone."""

    value: str
    rendered_value: str | UnsetType = UNSET


def profile_data(state: State, user_id: int) -> dict[str, ProfileValueObject]:
    """What somebody's profile has, by the fields' IDs."""
    return {str(value.field_id): profile_value(value) for value in state.profile_of[user_id]}


def profile_value(value: ProfileValue) -> ProfileValueObject:
    """One value."""
    return ProfileValueObject(value=value.value, rendered_value=value.rendered or UNSET)
