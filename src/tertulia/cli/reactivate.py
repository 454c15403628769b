"""`tertulia reactivate`: open the organization again that an owner deactivated."""

import asyncio

import typer

from tertulia.app.composition import opened_organization
from tertulia.app.config import load
from tertulia.cli.commands import done, show
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.domain.organization import realms
from tertulia.service.config import Config

EXAMPLE = "Example: `tertulia reactivate --data-dir data`"


def reactivate(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Reactivate the organization after an owner deactivated it.

    Everyone can use it as before. The server can keep running.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    name = asyncio.run(_reactivate(settings))
    show(done(f"Reactivated '{name}'."), as_json=as_json)


async def _reactivate(settings: Config) -> str:
    async with opened_organization(settings, lambda line: typer.echo(line, err=True)) as (log, _):
        await log.submit(None, realms.reactivate)
        return log.state.realm.name
