"""Record what a release stores, so that later versions are tested with it: `python -m
tests.stored.recording`.

The folder named after the release gets the shapes, a backup, an SQLite file as the server left it,
and what an owner sees. It's never rewritten after the release.
"""

import asyncio
import gzip
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tertulia import __version__
from tertulia.cli import application
from tertulia.service.config import Config
from tertulia.service.credentials import SECRET_FILE
from tertulia.store.store import SQLITE_FILE
from tests.property.histories import History, beginning
from tests.stored import shapes
from tests.support import Organization

RELEASES = Path(__file__).parent
STEPS = 2000
SEED = 7


async def owner_view(org: Organization) -> dict[str, Any]:
    """Return the owner's view of the organization, as far as every release shows the same."""
    ann = org["ann"]
    register = (await ann.post("/register")).ok
    page = (
        await ann.get(
            "/messages", anchor="newest", num_before=1000, num_after=0, apply_markdown=False
        )
    ).ok
    return {
        "people": sorted(person["full_name"] for person in register["realm_users"]),
        "channels": sorted(channel["name"] for channel in register["subscriptions"]),
        "groups": sorted(group["name"] for group in register["realm_user_groups"]),
        "messages": [[m["id"], m["sender_full_name"], m["content"]] for m in page["messages"]],
        "reactions": sum(len(m["reactions"]) for m in page["messages"]),
        "unread": register["unread_msgs"]["count"],
    }


async def _record(config: Config, folder: Path) -> None:
    async with beginning(config, SEED) as history:
        queue = await _happen(history)
        found = await owner_view(history.org)
    ann = history.org["ann"]
    found |= {"api_key": ann.api_key, "recorded_at": history.clock(), **queue}
    (folder / "found.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


async def _happen(history: History) -> dict[str, Any]:
    await history.run(STEPS)
    listener = await history.org["ann"].register()
    await history.run(10)
    return {"queue_id": listener.queue_id, "last_event_id": listener.last_event_id}


def main() -> None:
    release = RELEASES / __version__
    if release.exists():
        raise SystemExit(f"{release} already exists, and is never written again.")
    with (
        tempfile.TemporaryDirectory(prefix="tertulia-") as directory,
        tempfile.TemporaryDirectory(prefix="recorded-") as draft,
    ):
        folder = Path(draft)
        (folder / "shapes.json").write_text(shapes.written())
        config = Config(data_dir=directory, external_url="http://chat.test", rate_limits=False)
        asyncio.run(_record(config, folder))
        target = str(folder / "backup.zip")
        arguments = ["backup", "--data-dir", directory, target]
        result = CliRunner().invoke(application(), arguments, catch_exceptions=False)
        if result.exit_code:
            raise SystemExit(result.output)
        with gzip.open(folder / f"{SQLITE_FILE}.gz", "wb") as packed:
            packed.write((config.data_path / SQLITE_FILE).read_bytes())
        shutil.copy(config.data_path / SECRET_FILE, folder / SECRET_FILE)
        # All or nothing.
        shutil.copytree(folder, release)


if __name__ == "__main__":
    main()
