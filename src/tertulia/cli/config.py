"""`tertulia config`: what can be set, and what is."""

import typing
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Meta

from tertulia.app.config import PREFIX, load
from tertulia.cli.options import ConfigFile, DatabaseUrl, DataDir
from tertulia.service.config import MASK, SECRETS, Config, without_password

EXAMPLE = (
    "Example: `tertulia config --show --data-dir data`\n\n"
    "A setting in tertulia.toml: `port = 8080`; the same in the environment:"
    " `TERTULIA_PORT=8080`; and as a flag, which prevails: `tertulia serve --port 8080`"
)


def config(
    show: Annotated[
        bool, typer.Option("--show", help="Print the settings in effect instead of the list.")
    ] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
) -> None:
    """List every setting of the server: type, default, environment variable, meaning.

    Settings come from the file tertulia.toml in the data directory (or --config), over which
    TERTULIA_… variables prevail, over which flags do. An unknown one is an error. With --show, the
    ones in effect, as such a file, with secrets hidden.

    TERTULIA_…_FILE names a file in which a setting is (a secret, say), and so does a credential of
    systemd with the name tertulia.SETTING.
    """
    from rich.console import Console  # Only for this command: a server prints no colours.
    from rich.markup import escape

    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    if show:
        for name, value in msgspec.structs.asdict(_masked(settings)).items():
            typer.echo(f"{name} = {_toml(value)}")
        return
    console = Console(soft_wrap=True, highlight=False)
    hints = typing.get_type_hints(Config, include_extras=True)
    for field in msgspec.structs.fields(Config):
        kind, meta = typing.get_args(hints[field.name])
        console.print(
            f"[bold]{field.name}[/bold]  {kind.__name__}{escape(_limits(meta))},"
            f" default {escape(_toml(field.default))}, {PREFIX}{field.name.upper()}"
        )
        console.print(f"  {escape(meta.description or '')}\n")


def _limits(meta: Meta) -> str:
    if meta.pattern is not None:
        return " " + meta.pattern.strip("^$")
    if meta.ge is not None:
        return f" {meta.ge} to {meta.le}"
    return ""


def _masked(settings: Config) -> Config:
    hidden = {name: MASK if getattr(settings, name) else "" for name in SECRETS}
    return msgspec.structs.replace(
        settings, **hidden, database_url=without_password(settings.database_url)
    )


def _toml(value: Any) -> str:
    return msgspec.json.encode(value).decode()
