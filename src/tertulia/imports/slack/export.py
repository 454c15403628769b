"""An export of Slack as a source."""

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from msgspec.structs import replace

from tertulia.imports.archive import file_in, fingerprint_of, opened_directory
from tertulia.imports.downloads import Downloads
from tertulia.imports.records import SourceMessage, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.slack import conversations as listing
from tertulia.imports.slack.files import SharedFiles, is_slack
from tertulia.imports.slack.index import SlackIndex
from tertulia.imports.slack.messages import SlackMessages, first_line
from tertulia.imports.slack.organization import SlackRecords
from tertulia.imports.slack.values import ANYTHING, decoded
from tertulia.imports.source import BATCH, MessageBatch, Survey
from tertulia.imports.stages import TellStage, tell_nobody
from tertulia.outbound.http_client import Web
from tertulia.outbound.http_responses import NotFetched, StreamedResponse

BATCH_SIZE: Final = 50
"""Slack messages in a batch. Long ones become several messages."""
_NAME: Final = re.compile(r"(?P<name>.+?)[ _-]Slack[ _-]export\b", re.IGNORECASE)
_RECENT: Final = 3000
"""The number of recent files that are remembered. A file may be in several messages, but is
imported once."""
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})


class SlackExport:
    """Implements `Source` for an export of Slack.

    Message keys are numbers in chronological order across all conversations. `token` is one that
    may read files (`files:read`). The organization's name comes from the archive's name, since the
    export doesn't have it.
    """

    kind = "slack"
    keeps_ids = False

    def __init__(
        self,
        path: Path,
        work: Path,
        *,
        token: str = "",
        name: str = "",
        new_web: Callable[[], Web] | None = None,
        tell: TellStage = tell_nobody,
    ) -> None:
        """Raises SourceError."""
        self._tell = tell
        self._path = path
        self._token = token
        self._name = name
        self._root = opened_directory(path, work, tell)
        self._fingerprint = fingerprint_of(path)
        self._conversations = listing.conversations(self._root)
        self._known = SlackRecords(self._root, self._conversations)
        self._index = SlackIndex(work / f"slack-{self._fingerprint}.index", self._root)
        self._files = SharedFiles(
            self._root,
            hashlib.sha256(f"{self._fingerprint} files".encode()).digest(),
            has_token=bool(token),
        )
        self._downloads = Downloads(
            work / f"slack-{self._fingerprint}.files",
            lambda url: token if is_slack(url) else "",
            _check,
            new_web,
        )

    def survey(self) -> Survey:
        if not self._index.is_complete:
            self._index.build(self._conversations, self._known.known_senders, self._tell)
            self._index.name_threads(self._first_line, self._tell)
        for sender in self._index.senders():
            self._known.senders[sender.key] = sender
        match = _NAME.match(self._path.stem)
        return Survey(
            fingerprint=self._fingerprint,
            name=self._name or (match["name"].replace("_", " ") if match else "Slack"),
            origin="Slack",
            messages=self._index.messages,
        )

    def _first_line(self, content: bytes) -> str:
        try:
            message = decoded(content, ANYTHING)
        except ValueError:
            message = None
        return first_line(message, self._known)

    def organization(self, report: ImportReport) -> SourceOrganization:
        survey = self.survey()
        self._index.report(report)
        listing.report_directories(self._root, self._conversations, report)
        organization = self._known.organization(survey.name, self._index.moves(), report)
        pictures = [user.avatar for user in organization.users if user.avatar is not None]
        pictures += [emoji.file for emoji in organization.emoji]
        self._downloads.plan(picture.place for picture in pictures if _is_url(picture.place))
        return organization

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        noticed = ImportReport()
        converter = SlackMessages(self._known, self._index, self._files, noticed)
        recent: deque[str] = deque(maxlen=_RECENT)
        begin, done = _parsed(after)
        for located in self._index.batches(begin, BATCH_SIZE):
            waiting: list[SourceMessage] = []
            for place, content in located:
                if place.key <= done:
                    continue
                made = list(converter.messages(place, content))
                if waiting and len(waiting) + len(made) > BATCH:
                    yield MessageBatch(tuple(waiting), f"{begin}:{place.key - 1}")
                    waiting = []
                report.add(noticed.taken())
                waiting += [self._with_files(message, recent) for message in made]
            begin = located[-1][0].key
            if waiting:
                yield MessageBatch(tuple(waiting), str(begin))

    def _with_files(self, message: SourceMessage, recent: "deque[str]") -> SourceMessage:
        """Plan to fetch a message's files, except those of a recent message."""
        if not message.attachments:
            return message
        kept = tuple(
            attachment for attachment in message.attachments if attachment.path not in recent
        )
        recent.extend(attachment.path for attachment in kept)
        self._downloads.plan(
            attachment.file.place for attachment in kept if _is_url(attachment.file.place)
        )
        return replace(message, attachments=kept)

    def open(self, place: str) -> BinaryIO:
        if not _is_url(place):
            return file_in(self._root, place).open("rb")
        return self._downloads.open(place)

    def close(self) -> None:
        self._downloads.close()
        self._index.close()


def _parsed(position: str) -> tuple[int, int]:
    """Return the key that a list of the index begins after, and the key of the last message before
    the position. If they differ, long messages made the list too large for one batch. An import
    that continues there reads the same lists, so that the later positions stay the same."""
    begin, _, done = position.partition(":")
    return int(begin or 0), int(done or begin or 0)


def _is_url(place: str) -> bool:
    return "://" in place


def _check(url: str, response: StreamedResponse) -> None:
    """Raise NotFetched for Slack's login page, which it sends if the token is missing or isn't
    valid."""
    is_page = url.partition("?")[0].lower().endswith((".html", ".htm", ".xhtml"))
    if is_slack(url) and response.media_type in _HTML and not is_page:
        raise NotFetched(
            "Slack asked to sign in. The token is missing, has expired, or may not read files"
        )
