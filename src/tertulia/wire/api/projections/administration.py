"""Events of what administrators set up for everybody, and of hints for beginners."""

from collections.abc import Hashable, Iterable
from typing import Any

from tertulia.domain import permissions
from tertulia.domain.accounts import onboarding
from tertulia.model import changes
from tertulia.state.folds.registry import revised
from tertulia.state.organization import State
from tertulia.wire.api.events import Event, ForAll, ForOwner, Projection, ProjectionContext, Viewer
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


class DomainAddedProjection(ForAll[changes.DomainAdded]):
    """A new domain."""

    of = changes.DomainAdded

    def events(
        self, context: ProjectionContext, change: changes.DomainAdded, view: Any
    ) -> Iterable[Event]:
        yield DomainAddEvent(realm_domain=domain_object(change.domain))


class DomainChangedProjection(ForAll[changes.DomainChanged]):
    """A domain is another than before."""

    of = changes.DomainChanged

    def events(
        self, context: ProjectionContext, change: changes.DomainChanged, view: Any
    ) -> Iterable[Event]:
        yield DomainChangeEvent(realm_domain=domain_object(change.domain))


class DomainRemovedProjection(ForAll[changes.DomainRemoved]):
    """A domain is gone."""

    of = changes.DomainRemoved

    def events(
        self, context: ProjectionContext, change: changes.DomainRemoved, view: Any
    ) -> Iterable[Event]:
        yield DomainRemoveEvent(domain=change.name)


# Linkifiers


class LinkifiersEvent(Event, kw_only=True, tag="realm_linkifiers"):
    """The linkifiers: all of them, as they are now."""

    realm_linkifiers: list[LinkifierObject]


AnyLinkifierChange = changes.LinkifierSet | changes.LinkifierRemoved | changes.LinkifiersOrdered


class _LinkifiersProjection(Projection[Any]):
    """All linkifiers, to the clients that know what to make of them."""

    def audience(self, state: State, change: AnyLinkifierChange) -> None:
        return None

    def view(
        self, context: ProjectionContext, change: AnyLinkifierChange, viewer: Viewer
    ) -> Hashable | None:
        return () if viewer.registration.capabilities.linkifier_url_template else None

    def events(
        self, context: ProjectionContext, change: AnyLinkifierChange, view: Any
    ) -> Iterable[Event]:
        yield LinkifiersEvent(realm_linkifiers=linkifier_objects(context.state))


class LinkifierSetProjection(_LinkifiersProjection):
    """A linkifier is new, or another than before."""

    of = changes.LinkifierSet


class LinkifierRemovedProjection(_LinkifiersProjection):
    """A linkifier is gone."""

    of = changes.LinkifierRemoved


class LinkifiersOrderedProjection(_LinkifiersProjection):
    """The linkifiers have another order."""

    of = changes.LinkifiersOrdered


# Playgrounds


class PlaygroundsEvent(Event, kw_only=True, tag="realm_playgrounds"):
    """The playgrounds: all of them, as they are now."""

    realm_playgrounds: list[PlaygroundObject]


class _PlaygroundsProjection(ForAll[Any]):
    """All playgrounds."""

    def events(self, context: ProjectionContext, change: Any, view: Any) -> Iterable[Event]:
        yield PlaygroundsEvent(realm_playgrounds=playground_objects(context.state))


class PlaygroundAddedProjection(_PlaygroundsProjection):
    """There is one more playground."""

    of = changes.PlaygroundAdded


class PlaygroundRemovedProjection(_PlaygroundsProjection):
    """A playground is gone."""

    of = changes.PlaygroundRemoved


# Groups of default channels


class DefaultChannelGroupsEvent(Event, kw_only=True, tag="default_stream_groups"):
    """The groups of channels that a new user can choose: all of them, as they are now."""

    default_stream_groups: list[DefaultChannelGroupObject]


def default_channel_groups(state: State) -> DefaultChannelGroupsEvent:
    """The event that lists them."""
    return DefaultChannelGroupsEvent(default_stream_groups=default_group_objects(state))


class _DefaultChannelGroupsProjection(Projection[Any]):
    """All groups, to everybody but guests, to whom most channels are nothing."""

    def audience(self, state: State, change: Any) -> None:
        return None

    def view(self, context: ProjectionContext, change: Any, viewer: Viewer) -> Hashable | None:
        return None if permissions.is_guest(context.state, viewer.user) else ()

    def events(self, context: ProjectionContext, change: Any, view: Any) -> Iterable[Event]:
        yield default_channel_groups(context.state)


class DefaultChannelGroupSetProjection(_DefaultChannelGroupsProjection):
    """A group is new, or another than before."""

    of = changes.DefaultChannelGroupSet


class DefaultChannelGroupRemovedProjection(_DefaultChannelGroupsProjection):
    """A group is gone."""

    of = changes.DefaultChannelGroupRemoved


# Settings that new accounts begin with


class DefaultSettingEvent(Event, kw_only=True, tag="realm_user_settings_defaults"):
    """New accounts begin with another value of a setting."""

    op: str = "update"
    property: str
    value: bool | int | str | None


class RealmDefaultsChangedProjection(ForAll[changes.RealmDefaultsChanged]):
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


class OnboardingStepTakenProjection(ForOwner[changes.OnboardingStepTaken]):
    """What is left."""

    of = changes.OnboardingStepTaken

    def events(
        self, context: ProjectionContext, change: changes.OnboardingStepTaken, view: Any
    ) -> Iterable[Event]:
        left = onboarding.left(context.state, change.user_id)
        yield OnboardingStepsEvent(onboarding_steps=onboarding_objects(left))
