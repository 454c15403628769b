"""`tertulia end-queues`: have every client fetch everything anew."""

import contextlib

import typer

from tertulia.app.config import load
from tertulia.app.founding import NoOrganization, is_founded
from tertulia.cli.commands import done, show
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from tertulia.model.counts import counted
from tertulia.store import history
from tertulia.store.migrations import migrate
from tertulia.store.store import database_at

EXAMPLE = "Example: `tertulia end-queues --data-dir data`"


def end_queues(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """End all event queues, after you restored an older state of the database.

    After such a restore, event IDs are assigned a second time, and clients that continue from their
    last event would miss changes. This command gives the log a new identity, so that every client
    registers again by itself. Servers can keep running: they notice within seconds.
    """
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    database = database_at(settings.data_path, settings.database_url)
    if not is_founded(settings):
        raise NoOrganization(settings.place)
    migrate(database, lambda line: typer.echo(line, err=True))
    with contextlib.closing(database.connect(readonly=False)) as connection:
        for statement in connection.dialect.begin_write:
            connection.run(statement)
        ((count,),) = connection.query("SELECT COUNT(*) FROM queues")
        history.renew(connection)
        connection.commit()
    sentence = f"Ended {counted(count, 'event queue')}. The log has a new identity."
    show(done(sentence), as_json=as_json)
