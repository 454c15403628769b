"""Making an export of an organization, and reading it."""

import asyncio
import io
import json
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

from tertulia.exports.exporting import ExportFormat, ExportResult, export_organization
from tertulia.model.exports import ExportKind
from tertulia.service.config import Config
from tertulia.store.database import LONG
from tertulia.store.store import database_at
from tertulia.store.transfer import Progress


class MadeExport:
    """The content of an export."""

    def __init__(self, file: Path, result: ExportResult) -> None:
        self.result = result
        self.files: dict[str, bytes] = {}
        with tarfile.open(file) as tar:
            for entry in tar:
                content = tar.extractfile(entry)
                assert content is not None
                self.files[entry.name.removeprefix("export/")] = content.read()

    def json(self, name: str) -> Any:
        return json.load(io.BytesIO(self.files[name]))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table, from any of the files."""
        found = []
        for name, content in sorted(self.files.items()):
            if name.endswith(".json") and "/" not in name:
                found += json.loads(content).get(table, [])
        return found

    @property
    def everything(self) -> bytes:
        """Return the content of all files."""
        return b"\n".join(self.files.values())


async def export_of(
    config: Config,
    directory: Path,
    kind: ExportKind,
    form: ExportFormat = ExportFormat.ZULIP,
    progress: Progress = lambda *_: None,
) -> MadeExport:
    """Export the organization of this configuration. `progress` is called in another thread."""
    file = directory / f"{kind.value}.{form}.tar.gz"

    def write() -> ExportResult:
        database = database_at(config.data_path, config.database_url)
        with closing(database.connect(readonly=True, limits=LONG)) as connection:
            return export_organization(
                connection,
                *config.opened_files(),
                file,
                kind,
                form,
                host="chat.test",
                now=1_700_000_000,
                progress=progress,
            )

    return MadeExport(file, await asyncio.to_thread(write))
