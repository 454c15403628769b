"""Links that open something to whoever has them: made, and known again.

A link has the number of what it opens and a proof that this installation made it. Nothing that is
in the database makes the proof: that takes the secret.
"""

import hmac
import re
from typing import Final

from tertulia.model.invitations import Confirmation, Invitation
from tertulia.state.organization import State
from tertulia.vault import Vault

JOIN: Final = "/join/"
CONFIRM: Final = "/confirm/"
EXTERNAL: Final = "/external_content/"
PATHS: Final = (JOIN, CONFIRM, EXTERNAL)
"""What follows these in a path is secret, or what somebody linked."""
_TOKEN: Final = re.compile(r"([ic])(0|[1-9][0-9]{0,15})-([A-Za-z0-9_-]{43})")
_INVITATION: Final = "i"
_CONFIRMATION: Final = "c"
_EXTERNAL: Final = "e"


class Links:
    """The links of one installation."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def invitation(self, site: str, invitation: Invitation) -> str:
        """Where one joins with the invitation."""
        return self._link(site, JOIN, _INVITATION, invitation)

    def sign_up(self, site: str, confirmation: Confirmation) -> str:
        """Where one joins with the address that the link was mailed to."""
        return self._link(site, JOIN, _CONFIRMATION, confirmation)

    def address(self, site: str, confirmation: Confirmation) -> str:
        """Where one confirms an account's new address."""
        return self._link(site, CONFIRM, _CONFIRMATION, confirmation)

    def external(self, url: str) -> str:
        """Where this server gives out what lies at a URL elsewhere, from the root of the site."""
        return f"{EXTERNAL}{self._vault.token(_EXTERNAL, 0, url)}/{url.encode().hex()}"

    def external_url(self, proof: str, digits: str) -> str | None:
        """The URL of such an address; None where it was not made here: the server fetches nothing
        that nobody linked."""
        try:
            url = bytes.fromhex(digits).decode()
        except ValueError:
            return None
        expected = self._vault.token(_EXTERNAL, 0, url)
        return url if hmac.compare_digest(expected.encode(), proof.encode()) else None

    def opened(self, state: State, token: str) -> Invitation | Confirmation | None:
        """What the end of a link opens; None where it was not made here, or is gone. What is over
        may be among it."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        kind, number, proof = match.groups()
        table = state.invitations if kind == _INVITATION else state.confirmations
        found: Invitation | Confirmation | None = table.get(int(number))
        if found is None or not hmac.compare_digest(self._proof(kind, found), proof):
            return None
        return found

    def _link(self, site: str, path: str, kind: str, of: Invitation | Confirmation) -> str:
        return f"{site.rstrip('/')}{path}{kind}{of.id}-{self._proof(kind, of)}"

    def _proof(self, kind: str, of: Invitation | Confirmation) -> str:
        return self._vault.token(kind, of.id, of.nonce)
