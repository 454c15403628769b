"""Folds of previews of pages that messages link."""

from tertulia.model import changes
from tertulia.model.previews import PendingPreview
from tertulia.state.folds.registry import Folds
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.PreviewsGivenUp)
def _(state: State, change: changes.PreviewsGivenUp) -> None:
    forget_previews(state, change.message_id)


def await_previews(state: State, message_id: int) -> None:
    """The message awaits previews of what it links since the entry that is being folded."""
    state.pending_previews.put(PendingPreview(message_id=message_id, seq=state.seq + 1))


def forget_previews(state: State, message_id: int) -> None:
    """The message awaits none, if it did."""
    if message_id in state.pending_previews:
        state.pending_previews.remove(message_id)
