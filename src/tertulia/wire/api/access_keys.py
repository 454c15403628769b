"""Access keys of devices, programs, and agents. Changes to them don't create events."""

from typing import Annotated, Literal

from msgspec import Struct

from tertulia.domain.accounts import access_keys
from tertulia.domain.accounts.access_keys import NewKey
from tertulia.domain.accounts.users import require_person
from tertulia.model.access_keys import AccessKey, KeyAccess
from tertulia.model.errors import Refused
from tertulia.wire.http import sign_in
from tertulia.wire.http.parameters import Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class KeyObject(Struct, kw_only=True):
    """A key that a device or a program uses to act for you."""

    key_id: int
    name: str
    access: Annotated[
        str,
        Doc(
            "`read`: only read; `send`: also work with messages, such as send, edit your own,"
            " react, mark as read, draft, and schedule; `full`: everything except what decides who"
            " can sign in, such as keys, sessions, and accounts."
        ),
    ]
    channel_ids: Annotated[
        list[int] | None, Doc("The channels that it can access; null for all that you can access.")
    ]
    direct_messages: Annotated[bool, Doc("Whether it can access your direct messages.")]
    mcp_only: Annotated[bool, Doc("Whether it is an agent's: accepted only at `/mcp`.")]
    created_at: int
    expires_at: Annotated[int | None, Doc("UNIX seconds; null if it doesn't expire.")]
    last_used_at: Annotated[int | None, Doc("Accurate to 10 minutes; null if it was never used.")]
    last_used_from: Annotated[str | None, Doc("The network address of that use.")]


class KeysResponse(ApiResponse, kw_only=True):
    """A user's keys, newest first."""

    keys: list[KeyObject]


async def get_keys(call: Call) -> KeysResponse:
    """Get the keys of your devices, programs, and agents. The keys themselves aren't stored. This
    endpoint is a Tertulia extension."""
    return KeysResponse(keys=[_key_object(key) for key in call.consider(access_keys.list_keys)])


async def get_user_keys(call: Call, user_id: IntPath) -> KeysResponse:
    """Get the keys of a user. Requires the user or an administrator. This endpoint is a Tertulia
    extension."""
    keys = call.consider(access_keys.list_keys, user_id)
    return KeysResponse(keys=[_key_object(key) for key in keys])


def _key_object(key: AccessKey) -> KeyObject:
    channel_ids = key.reach.channel_ids
    return KeyObject(
        key_id=key.id,
        name=key.name,
        access=key.access.value,
        channel_ids=None if channel_ids is None else list(channel_ids),
        direct_messages=key.reach.directs,
        mcp_only=not key.opens_api,
        created_at=key.created_at,
        expires_at=key.expires_at or None,
        last_used_at=key.used_at or None,
        last_used_from=key.used_from or None,
    )


class NewKeyResponse(ApiResponse, kw_only=True):
    """The new key, which is shown only once."""

    key_id: int
    api_key: Annotated[
        str, Doc("Use it like your API key: with your email address, by HTTP Basic authentication.")
    ]


async def create_key(
    call: Call,
    name: Annotated[str, Doc("What the key is for, such as a device or a program.")],
    access: Annotated[
        Literal["full", "read", "send"], Doc("What it can do; see `GET /users/me/keys`.")
    ] = "full",
    channel_ids: Annotated[
        list[Int] | None,
        Doc("The channels that it can access. By default, all that you can access."),
    ] = None,
    direct_messages: Annotated[
        bool | None,
        Doc("Whether it can access your direct messages. By default, unless you list channels."),
    ] = None,
    expires_at: Annotated[
        Int | None, Doc("When it expires, in UNIX seconds. By default, never.")
    ] = None,
    mcp_only: Annotated[bool, Doc("Whether it is an agent's: accepted only at `/mcp`.")] = False,
) -> NewKeyResponse:
    """Create a key that a device or a program can use to act for you. This endpoint is a Tertulia
    extension."""
    require_person(call.user)
    if mcp_only:
        _require_agents(call)
    sign_in.require_confirmed(call)
    vault = call.node.vault
    api_key, digest = vault.new_agent_key() if mcp_only else vault.new_access_key()
    new = NewKey(
        name=name,
        digest=digest,
        access=KeyAccess(access),
        channel_ids=channel_ids,
        directs=channel_ids is None if direct_messages is None else direct_messages,
        opens_api=not mcp_only,
        expires_at=expires_at or 0,
        site=call.node.config.mail_site,
    )
    key = await call.submit(access_keys.create, new)
    return NewKeyResponse(key_id=key.id, api_key=api_key)


async def end_key(call: Call, key_id: IntPath) -> None:
    """Revoke a key. Requires its owner or an administrator. This endpoint is a Tertulia
    extension."""
    await call.submit(access_keys.end, key_id)


# Agents: the same keys, for older programs that know only agents


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
    return _response(call.consider(access_keys.list_keys))


async def get_user_agents(call: Call, user_id: IntPath) -> AgentsResponse:
    """Get the agents that can act for a user. Requires the user or an administrator. This endpoint
    is a Tertulia extension."""
    return _response(call.consider(access_keys.list_keys, user_id))


def _response(keys: list[AccessKey]) -> AgentsResponse:
    return AgentsResponse(agents=[_object(key) for key in keys])


def _object(key: AccessKey) -> AgentObject:
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
    _require_agents(call)
    sign_in.require_confirmed(call)
    key, digest = call.node.vault.new_agent_key()
    new = NewKey(
        name=name,
        digest=digest,
        access=KeyAccess.SEND if can_write else KeyAccess.READ,
        channel_ids=channel_ids,
        directs=direct_messages,
        opens_api=False,
        site=call.node.config.mail_site,
    )
    agent = await call.submit(access_keys.create, new)
    return NewAgentResponse(agent=_object(agent), key=key)


def _require_agents(call: Call) -> None:
    if not call.node.config.agents:
        raise Refused("Agents are turned off on this server.")


async def end_agent(call: Call, agent_id: IntPath) -> None:
    """Revoke an agent's key. Requires its owner or an administrator. This endpoint is a Tertulia
    extension."""
    await call.submit(access_keys.end, agent_id)
