"""Folds of linkifiers, domains, playgrounds and other lists of the organization."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tertulia.model import changes
from tertulia.model.organization import OnboardingStep
from tertulia.state.folds import Folds, revised

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.DomainAdded)
def _(state: State, change: changes.DomainAdded) -> None:
    state.domains.put(change.domain)


@FOLDS.of(changes.DomainChanged)
def _(state: State, change: changes.DomainChanged) -> None:
    state.domains.put(change.domain)


@FOLDS.of(changes.DomainRemoved)
def _(state: State, change: changes.DomainRemoved) -> None:
    state.domains.remove(change.domain_id)


@FOLDS.of(changes.LinkifierSet)
def _(state: State, change: changes.LinkifierSet) -> None:
    state.linkifiers.put(change.linkifier)


@FOLDS.of(changes.LinkifierRemoved)
def _(state: State, change: changes.LinkifierRemoved) -> None:
    state.linkifiers.remove(change.linkifier_id)


@FOLDS.of(changes.LinkifiersOrdered)
def _(state: State, change: changes.LinkifiersOrdered) -> None:
    for order, linkifier_id in enumerate(change.linkifier_ids, 1):
        linkifier = state.linkifiers[linkifier_id]
        state.linkifiers.put(msgspec.structs.replace(linkifier, order=order))


@FOLDS.of(changes.PlaygroundAdded)
def _(state: State, change: changes.PlaygroundAdded) -> None:
    state.playgrounds.put(change.playground)


@FOLDS.of(changes.PlaygroundRemoved)
def _(state: State, change: changes.PlaygroundRemoved) -> None:
    state.playgrounds.remove(change.playground_id)


@FOLDS.of(changes.DefaultChannelGroupSet)
def _(state: State, change: changes.DefaultChannelGroupSet) -> None:
    state.default_channel_groups.put(change.group)


@FOLDS.of(changes.DefaultChannelGroupRemoved)
def _(state: State, change: changes.DefaultChannelGroupRemoved) -> None:
    state.default_channel_groups.remove(change.group_id)


@FOLDS.of(changes.RealmDefaultsChanged)
def _(state: State, change: changes.RealmDefaultsChanged) -> None:
    state.settings.put(revised(state.default_settings, change.values))


@FOLDS.of(changes.OnboardingStepTaken)
def _(state: State, change: changes.OnboardingStepTaken) -> None:
    state.onboarding_steps.put(OnboardingStep(user_id=change.user_id, name=change.name))


@FOLDS.of(changes.RealmCreated)
def _(state: State, change: changes.RealmCreated) -> None:
    state.realms.put(change.realm)
    for group in change.groups:
        state.groups.put(group)
    for bot in change.bots:
        state.users.put(bot)


@FOLDS.of(changes.RealmChanged)
def _(state: State, change: changes.RealmChanged) -> None:
    state.realms.put(revised(state.realm, change.values))


@FOLDS.of(changes.RealmDeactivated)
def _(state: State, change: changes.RealmDeactivated) -> None:
    state.realms.put(revised(state.realm, {"deactivated": True}))


@FOLDS.of(changes.RealmReactivated)
def _(state: State, change: changes.RealmReactivated) -> None:
    state.realms.put(revised(state.realm, {"deactivated": False}))
