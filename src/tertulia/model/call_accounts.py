"""People's accounts at providers of calls."""

from msgspec import Struct

from tertulia.model.change import Change


class CallAccount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's account at Zoom."""

    user_id: int
    sealed: str
    """Its tokens, encrypted."""


class CallAccountConnected(Change, frozen=True, tag="call_account_connected"):
    """Someone connected an account, or its tokens were renewed."""

    user_id: int
    account: CallAccount
    renewed: bool = False


class CallAccountDisconnected(Change, frozen=True, tag="call_account_disconnected"):
    user_id: int
