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
from tertulia.model.users import User
from tertulia.state.decision import CommandContext
from tertulia.state.state import State
from tertulia.texts import Texts, language_of, texts

# Topics have one name in all languages, so that they stay when the organization's changes.
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


def words_of(state: State, user_id: int | None = None) -> Texts:
    """Return the texts of messages to that user, in their language; or to a channel or a new user,
    in the organization's."""
    settings = None if user_id is None else state.settings.get(user_id)
    language = state.realm if settings is None else settings
    return texts(language_of(language.default_language), "bot_messages")


def to_user(user_id: int, content: str) -> BotMessage:
    return BotMessage(ToPeople(frozenset({user_id})), content)


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
    state, words, creator = context.state, words_of(context.state), person(context.actor)
    sent: list[BotMessage] = []
    public = [channel for channel in channels if not channel.is_private]
    board = state.channels.get(state.realm.new_channel_announcements_channel_id)
    if announce and public and board is not None and not board.is_archived:
        text = words("channels_created", count=len(public), person=creator, channels=_links(public))
        sent.append(in_channel(state, board, text, NEW_CHANNELS))
    if state.realm.send_channel_events_messages:
        for channel in channels:
            text = words("channel_created", privacy=_privacy(words, channel), person=creator)
            if channel.description:
                text += f" {words('with_description')}\n{quoted(channel.description)}"
            sent.append(in_channel(state, channel, text))
    return sent


def subscribed_by(
    state: State, actor: User, user_id: int, channels: Sequence[Channel]
) -> BotMessage:
    """Return the message to a user whom someone else subscribed to channels."""
    facts = {"count": len(channels), "person": person(actor), "channels": _links(channels)}
    return to_user(user_id, words_of(state, user_id)("subscribed", **facts))


def group_changed(
    state: State, actor: User, user_id: int, group: UserGroup, *, added: bool
) -> BotMessage:
    """Return the message to a user whom someone else added to a group, or removed from it."""
    name = "added_to_group" if added else "removed_from_group"
    words = words_of(state, user_id)
    return to_user(user_id, words(name, person=person(actor), group=_silent(group)))


def channel_changed(context: CommandContext, before: Channel, after: Channel) -> list[BotMessage]:
    """Return the messages about changes of a channel, in it."""
    state = context.state
    if not state.realm.send_channel_events_messages or after.is_archived:
        return []
    words = words_of(state)
    notes: list[str] = []

    def note(name: str, old: str = "", new: str = "", right: str = "") -> None:
        who = person(context.actor)
        notes.append(words(name, person=who, old=old, new=new, right=right))

    if before.name != after.name:
        note("channel_renamed", before.name, after.name)
    if before.description != after.description:
        note("description_changed")
        none = words("no_description")
        notes[-1] += (
            f"\n\n{words('old_description')}\n{quoted(before.description or none)}\n"
            f"{words('new_description')}\n{quoted(after.description or none)}"
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
    return [in_channel(state, after, text) for text in notes]


def person(user: User) -> str:
    """Return a silent mention."""
    return f"@_**{user.full_name}|{user.id}**"


def _privacy(words: Texts, channel: Channel) -> str:
    if channel.is_web_public:
        return words("web_public")
    if not channel.is_private:
        return words("public")
    return words("shared_history" if channel.history_public else "protected_history")


def quoted(text: str, kind: str = "text") -> str:
    """Return the text in a fenced block that it can't end: literal (`text`), or rendered (`quote`,
    `spoiler`)."""
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
    words, who = words_of(state), person(user)
    source, target = state.channels[moved.channel_id], state.channels[moved.new_channel_id]
    here = ToChannel(topic=moved.topic, channel=source)
    there = ToChannel(topic=moved.new_topic, channel=target)
    if source is target and topics.toggles_resolution(moved.topic, moved.new_topic):
        done = moved.new_topic.startswith(RESOLVED)
        name = "topic_resolved" if done else "topic_unresolved"
        return [BotMessage(there, words(name, person=who))]
    messages = []
    if tell_old:
        name = "topic_moved_to" if is_all else "messages_moved_to"
        place = _named(words, source, target, moved.new_topic)
        messages.append(BotMessage(here, words(name, person=who, place=place, count=count)))
    if tell_new:
        name = "topic_moved_from" if is_all else "messages_moved_from"
        place = _named(words, target, source, moved.topic)
        messages.append(BotMessage(there, words(name, person=who, place=place, count=count)))
    return messages


def _named(words: Texts, reading: Channel, channel: Channel, topic: str) -> str:
    """Return how a message in the channel `reading` names a topic: without its name if some readers
    may not see its channel."""
    is_seen = channel.is_web_public or not (channel.is_private or reading.is_web_public)
    if channel.id != reading.id and not is_seen:
        return words("another_channel")
    return f"#**{channel.name}>{topic}**"
