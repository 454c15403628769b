"""Quotas on stored things that one person can create. Each quota is a setting of the organization.
A person's bots count toward the person's quota, and so do archived channels, deactivated groups,
and deactivated bots.

The verbs that add something check the quota against the state's indexes, so concurrent requests
can't exceed it. Lowering a quota deletes nothing.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.errors import QuotaReached
from tertulia.model.users import User
from tertulia.state.state import State


class Quota(Struct, frozen=True, kw_only=True):
    setting: str
    """The field of `Realm` that has the limit; None in it means no limit."""
    count: Callable[[State, int], int] | None
    """Counts an account's items by its ID. None if the state doesn't have them, and the caller
    counts."""
    refusal: str
    """The error message, containing `{limit}`."""
    binds_administrators: bool = True
    """False for items that administrators create for everyone."""


_MORE: Final = "or ask an administrator to raise the limit."

CHANNELS: Final = Quota(
    setting="max_channels_per_user",
    count=lambda state, user_id: state.channels.of_creator.count(user_id),
    refusal="One person can create at most {limit} channels, including archived ones. Use an"
    f" existing channel, {_MORE}",
    binds_administrators=False,
)
GROUPS: Final = Quota(
    setting="max_groups_per_user",
    count=lambda state, user_id: state.groups.of_creator.count(user_id),
    refusal="One person can create at most {limit} user groups, including deactivated ones. Use an"
    f" existing group, {_MORE}",
    binds_administrators=False,
)
BOTS: Final = Quota(
    setting="max_bots_per_user",
    count=lambda state, user_id: state.users.of_owner.count(user_id),
    refusal="One person can own at most {limit} bots, including deactivated ones. Use an existing"
    f" bot, {_MORE}",
    binds_administrators=False,
)
DRAFTS: Final = Quota(
    setting="max_drafts_per_user",
    count=lambda state, user_id: state.drafts.of_user.count(user_id),
    refusal=f"One person can have at most {{limit}} drafts. Delete some, {_MORE}",
)
UNFINISHED_UPLOADS: Final = Quota(
    setting="max_unfinished_uploads_per_user",
    count=None,
    refusal="One person can have at most {limit} unfinished uploads. Finish or cancel some,"
    f" {_MORE}",
)
QUOTAS: Final = (CHANNELS, GROUPS, BOTS, DRAFTS, UNFINISHED_UPLOADS)


def check(
    state: State,
    actor: User,
    quota: Quota,
    more: int = 1,
    *,
    of: User | None = None,
    used: int | None = None,
) -> None:
    """Raise QuotaReached unless the actor (or the account `of`) can have `more` of these items.
    Bots share their owner's quota. `used` is the current number, for a quota that the state can't
    count."""
    limit: int | None = getattr(state.realm, quota.setting)
    if limit is None or (
        not quota.binds_administrators and permissions.is_administrator(state, actor)
    ):
        return
    if quota.count is not None:
        accounts = state.users.accounts_of(state.users.person_of(of or actor))
        used = sum(quota.count(state, user_id) for user_id in accounts)
    if (used or 0) + more > limit:
        raise QuotaReached(quota.setting, limit, quota.refusal.format(limit=limit))
