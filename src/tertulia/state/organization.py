"""The organization, its lists, and banners: tables and folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tertulia.model import changes
from tertulia.model.organization import OnboardingStep
from tertulia.state.folds import FOLDS, revised

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS.puts(changes.DomainAdded, "domains", "domain")
FOLDS.puts(changes.DataImportSet, "data_imports", "data_import")
FOLDS.removes(changes.DataImportsRemoved, "data_imports", "import_ids")
FOLDS.puts(changes.DomainChanged, "domains", "domain")
FOLDS.removes(changes.DomainRemoved, "domains", "domain_id")
FOLDS.puts(changes.LinkifierSet, "linkifiers", "linkifier")
FOLDS.removes(changes.LinkifierRemoved, "linkifiers", "linkifier_id")


@FOLDS.of(changes.LinkifiersOrdered)
def _(state: State, change: changes.LinkifiersOrdered) -> None:
    for order, linkifier_id in enumerate(change.linkifier_ids, 1):
        linkifier = state.linkifiers[linkifier_id]
        state.linkifiers.put(msgspec.structs.replace(linkifier, order=order))


FOLDS.puts(changes.PlaygroundAdded, "playgrounds", "playground")
FOLDS.removes(changes.PlaygroundRemoved, "playgrounds", "playground_id")
FOLDS.puts(changes.DefaultChannelGroupSet, "default_channel_groups", "group")
FOLDS.removes(changes.DefaultChannelGroupRemoved, "default_channel_groups", "group_id")


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


FOLDS.puts(changes.BannerPosted, "banners", "banner")
FOLDS.removes(changes.BannersEnded, "banners", "banner_ids")
