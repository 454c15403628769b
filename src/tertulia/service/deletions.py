"""Deletions of people's messages and files, which may take longer than one request. They're stored
until they're complete, so that a node continues unfinished ones (`jobs/deletions.py`)."""

from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain.messages.deleting import DeletionScope
from tertulia.store import installation
from tertulia.store.database import Connection
from tertulia.store.store import READ_SECONDS, Store

_FACT: Final = "deletion."
"""The prefix of the keys of facts about pending deletions; the account's ID follows."""


class PendingDeletion(Struct, kw_only=True):
    """A deletion of an account's messages or files."""

    user_id: int
    actor_id: int
    """The administrator who requested it."""
    places: DeletionScope
    files: bool
    erased: bool
    """Whether the person's data is erased afterwards."""
    seen_at: float = 0
    """The last time that a request or a node worked on it, in UNIX seconds."""
    messages: int = 0
    """The number of messages that are deleted so far."""


async def pending(store: Store) -> list[PendingDeletion]:
    """Return the deletions that aren't complete."""
    facts = await store.read_log(lambda c: installation.values(c, _FACT), READ_SECONDS)
    return [msgspec.json.decode(text, type=PendingDeletion) for text in facts.values()]


async def found(store: Store, user_id: int) -> PendingDeletion | None:
    """Return the account's pending deletion, if any."""
    key = f"{_FACT}{user_id}"
    text = await store.read_log(lambda c: installation.value(c, key), READ_SECONDS)
    return None if text is None else msgspec.json.decode(text, type=PendingDeletion)


async def remember(store: Store, deletion: PendingDeletion) -> None:
    """Store the deletion's progress."""
    text = msgspec.json.encode(deletion).decode()

    def put(connection: Connection) -> None:
        installation.put(connection, f"{_FACT}{deletion.user_id}", text)

    await store.write(put)


async def forget(store: Store, user_id: int) -> None:
    """Remove the deletion, because it's complete or can't be completed."""
    await store.write(lambda c: installation.forget(c, f"{_FACT}{user_id}"))
