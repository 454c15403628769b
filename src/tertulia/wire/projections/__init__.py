"""How each change looks to those who may see it; one module for each resource."""

from typing import Any, Final

from tertulia.wire.events import Projection
from tertulia.wire.projections import (
    attachments,
    channels,
    groups,
    messages,
    organization,
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
    attachments.AttachmentAddedProjection(),
    attachments.AttachmentRemovedProjection(),
    attachments.FilesDeletedProjection(),
)
"""One for each change: a test holds this against the changes there are."""
