"""`tertulia users`: people's accounts."""

import sys
from enum import StrEnum
from typing import Annotated

import typer
from msgspec import Struct

from tertulia.cli import assignments, create_user
from tertulia.cli.accounts import (
    Who,
    Words,
    account_of_person,
    having,
    role_called,
    role_name,
    status_of,
)
from tertulia.cli.commands import Printed, command, done, group
from tertulia.cli.errors import Failed, UsageError
from tertulia.cli.options import RoleName
from tertulia.cli.tables import day, facts, mib, moment, table
from tertulia.domain.accounts import users
from tertulia.domain.messages import upload_quotas
from tertulia.domain.messages.deleting import Places
from tertulia.model.users import User
from tertulia.service.caller import Caller
from tertulia.service.leaving import leave
from tertulia.store import queries
from tertulia.wire.api.objects.own_limits import OwnLimit, own_limit_shown
from tertulia.wire.api.resources.uploads import SetUploadQuota, set_upload_quota

app = group("users", "People: list, find, create, change, deactivate, reactivate and erase them.")
app.command("create", epilog=create_user.EXAMPLE)(create_user.create_user)


class Status(StrEnum):
    """Which accounts to list."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    ERASED = "erased"
    ALL = "all"


class Person(Struct, frozen=True, kw_only=True):
    """A person's account. Times are UNIX seconds."""

    user_id: int
    email: str
    full_name: str
    role: str
    status: str
    """active, deactivated or erased."""
    joined_at: int | None
    """None where somebody else made the account, and its person was not here yet."""
    last_active_at: int | None
    """When a client was last used; None for never."""


class People(Struct, frozen=True, kw_only=True):
    """Accounts, by ID."""

    users: list[Person]


class PersonInFull(Person, frozen=True, kw_only=True):
    """The same, with what belongs to it."""

    channels: list[str]
    bots: list[str]
    """Their addresses."""
    sessions: int
    """Browsers in which it is signed in."""
    agents: int


class RoomForFiles(Struct, frozen=True, kw_only=True):
    """How much room a person's files take, in bytes, with those of their bots."""

    email: str
    used: int
    limit: int | None
    """None without a limit."""
    upload_quota_mib: OwnLimit
    """What was set for this person: MiB, `unlimited`, or `realm_default` for what all have."""


async def _last_active(caller: Caller) -> dict[int, int]:
    seen = await caller.node.store.read(queries.presence)
    return {one.user_id: int(one.active_at) for one in seen if one.active_at}


def _person(found: User, last_active: dict[int, int]) -> Person:
    return Person(
        user_id=found.id,
        email=found.address,
        full_name=found.full_name,
        role=role_name(found.role),
        status=status_of(found),
        joined_at=None if found.awaits_arrival else found.joined_at,
        last_active_at=last_active.get(found.id),
    )


@command(app, "list", "users list --role admin --data-dir data")
async def list_users(
    caller: Caller,
    words: Words = None,
    role: Annotated[RoleName | None, typer.Option(help="Only those with this role.")] = None,
    status: Annotated[Status, typer.Option(help="Which accounts.")] = Status.ACTIVE,
) -> Printed:
    """List people, or find some: by words of their names and addresses, role and status."""
    last_active = await _last_active(caller)
    people = [
        _person(one, last_active)
        for one in having(caller.state.users, words)
        if not one.is_bot
        and status in {Status.ALL, status_of(one)}
        and role_called(role) in {None, one.role}
    ]
    headings = ("ID", "EMAIL", "NAME", "ROLE", "STATUS", "JOINED", "LAST ACTIVE")
    rows = (
        (
            *(str(one.user_id), one.email, one.full_name, one.role, one.status),
            *(day(one.joined_at), day(one.last_active_at)),
        )
        for one in people
    )
    return Printed(People(users=people), table(headings, rows))


@command(app, "show", "users show ben@example.com --data-dir data")
async def show(caller: Caller, who: Who) -> Printed:
    """Show a person's account, with what belongs to it."""
    state = caller.state
    found = account_of_person(state, who)
    person = _person(found, await _last_active(caller))
    longest = caller.node.config.session_seconds
    sessions = state.sessions.of_user[found.id]
    full = PersonInFull(
        **{name: getattr(person, name) for name in person.__struct_fields__},
        channels=sorted(state.channels[one].name for one in state.channel_ids_of(found.id)),
        bots=[bot.address for bot in state.users.bots_of(found.id)],
        sessions=sum(one.lasts(caller.now, longest) for one in sessions),
        agents=len(state.agent_keys.of_user[found.id]),
    )
    pairs = [
        *(("user_id", str(full.user_id)), ("email", full.email), ("full_name", full.full_name)),
        *(("role", full.role), ("status", full.status), ("joined", moment(full.joined_at))),
        ("last active", moment(full.last_active_at)),
        *(("channels", ", ".join(full.channels)), ("bots", ", ".join(full.bots))),
        *(("sessions", str(full.sessions)), ("agents", str(full.agents))),
    ]
    return Printed(full, facts(pairs))


@command(app, "change", "users change ben@example.com --role owner --data-dir data")
async def change(
    caller: Caller,
    who: Who,
    full_name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    email: Annotated[str | None, typer.Option(help="Another e-mail address.")] = None,
    role: Annotated[RoleName | None, typer.Option(help="Another role.")] = None,
) -> Printed:
    """Change a person's name, e-mail address or role: all that is given, or nothing.

    Of another address, a mail tells at the old one. The last owner stays one.
    """
    if full_name is None and email is None and role is None:
        raise UsageError("Nothing to change: give --full-name, --email or --role.")
    found = account_of_person(caller.state, who)
    revision = users.Revision(
        full_name=full_name,
        address=email,
        role=role_called(role),
        site=caller.node.config.mail_site,
    )
    await caller.submit(users.change, found.id, revision)
    person = _person(caller.state.users[found.id], await _last_active(caller))
    return Printed(person, [f"{person.full_name} <{person.email}> is {person.role}."])


@command(app, "quota", "users quota ben@example.com 500 --data-dir data")
async def quota(
    caller: Caller,
    who: Who,
    limit: Annotated[
        str | None,
        typer.Argument(
            metavar="[MIB]",
            help="MiB that the person's files may come to; `unlimited`, or `realm_default` for what"
            " `tertulia settings show upload_quota_per_user_mib` shows.",
        ),
    ] = None,
) -> Printed:
    """Show how much room a person's uploaded files take, or set how much they may come to.

    The files of their bots count among them. What is there already stays.
    """
    found = account_of_person(caller.state, who)
    if limit is not None:
        sent = {"user_id": str(found.id), "upload_quota_mib": limit}
        given = assignments.read(SetUploadQuota, sent, {"upload_quota_mib": "MIB"})
        await set_upload_quota(caller, given)
    room = caller.consider(upload_quotas.looked_at, found.id)
    shown = RoomForFiles(
        email=found.address,
        used=room.used,
        limit=room.limit,
        upload_quota_mib=own_limit_shown(room.own_limit_mib, upload_quotas.UNLIMITED),
    )
    pairs = [
        ("used", mib(shown.used)),
        ("limit", "unlimited" if shown.limit is None else mib(shown.limit)),
        ("upload_quota_mib", str(shown.upload_quota_mib)),
    ]
    return Printed(shown, facts(pairs))


@command(app, "deactivate", "users deactivate ben@example.com --data-dir data")
async def deactivate(
    caller: Caller,
    who: Who,
    comment: Annotated[
        str | None,
        typer.Option(help="Send the person a mail that says so, and this; without it, none."),
    ] = None,
) -> Printed:
    """Deactivate a person's account and the bots it owns. What it wrote stays.

    Its browsers and programs are signed out, and its invitations are over.
    """
    found = account_of_person(caller.state, who)
    await leave(caller, found.id, Places(), erased=False, comment=comment)
    return done(f"{found.address} is deactivated.")


@command(app, "reactivate", "users reactivate ben@example.com --data-dir data")
async def reactivate(caller: Caller, who: Who) -> Printed:
    """Reactivate a person's account. It gets another API key; its password is as before.

    Bots that it owned stay deactivated: see `tertulia bots reactivate`.
    """
    found = account_of_person(caller.state, who)
    await caller.submit(users.reactivate, found.id, caller.node.vault.new_key())
    return done(f"{found.address} is active.")


@command(app, "erase", "users erase ben@example.com --messages all --data-dir data")
async def erase(
    caller: Caller,
    who: Who,
    messages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHERE",
            help="Delete what the person and their bots wrote, too: in public channels (public),"
            " in the others (private), in direct messages (direct), or all. Can be repeated.",
        ),
    ] = None,
    sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> Printed:
    """Take a person out of their account for good: name, address, picture, profile, drafts.

    It is deactivated, and what it wrote stays, by "Deleted user", unless --messages says otherwise.
    There is no way back. Asks on a terminal; elsewhere it needs --yes.
    """
    places = _places(messages or [])
    found = account_of_person(caller.state, who)
    if not sure:
        _ask(f"Erase {found.full_name} <{found.address}> for good?")
    while not await leave(caller, found.id, places, erased=True, comment=None):
        typer.echo("… still deleting messages", err=True)
    return done(f"{found.address} is erased.")


_ALL = Places(open=True, closed=True, direct=True)
_WHERE = {"public": "open", "private": "closed", "direct": "direct"}


def _places(wanted: list[str]) -> Places:
    if "all" in wanted:
        return _ALL
    for where in wanted:
        if where not in _WHERE:
            raise UsageError(f"--messages: '{where}' is not public, private, direct or all.")
    return Places(**{_WHERE[where]: True for where in wanted})


def _ask(question: str) -> None:
    """Raise Failed where the answer is no, UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError("There is no way back: say --yes.")
    if not typer.confirm(question, err=True):
        raise Failed("Nothing was done.")
