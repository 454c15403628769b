"""Zulip's own exports: a directory, or the archive that its administrators download."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from tertulia.imports.archive import (
    file_in,
    fingerprint_of,
    opened_directory,
    save_findings,
    stored_findings,
)
from tertulia.imports.records import SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, SourceError, Survey
from tertulia.imports.stages import StageCounter, TellStage, tell_nobody
from tertulia.imports.zulip.messages import MessageReader
from tertulia.imports.zulip.organization import ZulipOrganization
from tertulia.imports.zulip.realm import REALM_FILES, ExportedRealm
from tertulia.imports.zulip.rows import text
from tertulia.imports.zulip.scratch import Scratch
from tertulia.imports.zulip.subscriptions import Conversations
from tertulia.imports.zulip.tables import COUNTED, is_closed, message_files, tables

_SMALL: Final = 16 * 1024 * 1024
"""The largest size in bytes of a file that is read as a whole."""


class ZulipExport:
    """A source: an export of a Zulip server from 2023 (feature level 185) or later."""

    kind = "zulip"
    keeps_ids = True

    def __init__(self, path: Path, work: Path, *, tell: TellStage = tell_nobody) -> None:
        """Extract an archive into `work`, where a temporary file is created too. Raises
        SourceError."""
        self._tell = tell
        self._fingerprint = fingerprint_of(path) if path.exists() else ""
        self._directory = opened_directory(path, work, tell)
        self._scratch_path = work / f"{self._fingerprint}.sqlite"
        self._survey_path = work / f"{self._fingerprint}.survey"
        self._loaded: tuple[ExportedRealm, Conversations] | None = None

    def survey(self) -> Survey:
        files = message_files(self._directory)
        missing = sorted(
            name
            for name in self._small("stats.json").keys() - {path.stem for path in files}
            if name.startswith("messages-")
        )
        if missing:
            raise SourceError(
                f"{missing[0]}.json is missing, so the export is incomplete. Export or download it"
                " again."
            )
        for path in files:
            if not is_closed(path):
                raise SourceError(
                    f"{path.name} ends too early, so the export is incomplete. Export or download"
                    " it again."
                )
        known = stored_findings(self._survey_path, Survey)
        if known is not None:  # An interrupted import continues.
            return known
        counter = self._counter(files)
        realm, _ = self._realm(counter)
        # Read all of it first, so that nothing is written if a file is damaged.
        messages = sum(
            len(rows)
            for path in files
            for table, rows in tables(path, COUNTED, counter.add)
            if table == "zerver_message"
        )
        number, size = realm.scratch.files()
        version = text(self._small("migration_status.json"), "zulip_version")
        survey = Survey(
            fingerprint=self._fingerprint,
            name=text(realm.rows("zerver_realm")[0], "name"),
            origin=version if version.startswith("Tertulia") else f"Zulip {version}".strip(),
            messages=messages,
            files=number,
            file_bytes=size,
        )
        save_findings(self._survey_path, survey)
        return survey

    def organization(self, report: ImportReport) -> SourceOrganization:
        realm, conversations = self._realm()
        report.add(realm.report)
        realm.report = report
        return ZulipOrganization(realm, self._directory, conversations, self._tell).read()

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        realm, conversations = self._realm()
        realm.report = report
        return MessageReader(realm, self._directory, conversations).batches(after)

    def open(self, place: str) -> BinaryIO:
        return file_in(self._directory, place).open("rb")

    def close(self) -> None:
        if self._loaded is not None:
            self._loaded[0].scratch.close()
            self._loaded = None

    def _counter(self, messages: Sequence[Path] = ()) -> StageCounter:
        """Return a counter for reading everything except messages, and these files with
        messages."""
        files = (*(self._directory / name for name in REALM_FILES), *messages)
        whole = sum(path.stat().st_size for path in files if path.exists())
        return StageCounter(self._tell, "reading", whole)

    def _realm(self, counter: StageCounter | None = None) -> tuple[ExportedRealm, Conversations]:
        if self._loaded is None:
            count = (counter or self._counter()).add
            scratch = Scratch(self._scratch_path)
            try:
                realm = ExportedRealm(self._directory, scratch, ImportReport(), count)
            except BaseException:
                scratch.close()
                raise
            self._loaded = realm, Conversations(realm)
        return self._loaded

    def _small(self, name: str) -> dict[str, Any]:
        """Return the object in a file; empty if the export doesn't have the file."""
        path = self._directory / name
        if not path.is_file() or path.stat().st_size > _SMALL:
            return {}
        try:
            decoded = msgspec.json.decode(path.read_bytes())
        except (msgspec.DecodeError, RecursionError):
            return {}
        return decoded if isinstance(decoded, dict) else {}
