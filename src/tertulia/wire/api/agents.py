"""No event tells of agents' keys: whoever looks at the list asks for it."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from tertulia.domain.accounts import agents
from tertulia.domain.accounts.agents import NewAgent
from tertulia.domain.accounts.users import require_person
from tertulia.model import changes
from tertulia.model.agents import AgentKey
from tertulia.model.errors import Refused
from tertulia.wire.api.projection import Projections, unseen
from tertulia.wire.http import sign_in
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class AgentObject(Struct, kw_only=True):
    """An agent that may act for somebody."""

    id: int
    name: str
    user_id: Annotated[int, Meta(description="For whom it acts.")]
    can_write: Annotated[bool, Meta(description="Whether it may change anything, or only read.")]
    channel_ids: Annotated[
        list[int] | None,
        Meta(description="The channels that it sees; null for all that its owner sees."),
    ]
    direct_messages: Annotated[
        bool, Meta(description="Whether it sees its owner's direct messages.")
    ]
    created_at: int
    last_used_at: Annotated[
        int | None, Meta(description="To within ten minutes; null where it never was.")
    ]


class Agents(ApiResponse, kw_only=True):
    """The newest first."""

    agents: list[AgentObject]


async def get_agents(call: Call, params: NoParams) -> Agents:
    """The agents that may act for the caller. Not of the reference's interface: this server's."""
    return _shown(call.consider(agents.listed))


class OfUser(Params, kw_only=True, frozen=True):
    """Somebody's agents."""

    user_id: Annotated[Int, Path()]


async def get_user_agents(call: Call, params: OfUser) -> Agents:
    """The agents that may act for somebody, for themselves and for administrators. Not of the
    reference's interface: this server's."""
    return _shown(call.consider(agents.listed, params.user_id))


def _shown(keys: list[AgentKey]) -> Agents:
    return Agents(agents=[agent_object(key) for key in keys])


def agent_object(key: AgentKey) -> AgentObject:
    """The agent as the interface shows it."""
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


class CreateAgent(Params, kw_only=True, frozen=True):
    """An agent that is to act for the caller."""

    name: Annotated[str, Meta(description="What its messages say that they were sent by.")]
    can_write: Annotated[
        bool, Meta(description="Whether it may send, react, edit, mark as read and follow.")
    ] = False
    channel_ids: Annotated[
        list[Int] | None,
        Meta(
            description="The channels that it is to see; all that the caller sees unless given.",
        ),
    ] = None
    direct_messages: Annotated[
        bool, Meta(description="Whether it is to see the caller's direct messages.")
    ] = False


class CreatedAgent(ApiResponse, kw_only=True):
    """The agent, and its key: nobody can see that again."""

    agent: AgentObject
    key: Annotated[str, Meta(description="To be sent as `Authorization: Bearer KEY`, to /mcp.")]


async def create_agent(call: Call, params: CreateAgent) -> CreatedAgent:
    """Let an agent act for the caller. Not of the reference's interface: this server's."""
    require_person(call.user)
    if not call.node.config.agents:
        raise Refused("Agents are turned off on this server.")
    sign_in.require_confirmed(call)
    key, digest = call.node.vault.new_agent_key()
    new = NewAgent(
        name=params.name,
        digest=digest,
        may_write=params.can_write,
        channel_ids=params.channel_ids,
        directs=params.direct_messages,
        site=call.node.config.mail_site,
    )
    made = await call.submit(agents.create, new)
    return CreatedAgent(agent=agent_object(made), key=key)


class OneAgent(Params, kw_only=True, frozen=True):
    """An agent by ID."""

    agent_id: Annotated[Int, Path()]


async def end_agent(call: Call, params: OneAgent) -> ApiResponse:
    """Take an agent's key away, for its owner and for administrators. Not of the reference's
    interface: this server's."""
    await call.submit(agents.end, params.agent_id)
    return ApiResponse()


PROJECTIONS: Final[Projections] = (
    unseen(changes.AgentKeyMade),
    unseen(changes.AgentKeyUsed),
    unseen(changes.AgentKeysEnded),
)
