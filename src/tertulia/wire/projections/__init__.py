"""How each change looks to those who may see it; one module for each resource."""

from typing import Any, Final

from tertulia.wire.events import Projection
from tertulia.wire.projections import (
    attachments,
    channels,
    composing,
    devices,
    editing,
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
    attachments.WithAttachments(messages.MessageSentProjection(), lambda c: c.attachment_ids),
    messages.FlagsChangedProjection(),
    messages.MessagesReadProjection(),
    messages.MessagesUnreadProjection(),
    attachments.WithAttachments(
        editing.MessageEditedProjection(), lambda c: (*c.attached, *c.detached)
    ),
    editing.MessagesMovedProjection(),
    attachments.WithAttachments(editing.MessagesDeletedProjection(), lambda c: c.detached),
    users.UserCreatedProjection(),
    users.UserChangedProjection(),
    users.UserDeactivatedProjection(),
    users.UserReactivatedProjection(),
    groups.UserGroupCreatedProjection(),
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
    attachments.AttachmentAddedProjection(),
    attachments.AttachmentRemovedProjection(),
    attachments.FilesDeletedProjection(),
)
"""One for each change: a test holds this against the changes there are."""
