"""The files of messages: which are imported, and where they are."""

import hashlib
import hmac
import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from tertulia.domain.messages import attachments
from tertulia.imports.records import SourceAttachment, SourceFile
from tertulia.imports.report import ImportReport
from tertulia.imports.slack import mrkdwn
from tertulia.imports.slack.values import Record, record, records, text
from tertulia.model.attachments import ADDRESS

MAX_FILES: Final = 100
"""The most files of one message. Slack allows 10 to 20."""
_TOKEN: Final = re.compile(r"(?:^|&)t=xox[a-z]-")
_UPLOADS: Final = "__uploads"


class FilesOfMessage(NamedTuple):
    """The files of one message."""

    lines: list[str]
    """The lines that link the files, in Markdown."""
    attachments: tuple[SourceAttachment, ...]


_NONE: Final = FilesOfMessage([], ())


class SharedFiles:
    """Finds the files of messages."""

    def __init__(self, root: Path, seed: bytes, *, has_token: bool) -> None:
        """`seed` makes the paths of files reproducible and unguessable."""
        self._root = root
        self._seed = seed
        self._has_token = has_token
        self._local = _local_files(root)

    def of(self, message: Record, sender: str, at: int, report: ImportReport) -> FilesOfMessage:
        """Return the message's files. Files that can't be imported become links, or are only
        reported."""
        if "files" not in message and "file" not in message:
            return _NONE
        lines: list[str] = []
        attachments: list[SourceAttachment] = []
        given = [*records(message, "files")] or [record(message, "file")]
        for fields in [file for file in given if file][:MAX_FILES]:
            line, attachment = self._file(fields, sender, at, report)
            if line:
                lines.append(line)
            if attachment is not None:
                attachments.append(attachment)
        return FilesOfMessage(lines, tuple(attachments))

    def _file(
        self, file: Record, sender: str, at: int, report: ImportReport
    ) -> tuple[str, SourceAttachment | None]:
        key, mode = text(file, "id")[:64], text(file, "mode")
        name = text(file, "name", "title") or key or "file"
        shown = mrkdwn.escaped(text(file, "title", "name") or name)
        url = text(file, "url_private_download", "url_private")
        page = text(file, "permalink") or _without_query(url)
        local = self._local_path(key)
        if not local:
            if mode == "tombstone" or text(file, "file_access") == "file_not_found":
                report.skip("files", "They were deleted in Slack.", name)
                return "", None
            if mode == "hidden_by_limit":
                report.skip("files", "Slack hid them, because the plan's limit was reached.", name)
                return "", None
            if mode == "external" or file.get("is_external") is True:
                report.change(
                    "files", "They are stored in another service, so they're linked.", name
                )
                return mrkdwn.linked(shown, text(file, "url_private") or page), None
            if not is_slack(url):
                report.skip("files", "The export doesn't have links to them.", name)
                return mrkdwn.linked(shown, page) if page else shown, None
            if not (self._has_token or _TOKEN.search(urlsplit(url).query)):
                report.skip(
                    "files", "Downloading them requires a token (--token), so they're linked.", name
                )
                return mrkdwn.linked(shown, page), None
        size = file.get("size")
        path = self._path(key or url, name)
        return (
            f"[{mrkdwn.label(shown)}]({ADDRESS}{path})",
            SourceAttachment(
                key=key or url,
                owner=sender,
                path=path,
                file=SourceFile(
                    place=local or url,
                    name=name,
                    media_type=text(file, "mimetype"),
                    size=size if isinstance(size, int) and size > 0 else 0,
                ),
                created_at=at,
                otherwise=mrkdwn.url_of(page),
            ),
        )

    def _path(self, key: str, name: str) -> str:
        digest = hmac.new(self._seed, key.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
        return f"1/{digest[:2]}/{digest[2:34]}/{attachments.name_in_path(name)}"

    def _local_path(self, key: str) -> str:
        """Return the path of a file in the export, if a tool has downloaded it."""
        if not key or not key.isalnum():
            return ""
        directory = self._root / _UPLOADS / key
        if directory.is_dir() and not directory.is_symlink():
            for path in sorted(directory.iterdir()):
                if path.is_file() and not path.is_symlink():
                    return path.relative_to(self._root).as_posix()
        return self._local.get(key, "")


def is_slack(url: str) -> bool:
    """Whether the URL is that of a file at Slack, which may get the token."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in SCHEMES and (host == "slack.com" or host.endswith(".slack.com"))


SCHEMES: frozenset[str] = frozenset({"https"})
"""The token is sent only over these."""


def _without_query(url: str) -> str:
    try:
        return urlunsplit((*urlsplit(url)[:3], "", ""))
    except ValueError:
        return ""


def _local_files(root: Path) -> dict[str, str]:
    """Return the files in `attachments` directories by ID. They're named `ID-NAME`."""
    local_files: dict[str, str] = {}
    for directory in (root / "attachments", *root.glob("*/attachments")):
        if directory.is_dir() and not directory.is_symlink():
            for path in directory.iterdir():
                key, sign, _ = path.name.partition("-")
                if sign and path.is_file() and not path.is_symlink():
                    local_files.setdefault(key, path.relative_to(root).as_posix())
    return local_files
