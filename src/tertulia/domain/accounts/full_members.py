"""When members become full members: their waiting period ends, or the organization sets another."""

from collections.abc import Sequence

import msgspec

from tertulia.domain import visibility
from tertulia.model.changes import FullMembersChanged
from tertulia.model.groups import SystemGroup
from tertulia.model.users import Role, User
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State

DAY = 86400


def next_end(state: State, now: float) -> float | None:
    """When the next member's waiting period is over; now, where the organization has set another
    period since it was last decided who is a full member."""
    if state.is_empty:
        return None
    realm = state.realm
    if realm.waiting_period_applied != realm.waiting_period_threshold:
        return now
    if realm.full_members_joined_by is None:
        return None
    joined_at = state.ages.next(realm.full_members_joined_by)
    return None if joined_at is None else joined_at + realm.waiting_period_threshold * DAY


def end(moment: Moment) -> Decision[None]:
    """Make full members of those whose waiting period is over, as the server itself."""
    due = next_end(moment.state, moment.now)
    if due is None or due > moment.now:
        return Decision(None)
    period = moment.state.realm.waiting_period_threshold
    return Decision(None, [full_members(moment.state, moment.now, period)])


def overdue(state: State, user: User, now: float) -> list[FullMembersChanged]:
    """What comes before the account is told to be as it is here: the end of its waiting period,
    where that was over while the account was no active member, and so nobody waited for it."""
    period = state.realm.waiting_period_threshold
    if (
        user.role is not Role.MEMBER
        or state.is_full_member(user)
        or now - user.joined_at < period * DAY
    ):
        return []
    return [full_members(state, now, period)]


def with_changes(state: State, changes: Sequence[FullMembersChanged]) -> State:
    """The state after these changes, for looking at."""
    for change in changes:
        realm = msgspec.structs.replace(
            state.realm,
            waiting_period_applied=change.period,
            full_members_joined_by=change.joined_by,
        )
        state = state.with_changes(realm=realm)
    return state


def full_members(state: State, now: float, period: int) -> FullMembersChanged:
    """The change after which those are full members who joined so many days ago."""
    was = state.realm.full_members_joined_by
    # Nobody joined before the epoch: a period of ages is no different from one of a century.
    joined_by = None if period == 0 else max(int(now) - period * DAY, -1)
    change = FullMembersChanged(
        period=period,
        joined_by=joined_by,
        joined=() if was is None else tuple(state.ages.joined(was, joined_by)),
        left=() if joined_by is None else tuple(state.ages.joined(joined_by, was)),
    )
    ahead, people = with_changes(state, [change]), [*change.joined, *change.left]
    return msgspec.structs.replace(
        change, sight=visibility.moved(state, ahead, SystemGroup.FULL_MEMBERS, people, now)
    )
