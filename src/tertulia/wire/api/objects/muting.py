"""Muted users on the wire."""

from msgspec import Struct

from tertulia.state.organization import State


class MutedUserObject(Struct, kw_only=True):
    """Somebody whom one has muted, and when."""

    id: int
    timestamp: int


def muted_users(state: State, user_id: int) -> list[MutedUserObject]:
    """Whom the user has muted."""
    return [
        MutedUserObject(id=muted.muted_id, timestamp=muted.since)
        for muted in state.muted_by_user[user_id]
    ]
