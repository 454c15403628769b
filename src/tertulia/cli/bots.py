"""`tertulia bots`: the accounts of programs."""

from typing import Annotated

import typer
from msgspec import Struct

from tertulia.cli import create_bot
from tertulia.cli.accounts import (
    Who,
    Words,
    account_of_bot,
    account_of_person,
    having,
    role_called,
    role_name,
    status_of,
)
from tertulia.cli.commands import Printed, command, done, group
from tertulia.cli.errors import UsageError
from tertulia.cli.options import RoleName
from tertulia.cli.tables import day, table
from tertulia.domain.accounts import bots, users
from tertulia.model.users import BotKind, User
from tertulia.service.caller import Caller
from tertulia.state.organization import State

app = group("bots", "Manage bots: list, create, change, deactivate, and reactivate them.")
app.command("create", epilog=create_bot.EXAMPLE)(create_bot.create_bot)

_KINDS = {
    BotKind.GENERIC: "generic",
    BotKind.INCOMING_WEBHOOK: "incoming webhook",
    BotKind.OUTGOING_WEBHOOK: "outgoing webhook",
    BotKind.EMBEDDED: "embedded",
}


class BotShown(Struct, frozen=True, kw_only=True):
    """A bot. The time is in UNIX seconds."""

    user_id: int
    email: str
    full_name: str
    kind: str
    """generic, incoming webhook, outgoing webhook, embedded."""
    role: str
    owner: str | None
    """The owner's address."""
    status: str
    """active, deactivated or erased."""
    created_at: int


class Bots(Struct, frozen=True, kw_only=True):
    """Bots, by ID."""

    bots: list[BotShown]


def _shown(state: State, found: User) -> BotShown:
    bot = found.bot
    owner = None if bot is None else state.users.get(bot.owner_id)
    return BotShown(
        user_id=found.id,
        email=found.address,
        full_name=found.full_name,
        kind="" if bot is None else _KINDS[bot.kind],
        role=role_name(found.role),
        owner=None if owner is None else owner.address,
        status=status_of(found),
        created_at=found.joined_at,
    )


@command(app, "list", "bots list --owner ann@example.com --data-dir data")
async def list_bots(
    caller: Caller,
    words: Words = None,
    owner: Annotated[
        str | None, typer.Option(metavar="USER", help="Show only this person's bots.")
    ] = None,
) -> Printed:
    """List active and deactivated bots, or find some by words or owner."""
    state = caller.state
    wanted = None if owner is None else account_of_person(state, owner).id
    found = [
        _shown(state, one)
        for one in having(state.users, words)
        if one.bot is not None and wanted in {None, one.bot.owner_id}
    ]
    headings = ("ID", "EMAIL", "NAME", "KIND", "OWNER", "STATUS", "CREATED")
    rows = (
        (
            *(str(one.user_id), one.email, one.full_name, one.kind, one.owner or "-"),
            *(one.status, day(one.created_at)),
        )
        for one in found
    )
    return Printed(Bots(bots=found), table(headings, rows))


@command(app, "change", "bots change weather-bot@example.com --owner ben@example.com")
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
    found = account_of_bot(caller.state, who)
    revision = bots.Revision(
        full_name=full_name,
        host=caller.node.config.address_host,
        role=role_called(role),
        owner_id=None if owner is None else account_of_person(caller.state, owner).id,
    )
    await caller.submit(bots.change, found.id, revision)
    shown = _shown(caller.state, caller.state.users[found.id])
    return Printed(shown, [f"{shown.full_name} <{shown.email}> belongs to {shown.owner}."])


@command(app, "deactivate", "bots deactivate weather-bot@example.com --data-dir data")
async def deactivate(caller: Caller, who: Who) -> Printed:
    """Deactivate a bot. Its messages are kept."""
    found = account_of_bot(caller.state, who)
    await caller.submit(bots.deactivate, found.id)
    return done(f"{found.address} is deactivated.")


@command(app, "reactivate", "bots reactivate weather-bot@example.com --data-dir data")
async def reactivate(caller: Caller, who: Who) -> Printed:
    """Reactivate a bot. It gets a new API key (see `tertulia keys show`).

    If its owner is deactivated, the organization's first owner becomes its owner.
    """
    found = account_of_bot(caller.state, who)
    await caller.submit(users.reactivate, found.id, caller.node.vault.new_key())
    return done(f"{found.address} is active.")
