"""`tertulia config`: the server's settings and their values."""

from typing import Annotated, Any

import msgspec
import typer
from msgspec import Meta, Struct

from tertulia.app.config import PREFIX
from tertulia.cli.commands import Printed, settings_from
from tertulia.cli.commands import show as print_
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.service.config import (
    MASK,
    SECRETS,
    Config,
    declared_server_settings,
    without_password,
)

EXAMPLE = (
    "Example: `tertulia config --show --data-dir data`\n\nA setting in tertulia.toml: `port ="
    " 8080`; as an environment variable: `TERTULIA_PORT=8080`; as a flag, which overrides both:"
    " `tertulia serve --port 8080`"
)


def config(
    show: Annotated[
        bool, typer.Option("--show", help="Print the current settings instead of the list.")
    ] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List every server setting with its type, default, environment variable, and description.

    Settings come from tertulia.toml in the data directory (or the file given with --config), from
    TERTULIA_… environment variables, and from flags; later sources override earlier ones. Unknown
    settings are errors. With --show, prints the current settings in the format of that file, with
    secrets hidden.

    TERTULIA_…_FILE names a file that contains the value, such as a secret. A systemd credential
    named tertulia.SETTING works, too.
    """
    settings = settings_from({"data_dir": data_dir, "database_url": database_url}, config)
    if show:
        values = msgspec.structs.asdict(_masked(settings))
        lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
        print_(Printed({"settings": values}, lines), as_json=as_json)
    elif as_json:
        print_(Printed({"settings": described_settings()}, []), as_json=True)
    else:
        _list()


class DescribedSetting(Struct, frozen=True, kw_only=True):
    """A setting."""

    name: str
    type: str
    limits: str
    """The allowed values; empty if every value of the type is allowed."""
    default: Any
    variable: str
    """The name of its environment variable."""
    about: str


def described_settings() -> list[DescribedSetting]:
    """Return every setting of the server, as `tertulia config` lists it."""
    declared = declared_server_settings(Config)
    return [
        DescribedSetting(
            name=field.name,
            type=declared[field.name].type.__name__,
            limits=_limits(declared[field.name].limits),
            default=field.default,
            variable=f"{PREFIX}{field.name.upper()}",
            about=declared[field.name].about,
        )
        for field in msgspec.structs.fields(Config)
    ]


def _list() -> None:
    from rich.console import Console  # Imported here because a server prints no colors.
    from rich.markup import escape

    console = Console(soft_wrap=True, highlight=False)
    for setting in described_settings():
        limits = f" {setting.limits}" if setting.limits else ""
        console.print(
            f"[bold]{setting.name}[/bold]  {setting.type}{escape(limits)},"
            f" default {escape(_toml(setting.default))}, {setting.variable}"
        )
        console.print(f"  {escape(setting.about)}\n")


def _limits(meta: Meta) -> str:
    if meta.pattern is not None:
        return meta.pattern.strip("^$")
    if meta.ge is not None:
        return f"{meta.ge} to {meta.le}"
    return ""


def _masked(settings: Config) -> Config:
    hidden = {name: MASK if getattr(settings, name) else "" for name in SECRETS}
    return msgspec.structs.replace(
        settings, **hidden, database_url=without_password(settings.database_url)
    )


def _toml(value: Any) -> str:
    return msgspec.json.encode(value).decode()
