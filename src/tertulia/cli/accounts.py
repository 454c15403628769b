"""Printing accounts."""

import msgspec
import typer
from msgspec import Struct

from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service.vault import Vault
from tertulia.state.organization import State


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


def show(account: Account, *, as_json: bool) -> None:
    """Print the account: one JSON object, or a line for each fact."""
    if as_json:
        typer.echo(msgspec.json.encode(account).decode())
        return
    for name, value in msgspec.structs.asdict(account).items():
        typer.echo(f"{name:<10} {value}")
