"""Key-value storage for bots."""

from functools import partial
from typing import Annotated, Final

from msgspec import Meta

from tertulia.model.errors import OnlyForBots, Refused
from tertulia.model.numbers import counted
from tertulia.store import bots
from tertulia.store.bots import StorageChanged
from tertulia.store.database import Connection
from tertulia.wire.http.parameters import Doc
from tertulia.wire.http.routing import ApiResponse, Call

MAX_CHARACTERS: Final = 10_000_000
"""The most characters of one bot's keys and values."""
MAX_VALUES: Final = 100_000
"""The most values of one bot."""

_Keys = Annotated[
    Annotated[list[str], Meta(max_length=MAX_VALUES)] | None, Doc("All keys by default.")
]


class Storage(ApiResponse, kw_only=True):
    """The stored values by key."""

    storage: dict[str, str]


async def get_storage(call: Call, keys: _Keys = None) -> Storage:
    """Get the calling bot's stored values."""
    _require_bot(call)
    values = await call.node.store.read(bots.stored_values, call.user.id, keys)
    _require_all(keys, values)
    return Storage(storage=values)


async def update_storage(
    call: Call,
    storage: Annotated[
        dict[str, str], Doc(f"Values by key: at most {MAX_CHARACTERS:,} characters in total.")
    ],
) -> None:
    """Store values for the calling bot. Other keys keep their values."""
    _require_bot(call)
    new = storage
    if any("\0" in text for pair in new.items() for text in pair):
        raise Refused("Stored values can't contain null bytes.")
    change = StorageChanged(call.user.id, new)
    await call.node.store.read(_require_room, change)
    # Each write checks the limits again, because requests can overlap.
    await _change(call, change)


async def remove_storage(call: Call, keys: _Keys = None) -> None:
    """Delete stored values of the calling bot."""
    _require_bot(call)
    if keys is not None:
        values = await call.node.store.read(bots.stored_values, call.user.id, keys)
        _require_all(keys, values)
    await _change(call, StorageChanged(call.user.id, gone=keys))


def _require_bot(call: Call) -> None:
    if not call.user.is_bot:
        raise OnlyForBots("Only bots can store values here.")


def _require_all(keys: list[str] | None, values: dict[str, str]) -> None:
    for key in keys or ():
        if key not in values:
            raise Refused(f"No value is stored under the key '{key[:100]}'.")


def _require_room(connection: Connection, change: StorageChanged) -> None:
    new = change.values
    size, count = bots.sizes(connection, change.user_id, list(new))
    size += sum(len(name) + len(value) for name, value in new.items())
    if size > MAX_CHARACTERS:
        raise Refused(
            f"This would be {counted(size - MAX_CHARACTERS, 'character')} over the limit of"
            f" {MAX_CHARACTERS:,} characters that a bot can store."
        )
    if count + len(new) > MAX_VALUES:
        raise Refused(f"A bot can store at most {MAX_VALUES:,} values.")


async def _change(call: Call, change: StorageChanged) -> None:
    for part in bots.in_parts(change):
        await call.node.store.write(partial(_write, part))


def _write(part: StorageChanged, connection: Connection) -> None:
    if part.values:
        _require_room(connection, part)
    bots.write(connection, part)
