"""Linkifiers: patterns in messages that become links."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Struct, UnsetType, convert

from tertulia.domain.organization import linkifiers as linkifiers
from tertulia.domain.organization.linkifiers import LinkifierValues
from tertulia.model import changes
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, to_everybody
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Doc, Int, IntPath, Params, Reads
from tertulia.wire.http.routing import ApiResponse, Call, CreatedResponse


class LinkifierObject(Struct, kw_only=True):
    """A pattern whose matches in messages become links."""

    id: int
    pattern: str
    url_template: str
    example_input: str | None
    reverse_template: str | None
    alternative_url_templates: list[str]


def linkifier_objects(state: State) -> list[LinkifierObject]:
    """Return all linkifiers, highest precedence first."""
    linkifiers = list(state.linkifiers_in_order)
    return convert(linkifiers, list[LinkifierObject], from_attributes=True)


class LinkifiersEvent(Event, kw_only=True, tag="realm_linkifiers"):
    """The linkifiers changed. Contains all of them."""

    realm_linkifiers: list[LinkifierObject]


def _event(context: ProjectionContext, change: Any) -> Event:
    return LinkifiersEvent(realm_linkifiers=linkifier_objects(context.state))


def _supports_templates(context: ProjectionContext, change: Any, viewer: Viewer) -> bool:
    return viewer.registration.capabilities.linkifier_url_template


class LinkifiersResponse(ApiResponse, kw_only=True):
    """The linkifiers, highest precedence first."""

    linkifiers: list[LinkifierObject]


async def get_linkifiers(call: Call) -> LinkifiersResponse:
    """Get the organization's linkifiers."""
    return LinkifiersResponse(linkifiers=linkifier_objects(call.state))


async def order_linkifiers(
    call: Caller,
    ordered_linkifier_ids: Annotated[
        list[Int], Doc("The IDs of all linkifiers, highest precedence first.")
    ],
) -> None:
    """Reorder the linkifiers. Requires an administrator."""
    await call.submit(linkifiers.order, ordered_linkifier_ids)


TEXT_OR_NULL = Reads(str, {"type": "string"})
"""Reads a string, or the word `null` as a missing value."""


class _LinkifierOptions(Params, kw_only=True, frozen=True):
    example_input: Annotated[
        str | UnsetType | None,
        TEXT_OR_NULL,
        Doc("A text that the pattern matches. Required with `reverse_template`."),
    ] = UNSET
    reverse_template: Annotated[
        str | UnsetType | None,
        TEXT_OR_NULL,
        Doc(
            "The text that turns back into the link: `{name}` is a variable, and `{{` and `}}`"
            " are literal braces."
        ),
    ] = UNSET
    alternative_url_templates: Annotated[
        list[str] | UnsetType, Doc("Other URLs with the same meaning.")
    ] = UNSET


class AddLinkifier(_LinkifierOptions, kw_only=True, frozen=True):
    pattern: Annotated[
        str, Doc("A regular expression (RE2). Its named groups are the URL's variables.")
    ]
    url_template: Annotated[str, Doc("A URI template (RFC 6570).")]


async def add_linkifier(call: Caller, params: AddLinkifier) -> CreatedResponse:
    """Add a linkifier with the lowest precedence. Requires an administrator."""
    return CreatedResponse(id=await call.submit(linkifiers.add, _values(params)))


class ChangeLinkifier(_LinkifierOptions, kw_only=True, frozen=True):
    filter_id: IntPath
    pattern: str | UnsetType = UNSET
    url_template: str | UnsetType = UNSET


def _values(params: AddLinkifier | ChangeLinkifier) -> LinkifierValues:
    return LinkifierValues(
        **{name: getattr(params, name) for name in LinkifierValues.__struct_fields__}
    )


async def change_linkifier(call: Caller, params: ChangeLinkifier) -> None:
    """Change a linkifier. Requires an administrator. An empty string clears an optional value."""
    await call.submit(linkifiers.change, params.filter_id, _values(params))


async def remove_linkifier(call: Caller, filter_id: IntPath) -> None:
    """Remove a linkifier. Requires an administrator."""
    await call.submit(linkifiers.remove, filter_id)


def linkifiers_section(context: SectionContext) -> dict[str, Any]:
    """The linkifiers, for clients that support their URL templates."""
    supported = context.registration.capabilities.linkifier_url_template
    return {"realm_linkifiers": linkifier_objects(context.state) if supported else []}


SECTIONS: Final[Sections] = {
    ("realm_linkifiers",): linkifiers_section,
    ("realm_filters",): lambda _: {"realm_filters": []},
}


PROJECTIONS: Final[Projections] = (
    to_everybody(changes.LinkifierSet, _event, only_if=_supports_templates),
    to_everybody(changes.LinkifierRemoved, _event, only_if=_supports_templates),
    to_everybody(changes.LinkifiersOrdered, _event, only_if=_supports_templates),
)
