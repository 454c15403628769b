"""Data exports of a person. Changes to them don't create events."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.projection import Projections, unseen

PROJECTIONS: Final[Projections] = (
    unseen(changes.DataExportSet),
    unseen(changes.DataExportsRemoved),
)
