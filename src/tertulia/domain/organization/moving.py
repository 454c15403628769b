"""Keeping people from writing before the organization has moved here."""

from tertulia.model.errors import Refused
from tertulia.state.state import State


def require_moved(state: State) -> None:
    """Raise Refused while the organization is moving here: new messages and accounts there would
    have the same IDs."""
    if not state.is_empty and state.realm.moving_from:
        raise Refused(
            f"This organization is still moving here from {state.realm.moving_from}. Write there"
            " until the move is finished."
        )
