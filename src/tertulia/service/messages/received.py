"""What readers received, as a scope of searches: kept from one of a reader's questions to the next,
for it is put together of all channels that the reader was ever in."""

from collections import OrderedDict
from typing import Final

from tertulia.domain.messages import narrow
from tertulia.model.narrow import Scope
from tertulia.model.users import User
from tertulia.state.state import State

MOST_CHANNELS: Final = 50_000
"""Of all scopes that are kept together; each channel takes some hundred bytes."""

_Versions = tuple[int, int, int]


class ReceivedScopes:
    """Those of the readers who asked last."""

    def __init__(self, most: int = MOST_CHANNELS) -> None:
        self._most = most
        self._kept: OrderedDict[int, tuple[_Versions, Scope]] = OrderedDict()
        self._channels = 0

    def of(self, state: State, user: User) -> Scope:
        """As `narrow.received_scope`."""
        if state.users[user.id] is not user:
            return narrow.received_scope(state, user)  # As the account was once.
        versions = (
            state.subscriptions.version,
            state.channels.version,
            state.memberships.version,
        )
        kept = self._kept.get(user.id)
        if (
            kept is not None
            and kept[0] == versions
            and kept[1].direct_ids == state.directs.of_user[user.id]
        ):
            self._kept.move_to_end(user.id)
            return kept[1]
        scope = narrow.received_scope(state, user)
        self._drop(user.id)
        self._kept[user.id] = versions, scope
        self._channels += _channels(scope)
        while self._channels > self._most:
            self._drop(next(iter(self._kept)))
        return scope

    def __len__(self) -> int:
        return len(self._kept)

    def _drop(self, user_id: int) -> None:
        if user_id in self._kept:
            self._channels -= _channels(self._kept.pop(user_id)[1])


def _channels(scope: Scope) -> int:
    return len(scope.spans) + len(scope.recorded) + len(scope.direct_ids) + 1
