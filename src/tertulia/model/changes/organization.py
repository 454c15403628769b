"""What administrators set up for everybody."""

from typing import Any

from tertulia.model.changes.base import Change
from tertulia.model.organization import DefaultChannelGroup, Domain, Linkifier, Playground


class DomainAdded(Change, frozen=True, tag="domain_added"):
    """A domain was added to those of which new addresses may be."""

    domain: Domain


class DomainChanged(Change, frozen=True, tag="domain_changed"):
    """Whether a domain's subdomains are allowed was changed."""

    domain: Domain


class DomainRemoved(Change, frozen=True, tag="domain_removed"):
    """A domain was removed. `name` is its name."""

    domain_id: int
    name: str


class LinkifierSet(Change, frozen=True, tag="linkifier_set"):
    """A linkifier was added or changed."""

    linkifier: Linkifier


class LinkifierRemoved(Change, frozen=True, tag="linkifier_removed"):
    """A linkifier was removed."""

    linkifier_id: int


class LinkifiersOrdered(Change, frozen=True, tag="linkifiers_ordered"):
    """The linkifiers have a new order: the IDs of all of them."""

    linkifier_ids: tuple[int, ...]


class PlaygroundAdded(Change, frozen=True, tag="playground_added"):
    """A playground was added."""

    playground: Playground


class PlaygroundRemoved(Change, frozen=True, tag="playground_removed"):
    """A playground was removed."""

    playground_id: int


class DefaultChannelGroupSet(Change, frozen=True, tag="default_channel_group_set"):
    """A default channel group was added or changed."""

    group: DefaultChannelGroup


class DefaultChannelGroupRemoved(Change, frozen=True, tag="default_channel_group_removed"):
    """A default channel group was removed."""

    group_id: int


class RealmDefaultsChanged(Change, frozen=True, tag="realm_defaults_changed"):
    """The default settings of new accounts have new values."""

    values: dict[str, Any]


class OnboardingStepTaken(Change, frozen=True, tag="onboarding_step_taken"):
    """A user has seen a hint for beginners."""

    user_id: int
    name: str
