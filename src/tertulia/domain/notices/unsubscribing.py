"""Turning off mails by the link in one of them, without signing in."""

from collections.abc import Mapping
from typing import Final

from tertulia.domain.accounts import personal_settings
from tertulia.model.changes import AnyChange, SubscriptionChanged
from tertulia.model.mail import Unsubscribing
from tertulia.state.moment import Decision, Moment

_SETTINGS: Final[Mapping[Unsubscribing, Mapping[str, bool]]] = {
    Unsubscribing.MISSED: {
        "enable_offline_email_notifications": False,
        "enable_followed_topic_email_notifications": False,
        "enable_channel_email_notifications": False,
    },
    Unsubscribing.DIGEST: {"enable_digest_emails": False},
    Unsubscribing.SIGN_IN: {"enable_login_emails": False},
}


def unsubscribe(moment: Moment, user_id: int, what: Unsubscribing) -> Decision[None]:
    """No more such mails to the account. Those about what it has missed are turned off for the
    channels too for which it had chosen them."""
    user = moment.state.users[user_id]
    changes: list[AnyChange] = list(
        personal_settings.settings_changed(moment, user, _SETTINGS[what])
    )
    if what is Unsubscribing.MISSED:
        changes += _from_channels(moment, user_id)
    return Decision(None, changes)


def _from_channels(moment: Moment, user_id: int) -> list[SubscriptionChanged]:
    state = moment.state
    return [
        SubscriptionChanged(
            channel_id=channel_id,
            user_id=user_id,
            property="email_notifications",
            value=False,
            archived=state.channels[channel_id].is_archived,
        )
        for channel_id, one in sorted(state.subscriptions.of_user[user_id].items())
        if one.email_notifications
    ]
