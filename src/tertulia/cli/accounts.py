"""Finding the accounts that a command names, and printing them."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import msgspec
import typer
from msgspec import Struct

from tertulia.cli.commands import Printed
from tertulia.cli.options import ROLES, RoleName
from tertulia.cli.tables import contains
from tertulia.model.errors import Refused
from tertulia.model.users import Role, User
from tertulia.service.credentials import Vault
from tertulia.state.state import State

Who = Annotated[
    str, typer.Argument(metavar="USER", help="Email address or user ID of the account.")
]
Users = Annotated[
    list[str],
    typer.Argument(metavar="USER…", help="Email addresses or user IDs of people or bots."),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[WORD]…",
        help="Show only accounts whose name or address contains all of these words.",
    ),
]
_DIGITS: Final = 17
"""A number with this many digits is too long for an ID."""
_ROLE_NAMES = {role: name.value for name, role in ROLES.items()}


class Account(Struct, frozen=True, kw_only=True):
    """An account and its credentials."""

    user_id: int
    email: str
    full_name: str
    api_key: str

    def printed(self, *, with_key: bool = True) -> Printed:
        """Return a line for each value."""
        values = msgspec.structs.asdict(self)
        if not with_key:
            del values["api_key"]
        return Printed(values, [f"{name:<10} {value}" for name, value in values.items()])


def account_of(state: State, vault: Vault, user: User) -> Account:
    """An account with its API key."""
    return Account(
        user_id=user.id,
        email=user.address,
        full_name=user.full_name,
        api_key=vault.api_key(state.credentials[user.id]),
    )


def person_with(state: State, address: str) -> User:
    """Return the account with this address. Raise Refused if it doesn't exist."""
    user = state.user_with_address(address)
    if user is None:
        raise Refused(f"No account has the address '{address}'.")
    return user


def account_called(state: State, who: str) -> User:
    """Return the account with this address or user ID. Raise Refused if it doesn't exist."""
    user_id = id_in(who)
    if user_id is None:
        return person_with(state, who)
    user = state.users.get(user_id)
    if user is None:
        raise Refused(f"No account has the ID {who}.")
    return user


def account_of_person(state: State, who: str) -> User:
    """Return the person's account with this address or user ID. Raise Refused for bots, and if it
    doesn't exist."""
    user = account_called(state, who)
    if user.is_bot:
        raise Refused(f"'{who}' is a bot. Use `tertulia bots` instead.")
    return user


def account_of_bot(state: State, who: str) -> User:
    """Return the bot with this address or user ID. Raise Refused for people, and if it doesn't
    exist."""
    user = account_called(state, who)
    if not user.is_bot:
        raise Refused(f"'{who}' is a person. Use `tertulia users` instead.")
    return user


def user_ids(state: State, people: Iterable[str]) -> list[int]:
    """Return the IDs of the accounts with these addresses or IDs, without duplicates."""
    return list(dict.fromkeys(account_called(state, person).id for person in people))


def id_in(text: str) -> int | None:
    """Parse an ID. Return None for text that isn't a number, and for numbers that can't be an
    ID."""
    return int(text) if text.isdecimal() and len(text) < _DIGITS else None


def having(users: Iterable[User], words: Sequence[str] | None) -> list[User]:
    """Return the accounts whose name or address contains all words, by ID, without the server's own
    bots."""
    matches = (
        user
        for user in users
        if not user.is_system_bot and contains(f"{user.full_name}\n{user.address}", words)
    )
    return sorted(matches, key=lambda user: user.id)


def role_name(role: Role) -> str:
    """The role's name in commands."""
    return _ROLE_NAMES[role]


def role_called(name: RoleName | None) -> Role | None:
    """Return the role with this name; None if the name is None."""
    return None if name is None else ROLES[name]


def status_of(account: User) -> str:
    """Return `active`, `deactivated`, or `erased`."""
    if account.is_deleted:
        return "erased"
    return "active" if account.is_active else "deactivated"
