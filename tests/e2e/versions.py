"""`python -m tests.e2e.versions older|newer …` is the command line of one of two consecutive
versions. The newer one adds to the tables, removes from them, and has a kind of change that the
older one doesn't know: an existing kind that counts as new. Periodic tasks of nodes run more
often."""

import sys

from tertulia.jobs import upkeep
from tertulia.log import commits
from tertulia.service import membership
from tertulia.store import log_formats, migrations
from tertulia.store.dialect import Dialect
from tertulia.store.migrations import Contract, Expand

NEW_KIND = "ChannelFolderCreated"


def _added(_: Dialect) -> tuple[str, ...]:
    return (
        "CREATE TABLE of_a_newer_version (id BIGINT PRIMARY KEY)",
        "ALTER TABLE channels ADD COLUMN of_a_newer_version BIGINT NOT NULL DEFAULT 0",
    )


def _taken_away(_: Dialect) -> tuple[str, ...]:
    return ("ALTER TABLE channels DROP COLUMN of_a_newer_version",)


if __name__ == "__main__":
    upkeep.UPGRADES_PERIOD_SECONDS = membership.REPORT_SECONDS = 0.25  # type: ignore[misc]
    if sys.argv.pop(1) == "newer":
        migrations.MIGRATIONS = (*migrations.MIGRATIONS, Expand(_added), Contract(_taken_away))
        newer = log_formats.LOG_FORMAT + 1
        log_formats.SINCE = {NEW_KIND: newer}
        for module in (log_formats, commits):
            module.LOG_FORMAT = newer  # type: ignore[attr-defined]
    # Import once the version is known.
    from tertulia.cli import main

    main()
