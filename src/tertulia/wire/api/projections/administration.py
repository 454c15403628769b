"""Events of what administrators set up for everybody, and of hints for beginners."""

from collections.abc import Iterable
from typing import Any, Final

from tertulia.domain import permissions
from tertulia.domain.accounts import onboarding
from tertulia.model import changes
from tertulia.state.folds.registry import revised
from tertulia.state.organization import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.administration import (
    DefaultChannelGroupObject,
    DomainObject,
    LinkifierObject,
    OnboardingStepObject,
    PlaygroundObject,
    default_group_objects,
    domain_object,
    linkifier_objects,
    onboarding_objects,
    playground_objects,
)
from tertulia.wire.api.objects.settings import settings_object, wire_name
from tertulia.wire.api.projection import (
    ForEverybody,
    ProjectionContext,
    Projections,
    Viewer,
    to_everybody,
    to_owner,
)

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
            onboarding_steps=onboarding_objects(onboarding.left(context.state, change.user_id))
        ),
    ),
)
