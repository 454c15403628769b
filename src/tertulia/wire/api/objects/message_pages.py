"""Messages as JSON for one viewer, most of it kept for all viewers of a kind."""

from tertulia.domain import permissions
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.store.message_details import NO_DETAILS, MessageDetails
from tertulia.wire.api.objects.messages import MessageObjects, add_history
from tertulia.wire.http.fragments import Fragments, encode


class EncodedMessages:
    """Message objects as JSON, without what is the viewer's own (flags, what a search found) and
    without the brace at the end, for one viewer (None: a spectator).

    Of a message without reactions, widget and history, viewers of one role see the same, but for
    their own messages, and guests who may not know of everybody. So its JSON is kept, with the
    records that it was made of, until one of them is another.
    """

    def __init__(
        self,
        kept: Fragments,
        state: State,
        viewer: User | None,
        host: str,
        *,
        apply_markdown: bool,
        client_gravatar: bool,
        empty_topic_name: bool,
    ) -> None:
        self._kept, self._state = kept, state
        self._users, self._settings = state.users.rows, state.settings.rows
        self._channels, self._linkifiers = state.channels.rows, state.linkifiers.version
        self._objects = MessageObjects(
            state,
            viewer,
            host,
            apply_markdown=apply_markdown,
            client_gravatar=client_gravatar,
            empty_topic_name=empty_topic_name,
        )
        role = None if viewer is None else permissions.role_of(state, viewer)
        self._is_usual = viewer is None or permissions.sees_everybody(state, viewer)
        self._viewer_id = None if viewer is None else viewer.id
        self._kind = (role, host, apply_markdown, client_gravatar, empty_topic_name)
        self._empty_topic_name = empty_topic_name
        self._viewer = viewer

    def of(self, message: Message, details: MessageDetails) -> bytes:
        """The message's object, to be gone on with a comma, or ended."""
        sender_id, channel_id = message.sender_id, message.channel_id
        if (
            details is not NO_DETAILS
            or channel_id is None
            or not self._is_usual
            or sender_id == self._viewer_id
        ):
            return self._made(message, details)
        made_of = (
            message,
            self._users[sender_id],
            self._settings.get(sender_id),
            self._channels[channel_id].name,
            self._linkifiers,
        )
        key = (message.id, self._kind)
        found = self._kept.find(key, made_of)
        if found is None:
            found = self._kept.get(key, made_of, lambda: self._made(message, details))
        return found.content

    def _made(self, message: Message, details: MessageDetails) -> bytes:
        shown = self._objects.of(message, details)
        if details.edits:
            edits = permissions.history_open(self._state, self._viewer, details.edits)
            add_history(self._state, shown, edits, empty_topic_name=self._empty_topic_name)
        return encode(shown)[:-1]
