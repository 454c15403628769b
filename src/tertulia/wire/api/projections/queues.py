"""No event tells of what queues need themselves."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.projection import Projections, unseen

PROJECTIONS: Final[Projections] = (unseen(changes.EventIdsUsedUp),)
