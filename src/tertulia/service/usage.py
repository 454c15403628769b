"""Counting usage of the organization, incrementally: each step reads some new rows and stores the
result (`store/usage.py`).

Several nodes may count at the same time; of two equal steps, one is stored.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from tertulia.state.state import State
from tertulia.store import usage
from tertulia.store.database import Connection
from tertulia.store.store import Store
from tertulia.store.usage import UsageProgress

FILES_SECONDS: Final = 3600.0
"""The interval, in seconds, of counting the files of channels, which always starts from the
beginning."""
LATE_SECONDS: Final = 600.0
"""The number of seconds after midnight for which presence of the previous day may still be
stored."""
REST_SECONDS: Final = 0.02
"""The pause between steps in seconds, so that others can write."""

Report = Callable[[int, int], None]
"""Called with the ID of the last counted message, and of the last message."""


class CountedElsewhere(Exception):
    """Another node is counting."""


async def count(
    store: Store,
    state: Callable[[], State],
    now: float,
    report: Report = lambda _done, _all: None,
    *,
    with_files: bool = False,
) -> None:
    """Count new data. The files of channels are counted if `FILES_SECONDS` have passed, or
    `with_files`. Raise CountedElsewhere if another node is counting; earlier steps are stored."""
    at = await _messages(store, state, report)
    at = await _people(store, at, now)
    if with_files or not 0 <= now - at.files_at < FILES_SECONDS:
        at = await _files(store, state, at, now)
    await _kept(store, partial(usage.finish, before=at, at=now))


def progress(at: UsageProgress, state: State) -> float:
    """Return the fraction of all messages that is counted, from 0 to 1."""
    last = state.last_message_id
    return min(at.message_id / last, 1.0) if last else 1.0


async def _kept(store: Store, step: Callable[[Connection], UsageProgress | None]) -> UsageProgress:
    after = await store.write(step)
    if after is None:
        raise CountedElsewhere
    await asyncio.sleep(REST_SECONDS)
    return after


async def _messages(store: Store, state: Callable[[], State], report: Report) -> UsageProgress:
    at = await store.read(usage.progress)
    while True:
        new = await store.read(usage.new_messages, at.message_id)
        if new.last_id != at.message_id:
            at = await _kept(store, partial(usage.add_messages, before=at, new=new))
            report(at.message_id, state().last_message_id)
        if new.is_all:
            return at


async def _people(store: Store, at: UsageProgress, now: float) -> UsageProgress:
    today, final = usage.day_of(now), usage.day_of(now - LATE_SECONDS)
    first: int | None = at.day
    if not first:
        first = await store.read(usage.first_day)
    while first is not None and first <= today:
        active_people = await store.read(usage.active_people, first, today)
        step = partial(usage.put_people, before=at, active=active_people, final=final)
        at = await _kept(store, step)
        first = active_people.until
    return at


async def _files(
    store: Store, state: Callable[[], State], at: UsageProgress, now: float
) -> UsageProgress:
    result: dict[int, tuple[int, int]] = {}
    after = 0
    while after < state().attachments.highest:
        for channel, attachment_id in await store.read(usage.links_of_files, after):
            attachment = state().attachments.get(attachment_id)
            if attachment is not None:
                files, size = result.get(channel, (0, 0))
                result[channel] = files + 1, size + attachment.size
        after += usage.FILE_BATCH
        await asyncio.sleep(REST_SECONDS)
    return await _kept(store, partial(usage.put_files, before=at, counts=result, at=now))
