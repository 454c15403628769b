"""When a poll ends because its user may not poll any more: the account, the session or the API key
that it came with is over."""

from collections.abc import Collection

from tertulia.model.changes import AnyChange, CredentialChanged, SessionsEnded, UserDeactivated
from tertulia.model.errors import AccountDeactivated, NotAuthenticated, Refused, WrongApiKey
from tertulia.model.users import Credential
from tertulia.state.organization import State


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


def require(
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
