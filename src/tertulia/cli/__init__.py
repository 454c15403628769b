"""The command line. Only the module with the command that was typed is loaded."""

import gc
import getpass
import importlib
import sys
from collections.abc import Iterable
from typing import Annotated, Any, Final

import typer

from tertulia import __version__
from tertulia.cli.errors import Commands
from tertulia.log.origin import current_origin
from tertulia.model.audit_log import Origin

COMMANDS: Final = (
    *("serve", "init", "first-steps", "create-user", "create-bot", "password", "sign-out"),
    *("reactivate", "invite", "users", "bots", "keys", "sessions", "agents", "second-factors"),
    *("identities", "sign-in-link", "invitations"),
    *("groups", "channels", "folders", "settings", "defaults", "default-groups"),
    *("fields", "domains", "pictures", "emoji", "linkifiers", "playgrounds", "files"),
    *("announce", "mail", "backup", "backups", "restore", "import", "export"),
    *("move-files", "check", "top", "nodes", "end-queues", "usage", "audit", "config"),
)
"""In the order in which help lists them."""
_MODULES: Final = {
    **dict.fromkeys(("create-user", "password", "sign-out", "sign-in-link"), "users"),
    "create-bot": "bots",
    "invite": "invitations",
    **dict.fromkeys(("keys", "sessions", "agents", "second-factors", "identities"), "access"),
    **dict.fromkeys(("folders", "default-groups"), "channel_lists"),
    **dict.fromkeys(("fields", "domains"), "organization"),
    "emoji": "pictures",
    "defaults": "settings",
    **dict.fromkeys(("linkifiers", "playgrounds", "announce", "reactivate"), "organization"),
    **dict.fromkeys(("backup", "restore", "end-queues"), "backups"),
    "move-files": "files",
    "import": "imports",
    "export": "exports",
}
"""Modules of commands whose module has another name."""


class CommandLineOrigin:
    """The command that the operator typed, as the origin of what it does."""

    is_over = False

    def __init__(self, command: str) -> None:
        self._command = command

    def origin(self) -> Origin:
        return Origin(way="command_line", command=self._command, agent=getpass.getuser())


class _Program(Commands):
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        words = [name, *(text for text in rest[:1] if text in getattr(command, "commands", ()))]
        if name != "serve":
            origin = CommandLineOrigin(f"tertulia {' '.join(map(str, words))}")
            token = current_origin.set(origin)
            ctx.call_on_close(lambda: current_origin.reset(token))
        return name, command, rest


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the program with these commands.

    A module has a group (a Typer app of that name), or a function of that name with its `EXAMPLES`.
    """
    app = typer.Typer(
        name="tertulia",
        cls=_Program,
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
        module = importlib.import_module(f"{__name__}.{_MODULES.get(name, word)}")
        values = vars(module).values()
        groups = (
            value for value in values if isinstance(value, typer.Typer) and value.info.name == name
        )
        if result := next(groups, None):
            app.add_typer(result, name=name)
        else:
            examples = getattr(module, "EXAMPLES", None) or {name: module.EXAMPLE}
            app.command(name, epilog=examples[name])(getattr(module, word))
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
    """Run the command that was typed."""
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    # Imports make no garbage, and collecting it would take an eighth of a start.
    gc.disable()
    # Help, completion, and errors need all commands.
    app = application([first] if first in COMMANDS else COMMANDS)
    gc.freeze()
    gc.enable()
    app()
