"""The fields that profiles have, and what one's own profile has in them."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from tertulia.domain.accounts import profile_fields, profiles
from tertulia.domain.accounts.profile_fields import Details, Revision
from tertulia.domain.accounts.profiles import NewProfile
from tertulia.model.errors import Refused
from tertulia.model.profiles import Choice, FieldKind, ProfileField
from tertulia.service.caller import Caller
from tertulia.wire.api.objects.profiles import ProfileFieldObject
from tertulia.wire.api.objects.profiles import profile_fields as all_fields
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer

MAX_ENTRIES: Final = 1000
"""Of a profile, in one request."""

# The fields


class ProfileFields(Answer, kw_only=True):
    """The fields in their order."""

    custom_fields: list[ProfileFieldObject]


async def get_profile_fields(call: Call, params: NoParams) -> ProfileFields:
    """The fields that profiles have."""
    return ProfileFields(custom_fields=all_fields(call.state))


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


class CreatedProfileField(Answer, kw_only=True):
    """The new field's ID."""

    id: int


async def create_profile_field(call: Caller, params: CreateProfileField) -> CreatedProfileField:
    """Add a field to all profiles, for administrators."""
    kind = FieldKind(params.field_type)
    revision = _revision(params, params.name, kind)
    field: ProfileField = await call.submit(profile_fields.create, kind, revision)
    return CreatedProfileField(id=field.id)


class OrderProfileFields(Params, kw_only=True, frozen=True):
    """An order of all fields."""

    order: list[Int]


async def order_profile_fields(call: Caller, params: OrderProfileFields) -> Answer:
    """Put the fields in another order, for administrators."""
    await call.submit(profile_fields.order, params.order)
    return Answer()


class UpdateProfileField(_Field, kw_only=True, frozen=True):
    """What is to be new about a field."""

    field_id: Annotated[Int, Path()]
    name: str | None = None


async def update_profile_field(call: Caller, params: UpdateProfileField) -> Answer:
    """Change a field, for administrators."""
    field = call.state.profile_fields.get(params.field_id)
    kind = FieldKind.SHORT_TEXT if field is None else field.kind
    revision = _revision(params, params.name, kind)
    await call.submit(profile_fields.change, params.field_id, revision)
    return Answer()


class OneProfileField(Params, kw_only=True, frozen=True):
    """A field by ID."""

    field_id: Annotated[Int, Path()]


async def delete_profile_field(call: Caller, params: OneProfileField) -> Answer:
    """Take a field from all profiles, for administrators."""
    await call.submit(profile_fields.delete, params.field_id)
    return Answer()


def _revision(params: _Field, name: str | None, kind: FieldKind) -> Revision:
    return Revision(
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


def _details(data: dict[str, str | dict[str, str]], kind: FieldKind) -> Details:
    try:
        if kind is FieldKind.CHOICE:
            options = msgspec.convert(data, dict[str, _Option])
            return Details(
                choices=tuple(
                    Choice(key=key, text=option.text, order=option.order)
                    for key, option in options.items()
                )
            )
        if kind is FieldKind.EXTERNAL_ACCOUNT:
            account = msgspec.convert(data, _Account)
            return Details(account=account.subtype, url_pattern=account.url_pattern)
    except msgspec.ValidationError as error:
        raise Refused(f"The field data isn't valid for this type of field: {error}") from None
    if data:
        raise Refused("Fields of this type don't accept field data.")
    return Details()


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


async def update_own_profile(call: Call, params: UpdateProfile) -> Answer:
    """Change one's own profile."""
    await call.submit(profiles.change_own, await new_profile(call, params.data))
    return Answer()


class EmptyProfile(Params, kw_only=True, frozen=True):
    """The fields to empty."""

    data: Annotated[list[Int], Meta(max_length=MAX_ENTRIES)]


async def empty_own_profile(call: Call, params: EmptyProfile) -> Answer:
    """Take what one's own profile has in some fields away."""
    await call.submit(profiles.empty_own, params.data)
    return Answer()
