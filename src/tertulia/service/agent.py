"""Operations for agents, which act in their owner's name within the reach of their key."""

from collections.abc import Sequence

import msgspec

from tertulia.domain.accounts import access_keys
from tertulia.domain.accounts.access_keys import Needs
from tertulia.model.access_keys import Reach
from tertulia.model.channels import Channel
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.service.messages.history import FoundMessages, MessageQuery, find_messages
from tertulia.service.node import Caller


class Agent(Caller, frozen=True, kw_only=True):
    """An agent as a caller. It sees only the channels, people, and messages that its key reaches;
    anything else looks as if it didn't exist. Every method raises WrongApiKey if the key has been
    revoked."""

    @property
    def reach(self) -> Reach:
        return self.key.reach

    def about_to(self, needs: Needs) -> "Agent":
        """Return the agent for an operation with these needs. Raise KeyInsufficient."""
        access_keys.require(self.key, needs)
        return msgspec.structs.replace(self, needs=needs)

    def channels(self) -> list[Channel]:
        """Return the channels that the agent reaches, by ascending ID."""
        return access_keys.reached_channels(self.state, self.user, self.reach)

    def channel(self, channel_id: int) -> Channel:
        """Return the channel. Raise NoSuchChannel if the agent can't see it."""
        return access_keys.reached_channel(self.state, self.user, self.reach, channel_id)

    def people(self) -> list[User]:
        """Return the accounts that the agent reaches, by ascending ID."""
        return access_keys.users_in_reach(self.state, self.user, self.reach)

    async def find(self, query: MessageQuery) -> FoundMessages:
        """Return the messages that match the query, as `find_messages`."""
        return await find_messages(self.node, self.user, query)

    async def messages(self, ids: Sequence[int]) -> list[Message]:
        """Return these messages. Raise NoSuchMessage if the agent can't read one of them."""
        messages = (await self.find(MessageQuery(ids=sorted(set(ids))))).page.messages
        if len(messages) != len(set(ids)):
            raise NoSuchMessage
        return messages

    async def message(self, message_id: int) -> Message:
        """Return the message. Raise NoSuchMessage if the agent can't read it."""
        (message,) = await self.messages([message_id])
        return message

    async def own_message(self, message_id: int) -> Message:
        """Return a message that this agent wrote. Raise NoSuchMessage, and Refused for messages of
        others, including its owner."""
        message = await self.message(message_id)
        if message.sender_id != self.user.id or message.client != self.key.client:
            raise Refused("An agent can edit only its own messages.")
        return message
