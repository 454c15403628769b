"""Events of the organization itself."""

from tertulia.model import changes
from tertulia.wire.events import Unseen


class RealmCreatedProjection(Unseen):
    """Nobody was there yet."""

    of = changes.RealmCreated


class CredentialChangedProjection(Unseen):
    """Nobody's business; polls with the old key end by themselves."""

    of = changes.CredentialChanged
