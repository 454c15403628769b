"""`tertulia config`: what can be set, and what is."""

import typing
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
import typer
from msgspec import Meta

from tertulia.app.config import PREFIX, load
from tertulia.cli.options import ConfigFile, DatabaseUrl, DataDir
from tertulia.service.config import Config

EXAMPLE = (
    "Example: `tertulia config --show --data-dir data`\n\n"
    "A setting in tertulia.toml: `port = 8080`; the same in the environment:"
    " `TERTULIA_PORT=8080`; and as a flag, which prevails: `tertulia serve --port 8080`"
)
_MASK = "********"


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
    return msgspec.structs.replace(
        settings,
        secret=_MASK if settings.secret else "",
        smtp_password=_MASK if settings.smtp_password else "",
        bigbluebutton_secret=_MASK if settings.bigbluebutton_secret else "",
        jwt_secret=_MASK if settings.jwt_secret else "",
        s3_secret_access_key=_MASK if settings.s3_secret_access_key else "",
        database_url=_without_password(settings.database_url),
    )


def _without_password(url: str) -> str:
    """The URL with its password hidden, wherever it is in it."""
    parts = urlsplit(url)
    if parts.password:
        user, _, host = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user.partition(':')[0]}:{_MASK}@{host}")
    query = "&".join(
        f"password={_MASK}" if one.startswith("password=") else one
        for one in parts.query.split("&")
    )
    return parts._replace(query=query).geturl() if url else ""


def _toml(value: Any) -> str:
    return msgspec.json.encode(value).decode()
