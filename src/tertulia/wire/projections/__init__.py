"""How each change looks to those who may see it; one module for each resource."""

from typing import Any, Final

from tertulia.wire.events import Projection
from tertulia.wire.projections import (
    channels,
    composing,
    devices,
    groups,
    messages,
    navigation,
    organization,
    scheduled,
    subscriptions,
    users,
)

PROJECTIONS: Final[tuple[Projection[Any], ...]] = (
    organization.RealmCreatedProjection(),
    organization.RealmChangedProjection(),
    organization.CredentialChangedProjection(),
    messages.MessageSentProjection(),
    messages.FlagsChangedProjection(),
    messages.MessagesReadProjection(),
    messages.MessagesUnreadProjection(),
    users.UserCreatedProjection(),
    users.UserChangedProjection(),
    users.UserDeactivatedProjection(),
    users.UserReactivatedProjection(),
    groups.UserGroupCreatedProjection(),
    groups.UserGroupChangedProjection(),
    groups.UserGroupMembersChangedProjection(),
    groups.FullMembersChangedProjection(),
    channels.ChannelCreatedProjection(),
    channels.ChannelChangedProjection(),
    subscriptions.SubscribedProjection(),
    subscriptions.UnsubscribedProjection(),
    subscriptions.SubscriptionChangedProjection(),
    composing.DraftsCreatedProjection(),
    composing.DraftChangedProjection(),
    composing.DraftDeletedProjection(),
    composing.SnippetCreatedProjection(),
    composing.SnippetChangedProjection(),
    composing.SnippetDeletedProjection(),
    scheduled.MessageScheduledProjection(),
    scheduled.ScheduledMessageChangedProjection(),
    scheduled.ScheduledMessageRemovedProjection(),
    scheduled.ReminderSetProjection(),
    scheduled.ReminderRemovedProjection(),
    navigation.NavigationViewAddedProjection(),
    navigation.NavigationViewChangedProjection(),
    navigation.NavigationViewRemovedProjection(),
    devices.DeviceAddedProjection(),
    devices.DeviceRemovedProjection(),
    devices.PushTokenAddedProjection(),
    devices.PushTokensRemovedProjection(),
)
"""One for each change: a test holds this against the changes there are."""
