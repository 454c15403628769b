"""The command line: one module per command, of which only that of the command that was typed is
loaded."""

import gc
import importlib
import sys
from collections.abc import Iterable
from typing import Annotated, Final

import typer

from tertulia import __version__
from tertulia.cli.errors import Commands

COMMANDS: Final = (
    *("serve", "init", "first-steps", "create-user", "create-bot", "password", "sign-out"),
    *("reactivate", "invite", "users", "bots", "keys", "sessions", "agents", "invitations"),
    *("groups", "channels", "folders", "settings", "defaults", "default-groups"),
    *("fields", "domains", "pictures", "emoji", "linkifiers", "playgrounds", "files"),
    *("announce", "mail", "backup", "backups", "restore"),
    *("move-files", "check", "top", "nodes", "end-queues", "usage", "config"),
)
"""In the order in which help lists them. The module of the same name has a function of that name,
or a group of commands (`app`)."""


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The program with these commands."""
    app = typer.Typer(
        name="tertulia",
        cls=Commands,
        help="Tertulia is a team chat server that works with Zulip clients.",
        epilog="Try it out: `tertulia serve --demo --data-dir demo`",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_tertulia)
    for name in names:
        word = name.replace("-", "_")
        module = importlib.import_module(f"{__name__}.{word}")
        epilog = getattr(module, "EXAMPLE", None)
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, epilog=epilog)
        else:
            app.command(name, epilog=epilog)(getattr(module, word))
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"Tertulia {__version__}")
        raise typer.Exit


def _tertulia(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Tertulia is a team chat server that works with Zulip clients."""


def main() -> None:
    """Run what was typed."""
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    # What is loaded stays: to look for garbage in it again and again is an eighth of a start.
    gc.disable()
    # Help, completion and what to say of a mistake need to know them all.
    app = application([first] if first in COMMANDS else COMMANDS)
    gc.freeze()
    gc.enable()
    app()
