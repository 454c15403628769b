"""Messages on the wire."""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.channels.topics import toggles_resolution
from tertulia.domain.names import EMPTY_TOPIC_NAME
from tertulia.markup import linkifiers
from tertulia.model.changes import MessageSent
from tertulia.model.messages import Edit, Flag, Message
from tertulia.model.users import User
from tertulia.service.messages.flags import effective_flags, is_read
from tertulia.state.organization import State
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.store.queries import Relation
from tertulia.wire.api.objects.reactions import (
    ReactionObject,
    Reactor,
    SubmessageObject,
    reaction_object,
    reactor,
    submessage_object,
)
from tertulia.wire.api.objects.users import (
    UNKNOWN_AVATAR,
    UNKNOWN_NAME,
    api_email,
    avatar_url,
    stand_in,
)


class Participant(Struct, kw_only=True):
    """One of the people of a direct conversation."""

    id: int
    email: str
    full_name: str
    is_mirror_dummy: bool = False


class PastEdit(Struct, kw_only=True):
    """One change of a message: what was different before."""

    timestamp: int
    user_id: int | None
    prev_content: str | UnsetType = UNSET
    prev_rendered_content: str | UnsetType = UNSET
    prev_topic: str | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    prev_stream: int | UnsetType = UNSET
    stream: int | UnsetType = UNSET


class MessageObject(Struct, kw_only=True):
    """A message. `flags` are in fetched messages only; events have them beside it."""

    id: int
    type: str
    sender_id: int
    sender_email: str
    sender_full_name: str
    sender_realm_str: str = ""
    client: str
    content: str
    content_type: str
    timestamp: int
    subject: str
    topic_links: list["TopicLink"] = []
    stream_id: int | UnsetType = UNSET
    display_recipient: str | list[Participant]
    recipient_id: int
    avatar_url: str | None
    is_me_message: bool
    reactions: list[ReactionObject] = []
    submessages: list[SubmessageObject] = []
    last_edit_timestamp: int | UnsetType = UNSET
    last_moved_timestamp: int | UnsetType = UNSET
    edit_history: list["PastEdit"] | UnsetType = UNSET
    flags: list[str] | UnsetType = UNSET
    match_content: str | UnsetType = UNSET
    match_subject: str | UnsetType = UNSET


class TopicLink(Struct, kw_only=True):
    """A link in the name of a topic."""

    text: str
    url: str


def topic_links(state: State, topic: str) -> list[TopicLink]:
    """What the name of a topic links, in its order."""
    return [TopicLink(text=text, url=url) for text, url in linkifiers.in_topic(state, topic)]


def topic_shown(topic: str, *, empty_topic_name: bool) -> str:
    """The topic, or for the general chat what a client that knows no empty topics is told."""
    return topic if topic or empty_topic_name else EMPTY_TOPIC_NAME


def recipient_id(message: Message) -> int:
    """One number for each channel and each direct conversation."""
    if message.channel_id is not None:
        return message.channel_id * 2
    return (message.direct_id or 0) * 2 + 1


class _Sender(Struct, frozen=True):
    """A message's sender, as those are told who know (or do not know) of them, and see (or do not
    see) their real address."""

    id: int
    address: str
    full_name: str
    avatar_url: str | None


def _sender(
    state: State,
    user_id: int,
    host: str,
    *,
    sees_sender: bool,
    sees_address: bool,
    client_gravatar: bool,
) -> _Sender:
    user = state.users[user_id]
    if not sees_sender:
        return _Sender(
            id=user_id,
            address=stand_in(user, host),
            full_name=UNKNOWN_NAME,
            avatar_url=UNKNOWN_AVATAR,
        )
    return _Sender(
        id=user_id,
        address=api_email(state, user, host, sees_address=sees_address),
        full_name=user.full_name,
        avatar_url=avatar_url(user, gravatar_by_client=client_gravatar, sees_address=sees_address),
    )


def message_object(
    state: State,
    message: Message,
    host: str,
    *,
    sees_sender: bool,
    sees_address: bool,
    apply_markdown: bool,
    client_gravatar: bool,
    empty_topic_name: bool,
    attached: MessageDetails = NO_DETAILS,
) -> MessageObject:
    """The message for all viewers alike who know (or do not know) of its sender, and see (or do not
    see) their real address, as yet without reactions."""
    sender = _sender(
        state,
        message.sender_id,
        host,
        sees_sender=sees_sender,
        sees_address=sees_address,
        client_gravatar=client_gravatar,
    )
    return _message_object(
        state,
        message,
        sender,
        host,
        apply_markdown=apply_markdown,
        empty_topic_name=empty_topic_name,
        attached=attached,
    )


def _message_object(
    state: State,
    message: Message,
    sender: _Sender,
    host: str,
    *,
    apply_markdown: bool,
    empty_topic_name: bool,
    attached: MessageDetails,
) -> MessageObject:
    channel_id = message.channel_id
    recipient: str | list[Participant]
    if channel_id is not None:
        recipient = state.channels[channel_id].name
    else:
        recipient = [
            Participant(
                id=user_id,
                email=api_email(state, state.users[user_id], host),
                full_name=state.users[user_id].full_name,
            )
            for user_id in state.directs[message.direct_id].members
        ]
    is_channel = channel_id is not None
    return MessageObject(
        id=message.id,
        type="stream" if is_channel else "private",
        sender_id=sender.id,
        sender_email=sender.address,
        sender_full_name=sender.full_name,
        client=message.client,
        content=message.rendered if apply_markdown else message.content,
        content_type="text/html" if apply_markdown else "text/x-markdown",
        timestamp=message.sent_at,
        subject=topic_shown(message.topic, empty_topic_name=empty_topic_name) if is_channel else "",
        topic_links=topic_links(state, message.topic),
        stream_id=UNSET if channel_id is None else channel_id,
        display_recipient=recipient,
        recipient_id=recipient_id(message),
        avatar_url=sender.avatar_url,
        is_me_message=message.is_me,
        submessages=[submessage_object(part) for part in attached.submessages],
    )


class Showing:
    """Messages as one viewer (None: a spectator) may see them at one moment."""

    def __init__(
        self,
        state: State,
        viewer: User | None,
        host: str,
        now: float,
        *,
        apply_markdown: bool,
        client_gravatar: bool,
        empty_topic_name: bool,
    ) -> None:
        self._state = state
        self._viewer = viewer
        self._host = host
        self._now = now
        self._apply_markdown = apply_markdown
        self._client_gravatar = client_gravatar
        self._empty_topic_name = empty_topic_name
        self._senders: dict[int, _Sender] = {}

    def shown(self, message: Message, attached: MessageDetails) -> MessageObject:
        """The message, as yet without flags."""
        sender = self._senders.get(message.sender_id)
        if sender is None:
            sender = self._senders[message.sender_id] = self._sender(message.sender_id)
        shown = _message_object(
            self._state,
            message,
            sender,
            self._host,
            apply_markdown=self._apply_markdown,
            empty_topic_name=self._empty_topic_name,
            attached=attached,
        )
        if attached.reactions:
            reactors = {reaction.user_id for reaction in attached.reactions}
            by = {user_id: self._reactor(user_id) for user_id in reactors}
            shown.reactions = [reaction_object(one, by[one.user_id]) for one in attached.reactions]
        return shown

    def _sender(self, user_id: int) -> _Sender:
        sender = self._state.users[user_id]
        return _sender(
            self._state,
            user_id,
            self._host,
            sees_sender=self._knows_of(sender),
            sees_address=permissions.sees_address(self._state, self._viewer, sender),
            client_gravatar=self._client_gravatar,
        )

    def _reactor(self, user_id: int) -> Reactor:
        state, viewer, user = self._state, self._viewer, self._state.users[user_id]
        return reactor(
            state,
            user,
            self._host,
            sees_user=self._knows_of(user),
            sees_address=permissions.sees_address(state, viewer, user),
        )

    def _knows_of(self, user: User) -> bool:
        """Spectators are told the names of those who write, and of those who react."""
        viewer = self._viewer
        return viewer is None or permissions.sees_user(self._state, viewer, user, self._now)


_NAMES = (
    (Flag.STARRED, "starred"),
    (Flag.COLLAPSED, "collapsed"),
    (Flag.MENTIONED, "mentioned"),
    (Flag.CHANNEL_WILDCARD_MENTIONED, "stream_wildcard_mentioned"),
    (Flag.TOPIC_WILDCARD_MENTIONED, "topic_wildcard_mentioned"),
    (Flag.HAS_ALERT_WORD, "has_alert_word"),
)
_WILDCARDS = Flag.CHANNEL_WILDCARD_MENTIONED | Flag.TOPIC_WILDCARD_MENTIONED


def flag_names(flags: Flag, *, read: bool, historical: bool = False) -> list[str]:
    """A reader's flags by name."""
    return [*_flag_names(int(flags), read, historical)]


@lru_cache
def _flag_names(flags: int, read: bool, historical: bool) -> tuple[str, ...]:
    names = ["read"] if read else []
    names += [name for flag, name in _NAMES if flags & flag]
    if flags & _WILDCARDS:
        names.append("wildcard_mentioned")
    if historical:
        names.append("historical")
    return tuple(names)


def flags_of(state: State, user_id: int, message: Message, relation: Relation) -> list[str]:
    """All flags of a fetched message, by name."""
    return flag_names(
        effective_flags(state, user_id, message, relation),
        read=is_read(state, user_id, message, relation),
        historical=not state.received(user_id, message),
    )


def flags_on_arrival(state: State, user_id: int, sent: MessageSent) -> list[str]:
    """The flags in a message's event: those that it came with."""
    message = sent.message
    relation = Relation(sent.flags.get(user_id, Flag(0)), user_id in sent.readers)
    if not state.received(user_id, message):
        return []
    return flag_names(effective_flags(state, user_id, message, relation), read=relation.read)


def unread_key(user_ids: Sequence[int]) -> str:
    """How a direct conversation of several people is called among the unread messages."""
    return ",".join(str(user_id) for user_id in sorted(user_ids))


def add_history(
    state: State, shown: MessageObject, edits: Sequence[Edit], *, empty_topic_name: bool
) -> None:
    """Say of a fetched message when it was edited and moved, and, where the organization shows
    it, what it was before. `edits` are newest first."""
    contents = [edit.at for edit in edits if edit.was_content is not None]
    moves = [edit.at for edit in edits if _is_move(edit)]
    if contents:
        shown.last_edit_timestamp = contents[0]
    if moves:
        shown.last_moved_timestamp = moves[0]
    policy = state.realm.message_edit_history_visibility_policy
    past = [
        _past(edit, empty_topic_name=empty_topic_name)
        for edit in edits
        if policy == "all" or (policy == "moves" and edit.was_content is None)
    ]
    if past:
        shown.edit_history = past


def _is_move(edit: Edit) -> bool:
    """Whether the message went somewhere; a topic that is only resolved stays where it is."""
    if edit.was_channel_id is not None:
        return True
    if edit.was_topic is None or edit.topic is None:
        return False
    return not toggles_resolution(edit.was_topic, edit.topic)


def _past(edit: Edit, *, empty_topic_name: bool) -> PastEdit:
    past = PastEdit(timestamp=edit.at, user_id=edit.user_id)
    if edit.was_content is not None:
        past.prev_content = edit.was_content
        past.prev_rendered_content = edit.was_rendered or ""
    if edit.was_topic is not None and edit.topic is not None:
        past.prev_topic = topic_shown(edit.was_topic, empty_topic_name=empty_topic_name)
        past.topic = topic_shown(edit.topic, empty_topic_name=empty_topic_name)
    if edit.was_channel_id is not None and edit.channel_id is not None:
        past.prev_stream, past.stream = edit.was_channel_id, edit.channel_id
    return past
