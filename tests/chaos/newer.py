"""`python -m tests.chaos.newer …` is the command line of a newer version: its schema has one
migration more."""

from tertulia.store import migrations
from tertulia.store.database import Dialect


def _later(_: Dialect) -> tuple[str, ...]:
    return ("CREATE TABLE of_a_newer_version (id BIGINT PRIMARY KEY)",)


if __name__ == "__main__":
    migrations.MIGRATIONS = (*migrations.MIGRATIONS, _later)
    # Imported now, when there is one more.
    from tertulia.cli import main

    main()
