"""`tertulia bots` and `tertulia create-bot`: the accounts of programs."""

from typing import Annotated, Any, Final

import typer

from tertulia.cli.accounts import (
    Account,
    Who,
    Words,
    account_of,
    account_of_bot,
    account_of_person,
    having,
    role_called,
    role_name,
    status_of,
)
from tertulia.cli.commands import Column, Printed, command, configured, done, group, listing, opened
from tertulia.cli.errors import CommandFailed, UsageError
from tertulia.cli.options import RoleName, ShowKey
from tertulia.cli.tables import day
from tertulia.domain.accounts import bots as verbs
from tertulia.domain.accounts import deactivation
from tertulia.model.users import BotKind, User
from tertulia.service.config import Config
from tertulia.service.node import Caller
from tertulia.state.state import State

EXAMPLES = {
    "create-bot": "Example: `tertulia create-bot --data-dir data --owner ann@example.com"
    " --short-name weather --full-name 'Weather'`"
}
_KINDS: Final = {
    BotKind.GENERIC: "generic",
    BotKind.INCOMING_WEBHOOK: "incoming webhook",
    BotKind.OUTGOING_WEBHOOK: "outgoing webhook",
    BotKind.EMBEDDED: "embedded",
}
_COLUMNS: Final[dict[str, Column]] = {
    "ID": "user_id",
    "EMAIL": "email",
    "NAME": "full_name",
    "KIND": "kind",
    "OWNER": "owner",
    "STATUS": "status",
    "CREATED": ("created_at", day),
}
bots = group("bots", "Manage bots: list, create, change, deactivate, and reactivate them.")


_Owner = Annotated[str, typer.Option("--owner", help="Email address of the owner.")]
_ShortName = Annotated[
    str, typer.Option("--short-name", help="First part of the bot's email address.")
]
_FullName = Annotated[str, typer.Option("--full-name", help="Name of the bot.")]
_CREATE = (
    "Example: `tertulia bots create owner=ann@example.com short_name=weather full_name=Weather"
    " --show-key`"
)


@configured
async def create_bot(
    config: Config, owner: _Owner, short_name: _ShortName, full_name: _FullName
) -> Printed:
    """Create a bot, as `tertulia bots create` does, and print its API key."""
    return (await _created(config, owner, short_name, full_name)).printed()


@bots.command("create", epilog=_CREATE)
@configured
async def create(
    config: Config,
    owner: _Owner,
    short_name: _ShortName,
    full_name: _FullName,
    show_key: ShowKey = False,
) -> Printed:
    """Create a bot for a person who is allowed to create bots.

    Prints the bot's user ID and email address. A program also needs the API key. The server can
    keep running.
    """
    return (await _created(config, owner, short_name, full_name)).printed(with_key=show_key)


async def _created(config: Config, owner: str, short_name: str, full_name: str) -> Account:
    async with opened(config) as (log, vault):
        person = log.state.user_with_address(owner)
        if person is None:
            raise CommandFailed(f"No account has the address '{owner}'.")
        new = verbs.NewBot(
            full_name=full_name,
            short_name=short_name,
            kind=BotKind.GENERIC,
            host=config.address_host,
            credential=await vault.credential(0, None),
        )
        bot = await log.submit(person.id, verbs.create, new)
        return account_of(log.state, vault, bot)


def _shown(state: State, account: User) -> dict[str, Any]:
    bot = account.bot
    owner = None if bot is None else state.users.get(bot.owner_id)
    return {
        "user_id": account.id,
        "email": account.address,
        "full_name": account.full_name,
        "kind": "" if bot is None else _KINDS[bot.kind],
        "role": role_name(account.role),
        "owner": None if owner is None else owner.address,
        "status": status_of(account),
        "created_at": account.joined_at,
    }


@command(bots, "list", "bots list --owner ann@example.com --data-dir data")
async def list_bots(
    caller: Caller,
    words: Words = None,
    owner: Annotated[
        str | None, typer.Option(metavar="USER", help="Show only this person's bots.")
    ] = None,
) -> Printed:
    """List active and deactivated bots, or find some by words or owner."""
    state = caller.state
    owner_id = None if owner is None else account_of_person(state, owner).id
    rows = [
        _shown(state, user)
        for user in having(state.users, words)
        if user.bot is not None and owner_id in {None, user.bot.owner_id}
    ]
    return listing("bots", _COLUMNS, rows)


@command(bots, "change", "bots change weather-bot@example.com --owner ben@example.com")
async def change(
    caller: Caller,
    who: Who,
    full_name: Annotated[str | None, typer.Option(help="New name.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="USER", help="New owner.")] = None,
    role: Annotated[RoleName | None, typer.Option(help="New role.")] = None,
) -> Printed:
    """Change a bot's name, owner, or role. If one change is invalid, none is made.

    A bot can never do more than its owner.
    """
    if full_name is None and owner is None and role is None:
        raise UsageError("Nothing to change. Use --full-name, --owner, or --role.")
    account = account_of_bot(caller.state, who)
    update = verbs.BotUpdate(
        full_name=full_name,
        host=caller.node.config.address_host,
        role=role_called(role),
        owner_id=None if owner is None else account_of_person(caller.state, owner).id,
    )
    await caller.submit(verbs.change, account.id, update)
    shown = _shown(caller.state, caller.state.users[account.id])
    sentence = f"{shown['full_name']} <{shown['email']}> belongs to {shown['owner']}."
    return Printed(shown, [sentence])


@command(bots, "deactivate", "bots deactivate weather-bot@example.com --data-dir data")
async def deactivate(caller: Caller, who: Who) -> Printed:
    """Deactivate a bot. Its messages are kept."""
    account = account_of_bot(caller.state, who)
    await caller.submit(verbs.deactivate, account.id)
    return done(f"{account.address} is deactivated.")


@command(bots, "reactivate", "bots reactivate weather-bot@example.com --data-dir data")
async def reactivate(caller: Caller, who: Who) -> Printed:
    """Reactivate a bot. It gets a new API key (see `tertulia keys show`).

    If its owner is deactivated, the organization's first owner becomes its owner.
    """
    account = account_of_bot(caller.state, who)
    await caller.submit(deactivation.reactivate, account.id, caller.node.vault.new_key())
    return done(f"{account.address} is active.")
