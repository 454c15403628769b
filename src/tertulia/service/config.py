"""The server's configuration: its settings, and values derived from them."""

import hashlib
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from tertulia.service.server_settings import PER_NODE, SECRET, ServerSettings, SettingMark
from tertulia.service.sign_in_methods import SignInMethod
from tertulia.store.bucket_files import S3Keys
from tertulia.store.disk_files import DiskFiles
from tertulia.store.file_moves import files_at, opened_files
from tertulia.store.files import Files
from tertulia.store.s3_addresses import s3_address

MASK = "********"
"""Shown instead of a secret."""
S3 = "s3://"
"""Scheme of a bucket's URL."""
AUTO = "auto"
"""One worker for each core."""


class Config(ServerSettings, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A server's settings, and values derived from them."""

    def digests_of_shared(self) -> Mapping[str, str]:
        """Return digests of the settings that must be the same on all nodes."""
        return {
            name: hashlib.sha256(repr(getattr(self, name)).encode()).hexdigest()[:12]
            for name in self.__struct_fields__
            if name not in marked(PER_NODE, SECRET)
        }

    @property
    def upload_quota(self) -> int | None:
        """Maximum size of all uploaded files in bytes; None for no limit."""
        return self.upload_quota_mib * 1024 * 1024 or None

    @property
    def address_host(self) -> str:
        """The host of placeholder email addresses, such as `user7@…`."""
        return urlsplit(self.external_url).hostname or "tertulia.invalid"

    def sign_in_method(self, name: str) -> SignInMethod | None:
        """Return the sign-in method with this name."""
        return next((method for method in self.sign_in if method.name == name), None)

    @property
    def has_directories(self) -> bool:
        """Whether people can sign in with a directory's password."""
        return any(method.TAKES_PASSWORDS for method in self.sign_in)

    @property
    def data_path(self) -> Path:
        return Path(self.data_dir)

    @property
    def files_path(self) -> Path:
        """Directory of uploaded files and pictures."""
        return self.data_path / "files"

    @property
    def s3_keys(self) -> S3Keys:
        """Credentials for the bucket."""
        return S3Keys(key_id=self.s3_access_key_id, secret=self.s3_secret_access_key)

    def opened_files(self) -> tuple[Files, DiskFiles]:
        """Return the file storage, and the disk for uploads in progress."""
        return opened_files(self.files_path, self.files_url, self.files_also_at, self.s3_keys)

    def opened_backups(self) -> Files:
        """Return the storage of backups."""
        if self.backup_to.startswith(S3):
            files = DiskFiles(self.data_path)
            return files_at(self.backup_to, files, self.s3_keys)
        return DiskFiles(Path(self.backup_to))

    @property
    def file_origins(self) -> list[str]:
        """Origins of the buckets that browsers are redirected to."""
        if self.file_downloads != "redirect":
            return []
        places = (s3_address(self.files_url), s3_address(self.files_also_at))
        return [place.origin for place in places if place is not None]

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the server over HTTPS."""
        return self.external_url.startswith("https:")

    @property
    def session_seconds(self) -> int | None:
        """Longest duration of a session; None for no limit."""
        return self.session_days * 86400 or None

    @property
    def mail_site(self) -> str:
        """The base URL of links in emails: the configured URL, or the address that the server
        listens on. It's never the URL of a request, which its sender chooses."""
        host = self.host.strip("[]")
        if host in {"", "0.0.0.0", "::"}:  # noqa: S104 (nothing is bound here)
            host = "localhost"
        host = f"[{host}]" if ":" in host else host
        if self.unix_socket:
            return self.external_url or "http://localhost"
        scheme = "https" if self.tls_cert else "http"
        return self.external_url or f"{scheme}://{host}:{self.port}"

    @property
    def sends_notification_emails(self) -> bool:
        """Whether missed-message emails are sent: only with a mail server or in development, since
        they would otherwise accumulate in the directory."""
        return bool(self.smtp_host) or self.dev

    @property
    def sends_pushes(self) -> bool:
        """Whether push notifications are sent, to browsers or phones."""
        return self.web_push or bool(self.push_bouncer_url)

    @property
    def worker(self) -> int | None:
        """Number of this worker, from 0; None without workers."""
        return None

    @property
    def bus(self) -> Path | None:
        """The directory of the sockets that connect the server's workers; None without workers."""
        return None

    @property
    def database_location(self) -> str:
        """The database's location, without secrets."""
        return "the database" if self.database_url else self.data_dir


class WorkerConfig(Config, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Settings of a worker, including those that the supervisor sets."""

    worker: Annotated[int, PER_NODE]
    bus: Annotated[Path, PER_NODE]


class DeclaredServerSetting(Struct, frozen=True):
    """A setting's declaration, from its annotation."""

    type: typing.Any
    limits: Meta
    marks: frozenset[SettingMark]
    about: str


@cache
def declared_server_settings(record: type[Struct]) -> Mapping[str, DeclaredServerSetting]:
    """Return the settings of a record, by name."""
    declared = {}
    hints = typing.get_type_hints(record, include_extras=True)
    for name in record.__struct_fields__:
        bare, *marks = typing.get_args(hints[name])
        declared[name] = DeclaredServerSetting(
            type=bare,
            limits=next((mark for mark in marks if isinstance(mark, Meta)), Meta()),
            marks=frozenset(mark for mark in marks if isinstance(mark, SettingMark)),
            about=next((mark for mark in marks if isinstance(mark, str)), ""),
        )
    return declared


@cache
def marked(*marks: SettingMark) -> frozenset[str]:
    """Return the settings with one of these marks."""
    return frozenset(
        name
        for name, setting in declared_server_settings(WorkerConfig).items()
        if not setting.marks.isdisjoint(marks)
    )


SECRETS: Final = marked(SECRET)
"""Settings that are never shown."""


def without_password(url: str) -> str:
    """Return the URL with its password hidden, before the host or in the query. Other text is
    returned unchanged."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return MASK if "@" in url else url
    if not parts.scheme or not (parts.netloc or parts.query):
        return url
    if password:
        user, _, host = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user.partition(':')[0]}:{MASK}@{host}")
    query = "&".join(
        f"password={MASK}" if text.startswith("password=") else text
        for text in parts.query.split("&")
    )
    return parts._replace(query=query).geturl()
