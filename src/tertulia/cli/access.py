"""`tertulia keys`, `sessions`, `agents`, `second-factors`, and `identities`: the credentials of
people and programs."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

import typer

from tertulia.cli.accounts import Who, account_called, account_of, account_of_person
from tertulia.cli.commands import Column, Printed, command, done, group, listing
from tertulia.cli.tables import facts, moment, yes
from tertulia.domain.accounts import access_keys as agent_verbs
from tertulia.domain.accounts import identities as identity_verbs
from tertulia.domain.accounts import second_factors as factor_verbs
from tertulia.domain.accounts import signing_out, users
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.model.users import User
from tertulia.service.node import Caller

T = TypeVar("T")

identities = group(
    "identities",
    "Manage links between accounts and identity providers: list and remove them.",
)
keys = group("keys", "Manage API keys of people and bots: show and replace them.")
sessions = group("sessions", "Manage active sessions in browsers: list and end them.")
agents = group(
    "agents",
    "Manage access keys, which let devices, programs, and agents act on behalf of people: list and"
    " revoke them.",
)

second_factors = group("second-factors", "Manage second factors of people: list and remove them.")

_Whose = Annotated[
    str | None, typer.Argument(metavar="[USER]", help="Show only those of this person.")
]


def _newest(caller: Caller, table: Iterable[T], who: str | None) -> list[T]:
    """Return a table's records, or only one person's, newest first."""
    user_id = None if who is None else account_of_person(caller.state, who).id
    records: Iterable[Any] = table
    of_one = (record for record in records if user_id in {None, record.user_id})
    return sorted(of_one, key=lambda record: -record.id)


@command(keys, "show", "keys show weather-bot@example.com --data-dir data")
async def show_key(caller: Caller, who: Who) -> Printed:
    """Show the API key of a person or bot. Anyone who has it can do everything the account can."""
    return _key(caller, _usable(caller, who))


@command(keys, "replace", "keys replace weather-bot@example.com --data-dir data")
async def replace_key(caller: Caller, who: Who) -> Printed:
    """Replace the API key of a person or bot, and show the new one. The old key stops working
    immediately.

    People get an email about it, and their agents' keys are revoked. Browsers stay signed in;
    `tertulia users sign-out` ends all access.
    """
    user = _usable(caller, who)
    new, site = caller.node.vault.new_key(), caller.node.config.mail_site
    await caller.submit(users.replace_key, user.id, new, site)
    return _key(caller, user)


def _usable(caller: Caller, who: str) -> User:
    user = account_called(caller.state, who)
    if user.is_system_bot:
        raise Refused("The server's own bots don't have an API key that programs can use.")
    if not user.is_active:
        raise Refused(
            "The account is deactivated, so its API key doesn't work. Reactivate the account first."
        )
    return user


def _key(caller: Caller, user: User) -> Printed:
    account = account_of(caller.state, caller.node.vault, user)
    pairs = [(name, str(getattr(account, name))) for name in account.__struct_fields__]
    return Printed(account, facts(pairs))


@command(sessions, "list", "sessions list ben@example.com --data-dir data")
async def list_sessions(caller: Caller, who: _Whose = None) -> Printed:
    """List active sessions."""
    state, longest = caller.state, caller.node.config.session_seconds
    rows = [
        {
            "id": session.id,
            "email": state.users[session.user_id].address,
            "agent": session.agent,
            "created_at": session.created_at,
            "last_used_at": session.used_at,
        }
        for session in _newest(caller, state.sessions, who)
        if session.lasts(caller.now, longest)
    ]
    columns: dict[str, Column] = {
        "ID": "id",
        "EMAIL": "email",
        "SIGNED IN": ("created_at", moment),
        "LAST USED": ("last_used_at", moment),
        "BROWSER": "agent",
    }
    return listing("sessions", columns, rows)


@command(sessions, "end", "sessions end 17 --data-dir data")
async def end_session(
    caller: Caller,
    session_id: Annotated[int, typer.Argument(help="ID, as shown by `sessions list`.")],
) -> Printed:
    """End a session. `tertulia users sign-out` signs a person out of all browsers and programs."""
    session = caller.state.sessions.get(session_id)
    if session is None:
        raise NoSuchItem("session")
    # Only people can end sessions, and only their own.
    await caller.node.log.submit(session.user_id, signing_out.end, session_id)
    return done(f"Ended session {session_id} of {caller.state.users[session.user_id].address}.")


@command(agents, "list", "agents list ben@example.com --data-dir data")
async def list_agents(caller: Caller, who: _Whose = None) -> Printed:
    """List access keys and what they can do."""
    state = caller.state
    rows = [
        {
            "id": key.id,
            "email": state.users[key.user_id].address,
            "name": key.name,
            "access": key.access.value,
            "can_write": key.reach.may_write,
            "mcp_only": not key.opens_api,
            "channels": None
            if key.reach.channel_ids is None
            else [state.channels[channel_id].name for channel_id in key.reach.channel_ids],
            "direct_messages": key.reach.directs,
            "created_at": key.created_at,
            "expires_at": key.expires_at or None,
            "last_used_at": key.used_at or None,
            "last_used_from": key.used_from or None,
        }
        for key in _newest(caller, state.access_keys, who)
    ]
    columns: dict[str, Column] = {
        "ID": "id",
        "EMAIL": "email",
        "NAME": "name",
        "ACCESS": "access",
        "AGENT": ("mcp_only", yes),
        "CHANNELS": ("channels", _names),
        "DIRECT MESSAGES": ("direct_messages", yes),
        "CREATED": ("created_at", moment),
        "EXPIRES": ("expires_at", moment),
        "LAST USED": ("last_used_at", moment),
    }
    return listing("agents", columns, rows)


def _names(channels: list[str] | None) -> str:
    return "all" if channels is None else ", ".join(channels) or "none"


@command(agents, "end", "agents end 4 --data-dir data")
async def end_agent(
    caller: Caller, agent_id: Annotated[int, typer.Argument(help="ID, as shown by `agents list`.")]
) -> Printed:
    """Revoke an access key. The messages that were sent with it are kept."""
    key = caller.state.access_keys.get(agent_id)
    if key is None:
        raise NoSuchItem("agent")
    await caller.submit(agent_verbs.end, agent_id)
    return done(f"'{key.name}' can no longer act for {caller.state.users[key.user_id].address}.")


@command(second_factors, "list", "second-factors list ben@example.com --data-dir data")
async def list_factors(caller: Caller, who: _Whose = None) -> Printed:
    """List the second factors that people sign in with besides their passwords."""
    state = caller.state
    rows = [
        {
            "id": factor.id,
            "email": state.users[factor.user_id].address,
            "kind": factor.kind,
            "name": factor.name,
            "created_at": factor.created_at,
            "last_used_at": factor.used_at or None,
        }
        for factor in _newest(caller, state.second_factors, who)
        if not factor.is_pending
    ]
    columns: dict[str, Column] = {
        "ID": "id",
        "USER": "email",
        "KIND": "kind",
        "NAME": "name",
        "CREATED": ("created_at", moment),
        "LAST USED": ("last_used_at", moment),
    }
    return listing("second_factors", columns, rows)


@command(second_factors, "remove", "second-factors remove ben@example.com --data-dir data")
async def remove_factors(caller: Caller, who: Who) -> Printed:
    """Remove all second factors of a person who lost theirs. They can then sign in with their
    password only, and get an email about it."""
    user = account_of_person(caller.state, who)
    count = await caller.submit(factor_verbs.remove_all, user.id, caller.node.config.mail_site)
    return done(f"{count} removed. {user.address} has no second factor.")


@command(identities, "list", "identities list ben@example.com --data-dir data")
async def list_identities(caller: Caller, who: _Whose = None) -> Printed:
    """List which accounts are linked to which people at identity providers."""
    state = caller.state
    rows = [
        {
            "id": identity.id,
            "email": state.users[identity.user_id].address,
            "method": identity.method,
            "subject": identity.subject,
            "linked_at": identity.linked_at,
        }
        for identity in _newest(caller, state.identities, who)
    ]
    columns: dict[str, Column] = {
        "USER": "email",
        "METHOD": "method",
        "ID THERE": "subject",
        "LINKED": ("linked_at", moment),
    }
    return listing("identities", columns, rows)


@command(identities, "unlink", "identities unlink ben@example.com --data-dir data")
async def unlink_identities(
    caller: Caller,
    who: Who,
    method: Annotated[
        str | None, typer.Option(help="Remove only the links of this sign-in method.")
    ] = None,
) -> Printed:
    """Remove the links of an account. The next sign-in finds the account by its email address."""
    user = account_of_person(caller.state, who)
    count = await caller.submit(identity_verbs.unlink, user.id, method)
    return done(f"{count} removed from {user.address}.")
