"""No event tells of sessions: a browser knows its own, and polls of one that ends, end."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.projection import Projections, unseen

PROJECTIONS: Final[Projections] = (
    unseen(changes.SessionBegun),
    unseen(changes.SessionUsed),
    unseen(changes.SessionConfirmed),
    unseen(changes.SessionsEnded),
)
