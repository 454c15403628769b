"""Recorded histories of an organization as clients saw them, to test the web client's event
handling. `python -m tests.web.recording` writes the one that is stored with the client.
"""

import asyncio
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from tertulia.service.config import Config
from tests.property.histories import History, beginning
from tests.reference_client import MODERN

VIEWERS = ("ann", "cleo", "gus")
"""An owner, a person whose role changes, and a guest."""
KEPT = Path(__file__).parents[2] / "web" / "src" / "data" / "recorded.json.gz"
_ASKED = {
    "client_capabilities": {**MODERN, "user_settings_object": True},
    "apply_markdown": True,
    "client_gravatar": True,
    "slim_presence": True,
}


async def recorded(config: Config, seed: int, rounds: int, steps: int) -> list[dict[str, Any]]:
    """For each viewer and round: a snapshot, the events after it, and a later snapshot."""
    async with beginning(config, seed) as history:
        return [one for _ in range(rounds) for one in await _round(history, steps, seed)]


async def _round(history: History, steps: int, seed: int) -> list[dict[str, Any]]:
    queues = {viewer: await history.org[viewer].register(**_ASKED) for viewer in VIEWERS}
    await history.run(steps)
    found = []
    for viewer, queue in queues.items():
        events: list[dict[str, Any]] = []
        while news := await queue.events():
            events += news
        later = await history.org[viewer].register(**_ASKED)
        found.append(
            {
                "name": f"seed {seed}, {len(history.done)} steps, as {viewer}",
                "steps": history.done[-steps:],
                "snapshot": queue.data,
                "events": events,
                "later": later.data,
            }
        )
    return found


def _record() -> None:
    with tempfile.TemporaryDirectory() as directory:
        config = Config(data_dir=directory, external_url="http://chat.test", rate_limits=False)
        told = json.dumps(asyncio.run(recorded(config, 7, 2, 120)), sort_keys=True)
    KEPT.write_bytes(gzip.compress(told.encode(), 9, mtime=0))


if __name__ == "__main__":
    _record()
