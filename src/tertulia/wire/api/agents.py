"""Agents: programs that act for a user with a key. Changes to them don't create events."""

from typing import Annotated, Final

from msgspec import Struct

from tertulia.domain.accounts import agents
from tertulia.domain.accounts.agents import NewAgent
from tertulia.domain.accounts.users import require_person
from tertulia.model import changes
from tertulia.model.agents import AgentKey
from tertulia.model.errors import Refused
from tertulia.wire.api.projection import Projections, unseen
from tertulia.wire.http import sign_in
from tertulia.wire.http.parameters import Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class AgentObject(Struct, kw_only=True):
    """An agent that can act for a user."""

    id: int
    name: str
    user_id: Annotated[int, Doc("The user whom the agent acts for.")]
    can_write: Annotated[
        bool, Doc("Whether the agent can make changes. Otherwise it can only read.")
    ]
    channel_ids: Annotated[
        list[int] | None,
        Doc("The channels that the agent can access; null for all that its owner can access."),
    ]
    direct_messages: Annotated[
        bool, Doc("Whether the agent can access its owner's direct messages.")
    ]
    created_at: int
    last_used_at: Annotated[int | None, Doc("Accurate to 10 minutes; null if it was never used.")]


class AgentsResponse(ApiResponse, kw_only=True):
    """A user's agents, newest first."""

    agents: list[AgentObject]


async def get_agents(call: Call) -> AgentsResponse:
    """Get the agents that can act for you. This endpoint is a Tertulia extension."""
    return _response(call.consider(agents.listed))


async def get_user_agents(call: Call, user_id: IntPath) -> AgentsResponse:
    """Get the agents that can act for a user. Requires the user or an administrator. This endpoint
    is a Tertulia extension."""
    return _response(call.consider(agents.listed, user_id))


def _response(keys: list[AgentKey]) -> AgentsResponse:
    return AgentsResponse(agents=[_object(key) for key in keys])


def _object(key: AgentKey) -> AgentObject:
    channel_ids = key.reach.channel_ids
    return AgentObject(
        id=key.id,
        name=key.name,
        user_id=key.user_id,
        can_write=key.reach.may_write,
        channel_ids=None if channel_ids is None else list(channel_ids),
        direct_messages=key.reach.directs,
        created_at=key.created_at,
        last_used_at=key.used_at or None,
    )


class NewAgentResponse(ApiResponse, kw_only=True):
    """The new agent and its key, which is shown only once."""

    agent: AgentObject
    key: Annotated[str, Doc("Send it to `/mcp` as `Authorization: Bearer KEY`.")]


async def create_agent(
    call: Call,
    name: Annotated[str, Doc("Shown with the agent's messages as their client.")],
    can_write: Annotated[
        bool, Doc("Whether the agent can send, react, edit, mark as read, and follow topics.")
    ] = False,
    channel_ids: Annotated[
        list[Int] | None,
        Doc("The channels that the agent can access. By default, all that you can access."),
    ] = None,
    direct_messages: Annotated[
        bool, Doc("Whether the agent can access your direct messages.")
    ] = False,
) -> NewAgentResponse:
    """Create an agent that acts for you. This endpoint is a Tertulia extension."""
    require_person(call.user)
    if not call.node.config.agents:
        raise Refused("Agents are turned off on this server.")
    sign_in.require_confirmed(call)
    key, digest = call.node.vault.new_agent_key()
    new = NewAgent(
        name=name,
        digest=digest,
        may_write=can_write,
        channel_ids=channel_ids,
        directs=direct_messages,
        site=call.node.config.mail_site,
    )
    agent = await call.submit(agents.create, new)
    return NewAgentResponse(agent=_object(agent), key=key)


async def end_agent(call: Call, agent_id: IntPath) -> None:
    """Revoke an agent's key. Requires its owner or an administrator. This endpoint is a Tertulia
    extension."""
    await call.submit(agents.end, agent_id)


PROJECTIONS: Final[Projections] = (
    unseen(changes.AgentKeyMade),
    unseen(changes.AgentKeyUsed),
    unseen(changes.AgentKeysEnded),
)
