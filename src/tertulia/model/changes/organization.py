"""What administrators set up for everybody."""

from typing import Any

from tertulia.model.changes.base import Change
from tertulia.model.organization import DefaultChannelGroup, Domain, Linkifier, Playground


class DomainAdded(Change, frozen=True, tag="domain_added"):
    """Addresses may be of one more domain."""

    domain: Domain


class DomainChanged(Change, frozen=True, tag="domain_changed"):
    """A domain's subdomains are allowed, or not any more."""

    domain: Domain


class DomainRemoved(Change, frozen=True, tag="domain_removed"):
    """A domain is none of the organization's any more. `name` is what it was called."""

    domain_id: int
    name: str


class LinkifierSet(Change, frozen=True, tag="linkifier_set"):
    """A linkifier is new, or is another than before."""

    linkifier: Linkifier


class LinkifierRemoved(Change, frozen=True, tag="linkifier_removed"):
    """A linkifier is gone."""

    linkifier_id: int


class LinkifiersOrdered(Change, frozen=True, tag="linkifiers_ordered"):
    """The linkifiers, all of them, have this order."""

    linkifier_ids: tuple[int, ...]


class PlaygroundAdded(Change, frozen=True, tag="playground_added"):
    """There is one more playground."""

    playground: Playground


class PlaygroundRemoved(Change, frozen=True, tag="playground_removed"):
    """A playground is gone."""

    playground_id: int


class DefaultChannelGroupSet(Change, frozen=True, tag="default_channel_group_set"):
    """A group of channels for new users is new, or is another than before."""

    group: DefaultChannelGroup


class DefaultChannelGroupRemoved(Change, frozen=True, tag="default_channel_group_removed"):
    """A group of channels for new users is gone."""

    group_id: int


class RealmDefaultsChanged(Change, frozen=True, tag="realm_defaults_changed"):
    """Settings that new accounts begin with have new values."""

    values: dict[str, Any]


class OnboardingStepTaken(Change, frozen=True, tag="onboarding_step_taken"):
    """A user has seen a hint for beginners."""

    user_id: int
    name: str
