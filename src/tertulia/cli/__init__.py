"""The command line. Only the module of the command in use is imported."""

import gc
import importlib
import sys
from collections.abc import Iterable
from typing import Annotated, Any, Final

import typer

from tertulia import __version__
from tertulia.cli import grammar
from tertulia.cli.errors import Commands
from tertulia.log.origin import current_origin
from tertulia.model.audit_log import Origin

_PANELS: Final = {
    "The server and the organization": (
        *("serve", "init", "first-steps", "check", "top", "config", "usage", "audit"),
        *("reactivate", "export"),
    ),
    "The server's parts: NOUN VERB": ("backups", "files", "mail", "nodes", "queues", "import"),
    "People and access: NOUN VERB": (
        *("users", "invitations", "groups", "bots", "keys", "sessions", "agents"),
        *("second-factors", "identities"),
    ),
    "Channels and settings: NOUN VERB": (
        *("channels", "folders", "settings", "defaults", "default-groups", "fields", "domains"),
        *("pictures", "emoji", "linkifiers", "playgrounds", "announce"),
    ),
    "Other names of commands": (
        *("create-user", "create-bot", "invite", "password", "sign-out", "sign-in-link"),
        *("backup", "restore", "move-files", "end-queues"),
    ),
}
"""The commands, as help lists them."""
COMMANDS: Final = tuple(name for names in _PANELS.values() for name in names)
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
    **dict.fromkeys(("backup", "restore", "queues", "end-queues"), "backups"),
    "move-files": "files",
    "import": "imports",
    "export": "exports",
}
"""Modules of commands whose module has another name."""

_HELP: Final = """Tertulia is a team chat server that works with Zulip clients.

Commands have the form `tertulia NOUN VERB NAME key=value`, such as `tertulia users change
ben@example.com role=moderator`. Options can be typed as `key=value` or as `--key value`. Commands
about the whole server or organization are one word, such as `tertulia check`.

`tertulia NOUN` lists the verbs of a noun. `tertulia NOUN VERB --help` shows what a verb takes, with
an example.
"""


class CommandLineOrigin:
    """The operator's command, as the origin of its changes."""

    is_over = False

    def __init__(self, command: str) -> None:
        self._command = command

    def origin(self) -> Origin:
        import getpass  # Only computed if something is recorded.

        return Origin(way="command_line", command=self._command, agent=getpass.getuser())


class _Program(Commands):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=COMMANDS.index)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        verbs = getattr(command, "commands", {})
        words = [name, *(text for text in rest[:1] if text in verbs)]
        if len(words) > 1:
            rest = [rest[0], *grammar.as_options(verbs[rest[0]], rest[1:])]
        elif command is not None:
            rest = grammar.as_options(command, rest)
        if name != "serve":
            origin = CommandLineOrigin(f"tertulia {' '.join(map(str, words))}")
            token = current_origin.set(origin)
            ctx.call_on_close(lambda: current_origin.reset(token))
        return name, command, rest


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the program with these commands. A module has either a group (a Typer app with that
    name), or a function with that name and `EXAMPLES`."""
    app = typer.Typer(
        name="tertulia",
        cls=_Program,
        help=_HELP,
        epilog="Try it out: `tertulia serve --demo --data-dir demo`",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=_HELP)(_tertulia)
    panels = {name: panel for panel, names in _PANELS.items() for name in names}
    for name in names:
        word = name.replace("-", "_")
        module = importlib.import_module(f"{__name__}.{_MODULES.get(name, word)}")
        values = vars(module).values()
        groups = (
            value for value in values if isinstance(value, typer.Typer) and value.info.name == name
        )
        if result := next(groups, None):
            app.add_typer(result, name=name, rich_help_panel=panels[name])
        else:
            examples = getattr(module, "EXAMPLES", None) or {name: module.EXAMPLE}
            add = app.command(name, epilog=examples[name], rich_help_panel=panels[name])
            add(getattr(module, word))
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
    """Declare the program's own options."""


def main() -> None:
    """Run the command on the command line."""
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    # Imports make no garbage, and collecting it would take an eighth of a start.
    gc.disable()
    # Help, completion, and errors need all commands.
    app = application([first] if first in COMMANDS else COMMANDS)
    gc.freeze()
    gc.enable()
    app()
