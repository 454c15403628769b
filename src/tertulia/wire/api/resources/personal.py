"""What people set up for themselves: alert words, and whom they do not want to read."""

from typing import Annotated

from msgspec import Meta

from tertulia.domain.accounts import alert_words, muting
from tertulia.service.messages import flags
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


class GetAlertWords(Params, kw_only=True, frozen=True):
    """One's alert words."""


class AlertWordList(Answer, kw_only=True):
    """All of one's alert words, as they are now."""

    alert_words: list[str]


async def get_alert_words(call: Call, params: GetAlertWords) -> AlertWordList:
    """The words of whose use one is alerted."""
    return AlertWordList(alert_words=call.consider(alert_words.own))


class ChangeAlertWords(Params, kw_only=True, frozen=True):
    """Words to add or to remove. Case makes no difference."""

    alert_words: Annotated[list[str], Meta(max_length=alert_words.MAX_WORDS)]


async def add_alert_words(call: Call, params: ChangeAlertWords) -> AlertWordList:
    """Be alerted of these words too."""
    return AlertWordList(alert_words=await call.submit(alert_words.add, params.alert_words))


async def remove_alert_words(call: Call, params: ChangeAlertWords) -> AlertWordList:
    """Be alerted of these words no more."""
    return AlertWordList(alert_words=await call.submit(alert_words.remove, params.alert_words))


class OtherUser(Params, kw_only=True, frozen=True):
    """A user to mute, or not to mute any more."""

    muted_user_id: Annotated[Int, Path()]


async def mute_user(call: Call, params: OtherUser) -> Answer:
    """Mute a user: what they wrote counts as read, and so does what they will write."""
    await flags.mute_user(call, params.muted_user_id)
    return Answer()


async def unmute_user(call: Call, params: OtherUser) -> Answer:
    """Unmute a user. What counts as read stays read."""
    await call.submit(muting.unmute, params.muted_user_id)
    return Answer()
