"""Running commands of `tertulia` in separate processes, for work that needs much processor time."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tertulia.service.config import Config
from tertulia.store.backups import delete_stale_directories

_LAST_WORDS: Final = 2000
"""The number of characters of a failed process's output that are kept."""


class ProgramFailed(Exception):
    """The command failed. `str(error)` is the reason."""

    def __init__(self, said: str, code: int) -> None:
        self.code = code
        """The exit code; negative for a signal."""
        super().__init__(said)


async def run_command(config: Config, *words: str) -> None:
    """Run `tertulia` with these words and settings. If it's canceled, the process is killed. Its
    standard input ends when this process does.

    Raise ProgramFailed.
    """
    reading, writing = os.pipe()
    try:
        await _run(reading, config, words)
    finally:
        os.close(reading)
        os.close(writing)


async def _run(stdin: int, config: Config, words: Sequence[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tertulia", *words),
        env=environment_of(config, os.environ),
        stdin=stdin,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):  # It has already ended.
            os.killpg(process.pid, signal.SIGKILL)  # Kill it together with its child processes.
        await process.communicate()
        await asyncio.to_thread(delete_stale_directories, config.data_path)
        raise
    if process.returncode:
        # If it was killed, it left temporary files behind.
        await asyncio.to_thread(delete_stale_directories, config.data_path)
        words_said = said.decode(errors="replace")[-_LAST_WORDS:].strip()
        raise ProgramFailed(words_said, process.returncode)


def environment_of(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that gives a command exactly these settings."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("TERTULIA_") and name != "CREDENTIALS_DIRECTORY"
    }
    for name in Config.__struct_fields__:
        value = getattr(config, name)
        kept[f"TERTULIA_{name.upper()}"] = _text(value)
    return kept


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
