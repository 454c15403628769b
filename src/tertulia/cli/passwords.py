"""Where a new account's password comes from."""

import sys

import typer

from tertulia.cli.errors import UsageError
from tertulia.domain import names


def password_from(option: str | None) -> str:
    """The option's, or one that is asked for on a terminal, or the first line of standard input.

    Raises UsageError where there is none, and Refused for one that cannot be a password.
    """
    if option is not None:
        return names.password(option)
    if sys.stdin.isatty():
        asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return names.password(asked)
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise UsageError("A password is needed: give --password, or write it to standard input.")
    return names.password(line)
