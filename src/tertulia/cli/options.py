"""Options that commands share."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tertulia.model.users import Role

DataDir = Annotated[
    str | None,
    typer.Option(
        "--data-dir", metavar="DIR", help="Data directory, with the database file and the secret."
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="PostgreSQL database, as postgresql://user:password@host/name. Default: an SQLite"
        " file in the data directory.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="TOML file with settings. Default: tertulia.toml in the data directory, if it exists.",
    ),
]


def finite(value: float) -> float:
    """Reject nan and inf, which Typer accepts as numbers."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value} isn't a valid number.")
    return value


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Password = Annotated[
    str | None,
    typer.Option(
        "--password",
        help="Password of the account. Default: asked for on a terminal, otherwise the first"
        " line of standard input.",
    ),
]

ShowKey = Annotated[
    bool,
    typer.Option(
        "--show-key", help="Also print the API key. `tertulia keys show` prints it later."
    ),
]


class RoleName(StrEnum):
    """Roles by their names in commands."""

    OWNER = "owner"
    ADMIN = "admin"
    MODERATOR = "moderator"
    MEMBER = "member"
    GUEST = "guest"


ROLES = {
    RoleName.OWNER: Role.OWNER,
    RoleName.ADMIN: Role.ADMINISTRATOR,
    RoleName.MODERATOR: Role.MODERATOR,
    RoleName.MEMBER: Role.MEMBER,
    RoleName.GUEST: Role.GUEST,
}
