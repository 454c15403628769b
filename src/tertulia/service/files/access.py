"""Who may open an uploaded file."""

from collections.abc import Iterable, Sequence

from tertulia.domain.messages import narrow
from tertulia.model.attachments import Attachment
from tertulia.model.errors import Conflict
from tertulia.model.narrow import Scope
from tertulia.model.users import User
from tertulia.service.conflicts import retry_on_conflict
from tertulia.service.node import Node
from tertulia.store import message_search
from tertulia.store.database import Connection


class FileAccess:
    """Which of some files a user may open: their own, and those that a message links which the
    user can read. None is a spectator, who reads channels that are open to the public.

    In three steps: made from the state; `opened` on a connection, when that state is settled;
    `require_unchanged`, since rights may be gone by then and messages may have been moved.
    """

    def __init__(self, node: Node, user: User | None, files: Iterable[Attachment]) -> None:
        self._node = node
        self._user = user
        own: set[int] = set()
        self._linked_by: dict[int, tuple[int, ...]] = {}
        """By the file's ID, the messages that link it."""
        for file in files:
            if user is not None and file.user_id == user.id:
                own.add(file.id)
            elif message_ids := node.state.uploads.message_ids(file.id):
                self._linked_by[file.id] = message_ids
        self.own = frozenset(own)
        """The files that are the user's own: nothing needs to be read for them."""
        self._seq = node.state.seq
        self._scope = self._readable() if self._linked_by else None

    @property
    def needs_look(self) -> bool:
        """Whether something must be read to know of the others."""
        return bool(self._linked_by)

    def opened(self, connection: Connection) -> frozenset[int]:
        """The IDs of the files that the user may open. In a thread."""
        if self._scope is None:
            return self.own
        scope = self._scope
        return self.own | {
            file_id
            for file_id, message_ids in self._linked_by.items()
            if message_search.any_in(connection, scope, message_ids)
        }

    def require_unchanged(self) -> None:
        """Conflict where what `opened` answered may not be so any more."""
        if self._scope is None:
            return
        message_ids = set[int]().union(*self._linked_by.values())
        touched = self._node.state.recent_writes.since(self._seq, message_ids)
        if touched or self._readable() != self._scope:
            raise Conflict

    def _readable(self) -> Scope:
        """All that the user may read, as they are by now."""
        node, user = self._node, self._user
        reader = narrow.Reader(
            state=node.state,
            user=None if user is None else node.state.users[user.id],
            host=node.config.address_host,
        )
        return narrow.everything_readable(reader)


async def may_open(node: Node, user: User | None, file: Attachment) -> bool:
    """Whether the user (None: a spectator) may open the file."""
    return bool(await files_opened(node, user, [file]))


async def files_opened(
    node: Node, user: User | None, files: Sequence[Attachment]
) -> frozenset[int]:
    """The IDs of those of the files that the user (None: a spectator) may open."""

    async def attempt() -> frozenset[int]:
        access = FileAccess(node, user, files)
        if not access.needs_look:
            return access.own
        await node.log.settled()
        opened = await node.store.read(access.opened)
        access.require_unchanged()
        return opened

    return await retry_on_conflict(attempt)
