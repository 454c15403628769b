"""Messages as JSON objects."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.model.messages import Message, MessageEdit
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.wire.api.messages.edits import PastEdit, edited_at, moved_at, past_edits
from tertulia.wire.api.reactions import (
    ReactionObject,
    Reactor,
    SubmessageObject,
    reaction_object,
    reactor,
    submessage_object,
)
from tertulia.wire.api.topics import TopicLink, display_topic, topic_links
from tertulia.wire.api.users.objects import (
    UNKNOWN_AVATAR,
    UNKNOWN_NAME,
    api_email,
    avatar_url,
    stand_in,
)


class Participant(Struct, kw_only=True):
    """A participant of a direct conversation."""

    id: int
    email: str
    full_name: str
    is_mirror_dummy: bool = False


class MessageObject(Struct, kw_only=True):
    """A message. `flags` is only in fetched messages; message events have it next to the
    message."""

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
    topic_links: list[TopicLink] = []
    stream_id: int | UnsetType = UNSET
    display_recipient: str | list[Participant]
    recipient_id: int
    avatar_url: str | None
    is_me_message: bool
    reactions: list[ReactionObject] = []
    submessages: list[SubmessageObject] = []
    last_edit_timestamp: int | UnsetType = UNSET
    last_moved_timestamp: int | UnsetType = UNSET
    edit_history: list[PastEdit] | UnsetType = UNSET
    flags: list[str] | UnsetType = UNSET
    match_content: str | UnsetType = UNSET
    match_subject: str | UnsetType = UNSET


def recipient_id(message: Message) -> int:
    """Return a unique number for the channel or direct conversation."""
    if message.channel_id is not None:
        return message.channel_id * 2
    return (message.direct_id or 0) * 2 + 1


def subject_of(message: Message, *, empty_topic_name: bool) -> str:
    """Return the topic as displayed, or an empty string for direct messages."""
    if message.channel_id is None:
        return ""
    return display_topic(message.topic, empty_topic_name=empty_topic_name)


class MessageFormat(NamedTuple):
    """The format of message objects that a client wants."""

    apply_markdown: bool
    client_gravatar: bool
    empty_topic_name: bool


class _Sender(NamedTuple):
    """The sender's fields, as viewers with the same access to the sender see them."""

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
        return _Sender(user_id, stand_in(user, host), UNKNOWN_NAME, UNKNOWN_AVATAR)
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
    form: MessageFormat,
    *,
    sees_sender: bool,
    sees_address: bool,
    details: MessageDetails = NO_DETAILS,
) -> MessageObject:
    """Return the message without reactions, as seen by viewers who can see its sender or not, and
    the sender's real address or not."""
    sender = _sender(
        state,
        message.sender_id,
        host,
        sees_sender=sees_sender,
        sees_address=sees_address,
        client_gravatar=form.client_gravatar,
    )
    return _message_object(state, message, sender, host, form, details)


def _message_object(
    state: State,
    message: Message,
    sender: _Sender,
    host: str,
    form: MessageFormat,
    details: MessageDetails,
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
    return MessageObject(
        id=message.id,
        type="private" if channel_id is None else "stream",
        sender_id=sender.id,
        sender_email=sender.address,
        sender_full_name=sender.full_name,
        client=message.client,
        content=message.rendered if form.apply_markdown else message.content,
        content_type="text/html" if form.apply_markdown else "text/x-markdown",
        timestamp=message.sent_at,
        subject=subject_of(message, empty_topic_name=form.empty_topic_name),
        topic_links=topic_links(state, message.topic),
        stream_id=UNSET if channel_id is None else channel_id,
        display_recipient=recipient,
        recipient_id=recipient_id(message),
        avatar_url=sender.avatar_url,
        is_me_message=message.is_me,
        submessages=[submessage_object(part) for part in details.submessages],
    )


class MessageObjects:
    """Makes message objects for one viewer (None: a spectator)."""

    def __init__(self, state: State, viewer: User | None, host: str, form: MessageFormat) -> None:
        self._state, self._viewer, self._host, self._form = state, viewer, host, form
        self._senders: dict[int, _Sender] = {}

    def of(self, message: Message, details: MessageDetails) -> MessageObject:
        """Return the message without flags and edit history."""
        sender = self._senders.get(message.sender_id)
        if sender is None:
            sender = self._senders[message.sender_id] = self._sender(message.sender_id)
        made = _message_object(self._state, message, sender, self._host, self._form, details)
        if details.reactions:
            reactors = {reaction.user_id for reaction in details.reactions}
            by = {user_id: self._reactor(user_id) for user_id in reactors}
            made.reactions = [
                reaction_object(reaction, by[reaction.user_id]) for reaction in details.reactions
            ]
        return made

    def _sender(self, user_id: int) -> _Sender:
        state, viewer, user = self._state, self._viewer, self._state.users[user_id]
        return _sender(
            state,
            user_id,
            self._host,
            sees_sender=self._sees(user),
            sees_address=permissions.sees_address(state, viewer, user),
            client_gravatar=self._form.client_gravatar,
        )

    def _reactor(self, user_id: int) -> Reactor:
        state, viewer, user = self._state, self._viewer, self._state.users[user_id]
        return reactor(
            state,
            user,
            self._host,
            sees_user=self._sees(user),
            sees_address=permissions.sees_address(state, viewer, user),
        )

    def _sees(self, user: User) -> bool:
        """Whether the viewer can see the user. Spectators see the names of everyone who writes or
        reacts."""
        viewer = self._viewer
        return viewer is None or permissions.sees_user(self._state, viewer, user)


def unread_key(user_ids: Sequence[int]) -> str:
    """Return the key of a group conversation in the unread messages."""
    return ",".join(str(user_id) for user_id in sorted(user_ids))


def add_history(
    state: State, message: MessageObject, edits: Sequence[MessageEdit], *, empty_topic_name: bool
) -> None:
    """Add the edit history to a fetched message. `edits` are newest first."""
    message.last_edit_timestamp = edited_at(edits)
    message.last_moved_timestamp = moved_at(edits)
    message.edit_history = past_edits(state, edits, empty_topic_name=empty_topic_name) or UNSET
