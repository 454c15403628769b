"""Folds of alert words, muted users and quiet times."""

from tertulia.model import changes
from tertulia.model.personal import AlertWords
from tertulia.state.folds.registry import Folds
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.AlertWordsChanged)
def _(state: State, change: changes.AlertWordsChanged) -> None:
    if change.words:
        state.alert_words.put(AlertWords(user_id=change.user_id, words=change.words))
    else:
        state.alert_words.remove(change.user_id)


@FOLDS.of(changes.UserMuted)
def _(state: State, change: changes.UserMuted) -> None:
    state.muted_users.put(change.muted)


@FOLDS.of(changes.UserUnmuted)
def _(state: State, change: changes.UserUnmuted) -> None:
    state.muted_users.remove((change.user_id, change.muted_id))


@FOLDS.of(changes.QuietTimesChanged)
def _(state: State, change: changes.QuietTimesChanged) -> None:
    after = change.quiet_times
    if after.paused_until or after.hours:
        state.quiet_times.put(after)
    elif after.user_id in state.quiet_times:
        state.quiet_times.remove(after.user_id)
