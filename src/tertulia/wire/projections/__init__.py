"""How each change looks to those who may see it; one module for each resource."""

from typing import Any, Final

from tertulia.wire.events import Projection
from tertulia.wire.projections import (
    channels,
    groups,
    invitations,
    messages,
    organization,
    profiles,
    settings,
    status,
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
    settings.SettingsChangedProjection(),
    status.StatusChangedProjection(),
    profiles.ProfileFieldCreatedProjection(),
    profiles.ProfileFieldChangedProjection(),
    profiles.ProfileFieldsOrderedProjection(),
    profiles.ProfileFieldDeletedProjection(),
    profiles.ProfileChangedProjection(),
    groups.UserGroupCreatedProjection(),
    channels.ChannelCreatedProjection(),
    channels.ChannelChangedProjection(),
    subscriptions.SubscribedProjection(),
    subscriptions.UnsubscribedProjection(),
    subscriptions.SubscriptionChangedProjection(),
    invitations.InvitationsMadeProjection(),
    invitations.InvitationSentAgainProjection(),
    invitations.InvitationsEndedProjection(),
    invitations.ConfirmationAskedProjection(),
    invitations.ConfirmationsEndedProjection(),
)
"""One for each change: a test holds this against the changes there are."""
