"""Digest emails, and unsubscribing from emails."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from tertulia.domain.accounts import personal_settings
from tertulia.domain.notifications import quiet
from tertulia.model.changes import AnyChange, SubscriptionChanged
from tertulia.model.mail import Unsubscribing
from tertulia.model.organization import Realm
from tertulia.model.user_topics import Visibility
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

AWAY_SECONDS: Final = 5 * 86400
"""People who were active within this many seconds get no digest."""
SPAN_SECONDS: Final = 7 * 86400
"""The period that a digest covers, in seconds."""
PUT_OFF_LONGEST: Final = 6 * 86400
"""A digest is skipped if quiet time would delay it by more than this many seconds, since the next
one is due soon."""
HOUR: Final = 6
"""The hour (UTC) of the digest day from which digests are sent."""


def day_of(realm: Realm, now: float) -> str | None:
    """Return today's date (YYYY-MM-DD) if digests are sent now, on the organization's digest day;
    otherwise None."""
    then = datetime.fromtimestamp(now, UTC)
    if not realm.digest_emails_enabled or realm.deactivated:
        return None
    is_time = then.weekday() == realm.digest_weekday and then.hour >= HOUR
    return f"{then:%Y-%m-%d}" if is_time else None


def wants_digest(state: State, user_id: int, seen_at: float, now: float) -> bool:
    """Whether the account gets a digest, perhaps delayed by a quiet time. `seen_at` is when its
    person was last active, in UNIX seconds, or 0 for never."""
    user, until = state.users[user_id], quiet.quiet_until(state, user_id, now)
    return (
        user.is_active
        and not user.is_bot
        and not user.awaits_arrival
        and max(seen_at, user.joined_at) <= now - AWAY_SECONDS
        and state.settings[user_id].enable_digest_emails
        and (until is None or until <= now + PUT_OFF_LONGEST)
    )


def accounts_after(state: State, user_id: int) -> Iterator[int]:
    """Yield the IDs of accounts that are greater than `user_id`, ascending."""
    return (row for row in sorted(state.users.rows) if row > user_id)


def includes_topic(state: State, user_id: int, channel_id: int, key: str) -> bool:
    """Whether the user's digest includes the topic: they are subscribed, and have muted neither the
    channel nor the topic."""
    subscription = state.subscription(user_id, channel_id)
    if subscription is None or not subscription.is_active or state.channels[channel_id].is_archived:
        return False
    policy = state.visibility(user_id, channel_id, key)
    if policy is Visibility.INHERIT:
        return not subscription.is_muted
    return policy is not Visibility.MUTED


_SETTINGS: Final[Mapping[Unsubscribing, Mapping[str, bool]]] = {
    Unsubscribing.MISSED: {
        "enable_offline_email_notifications": False,
        "enable_followed_topic_email_notifications": False,
        "enable_channel_email_notifications": False,
    },
    Unsubscribing.DIGEST: {"enable_digest_emails": False},
    Unsubscribing.SIGN_IN: {"enable_login_emails": False},
}


def unsubscribe(context: CommandContext, user_id: int, what: Unsubscribing) -> Decision[None]:
    """Turn off that kind of email for the account. For missed messages, this includes channels for
    which the user turned them on."""
    user = context.state.users[user_id]
    changes: list[AnyChange] = list(
        personal_settings.settings_changes(context, user, _SETTINGS[what])
    )
    if what is Unsubscribing.MISSED:
        changes += _from_channels(context, user_id)
    return Decision(None, changes)


def _from_channels(context: CommandContext, user_id: int) -> list[SubscriptionChanged]:
    state = context.state
    return [
        SubscriptionChanged(
            channel_id=channel_id,
            user_id=user_id,
            property="email_notifications",
            value=False,
            archived=state.channels[channel_id].is_archived,
        )
        for channel_id, subscription in sorted(state.subscriptions.of_user[user_id].items())
        if subscription.email_notifications
    ]
