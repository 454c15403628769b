"""Messages on the wire."""

from collections.abc import Sequence

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
from tertulia.wire.api.topics import TopicLink, topic_links, topic_shown
from tertulia.wire.api.users.objects import (
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
    """One number for each channel and each direct conversation."""
    if message.channel_id is not None:
        return message.channel_id * 2
    return (message.direct_id or 0) * 2 + 1


def subject_of(message: Message, *, empty_topic_name: bool) -> str:
    """The topic as it is shown; empty for direct messages."""
    if message.channel_id is None:
        return ""
    return topic_shown(message.topic, empty_topic_name=empty_topic_name)


class _Sender(Struct, frozen=True):
    """A message's sender as a kind of viewers see it: who know of the sender or not, and see their
    real address or not."""

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
    details: MessageDetails = NO_DETAILS,
) -> MessageObject:
    """The message as all viewers see it who know of its sender or not (`sees_sender`), and see
    their real address or not (`sees_address`). Without reactions."""
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
        details=details,
    )


def _message_object(
    state: State,
    message: Message,
    sender: _Sender,
    host: str,
    *,
    apply_markdown: bool,
    empty_topic_name: bool,
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
        subject=subject_of(message, empty_topic_name=empty_topic_name),
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

    def __init__(
        self,
        state: State,
        viewer: User | None,
        host: str,
        *,
        apply_markdown: bool,
        client_gravatar: bool,
        empty_topic_name: bool,
    ) -> None:
        self._state = state
        self._viewer = viewer
        self._host = host
        self._apply_markdown = apply_markdown
        self._client_gravatar = client_gravatar
        self._empty_topic_name = empty_topic_name
        self._senders: dict[int, _Sender] = {}

    def of(self, message: Message, details: MessageDetails) -> MessageObject:
        """The object of the message, without flags."""
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
            details=details,
        )
        if details.reactions:
            reactors = {reaction.user_id for reaction in details.reactions}
            by = {user_id: self._reactor(user_id) for user_id in reactors}
            shown.reactions = [reaction_object(one, by[one.user_id]) for one in details.reactions]
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
        """Spectators see the names of all who write and react."""
        viewer = self._viewer
        return viewer is None or permissions.sees_user(self._state, viewer, user)


def unread_key(user_ids: Sequence[int]) -> str:
    """How a direct conversation of several people is called among the unread messages."""
    return ",".join(str(user_id) for user_id in sorted(user_ids))


def add_history(
    state: State, shown: MessageObject, edits: Sequence[MessageEdit], *, empty_topic_name: bool
) -> None:
    """Add to a fetched message when it was edited and moved, and what it was before. `edits` are
    newest first."""
    shown.last_edit_timestamp = edited_at(edits)
    shown.last_moved_timestamp = moved_at(edits)
    shown.edit_history = past_edits(state, edits, empty_topic_name=empty_topic_name) or UNSET
