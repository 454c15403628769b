"""What bots keep with the server between two runs."""

from functools import partial
from typing import Annotated, Final

from msgspec import Meta

from tertulia.model.errors import NotPermitted, Refused
from tertulia.store import bots
from tertulia.store.bots import StorageChanged
from tertulia.store.database import Connection
from tertulia.wire.http.parameters import Params
from tertulia.wire.http.routing import ApiResponse, Call

MOST_CHARACTERS: Final = 10_000_000
"""Of all names and texts of one bot."""
MOST_TEXTS: Final = 100_000
"""Of one bot."""

_Keys = Annotated[
    Annotated[list[str], Meta(max_length=MOST_TEXTS)] | None, Meta(description="By default all.")
]


class GetStorage(Params, kw_only=True, frozen=True):
    """Which texts."""

    keys: _Keys = None


class Storage(ApiResponse, kw_only=True):
    """The texts by their names."""

    storage: dict[str, str]


async def get_storage(call: Call, params: GetStorage) -> Storage:
    """What the calling bot keeps with the server."""
    _require_bot(call)
    found = await call.node.store.read(bots.stored_values, call.user.id, params.keys)
    _require_all(params.keys, found)
    return Storage(storage=found)


class UpdateStorage(Params, kw_only=True, frozen=True):
    """Texts to keep; others stay."""

    storage: Annotated[
        dict[str, str],
        Meta(description=f"Texts by their names: {MOST_CHARACTERS:,} characters of both in all."),
    ]


async def update_storage(call: Call, params: UpdateStorage) -> ApiResponse:
    """Keep texts for the calling bot."""
    _require_bot(call)
    new = params.storage
    if any("\0" in text for pair in new.items() for text in pair):
        raise Refused("Stored values can't contain null bytes.")
    change = StorageChanged(call.user.id, new)
    await call.node.store.read(_require_room, change)
    # Looked at again with each part that is written: others may come at the same moment.
    await _change(call, change)
    return ApiResponse()


class RemoveStorage(Params, kw_only=True, frozen=True):
    """Which texts to forget."""

    keys: _Keys = None


async def remove_storage(call: Call, params: RemoveStorage) -> ApiResponse:
    """Forget what the calling bot keeps."""
    _require_bot(call)
    if params.keys is not None:
        found = await call.node.store.read(bots.stored_values, call.user.id, params.keys)
        _require_all(params.keys, found)
    await _change(call, StorageChanged(call.user.id, gone=params.keys))
    return ApiResponse()


def _require_bot(call: Call) -> None:
    if not call.user.is_bot:
        raise NotPermitted("Only bots can store values here.")


def _require_all(names: list[str] | None, found: dict[str, str]) -> None:
    for name in names or ():
        if name not in found:
            raise Refused(f"No value is stored under the key '{name[:100]}'.")


def _require_room(connection: Connection, change: StorageChanged) -> None:
    new = change.values
    size, count = bots.sizes(connection, change.user_id, list(new))
    size += sum(len(name) + len(value) for name, value in new.items())
    if size > MOST_CHARACTERS:
        raise Refused(
            f"This would be {size - MOST_CHARACTERS:,} characters over the limit of"
            f" {MOST_CHARACTERS:,} characters that a bot can store."
        )
    if count + len(new) > MOST_TEXTS:
        raise Refused(f"A bot can store at most {MOST_TEXTS:,} values.")


async def _change(call: Call, change: StorageChanged) -> None:
    for part in bots.in_parts(change):
        await call.node.store.write(partial(_write, part))


def _write(part: StorageChanged, connection: Connection) -> None:
    if part.values:
        _require_room(connection, part)
    bots.write(connection, part)
