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

app = group(
    "users", "Manage people: list, show, create, change, deactivate, reactivate, and erase them."
)
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
    role: Annotated[RoleName | None, typer.Option(help="Show only people with this role.")] = None,
    status: Annotated[
        Status, typer.Option(help="Show only people with this status.")
    ] = Status.ACTIVE,
) -> Printed:
    """List people, or find some by words in their names and addresses, by role, or by status."""
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
    """Show a person's account, channels, bots, sessions, and agents."""
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
    full_name: Annotated[str | None, typer.Option(help="New name.")] = None,
    email: Annotated[str | None, typer.Option(help="New email address.")] = None,
    role: Annotated[RoleName | None, typer.Option(help="New role.")] = None,
) -> Printed:
    """Change a person's name, email address, or role. If one change is invalid, none is made.

    If the address changes, an email about it is sent to the old address. The last owner has to stay
    an owner.
    """
    if full_name is None and email is None and role is None:
        raise UsageError("Nothing to change. Use --full-name, --email, or --role.")
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
            help="Storage limit in MiB, `unlimited`, or `realm_default` for the limit that"
            " `tertulia settings show upload_quota_per_user_mib` shows.",
        ),
    ] = None,
) -> Printed:
    """Show how much storage a person's uploaded files use, or set a limit.

    Files of the person's bots count, too. Existing files are kept.
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
        typer.Option(
            help="Email the person about it, with this comment. Without it, no email is sent."
        ),
    ] = None,
) -> Printed:
    """Deactivate a person's account and their bots. Their messages are kept.

    Their browsers and programs are signed out, and their invitations are revoked.
    """
    found = account_of_person(caller.state, who)
    await leave(caller, found.id, Places(), erased=False, comment=comment)
    return done(f"{found.address} is deactivated.")


@command(app, "reactivate", "users reactivate ben@example.com --data-dir data")
async def reactivate(caller: Caller, who: Who) -> Printed:
    """Reactivate a person's account. It gets a new API key, and keeps its password.

    The person's bots stay deactivated: see `tertulia bots reactivate`.
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
            metavar="KIND",
            help="Also delete messages of the person and their bots: in public channels"
            " (public), in all other channels (private), in direct messages (direct), or"
            " all of them (all). Can be repeated.",
        ),
    ] = None,
    sure: Annotated[bool, typer.Option("--yes", help="Don't ask for confirmation.")] = False,
) -> Printed:
    """Permanently erase a person's account: name, address, picture, profile, and drafts.

    The account is deactivated, and its messages are kept as messages of "Deleted user", unless you
    use --messages. You can't undo this. Asks for confirmation on a terminal; otherwise, --yes is
    required.
    """
    places = _places(messages or [])
    found = account_of_person(caller.state, who)
    if not sure:
        _ask(f"Permanently erase {found.full_name} <{found.address}>?")
    while not await leave(caller, found.id, places, erased=True, comment=None):
        typer.echo("Still deleting messages…", err=True)
    return done(f"{found.address} is erased.")


_ALL = Places(open=True, closed=True, direct=True)
_WHERE = {"public": "open", "private": "closed", "direct": "direct"}


def _places(wanted: list[str]) -> Places:
    if "all" in wanted:
        return _ALL
    for where in wanted:
        if where not in _WHERE:
            raise UsageError(
                f"--messages: expected public, private, direct, or all, not '{where}'."
            )
    return Places(**{_WHERE[where]: True for where in wanted})


def _ask(question: str) -> None:
    """Raise Failed where the answer is no, UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError("This can't be undone. Use --yes to confirm.")
    if not typer.confirm(question, err=True):
        raise Failed("Canceled. Nothing was changed.")
