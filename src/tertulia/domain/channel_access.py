"""Rules for the channels and messages that a user can see, read, and write to."""

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
    """Whether the user, who can see the channel, can change its settings."""
    return is_administrator(state, user) or holds_as_member(
        state, user, channel.can_administer_channel_group
    )


def may_add_subscribers(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can subscribe other people to the channel, if they can read it."""
    if is_guest(state, user):
        return False
    return (
        administers(state, user, channel)
        or holds_as_member(state, user, state.realm.can_add_subscribers_group)
        or holds_as_member(state, user, channel.can_add_subscribers_group)
    )


def may_subscribe_others(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can subscribe other accounts to the channel. Only readers can: otherwise,
    people could subscribe their second account to read it."""
    return may_add_subscribers(state, user, channel) and reads_channel(state, user, channel)


def may_invite_to(state: State, user: User, channel: Channel) -> bool:
    """Whether the user's invitations can include the channel: it's a default channel that they see,
    or one that they can subscribe others to."""
    if channel.is_archived or not sees_channel(state, user, channel):
        return False
    return channel.is_default or may_subscribe_others(state, user, channel)


def may_add_subscribers_at_all(state: State, user: User) -> bool:
    """Whether the user can subscribe others to channels in general. A channel's own settings can
    still forbid it."""
    return is_administrator(state, user) or holds_as_member(
        state, user, state.realm.can_add_subscribers_group
    )


def _invited_by_setting(state: State, user: User, channel: Channel) -> bool:
    """Whether the user is in a group that can read a private channel without being subscribed."""
    return holds_as_member(state, user, channel.can_add_subscribers_group) or holds_as_member(
        state, user, channel.can_subscribe_group
    )


VISIBILITY_SETTINGS: Final = (
    "can_add_subscribers_group",
    "can_administer_channel_group",
    "can_subscribe_group",
)
"""Permissions that let their holders see that a private channel exists."""


def open_to_spectators(channel: Channel) -> bool:
    """Whether people who aren't signed in can read the channel."""
    return channel.is_web_public and not channel.is_archived


def sees_channel(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can see the channel's existence and settings."""
    if not user.reaches(channel.id):
        return False
    return state.is_subscribed(user.id, channel.id) or sees_unsubscribed(state, user, channel)


def sees_unsubscribed(state: State, user: User, channel: Channel) -> bool:
    """Whether the user would see the channel without being subscribed to it."""
    if not user.reaches(channel.id):
        return False
    if channel.is_web_public:
        return True
    if is_guest(state, user):
        return False
    if not channel.is_private:
        return True
    return administers(state, user, channel) or _invited_by_setting(state, user, channel)


_BY_ID: Final = attrgetter("id")


def channels_seen(state: State, user: User) -> list[Channel]:
    """Return the channels that the user can see, by ascending ID. Faster than `sees_channel` for
    each."""
    subscriptions = state.subscriptions.of_user[user.id]
    to_members = not is_guest(state, user)
    return [
        channel
        for channel in _reached(user, sorted(state.channels, key=_BY_ID))
        if (to_members and not channel.is_private)
        or ((subscription := subscriptions.get(channel.id)) is not None and subscription.is_active)
        or sees_unsubscribed(state, user, channel)
    ]


def _reached(user: User, channels: Iterable[Channel]) -> Iterable[Channel]:
    if user.reach is None:
        return channels
    return (channel for channel in channels if user.reaches(channel.id))


def channel_viewers(state: State, channel: Channel) -> set[int]:
    """Return the active accounts that can see that the channel exists. `channel` can be a modified
    copy, for comparison."""
    return {
        user.id
        for user in state.users
        if user.is_active and not user.is_system_bot and sees_channel(state, user, channel)
    }


def reads_channel(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can read messages of the channel: all of them, or only those sent while they
    were subscribed."""
    # Cheap checks first: this is called for many channels.
    if user.reach is not None and not user.reaches(channel.id):
        return False
    if _is_open_to(state, user, channel) or state.is_subscribed(user.id, channel.id):
        return True
    return not is_guest(state, user) and _invited_by_setting(state, user, channel)


def reads_unsubscribed(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can read the channel's messages without being subscribed."""
    if not user.reaches(channel.id):
        return False
    return _is_open_to(state, user, channel) or (
        not is_guest(state, user) and _invited_by_setting(state, user, channel)
    )


def _is_open_to(state: State, user: User, channel: Channel) -> bool:
    return channel.is_web_public or not (channel.is_private or is_guest(state, user))


def reads_whole_history(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can read the channel's whole history, not only the messages that they
    received."""
    return channel.history_public and reads_channel(state, user, channel)


def channels_read_whole(state: State, user: User) -> list[Channel]:
    """Return the channels for which `reads_whole_history` is true."""
    to_members = not is_guest(state, user)
    return [
        channel
        for channel in _reached(user, state.channels)
        if channel.history_public
        and ((to_members and not channel.is_private) or reads_channel(state, user, channel))
    ]


def may_unsubscribe_others(
    state: State, actor: User, targets: Iterable[User], channel: Channel
) -> bool:
    """Whether the actor can unsubscribe these accounts."""
    if administers(state, actor, channel):
        return True
    if not sees_channel(state, actor, channel):
        return False
    if holds(state, actor, channel.can_remove_subscribers_group):
        return True
    return all(t.bot is not None and t.bot.owner_id == actor.id for t in targets)


def sees_subscribers(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can see who is subscribed."""
    if not user.reaches(channel.id):
        return False
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
    """Return the channel with that ID or name. Raise NoSuchChannel unless the user can see it."""
    channel = (
        state.channels.get(channel_id)
        if channel_id is not None
        else state.channel_named(name or "")
    )
    if channel is None or not sees_channel(state, user, channel):
        raise NoSuchChannel(channel_id=channel_id, name=name)
    return channel


def readable_channel(state: State, user: User | None, channel_id: int) -> Channel:
    """Return the channel with that ID. Raise Refused unless the user (None: a spectator) can read
    messages in it."""
    channel = state.channels.get(channel_id)
    if channel is None or not (
        open_to_spectators(channel) if user is None else reads_channel(state, user, channel)
    ):
        raise Refused("This channel doesn't exist.")
    return channel


def may_send_to(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can send messages to the channel. A bot can if its owner can."""
    if user.is_system_bot:
        return True
    if channel.is_archived or not reads_channel(state, user, channel):
        return False
    if holds(state, user, channel.can_send_message_group):
        return True
    owner = owner_of(state, user)
    return owner is not None and state.memberships.holds(owner, channel.can_send_message_group)


def may_pin(state: State, user: User, channel: Channel) -> bool:
    """Whether the user can pin and unpin messages that they can read in the channel."""
    return not channel.is_archived and (
        may_send_to(state, user, channel) or administers(state, user, channel)
    )


def reads_message(state: State, user: User, message: Placed) -> bool:
    """Whether the user can read the message: it was delivered to them, or they can read its
    channel's whole history."""
    if message.channel_id is None:
        return user.reaches(None) and state.received(user.id, message)
    channel = state.channels[message.channel_id]
    if not reads_channel(state, user, channel):
        return False
    return channel.history_public or state.received(user.id, message)


def visible_edits(
    state: State, reader: User | None, edits: Sequence[MessageEdit]
) -> Sequence[MessageEdit]:
    """Return the part of a message's edit history that the reader (None: a spectator) can see,
    newest first. Edits before a move from a channel that they can't read are hidden."""
    for index, edit in enumerate(edits):
        if edit.was_channel_id is None:
            continue
        was = MessagePlace(id=edit.message_id, channel_id=edit.was_channel_id)
        if not (
            (
                open_to_spectators(state.channels[edit.was_channel_id])
                and (reader is None or reader.reaches(edit.was_channel_id))
            )
            or (reader is not None and reads_message(state, reader, was))
        ):
            return edits[:index]
    return edits


def readable(state: State, user: User, channel: Channel, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Return the channel's messages among `ids`, ascending, that the user can read."""
    spans = readable_spans(state, user, channel)
    if spans == EVERYTHING:
        return ids
    return tuple(message_id for begin, end in places(ids, spans) for message_id in ids[begin:end])


def readable_spans(state: State, user: User, channel: Channel) -> Spans:
    """Return the ranges of the channel's messages that the user can read."""
    if not reads_channel(state, user, channel):
        return ()
    if channel.history_public:
        return EVERYTHING
    subscription = state.subscription(user.id, channel.id)
    return () if subscription is None else subscription.spans


class ChannelReaders:
    """A faster `readable_spans` for many users of one channel."""

    def __init__(self, state: State, channel: Channel) -> None:
        self._state, self._channel = state, channel
        self._subscriptions = state.subscriptions.of_channel[channel.id]
        members = state.memberships.members
        self._perhaps_invited = members(channel.can_add_subscribers_group) | members(
            channel.can_subscribe_group
        )

    def spans(self, user: User) -> Spans:
        if self._channel.is_private and user.id not in self._perhaps_invited:
            subscription = self._subscriptions.get(user.id)
            if subscription is None or not subscription.is_active:
                return ()
        return readable_spans(self._state, user, self._channel)


def bot_may_be_in(state: State, bot: User, channel: Channel, brought: Collection[int] = ()) -> bool:
    """Whether the account, if it's a bot, can be subscribed to the channel. Unless the channel is
    open to spectators, the bot's owner must be active, and an owner who is a guest must be
    subscribed too, or be in `brought`, the accounts that are subscribed at the same time."""
    if bot.bot is None or bot.bot.owner_id is None or open_to_spectators(channel):
        return True
    owner = owner_of(state, bot)
    if owner is None:
        return False
    return not owner.is_guest or owner.id in brought or state.is_subscribed(owner.id, channel.id)
