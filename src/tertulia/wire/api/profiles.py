"""Profiles on the wire."""

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.accounts import profiles
from tertulia.domain.accounts.profiles import (
    SERVICES,
    FieldDetails,
    NewProfile,
    ProfileFieldUpdate,
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
from tertulia.service.caller import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import (
    ForEverybody,
    ProjectionContext,
    Projections,
    Viewer,
    to_everybody,
)
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.api.visibility import sees_account, sees_user
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call

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
    """What a profile has in a field. `rendered_value` is HTML, of texts alone."""

    value: str
    rendered_value: str | UnsetType = UNSET


def profile_data(state: State, user_id: int) -> dict[str, ProfileValueObject]:
    """What somebody's profile has, by the fields' IDs."""
    return {
        str(value.field_id): profile_value(value) for value in state.profile_values.of_user[user_id]
    }


def profile_value(value: ProfileValue) -> ProfileValueObject:
    """One value."""
    return ProfileValueObject(value=value.value, rendered_value=value.rendered or UNSET)


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
    return ProfileFieldsEvent(fields=profile_field_objects(context.state))


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


MAX_ENTRIES: Final = 1000
"""Of a profile, in one request."""

# The fields


class ProfileFields(ApiResponse, kw_only=True):
    """The fields in their order."""

    custom_fields: list[ProfileFieldObject]


async def get_profile_fields(call: Call, params: NoParams) -> ProfileFields:
    """The fields that profiles have."""
    return ProfileFields(custom_fields=profile_field_objects(call.state))


class _Field(Params, kw_only=True, frozen=True):
    """What is particular to a field."""

    hint: Annotated[str | None, Meta(description="At most 80 characters.")] = None
    field_data: Annotated[
        dict[str, str | dict[str, str]] | None,
        Meta(
            description="Of a list of options: by key, each with `text` and `order`. Of an external"
            " account: `subtype`, and for `custom` the `url_pattern`."
        ),
    ] = None
    display_in_profile_summary: bool | None = None
    required: bool | None = None
    editable_by_user: bool | None = None
    use_for_user_matching: bool | None = None


class CreateProfileField(_Field, kw_only=True, frozen=True):
    """A field to be."""

    name: Annotated[str | None, Meta(description="Needed but for accounts at a known service.")] = (
        None
    )
    field_type: Annotated[
        Literal[1, 2, 3, 4, 5, 6, 7, 8],
        Meta(description="One of custom_profile_field_types of POST /register."),
    ]


class CreatedProfileField(ApiResponse, kw_only=True):
    """The new field's ID."""

    id: int


async def create_profile_field(call: Caller, params: CreateProfileField) -> CreatedProfileField:
    """Add a field to all profiles, for administrators."""
    kind = FieldKind(params.field_type)
    revision = _revision(params, params.name, kind)
    field: ProfileField = await call.submit(profiles.create_field, kind, revision)
    return CreatedProfileField(id=field.id)


class OrderProfileFields(Params, kw_only=True, frozen=True):
    """An order of all fields."""

    order: list[Int]


async def order_profile_fields(call: Caller, params: OrderProfileFields) -> ApiResponse:
    """Put the fields in another order, for administrators."""
    await call.submit(profiles.order_fields, params.order)
    return ApiResponse()


class UpdateProfileField(_Field, kw_only=True, frozen=True):
    """What is to be new about a field."""

    field_id: Annotated[Int, Path()]
    name: str | None = None


async def update_profile_field(call: Caller, params: UpdateProfileField) -> ApiResponse:
    """Change a field, for administrators."""
    field = call.state.profile_fields.get(params.field_id)
    kind = FieldKind.SHORT_TEXT if field is None else field.kind
    revision = _revision(params, params.name, kind)
    await call.submit(profiles.change_field, params.field_id, revision)
    return ApiResponse()


class OneProfileField(Params, kw_only=True, frozen=True):
    """A field by ID."""

    field_id: Annotated[Int, Path()]


async def delete_profile_field(call: Caller, params: OneProfileField) -> ApiResponse:
    """Take a field from all profiles, for administrators."""
    await call.submit(profiles.delete_field, params.field_id)
    return ApiResponse()


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


# One's own profile


class ProfileEntry(Struct, kw_only=True, frozen=True):
    """The value of a profile field; null or nothing takes it away."""

    id: Int
    value: str | list[Int] | None = None


async def new_profile(call: Call, entries: list[ProfileEntry]) -> NewProfile:
    """What is to be in a profile."""
    await call.prepare(*(one.value for one in entries))
    return NewProfile(values=tuple((one.id, one.value) for one in entries), render=call.render)


class UpdateProfile(Params, kw_only=True, frozen=True):
    """What is to be in one's own profile."""

    data: Annotated[list[ProfileEntry], Meta(max_length=MAX_ENTRIES)]


async def update_own_profile(call: Call, params: UpdateProfile) -> ApiResponse:
    """Change one's own profile."""
    await call.submit(profiles.change_own, await new_profile(call, params.data))
    return ApiResponse()


class EmptyProfile(Params, kw_only=True, frozen=True):
    """The fields to empty."""

    data: Annotated[list[Int], Meta(max_length=MAX_ENTRIES)]


async def empty_own_profile(call: Call, params: EmptyProfile) -> ApiResponse:
    """Take what one's own profile has in some fields away."""
    await call.submit(profiles.empty_own, params.data)
    return ApiResponse()


def profile_fields_section(context: SectionContext) -> dict[str, Any]:
    """The custom profile fields and their possible types. Spectators don't see profiles."""
    shown = [] if context.viewer is None else profile_field_objects(context.state)
    return {"custom_profile_fields": shown, "custom_profile_field_types": FIELD_TYPES}


SECTIONS: Final[Sections] = {("custom_profile_fields",): profile_fields_section}


PROJECTIONS: Final[Projections] = (
    to_everybody(ProfileFieldCreated, _all_fields),
    to_everybody(ProfileFieldsOrdered, _all_fields),
    to_everybody(ProfileFieldDeleted, _all_fields),
    ProfileFieldChangedProjection(),
    ProfileChangedProjection(),
)
