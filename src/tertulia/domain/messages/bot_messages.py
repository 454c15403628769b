"""Messages that the server's bots post about a change, as part of the same decision."""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from tertulia.domain import names
from tertulia.domain.channels import topics
from tertulia.domain.channels.topics import RESOLVED
from tertulia.domain.messages import sending
from tertulia.domain.messages.sending import MessageDraft, ToChannel, ToPeople
from tertulia.domain.organization.realms import NOTIFICATION_BOT
from tertulia.model.changes import MessageSent, MessagesMoved
from tertulia.model.channels import Channel, TopicsPolicy
from tertulia.model.edits import TopicMove
from tertulia.model.groups import GroupSetting, Members, UserGroup
from tertulia.model.messages import Rendered
from tertulia.model.numbers import counted
from tertulia.model.users import User
from tertulia.state.decision import CommandContext
from tertulia.state.state import State

CHANNEL_EVENTS = "channel events"
"""The topic for events of the channel itself."""
NEW_CHANNELS = "new channels"
CLIENT = "Internal"

Render = Callable[[CommandContext, str], Rendered]
"""Renders Markdown to HTML, as the context's actor writes it."""


class BotMessage(Struct, frozen=True):
    """A message to post as one of the server's bots."""

    to: ToChannel | ToPeople
    content: str
    sender_id: int = NOTIFICATION_BOT


def post(
    context: CommandContext,
    messages: Sequence[BotMessage],
    render: Render,
    new: Sequence[Channel] = (),
    users: Sequence[User] = (),
) -> list[MessageSent]:
    """Return the changes that post the messages, in order. Mentions in them notify nobody.

    `new` and `users` are channels and accounts that the same decision creates: messages can be sent
    to them, link them, and mention them.
    """
    state = context.state.with_changes(*new, *users) if new or users else context.state
    seen = msgspec.structs.replace(context, state=state)
    rendered: dict[str, Rendered] = {}
    drafts = []
    for message in messages:
        content = names.message_content(message.content)
        if content not in rendered:
            rendered[content] = msgspec.structs.replace(
                render(seen, content),
                mentions=frozenset(),
                mentioned_groups=frozenset(),
                mentions_all=False,
                mentions_topic=False,
            )
        drafts.append(
            (
                msgspec.structs.replace(seen, actor_id=message.sender_id),
                MessageDraft(
                    to=message.to, content=content, rendered=rendered[content], client=CLIENT
                ),
            )
        )
    return sending.deliver(drafts)


def in_channel(
    state: State, channel: Channel, content: str, topic: str = CHANNEL_EVENTS
) -> BotMessage:
    """Return a message in a topic of the channel, or in its general chat if it has only that."""
    policy = channel.topics_policy
    if policy is TopicsPolicy.INHERIT:
        policy = TopicsPolicy(state.realm.topics_policy)
    return BotMessage(
        ToChannel(topic="" if policy is TopicsPolicy.EMPTY_ONLY else topic, channel=channel),
        content,
    )


def channels_created(
    context: CommandContext, channels: Sequence[Channel], *, announce: bool
) -> list[BotMessage]:
    """Return the messages about new channels: one in each, and one about the public ones in the
    channel for announcements."""
    state = context.state
    sent: list[BotMessage] = []
    public = [channel for channel in channels if not channel.is_private]
    board = state.channels.get(state.realm.new_channel_announcements_channel_id)
    if announce and public and board is not None and not board.is_archived:
        what = "a new channel" if len(public) == 1 else "new channels"
        text = f"{person(context.actor)} created {what}: {_links(public)}."
        sent.append(in_channel(state, board, text, NEW_CHANNELS))
    if state.realm.send_channel_events_messages:
        for channel in channels:
            text = f"**{privacy(channel)}** channel created by {person(context.actor)}."
            if channel.description:
                text += f" **Description:**\n{quoted(channel.description)}"
            sent.append(in_channel(state, channel, text))
    return sent


def subscribed_by(actor: User, user_id: int, channels: Sequence[Channel]) -> BotMessage:
    """Return the message to a user whom someone else subscribed to channels."""
    is_single = len(channels) == 1
    which = f"channel {_links(channels)}" if is_single else f"channels {_links(channels)}"
    text = f"{person(actor)} subscribed you to the {which}."
    return BotMessage(ToPeople(frozenset({user_id})), text)


def group_changed(actor: User, user_id: int, group: UserGroup, *, added: bool) -> BotMessage:
    """Return the message to a user whom someone else added to a group, or removed from it."""
    done = "added you to" if added else "removed you from"
    return BotMessage(
        ToPeople(frozenset({user_id})), f"{person(actor)} {done} the group {_silent(group)}."
    )


def channel_changed(context: CommandContext, before: Channel, after: Channel) -> list[BotMessage]:
    """Return the messages about changes of a channel, in it."""
    state = context.state
    if not state.realm.send_channel_events_messages or after.is_archived:
        return []
    who = person(context.actor)
    texts: list[str] = []
    if before.name != after.name:
        texts.append(f"{who} renamed this channel from **{before.name}** to **{after.name}**.")
    if before.description != after.description:
        texts.append(
            f"{who} changed the description of this channel.\n\n"
            f"**Old description:**\n{quoted(before.description or 'No description.')}\n"
            f"**New description:**\n{quoted(after.description or 'No description.')}"
        )
    if privacy(before) != privacy(after):
        texts.append(
            f"{who} changed the privacy of this channel from **{privacy(before)}** to"
            f" **{privacy(after)}**."
        )
    if before.retention_days != after.retention_days:
        texts.append(
            f"{who} changed how long messages of this channel are kept from"
            f" **{_retention(before)}** to **{_retention(after)}**."
        )
    if before.folder_id != after.folder_id:
        texts.append(
            f"{who} moved this channel from {_folder(state, before)} to {_folder(state, after)}."
        )
    for name, right in _RIGHTS.items():
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            texts.append(
                f"{who} changed who may {right} from {_holders(state, old)} to"
                f" {_holders(state, new)}."
            )
    return [in_channel(state, after, text) for text in texts]


_RIGHTS = {
    "can_add_subscribers_group": "subscribe others to this channel",
    "can_administer_channel_group": "administer this channel",
    "can_create_topic_group": "begin topics in this channel",
    "can_delete_any_message_group": "delete any message in this channel",
    "can_delete_own_message_group": "delete their own messages in this channel",
    "can_move_messages_out_of_channel_group": "move messages out of this channel",
    "can_move_messages_within_channel_group": "move messages within this channel",
    "can_remove_subscribers_group": "unsubscribe others from this channel",
    "can_resolve_topics_group": "resolve topics in this channel",
    "can_send_message_group": "write in this channel",
    "can_subscribe_group": "subscribe to this channel",
}


def person(user: User) -> str:
    """Return a silent mention."""
    return f"@_**{user.full_name}|{user.id}**"


def privacy(channel: Channel) -> str:
    """Return the type of the channel in words."""
    if channel.is_web_public:
        return "Web-public"
    if not channel.is_private:
        return "Public"
    return f"Private, {'shared' if channel.history_public else 'protected'} history"


def quoted(text: str, kind: str = "text") -> str:
    """Return the text in a fenced block that it can't end: literal (`text`), or rendered (`quote`,
    `spoiler`)."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence} {kind}\n{text}\n{fence}"


def _links(channels: Iterable[Channel]) -> str:
    return ", ".join(f"#**{channel.name}**" for channel in channels)


def _retention(channel: Channel) -> str:
    match channel.retention_days:
        case None:
            return "as long as the organization's"
        case -1:
            return "forever"
        case days:
            return counted(days, "day")


def _folder(state: State, channel: Channel) -> str:
    if channel.folder_id is None:
        return "no folder"
    return f"the folder **{state.folders[channel.folder_id].name}**"


def _holders(state: State, setting: GroupSetting) -> str:
    if isinstance(setting, int):
        return _group(state, setting)
    return _members(state, setting) or "nobody"


def _members(state: State, members: Members) -> str:
    people = [person(state.users[user_id]) for user_id in members.direct_members]
    return ", ".join([*people, *(_group(state, group) for group in members.direct_subgroups)])


def _group(state: State, group_id: int) -> str:
    group = state.groups[group_id]
    return f"**{group.name.removeprefix('role:')}**" if group.is_system else _silent(group)


def _silent(group: UserGroup) -> str:
    return f"@_*{group.name}*"


def messages_moved(
    state: State,
    user: User,
    moved: MessagesMoved | TopicMove,
    *,
    tell_old: bool,
    tell_new: bool,
    is_all: bool,
    count: int,
) -> list[BotMessage]:
    """Return the messages in the old and in the new topic about a move of `count` messages
    (`is_all`: of the whole topic)."""
    who = person(user)
    source, target = state.channels[moved.channel_id], state.channels[moved.new_channel_id]
    here = ToChannel(topic=moved.topic, channel=source)
    there = ToChannel(topic=moved.new_topic, channel=target)
    if source is target and topics.toggles_resolution(moved.topic, moved.new_topic):
        done = moved.new_topic.startswith(RESOLVED)
        return [BotMessage(there, f"{who} marked this topic as {'' if done else 'un'}resolved.")]
    what = "This topic" if is_all else "A message" if count == 1 else f"{count} messages"
    verb = "were" if not is_all and count > 1 else "was"
    messages = []
    if tell_old:
        place = _named(source, target, moved.new_topic)
        messages.append(BotMessage(here, f"{what} {verb} moved to {place} by {who}."))
    if tell_new:
        place = _named(target, source, moved.topic)
        messages.append(BotMessage(there, f"{what} {verb} moved here from {place} by {who}."))
    return messages


def _named(reading: Channel, channel: Channel, topic: str) -> str:
    """Return how a message in the channel `reading` names a topic: without its name if some readers
    may not see its channel."""
    is_seen = channel.is_web_public or not (channel.is_private or reading.is_web_public)
    if channel.id != reading.id and not is_seen:
        return "another channel"
    return f"#**{channel.name}>{topic}**"
