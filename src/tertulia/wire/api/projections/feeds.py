"""No event tells of feeds: whoever looks at the list asks for it."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.projection import Projections, unseen

PROJECTIONS: Final[Projections] = (
    unseen(changes.FeedAdded),
    unseen(changes.FeedChanged),
    unseen(changes.FeedRead),
    unseen(changes.FeedRemoved),
)
