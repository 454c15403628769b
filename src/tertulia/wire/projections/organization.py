"""Events of the organization itself."""

from typing import Any

from tertulia.model import changes
from tertulia.wire.events import Event, Unseen


class RealmUpdateDictEvent(Event, kw_only=True, tag="realm"):
    """Settings of the organization have new values."""

    op: str = "update_dict"
    property: str = "default"
    data: dict[str, Any]


class RealmCreatedProjection(Unseen):
    """Nobody was there yet."""

    of = changes.RealmCreated


class CredentialChangedProjection(Unseen):
    """Nobody's business; polls with the old key end by themselves."""

    of = changes.CredentialChanged
