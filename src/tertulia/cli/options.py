"""The options that commands share."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tertulia.model.users import Role

DataDir = Annotated[
    str | None,
    typer.Option(
        "--data-dir", metavar="DIR", help="Directory of the database file and the secret."
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="postgresql://user:password@host/name; without it, an SQLite file in the directory.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings in TOML; without it, tertulia.toml in the directory where there is one.",
    ),
]


def finite(value: float) -> float:
    """For options that are any number: what the language has for none (nan, inf) is none."""
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number that there can be.")
    return value


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Password = Annotated[
    str | None,
    typer.Option(
        "--password",
        help="The account's password. Without it: asked for on a terminal, else the first line"
        " of standard input.",
    ),
]


class RoleName(StrEnum):
    """The roles by the names they have here."""

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
