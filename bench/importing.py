"""A process that imports an export of `tests/imports/exports.py`, for `bench/cases/imports.py`.

The processes that an import starts load this module, too, so it loads the rest only where it's
used, like the command line.
"""

import argparse
import asyncio
import json
import resource
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tertulia.service.config import Config

KINDS: Final[tuple[str, ...]] = ("zulip", "slack", "mattermost", "rocketchat")


def _opener(kind: str) -> Any:
    """Return the function that opens an export, with a directory for extracted files."""
    from tertulia.imports.mattermost.source import MattermostExport
    from tertulia.imports.rocketchat.source import RocketChatDump
    from tertulia.imports.slack.export import SlackExport
    from tertulia.imports.zulip.source import ZulipExport

    return dict(
        zip(KINDS, (ZulipExport, SlackExport, MattermostExport, RocketChatDump), strict=True)
    )[kind]


async def _imported(config: "Config", kind: str, export: Path) -> None:
    from tertulia.app.founding import opened_log, opened_vault
    from tertulia.imports.importer import Importer
    from tertulia.imports.reading import SeparateSource
    from tertulia.imports.target import ImportTarget
    from tertulia.service.garbage import collect_rarely, return_freed_memory

    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    collect_rarely()
    return_freed_memory()
    began = time.monotonic()
    source = SeparateSource(partial(_opener(kind), export), config.data_path / "import")
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


def _main() -> None:
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
        import msgspec

        from tertulia.service.config import Config

        given = msgspec.json.decode(options.config, type=Config)
        asyncio.run(_imported(given, options.kind, options.export))


if __name__ == "__main__":
    _main()
