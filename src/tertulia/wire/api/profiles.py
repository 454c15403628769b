"""Profiles and their custom fields."""

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.accounts import profiles
from tertulia.domain.accounts.profiles import (
    SERVICES,
    FieldDetails,
    ProfileFieldUpdate,
    ProfileUpdate,
    in_order,
)
from tertulia.model.changes import (
    ProfileChanged,
    ProfileFieldChanged,
    ProfileFieldCreated,
    ProfileFieldDeleted,
    ProfileFieldsOrdered,
)
from tertulia.model.errors import Refused
from tertulia.model.profiles import Choice, FieldKind, ProfileField, ProfileValue
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import (
    ProjectionContext,
    Projections,
    Viewer,
    projected,
    to_everybody,
)
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.api.visibility import sees_account, sees_user
from tertulia.wire.http.parameters import Doc, Int, IntPath, Params
from tertulia.wire.http.routing import ApiResponse, Call, CreatedResponse

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
"""The types of profile fields, with the names that clients show."""

EXTERNAL_ACCOUNTS: Final = {key: service._asdict() for key, service in SERVICES.items()}
"""External services whose accounts profile fields can hold."""


class ProfileFieldObject(Struct, kw_only=True):
    """A custom profile field. `field_data` is JSON, or empty."""

    id: int
    type: int
    name: str
    hint: str
    field_data: str
    order: int
    required: bool
    editable_by_user: bool
    use_for_user_matching: bool | UnsetType = UNSET
    display_in_profile_summary: bool | UnsetType = UNSET


def profile_field(field: ProfileField) -> ProfileFieldObject:
    return ProfileFieldObject(
        id=field.id,
        type=field.kind.value,
        name=field.name,
        hint=field.hint,
        field_data=_field_data(field),
        order=field.order,
        required=field.required,
        editable_by_user=field.editable_by_user,
        use_for_user_matching=True if field.used_for_matching else UNSET,
        display_in_profile_summary=True if field.in_summary else UNSET,
    )


def profile_field_objects(state: State) -> list[ProfileFieldObject]:
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
    """A profile's value of a field. Only text fields have a `rendered_value`, which is HTML."""

    value: str
    rendered_value: str | UnsetType = UNSET


def profile_data(state: State, user_id: int) -> dict[str, ProfileValueObject]:
    """A user's profile values by field ID."""
    return {
        str(value.field_id): profile_value(value) for value in state.profile_values.of_user[user_id]
    }


def profile_value(value: ProfileValue) -> ProfileValueObject:
    return ProfileValueObject(value=value.value, rendered_value=value.rendered or UNSET)


class ProfileFieldsEvent(Event, kw_only=True, tag="custom_profile_fields"):
    """The profile fields changed. Contains all of them in their order. The values of removed fields
    are deleted."""

    fields: list[ProfileFieldObject]


class ProfileValueUpdate(Struct, kw_only=True):
    """A profile's new value of a field; null if it was removed."""

    id: int
    value: str | None
    rendered_value: str | UnsetType = UNSET


class PersonProfileField(Struct, kw_only=True):
    """A user's new value of a profile field."""

    user_id: int
    custom_profile_field: ProfileValueUpdate


class ProfileEvent(Event, kw_only=True, tag="realm_user"):
    """A user's profile changed."""

    op: str = "update"
    person: PersonProfileField


def profile_event(
    user_id: int, field_id: int, value: str | None = None, rendered: str = ""
) -> ProfileEvent:
    update = ProfileValueUpdate(id=field_id, value=value, rendered_value=rendered or UNSET)
    return ProfileEvent(person=PersonProfileField(user_id=user_id, custom_profile_field=update))


def _all_fields(context: ProjectionContext, change: Any) -> Event:
    return ProfileFieldsEvent(fields=profile_field_objects(context.state))


def _visible_dropped(
    context: ProjectionContext, change: ProfileFieldChanged, viewer: Viewer
) -> Hashable:
    """Return the users whose value the change removed, if the viewer can see them."""
    users = context.state.users
    return tuple(
        user_id for user_id in change.dropped if sees_user(context, viewer.user, users[user_id])
    )


def _field_changed(
    context: ProjectionContext, change: ProfileFieldChanged, dropped: Any
) -> Iterable[Event]:
    for user_id in dropped:
        yield profile_event(user_id, change.field.id)
    yield _all_fields(context, change)


def _profile_changed(
    context: ProjectionContext, change: ProfileChanged, view: Any
) -> Iterable[Event]:
    for value in change.values:
        yield profile_event(change.user_id, value.field_id, value.value, value.rendered)
    for field_id in change.emptied:
        yield profile_event(change.user_id, field_id)


MAX_ENTRIES: Final = 1000
"""Profile values per request."""


class ProfileFieldsResponse(ApiResponse, kw_only=True):
    """The fields in their order."""

    custom_fields: list[ProfileFieldObject]


async def get_profile_fields(call: Call) -> ProfileFieldsResponse:
    """Get the custom profile fields."""
    return ProfileFieldsResponse(custom_fields=profile_field_objects(call.state))


class _Field(Params, kw_only=True, frozen=True):
    hint: Annotated[str | None, Doc("At most 80 characters.")] = None
    field_data: Annotated[
        dict[str, str | dict[str, str]] | None,
        Doc(
            "For lists of options, an object with the `text` and `order` of each option by its"
            " key. For external accounts, `subtype`, and for the subtype `custom`, `url_pattern`."
        ),
    ] = None
    display_in_profile_summary: bool | None = None
    required: bool | None = None
    editable_by_user: bool | None = None
    use_for_user_matching: bool | None = None


class CreateProfileField(_Field, kw_only=True, frozen=True):
    name: Annotated[str | None, Doc("Required, except for accounts of a known service.")] = None
    field_type: Annotated[
        Literal[1, 2, 3, 4, 5, 6, 7, 8],
        Doc("An ID of the `custom_profile_field_types` of POST /register."),
    ]


async def create_profile_field(call: Caller, params: CreateProfileField) -> CreatedResponse:
    """Add a custom profile field. Requires an administrator."""
    kind = FieldKind(params.field_type)
    revision = _revision(params, params.name, kind)
    field: ProfileField = await call.submit(profiles.create_field, kind, revision)
    return CreatedResponse(id=field.id)


async def order_profile_fields(call: Caller, order: list[Int]) -> None:
    """Reorder the custom profile fields. Requires an administrator."""
    await call.submit(profiles.order_fields, order)


class UpdateProfileField(_Field, kw_only=True, frozen=True):
    field_id: IntPath
    name: str | None = None


async def update_profile_field(call: Caller, params: UpdateProfileField) -> None:
    """Change a custom profile field. Requires an administrator."""
    field = call.state.profile_fields.get(params.field_id)
    kind = FieldKind.SHORT_TEXT if field is None else field.kind
    revision = _revision(params, params.name, kind)
    await call.submit(profiles.change_field, params.field_id, revision)


async def delete_profile_field(call: Caller, field_id: IntPath) -> None:
    """Delete a custom profile field and its values from all profiles. Requires an administrator."""
    await call.submit(profiles.delete_field, field_id)


def _revision(params: _Field, name: str | None, kind: FieldKind) -> ProfileFieldUpdate:
    return ProfileFieldUpdate(
        name=name,
        hint=params.hint,
        details=None if params.field_data is None else _details(params.field_data, kind),
        in_summary=params.display_in_profile_summary,
        required=params.required,
        editable_by_user=params.editable_by_user,
        used_for_matching=params.use_for_user_matching,
    )


class _Option(Struct, kw_only=True, frozen=True):
    text: str
    order: str


class _Account(Struct, kw_only=True, frozen=True):
    subtype: str
    url_pattern: str | None = None


def _details(data: dict[str, str | dict[str, str]], kind: FieldKind) -> FieldDetails:
    try:
        if kind is FieldKind.CHOICE:
            options = msgspec.convert(data, dict[str, _Option])
            return FieldDetails(
                choices=tuple(
                    Choice(key=key, text=option.text, order=option.order)
                    for key, option in options.items()
                )
            )
        if kind is FieldKind.EXTERNAL_ACCOUNT:
            account = msgspec.convert(data, _Account)
            return FieldDetails(account=account.subtype, url_pattern=account.url_pattern)
    except msgspec.ValidationError as error:
        raise Refused(f"The field data isn't valid for this type of field: {error}") from None
    if data:
        raise Refused("Fields of this type don't accept field data.")
    return FieldDetails()


class ProfileEntry(Struct, kw_only=True, frozen=True):
    """A profile field's new value. Null or an empty value removes it."""

    id: Int
    value: str | list[Int] | None = None


async def new_profile(call: Call, entries: list[ProfileEntry]) -> ProfileUpdate:
    await call.prepare(*(profile_entry.value for profile_entry in entries))
    return ProfileUpdate(
        values=tuple((profile_entry.id, profile_entry.value) for profile_entry in entries),
        render=call.render,
    )


async def update_own_profile(
    call: Call, data: Annotated[list[ProfileEntry], Meta(max_length=MAX_ENTRIES)]
) -> None:
    """Set values in your profile."""
    await call.submit(profiles.change_own, await new_profile(call, data))


async def empty_own_profile(
    call: Call, data: Annotated[list[Int], Meta(max_length=MAX_ENTRIES)]
) -> None:
    """Remove values from your profile."""
    await call.submit(profiles.remove_own_values, data)


def profile_fields_section(context: SectionContext) -> dict[str, Any]:
    """The custom profile fields and their possible types. Spectators don't see profiles."""
    shown = [] if context.viewer is None else profile_field_objects(context.state)
    return {"custom_profile_fields": shown, "custom_profile_field_types": FIELD_TYPES}


SECTIONS: Final[Sections] = {("custom_profile_fields",): profile_fields_section}


PROJECTIONS: Final[Projections] = (
    to_everybody(ProfileFieldCreated, _all_fields),
    to_everybody(ProfileFieldsOrdered, _all_fields),
    to_everybody(ProfileFieldDeleted, _all_fields),
    projected(ProfileFieldChanged, _visible_dropped, _field_changed),
    projected(
        ProfileChanged,
        lambda context, change, viewer: () if sees_account(context, change, viewer) else None,
        _profile_changed,
    ),
)
