"""A node as an agent uses it: in its owner's name, as far as its key reaches."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from tertulia.domain.accounts import agents
from tertulia.domain.accounts.agents import AgentCapability
from tertulia.model.agents import AgentKey, Reach
from tertulia.model.channels import Channel
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.service.caller import Caller
from tertulia.service.messages.history import FoundMessages, MessageQuery, find_messages
from tertulia.state.decision import Verb

T = TypeVar("T")

NOTHING: frozenset[AgentCapability] = frozenset()


class Agent(Caller, frozen=True, kw_only=True):
    """A caller that is an agent. Channels, people and messages are come by through it alone; what
    it may not know of is the same for it as what does not exist.

    Everything raises WrongApiKey where its key has ended in the meantime.
    """

    key_id: int
    needs: frozenset[AgentCapability] = NOTHING
    """What the thing takes that it is about to do."""

    @property
    def key(self) -> AgentKey:
        """Its key, as it is now."""
        return agents.current_key(self.state, self.key_id)

    @property
    def reach(self) -> Reach:
        return self.key.reach

    def about_to(self, needs: frozenset[AgentCapability]) -> "Agent":
        """The agent, about to do what takes these needs. NotPermitted where it may not."""
        agents.require(self.key, needs)
        return msgspec.structs.replace(self, needs=needs)

    async def submit(self, verb: Verb[T], *arguments: Any) -> T:
        """As any caller's, where the agent may do it at the moment that decides."""
        return await self.node.log.submit(
            self.user.id, agents.run_as_agent, self.key_id, self.needs, verb, *arguments
        )

    def channels(self) -> list[Channel]:
        """The channels that it may know of, in ascending order of ID."""
        return agents.reached_channels(self.state, self.user, self.reach)

    def channel(self, channel_id: int) -> Channel:
        """The channel of that ID. NoSuchChannel."""
        return agents.reached_channel(self.state, self.user, self.reach, channel_id)

    def people(self) -> list[User]:
        """The accounts that it may know of, in ascending order of ID."""
        return agents.reached_people(self.state, self.user, self.reach)

    async def find(self, query: MessageQuery) -> FoundMessages:
        """The messages that the query asks for. Raises as `find_messages`."""
        query = msgspec.structs.replace(query, reach=self.reach)
        return await find_messages(self.node, self.user, query)

    async def messages(self, ids: Sequence[int]) -> list[Message]:
        """The messages of these IDs. NoSuchMessage where it cannot read one of them."""
        found = (await self.find(MessageQuery(ids=sorted(set(ids))))).page.messages
        if len(found) != len(set(ids)):
            raise NoSuchMessage
        return found

    async def message(self, message_id: int) -> Message:
        """The message of that ID. NoSuchMessage."""
        (found,) = await self.messages([message_id])
        return found

    async def own_message(self, message_id: int) -> Message:
        """A message of that ID that this agent wrote. NoSuchMessage, and Refused for others: what a
        person wrote is not an agent's to put other words into."""
        message = await self.message(message_id)
        if message.sender_id != self.user.id or message.client != self.key.client:
            raise Refused("An agent can edit only its own messages.")
        return message
