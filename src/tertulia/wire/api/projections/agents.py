"""No event tells of agents' keys: whoever looks at the list asks for it."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.projection import Projections, unseen

PROJECTIONS: Final[Projections] = (
    unseen(changes.AgentKeyMade),
    unseen(changes.AgentKeyUsed),
    unseen(changes.AgentKeysEnded),
)
