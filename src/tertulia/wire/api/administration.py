"""What administrators set up for everybody, on the wire."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import navigation
from tertulia.domain.organization import domains, linkifiers, playgrounds
from tertulia.domain.organization.linkifiers import LinkifierValues
from tertulia.model import changes
from tertulia.model.organization import DefaultChannelGroup, Domain, Linkifier, Playground
from tertulia.service.caller import Caller
from tertulia.state.folds import revised
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import (
    ForEverybody,
    ProjectionContext,
    Projections,
    Viewer,
    to_everybody,
    to_owner,
)
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.api.settings import settings_object, wire_name
from tertulia.wire.http.parameters import Int, NoParams, Params, Path, Reads
from tertulia.wire.http.routing import ApiResponse, Call


class DomainObject(Struct, kw_only=True):
    """A domain that the addresses of new accounts may be of."""

    domain: str
    allow_subdomains: bool


class LinkifierObject(Struct, kw_only=True):
    """Makes links of what is written in a certain way."""

    id: int
    pattern: str
    url_template: str
    example_input: str | None
    reverse_template: str | None
    alternative_url_templates: list[str]


class PlaygroundObject(Struct, kw_only=True):
    """A place on the web where code can be tried."""

    id: int
    name: str
    pygments_language: str
    url_template: str


class DefaultChannelGroupObject(Struct, kw_only=True):
    """Channels that a new user can choose together."""

    id: int
    name: str
    description: str
    streams: list[int]


class OnboardingStepObject(Struct, kw_only=True):
    """A hint that the user has not seen."""

    type: str
    name: str


def domain_object(domain: Domain) -> DomainObject:
    """The domain."""
    return DomainObject(domain=domain.name, allow_subdomains=domain.allow_subdomains)


def domain_objects(state: State) -> list[DomainObject]:
    """All domains, in the order in which they were added."""
    return [domain_object(domain) for domain in sorted(state.domains, key=lambda d: d.id)]


def linkifier_objects(state: State) -> list[LinkifierObject]:
    """All linkifiers, the one that wins over the others first."""
    return [_linkifier(linkifier) for linkifier in state.linkifiers_in_order]


def _linkifier(linkifier: Linkifier) -> LinkifierObject:
    return LinkifierObject(
        id=linkifier.id,
        pattern=linkifier.pattern,
        url_template=linkifier.url_template,
        example_input=linkifier.example_input,
        reverse_template=linkifier.reverse_template,
        alternative_url_templates=list(linkifier.alternative_url_templates),
    )


def playground_objects(state: State) -> list[PlaygroundObject]:
    """All playgrounds, by ID."""
    return [_playground(one) for one in sorted(state.playgrounds, key=lambda one: one.id)]


def _playground(playground: Playground) -> PlaygroundObject:
    return PlaygroundObject(
        id=playground.id,
        name=playground.name,
        pygments_language=playground.language,
        url_template=playground.url_template,
    )


def default_group_objects(state: State) -> list[DefaultChannelGroupObject]:
    """All groups of default channels, by ID."""
    return [
        _default_group(group) for group in sorted(state.default_channel_groups, key=lambda g: g.id)
    ]


def _default_group(group: DefaultChannelGroup) -> DefaultChannelGroupObject:
    return DefaultChannelGroupObject(
        id=group.id,
        name=group.name,
        description=group.description,
        streams=list(group.channel_ids),
    )


def onboarding_objects(names: list[str]) -> list[OnboardingStepObject]:
    """Hints by their names."""
    return [OnboardingStepObject(type="one_time_notice", name=name) for name in names]


# Domains


class DomainAddEvent(Event, kw_only=True, tag="realm_domains"):
    """The addresses of new accounts may be of one more domain."""

    op: str = "add"
    realm_domain: DomainObject


class DomainChangeEvent(Event, kw_only=True, tag="realm_domains"):
    """A domain's subdomains are allowed, or not any more."""

    op: str = "change"
    realm_domain: DomainObject


class DomainRemoveEvent(Event, kw_only=True, tag="realm_domains"):
    """The domain is none of the organization's any more."""

    op: str = "remove"
    domain: str


# Linkifiers


class LinkifiersEvent(Event, kw_only=True, tag="realm_linkifiers"):
    """The linkifiers: all of them, as they are now."""

    realm_linkifiers: list[LinkifierObject]


def _linkifiers(context: ProjectionContext, change: Any) -> Event:
    return LinkifiersEvent(realm_linkifiers=linkifier_objects(context.state))


def _knows_templates(context: ProjectionContext, change: Any, viewer: Viewer) -> bool:
    return viewer.registration.capabilities.linkifier_url_template


# Playgrounds


class PlaygroundsEvent(Event, kw_only=True, tag="realm_playgrounds"):
    """The playgrounds: all of them, as they are now."""

    realm_playgrounds: list[PlaygroundObject]


def _playgrounds(context: ProjectionContext, change: Any) -> Event:
    return PlaygroundsEvent(realm_playgrounds=playground_objects(context.state))


# Groups of default channels


class DefaultChannelGroupsEvent(Event, kw_only=True, tag="default_stream_groups"):
    """The groups of channels that a new user can choose: all of them, as they are now."""

    default_stream_groups: list[DefaultChannelGroupObject]


def default_channel_groups(state: State) -> DefaultChannelGroupsEvent:
    """The event that lists them."""
    return DefaultChannelGroupsEvent(default_stream_groups=default_group_objects(state))


def _groups(context: ProjectionContext, change: Any) -> Event:
    return default_channel_groups(context.state)


def _is_no_guest(context: ProjectionContext, change: Any, viewer: Viewer) -> bool:
    return not permissions.is_guest(context.state, viewer.user)


# Settings that new accounts begin with


class DefaultSettingEvent(Event, kw_only=True, tag="realm_user_settings_defaults"):
    """New accounts begin with another value of a setting."""

    op: str = "update"
    property: str
    value: bool | int | str | None


class RealmDefaultsChangedProjection(ForEverybody[changes.RealmDefaultsChanged]):
    """New defaults."""

    of = changes.RealmDefaultsChanged

    def events(
        self, context: ProjectionContext, change: changes.RealmDefaultsChanged, view: Any
    ) -> Iterable[Event]:
        shown = settings_object(revised(context.state.default_settings, change.values))
        for field in change.values:
            name = wire_name(field)
            yield DefaultSettingEvent(property=name, value=shown[name])


# Hints for beginners


class OnboardingStepsEvent(Event, kw_only=True, tag="onboarding_steps"):
    """The hints that the user has not seen yet."""

    onboarding_steps: list[OnboardingStepObject]


# Domains


class Domains(ApiResponse, kw_only=True):
    """The domains, in the order in which they were added."""

    domains: list[DomainObject]


async def get_domains(call: Call, params: NoParams) -> Domains:
    """The domains of which the addresses of new accounts may be, where they are restricted."""
    return Domains(domains=domain_objects(call.state))


class AddDomain(Params, kw_only=True, frozen=True):
    """A domain."""

    domain: str
    allow_subdomains: bool


class NewDomain(ApiResponse, kw_only=True):
    """The domain's ID and name."""

    new_domain: tuple[int, str]


async def add_domain(call: Caller, params: AddDomain) -> NewDomain:
    """Add a domain, for owners."""
    domain = await call.submit(domains.add, params.domain, params.allow_subdomains)
    return NewDomain(new_domain=(domain.id, domain.name))


class OneDomain(Params, kw_only=True, frozen=True):
    """A domain that is there."""

    domain: Annotated[str, Path()]


class ChangeDomain(OneDomain, kw_only=True, frozen=True):
    """Whether its subdomains count."""

    allow_subdomains: bool


async def change_domain(call: Caller, params: ChangeDomain) -> ApiResponse:
    """Say whether a domain's subdomains count, for owners."""
    await call.submit(domains.change, params.domain, params.allow_subdomains)
    return ApiResponse()


async def remove_domain(call: Caller, params: OneDomain) -> ApiResponse:
    """Remove a domain, for owners. With the last one, addresses are not restricted any more."""
    await call.submit(domains.remove, params.domain)
    return ApiResponse()


# Linkifiers


class Linkifiers(ApiResponse, kw_only=True):
    """The linkifiers, the one that wins over the others first."""

    linkifiers: list[LinkifierObject]


async def get_linkifiers(call: Call, params: NoParams) -> Linkifiers:
    """What is made a link of, and how."""
    return Linkifiers(linkifiers=linkifier_objects(call.state))


class OrderLinkifiers(Params, kw_only=True, frozen=True):
    """The IDs of all linkifiers."""

    ordered_linkifier_ids: list[Int]


async def order_linkifiers(call: Caller, params: OrderLinkifiers) -> ApiResponse:
    """Give the linkifiers another order, for administrators."""
    await call.submit(linkifiers.order, params.ordered_linkifier_ids)
    return ApiResponse()


TEXT_OR_NULL = Reads(str, {"type": "string"})
"""A string, where the text `null` says that there is none."""


class _LinkifierOptions(Params, kw_only=True, frozen=True):
    """How a link is made into text again."""

    example_input: Annotated[
        str | UnsetType | None,
        TEXT_OR_NULL,
        Meta(description="Something that the pattern matches. A reverse template needs it."),
    ] = UNSET
    reverse_template: Annotated[
        str | UnsetType | None,
        TEXT_OR_NULL,
        Meta(description="What is written: `{name}` is a variable, `{{` and `}}` are braces."),
    ] = UNSET
    alternative_url_templates: Annotated[
        list[str] | UnsetType, Meta(description="Other links that mean the same.")
    ] = UNSET


class AddLinkifier(_LinkifierOptions, kw_only=True, frozen=True):
    """A linkifier."""

    pattern: Annotated[
        str, Meta(description="A regular expression (RE2), whose groups are the variables.")
    ]
    url_template: Annotated[str, Meta(description="RFC 6570.")]


class NewId(ApiResponse, kw_only=True):
    """The ID of what is new."""

    id: int


async def add_linkifier(call: Caller, params: AddLinkifier) -> NewId:
    """Add a linkifier after all others, for administrators."""
    return NewId(id=await call.submit(linkifiers.add, _given(params)))


class OneLinkifier(Params, kw_only=True, frozen=True):
    """A linkifier that is there."""

    filter_id: Annotated[Int, Path()]


class ChangeLinkifier(_LinkifierOptions, kw_only=True, frozen=True):
    """What is to be new of a linkifier; an empty text takes it away where it can be missing."""

    filter_id: Annotated[Int, Path()]
    pattern: str | UnsetType = UNSET
    url_template: str | UnsetType = UNSET


async def change_linkifier(call: Caller, params: ChangeLinkifier) -> ApiResponse:
    """Change a linkifier, for administrators."""
    await call.submit(linkifiers.change, params.filter_id, _given(params))
    return ApiResponse()


def _given(params: AddLinkifier | ChangeLinkifier) -> LinkifierValues:
    return LinkifierValues(
        pattern=params.pattern,
        url_template=params.url_template,
        example_input=params.example_input,
        reverse_template=params.reverse_template,
        alternative_url_templates=params.alternative_url_templates,
    )


async def remove_linkifier(call: Caller, params: OneLinkifier) -> ApiResponse:
    """Remove a linkifier, for administrators."""
    await call.submit(linkifiers.remove, params.filter_id)
    return ApiResponse()


# Playgrounds


class AddPlayground(Params, kw_only=True, frozen=True):
    """A place on the web where code can be tried."""

    name: str
    pygments_language: str
    url_template: Annotated[
        str, Meta(description="RFC 6570, with the variable `code` and no other.")
    ]


async def add_playground(call: Caller, params: AddPlayground) -> NewId:
    """Add a code playground, for administrators."""
    playground_id = await call.submit(
        playgrounds.add, params.name, params.pygments_language, params.url_template
    )
    return NewId(id=playground_id)


class OnePlayground(Params, kw_only=True, frozen=True):
    """A playground that is there."""

    playground_id: Annotated[Int, Path()]


async def remove_playground(call: Caller, params: OnePlayground) -> ApiResponse:
    """Remove a code playground, for administrators."""
    await call.submit(playgrounds.remove, params.playground_id)
    return ApiResponse()


def linkifiers_section(context: SectionContext) -> dict[str, Any]:
    """The linkifiers, for clients that support their URL templates."""
    supported = context.registration.capabilities.linkifier_url_template
    return {"realm_linkifiers": linkifier_objects(context.state) if supported else []}


def onboarding_section(context: SectionContext) -> dict[str, Any]:
    """The onboarding steps that the viewer hasn't seen. There's no video tour."""
    viewer = context.viewer
    left = [] if viewer is None else navigation.onboarding_steps_left(context.state, viewer.id)
    return {"onboarding_steps": onboarding_objects(left), "navigation_tour_video_url": None}


SECTIONS: Final[Sections] = {
    ("realm_domains",): lambda context: {"realm_domains": domain_objects(context.state)},
    ("realm_linkifiers",): linkifiers_section,
    ("realm_filters",): lambda _: {"realm_filters": []},
    ("realm_playgrounds",): lambda context: {
        "realm_playgrounds": playground_objects(context.state)
    },
    ("onboarding_steps",): onboarding_section,
}


PROJECTIONS: Final[Projections] = (
    to_everybody(
        changes.DomainAdded,
        lambda _, change: DomainAddEvent(realm_domain=domain_object(change.domain)),
    ),
    to_everybody(
        changes.DomainChanged,
        lambda _, change: DomainChangeEvent(realm_domain=domain_object(change.domain)),
    ),
    to_everybody(changes.DomainRemoved, lambda _, change: DomainRemoveEvent(domain=change.name)),
    to_everybody(changes.LinkifierSet, _linkifiers, only_if=_knows_templates),
    to_everybody(changes.LinkifierRemoved, _linkifiers, only_if=_knows_templates),
    to_everybody(changes.LinkifiersOrdered, _linkifiers, only_if=_knows_templates),
    to_everybody(changes.PlaygroundAdded, _playgrounds),
    to_everybody(changes.PlaygroundRemoved, _playgrounds),
    to_everybody(changes.DefaultChannelGroupSet, _groups, only_if=_is_no_guest),
    to_everybody(changes.DefaultChannelGroupRemoved, _groups, only_if=_is_no_guest),
    RealmDefaultsChangedProjection(),
    to_owner(
        changes.OnboardingStepTaken,
        lambda context, change: OnboardingStepsEvent(
            onboarding_steps=onboarding_objects(
                navigation.onboarding_steps_left(context.state, change.user_id)
            )
        ),
    ),
)
