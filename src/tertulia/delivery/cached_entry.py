"""An entry of the log in memory, with its events as they were encoded."""

from collections.abc import Collection, Hashable, Sequence
from sys import getsizeof
from typing import Any, Final

from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.model.changes import (
    AnyChange,
    CredentialChanged,
    Entry,
    MessageEdited,
    MessagesDeleted,
    MessageSent,
    MessagesMoved,
    OnMessage,
    SessionsEnded,
    UserChanged,
    UserCreated,
    UserDeactivated,
)
from tertulia.model.errors import AccountDeactivated, NotAuthenticated, Refused, WrongApiKey
from tertulia.model.users import Credential
from tertulia.state.state import State

_NOTHING: Final = BitMap()
OVERHEAD = 1000
"""Bytes that an entry counts for besides what people wrote."""


def entry_size(entry: Entry) -> int:
    """Return the bytes, roughly, that an entry takes in memory."""
    change, size = entry.change, OVERHEAD
    match change:
        case MessageSent():
            size += change.message.text_size
        case MessageEdited():
            size += change.message.text_size
            size += getsizeof(change.was_content) + getsizeof(change.was_rendered)
        case MessagesMoved():
            size += 32 * len(change.message_ids) + len(change.whole_topic)
            size += sum(one.message.text_size for one in change.arrivals if one.message)
        case MessagesDeleted():
            size += 32 * len(change.message_ids)
        case _:
            pass
    return size


def _messages_of(entry: Entry) -> BitMap:
    change = entry.change
    if isinstance(change, MessageSent | MessageEdited):
        return BitMap((change.message.id,))
    if isinstance(change, OnMessage):
        return BitMap((change.place.id,))
    return change.ids if isinstance(change, MessagesMoved) else _NOTHING


class CachedEntry:
    """A committed entry, with its events as they were encoded for each distinct view: what
    `views`, `grouping` and `view_groups` hold is the encoder's business."""

    __slots__ = ("about", "entry", "grouping", "size", "view_groups", "view_groups_at", "views")

    def __init__(self, entry: Entry) -> None:
        self.about = _messages_of(entry)
        """The messages whose deletion, or move to another channel, changes what it shows."""
        self.revise(entry)

    def revise(self, entry: Entry) -> None:
        """Show this entry from now on, encoded anew."""
        self.entry = entry
        self.size = entry_size(entry)
        """Bytes, roughly: of the entry, and of its events as far as they are encoded."""
        self.views: dict[Hashable, Any] = {}
        self.view_groups: dict[Hashable, Sequence[bytes]] = {}
        self.grouping: Any = None
        self.view_groups_at = 0
        """The sequence number of the state for which `view_groups` and `grouping` hold."""


_NO_CONTENT: Final[dict[str, Any]] = {"message": None, "submessages": ()}


class Withdrawal:
    """The messages of a deletion, or of a move to another channel."""

    def __init__(self, message_ids: Sequence[int], moved_to: int | None) -> None:
        """`moved_to` is None for a deletion."""
        self._message_ids = BitMap(message_ids)
        self._moved_to = moved_to
        self._of_message: dict[str, Any] = {"moved_to": moved_to}
        if moved_to is None:
            self._of_message = {"gone": True}

    def concerns(self, messages: BitMap) -> bool:
        """Whether an entry about some of these messages may have to be revised."""
        return bool(self._message_ids.intersect(messages))

    def revised(self, cached: CachedEntry) -> Entry | None:
        """The earlier entry as it is shown from now on; None where it stays as it is."""
        found = cached.about & self._message_ids
        if not found:
            return None
        earlier, change = cached.entry, cached.entry.change
        if isinstance(change, MessageSent | MessageEdited | OnMessage):
            return replace(earlier, change=replace(change, **self._of_message))
        if isinstance(change, MessagesMoved):
            now_at = {at: BitMap.deserialize(ids) - found for at, ids in change.moved_on}
            now_at[self._moved_to] = now_at.get(self._moved_to, BitMap()) | found
            moved_on = tuple((at, ids.serialize()) for at, ids in now_at.items() if ids)
            arrivals = change.arrivals
            if self._moved_to is None:
                arrivals = tuple(
                    replace(one, **_NO_CONTENT) if one.message_id in found else one
                    for one in arrivals
                )
            return replace(earlier, change=replace(change, arrivals=arrivals, moved_on=moved_on))
        return None


class Erasure:
    """An account's person was erased."""

    def __init__(self, user_id: int) -> None:
        self._user_id = user_id

    def concerns(self, _: BitMap) -> bool:
        """Whether an entry about some of these messages, or about none, may be concerned."""
        return True

    def revised(self, cached: CachedEntry) -> Entry | None:
        """The earlier entry, to be shown anew, where it tells what the account was; else None."""
        earlier = cached.entry
        match earlier.change:
            case UserCreated(user=user):
                return earlier if user.id == self._user_id else None
            case UserChanged(user_id=user_id):
                return earlier if user_id == self._user_id else None
            case _:
                return None


def withdrawal_by(entry: Entry) -> Withdrawal | Erasure | None:
    """What the entry withdraws from those before it, if anything."""
    match entry.change:
        case MessagesDeleted(message_ids=ids):
            return Withdrawal(ids, None)
        case MessagesMoved(message_ids=ids, changes_channel=True, new_channel_id=channel_id):
            return Withdrawal(ids, channel_id)
        case UserChanged(user_id=user_id, values={"is_deleted": True}):
            return Erasure(user_id)
        case _:
            return None


def concerned(change: AnyChange) -> Collection[int]:
    """The users some of whose polls may end with the change."""
    match change:
        case UserDeactivated(user_id=user_id):
            return (user_id,)
        case CredentialChanged(credential=credential, same_key=False):
            return (credential.user_id,)
        case SessionsEnded(user_ids=user_ids):
            return user_ids
        case _:
            return ()


def lost(change: AnyChange, session_id: int | None) -> Refused | None:
    """Why a concerned user's poll ends with the change, if it does. `session_id` is of the session
    that the poll came with; None where it came with the API key."""
    match change:
        case UserDeactivated():
            return _deactivated()
        case CredentialChanged(same_key=False) if session_id is None:
            return _key_void()
        case SessionsEnded(session_ids=ended) if session_id in ended:
            return _signed_out()
        case _:
            return None


def require_queue(
    state: State, user_id: int, credential: Credential | None, session_id: int | None
) -> None:
    """Refuse a poll that would have ended meanwhile, had it been waiting already. `credential` is
    what the user had when it came."""
    user = state.users.get(user_id)
    if user is None or not user.is_active:
        raise _deactivated()
    if session_id is not None:
        if session_id not in state.sessions:
            raise _signed_out()
        return
    present = state.credentials.get(user_id)
    if present is None or credential is None or present.key_digest != credential.key_digest:
        raise _key_void()


def _deactivated() -> Refused:
    return AccountDeactivated("This account is deactivated.")


def _key_void() -> Refused:
    return WrongApiKey("This API key is no longer valid.")


def _signed_out() -> Refused:
    return NotAuthenticated("You have been signed out.")
