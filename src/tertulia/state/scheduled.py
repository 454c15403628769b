"""Folds of scheduled messages and reminders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.state.folds import Folds

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.MessageScheduled)
def _(state: State, change: changes.MessageScheduled) -> None:
    state.scheduled_messages.put(change.message)


@FOLDS.of(changes.ScheduledMessageChanged)
def _(state: State, change: changes.ScheduledMessageChanged) -> None:
    state.scheduled_messages.put(change.message)


@FOLDS.of(changes.ScheduledMessageRemoved)
def _(state: State, change: changes.ScheduledMessageRemoved) -> None:
    state.scheduled_messages.remove(change.scheduled_id)


@FOLDS.of(changes.ReminderSet)
def _(state: State, change: changes.ReminderSet) -> None:
    state.reminders.put(change.reminder)


@FOLDS.of(changes.ReminderRemoved)
def _(state: State, change: changes.ReminderRemoved) -> None:
    state.reminders.remove(change.reminder_id)
