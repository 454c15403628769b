"""A process that imports an export of `tests/imports/exports.py`, for `bench/cases/imports.py`."""

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from tertulia.app.founding import opened_log, opened_vault
from tertulia.imports.importer import Importer
from tertulia.imports.mattermost.source import MattermostExport
from tertulia.imports.reading import SeparateSource
from tertulia.imports.rocketchat.source import RocketChatDump
from tertulia.imports.slack.export import SlackExport
from tertulia.imports.source import Source
from tertulia.imports.target import ImportTarget
from tertulia.imports.zulip.source import ZulipExport
from tertulia.service.config import Config
from tertulia.service.garbage import collect_rarely

KINDS: Final[Mapping[str, Callable[..., Source]]] = {
    "zulip": ZulipExport,
    "slack": SlackExport,
    "mattermost": MattermostExport,
    "rocketchat": RocketChatDump,
}
"""The functions that open an export, with a directory for extracted files, by kind."""


async def _imported(config: Config, opened: Callable[..., Source], export: Path) -> None:
    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    collect_rarely()
    began = time.monotonic()
    source = SeparateSource(partial(opened, export), config.data_path / "import")
    async with opened_log(config, lambda _: None) as log:
        progress = await Importer(ImportTarget(log, vault, files, disk), source).run()
    source.close()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps(
            {
                "seconds": time.monotonic() - began,
                "cpu": usage.ru_utime + usage.ru_stime,
                "others_cpu": others.ru_utime + others.ru_stime,
                **progress.report.to_json(),
            }
        ),
        flush=True,
    )
    vault.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--write", type=int, metavar="MESSAGES", help="Write the export instead.")
    parser.add_argument("--config", help="The server's configuration as JSON.")
    parser.add_argument("export", type=Path, help="The export, or with --write its directory.")
    options = parser.parse_args()
    if options.write:
        from tests.imports import exports

        print(exports.WRITERS[options.kind](options.write, options.export))
    else:
        given = msgspec.json.decode(options.config, type=Config)
        asyncio.run(_imported(given, KINDS[options.kind], options.export))
