"""`tertulia users`, `create-user`, `password`, and `sign-out`: people's accounts."""

import asyncio
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from tertulia.cli import assignments
from tertulia.cli.accounts import (
    Account,
    Who,
    Words,
    account_of,
    account_of_person,
    having,
    person_with,
    role_called,
    role_name,
    status_of,
)
from tertulia.cli.commands import Column, Printed, command, configured, done, group, listing, opened
from tertulia.cli.errors import CommandFailed, UsageError
from tertulia.cli.options import ROLES, Password, RoleName, ShowKey
from tertulia.cli.tables import day, facts, mib, moment
from tertulia.cli.terminal import good_password, password_from
from tertulia.domain import names
from tertulia.domain.accounts import deactivation, sessions
from tertulia.domain.accounts import users as verbs
from tertulia.domain.messages import attachments
from tertulia.domain.messages.deleting import DeletionScope
from tertulia.model.errors import Refused
from tertulia.model.numbers import counted
from tertulia.model.users import User
from tertulia.service import deletions
from tertulia.service.accounts import leave
from tertulia.service.config import Config
from tertulia.service.links import Links
from tertulia.service.node import Caller
from tertulia.service.personal_data import write_person
from tertulia.store import file_modes, queries
from tertulia.wire.api.attachments import set_upload_quota
from tertulia.wire.api.organization.objects import limit_json

EXAMPLES = {
    "create-user": "Example: `tertulia create-user --data-dir data --email ben@example.com"
    " --full-name 'Ben' --role moderator`",
    "password": "Example: `tertulia password --data-dir data --email ben@example.com`",
    "sign-in-link": "Example: `tertulia sign-in-link ann@example.com --data-dir data`",
    "sign-out": "Example: `tertulia sign-out --data-dir data --email ben@example.com`",
}
_COLUMNS: Final[dict[str, Column]] = {
    "ID": "user_id",
    "EMAIL": "email",
    "NAME": "full_name",
    "ROLE": "role",
    "STATUS": "status",
    "JOINED": ("joined_at", day),
    "LAST ACTIVE": ("last_active_at", day),
}
_Address = Annotated[str, typer.Option(help="Email address of the account.")]
_Person = Annotated[str, typer.Argument(metavar="EMAIL", help="Email address of the account.")]
_NewAddress = Annotated[str, typer.Option("--email", help="Email address.")]
_NewName = Annotated[str, typer.Option("--full-name", help="Full name.")]
_NewRole = Annotated[RoleName, typer.Option("--role", help="Role of the account.")]
users = group(
    "users", "Manage people: list, show, create, change, deactivate, reactivate, and erase them."
)


class Status(StrEnum):
    """The status of accounts to list."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    ERASED = "erased"
    ALL = "all"


@configured
def create_user(
    config: Config,
    email: _NewAddress,
    full_name: _NewName,
    role: _NewRole = RoleName.MEMBER,
    password: Password = None,
) -> Printed:
    """Create an account for a person, as `tertulia users create` does, and print its API key."""
    return _created(config, email, full_name, role, password).printed()


def _created(
    config: Config, email: str, full_name: str, role: RoleName, password: str | None
) -> Account:
    names.address(email)
    names.full_name(full_name)
    typed = password_from(password, config, email, full_name)

    async def create() -> Account:
        async with opened(config) as (log, vault):
            good_password(config, typed, email, full_name, log.state.realm.name)
            new = verbs.NewUser(
                address=email,
                full_name=full_name,
                role=ROLES[role],
                credential=await vault.credential(0, typed),
            )
            user = await log.submit(None, verbs.create, new)
            return account_of(log.state, vault, user)

    return asyncio.run(create())


_CREATE = "Example: `tertulia users create email=ben@example.com full_name='Ben' role=moderator`"


@users.command("create", epilog=_CREATE)
@configured
def create(
    config: Config,
    email: _NewAddress,
    full_name: _NewName,
    role: _NewRole = RoleName.MEMBER,
    password: Password = None,
    show_key: ShowKey = False,
) -> Printed:
    """Create an account for a person, and subscribe it to the default channels.

    Prints its user ID and email address. The server can keep running.
    """
    return _created(config, email, full_name, role, password).printed(with_key=show_key)


@configured
def password(config: Config, email: _Address, password: Password = None) -> Printed:
    """Set a new password for a person's account, as `tertulia users password` does."""
    return _with_new_password(config, email, password)


@users.command("password", epilog="Example: `tertulia users password ben@example.com`")
@configured
def set_password(config: Config, email: _Person, password: Password = None) -> Printed:
    """Set a new password for a person's account.

    This signs out all browsers, replaces the API key, and emails the person about it. The server
    can keep running.
    """
    return _with_new_password(config, email, password)


def _with_new_password(config: Config, email: str, password: str | None) -> Printed:
    typed = password_from(password, config, email)

    async def replace() -> None:
        async with opened(config) as (log, vault):
            user = person_with(log.state, email)
            good_password(config, typed, user.full_name, log.state.realm.name)
            hashed, key = await vault.hash_password(typed), vault.new_key()
            verb = sessions.replace_password
            await log.submit(None, verb, user.id, hashed, key, config.mail_site)

    asyncio.run(replace())
    return done(f"Set a new password for {email}. All browsers and programs have to sign in again.")


@configured
async def sign_out(config: Config, email: _Address) -> Printed:
    """Sign a person out of all browsers and programs, as `tertulia users sign-out` does."""
    return await _signed_out(config, email)


@users.command("sign-out", epilog="Example: `tertulia users sign-out ben@example.com`")
@configured
async def sign_out_person(config: Config, email: _Person) -> Printed:
    """Sign a person out of all browsers and programs. Their API key is replaced.

    The password doesn't change. The server can keep running.
    """
    return await _signed_out(config, email)


async def _signed_out(config: Config, email: str) -> Printed:
    async with opened(config) as (log, vault):
        user = person_with(log.state, email)
        ended = await log.submit(None, sessions.end_access, user.id, vault.new_key())
    return done(f"Signed {email} out of {counted(ended, 'browser')} and all programs.")


@users.command("sign-in-link", epilog="Example: `tertulia users sign-in-link ann@example.com`")
@configured
async def sign_in_link(config: Config, email: _Person) -> Printed:
    """Print a link that signs a person in once, in the next 10 minutes.

    It works whatever the organization offers, for example for an owner when passwords are turned
    off and the identity provider is down. A second factor is still asked for.
    """
    async with opened(config) as (log, vault):
        user = person_with(log.state, email)
        if not user.is_active:
            raise Refused("This account is deactivated.")
        credential = log.state.credentials[user.id]
        link = Links(vault).operator_sign_in(config.mail_site, credential, log.clock())
    return Printed({"link": link}, [link])


async def _last_active(caller: Caller) -> dict[int, int]:
    seen = await caller.node.store.read(queries.presence)
    return {presence.user_id: int(presence.active_at) for presence in seen if presence.active_at}


def _shown(account: User, last_active: dict[int, int]) -> dict[str, Any]:
    return {
        "user_id": account.id,
        "email": account.address,
        "full_name": account.full_name,
        "role": role_name(account.role),
        "status": status_of(account),
        # An account that someone else created has no person yet.
        "joined_at": None if account.awaits_arrival else account.joined_at,
        "last_active_at": last_active.get(account.id),
    }


@command(users, "list", "users list role=admin --data-dir data")
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
    rows = [
        _shown(user, last_active)
        for user in having(caller.state.users, words)
        if not user.is_bot
        and status in {Status.ALL, status_of(user)}
        and role_called(role) in {None, user.role}
    ]
    return listing("users", _COLUMNS, rows)


@command(users, "show", "users show ben@example.com --data-dir data")
async def show(caller: Caller, who: Who) -> Printed:
    """Show a person's account, channels, bots, sessions, and agents."""
    state = caller.state
    account = account_of_person(state, who)
    person = _shown(account, await _last_active(caller))
    longest = caller.node.config.session_seconds
    belongings: dict[str, Any] = {
        "channels": sorted(
            state.channels[channel_id].name for channel_id in state.channel_ids_of(account.id)
        ),
        "bots": [bot.address for bot in state.users.bots_of(account.id)],
        "sessions": sum(
            session.lasts(caller.now, longest) for session in state.sessions.of_user[account.id]
        ),
        "agents": len(state.access_keys.of_user[account.id]),
    }
    pairs = {
        **{name: str(person[name]) for name in ("user_id", "email", "full_name", "role", "status")},
        "joined": moment(person["joined_at"]),
        "last active": moment(person["last_active_at"]),
        "channels": ", ".join(belongings["channels"]),
        "bots": ", ".join(belongings["bots"]),
        "sessions": str(belongings["sessions"]),
        "agents": str(belongings["agents"]),
    }
    return Printed({**person, **belongings}, facts(pairs.items()))


@command(users, "change", "users change ben@example.com role=owner --data-dir data")
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
        raise UsageError("Nothing to change. Set full_name=…, email=…, or role=….")
    account = account_of_person(caller.state, who)
    update = verbs.AccountUpdate(
        full_name=full_name,
        address=email,
        role=role_called(role),
        site=caller.node.config.mail_site,
    )
    await caller.submit(verbs.change, account.id, update)
    changed = caller.state.users[account.id]
    sentence = f"{changed.full_name} <{changed.address}> is {role_name(changed.role)}."
    return Printed(_shown(changed, await _last_active(caller)), [sentence])


@command(users, "quota", "users quota ben@example.com 500 --data-dir data")
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
    account = account_of_person(caller.state, who)
    if limit is not None:
        sent = {"user_id": str(account.id), "upload_quota_mib": limit}
        given = assignments.read(set_upload_quota, sent, {"upload_quota_mib": "MIB"})
        await set_upload_quota(caller, **given)
    room = caller.consider(attachments.get_storage_use, account.id)
    optional_limit = limit_json(room.own_limit_mib, attachments.UNLIMITED)
    pairs = {
        "used": mib(room.used),
        "limit": "unlimited" if room.limit is None else mib(room.limit),
        "upload_quota_mib": str(optional_limit),
    }
    shown = {"email": account.address, "used": room.used, "limit": room.limit}
    return Printed({**shown, "upload_quota_mib": optional_limit}, facts(pairs.items()))


@command(users, "deactivate", "users deactivate ben@example.com --data-dir data")
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
    account = account_of_person(caller.state, who)
    await leave(caller, account.id, DeletionScope(), erased=False, comment=comment)
    return done(f"{account.address} is deactivated.")


@command(users, "reactivate", "users reactivate ben@example.com --data-dir data")
async def reactivate(caller: Caller, who: Who) -> Printed:
    """Reactivate a person's account. It gets a new API key, and keeps its password.

    The person's bots stay deactivated: see `tertulia bots reactivate`.
    """
    account = account_of_person(caller.state, who)
    await caller.submit(deactivation.reactivate, account.id, caller.node.vault.new_key())
    return done(f"{account.address} is active.")


@command(users, "data", "users data ben@example.com ben.zip --data-dir data")
async def data(
    caller: Caller,
    who: Who,
    file: Annotated[
        Path, typer.Argument(metavar="FILE.zip", help="The new file.", show_default=False)
    ],
) -> Printed:
    """Export everything of a person to a ZIP file: profile, settings, messages, files, and more.

    Use it to answer a request for their data. People can also export it themselves, in their
    settings. The file has no passwords and keys, but private messages: keep it safe.
    """
    account = account_of_person(caller.state, who)
    _create(file)
    try:
        await write_person(caller.node, account.id, file)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    size = file.stat().st_size
    return Printed(
        {"email": account.address, "file": str(file), "size": size},
        [f"Exported the data of {account.address} to {file} ({mib(size)})."],
    )


def _create(file: Path) -> None:
    """Create a file that only its owner can read."""
    try:
        with open(file, "xb", opener=file_modes.opener):
            pass
    except FileExistsError:
        raise UsageError(f"{file} already exists.") from None
    except OSError as error:
        raise CommandFailed(f"Couldn't create {file}: {error.strerror}.") from None


@command(users, "erase", "users erase ben@example.com messages=all --data-dir data")
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
    files: Annotated[
        bool, typer.Option("--files", help="Also delete files that the person and their bots sent.")
    ] = False,
    sure: Annotated[bool, typer.Option("--yes", help="Don't ask for confirmation.")] = False,
) -> Printed:
    """Permanently erase a person's account: name, address, picture, profile, drafts, and usage.

    The account is deactivated. Its messages are kept as messages of "Deleted user", with their
    files, unless you use --messages and --files. You can't undo this. Asks for confirmation on a
    terminal; otherwise, --yes is required.
    """
    scope = _deletion_scope(messages or [])
    account = account_of_person(caller.state, who)
    if not sure:
        if not sys.stdin.isatty():
            raise UsageError("This can't be undone. Use --yes to confirm.")
        question = f"Permanently erase {account.full_name} <{account.address}>?"
        if not typer.confirm(question, err=True):
            raise CommandFailed("Canceled. Nothing was changed.")
    while not await leave(caller, account.id, scope, erased=True, comment=None, files=files):
        if deletion := await deletions.found(caller.node.store, account.id):
            typer.echo(f"{counted(deletion.messages, 'message')} deleted…", err=True)
    return done(f"{account.address} is erased.")


_PLACES: Final = {"public": "open", "private": "closed", "direct": "direct"}


def _deletion_scope(kinds: list[str]) -> DeletionScope:
    for text in kinds:
        if text not in {*_PLACES, "all"}:
            raise UsageError(f"--messages: expected public, private, direct, or all, not '{text}'.")
    chosen = _PLACES if "all" in kinds else kinds
    return DeletionScope(**{_PLACES[kind]: True for kind in chosen})
