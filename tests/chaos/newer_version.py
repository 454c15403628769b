"""Run the command line of a newer version, with one more migration:
`python -m tests.chaos.newer_version …`."""

from tertulia.store import migrations
from tertulia.store.dialect import Dialect


def _later(_: Dialect) -> tuple[str, ...]:
    return ("CREATE TABLE of_a_newer_version (id BIGINT PRIMARY KEY)",)


if __name__ == "__main__":
    migrations.MIGRATIONS = (*migrations.MIGRATIONS, _later)
    # Import after adding the migration.
    from tertulia.cli import main

    main()
