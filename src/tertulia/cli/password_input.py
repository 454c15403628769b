"""Reading the password of a new account."""

import sys

import typer

from tertulia.cli.errors import UsageError
from tertulia.model.errors import Refused
from tertulia.service.config import Config
from tertulia.service.passwords import password_rules


def password_from(option: str | None, config: Config, *own: str) -> str:
    """The option's, or one that is asked for on a terminal until it is good enough, or the first
    line of standard input. `own` is what is known of its person.

    Raises UsageError where there is none, and Refused for one that is not good enough.
    """
    rules = password_rules(config)
    if option is not None:
        return rules.require(option, own)
    if not sys.stdin.isatty():
        return rules.require(_piped(), own)
    while True:
        asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        try:
            return rules.require(asked, own)
        except Refused as refusal:
            typer.echo(str(refusal), err=True)


def _piped() -> str:
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise UsageError(
            "A password is required. Use --password, or pass the password on standard input."
        )
    return line
