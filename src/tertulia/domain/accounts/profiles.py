"""What people's profiles have in the fields that there are."""

import re
from collections.abc import Callable, Sequence
from datetime import date

import msgspec
from msgspec import Struct

from tertulia.domain import names, permissions
from tertulia.domain.accounts.profile_fields import existing, is_link
from tertulia.model.changes import AnyChange, ProfileChanged
from tertulia.model.errors import Refused
from tertulia.model.messages import Rendered
from tertulia.model.profiles import FieldKind, ProfileField, ProfileValue
from tertulia.model.users import User
from tertulia.state.moment import Decision, Moment

MAX_SHORT = 50
MAX_LONG = 500
MAX_PEOPLE = 100

Value = str | Sequence[int] | None
"""Of a field; None and what is empty take it away."""


class NewProfile(Struct, frozen=True, kw_only=True):
    """What is to be in some fields, by their IDs."""

    values: tuple[tuple[int, Value], ...]
    render: Callable[[Moment, str], Rendered]


def change_own(moment: Moment, new: NewProfile) -> Decision[None]:
    """Change the actor's own profile.

    Refused for fields unknown or not the actor's to change, for values that do not fit their
    field, and for bots, which have no profile.
    """
    return Decision(None, changed(moment, moment.actor, new))


def empty_own(moment: Moment, field_ids: Sequence[int]) -> Decision[None]:
    """Take what the actor's own profile has in these fields away. Refused as `change_own`."""
    return Decision(None, emptied(moment, moment.actor, field_ids))


def emptied(moment: Moment, user: User, field_ids: Sequence[int]) -> list[AnyChange]:
    """The change that takes what somebody's profile has in these fields away. Refused as
    `changed`."""
    values = tuple((field_id, None) for field_id in field_ids)
    return changed(moment, user, NewProfile(values=values, render=_no_text))


def _no_text(_: Moment, content: str) -> Rendered:
    raise ValueError("no text left after removing the markup")


def changed(moment: Moment, user: User, new: NewProfile) -> list[AnyChange]:
    """The change that gives somebody's profile these values; none where it has them. Refused as
    `change_own`; administrators change every field."""
    state = moment.state
    if user.is_bot:
        raise Refused("Bots don't have profiles.")
    put: dict[int, ProfileValue] = {}
    emptied: set[int] = set()
    for field_id, given in new.values:
        field = existing(state, field_id)
        if not field.editable_by_user and not permissions.is_administrator(state, moment.actor):
            raise Refused("Only administrators can change this field.")
        text = _text(moment, field, given)
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
            rendered=new.render(moment, text).html if is_text else "",
        )
    values = tuple(v for v in put.values() if state.profile_values.get((user.id, v.field_id)) != v)
    gone = tuple(sorted(one for one in emptied if (user.id, one) in state.profile_values))
    if not values and not gone:
        return []
    return [ProfileChanged(user_id=user.id, values=values, emptied=gone)]


def _text(moment: Moment, field: ProfileField, given: Value) -> str:
    """The value as it is kept; empty for none. Refused where it does not fit the field."""
    if given is None or not given:
        return ""
    if field.kind is FieldKind.PEOPLE:
        return _people(moment, given)
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


def _people(moment: Moment, given: str | Sequence[int]) -> str:
    if isinstance(given, str):
        raise Refused("Users must be given as a list of their IDs.")
    if len(given) > MAX_PEOPLE:
        raise Refused(f"A field can list at most {MAX_PEOPLE} people.")
    for user_id in given:
        user = permissions.visible_user(moment.state, moment.actor, user_id)
        if user.is_bot or not user.is_active:
            raise Refused("A field can list only active people.")
    return msgspec.json.encode(list(dict.fromkeys(given))).decode()
