"""Mattermost's bulk export as a source of an import."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from tertulia.imports.archive import (
    file_in,
    fingerprint_of,
    opened_directory,
    save_findings,
    stored_findings,
)
from tertulia.imports.mattermost.lines import BulkInfo, BulkLine
from tertulia.imports.mattermost.organization import OrganizationReader
from tertulia.imports.mattermost.posts import PostConverter
from tertulia.imports.records import SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.sorting import (
    Findings,
    MessageSorter,
    SortedMessages,
    UnreadMarks,
    scratch_directory,
)
from tertulia.imports.source import MessageBatch, SourceError, Survey
from tertulia.imports.stages import StageCounter, TellStage, tell_nobody

MAX_LINE: Final = 128 * 1024 * 1024
"""Longest line, in bytes. A line has a post with all its replies."""
_LINE_FILES: Final = (".jsonl", ".json")
_VERSION_BYTES: Final = 1000
"""The bytes of a file that are searched for its version."""
_ORGANIZATION: Final = frozenset({"team", "channel", "user", "bot", "emoji", "direct_channel"})


class MattermostExport:
    """The archive that `mmctl export create` makes, its extracted directory, or only its JSONL
    file."""

    kind = "mattermost"
    keeps_ids = False

    def __init__(
        self, path: Path, work: Path, team: str = "", *, tell: TellStage = tell_nobody
    ) -> None:
        """Open an export. `work` is a directory for extracted and sorted files. `team` is the name
        of the only team to import. Raises SourceError."""
        is_lines = path.suffix in _LINE_FILES and path.is_file()
        self._tell = tell
        self._directory = path.parent if is_lines else opened_directory(path, work, tell)
        self._lines = path if is_lines else _lines_in(self._directory)
        self._team = team
        self._fingerprint = fingerprint_of(path) + (f"-{team.encode().hex()[:64]}" if team else "")
        scratch = scratch_directory(work, self._fingerprint)
        self._sorted = scratch / "messages"
        self._found = scratch / "findings"
        self._rest = scratch / "organization"
        self._findings: Findings | None = None

    def survey(self) -> Survey:
        findings = self._read()
        reader = self._organization_reader()
        version = findings.origin.partition(" ")[0]
        return Survey(
            fingerprint=self._fingerprint,
            name=reader.name,
            origin=f"Mattermost {version}".rstrip()[:60],
            messages=findings.messages,
        )

    def organization(self, report: ImportReport) -> SourceOrganization:
        findings = self._read()
        report.add(findings.report)
        return self._organization_reader().organization(findings, report, self._place)

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        unread = UnreadMarks(self._read().newest)
        self._organization_reader().note_reading(unread)
        return SortedMessages(self._sorted).batches(after, unread)

    def open(self, place: str) -> BinaryIO:
        return file_in(self._directory, place).open("rb")

    def close(self) -> None:
        pass

    def _place(self, path: str) -> str | None:
        """Return the path of a file that lines refer to, or None if it doesn't exist."""
        for place in (f"data/{path}", path):
            try:
                file_in(self._directory, place)
            except FileNotFoundError:
                continue
            return place
        return None

    def _organization_reader(self) -> OrganizationReader:
        reader = OrganizationReader(self._team)
        with self._rest.open("rb") as file:
            for line in file:
                reader.add(msgspec.json.decode(line, type=BulkLine))
        return reader

    def _read(self) -> Findings:
        """Read the whole export once: sort the posts into a file, and copy the other lines."""
        if self._findings is None:
            self._findings = stored_findings(self._found, Findings)
        if self._findings is None:
            findings = Findings()
            sorter = MessageSorter(self._sorted, findings, tell=self._tell)
            try:
                with self._rest.open("wb") as rest:
                    self._read_lines(findings, sorter, rest)
                sorter.finish()
            finally:
                sorter.close()
            save_findings(self._found, findings)
            self._findings = findings
        return self._findings

    def _read_lines(self, findings: Findings, sorter: MessageSorter, rest: BinaryIO) -> None:
        report = findings.report
        reader = OrganizationReader(self._team)
        posts: PostConverter | None = None
        counter = StageCounter(self._tell, "reading", self._lines.stat().st_size)
        for number, (line, encoded) in enumerate(_parsed(self._lines, report)):
            counter.add(len(encoded))
            if number == 0:
                _require_version(line, self._lines)
                findings.origin = (line.info or BulkInfo()).version or ""
            elif line.type in _ORGANIZATION:
                if posts is not None and line.type in {"team", "channel", "user", "bot"}:
                    report.skip("lines", "A team, channel, or person comes after the first post.")
                    continue
                reader.add(line)
                rest.write(encoded.rstrip(b"\n") + b"\n")
            elif line.type in {"post", "direct_post"}:
                posts = posts or PostConverter(
                    reader.people(), findings, sorter, self._place, self._fingerprint
                )
                if line.post is not None:
                    posts.add_channel_post(line.post, number)
                elif line.direct_post is not None:
                    posts.add_direct_post(line.direct_post)
                else:
                    report.skip("lines", "The line has no content.")
            elif line.type in {"scheme", "role"}:
                report.skip("permission schemes and roles", "Set permissions after the import.")
            elif line.type != "version":
                report.skip("lines", "The line's type is unknown.", line.type)
        reader.require_team()


def _lines_in(directory: Path) -> Path:
    paths = sorted(path for path in directory.iterdir() if path.suffix in _LINE_FILES)
    if len(paths) == 1:
        return paths[0]
    # Exports of other servers have several JSON files.
    paths = [path for path in paths if path.is_file() and _begins_with_version(path)]
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise SourceError(
            "The export has no file with lines that begins with a version, so it isn't a bulk"
            " export of Mattermost. Create one with `mmctl export create`."
        )
    names = ", ".join(path.name for path in paths[:5])
    raise SourceError(f"The export has several files with lines ({names}). Name one of them.")


def _parsed(place: Path, report: ImportReport) -> Iterator[tuple[BulkLine, bytes]]:
    """Yield the valid lines. Raises SourceError if the file ends in the middle of a line."""
    decoder = msgspec.json.Decoder(BulkLine)
    with place.open("rb") as file:
        while encoded := file.readline(MAX_LINE + 1):
            if len(encoded) > MAX_LINE:
                raise SourceError(f"{place.name} has a line of more than {MAX_LINE >> 20} MiB.")
            if not encoded.strip():
                continue
            try:
                yield decoder.decode(encoded), encoded
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if not encoded.endswith(b"\n") and not isinstance(error, msgspec.ValidationError):
                    raise SourceError(
                        f"{place.name} ends in the middle of a line. It's incomplete: download it"
                        " again."
                    ) from error
                report.skip("lines", "The line isn't in Mattermost's format.", _excerpt(encoded))


def _excerpt(encoded: bytes) -> str:
    return encoded[:120].decode("utf-8", "replace")


def _begins_with_version(path: Path) -> bool:
    with path.open("rb") as file:
        return b'"version"' in file.read(_VERSION_BYTES)


def _require_version(line: BulkLine, place: Path) -> None:
    if line.type != "version":
        raise SourceError(
            f"{place.name} doesn't begin with a version, so it isn't a Mattermost bulk export."
        )
    if line.version != 1:
        raise SourceError(f"{place.name} has the version {line.version}. Only 1 is known.")
