"""Reading the password of a new account."""

import sys

import typer

from tertulia.cli.errors import UsageError
from tertulia.service.config import Config
from tertulia.service.passwords import password_rules


def password_from(option: str | None, config: Config, *own: str) -> str:
    """The option's, or one that is asked for on a terminal, or the first line of standard input.
    `own` is what is known of its person.

    Raises UsageError where there is none, and Refused for one that is not good enough.
    """
    return password_rules(config).require(_typed(option), own)


def _typed(option: str | None) -> str:
    if option is not None:
        return option
    if sys.stdin.isatty():
        asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        return asked
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise UsageError("A password is needed: give --password, or write it to standard input.")
    return line
