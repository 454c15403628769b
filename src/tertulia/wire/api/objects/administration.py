"""What administrators set up for everybody, on the wire."""

from msgspec import Struct

from tertulia.model.organization import DefaultChannelGroup, Domain, Linkifier, Playground
from tertulia.state.organization import State


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
