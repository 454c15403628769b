"""`tertulia agents`: the programs that act for people by keys of their own."""

from typing import Annotated

import typer
from msgspec import Struct

from tertulia.cli.accounts import account_of_person
from tertulia.cli.commands import Printed, command, done, group
from tertulia.cli.tables import moment, table, yes
from tertulia.domain.accounts import agents
from tertulia.model.errors import NoSuchItem
from tertulia.service.caller import Caller

app = group(
    "agents",
    "Manage agents, which are programs that act on behalf of people: list and revoke them.",
)


class AgentShown(Struct, frozen=True, kw_only=True):
    """An agent, and what its key reaches. Times are UNIX seconds."""

    id: int
    email: str
    """Of the person for whom it acts."""
    name: str
    can_write: bool
    channels: list[str] | None
    """None for all that its person sees."""
    direct_messages: bool
    created_at: int
    last_used_at: int | None


class Agents(Struct, frozen=True, kw_only=True):
    """Agents, the newest first."""

    agents: list[AgentShown]


@command(app, "list", "agents list ben@example.com --data-dir data")
async def list_agents(
    caller: Caller,
    who: Annotated[
        str | None, typer.Argument(metavar="[USER]", help="Show only this person's agents.")
    ] = None,
) -> Printed:
    """List agents and what they can do."""
    state = caller.state
    whose = None if who is None else account_of_person(state, who).id
    found = [
        AgentShown(
            id=key.id,
            email=state.users[key.user_id].address,
            name=key.name,
            can_write=key.reach.may_write,
            channels=None
            if key.reach.channel_ids is None
            else [state.channels[one].name for one in key.reach.channel_ids],
            direct_messages=key.reach.directs,
            created_at=key.created_at,
            last_used_at=key.used_at or None,
        )
        for key in sorted(state.agent_keys, key=lambda key: -key.id)
        if whose in {None, key.user_id}
    ]
    headings = (
        "ID",
        "EMAIL",
        "AGENT",
        "CAN WRITE",
        "CHANNELS",
        "DIRECT MESSAGES",
        "CREATED",
        "LAST USED",
    )
    rows = (
        (
            *(str(one.id), one.email, one.name, yes(one.can_write)),
            *("all" if one.channels is None else ", ".join(one.channels) or "none",),
            *(yes(one.direct_messages), moment(one.created_at), moment(one.last_used_at)),
        )
        for one in found
    )
    return Printed(Agents(agents=found), table(headings, rows))


@command(app, "end", "agents end 4 --data-dir data")
async def end(
    caller: Caller, agent_id: Annotated[int, typer.Argument(help="ID, as shown by `agents list`.")]
) -> Printed:
    """Revoke an agent's access. The messages it sent are kept."""
    key = caller.state.agent_keys.get(agent_id)
    if key is None:
        raise NoSuchItem("agent")
    await caller.submit(agents.end, agent_id)
    return done(f"'{key.name}' can no longer act for {caller.state.users[key.user_id].address}.")
