"""Who may do what. Every verb and every query asks here.

A permission is held by a group; `Memberships.holds` says whether a user is in it. Here is what the
groups do not say: the limits of guests, the rights that administrators always have, and that what a
user may not see is the same for them as what does not exist.
"""

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Final

from tertulia.model.channels import Channel
from tertulia.model.errors import NoSuchChannel, NotPermitted, Refused
from tertulia.model.groups import GroupSetting, Members, UserGroup
from tertulia.model.messages import Edit, MessagePlace, Placed
from tertulia.model.ranges import EVERYTHING, Spans, places
from tertulia.model.users import AddressVisibility, BotKind, Role, User
from tertulia.state.state import State

# Roles


def role_of(state: State, user: User) -> Role:
    """The role whose rights the account has at this moment.

    A bot has those of its own role, and of its owner's where that is a lesser one; those of a
    guest where its owner is gone. What is shown of an account is the role it was given.
    """
    if user.bot is None or user.bot.owner_id is None:
        return user.role
    owner = _owner(state, user)
    return Role.GUEST if owner is None else max(user.role, owner.role)


def is_guest(state: State, user: User) -> bool:
    """Whether the account has no more than a guest's rights."""
    return role_of(state, user) is Role.GUEST


def is_moderator(state: State, user: User) -> bool:
    """Whether the account has the rights of moderators: administrators and owners too."""
    return role_of(state, user) <= Role.MODERATOR


def is_administrator(state: State, user: User) -> bool:
    """Whether the account has the rights of administrators: owners too."""
    return role_of(state, user) <= Role.ADMINISTRATOR


def is_owner(state: State, user: User) -> bool:
    """Whether the account has the rights of an organization's owners."""
    return role_of(state, user) is Role.OWNER


def require(allowed: bool, otherwise: str) -> None:
    """Refuse with the sentence unless allowed."""
    if not allowed:
        raise Refused(otherwise)


def require_administrator(state: State, actor: User) -> None:
    """Raise NotPermitted for anyone below an administrator."""
    if not is_administrator(state, actor):
        raise NotPermitted("You must be an organization administrator.")


def require_owner(state: State, actor: User) -> None:
    """Raise NotPermitted for anyone below an owner."""
    if not is_owner(state, actor):
        raise NotPermitted("You must be an organization owner.")


def holds(state: State, user: User, setting: GroupSetting) -> bool:
    """Whether the user has a permission that guests may have as well.

    A bot has it where the permission names the bot itself, or where both it and its owner are in
    the groups that have it.
    """
    if not state.memberships.holds(user, setting):
        return False
    if user.bot is None or user.bot.owner_id is None:
        return True
    if isinstance(setting, Members) and user.id in setting.direct_members:
        return True
    owner = _owner(state, user)
    return owner is not None and state.memberships.holds(owner, setting)


def holds_as_member(state: State, user: User, setting: GroupSetting) -> bool:
    """The same for a permission that guests never gain, whatever group they are in."""
    return not is_guest(state, user) and holds(state, user, setting)


# Channels


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


def may_subscribe(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may subscribe themselves."""
    return reads_channel(state, user, channel)


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
    owner = _owner(state, user)
    return owner is not None and state.memberships.holds(owner, channel.can_send_message_group)


def may_pin(state: State, user: User, channel: Channel) -> bool:
    """Whether the user may pin messages of the channel that they can read, and take pins away: who
    may post in it, and who administers it."""
    return not channel.is_archived and (
        may_send_to(state, user, channel) or administers(state, user, channel)
    )


def _owner(state: State, user: User) -> User | None:
    if user.bot is None or user.bot.owner_id is None:
        return None
    owner = state.users[user.bot.owner_id]
    return owner if owner.is_active else None


# Messages


def reads_message(state: State, user: User, message: Placed) -> bool:
    """Whether the user may read the message: it was delivered to them, or its channel's history
    is open to them. (A record of their own is only made for messages that they could read.)"""
    if message.channel_id is None:
        return state.received(user.id, message)
    channel = state.channels[message.channel_id]
    if not reads_channel(state, user, channel):
        return False
    return channel.history_public or state.received(user.id, message)


def history_open(state: State, reader: User | None, edits: Sequence[Edit]) -> Sequence[Edit]:
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


# People


def sees_user(state: State, viewer: User, other: User) -> bool:
    """Whether the viewer may know of the other account.

    Where the organization limits it, guests see only those with whom they share a channel or a
    direct conversation.
    """
    if viewer.id == other.id or other.is_bot or sees_everybody(state, viewer):
        return True
    return other.id in state.contacts.of(viewer.id)


def sees_everybody(state: State, viewer: User) -> bool:
    """Whether the viewer may know of every account: all but the guests of some organizations."""
    return not is_guest(state, viewer) or holds(
        state, viewer, state.realm.can_access_all_users_group
    )


def users_seen(state: State, viewer: User | None) -> list[User]:
    """The accounts that the viewer (None: nobody signed in) may know of, in ascending order of ID.
    The same as asking `sees_user` for each, and quicker."""
    if viewer is None or sees_everybody(state, viewer):
        return sorted(state.users, key=lambda user: user.id)
    return [state.users[user_id] for user_id in sorted(contacts_and_bots(state, viewer))]


def contacts_and_bots(state: State, viewer: User) -> set[int]:
    """The accounts that a viewer may know of who may not know of all: itself, all bots, and those
    with which it shares a channel or a direct conversation."""
    return {viewer.id, *state.users.bots, *state.contacts.of(viewer.id)}


def visible_user(state: State, viewer: User, user_id: int | None) -> User:
    """The account of that ID. Refused when there is none that the viewer may know of."""
    user = state.users.get(user_id)
    if user is None or not sees_user(state, viewer, user):
        raise Refused("This user doesn't exist.")
    return user


_LEAST_ROLE = {
    AddressVisibility.EVERYONE: Role.GUEST,
    AddressVisibility.MEMBERS: Role.MEMBER,
    AddressVisibility.MODERATORS: Role.MODERATOR,
    AddressVisibility.ADMINISTRATORS: Role.ADMINISTRATOR,
}


def address_visibility(state: State, user: User) -> AddressVisibility:
    """To whom the account shows its real address."""
    settings = state.settings.get(user.id)
    return settings.email_address_visibility if settings else AddressVisibility.EVERYONE


def sees_address(state: State, viewer: User | None, other: User) -> bool:
    """Whether the viewer (None: nobody signed in) may see the other's real address."""
    if viewer is not None and viewer.id == other.id:
        return True
    return shows_address(state, other, None if viewer is None else role_of(state, viewer))


def shows_address(state: State, user: User, role: Role | None) -> bool:
    """Whether the account shows its real address to others of that role (None: to those who are
    not signed in)."""
    if user.is_bot:
        return True
    return role is not None and opens_address(address_visibility(state, user), role)


def opens_address(visibility: AddressVisibility, role: Role) -> bool:
    """Whether an account with that setting shows its address to others of that role."""
    least = _LEAST_ROLE.get(visibility)
    return least is not None and role <= least


def may_create_users(state: State, user: User) -> bool:
    """Whether the user may make accounts for others."""
    return holds_as_member(state, user, state.realm.can_create_users_group)


def may_create_bot(state: State, user: User, kind: BotKind) -> bool:
    """Whether the user may have a bot of that kind. Incoming webhooks, which can only send, have
    a permission of their own."""
    if holds_as_member(state, user, state.realm.can_create_bots_group):
        return True
    return kind is BotKind.INCOMING_WEBHOOK and holds_as_member(
        state, user, state.realm.can_create_write_only_bots_group
    )


def manages_account(state: State, actor: User, target: User) -> bool:
    """Whether the actor may change the account: an administrator (an owner for an owner's), or
    the owner of a bot."""
    if target.bot is not None and target.bot.owner_id == actor.id:
        return True
    return is_owner(state, actor) if target.is_owner else is_administrator(state, actor)


def may_lend_rights(state: State, actor: User, owner: User) -> bool:
    """Whether the actor may let another person own a bot that the actor has the key of.

    Its rights are never more than its own and the owner's, but for writing to channels, where the
    owner's count alone: nobody gains what they do not have.
    """
    if role_of(state, actor) > role_of(state, owner):
        return False
    return is_administrator(state, actor) or all(
        holds(state, actor, channel.can_send_message_group)
        for channel in state.channels
        if holds(state, owner, channel.can_send_message_group)
    )


def bot_may_be_in(state: State, bot: User, channel: Channel, brought: Collection[int] = ()) -> bool:
    """Whether the account, where it is a bot, can be subscribed to the channel: a guest's bot,
    where the guest is, or is `brought` at the same time."""
    if bot.bot is None or bot.bot.owner_id is None or open_to_spectators(channel):
        return True
    owner = _owner(state, bot)
    if owner is None:
        return False
    return not owner.is_guest or owner.id in brought or state.is_subscribed(owner.id, channel.id)


# User groups


def may_create_groups(state: State, user: User) -> bool:
    """Whether the user may create user groups."""
    return holds_as_member(state, user, state.realm.can_create_groups)


def manages_group(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may change the group and its permissions, and take it out of use. Nobody
    changes the groups of the roles."""
    return not group.is_system and (
        holds_as_member(state, user, state.realm.can_manage_all_groups)
        or holds_as_member(state, user, group.can_manage_group)
    )


def may_add_members(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may bring anybody, and any other group, into the group."""
    return manages_group(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_add_members_group)
    )


def may_remove_members(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may take anybody, and any other group, out of the group."""
    return manages_group(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_remove_members_group)
    )


def may_join(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may become a member of the group by themselves."""
    return may_add_members(state, user, group) or (
        not group.is_system and holds_as_member(state, user, group.can_join_group)
    )


def may_leave(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user, who is in the group, may end that by themselves."""
    return may_remove_members(state, user, group) or (
        not group.is_system and holds(state, user, group.can_leave_group)
    )


def may_mention_group(state: State, user: User, group: UserGroup) -> bool:
    """Whether the user may notify the group's members by a mention. A mention of a group of the
    roles, or of a deactivated one, notifies nobody."""
    return not group.deactivated and holds(state, user, group.can_mention_group)
