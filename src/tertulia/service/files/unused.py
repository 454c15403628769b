"""Pictures that nobody uses any more."""

import logging

from tertulia.model.errors import FilesUnavailable
from tertulia.store.files import Files

logger = logging.getLogger("tertulia.files")


async def delete_unused(files: Files, *paths: str) -> None:
    """Delete files after the change that made them unused: where that fails, the change was made
    all the same, and the log says what stays."""
    for path in paths:
        try:
            await files.delete(path)
        except (FilesUnavailable, OSError) as error:
            logger.warning(
                "a file that is not used any more could not be deleted",
                extra={"fields": {"path": path, "reason": str(error)}},
            )
