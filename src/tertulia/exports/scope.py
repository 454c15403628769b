"""The data that an export includes."""

from collections.abc import Mapping, Sequence

from tertulia.model.channels import Channel, Subscription
from tertulia.model.exports import ExportKind
from tertulia.model.messages import DirectConversation
from tertulia.model.users import AddressVisibility, User
from tertulia.state.state import State


class ExportScope:
    """The parts of an organization that one kind of export includes."""

    def __init__(self, state: State, kind: ExportKind) -> None:
        self.state = state
        self.kind = kind
        self.is_full = kind is ExportKind.FULL
        self._consenting = (
            {user.id for user in state.users if self._consents(user)}
            if kind is ExportKind.CONSENT
            else set()
        )
        self._spans: Mapping[int, Sequence[tuple[int, int | None]]] = {}
        """By private channel: the ranges of messages that consenting people received. Public
        channels, and channels whose whole history is included, have no entry."""
        self.channels: Sequence[Channel] = self._found_channels()
        self.channel_ids = frozenset(channel.id for channel in self.channels)
        self.directs: Sequence[DirectConversation] = sorted(
            (direct for direct in state.directs if self._includes_direct(direct)),
            key=lambda conversation: conversation.id,
        )
        self._direct_ids = frozenset(direct.id for direct in self.directs)

    def _consents(self, user: User) -> bool:
        settings = self.state.settings.get(user.person_id)
        return settings is not None and settings.allow_private_data_export

    def shares(self, user_id: int) -> bool:
        """Whether the account's private data is included, such as settings, drafts, and read
        state."""
        return self.is_full or user_id in self._consenting

    def shows_address(self, user: User) -> bool:
        """Whether the account's email address is included as administrators see it."""
        if user.is_bot or self.shares(user.id):
            return True
        settings = self.state.settings.get(user.id)
        hidden = AddressVisibility.NOBODY
        return settings is None or settings.email_address_visibility is not hidden

    def includes(self, message_id: int, channel_id: int | None, direct_id: int | None) -> bool:
        """Whether this message of this conversation is included."""
        if channel_id is None:
            return direct_id in self._direct_ids
        if channel_id not in self.channel_ids:
            return False
        spans = self._spans.get(channel_id)
        return spans is None or any(
            after < message_id and (until is None or message_id <= until) for after, until in spans
        )

    def subscriptions(self, channel_id: int) -> list[Subscription]:
        """Return the channel's present and past subscriptions, by user."""
        result = self.state.subscriptions.of_channel[channel_id].values()
        return sorted(result, key=lambda subscription: subscription.user_id)

    def _found_channels(self) -> list[Channel]:
        channels = sorted(self.state.channels, key=lambda channel: channel.id)
        if self.is_full:
            return channels
        spans = {}
        wanted = []
        for channel in channels:
            if channel.is_private:
                received = self._received(channel)
                if not received:
                    continue
                if not self._has_open_history(channel):
                    spans[channel.id] = received
            wanted.append(channel)
        self._spans = spans
        return wanted

    def _received(self, channel: Channel) -> list[tuple[int, int | None]]:
        """Return the ranges of messages that consenting people received."""
        return [
            span
            for subscription in self.subscriptions(channel.id)
            if subscription.user_id in self._consenting
            for span in subscription.spans
        ]

    def _has_open_history(self, channel: Channel) -> bool:
        """Whether a consenting person can read all messages of the private channel."""
        return channel.history_public and any(
            subscription.is_active and subscription.user_id in self._consenting
            for subscription in self.subscriptions(channel.id)
        )

    def _includes_direct(self, conversation: DirectConversation) -> bool:
        return self.is_full or not self._consenting.isdisjoint(conversation.members)
