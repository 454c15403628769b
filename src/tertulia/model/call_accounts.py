"""People's accounts at video call providers."""

from msgspec import Struct

from tertulia.model.change import Change


class CallAccount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's Zoom account."""

    user_id: int
    sealed: str
    """The encrypted tokens."""


class CallAccountConnected(Change, frozen=True, tag="call_account_connected"):
    """Someone connected an account, or its tokens were renewed."""

    user_id: int
    account: CallAccount
    renewed: bool = False


class CallAccountDisconnected(Change, frozen=True, tag="call_account_disconnected"):
    user_id: int
