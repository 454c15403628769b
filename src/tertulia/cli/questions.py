"""Questions on a terminal. Each says what it is about, and has an answer to begin with where there
can be one."""

import sys
from collections.abc import Callable

import typer

from tertulia.app.config import ConfigError
from tertulia.cli.errors import UsageError
from tertulia.model.errors import Refused


def can_be_asked() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(*lines: str) -> None:
    """Lines beside the questions."""
    for line in lines:
        typer.echo(line, err=True)


def ask(
    question: str,
    check: Callable[[str], str] = str,
    *,
    default: str | None = "",
    hidden: bool = False,
) -> str:
    """An answer, in the form that `check` gives it; what it refuses is said, and asked for again.
    A default of None is none: something must be said."""
    while True:
        typed = typer.prompt(
            question,
            default=default,
            show_default=bool(default),
            hide_input=hidden,
            err=True,
        )
        try:
            return check(str(typed).strip())
        except (Refused, UsageError, ConfigError) as error:
            say(f"  {error}")


def agree(question: str, *, default: bool) -> bool:
    """Yes or no."""
    return bool(typer.confirm(question, default=default, err=True))


def several(text: str) -> list[str]:
    """What is divided by commas, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
