"""Accounts: finding those that a command names, and printing them."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import msgspec
import typer
from msgspec import Struct

from tertulia.cli.options import ROLES, RoleName
from tertulia.model.errors import Refused
from tertulia.model.users import Role, User
from tertulia.service.vault import Vault
from tertulia.state.organization import State

Who = Annotated[
    str, typer.Argument(metavar="USER", help="Email address or user ID of the account.")
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[WORD]…",
        help="Show only accounts whose name or address contains all of these words.",
    ),
]


_DIGITS: Final = 17
"""More than an ID has."""


class Account(Struct, frozen=True, kw_only=True):
    """An account with what is needed to sign in."""

    user_id: int
    email: str
    full_name: str
    api_key: str


def account_of(state: State, vault: Vault, user: User) -> Account:
    """The account with its key."""
    return Account(
        user_id=user.id,
        email=user.address,
        full_name=user.full_name,
        api_key=vault.api_key(state.credentials[user.id]),
    )


def person_with(state: State, address: str) -> User:
    """The account with that address. Refused where there is none."""
    user = state.user_with_address(address)
    if user is None:
        raise Refused(f"No account has the address '{address}'.")
    return user


def account_of_person(state: State, who: str) -> User:
    """The person's account with that address or ID. Refused where there is none, and for bots."""
    found = account_called(state, who)
    if found.is_bot:
        raise Refused(f"'{who}' is a bot. Use `tertulia bots` instead.")
    return found


def account_of_bot(state: State, who: str) -> User:
    """The same for a bot."""
    found = account_called(state, who)
    if not found.is_bot:
        raise Refused(f"'{who}' is a person. Use `tertulia users` instead.")
    return found


def account_called(state: State, who: str) -> User:
    """The account with that address or user ID. Refused where there is none."""
    user_id = id_in(who)
    if user_id is None:
        return person_with(state, who)
    user = state.users.get(user_id)
    if user is None:
        raise Refused(f"No account has the ID {who}.")
    return user


def id_in(text: str) -> int | None:
    """The ID that somebody typed; None for what is none, as a number that no ID can be."""
    return int(text) if text.isdecimal() and len(text) < _DIGITS else None


def having(users: Iterable[User], words: Sequence[str] | None) -> list[User]:
    """Those whose name or address has all of the words, by ID; without the server's own bots."""
    wanted = [word.casefold() for word in words or ()]
    return sorted(
        (
            one
            for one in users
            if not one.is_system_bot
            and all(word in f"{one.full_name}\n{one.address}".casefold() for word in wanted)
        ),
        key=lambda one: one.id,
    )


_ROLE_NAMES = {role: name.value for name, role in ROLES.items()}


def role_name(role: Role) -> str:
    """What the role is called here."""
    return _ROLE_NAMES[role]


def role_called(name: RoleName | None) -> Role | None:
    """The role of that name; None for none."""
    return None if name is None else ROLES[name]


def status_of(account: User) -> str:
    """`active`, `deactivated` or `erased`."""
    if account.is_deleted:
        return "erased"
    return "active" if account.is_active else "deactivated"


def show(account: Account, *, as_json: bool) -> None:
    """Print the account: one JSON object, or a line for each fact."""
    if as_json:
        typer.echo(msgspec.json.encode(account).decode())
        return
    for name, value in msgspec.structs.asdict(account).items():
        typer.echo(f"{name:<10} {value}")
