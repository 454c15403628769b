"""Full members: members whose waiting period has ended."""

from collections.abc import Sequence

import msgspec

from tertulia.domain.channels import visibility
from tertulia.model.changes import FullMembersChanged
from tertulia.model.groups import SystemGroup
from tertulia.model.users import Role, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

DAY = 86400


def next_end(state: State, now: float) -> float | None:
    """Return when the next member's waiting period ends, in UNIX seconds; `now` if the period was
    changed since full members were last determined."""
    if state.is_empty:
        return None
    realm = state.realm
    if realm.waiting_period_applied != realm.waiting_period_threshold:
        return now
    if realm.full_members_joined_by is None:
        return None
    joined_at = state.users.members_by_joining.next(realm.full_members_joined_by)
    return None if joined_at is None else joined_at + realm.waiting_period_threshold * DAY


def end(context: CommandContext) -> Decision[None]:
    """Make everyone whose waiting period has ended a full member, as the server."""
    due = next_end(context.state, context.now)
    if due is None or due > context.now:
        return Decision(None)
    period = context.state.realm.waiting_period_threshold
    return Decision(None, [full_members_change(context.state, context.now, period)])


def overdue_changes(state: State, user: User, now: float) -> list[FullMembersChanged]:
    """Return the change that ends the account's waiting period if it passed while the account
    wasn't an active member. It must come before changes that make it an active member again."""
    period = state.realm.waiting_period_threshold
    if (
        user.role is not Role.MEMBER
        or state.memberships.is_full_member(user)
        or now - user.joined_at < period * DAY
    ):
        return []
    return [full_members_change(state, now, period)]


def with_changes(state: State, changes: Sequence[FullMembersChanged]) -> State:
    """Return a copy of the state with these changes applied."""
    for change in changes:
        realm = msgspec.structs.replace(
            state.realm,
            waiting_period_applied=change.period,
            full_members_joined_by=change.joined_by,
        )
        state = state.with_changes(realm)
    return state


def full_members_change(state: State, now: float, period: int) -> FullMembersChanged:
    """Return the change that makes everyone who joined at least `period` days ago a full member."""
    was = state.realm.full_members_joined_by
    # Nobody joined before 1970: a longer period makes no difference.
    joined_by = None if period == 0 else max(int(now) - period * DAY, -1)
    members = state.users.members_by_joining
    change = FullMembersChanged(
        period=period,
        joined_by=joined_by,
        joined=() if was is None else tuple(members.between(was, joined_by)),
        left=() if joined_by is None else tuple(members.between(joined_by, was)),
    )
    ahead, people = with_changes(state, [change]), [*change.joined, *change.left]
    return msgspec.structs.replace(
        change,
        sight=visibility.compare_by_membership(state, ahead, SystemGroup.FULL_MEMBERS, people),
    )
