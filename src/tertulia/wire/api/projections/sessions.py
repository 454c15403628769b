"""Sessions are shown to whoever asks for their own; no event tells of them."""

from tertulia.model import changes
from tertulia.wire.api.events import Unseen


class SessionBegunProjection(Unseen):
    """The browser knows."""

    of = changes.SessionBegun


class SessionUsedProjection(Unseen):
    """It is the same session."""

    of = changes.SessionUsed


class SessionConfirmedProjection(Unseen):
    """The browser knows."""

    of = changes.SessionConfirmed


class SessionsEndedProjection(Unseen):
    """Polls of these sessions end by themselves."""

    of = changes.SessionsEnded
