"""Messages that the server's bots post about a change, in the same decision."""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from tertulia.domain import names
from tertulia.domain.channels import topics
from tertulia.domain.messages import sending
from tertulia.domain.messages.sending import MessageDraft, ToChannel, ToPeople
from tertulia.domain.organization.lifecycle import NOTIFICATION_BOT
from tertulia.model.changes import MessageSent, MessagesMoved
from tertulia.model.channels import RESOLVED_PREFIX, Channel, TopicsPolicy
from tertulia.model.edits import TopicMove
from tertulia.model.groups import GroupSetting, Members, UserGroup
from tertulia.model.messages import Rendered
from tertulia.model.users import User
from tertulia.state.decision import CommandContext
from tertulia.state.state import State
from tertulia.texts import Texts, language_of, texts

# Topics have the same name in all languages, so that they stay if the organization's changes.
CHANNEL_EVENTS = "channel events"
"""The topic for messages about the channel itself."""
NEW_CHANNELS = "new channels"
CLIENT = "Internal"

Render = Callable[[CommandContext, str], Rendered]
"""Renders Markdown to HTML, as if the context's actor had written it."""


class BotMessage(Struct, frozen=True):
    """A message to post as one of the server's bots."""

    to: ToChannel | ToPeople
    content: str
    sender_id: int = NOTIFICATION_BOT
    about_id: int | None = None
    """The user whose own action it reports. For them, it's read from the start."""


def posting_changes(
    context: CommandContext,
    messages: Sequence[BotMessage],
    render: Render,
    new: Sequence[Channel] = (),
    users: Sequence[User] = (),
    joined: Sequence[Channel] = (),
) -> list[MessageSent]:
    """Return the changes that post the messages, in order. Their mentions notify nobody.

    `new` and `users` are channels and accounts that the same decision creates, so that the messages
    can be sent to them, link them, and mention them. `joined` are channels that it subscribes
    the user whose action the messages report.
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
    joined_ids = {channel.id for channel in joined}
    return [
        _read_by_doer(context.state, change, message.about_id, joined_ids)
        for change, message in zip(sending.sending_changes(drafts), messages, strict=True)
    ]


def _read_by_doer(
    state: State, change: MessageSent, user_id: int | None, joined_ids: set[int]
) -> MessageSent:
    channel_id = change.message.channel_id
    if user_id is None or channel_id is None or user_id in change.read_by:
        return change
    if channel_id not in joined_ids and not state.is_subscribed(user_id, channel_id):
        return change
    return msgspec.structs.replace(change, read_by=(*change.read_by, user_id))


def texts_for(state: State, user_id: int | None = None) -> Texts:
    """Return the texts in the user's language; in the organization's language for None, which
    stands for a channel or a new user."""
    settings = None if user_id is None else state.settings.get(user_id)
    language = state.realm if settings is None else settings
    return texts(language_of(language.default_language), "bot_messages")


def to_user(user_id: int, content: str) -> BotMessage:
    return BotMessage(ToPeople(frozenset({user_id})), content)


def channel_message(
    state: State,
    channel: Channel,
    content: str,
    topic: str = CHANNEL_EVENTS,
    about_id: int | None = None,
) -> BotMessage:
    """Return a message to a topic of the channel, or to its general chat if the channel allows no
    other topic."""
    policy = channel.topics_policy
    if policy is TopicsPolicy.INHERIT:
        policy = TopicsPolicy(state.realm.topics_policy)
    return BotMessage(
        ToChannel(topic="" if policy is TopicsPolicy.EMPTY_ONLY else topic, channel=channel),
        content,
        about_id=about_id,
    )


def new_channel_messages(
    context: CommandContext, channels: Sequence[Channel], *, announce: bool
) -> list[BotMessage]:
    """Return the messages about new channels: one in each, and one about the public channels in the
    channel for announcements."""
    state, words, creator = context.state, texts_for(context.state), silent_mention(context.actor)
    sent: list[BotMessage] = []
    public = [channel for channel in channels if not channel.is_private]
    board = state.channels.get(state.realm.new_channel_announcements_channel_id)
    if announce and public and board is not None and not board.is_archived:
        text = words("channels_created", count=len(public), person=creator, channels=_links(public))
        sent.append(channel_message(state, board, text, NEW_CHANNELS, context.actor.id))
    if state.realm.send_channel_events_messages:
        for channel in channels:
            text = words("channel_created", privacy=_privacy(words, channel), person=creator)
            if channel.description:
                text += f" {words('with_description')}\n{fenced_block(channel.description)}"
            sent.append(channel_message(state, channel, text, about_id=context.actor.id))
    return sent


def subscribed_message(
    state: State, actor: User, user_id: int, channels: Sequence[Channel]
) -> BotMessage:
    """Return the message to a user whom someone else subscribed to channels."""
    facts = {"count": len(channels), "person": silent_mention(actor), "channels": _links(channels)}
    return to_user(user_id, texts_for(state, user_id)("subscribed", **facts))


def group_change_message(
    state: State, actor: User, user_id: int, group: UserGroup, *, added: bool
) -> BotMessage:
    """Return the message to a user whom someone else added to a group, or removed from it."""
    name = "added_to_group" if added else "removed_from_group"
    words = texts_for(state, user_id)
    return to_user(user_id, words(name, person=silent_mention(actor), group=_silent(group)))


def channel_change_messages(
    context: CommandContext, before: Channel, after: Channel
) -> list[BotMessage]:
    """Return the messages, in the channel, about its changes."""
    state = context.state
    if not state.realm.send_channel_events_messages or after.is_archived:
        return []
    words = texts_for(state)
    notes: list[str] = []

    def note(name: str, old: str = "", new: str = "", right: str = "") -> None:
        who = silent_mention(context.actor)
        notes.append(words(name, person=who, old=old, new=new, right=right))

    if before.name != after.name:
        note("channel_renamed", before.name, after.name)
    if before.description != after.description:
        note("description_changed")
        none = words("no_description")
        notes[-1] += (
            f"\n\n{words('old_description')}\n{fenced_block(before.description or none)}\n"
            f"{words('new_description')}\n{fenced_block(after.description or none)}"
        )
    if (old := _privacy(words, before)) != (new := _privacy(words, after)):
        note("privacy_changed", old, new)
    if before.retention_days != after.retention_days:
        note("retention_changed", _retention(words, before), _retention(words, after))
    if before.folder_id != after.folder_id:
        note("folder_changed", _folder(state, words, before), _folder(state, words, after))
    for name, right in words.texts["rights"].items():
        old_holders, new_holders = getattr(before, name), getattr(after, name)
        if old_holders != new_holders:
            note(
                "right_changed",
                _holders(state, words, old_holders),
                _holders(state, words, new_holders),
                right,
            )
    return [channel_message(state, after, text, about_id=context.actor.id) for text in notes]


def silent_mention(user: User) -> str:
    """Return a silent mention of the user."""
    return f"@_**{user.full_name}|{user.id}**"


def _privacy(words: Texts, channel: Channel) -> str:
    if channel.is_web_public:
        return words("web_public")
    if not channel.is_private:
        return words("public")
    return words("shared_history" if channel.history_public else "protected_history")


def fenced_block(text: str, kind: str = "text") -> str:
    """Return the text in a fenced block that it can't break out of. `kind` is `text` for literal
    text, or `quote` or `spoiler` for Markdown."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence} {kind}\n{text}\n{fence}"


def _links(channels: Iterable[Channel]) -> str:
    return ", ".join(f"#**{channel.name}**" for channel in channels)


def _retention(words: Texts, channel: Channel) -> str:
    match channel.retention_days:
        case None:
            return words("kept_as_others")
        case -1:
            return words("kept_forever")
        case days:
            return words("kept_days", count=days)


def _folder(state: State, words: Texts, channel: Channel) -> str:
    if channel.folder_id is None:
        return words("no_folder")
    return words("folder", name=state.folders[channel.folder_id].name)


def _holders(state: State, words: Texts, setting: GroupSetting) -> str:
    if isinstance(setting, int):
        return _group(state, setting)
    return _members(state, setting) or words("no_holder")


def _members(state: State, members: Members) -> str:
    people = [silent_mention(state.users[user_id]) for user_id in members.direct_members]
    return ", ".join([*people, *(_group(state, group) for group in members.direct_subgroups)])


def _group(state: State, group_id: int) -> str:
    group = state.groups[group_id]
    return f"**{group.name.removeprefix('role:')}**" if group.is_system else _silent(group)


def _silent(group: UserGroup) -> str:
    return f"@_*{group.name}*"


def move_messages(
    state: State,
    user: User,
    moved: MessagesMoved | TopicMove,
    *,
    tell_old: bool,
    tell_new: bool,
    is_all: bool,
    count: int,
) -> list[BotMessage]:
    """Return the messages in the old and the new topic about a move of `count` messages. `is_all`
    means that they are the whole topic."""
    words, who = texts_for(state), silent_mention(user)
    source, target = state.channels[moved.channel_id], state.channels[moved.new_channel_id]
    source_place = ToChannel(topic=moved.topic, channel=source)
    there = ToChannel(topic=moved.new_topic, channel=target)
    if source is target and topics.toggles_resolution(moved.topic, moved.new_topic):
        done = moved.new_topic.startswith(RESOLVED_PREFIX)
        name = "topic_resolved" if done else "topic_unresolved"
        return [BotMessage(there, words(name, person=who), about_id=user.id)]
    messages = []
    if tell_old:
        name = "topic_moved_to" if is_all else "messages_moved_to"
        place = _named(words, source, target, moved.new_topic)
        text = words(name, person=who, place=place, count=count)
        messages.append(BotMessage(source_place, text, about_id=user.id))
    if tell_new:
        name = "topic_moved_from" if is_all else "messages_moved_from"
        place = _named(words, target, source, moved.topic)
        text = words(name, person=who, place=place, count=count)
        messages.append(BotMessage(there, text, about_id=user.id))
    return messages


def _named(words: Texts, reading: Channel, channel: Channel, topic: str) -> str:
    """Return the name of a topic for a message in the channel `reading`. It's left out if some
    readers might not see the topic's channel."""
    is_seen = channel.is_web_public or not (channel.is_private or reading.is_web_public)
    if channel.id != reading.id and not is_seen:
        return words("another_channel")
    return f"#**{channel.name}>{topic}**"
