"""Following a running Zulip until its organization has moved here.

Events only say which records to read again, and the records here are made equal to what the server
shows then. So an event that arrives twice, or after a crash, does no harm.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from tertulia.domain import names
from tertulia.domain.organization import lifecycle
from tertulia.imports.progress import ImportRefused
from tertulia.imports.report import ImportReport
from tertulia.imports.target import ImportTarget
from tertulia.imports.zulip.live import organization
from tertulia.imports.zulip.live.events import touched_by
from tertulia.imports.zulip.live.followed import (
    FACT,
    FINISH_FACT,
    IMPORT_FACT,
    Followed,
    FollowedImport,
)
from tertulia.imports.zulip.live.history import BATCH, batches, readable_private
from tertulia.imports.zulip.live.messages import LiveMessages
from tertulia.imports.zulip.live.organization import LiveOrganization
from tertulia.imports.zulip.live.previous_state import PreviousState
from tertulia.imports.zulip.live.server import Interrupted, QueueLost, ZulipServer
from tertulia.imports.zulip.rows import Row, number, text
from tertulia.model.changes import AnyChange, RealmChanged, RealmCreated
from tertulia.model.errors import Refused
from tertulia.model.groups import SYSTEM_GROUPS
from tertulia.model.organization import Realm
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import installation, queries
from tertulia.store.notes import FactSet, Note
from tertulia.store.store import READ_SECONDS

ID_BATCH: Final = 300
POLL_SECONDS: Final = 2.0
SETTLE_SECONDS: Final = 1.0
"""How long a new message waits for one with a lower ID, which may be announced later."""
REFRESH_SECONDS: Final = 5.0
"""Minimum time between two readings of the organization."""
KEEP_SECONDS: Final = 120.0
"""How often the queue is asked for events while messages are compared."""
SEEN_SECONDS: Final = 30.0
"""How often the follower stores that it's running."""
UNREADABLE: Final = (
    "messages since the export in private channels and direct conversations that the owner isn't in"
)
_OF_MESSAGES: Final = frozenset(
    {
        *("message", "update_message", "delete_message", "reaction", "submessage"),
        *("update_message_flags", "heartbeat"),
    }
)
T = TypeVar("T")


class Follower:
    """Follows one server until it's ended or the move should be finished."""

    def __init__(
        self,
        target: ImportTarget,
        server: ZulipServer,
        *,
        tell: Callable[[str, Followed], None] = lambda *_: None,
        is_ended: Callable[[], bool] = lambda: False,
        processes: int | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._log = target.log
        self._vault = target.vault
        self._server = server
        self._tell = tell
        self._is_ended = is_ended
        self._poll_seconds = poll_seconds
        self._followed = Followed(url=server.url)
        self._report = ImportReport()
        self._messages = LiveMessages(target, server, self._report, processes)
        self._looked_at = 0.0

    async def run(self) -> Followed:
        """Follow until the end. Return the final progress, whose step is `done` if the move is
        finished. Raises SourceError, and ImportRefused if the organization there is another one."""
        followed = self._followed
        try:
            await self._begin()
            while followed.step != "done":
                try:
                    there = await self._look()
                    if followed.step == "comparing":
                        await self._compare(there)
                    await self._follow(there)
                except QueueLost:
                    followed.step, followed.queue_id, followed.position = "comparing", "", 0
        except Interrupted:
            pass
        finally:
            self._messages.close()
        return followed

    # Beginning

    async def _begin(self) -> None:
        stored, base = await self._log.store.read_log(
            lambda c: (installation.value(c, FACT), installation.value(c, IMPORT_FACT)),
            READ_SECONDS,
        )
        if stored is not None:
            before = msgspec.json.decode(stored, type=Followed)
            if before.step != "done" and before.url != self._server.url:
                raise ImportRefused(
                    f"The organization is moving from {before.url}. Continue with that server."
                )
            if before.step == "done":
                raise ImportRefused("The move is finished.")
            for name in Followed.__struct_fields__:
                setattr(self._followed, name, getattr(before, name))
            for kept, stored_part in (
                (self._report.imported, before.report.imported),
                (self._report.skipped, before.report.skipped),
                (self._report.changed, before.report.changed),
            ):
                # Each pair has one type, which mypy joins.
                kept.update(stored_part)  # type: ignore[arg-type]
            self._followed.report = self._report
            return
        self._followed.report = self._report
        self._followed.started_at = time.time()
        if self._log.state.is_empty:
            return
        imported = msgspec.json.decode(base, type=FollowedImport) if base else FollowedImport()
        if imported.step != "done" or not imported.keep_ids:
            raise ImportRefused(
                "Following needs an empty data directory, or an organization that the import of an"
                " export of the same server created and that is finished."
            )
        last_id = self._log.state.last_message_id
        for message in await self._log.store.read(lambda c: queries.messages(c, [last_id])):
            if message.sent_at > imported.started_at > 0:
                raise ImportRefused(
                    "There are messages that were written here after the export, so new ones there"
                    " couldn't keep their IDs. Import the export into an empty data directory with"
                    " `tertulia import zulip --live`, and don't write there before the move is"
                    " finished."
                )

    async def _look(self) -> PreviousState:
        """Make the organization equal, and return the state there. Registers an event queue unless
        one exists."""
        followed = self._followed
        row = await self._asked(self._server.register)
        if followed.queue_id:
            await self._asked(self._server.end_queue, text(row, "queue_id"))
        else:
            followed.queue_id = text(row, "queue_id")
            last = row.get("last_event_id")
            followed.last_event_id = last if isinstance(last, int) else -1
        there = PreviousState(state=row, channels=await self._asked(self._server.channels))
        if self._log.state.is_empty:
            await self._found(there)
        elif not followed.seen_at:
            self._require_same(there, await self._asked(self._server.newest_id))
        if self._log.state.realm.moving_from != followed.url:
            await self._submit([RealmChanged(values={"moving_from": followed.url})])
        await self._equalize(there)
        self._looked_at = time.monotonic()
        return there

    async def _found(self, there: PreviousState) -> None:
        followed = self._followed
        followed.history_until = await self._asked(self._server.newest_id)
        try:
            name = names.realm_name(text(there.state, "realm_name"))
        except Refused:
            name = "Organization"
        now = int(time.time())
        realm = Realm(
            uuid=str(uuid.uuid4()),
            name=name,
            created_at=number(there.state, "realm_date_created") or now,
            inline_url_embed_preview=True,
            moving_from=followed.url,
        )
        await self._submit(
            [RealmCreated(realm=realm, groups=SYSTEM_GROUPS, bots=lifecycle.system_bots(now))],
            FactSet(installation.SECRET, self._vault.fingerprint),
        )

    def _require_same(self, there: PreviousState, newest: int) -> None:
        """Raise ImportRefused if the IDs here belong to other records than the IDs there."""
        state = self._log.state
        people = there.state.get("realm_users")
        same = other = 0
        for row in people if isinstance(people, list) else ():
            known = state.users.get(number(row, "user_id")) if isinstance(row, dict) else None
            if known is not None and not known.is_system_bot:
                address = text(row, "delivery_email") or text(row, "email")
                is_same = address.casefold() == known.address.casefold()
                same += is_same or text(row, "full_name") == known.full_name
                other += not is_same and text(row, "full_name") != known.full_name
        if not same or other > same:
            raise ImportRefused(
                f"The organization at {self._server.url} isn't the one that was imported here: its"
                " people have other IDs."
            )
        if state.last_message_id > newest:
            raise ImportRefused(
                "There are newer messages here than there, so new ones couldn't keep their IDs."
                " Import the export into an empty data directory, and don't write there before the"
                " move is finished."
            )

    async def _equalize(self, there: PreviousState) -> None:
        live = LiveOrganization(there, self._vault, self._report)
        count = 0
        for verb in live.verbs():
            context = CommandContext(self._log.state, self._log.clock(), None)
            if verb(context):
                count += await self._log.submit(None, organization.changed, verb)
        if count:
            self._messages.close()  # Its renderer uses the previous names and channels.
            self._report.count("changes of the organization", count)

    # Comparing

    async def _compare(self, there: PreviousState) -> None:
        """Compare all messages that the owner can read."""
        followed = self._followed
        pages = batches(self._server, there, followed.position)
        kept_at = time.monotonic()
        while (rows := await self._asked(next, pages, None)) is not None:
            last = int(rows[-1]["id"])
            await self._delete_missing(there, followed.position, last, rows)
            await self._equalize_rows(there, rows, last)
            self._tell("comparing messages", followed)
            if self._is_ended():
                raise Interrupted
            if time.monotonic() - kept_at > KEEP_SECONDS:
                # The events stay in the queue, which would expire if nobody asked for them.
                await self._events(followed.last_event_id)
                kept_at = time.monotonic()
        newest = self._log.state.last_message_id
        await self._delete_missing(there, followed.position, newest, ())
        followed.step = "following"
        await self._store()

    async def _equalize_rows(self, there: PreviousState, rows: Sequence[Row], last: int) -> None:
        followed = self._followed

        def progress() -> list[Note]:
            followed.position = last
            return [self._note()]

        old = [row for row in rows if row["id"] <= followed.history_until]
        new = rows[len(old) :]
        if old:
            await self._messages.equalize(there, old, list, is_history=True)
        if new:
            await self._messages.equalize(there, new, progress)
        followed.position = last
        await self._store()

    async def _delete_missing(
        self, there: PreviousState, after: int, until: int, rows: Sequence[Row]
    ) -> None:
        """Delete the messages that the owner could read there but that no longer exist there."""
        exist = {row["id"] for row in rows}
        own_directs = set(self._log.state.directs.of_user[there.owner_id])
        private = readable_private(there)
        while True:
            last = min(until, self._log.state.last_message_id)
            places = await self._log.store.read(queries.places_between, after, last, BATCH)
            state = self._log.state  # It may have been reloaded since the previous round.
            gone = [
                message_id
                for message_id, channel_id, direct_id in places
                if message_id not in exist
                and (
                    direct_id in own_directs
                    if channel_id is None
                    else channel_id in private or not state.channels[channel_id].is_private
                )
            ]
            # The list may be incomplete, so ask the server about each message.
            if gone and (sure := await self._missing(gone)):
                deleted = await self._messages.delete(sure)
                self._report.count("deleted messages", deleted)
            if len(places) < BATCH:
                return
            after = places[-1][0]

    async def _missing(self, message_ids: Sequence[int]) -> list[int]:
        result: set[int] = set()
        for begin in range(0, len(message_ids), ID_BATCH):
            some = message_ids[begin : begin + ID_BATCH]
            result |= {row["id"] for row in await self._asked(self._server.messages_with, some)}
        return [message_id for message_id in message_ids if message_id not in result]

    # Following

    async def _follow(self, there: PreviousState) -> None:
        followed = self._followed
        while followed.step != "done":
            is_last = await self._is_to_finish()
            there, is_quiet = await self._apply_events(there)
            self._tell("following", followed)
            if is_last and is_quiet:
                await self._finish()
                return
            if self._is_ended():
                raise Interrupted
            if time.time() - followed.seen_at > SEEN_SECONDS:
                await self._store()
            if is_quiet:
                await asyncio.sleep(self._poll_seconds)

    async def _apply_events(self, there: PreviousState) -> tuple[PreviousState, bool]:
        """Apply the events since the last ones. Return the state there, and whether there were no
        events."""
        events = await self._events(self._followed.last_event_id)
        if not events:
            return there, True
        if any(text(event, "type") == "message" for event in events):
            await asyncio.sleep(min(SETTLE_SECONDS, self._poll_seconds))
            events += await self._events(int(events[-1]["id"]))
        if any(text(event, "type") not in _OF_MESSAGES for event in events):
            await asyncio.sleep(
                max(0.0, self._looked_at + REFRESH_SECONDS - time.monotonic())
                if self._poll_seconds
                else 0.0
            )
            there = await self._look()
        touched = touched_by(events)
        rows: list[Row] = []
        ids = sorted(touched.looks)
        for begin in range(0, len(ids), ID_BATCH):
            some = ids[begin : begin + ID_BATCH]
            rows += await self._asked(self._server.messages_with, some)
        if rows and self._lacks_place(rows):
            there = await self._look()
        if rows:
            await self._messages.equalize(there, rows, lambda: [self._note()], touched)
        if touched.deleted:
            count = await self._messages.delete(sorted(touched.deleted))
            self._report.count("deleted messages", count)
        self._followed.events += len(events)
        self._followed.last_event_id = int(events[-1]["id"])
        await self._store()
        return there, False

    async def _events(self, after: int) -> list[Row]:
        results = await self._asked(
            lambda: self._server.events(self._followed.queue_id, after, block=False)
        )
        return sorted(
            (e for e in results if number(e, "id") is not None), key=lambda e: int(e["id"])
        )

    def _lacks_place(self, rows: Sequence[Row]) -> bool:
        state = self._log.state
        return any(
            number(row, "sender_id") not in state.users
            or ("stream_id" in row and number(row, "stream_id") not in state.channels)
            for row in rows
        )

    # The end

    async def _is_to_finish(self) -> bool:
        log = await self._log.store.read_log(
            lambda c: installation.value(c, FINISH_FACT), READ_SECONDS
        )
        return bool(log)

    async def _finish(self) -> None:
        """Read everything again except older messages, and open the organization."""
        followed = self._followed
        there = await self._look()
        for _ in range(10):
            there, is_quiet = await self._apply_events(there)
            if is_quiet:
                break
        followed.differences = organization.differences(self._log.state, there.state)
        if not followed.history_until:
            followed.differences.append(UNREADABLE)
        followed.step, followed.ended_at = "done", time.time()
        await self._submit([RealmChanged(values={"moving_from": ""})], FactSet(FINISH_FACT, ""))
        await self._asked(self._server.end_queue, followed.queue_id)

    # Storing

    def _note(self) -> Note:
        self._followed.seen_at = time.time()
        return FactSet(FACT, msgspec.json.encode(self._followed).decode())

    async def _store(self) -> None:
        await self._submit(())

    async def _submit(self, changes: Sequence[AnyChange], *notes: Note) -> None:
        def verb(_: CommandContext) -> Decision[None]:
            return Decision(None, changes)

        await self._log.submit(None, verb, notes=[self._note(), *notes])

    async def _asked(self, ask: Callable[..., T], *arguments: Any) -> T:
        """Call the blocking `ask` in a thread, and return its result."""
        return await asyncio.to_thread(ask, *arguments)
