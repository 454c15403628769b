"""Small exports in Slack's format."""

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tertulia.imports.records import SourceMessage, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.slack.export import SlackExport
from tertulia.imports.slack.values import microseconds

BEGAN = 1_700_000_000
"""The time of the first message, in UNIX seconds."""
Json = dict[str, Any]


def person(key: str, name: str, **more: Any) -> Json:
    """Return a person in the format of `users.json`."""
    profile = {
        "real_name": name,
        "display_name": name,
        "email": f"{name.split()[0].lower()}@example.com",
        **more.pop("profile", {}),
    }
    return {
        "id": key,
        "team_id": "T1",
        "name": name.lower(),
        "deleted": False,
        "real_name": name,
        "tz": "Europe/Lisbon",
        "profile": profile,
        "is_bot": False,
        **more,
    }


PEOPLE = (
    person("U1ANN", "Ann", is_admin=True, is_owner=True, is_primary_owner=True),
    person("U2BEN", "Ben"),
    person("U3GUS", "Gus", is_restricted=True),
)


def channel(key: str, name: str, members: Sequence[Any] = ("U1ANN", "U2BEN"), **more: Any) -> Json:
    """Return a channel in the format of `channels.json` or `groups.json`."""
    return {
        "id": key,
        "name": name,
        "created": BEGAN - 100,
        "creator": "U1ANN",
        "is_archived": False,
        "is_general": False,
        "members": list(members),
        "topic": {"value": "", "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
        **more,
    }


def message(second: float, text: Any = "", user: Any = "U1ANN", **more: Any) -> Json:
    """Return a message this many seconds after the first one."""
    return {"type": "message", "user": user, "text": text, "ts": ts(second), **more}


def ts(second: float) -> str:
    return f"{BEGAN + second:.6f}"


class SlackFiles:
    """An export's files. Messages are given by directory, and written as files by day."""

    def __init__(self) -> None:
        self.users: list[Any] = list(PEOPLE)
        self.channels: list[Any] = [channel("C1GEN", "general", is_general=True)]
        self.groups: list[Any] = []
        self.dms: list[Any] = []
        self.mpims: list[Any] = []
        self.messages: dict[str, list[Json]] = {}
        self.more: dict[str, Any] = {"integration_logs.json": []}
        """Other files: JSON, or bytes."""

    def say(self, directory: str, *messages: Json) -> None:
        self.messages.setdefault(directory, []).extend(messages)

    def files(self) -> dict[str, bytes]:
        lists = {
            "users.json": self.users,
            "channels.json": self.channels,
            "groups.json": self.groups,
            "dms.json": self.dms,
            "mpims.json": self.mpims,
        }
        found: dict[str, Any] = {**lists, **self.more}
        for directory, messages in self.messages.items():
            days: dict[str, list[Json]] = {}
            for one in messages:
                seconds = microseconds(one.get("ts")) // 1_000_000 or BEGAN
                at = datetime.fromtimestamp(seconds, UTC)
                days.setdefault(f"{at:%Y-%m-%d}", []).append(one)
            found |= {f"{directory}/{day}.json": some for day, some in days.items()}
        return {
            name: one if isinstance(one, bytes) else slack_json(one) for name, one in found.items()
        }

    def zipped(self, path: Path) -> Path:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in self.files().items():
                archive.writestr(name, content)
        return path

    def unpacked(self, path: Path) -> Path:
        for name, content in self.files().items():
            place = path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return path


def slack_json(value: Any) -> bytes:
    """Encode JSON as Slack does: indented, and with escaped slashes."""
    return json.dumps(value, indent=4).replace("/", "\\/").encode()


@contextmanager
def opened(files: SlackFiles, directory: Path, **options: Any) -> Iterator[SlackExport]:
    export = SlackExport(files.unpacked(directory / "export"), directory / "work", **options)
    try:
        yield export
    finally:
        export.close()


class Read:
    """The data that a source yields for an export."""

    def __init__(self, files: SlackFiles, directory: Path, **options: Any) -> None:
        self.report = ImportReport()
        with opened(files, directory, **options) as export:
            self.survey = export.survey()
            self.organization: SourceOrganization = export.organization(self.report)
            self.batches = list(export.messages("", self.report))
        self.messages: list[SourceMessage] = [
            one for batch in self.batches for one in batch.messages
        ]

    @property
    def contents(self) -> list[str]:
        return [one.content for one in self.messages]

    @property
    def skipped(self) -> Mapping[str, int]:
        """Return the number of skipped records, by kind and reason."""
        return {key: one.count for key, one in self.report.skipped.items()}
