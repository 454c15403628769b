"""Reading the messages of a running Zulip that its owner can read."""

import heapq
from collections.abc import Iterator
from typing import Final

from tertulia.imports.zulip.live.previous_state import PreviousState
from tertulia.imports.zulip.live.server import ZulipServer
from tertulia.imports.zulip.rows import Row, flag, number

BATCH: Final = 500


def readable_private(there: PreviousState) -> set[int]:
    """Return the private channels whose whole history the owner can read."""
    subscribed = there.state.get("subscriptions")
    return {
        number(row, "stream_id") or 0
        for row in (subscribed if isinstance(subscribed, list) else ())
        if isinstance(row, dict)
        and flag(row, "invite_only")
        and flag(row, "history_public_to_subscribers", True)
    }


def batches(server: ZulipServer, there: PreviousState, after: int) -> Iterator[list[Row]]:
    """Yield the messages after that one, ascending."""
    narrows: list[list[Row]] = [[{"operator": "streams", "operand": "public"}], []]
    narrows += [
        [{"operator": "stream", "operand": channel_id}]
        for channel_id in sorted(readable_private(there))
    ]
    pages = [_pages(server, after, narrow) for narrow in narrows]
    batch: list[Row] = []
    last = after
    for row in heapq.merge(*pages, key=lambda row: int(row["id"])):
        if row["id"] == last:
            continue
        last = row["id"]
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _pages(server: ZulipServer, after: int, narrow: list[Row]) -> Iterator[Row]:
    while rows := server.messages_after(after, narrow):
        yield from rows
        after = int(rows[-1]["id"])
