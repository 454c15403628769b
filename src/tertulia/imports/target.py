"""The destination of an import: its log, vault, and files."""

from dataclasses import dataclass

from tertulia.log.log import Log
from tertulia.markup.external_media import ExternalMedia
from tertulia.service.credentials import Vault
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import Files


@dataclass(frozen=True)
class ImportTarget:
    """An organization's log, which may be empty, and its files."""

    log: Log
    vault: Vault
    files: Files
    disk: DiskFiles
    site: str = ""
    """The server's URL."""
    media: ExternalMedia | None = None
    """How messages show content from other servers."""
