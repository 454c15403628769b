"""How each change looks to those who may see it; one module for each resource."""

from typing import Any, Final

from tertulia.wire.events import Projection
from tertulia.wire.projections import messages, organization

PROJECTIONS: Final[tuple[Projection[Any], ...]] = (
    organization.RealmCreatedProjection(),
    organization.CredentialChangedProjection(),
    messages.MessageSentProjection(),
    messages.FlagsChangedProjection(),
    messages.MessagesReadProjection(),
    messages.MessagesUnreadProjection(),
)
"""One for each change: a test holds this against the changes there are."""
