"""The journal of bots that talk with other services: what came in and went out lately."""

from collections.abc import Iterable
from typing import Final

import msgspec

from tertulia.model.webhooks import Delivered
from tertulia.store.codec import encode
from tertulia.store.database import Connection

KEPT: Final = 50
"""Lines of one bot's journal."""
_decoder: Final = msgspec.json.Decoder(Delivered)


def write_journal(connection: Connection, bot_id: int, lines: Iterable[Delivered]) -> None:
    """Add the lines, in order; the oldest give way."""
    connection.run_many(
        "INSERT INTO webhook_journal (bot_id, doc) VALUES (?, ?)",
        [(bot_id, encode(line)) for line in lines],
    )
    connection.run(
        "DELETE FROM webhook_journal WHERE bot_id = ? AND id <= COALESCE((SELECT id FROM"
        f" webhook_journal WHERE bot_id = ? ORDER BY id DESC LIMIT 1 OFFSET {KEPT}), 0)",
        (bot_id, bot_id),
    )


def journal(connection: Connection, bot_id: int) -> list[Delivered]:
    """The bot's journal, the newest line first."""
    rows = connection.query(
        "SELECT doc FROM webhook_journal WHERE bot_id = ? ORDER BY id DESC", (bot_id,)
    )
    return [_decoder.decode(str(doc)) for (doc,) in rows]
