"""A dump of Rocket.Chat's database as a source of an import."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tertulia.imports.archive import (
    file_in,
    fingerprint_of,
    opened_directory,
    save_findings,
    stored_findings,
)
from tertulia.imports.records import SourceFile, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.rocketchat.documents import RocketFile, RocketMessage, read_documents
from tertulia.imports.rocketchat.dump import (
    BUCKETS,
    Dump,
    GridFiles,
    dump_directory,
    require_directory_dump,
)
from tertulia.imports.rocketchat.markup import RocketChatMarkup
from tertulia.imports.rocketchat.messages import RocketMessageConverter
from tertulia.imports.rocketchat.organization import RocketOrganizationReader
from tertulia.imports.sorting import (
    Findings,
    MessageSorter,
    SortedMessages,
    UnreadMarks,
    scratch_directory,
)
from tertulia.imports.source import MessageBatch, SourceError, Survey
from tertulia.imports.stages import StageCounter, TellStage, tell_nobody

MESSAGES = "rocketchat_message"
"""The collection of messages."""
UPLOADS = "uploads"
"""The directory next to the dump with files that Rocket.Chat stored outside its database."""


class RocketChatDump:
    """A dump by `mongodump`, or by `mongoexport` collection by collection."""

    kind = "rocketchat"
    keeps_ids = False

    def __init__(
        self,
        path: Path,
        work: Path,
        files: Path | None = None,
        *,
        tell: TellStage = tell_nobody,
    ) -> None:
        """Open a dump. `work` is a directory for extracted and sorted files. `files` is the
        directory of uploads, if they're outside the database. Raises SourceError."""
        require_directory_dump(path)
        self._tell = tell
        directory = opened_directory(path, work, tell)
        if files is not None and not files.is_dir():
            raise SourceError(f"{files} isn't a directory.")
        self._dump = Dump(dump_directory(directory))
        self._files = files or self._dump.directory / UPLOADS
        self._fingerprint = fingerprint_of(path)
        scratch = scratch_directory(work, self._fingerprint)
        self._sorted = scratch / "messages"
        self._found = scratch / "findings"
        self._grid = GridFiles(self._dump, scratch / "pieces")
        self._findings: Findings | None = None

    def survey(self) -> Survey:
        findings = self._read()
        return Survey(
            fingerprint=self._fingerprint,
            name=findings.name,
            origin="Rocket.Chat",
            messages=findings.messages,
        )

    def organization(self, report: ImportReport) -> SourceOrganization:
        findings = self._read()
        report.add(findings.report)
        return RocketOrganizationReader(self._dump, self._grid, report).organization(findings)

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        unread = UnreadMarks(self._read().newest)
        reader = RocketOrganizationReader(self._dump, self._grid, ImportReport())
        reader.note_reading(unread)
        return SortedMessages(self._sorted).batches(after, unread)

    def open(self, place: str) -> BinaryIO:
        kind, _, rest = place.partition("/")
        if kind == "grid":
            bucket, _, file_id = rest.partition("/")
            return self._grid.open(bucket, file_id)
        return file_in(self._files, rest).open("rb")

    def close(self) -> None:
        self._grid.close()

    def _read(self) -> Findings:
        """Read the dump once, and sort the messages into a file."""
        if self._findings is None:
            self._findings = stored_findings(self._found, Findings)
        if self._findings is None:
            findings = Findings()
            read = (MESSAGES, *BUCKETS.values())
            counter = StageCounter(self._tell, "reading", self._dump.size(read))
            self._grid.index(counter.add)
            reader = RocketOrganizationReader(self._dump, self._grid, ImportReport())
            findings.name = reader.name
            markup = RocketChatMarkup(
                reader.people_by_name(),
                {team.name: team.id for team in reader.teams},
                reader.rooms_by_name(),
                reader.emoji_names(),
            )
            sorter = MessageSorter(self._sorted, findings, markup.linked, self._tell)
            messages = RocketMessageConverter(
                reader.places,
                reader.people_by_name(),
                frozenset(str(user.key) for user in reader.users),
                markup,
                findings,
                sorter,
                self._place,
                self._fingerprint,
            )
            try:
                for message in read_documents(
                    self._dump,
                    MESSAGES,
                    RocketMessage,
                    lambda sample: findings.report.skip(
                        "messages", "They aren't in Rocket.Chat's format.", sample
                    ),
                    counter.add,
                ):
                    messages.add(message)
                sorter.finish()
            finally:
                sorter.close()
            save_findings(self._found, findings)
            self._findings = findings
        return self._findings

    def _place(self, file: RocketFile) -> tuple[SourceFile | None, str]:
        """Return an uploaded file, or the reason why it isn't available."""
        name, media_type = file.name or file.id, file.type or ""
        if self._grid.has("uploads", file.id):
            place = f"grid/uploads/{file.id}"
            return SourceFile(place=place, name=name, media_type=media_type), ""
        ending = name.rpartition(".")[2]
        for candidate in (f"{file.id}.{ending}", file.id):
            try:
                file_in(self._files, candidate)
            except FileNotFoundError:
                continue
            return SourceFile(place=f"disk/{candidate}", name=name, media_type=media_type), ""
        store = self._grid.store(file.id).partition(":")[0]
        if store == "FileSystem":
            return None, "They are in Rocket.Chat's file system. Pass that directory with --files."
        if store and store != "GridFS":
            return (
                None,
                "They are in other storage. Download them, and pass the directory with --files.",
            )
        return None, "The file isn't in the dump."
