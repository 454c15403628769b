"""Statuses and profiles: tables and folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.model.nouns import Noun
from tertulia.model.profiles import NO_EMOJI, ProfileValue, UserStatus
from tertulia.state.folds import FOLDS, revised
from tertulia.state.personal import PersonalTable
from tertulia.state.tables import Grouped, Ordered, Table

if TYPE_CHECKING:
    from tertulia.state.state import State


class ProfileValueTable(PersonalTable[ProfileValue]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_field = Grouped(self, lambda value: value.field_id)


class StatusTable(Table[UserStatus]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_end = Ordered(self, lambda status: status.ends_at or None)
        """Statuses that end, the earliest first."""


@FOLDS.of(changes.StatusChanged)
def _(state: State, change: changes.StatusChanged) -> None:
    before = state.statuses.get(change.user_id) or UserStatus(user_id=change.user_id)
    given = None if change.emoji == NO_EMOJI else change.emoji
    after = UserStatus(
        user_id=change.user_id,
        text=before.text if change.text is None else change.text,
        emoji=before.emoji if change.emoji is None else given,
        ends_at=before.ends_at if change.ends_at is None else change.ends_at,
    )
    if after.text or after.emoji is not None:
        state.statuses.put(after)
    elif change.user_id in state.statuses:
        state.statuses.remove(change.user_id)


FOLDS.puts(changes.ProfileFieldCreated, "profile_fields", "field")


@FOLDS.of(changes.ProfileFieldChanged)
def _(state: State, change: changes.ProfileFieldChanged) -> None:
    state.profile_fields.put(change.field)
    for user_id in change.dropped:
        state.profile_values.remove((user_id, change.field.id))


@FOLDS.of(changes.ProfileFieldsOrdered)
def _(state: State, change: changes.ProfileFieldsOrdered) -> None:
    for order, field_id in enumerate(change.field_ids, 1):
        state.profile_fields.put(revised(state.profile_fields[field_id], {"order": order}))


@FOLDS.of(changes.ProfileFieldDeleted)
def _(state: State, change: changes.ProfileFieldDeleted) -> None:
    for value in state.profile_values.of_field[change.field_id]:
        state.profile_values.remove((value.user_id, value.field_id))
    state.profile_fields.remove(change.field_id)


@FOLDS.of(changes.ProfileChanged)
def _(state: State, change: changes.ProfileChanged) -> None:
    for value in change.values:
        state.profile_values.put(value)
    for field_id in change.emptied:
        state.profile_values.remove((change.user_id, field_id))
