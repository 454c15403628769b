"""Custom profile fields, and people's values in them."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from tertulia.domain import names, permissions
from tertulia.model.changes import (
    AnyChange,
    ProfileChanged,
    ProfileFieldChanged,
    ProfileFieldCreated,
    ProfileFieldDeleted,
    ProfileFieldsOrdered,
)
from tertulia.model.errors import Refused
from tertulia.model.messages import Rendered
from tertulia.model.profiles import Choice, FieldKind, ProfileField, ProfileValue
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_NAME: Final = 40
MAX_HINT: Final = 80
MAX_IN_SUMMARY: Final = 2
_MATCHING: Final = (FieldKind.SHORT_TEXT, FieldKind.EXTERNAL_ACCOUNT)
MAX_CHOICE: Final = 50
CUSTOM: Final = "custom"
USERNAME: Final = "%(username)s"


class ExternalService(NamedTuple):
    """An external website where people have accounts."""

    name: str
    text: str
    hint: str
    url_pattern: str
    """The URL of an account, with `%(username)s`."""


SERVICES: Final[Mapping[str, ExternalService]] = {
    "github": ExternalService(
        "GitHub", "GitHub", "Your GitHub user name", "https://github.com/%(username)s"
    ),
    "twitter": ExternalService(
        "X (Twitter)", "X", "Your X user name", "https://x.com/%(username)s"
    ),
}
"""External services for which a field stores only the username."""


class FieldDetails(Struct, frozen=True, kw_only=True):
    """Details that depend on a field's kind: options, or the service and the pattern of its URLs.
    None keeps the current value."""

    choices: tuple[Choice, ...] | None = None
    account: str | None = None
    url_pattern: str | None = None


class ProfileFieldUpdate(Struct, frozen=True, kw_only=True):
    """Values for a field. None keeps the current value, or uses the default for a new field."""

    name: str | None = None
    hint: str | None = None
    details: FieldDetails | None = None
    in_summary: bool | None = None
    required: bool | None = None
    editable_by_user: bool | None = None
    used_for_matching: bool | None = None


def create_field(
    context: CommandContext, kind: FieldKind, given: ProfileFieldUpdate
) -> Decision[ProfileField]:
    """Add a field at the end, as an administrator. A known service gives the field its name.

    Raise Refused for empty, long, or taken names, details that don't fit the kind, and too many
    fields on the user card.
    """
    permissions.require_administrator(context.state, context.actor)
    state = context.state
    blank = ProfileField(
        id=state.profile_fields.next_id(),
        kind=kind,
        name="",
        order=max((field.order for field in state.profile_fields), default=0) + 1,
    )
    service = SERVICES.get((given.details and given.details.account) or "")
    if kind is FieldKind.EXTERNAL_ACCOUNT and service is not None:
        given = msgspec.structs.replace(given, name=service.name, hint=service.hint)
    detailed = msgspec.structs.replace(
        given, name=given.name or "", details=given.details or FieldDetails()
    )
    field = _updated_field(state, blank, detailed)
    return Decision(field, (ProfileFieldCreated(field=field),))


def change_field(
    context: CommandContext, field_id: int, given: ProfileFieldUpdate
) -> Decision[None]:
    """Change a field, as an administrator. Values that are no longer among the options are removed
    from profiles.

    Raise Refused for unknown fields, for changing what a known service determines, and as
    `create_field`.
    """
    permissions.require_administrator(context.state, context.actor)
    state = context.state
    before = existing_field(state, field_id)
    named = given.name is not None or given.hint is not None or given.details is not None
    if before.account in SERVICES and named:
        raise Refused("You can't change the name, hint, or address of a field for a known service.")
    after = _updated_field(state, before, given)
    if after == before:
        return Decision(None)
    keys = {choice.key for choice in after.choices}
    dropped = [
        value.user_id
        for value in state.profile_values.of_field[field_id]
        if after.kind is FieldKind.CHOICE and value.value not in keys
    ]
    return Decision(None, (ProfileFieldChanged(field=after, dropped=tuple(sorted(dropped))),))


def order_fields(context: CommandContext, field_ids: Sequence[int]) -> Decision[None]:
    """Set the order of the fields, as an administrator. Raise Refused unless each field is named
    exactly once."""
    permissions.require_administrator(context.state, context.actor)
    state = context.state
    if sorted(field_ids) != sorted(field.id for field in state.profile_fields):
        raise Refused("The order must list every field exactly once.")
    if list(field_ids) == [field.id for field in in_order(state)]:
        return Decision(None)
    return Decision(None, (ProfileFieldsOrdered(field_ids=tuple(field_ids)),))


def delete_field(context: CommandContext, field_id: int) -> Decision[None]:
    """Delete a field from all profiles, as an administrator. Raise Refused if it doesn't exist."""
    permissions.require_administrator(context.state, context.actor)
    changes: list[AnyChange] = [
        ProfileFieldDeleted(field_id=existing_field(context.state, field_id).id)
    ]
    return Decision(None, changes)


def existing_field(state: State, field_id: int) -> ProfileField:
    """Return the field. Raise Refused if it doesn't exist."""
    field = state.profile_fields.get(field_id)
    if field is None:
        raise Refused(f"No profile field with ID {field_id} exists.")
    return field


def in_order(state: State) -> list[ProfileField]:
    """Return all fields in display order."""
    return sorted(state.profile_fields, key=lambda field: (field.order, field.id))


def _updated_field(state: State, before: ProfileField, given: ProfileFieldUpdate) -> ProfileField:
    after = before
    if given.name is not None:
        after = msgspec.structs.replace(after, name=_free_name(state, given.name, before.id))
    if given.hint is not None:
        after = msgspec.structs.replace(after, hint=_hint(given.hint))
    if given.details is not None:
        after = _detailed(after, given.details)
    flags = {
        name: value
        for name in ("in_summary", "required", "editable_by_user", "used_for_matching")
        if (value := getattr(given, name)) is not None
    }
    after = msgspec.structs.replace(after, **flags)
    if after.in_summary and not before.in_summary:
        _require_room_in_summary(state, after)
    if after.used_for_matching and not before.used_for_matching and after.kind not in _MATCHING:
        raise Refused("Only short texts and external accounts can be used to find people.")
    return after


def _free_name(state: State, text: str, field_id: int) -> str:
    name = text.strip()
    if not name or len(name) > MAX_NAME or not names.is_printable(name):
        raise Refused(f"The name of a profile field must have 1 to {MAX_NAME} visible characters.")
    if any(field.name == name and field.id != field_id for field in state.profile_fields):
        raise Refused("A profile field with this name already exists.")
    return name


def _hint(text: str) -> str:
    hint = text.strip()
    if len(hint) > MAX_HINT or not names.is_printable(hint):
        raise Refused(
            f"The hint of a profile field can have at most {MAX_HINT} visible characters."
        )
    return hint


def _require_room_in_summary(state: State, field: ProfileField) -> None:
    if field.kind is FieldKind.PEOPLE:
        raise Refused('Fields of type "users" can\'t be shown on the user card.')
    others = [f for f in state.profile_fields if f.in_summary and f.id != field.id]
    if len(others) >= MAX_IN_SUMMARY:
        raise Refused(f"At most {MAX_IN_SUMMARY} fields can be shown on the user card.")


def _detailed(field: ProfileField, details: FieldDetails) -> ProfileField:
    if field.kind is FieldKind.CHOICE:
        return msgspec.structs.replace(field, choices=_choices(details.choices or ()))
    if field.kind is FieldKind.EXTERNAL_ACCOUNT:
        account = details.account or ""
        if account in SERVICES:
            return msgspec.structs.replace(field, account=account)
        if account != CUSTOM:
            raise Refused("This type of external account doesn't exist.")
        pattern = _url_pattern(details.url_pattern or "")
        return msgspec.structs.replace(field, account=CUSTOM, url_pattern=pattern)
    return field


def _choices(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    if not choices:
        raise Refused("The field needs at least one option.")
    result = tuple(msgspec.structs.replace(choice, text=choice.text.strip()) for choice in choices)
    texts = [choice.text for choice in result]
    if any(not text or len(text) > MAX_CHOICE or not names.is_printable(text) for text in texts):
        raise Refused(f"Each option must have 1 to {MAX_CHOICE} visible characters.")
    if len({text.casefold() for text in texts}) < len(texts):
        raise Refused("Two options are the same.")
    if any(not choice.key.strip() or len(choice.key) > MAX_CHOICE for choice in result):
        raise Refused("An option has no key.")
    return result


def _url_pattern(text: str) -> str:
    pattern = text.strip()
    if pattern.count(USERNAME) != 1 or not is_link(pattern.replace(USERNAME, "username")):
        raise Refused(f"The account's address must be a URL that contains {USERNAME}.")
    return pattern


def is_link(text: str) -> bool:
    """Whether the text is an absolute URL of a web page."""
    if len(text) > 2000 or re.search(r"[\s\"<>\\]", text) or not names.is_printable(text):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


MAX_SHORT = 50
MAX_LONG = 500
MAX_PEOPLE = 100

FieldValue = str | Sequence[int] | None
"""A field's value; None and empty values remove it."""


class ProfileUpdate(Struct, frozen=True, kw_only=True):
    """New values by field ID."""

    values: tuple[tuple[int, FieldValue], ...]
    render: Callable[[CommandContext, str], Rendered]


def change_own(context: CommandContext, new: ProfileUpdate) -> Decision[None]:
    """Change the actor's own profile.

    Raise Refused for unknown fields, fields that the actor can't change, values that don't fit, and
    bots, which have no profile.
    """
    return Decision(None, profile_changes(context, context.actor, new))


def remove_own_values(context: CommandContext, field_ids: Sequence[int]) -> Decision[None]:
    """Remove the actor's values of these fields. Raise as `change_own`."""
    return Decision(None, profile_removal_changes(context, context.actor, field_ids))


def profile_removal_changes(
    context: CommandContext, user: User, field_ids: Sequence[int]
) -> list[AnyChange]:
    """Return the change that removes a user's values of these fields. Raise as
    `profile_changes`."""
    values = tuple((field_id, None) for field_id in field_ids)
    return profile_changes(context, user, ProfileUpdate(values=values, render=_no_text))


def _no_text(_: CommandContext, content: str) -> Rendered:
    raise ValueError("no text left after removing the markup")


def profile_changes(context: CommandContext, user: User, new: ProfileUpdate) -> list[AnyChange]:
    """Return the change that sets these values in a user's profile, if they differ. Raise as
    `change_own`, except that administrators can change every field."""
    state = context.state
    if user.is_bot:
        raise Refused("Bots don't have profiles.")
    put: dict[int, ProfileValue] = {}
    emptied: set[int] = set()
    for field_id, given in new.values:
        field = existing_field(state, field_id)
        if not field.editable_by_user and not permissions.is_administrator(state, context.actor):
            raise Refused("Only administrators can change this field.")
        text = _text(context, field, given)
        put.pop(field_id, None)
        emptied.discard(field_id)
        if not text:
            emptied.add(field_id)
            continue
        is_text = field.kind in {FieldKind.SHORT_TEXT, FieldKind.LONG_TEXT}
        put[field_id] = ProfileValue(
            user_id=user.id,
            field_id=field_id,
            value=text,
            rendered=new.render(context, text).html if is_text else "",
        )
    values = tuple(v for v in put.values() if state.profile_values.get((user.id, v.field_id)) != v)
    gone = tuple(
        sorted(field_id for field_id in emptied if (user.id, field_id) in state.profile_values)
    )
    if not values and not gone:
        return []
    return [ProfileChanged(user_id=user.id, values=values, emptied=gone)]


def _text(context: CommandContext, field: ProfileField, given: FieldValue) -> str:
    """Return the value as it's stored, or an empty string if there is no value. Raise Refused if it
    doesn't fit the field."""
    if given is None or not given:
        return ""
    if field.kind is FieldKind.PEOPLE:
        return _people(context, given)
    if not isinstance(given, str):
        raise Refused(f"The value of '{field.name}' must be a string.")
    text = given.strip()
    if not text:
        return ""
    _require_fitting(field, text)
    return text


def _require_fitting(field: ProfileField, text: str) -> None:
    match field.kind:
        case FieldKind.LONG_TEXT:
            limit = MAX_LONG
            fits = "\0" not in text
        case FieldKind.CHOICE:
            limit = MAX_LONG
            fits = any(choice.key == text for choice in field.choices)
        case FieldKind.DATE:
            limit = 10
            fits = _is_date(text)
        case FieldKind.LINK:
            limit = 2000
            fits = is_link(text)
        case _:
            limit = MAX_SHORT
            fits = names.is_printable(text)
    if len(text) > limit:
        raise Refused(f"The value of '{field.name}' can have at most {limit} characters.")
    if not fits:
        raise Refused(f"This isn't a valid value for '{field.name}'.")


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _people(context: CommandContext, given: str | Sequence[int]) -> str:
    if isinstance(given, str):
        raise Refused("Users must be given as a list of their IDs.")
    if len(given) > MAX_PEOPLE:
        raise Refused(f"A field can list at most {MAX_PEOPLE} people.")
    for user_id in given:
        user = permissions.visible_user(context.state, context.actor, user_id)
        if user.is_bot or not user.is_active:
            raise Refused("A field can list only active people.")
    return msgspec.json.encode(list(dict.fromkeys(given))).decode()
