"""Opening the organization that an import writes to."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tertulia.app.founding import opened_log, opened_vault, require_fitting
from tertulia.imports.target import ImportTarget
from tertulia.service.config import Config
from tertulia.service.links import Links, external_media


@asynccontextmanager
async def opened_target(
    config: Config, report: Callable[[str], None]
) -> AsyncIterator[ImportTarget]:
    """Open the organization, or the place for a new one. Raise VaultError if the secret doesn't
    match."""
    vault = opened_vault(config, create=True)
    files, disk = config.opened_files()
    try:
        async with opened_log(config, report) as log:
            if not log.state.is_empty:
                await require_fitting(log, vault)
            media = external_media(config, Links(vault))
            yield ImportTarget(log, vault, files, disk, config.external_url, media)
    finally:
        await files.close()
        vault.close()
