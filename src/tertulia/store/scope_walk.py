"""Walking through the messages that match a narrow without text, away from an anchor."""

from collections.abc import Sequence

from tertulia.model import narrow
from tertulia.model.messages import Message
from tertulia.model.narrow import MessageSearch, Term
from tertulia.store.codec import MESSAGE_COLUMNS, message_of
from tertulia.store.database import Connection
from tertulia.store.narrow_sql import (
    Clause,
    all_of,
    fits_scope,
    in_each_channel,
    names_one_channel,
    narrow_condition,
    nearest,
    places,
)

_REACH = 8
"""A walk along all messages covers this many times the page, or `_REACH_OF_PLACE` messages for each
channel and conversation in scope, before these are queried one by one."""
_REACH_OF_PLACE = 4
_MERGED = 512
"""Messages queried from the channels and conversations in one step."""
_WORTH = 8
"""If fewer than one of this many messages matches, the walk returns to all messages."""


class ScopeWalk:
    """A walk through the messages in a search's scope that fit its terms without text."""

    def __init__(
        self,
        connection: Connection,
        search: MessageSearch,
        terms: Sequence[Term],
        comparison: str,
        anchor: int,
        newest: int | None = None,
    ) -> None:
        self._connection = connection
        self.scope, self.terms = search.scope, terms
        self.comparison = comparison
        self.is_back = comparison == "<"
        self.order = "DESC" if self.is_back else "ASC"
        self.last_id = anchor
        """The ID that the walk has reached."""
        self._newest = newest
        self.where = narrow_condition(connection, search.scope, terms)
        self._places = places(search.scope)
        self._also = in_each_channel(terms)
        self._is_scope = all(map(fits_scope, terms)) and (
            bool(self._also) or not (self._places == 1 and any(map(names_one_channel, terms)))
        )
        """Whether most messages in scope (or in an index by channel) match, and no index has all
        matches in order."""
        self._keep_to_extent()

    def _keep_to_extent(self) -> None:
        """Keep the walk within the scope's first and last messages."""
        after, until = self.scope.extent
        if self.is_back:
            self.last_id = min(self.last_id, until + 1)
            end = ("messages.id > ?", after) if after else None
        else:
            self.last_id = max(self.last_id, after)
            end = ("messages.id <= ?", until) if until < narrow.LARGEST else None
        if end is not None:
            sql, values = self.where
            self.where = f"{sql} AND {end[0]}", [*values, end[1]]

    @property
    def newest(self) -> int:
        """The ID of the newest message."""
        if self._newest is None:
            ((newest,),) = self._connection.query("SELECT MAX(id) FROM messages")
            self._newest = newest or 0
        return self._newest

    @property
    def ids_left(self) -> int:
        return self.last_id if self.is_back else self.newest - self.last_id

    def begin_at_newest(self) -> None:
        """Skip IDs that no message has yet."""
        if self.is_back:
            self.last_id = min(self.last_id, self.newest + 1)

    def next(self, limit: int) -> list[Message]:
        """Return the next messages, and advance to the last of them."""
        some = self._next(limit)
        if some:
            self.last_id = some[-1].id
        return some

    def _next(self, limit: int) -> list[Message]:
        if not self._is_scope:
            return self._along(limit, self.last_id, self.where)
        if self.is_back and self.last_id >= narrow.LARGEST:
            self.begin_at_newest()
        reach = max(_REACH * limit, _REACH_OF_PLACE * self._places)
        after, until = self.scope.extent
        if self.is_back:
            edge = self.last_id - reach
            within, is_end = "messages.id >= ?", edge <= after + 1
        else:
            edge = self.last_id + reach
            within, is_end = "messages.id <= ?", edge >= until
        messages = self._along(limit, self.last_id, self.where, (within, [edge]))
        if len(messages) < limit and not is_end:
            messages += self._merged(limit - len(messages), edge)
        return messages

    def _along(self, limit: int, start: int, *where: Clause) -> list[Message]:
        """Find messages beyond an ID by walking along all of them."""
        sql, values = all_of(where)
        rows = self._connection.query(
            f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE {sql}"
            f" AND messages.id {self.comparison} ?"
            f" ORDER BY messages.id {self.order} LIMIT {int(limit)}",
            [*values, start],
        )
        return [message_of(row) for row in rows]

    def _merged(self, limit: int, start: int) -> list[Message]:
        """Find messages beyond an ID by querying each channel and conversation in scope."""
        fits, values = self.where
        messages: list[Message] = []
        asked, passed = limit, 0
        while len(messages) < limit:
            # Few distinct sizes, because each is a statement to prepare.
            size = min(1 << (asked - 1).bit_length(), _MERGED)
            ids = nearest(
                self._connection.dialect, self.scope, self.comparison, start, size, self._also
            )
            if ids is None:
                break
            rows = self._connection.query(
                f"SELECT {MESSAGE_COLUMNS}, {fits} FROM ({ids[0]}) AS nearest CROSS JOIN messages"
                f" WHERE messages.id = nearest.id ORDER BY messages.id {self.order}",
                [*values, *ids[1]],
            )
            messages += [message_of(row) for row in rows if row[-1]]
            if len(rows) < size:
                break
            start, asked, passed = rows[-1][0], _MERGED, passed + len(rows)
            if len(messages) < limit and passed > _WORTH * max(len(messages), _MERGED):
                messages += self._along(limit - len(messages), start, self.where)
                break
        return messages[:limit]
