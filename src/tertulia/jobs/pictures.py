"""Pictures that nobody uses any more, and that stayed nevertheless: where the files did not answer
when they were to be deleted, or the server died just then."""

import asyncio
import logging
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.service.files import avatars, custom_emoji, realm_pictures
from tertulia.service.node import Node

logger = logging.getLogger("tertulia.files")

PERIOD_SECONDS: Final = 6 * 3600.0
YOUNG_SECONDS: Final = 3600.0
"""A picture that was written so recently may not be in the log yet."""
_AT_ONCE: Final = 2000
"""People that are looked at before others have their turn."""


class PictureCleanup:
    """Deletes them. Several nodes may do it at once."""

    def __init__(self, node: Node) -> None:
        self._log = node.log
        self._files = node.files

    def job(self) -> Job:
        """Cleaning up every few hours."""

        async def look() -> float:
            await self.once()
            return PERIOD_SECONDS

        return Job("unused pictures", look)

    async def once(self) -> None:
        """Do it now. Raises as `Files` does, and as `Log.catch_up`."""
        before = self._log.clock() - YOUNG_SECONDS
        old = [
            stored.path
            for directory in (avatars.DIRECTORY, custom_emoji.DIRECTORY, realm_pictures.DIRECTORY)
            async for stored in self._files.below(directory)
            if stored.modified < before
        ]
        if not old:
            return
        await self._log.catch_up()
        used = await self._used()
        unused = [path for path in old if path not in used]
        for path in unused:
            await self._files.delete(path)
        if unused:
            logger.info("unused pictures were deleted", extra={"fields": {"count": len(unused)}})

    async def _used(self) -> set[str]:
        """The paths of all pictures that somebody or something has."""
        state = self._log.state
        used = {picture.file for picture in realm_pictures.of(state.realm)}
        for emoji in state.custom_emoji:
            used.update(map(custom_emoji.place, filter(None, (emoji.file, emoji.still))))
        for number, user in enumerate(list(state.users)):
            used.update(avatars.places(user.avatar_file))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return used
