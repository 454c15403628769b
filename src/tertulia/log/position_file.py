"""The newest entry that a server has seen, in a file of its data directory: by it a server that
starts finds out whether the database went back in time while none ran."""

import logging
import os
from pathlib import Path

import msgspec

from tertulia.store import file_modes
from tertulia.store.history import Position

logger = logging.getLogger("tertulia.log")

FILE = "position"


class PositionFile:
    """The file. It may be some seconds behind the log, and is never ahead of it. Several nodes may
    have the same."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._written: Position | None = None

    def read(self) -> Position | None:
        """The position that was written last; None where there is none that can be read."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Position)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError):
            logger.warning("%s cannot be read, and is written anew", self._path)
            return None

    def write(self, position: Position) -> None:
        """Write the position, unless the file has it, or a later one that another node has seen. A
        failure is logged, and no reason to stop."""
        if position == self._written:
            return
        there = self.read()
        if there and there.history == position.history and there.seq > position.seq:
            return
        partial = self._path.with_name(f"{FILE}.{os.getpid()}.partial")
        try:
            file_modes.touch(partial)
            partial.write_bytes(msgspec.json.encode(position))
            partial.replace(self._path)
        except OSError as error:
            logger.warning("%s cannot be written: %s", self._path, error.strerror)
        else:
            self._written = position
