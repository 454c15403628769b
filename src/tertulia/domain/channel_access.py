"""Which channels and messages a user can see, read, and write to."""

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Final

from tertulia.domain.permissions import holds, holds_as_member, is_administrator, is_guest, owner_of
from tertulia.model.channels import Channel
from tertulia.model.errors import NoSuchChannel, Refused
from tertulia.model.messages import MessageEdit, MessagePlace, Placed
from tertulia.model.ranges import EVERYTHING, Spans, places
from tertulia.model.users import User
from tertulia.state.state import State


def administers(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may change the channel's settings, as far as they see it."""
    return is_administrator(state, user) or holds_as_member(
        state, user, channel.can_administer_channel_group
    )


def may_add_subscribers(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may subscribe others to the channel (given access to it)."""
    if is_guest(state, user):
        return False
    return (
        administers(state, user, channel)
        or holds_as_member(state, user, state.realm.can_add_subscribers_group)
        or holds_as_member(state, user, channel.can_add_subscribers_group)
    )


def may_subscribe_others(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may subscribe other accounts to the channel. Otherwise somebody who cannot
    read it could subscribe another account of theirs to do so."""
    return may_add_subscribers(state, user, channel) and reads_channel(state, user, channel)


def may_invite_to(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may name the channel in an invitation: default channels that they see, and
    channels to which they may subscribe others."""
    if channel.is_archived or not sees_channel(state, user, channel):
        return False
    return channel.is_default or may_subscribe_others(state, user, channel)


def may_add_subscribers_at_all(state: State, user: User) -> bool:
    """Whether the user may subscribe others to channels in general, whatever
    single channels say."""
    return is_administrator(state, user) or holds_as_member(
        state, user, state.realm.can_add_subscribers_group
    )


def _invited_by_setting(state: State, user: User, channel: Channel) -> bool:
    """Membership of the groups that open a private channel's content without a subscription."""
    return holds_as_member(state, user, channel.can_add_subscribers_group) or holds_as_member(
        state, user, channel.can_subscribe_group
    )


VISIBILITY_SETTINGS: Final = (
    "can_add_subscribers_group",
    "can_administer_channel_group",
    "can_subscribe_group",
)
"""The permissions of a private channel whose holders may know that it exists."""


def open_to_spectators(channel: Channel) -> bool:
    """Whether those without an account see the channel, and all that is in it."""
    return channel.is_web_public and not channel.is_archived


def sees_channel(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may know that the channel exists, and its settings."""
    return state.is_subscribed(user.id, channel.id) or sees_unsubscribed(state, user, channel)


def sees_unsubscribed(state: State, user: User, channel: Channel) -> bool:
    """The same for somebody who is not subscribed to it, or would not be."""
    if channel.is_web_public:
        return True
    if is_guest(state, user):
        return False
    if not channel.is_private:
        return True
    return administers(state, user, channel) or _invited_by_setting(state, user, channel)


_BY_ID: Final = attrgetter("id")


def channels_seen(state: State, user: User) -> list[Channel]:
    """The channels that the user may know of, in ascending order of ID. The same as asking
    `sees_channel` for each, and quicker."""
    own = state.subscriptions.of_user[user.id]
    to_members = not is_guest(state, user)
    return [
        channel
        for channel in sorted(state.channels, key=_BY_ID)
        if (to_members and not channel.is_private)
        or ((one := own.get(channel.id)) is not None and one.is_active)
        or sees_unsubscribed(state, user, channel)
    ]


def channel_viewers(state: State, channel: Channel) -> set[int]:
    """Every active account that may know that the channel exists.

    The channel may be one as it will be, to compare the two.
    """
    return {
        user.id
        for user in state.users
        if user.is_active and not user.is_system_bot and sees_channel(state, user, channel)
    }


def reads_channel(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may read the channel's messages (those that its history opens to them)."""
    # The cheap questions first: this is asked of many channels at once.
    if _is_open_to(state, user, channel) or state.is_subscribed(user.id, channel.id):
        return True
    return not is_guest(state, user) and _invited_by_setting(state, user, channel)


def reads_unsubscribed(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may read the channel's messages even without being subscribed."""
    return _is_open_to(state, user, channel) or (
        not is_guest(state, user) and _invited_by_setting(state, user, channel)
    )


def _is_open_to(state: State, user: User, channel: Channel) -> bool:
    return channel.is_web_public or not (channel.is_private or is_guest(state, user))


def reads_whole_history(state: State, user: User, channel: Channel) -> bool:
    """Whether all of the channel's messages are open, and not only those received."""
    return channel.history_public and reads_channel(state, user, channel)


def channels_read_whole(state: State, user: User) -> list[Channel]:
    """The channels of which `reads_whole_history` is true."""
    to_members = not is_guest(state, user)
    return [
        channel
        for channel in state.channels
        if channel.history_public
        and ((to_members and not channel.is_private) or reads_channel(state, user, channel))
    ]


def may_unsubscribe_others(
    state: State, actor: User, targets: Iterable[User], channel: Channel
) -> bool:
    """Whether the actor may unsubscribe them: administrators, owners of these bots, and holders of
    the channel's permission."""
    if administers(state, actor, channel):
        return True
    if not sees_channel(state, actor, channel):
        return False
    if holds(state, actor, channel.can_remove_subscribers_group):
        return True
    return all(t.bot is not None and t.bot.owner_id == actor.id for t in targets)


def sees_subscribers(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may know who is subscribed."""
    if state.is_subscribed(user.id, channel.id):
        return True
    return not is_guest(state, user) and sees_channel(state, user, channel)


def visible_channel(
    state: State,
    user: User,
    *,
    channel_id: int | None = None,
    name: str | None = None,
) -> Channel:
    """The channel of that ID or name. NoSuchChannel when there is none that the user may see."""
    channel = (
        state.channels.get(channel_id)
        if channel_id is not None
        else state.channel_named(name or "")
    )
    if channel is None or not sees_channel(state, user, channel):
        raise NoSuchChannel(channel_id=channel_id, name=name)
    return channel


def readable_channel(state: State, user: User | None, channel_id: int) -> Channel:
    """The channel of that ID, if the user (None: a spectator) can read messages of it. Refused as
    if there were none otherwise."""
    channel = state.channels.get(channel_id)
    if channel is None or not (
        open_to_spectators(channel) if user is None else reads_channel(state, user, channel)
    ):
        raise Refused("This channel doesn't exist.")
    return channel


def may_send_to(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may post in the channel. A bot may where its owner may."""
    if user.is_system_bot:
        return True
    if channel.is_archived or not reads_channel(state, user, channel):
        return False
    if holds(state, user, channel.can_send_message_group):
        return True
    owner = owner_of(state, user)
    return owner is not None and state.memberships.holds(owner, channel.can_send_message_group)


def may_pin(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may pin messages of the channel that they can read, and take pins away: who
    may post in it, and who administers it."""
    return not channel.is_archived and (
        may_send_to(state, user, channel) or administers(state, user, channel)
    )


def reads_message(state: State, user: User, message: Placed) -> bool:
    """Whether the user may read the message: it was delivered to them, or its channel's history
    is open to them. (A record of their own is only made for messages that they could read.)"""
    if message.channel_id is None:
        return state.received(user.id, message)
    channel = state.channels[message.channel_id]
    if not reads_channel(state, user, channel):
        return False
    return channel.history_public or state.received(user.id, message)


def visible_edits(
    state: State, reader: User | None, edits: Sequence[MessageEdit]
) -> Sequence[MessageEdit]:
    """What the reader (None: a spectator) may know of what was done to a message that they can
    read. `edits` are newest first.

    To those who may not read it where it came from, it is new since it was moved.
    """
    for index, edit in enumerate(edits):
        if edit.was_channel_id is None:
            continue
        was = MessagePlace(id=edit.message_id, channel_id=edit.was_channel_id)
        if not (
            open_to_spectators(state.channels[edit.was_channel_id])
            or (reader is not None and reads_message(state, reader, was))
        ):
            return edits[:index]
    return edits


def readable(state: State, user: User, channel: Channel, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the channel's messages, ascending, that the user may read."""
    spans = readable_spans(state, user, channel)
    if spans == EVERYTHING:
        return ids
    return tuple(one for begin, end in places(ids, spans) for one in ids[begin:end])


def readable_spans(state: State, user: User, channel: Channel) -> Spans:
    """Which of the channel's messages the user may read."""
    if not reads_channel(state, user, channel):
        return ()
    if channel.history_public:
        return EVERYTHING
    subscription = state.subscription(user.id, channel.id)
    return () if subscription is None else subscription.spans


class ChannelReaders:
    """What many users may read of one channel: `readable_spans` of each, and quicker."""

    def __init__(self, state: State, channel: Channel) -> None:
        self._state, self._channel = state, channel
        self._subscriptions = state.subscriptions.of_channel[channel.id]
        members = state.memberships.members
        self._perhaps_invited = members(channel.can_add_subscribers_group) | members(
            channel.can_subscribe_group
        )
        """Nobody else is invited by the channel's settings; of bots not all of these are."""

    def spans(self, user: User) -> Spans:
        """Which of the channel's messages the user may read."""
        if self._channel.is_private and user.id not in self._perhaps_invited:
            subscription = self._subscriptions.get(user.id)
            if subscription is None or not subscription.is_active:
                return ()
        return readable_spans(self._state, user, self._channel)


def bot_may_be_in(state: State, bot: User, channel: Channel, brought: Collection[int] = ()) -> bool:
    """Whether the account, where it is a bot, can be subscribed to the channel: a guest's bot,
    where the guest is, or is `brought` at the same time."""
    if bot.bot is None or bot.bot.owner_id is None or open_to_spectators(channel):
        return True
    owner = owner_of(state, bot)
    if owner is None:
        return False
    return not owner.is_guest or owner.id in brought or state.is_subscribed(owner.id, channel.id)
