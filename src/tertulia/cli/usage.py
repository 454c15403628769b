"""`tertulia usage`: how many people use the installation."""

import time

import msgspec
import typer
from msgspec import Struct

from tertulia.app.config import load
from tertulia.app.founding import founded_database
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.store import queries
from tertulia.store.migrations import require_usable

EXAMPLE = "Example: `tertulia usage --data-dir data`"
_DAY = 86400


class Usage(Struct, frozen=True, kw_only=True):
    """How many people gave input to a client: today (in UTC), and in so many days with today."""

    today: int
    days_7: int
    days_30: int


def usage(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Count the people who use it: by whether they typed or clicked in a client, day by day."""
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    with founded_database(settings) as connection:
        require_usable(connection)
        today = int(time.time()) // _DAY
        found = Usage(
            today=queries.users_since(connection, today),
            days_7=queries.users_since(connection, today - 6),
            days_30=queries.users_since(connection, today - 29),
        )
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
        return
    typer.echo(f"today    {found.today}")
    typer.echo(f"7 days   {found.days_7}")
    typer.echo(f"30 days  {found.days_30}")
