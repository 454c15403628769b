"""Sending messages: who can send where, who receives a message, and with which flags."""

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec
from msgspec import Struct

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.channels import topics
from tertulia.domain.messages import attachments, widgets
from tertulia.domain.organization.imports import require_moved
from tertulia.model.changes import MessageSent
from tertulia.model.channels import Channel, TopicsPolicy, topic_key
from tertulia.model.errors import KeyInsufficient, NoSuchChannel, Refused, WildcardNotAllowed
from tertulia.model.messages import DirectConversation, Flag, Message, Rendered, Submessage
from tertulia.model.user_topics import Visibility
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.messages import channel_destination, direct_destination, request_digest
from tertulia.state.state import State

WILDCARD_FREE = 15
"""Mentioning more people than this with a wildcard requires a permission."""


class ToChannel(Struct, frozen=True, tag="channel"):
    """A topic of a channel, by ID or by name. Messages of the server's bots can contain the channel
    itself, which the same decision may create."""

    topic: str
    channel_id: int | None = None
    name: str | None = None
    channel: Channel | None = None


class ToPeople(Struct, frozen=True, tag="people"):
    """The other people in a direct conversation, by ID. The sender is always in it."""

    user_ids: frozenset[int]


class ComposedMessage(Struct, frozen=True, kw_only=True):
    """A message's normalized content (`names.message_content`) and its rendering."""

    content: str
    rendered: Rendered
    topic_participants: frozenset[int] = frozenset()
    """The people who wrote in the topic before, if the message mentions them all."""
    opened_attachments: frozenset[int] = frozenset()
    """Linked files that the author doesn't own but can open."""


class MessageDraft(ComposedMessage, frozen=True, kw_only=True):
    to: ToChannel | ToPeople
    client: str = ""
    read_by_sender: bool = False
    queue_id: str | None = None
    local_id: str | None = None
    form: str | None = None
    """JSON of the form that is shown as the message (`widgets.checked_form`)."""
    identity: str | None = None
    """The content that identifies the request, if the message's content differs between
    attempts."""

    def request_digest(self, state: State, sender_id: int) -> str:
        """Return a digest of the destination and content; empty without a queue ID and a local
        ID."""
        if not (self.queue_id and self.local_id):
            return ""
        to = self.to
        if isinstance(to, ToPeople):
            destination = direct_destination({*to.user_ids, sender_id})
        else:
            named = None if to.name is None else state.channel_named(to.name)
            channel_id = to.channel_id or (named.id if named else 0)
            destination = channel_destination(channel_id, to.topic)
        content = self.content if self.identity is None else self.identity
        return request_digest(self.queue_id, self.local_id, *destination, content, self.form or "")


class Sent(Struct, frozen=True, kw_only=True):
    """The result of `send`."""

    message_id: int
    visibility: Visibility | None = None
    """The sender's visibility policy for the topic, if sending changed it."""


def send(context: CommandContext, draft: MessageDraft) -> Decision[Sent]:
    """Send a message, and follow or unmute its topic for the sender and mentioned users whose
    settings say so. If the same request was sent before, by the draft's queue ID and local ID,
    return that message.

    Raise NoSuchChannel, WildcardNotAllowed, or Refused (posting rights, topic rules, unknown or
    deactivated recipients, rules for direct messages).
    """
    before = sent_before(context, draft)
    if before is not None:
        return Decision(Sent(message_id=before))
    (change,) = sending_changes([(context, draft)])
    followed = topics.sending_visibility_changes(context, change)
    visibilities = [change.visibility for change in followed if change.user_id == context.actor.id]
    sent = Sent(message_id=change.message.id, visibility=visibilities[0] if visibilities else None)
    return Decision(sent, [change, *followed])


def sent_before(context: CommandContext, draft: MessageDraft) -> int | None:
    """Return the ID of the message that the same request already sent, if any."""
    digest = draft.request_digest(context.state, context.actor.id)
    return context.state.sent.find(context.actor.id, digest) if digest else None


def sending_changes(drafts: Sequence[tuple[CommandContext, MessageDraft]]) -> list[MessageSent]:
    """Return the changes that send these messages in order, each in its sender's context. Raise as
    `send`."""
    begun: dict[tuple[int, ...], DirectConversation] = {}
    sent: list[MessageSent] = []
    begun_widgets = 0
    for n, (context, draft) in enumerate(drafts):
        require_moved(context.state)
        message_id = context.state.last_message_id + 1 + n
        change = _sending_change(context, draft, message_id, begun)
        if draft.form is not None or draft.content.startswith("/"):
            change = _with_widget(context, change, draft, begun_widgets)
        begun_widgets += change.widget is not None
        sent.append(change)
    return sent


def _with_widget(
    context: CommandContext, change: MessageSent, draft: MessageDraft, begun_widgets: int
) -> MessageSent:
    """Add the draft's widget, if any. `begun_widgets` is the number of widgets in earlier
    drafts."""
    content = draft.form or widgets.first_submessage(draft.content)
    if content is None:
        return change
    message = change.message
    widget = Submessage(
        id=widgets.next_submessage_id(context.state) + begun_widgets,
        message_id=message.id,
        sender_id=message.sender_id,
        kind=widgets.WIDGET,
        content=content,
    )
    return msgspec.structs.replace(change, widget=widget)


def _sending_change(
    context: CommandContext,
    draft: MessageDraft,
    message_id: int,
    begun: dict[tuple[int, ...], DirectConversation],
) -> MessageSent:
    state, sender_id = context.state, context.actor.id
    claimed = attachments.claimed_files(
        state, context.actor, draft.content, draft.opened_attachments
    )
    message = Message(
        id=message_id,
        sender_id=sender_id,
        sent_at=int(context.now),
        content=draft.content,
        rendered=draft.rendered.html,
        client=draft.client,
        has_link=draft.rendered.has_link or bool(state.uploads.linked_files(draft.content)),
        has_image=draft.rendered.has_image,
        has_attachment=bool(claimed),
        is_me=draft.rendered.is_me,
    )
    if isinstance(draft.to, ToChannel):
        change = _to_channel(context, draft, draft.to, message)
    else:
        change = _to_people(context, draft, draft.to, message, begun)
    awaits_previews = bool(draft.rendered.pages) and not context.actor.is_system_bot
    if not claimed and not awaits_previews:
        return change
    return msgspec.structs.replace(
        change, attachment_ids=tuple(a.id for a in claimed), awaits_previews=awaits_previews
    )


def _to_channel(
    context: CommandContext, draft: MessageDraft, to: ToChannel, message: Message
) -> MessageSent:
    state, actor = context.state, context.actor
    channel = to.channel or postable_channel(context, to)
    topic = names.topic_name(to.topic)
    check_topic(state, actor, channel, topic)
    rendered = draft.rendered
    subscribers = state.subscriptions.of_channel[channel.id]
    participants = {
        user_id
        for user_id in draft.topic_participants
        if user_id in subscribers and subscribers[user_id].is_active
    }
    check_wildcards(context, channel, rendered, participants)

    def receives(user_id: int) -> bool:
        return user_id in subscribers and subscribers[user_id].is_active

    present = (user_id for user_id, subscriber in subscribers.items() if subscriber.is_active)
    flags = mentions(context, rendered, participants, present)
    _flag_alerted(state, draft, flags, receives)
    is_subscribed = state.is_subscribed(actor.id, channel.id)
    return MessageSent(
        message=msgspec.structs.replace(
            message, channel_id=channel.id, topic=topic, mentions_all=rendered.mentions_all
        ),
        flags=dict(sorted(flags.items())),
        read_by_sender=draft.read_by_sender and is_subscribed,
        read_by=_muters(state, actor, receives),
        queue_id=draft.queue_id,
        local_id=draft.local_id,
        request_digest=draft.request_digest(state, actor.id),
    )


def check_wildcards(
    context: CommandContext, channel: Channel, rendered: Rendered, participants: Collection[int]
) -> None:
    """Raise WildcardNotAllowed if a wildcard mention notifies more people than the actor is allowed
    to."""
    state = context.state
    if not rendered.mentions_all and not rendered.mentions_topic:
        return
    reached = len(state.subscribers(channel.id) if rendered.mentions_all else participants)
    if reached > WILDCARD_FREE and not permissions.holds(
        state, context.actor, state.realm.can_mention_many_users_group
    ):
        raise WildcardNotAllowed(of_topic=not rendered.mentions_all)


def mentions(
    context: CommandContext,
    rendered: Rendered,
    participants: Collection[int],
    receivers: Iterable[int],
    *,
    direct: bool = False,
) -> dict[int, Flag]:
    """Return the mention flags of the receivers who are mentioned by name, in a group, or as
    participants of the topic. In a direct conversation, everyone is a participant. Raise Refused if
    the actor can't mention one of the groups."""
    named = rendered.mentions | _members_mentioned(context, rendered)
    everybody = direct and rendered.mentions_all
    if not named and not rendered.mentions_topic and not everybody:
        return {}
    if not rendered.mentions_topic and not everybody:  # Faster than a loop for many receivers.
        return dict.fromkeys(
            (receiver for receiver in receivers if receiver in named), Flag.MENTIONED
        )
    flags: dict[int, Flag] = {}
    for user_id in receivers:
        flag = Flag.MENTIONED if user_id in named else Flag(0)
        if everybody:
            flag |= Flag.CHANNEL_WILDCARD_MENTIONED
        if rendered.mentions_topic and (direct or user_id in participants):
            flag |= Flag.TOPIC_WILDCARD_MENTIONED
        if flag:
            flags[user_id] = flag
    return flags


def _members_mentioned(context: CommandContext, rendered: Rendered) -> frozenset[int]:
    """Return the members of mentioned groups. Raise Refused if the actor can't mention one of
    them."""
    state, members = context.state, frozenset[int]()
    for group_id in sorted(rendered.mentioned_groups):
        group = state.groups[group_id]
        permissions.require(
            permissions.may_mention_group(state, context.actor, group),
            f"You don't have permission to mention the group '{group.name}'.",
        )
        members |= state.memberships.members(group_id)
    return members


def _flag_alerted(
    state: State, draft: MessageDraft, flags: dict[int, Flag], receives: Callable[[int], bool]
) -> None:
    """Add the alert word flag for recipients who have one of the message's words as an alert
    word."""
    for user_id in state.alerts.alerted_by(draft.content):
        if receives(user_id):
            flags[user_id] = flags.get(user_id, Flag(0)) | Flag.HAS_ALERT_WORD


def _muters(state: State, sender: User, receives: Callable[[int], bool]) -> tuple[int, ...]:
    """Return the recipients who muted the sender."""
    muters = state.muted_users.of_muted[sender.id]
    return tuple(muted.user_id for muted in muters if receives(muted.user_id))


def postable_channel(context: CommandContext, to: ToChannel) -> Channel:
    """Return the destination channel. Raise NoSuchChannel, or Refused if the actor can't send
    there."""
    state, actor = context.state, context.actor
    channel = (
        state.channels.get(to.channel_id)
        if to.channel_id is not None
        else state.channel_named(to.name or "")
    )
    if channel is None or not (
        actor.is_system_bot or channel_access.sees_channel(state, actor, channel)
    ):
        raise NoSuchChannel(channel_id=to.channel_id, name=to.name)
    permissions.require(
        channel_access.may_send_to(state, actor, channel),
        f"You don't have permission to send messages to '{channel.name}'.",
    )
    return channel


def check_topic(state: State, actor: User, channel: Channel, topic: str) -> None:
    """Raise Refused for a topic that the channel's policy or the actor's permissions don't
    allow."""
    policy = channel.topics_policy
    if policy is TopicsPolicy.INHERIT:
        policy = TopicsPolicy(state.realm.topics_policy)
    if not topic and policy is TopicsPolicy.DISABLE_EMPTY:
        raise Refused("This channel doesn't allow messages without a topic.")
    if topic and policy is TopicsPolicy.EMPTY_ONLY:
        raise Refused("This channel allows messages only in the general chat topic.")
    known = topic_key(topic) in state.topics.of_channel[channel.id]
    if not known:
        names.check_new_topic(topic)
    if not known and not actor.is_system_bot:
        permissions.require(
            permissions.holds(state, actor, channel.can_create_topic_group),
            "You don't have permission to start new topics in this channel.",
        )


def _to_people(
    context: CommandContext,
    draft: MessageDraft,
    to: ToPeople,
    message: Message,
    begun: dict[tuple[int, ...], DirectConversation],
) -> MessageSent:
    state, actor = context.state, context.actor
    members = direct_members(context, to.user_ids)
    direct_id = state.directs.by_members.get(members)
    new = None
    if members in begun:
        direct_id = begun[members].id
    elif direct_id is None:
        new = DirectConversation(id=state.directs.next_id() + len(begun), members=members)
        begun[members] = new
        direct_id = new.id
    flags = mentions(context, draft.rendered, (), members, direct=True)
    _flag_alerted(state, draft, flags, members.__contains__)
    return MessageSent(
        message=msgspec.structs.replace(message, direct_id=direct_id),
        flags=dict(sorted(flags.items())),
        read_by_sender=draft.read_by_sender,
        read_by=_muters(state, actor, members.__contains__),
        new_conversation=new,
        queue_id=draft.queue_id,
        local_id=draft.local_id,
        request_digest=draft.request_digest(state, actor.id),
    )


def direct_members(context: CommandContext, user_ids: Iterable[int]) -> tuple[int, ...]:
    """Return the IDs of the people in a direct conversation, including the actor, ascending. Raise
    Refused for unknown, invisible, and deactivated people, and if the organization's rules for
    direct messages forbid it."""
    state, actor = context.state, context.actor
    if not actor.reaches(None):
        raise KeyInsufficient("This key isn't allowed to access direct messages.")
    others = sorted(set(user_ids) - {actor.id})
    people: list[User] = []
    for user_id in others:
        user = state.users.get(user_id)
        if user is None or not permissions.sees_user(state, actor, user):
            raise Refused(f"User {user_id} doesn't exist.")
        if not user.is_active:
            raise Refused(f"'{user.full_name}' is deactivated and no longer receives messages.")
        people.append(user)
    members = tuple(sorted([actor.id, *others]))
    if others and not actor.is_system_bot and not all(user.is_bot for user in people):
        _check_direct_rules(state, actor, people, members)
    return members


def _check_direct_rules(
    state: State, actor: User, people: Sequence[User], members: tuple[int, ...]
) -> None:
    realm = state.realm
    permissions.require(
        any(
            permissions.holds(state, user, realm.direct_message_permission_group)
            for user in [actor, *people]
        ),
        "The organization's permissions don't allow direct messages between these people.",
    )
    if members not in state.directs.by_members:
        permissions.require(
            permissions.holds(state, actor, realm.direct_message_initiator_group),
            "You don't have permission to start direct message conversations.",
        )
