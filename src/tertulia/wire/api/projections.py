"""The projections of all changes."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api import (
    alert_words,
    attachments,
    banners,
    calls,
    default_groups,
    devices,
    domains,
    drafts,
    emoji,
    exports,
    feeds,
    folders,
    invitations,
    linkifiers,
    muted_users,
    navigation,
    pins,
    playgrounds,
    profiles,
    quiet_times,
    reactions,
    realm_exports,
    realm_imports,
    scheduled,
    sessions,
    settings,
    statuses,
    user_topics,
)
from tertulia.wire.api.channels import events as channels
from tertulia.wire.api.channels import subscription_events
from tertulia.wire.api.groups import events as groups
from tertulia.wire.api.messages import deletions, edits, flags, moves
from tertulia.wire.api.messages import events as messages
from tertulia.wire.api.organization import events as organization
from tertulia.wire.api.projection import Projections, unseen
from tertulia.wire.api.users import events as users
from tertulia.wire.api.users import guest_visibility

PROJECTIONS: Final[Projections] = (
    *default_groups.PROJECTIONS,
    *domains.PROJECTIONS,
    *linkifiers.PROJECTIONS,
    *playgrounds.PROJECTIONS,
    *attachments.PROJECTIONS,
    *channels.PROJECTIONS,
    *calls.PROJECTIONS,
    *devices.PROJECTIONS,
    *drafts.PROJECTIONS,
    *emoji.PROJECTIONS,
    *exports.PROJECTIONS,
    *feeds.PROJECTIONS,
    *banners.PROJECTIONS,
    *folders.PROJECTIONS,
    *groups.PROJECTIONS,
    *invitations.PROJECTIONS,
    *deletions.PROJECTIONS,
    *edits.PROJECTIONS,
    *flags.PROJECTIONS,
    *moves.PROJECTIONS,
    *messages.PROJECTIONS,
    *navigation.PROJECTIONS,
    *organization.PROJECTIONS,
    *alert_words.PROJECTIONS,
    *muted_users.PROJECTIONS,
    *quiet_times.PROJECTIONS,
    *pins.PROJECTIONS,
    *profiles.PROJECTIONS,
    *reactions.PROJECTIONS,
    *realm_exports.PROJECTIONS,
    *realm_imports.PROJECTIONS,
    *scheduled.PROJECTIONS,
    *sessions.PROJECTIONS,
    *settings.PROJECTIONS,
    *statuses.PROJECTIONS,
    *subscription_events.PROJECTIONS,
    *user_topics.PROJECTIONS,
    *guest_visibility.PROJECTIONS,
    *users.PROJECTIONS,
    unseen(changes.EventIdsUsedUp),
    unseen(changes.QueuesEnded),
    unseen(changes.AccessKeyMade),
    unseen(changes.AccessKeyUsed),
    unseen(changes.AccessKeysEnded),
    unseen(changes.IdentityLinked),
    unseen(changes.IdentityRevised),
    unseen(changes.IdentitiesUnlinked),
    unseen(changes.SecondFactorPrepared),
    unseen(changes.SecondFactorAdded),
    unseen(changes.SecondFactorUsed),
    unseen(changes.SecondFactorsRemoved),
    unseen(changes.RecoveryCodesChanged),
    unseen(changes.RecoveryCodeUsed),
)
"""One projection for each kind of change. A test checks that none is missing."""
